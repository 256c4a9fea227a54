//! Aligned columns. Headings are wrapped to the width of what stands below them; a grid wider than the terminal is
//! split into blocks that repeat its leading columns. Words are cut where they must be, numbers never.

use super::Style;
use anstyle::{AnsiColor, Effects};
use std::fmt::Write;

/// What a text stands for; a colour where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
}

impl Tone {
    fn style(self) -> anstyle::Style {
        let plain = anstyle::Style::new();
        match self {
            Tone::Plain => plain,
            Tone::Strong => plain.effects(Effects::BOLD),
            Tone::Faint => plain.effects(Effects::DIMMED),
            Tone::Good => plain.fg_color(Some(AnsiColor::Green.into())),
            Tone::Bad => plain.fg_color(Some(AnsiColor::Red.into())),
        }
    }

    /// The text in this tone.
    pub(crate) fn paint(self, text: &str, style: &Style) -> String {
        if style.colour && self != Tone::Plain && !text.is_empty() {
            let tone = self.style();
            format!("{}{text}{}", tone.render(), tone.render_reset())
        } else {
            text.to_owned()
        }
    }
}

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    text: String,
    tone: Tone,
}

impl Entry {
    pub(crate) fn new(text: impl AsRef<str>, tone: Tone) -> Entry {
        Entry { text: clean(text.as_ref()), tone }
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Entry {
        Entry::new(text, Tone::Plain)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Text without control characters: names in a trace must not steer the terminal.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { cleaned.extend(c.escape_default()) } else { cleaned.push(c) }
    }
    cleaned
}

/// Narrower than this, long words are kept whole.
const BREAKS_WORDS: usize = 20;

/// Lines of at most `width` characters, broken between words, or within a word that is longer. Line breaks in the text are
/// kept, control characters are escaped.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && length(&line).saturating_add(1 + length(word)) > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    let most = if width < BREAKS_WORDS { usize::MAX } else { width };
    let mut broken = Vec::with_capacity(lines.len());
    for line in lines.iter().map(|line| clean(line)) {
        if length(&line) <= most {
            broken.push(line);
            continue;
        }
        let characters: Vec<char> = line.chars().collect();
        broken.extend(characters.chunks(most).map(|part| part.iter().collect::<String>()));
    }
    broken
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// One column.
#[derive(Clone, Debug)]
pub(crate) struct GridColumn {
    heading: String,
    right: bool,
    /// Belongs to the column before it: one blank between them, never split from it.
    joined: bool,
}

impl GridColumn {
    /// A column of words.
    pub(crate) fn left(heading: impl AsRef<str>) -> GridColumn {
        GridColumn { heading: clean(heading.as_ref()), right: false, joined: false }
    }

    /// A column of numbers.
    pub(crate) fn right(heading: impl AsRef<str>) -> GridColumn {
        GridColumn { right: true, ..GridColumn::left(heading) }
    }

    /// The same, as part of the column before it.
    pub(crate) fn joined(self) -> GridColumn {
        GridColumn { joined: true, ..self }
    }
}

/// Rows and columns.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// The columns.
    pub(crate) columns: Vec<GridColumn>,
    /// The rows, as long as `columns`.
    pub(crate) rows: Vec<Vec<Entry>>,
    /// How many leading columns every block repeats at least.
    pub(crate) leading: usize,
}

const GAP: usize = 2;

/// Columns of words are not made narrower than this.
const SHORTEST_WORDS: usize = 16;

impl Grid {
    /// Appends the grid to `out`.
    pub(crate) fn write(&self, style: &Style, out: &mut String) {
        let widths = |longest_words| -> Vec<usize> {
            self.columns.iter().enumerate().map(|(i, c)| self.width(i, c, longest_words)).collect()
        };
        let mut widths = Some(widths(usize::MAX))
            .filter(|widths| self.total(widths) <= style.width)
            .unwrap_or_else(|| widths((style.width / 2).max(24)));
        let leading = self.identify(&widths, style.width);
        let blocks = self.blocks(&widths, style.width, leading);
        self.shorten_words(&mut widths, &blocks, style.width);
        for (number, block) in blocks.iter().enumerate() {
            if number > 0 {
                out.push('\n');
            }
            self.write_block(block, &widths, style, out);
        }
    }

    /// Width of a line of all columns.
    fn total(&self, widths: &[usize]) -> usize {
        let gaps = self.columns.iter().skip(1).map(|column| if column.joined { 1 } else { GAP });
        gaps.chain(widths.iter().copied()).fold(0, usize::saturating_add)
    }

    fn width(&self, index: usize, column: &GridColumn, longest_words: usize) -> usize {
        let content =
            self.rows.iter().filter_map(|row| row.get(index)).map(|entry| length(&entry.text)).max().unwrap_or(0);
        let content = if column.right { content } else { content.min(longest_words) };
        let word = column.heading.split_whitespace().map(length).max().unwrap_or(0);
        content.max(word)
    }

    /// Shortens words in blocks that are too wide although nothing more can be split from them.
    fn shorten_words(&self, widths: &mut [usize], blocks: &[Vec<usize>], limit: usize) {
        for block in blocks {
            loop {
                let gaps = block.iter().skip(1).map(|&i| if self.columns[i].joined { 1 } else { GAP }).sum::<usize>();
                let excess = (block.iter().map(|&i| widths[i]).sum::<usize>() + gaps).saturating_sub(limit);
                let words = block.iter().copied().filter(|&i| !self.columns[i].right && widths[i] > SHORTEST_WORDS);
                let Some(widest) = words.max_by_key(|&i| widths[i]).filter(|_| excess > 0) else { break };
                widths[widest] = (widths[widest] - excess.min(widths[widest])).max(SHORTEST_WORDS);
            }
        }
    }

    /// How many leading columns it takes to tell the rows apart, if they leave half of the width to others.
    fn identify(&self, widths: &[usize], limit: usize) -> usize {
        let apart = |columns: &usize| {
            let mut keys: Vec<Vec<&str>> = self
                .rows
                .iter()
                .map(|row| row.iter().take(*columns).map(|entry| entry.text.as_str()).collect())
                .collect();
            keys.sort_unstable();
            keys.windows(2).all(|pair| pair[0] != pair[1])
        };
        let narrow =
            |columns: &usize| widths.iter().take(*columns).map(|width| width + GAP).sum::<usize>() <= limit / 2;
        let enough = (self.leading..self.columns.len()).take_while(narrow).find(apart);
        enough.unwrap_or(self.leading)
    }

    /// Indices of the columns of each block, which all begin with the same.
    fn blocks(&self, widths: &[usize], limit: usize, leading: usize) -> Vec<Vec<usize>> {
        let needs = |index: usize| {
            let joined = self.columns.get(index).is_some_and(|c| c.joined);
            widths.get(index).copied().unwrap_or(0) + if joined { 1 } else { GAP }
        };
        let leading: Vec<usize> = (0..leading.min(self.columns.len())).collect();
        let used: usize = leading.iter().map(|&i| needs(i)).sum();
        let mut blocks = vec![leading.clone()];
        let mut filled = used;
        let mut start = leading.len();
        while start < self.columns.len() {
            let follow = self.columns.iter().skip(start + 1).take_while(|c| c.joined).count();
            let group = start..start + 1 + follow;
            let size: usize = group.clone().map(needs).sum();
            if filled.saturating_add(size) > limit.saturating_add(GAP) && filled > used {
                blocks.push(leading.clone());
                filled = used;
            }
            if let Some(block) = blocks.last_mut() {
                block.extend(group.clone());
            }
            filled += size;
            start = group.end;
        }
        blocks
    }

    fn write_block(&self, block: &[usize], widths: &[usize], style: &Style, out: &mut String) {
        let headings: Vec<Vec<String>> = block
            .iter()
            .map(|&i| {
                let width = widths.get(i).copied().unwrap_or(0);
                self.columns.get(i).map_or(Vec::new(), |column| wrap(&column.heading, width))
            })
            .collect();
        let lines = headings.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            // headings of fewer lines stand at the bottom
            let entries = headings.iter().map(|heading| {
                let text = (line + heading.len()).checked_sub(lines).and_then(|i| heading.get(i));
                Entry::new(text.map_or("", String::as_str), Tone::Strong)
            });
            self.write_line(block, &entries.collect::<Vec<_>>(), widths, style, out);
        }
        for row in &self.rows {
            let entries: Vec<Entry> =
                block.iter().map(|&i| row.get(i).cloned().unwrap_or_else(|| Entry::plain(""))).collect();
            self.write_line(block, &entries, widths, style, out);
        }
    }

    fn write_line(&self, block: &[usize], entries: &[Entry], widths: &[usize], style: &Style, out: &mut String) {
        let mut line = String::new();
        // blanks are written only before something, so that no line ends in them
        let mut blanks = 0;
        for (&index, entry) in block.iter().zip(entries) {
            let Some((column, width)) = self.columns.get(index).zip(widths.get(index)) else { continue };
            if index != block.first().copied().unwrap_or(0) {
                blanks += if column.joined { 1 } else { GAP };
            }
            let text = cut(&entry.text, *width);
            let padding = width.saturating_sub(length(&text));
            if column.right {
                blanks += padding;
            }
            if !text.is_empty() {
                let _ = write!(line, "{:blanks$}{}", "", entry.tone.paint(&text, style));
                blanks = 0;
            }
            if !column.right {
                blanks += padding;
            }
        }
        out.push_str(&line);
        out.push('\n');
    }
}

/// Text of at most `width` characters, with a mark where something was cut.
fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(width: usize) -> Style {
        Style { width, ..Style::default() }
    }

    fn text(grid: &Grid, width: usize) -> String {
        let mut out = String::new();
        grid.write(&style(width), &mut out);
        out
    }

    #[test]
    fn aligned_and_split() {
        let row = |cells: [&str; 4]| cells.iter().map(Entry::plain).collect();
        let grid = Grid {
            columns: vec![
                GridColumn::left("process"),
                GridColumn::right("pages scanned"),
                GridColumn::left("").joined(),
                GridColumn::right("time"),
            ],
            rows: vec![row(["kswapd0", "4599269", "x", "1.5"]), row(["a\x1b[2J", "3", "", "22.75"])],
            leading: 1,
        };
        assert_eq!(
            text(&grid, 80),
            "\x20             pages\n\
             process     scanned     time\n\
             kswapd0     4599269 x    1.5\n\
             a\\u{1b}[2J        3    22.75\n"
        );
        let narrow = text(&grid, 22);
        assert_eq!(narrow.matches("process").count(), 2, "{narrow}");
        assert!(narrow.lines().all(|line| length(line) <= 22 && !line.ends_with(' ')), "{narrow}");
    }

    #[test]
    fn words_are_cut_and_numbers_are_not() {
        let long = "x".repeat(60);
        let digits = "9".repeat(60);
        let grid = Grid {
            columns: vec![GridColumn::left(""), GridColumn::right("")],
            rows: vec![vec![Entry::plain(&long), Entry::plain(&digits)]],
            leading: 1,
        };
        let text = text(&grid, 40);
        assert!(text.contains("x…") && text.contains(&digits), "{text}");
    }

    #[test]
    fn wrapping() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 5), ["a", "verylongword", "b"]);
        assert_eq!(wrap("two\nlines", usize::MAX), ["two", "lines"]);
        assert_eq!(wrap("", 10), [] as [&str; 0]);
        assert_eq!(wrap(&"x".repeat(45), 20), ["x".repeat(20), "x".repeat(20), "x".repeat(5)]);
    }
}

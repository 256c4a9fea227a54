//! A comparison on one screen: at most [`LINES`](crate::screen::LINES) lines, the answer first.
//!
//! `header` says what is compared, `rows` which quantities got worse and better and by how much, `findings` which came and
//! went, and `next` where there is more. Only the few quantities that a person would choose are shown (`choose`): the
//! workload's own figures, then the [overview](crate::quantities), then cgroups. With one run on a side nothing is claimed.

pub(crate) mod change;
pub(crate) mod choose;
mod differences;
mod findings;
mod header;
mod next;
mod rows;

use crate::compare::{Comparison, JoinedBody, Row};
use crate::format::Style;
use crate::format::grid::{Tone, clean, wrap};
use crate::people::tells;
use crate::screen::{LINES, Line, NARROWEST, WIDEST};

pub use change::figure;
pub(crate) use differences::{Differences, differences};

/// What a screen is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// All tables and findings, with the tables of [`quantities`](crate::quantities).
    pub comparison: &'a Comparison,
    /// The command that made it, such as `mmtwin compare a.mmt b.mmt`, to be followed by a topic.
    pub command: &'a str,
    /// What must be known of the start of the runs, such as of the lab's state.
    pub aside: Option<&'a str>,
}

impl Subject<'_> {
    /// The command, where a line has room for it.
    fn command(&self, width: usize) -> &str {
        let short = self.command.chars().count() <= width * 2 / 3;
        let verb = if self.comparison.columns.len() > 1 { "mmtwin compare BASE OTHER" } else { "mmtwin run SCENARIO" };
        if short { self.command } else { verb }
    }
}

/// The screen, line by line, without line breaks.
pub fn lines(subject: &Subject<'_>, style: &Style) -> Vec<String> {
    let width = style.width.clamp(NARROWEST, WIDEST);
    let mut sections =
        [header::lines(subject, width), Vec::new(), findings::lines(subject, width), next::lines(subject, width)];
    let used: usize = sections.iter().map(|section| section.len() + usize::from(!section.is_empty())).sum();
    sections[1] = rows::lines(subject, width, LINES.saturating_sub(used));
    let mut all = Vec::new();
    for section in sections.iter().filter(|section| !section.is_empty()) {
        if !all.is_empty() {
            all.push(String::new());
        }
        all.extend(section.iter().map(|line| line.tone.paint(&clean(&line.text), style)));
    }
    all
}

/// The rows of tables of metrics in full: of a topic, for example. Rows of which nothing is known and rows of zeros are
/// omitted, and how many. Other tables are not printed.
pub fn tables(comparison: &Comparison, style: &Style) -> Vec<String> {
    let width = style.width.max(NARROWEST);
    let (mut lines, mut omitted) = (Vec::new(), 0);
    for table in &comparison.tables {
        let JoinedBody::Metric(all) = &table.body else { continue };
        let rows: Vec<&Row> = all.iter().filter(|row| row.values.iter().any(|value| tells(&value.cell))).collect();
        omitted += all.len() - rows.len();
        if rows.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::new(Tone::Plain, ""));
        }
        lines.push(Line::new(Tone::Strong, format!("{}  [{}]", table.title, table.name)));
        lines.extend(wrap(&table.note, width).into_iter().filter(|line| !line.is_empty()).map(faint));
        match comparison.columns.len() {
            2 => lines.extend(rows::pairs(&rows, 0, width).into_iter().map(|text| Line::new(Tone::Plain, text))),
            _ => lines.extend(rows::several(comparison, &rows, width, usize::MAX)),
        }
    }
    if omitted > 0 {
        lines.extend([
            Line::new(Tone::Plain, ""),
            faint(format!("{omitted} rows of zeros or without a value omitted: --all")),
        ]);
    }
    lines.iter().map(|line| line.tone.paint(&clean(&line.text), style)).collect()
}

/// What is compared, as the screen says it.
pub fn heading(subject: &Subject<'_>, style: &Style) -> Vec<String> {
    let width = style.width.clamp(NARROWEST, WIDEST);
    header::lines(subject, width).iter().map(|line| line.tone.paint(&clean(&line.text), style)).collect()
}

fn faint(text: impl Into<String>) -> Line {
    Line::new(Tone::Faint, text)
}

#[cfg(test)]
mod tests;

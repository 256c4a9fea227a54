//! Faults of a scenario, as the user reads them.

use super::{Place, Sources};
use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Layer the place is in: within one layer faults are in the order of the text.
    source: usize,
    /// First byte of the place, -1 for a whole file.
    start: i64,
    /// File, or `--set N`.
    pub file: String,
    /// Line and column from 1; `None`: the file as a whole.
    pub at: Option<(usize, usize)>,
    /// The fault.
    pub message: String,
    /// A correction.
    pub help: Option<String>,
    /// The line, the column in it and the width of what is wrong.
    excerpt: Option<(String, usize, usize)>,
}

/// Faults that are listed at most: a file with more is another kind of file.
const MOST: usize = 100;

/// Adds a fault, or once that there are more than are listed.
pub(crate) fn add(faults: &mut Vec<Fault>, fault: impl FnOnce() -> Fault) {
    if faults.len() < MOST {
        faults.push(fault());
    } else if faults.len() == MOST {
        let file = faults[0].file.clone();
        faults.push(Fault::of_file(file, format!("only the first {MOST} faults are listed")));
    }
}

/// True if no more are listed.
pub(crate) fn is_full(faults: &[Fault]) -> bool {
    faults.len() > MOST
}

/// Letters of a line that are shown at most.
const WIDTH: usize = 120;

/// All faults of a scenario, in the order of the files and their lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn new(mut faults: Vec<Fault>) -> Faults {
        faults.sort();
        faults.dedup();
        if faults.len() > MOST + 1 {
            let last = faults[MOST].clone();
            faults.truncate(MOST);
            // Its message.
            add(&mut faults, || last);
        }
        Faults(faults)
    }

    /// An error if there are any.
    ///
    /// # Errors
    /// The faults.
    pub fn unless_none(faults: Vec<Fault>) -> Result<(), Faults> {
        if faults.is_empty() { Ok(()) } else { Err(Faults::new(faults)) }
    }

    /// The faults.
    pub fn all(&self) -> &[Fault] {
        &self.0
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Faults {
        Faults(vec![fault])
    }
}

impl Fault {
    /// A fault of a file as a whole, such as one that cannot be read.
    pub(crate) fn of_file(file: impl Into<String>, message: impl Into<String>) -> Fault {
        let (file, message) = (file.into(), short(message.into()));
        Fault { source: usize::MAX, start: -1, file, at: None, message, help: None, excerpt: None }
    }

    pub(crate) fn new(sources: &Sources, place: Place, message: impl Into<String>) -> Fault {
        let source = sources.get(place.source);
        let start = floor_boundary(&source.text, place.start);
        let end = floor_boundary(&source.text, place.end.max(start));
        let line_start = source.text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line = source.text[line_start..].lines().next().unwrap_or("");
        let number = source.text[..line_start].matches('\n').count() + 1;
        let column = source.text[line_start..start].chars().count() + 1;
        // A place of several lines is marked in its first.
        let width = source.text[start..end].lines().next().unwrap_or("").trim_end().chars().count().max(1);
        let has_text = !source.text.is_empty();
        // Of a long line what is around the place.
        let skipped = if column > WIDTH { column - WIDTH / 2 } else { 0 };
        let line: String = line.chars().skip(skipped).take(WIDTH).collect();
        let width = width.min(WIDTH);
        Fault {
            source: place.source,
            start: start as i64,
            file: source.name.clone(),
            at: has_text.then_some((number, column)),
            message: short(message.into()),
            help: None,
            // A file that is none of ours may hold what is not for a message.
            excerpt: (has_text && source.shown).then(|| (line, column - skipped, width)),
        }
    }

    pub(crate) fn help(mut self, help: Option<impl Into<String>>) -> Fault {
        self.help = help.map(Into::into);
        self
    }
}

/// A message that repeats what was written does not repeat all of it.
fn short(message: String) -> String {
    const LONGEST: usize = 500;
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message,
    }
}

/// The index itself, or the last one before it that does not split a character.
fn floor_boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            // A value of the command line has no lines.
            Some((line, column)) if !self.file.starts_with("--") => write!(f, "{}:{line}:{column}: ", self.file)?,
            _ => write!(f, "{}: ", self.file)?,
        }
        f.write_str(&self.message)?;
        if let (Some((text, column, width)), Some((line, _))) = (&self.excerpt, self.at) {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            // Tabs and other control characters would move the mark.
            let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            write!(f, "\n {margin} |\n {number} | {text}\n {margin} | ")?;
            write!(f, "{}{}", " ".repeat(column - 1), "^".repeat(*width))?;
            if let Some(help) = &self.help {
                write!(f, " {help}")?;
            }
        } else if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

//! One screen: what a report says first, at most [`LINES`] lines of any input.
//!
//! `header` says where and how long, `verdict` what was found, `strip` when, `actors` who, `checks` whether it can be
//! believed, and `next` where there is more. Each gives lines of its own, of at most so many; the verdict has the rest.
//! Everything is counted in characters, as a terminal of one character per cell shows them.

mod actors;
mod blocks;
mod checks;
mod header;
mod next;
mod strip;
mod time;
mod verdict;

pub(crate) use header::arm;
pub(crate) use strip::limit;
pub(crate) use time::counters_have_the_clock;

use crate::format::Style;
use crate::format::grid::{Tone, clean, wrap};
use crate::model::Report;
use mmtwin_analysis::Analysis;
use std::collections::BTreeMap;

/// Most lines of a screen.
pub const LINES: usize = 40;
/// Narrowest screen; what is narrower is written as if it had this width.
pub const NARROWEST: usize = 60;
/// Widest screen: longer lines are hard to read.
pub const WIDEST: usize = 100;

/// What an input says of itself beyond its statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Command that was recorded; empty: none, or not known.
    pub command: Vec<String>,
    /// Memory of the machine in KiB.
    pub memory: Option<u64>,
    /// Begin and end in nanoseconds of the trace clock, where the recorder wrote them down.
    pub start: Option<u64>,
    /// See `start`.
    pub end: Option<u64>,
    /// Memory limits of cgroups in bytes that are not among the counters.
    pub limits: BTreeMap<String, u64>,
    /// What part of the input was read, in a sentence; `None`: all of it.
    pub filter: Option<String>,
}

/// What a screen is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its statistics.
    pub analysis: &'a Analysis,
    /// Tables and findings of the same input.
    pub report: &'a Report,
    /// What else is known.
    pub about: &'a About,
    /// How the input was chosen, if nobody named it.
    pub chosen: Option<&'a str>,
    /// It can be read again: a run that left no recording cannot.
    pub kept: bool,
}

impl Subject<'_> {
    /// The name of the input in commands of a line of `width` characters: a word stands for one that would fill it.
    fn name(&self, width: usize) -> &str {
        match (self.is_short(width), self.kept) {
            (true, _) => &self.report.input.name,
            (false, true) => "REC",
            (false, false) => "SCENARIO",
        }
    }

    fn is_short(&self, width: usize) -> bool {
        self.report.input.name.chars().count() <= width / 2 - 2
    }

    /// A command of a finding with that name.
    fn command(&self, command: &str, width: usize) -> String {
        match self.is_short(width) {
            true => command.to_owned(),
            false => command.replace(self.report.input.name.as_str(), self.name(width)),
        }
    }
}

/// A line in one tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Line {
        Line { tone, text: text.into() }
    }
}

/// The screen, line by line, without line breaks.
pub fn lines(subject: &Subject<'_>, style: &Style) -> Vec<String> {
    let width = style.width.clamp(NARROWEST, WIDEST);
    let mut sections = [
        header::lines(subject, width),
        Vec::new(),
        strip::lines(subject, width),
        actors::lines(subject, width),
        [checks::lines(subject, width), next::lines(subject, width)].concat(),
    ];
    sections.iter_mut().for_each(|section| section.iter_mut().for_each(|line| line.text = clean(&line.text)));
    let blanks = sections.iter().filter(|section| !section.is_empty()).count();
    let used: usize = sections.iter().map(Vec::len).sum();
    sections[1] = verdict::lines(subject, width, LINES.saturating_sub(used + blanks));
    let mut all = Vec::new();
    for section in sections.iter().filter(|section| !section.is_empty()) {
        if !all.is_empty() {
            all.push(String::new());
        }
        all.extend(section.iter().map(|line| line.tone.paint(&line.text, style)));
    }
    all
}

/// What an input is, how long it is and how much of it was seen, in lines of any width.
pub(crate) fn heading(subject: &Subject<'_>) -> Vec<String> {
    header::lines(subject, usize::MAX).into_iter().map(|line| clean(&line.text)).collect()
}

/// Begin and end of what was recorded in nanoseconds of the trace clock; `None` if no time passed, or it is not known.
pub(crate) fn range(subject: &Subject<'_>) -> Option<(u64, u64)> {
    time::range(subject).map(|range| (range.start, range.end))
}

/// At most `most` lines of a text; what is cut ends in a mark.
pub(crate) fn at_most(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = wrap(text, width);
    lines.retain(|line| !line.is_empty());
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = last.chars().take(width - 2).chain(" …".chars()).collect();
        }
    }
    lines
}

/// A text in one line: parts joined by commas, without those at the end that do not fit.
fn parts_that_fit(parts: &[String], width: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let more = if text.is_empty() { part.clone() } else { format!("{text}, {part}") };
        if more.chars().count() > width && !text.is_empty() {
            break;
        }
        text = more;
    }
    cut(&text, width)
}

/// A text of at most `width` characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests;

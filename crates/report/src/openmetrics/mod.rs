//! Counters as OpenMetrics text, version 1.0, as Prometheus reads it.
//!
//! [`Exposition`] takes rows of counters and writes them family by family, which the format demands. `names` has what a
//! counter is called; `docs/reference/formats.md` describes it for users. The number of series is bounded, and how many
//! were omitted is a series of its own.

pub mod alerts;
pub mod dashboard;
mod names;

pub use names::{Named, Unit, named};

use mmtwin_event::CounterRow;
use std::collections::BTreeMap;
use std::io;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counters that are to be written.
#[derive(Clone, Debug)]
pub struct Exposition {
    families: BTreeMap<String, Family>,
    /// Labels of `mmtwin_recording_info`.
    about: Vec<(&'static str, String)>,
    /// Name, help and value of gauges that are no counters of the kernel.
    own: Vec<(&'static str, &'static str, u64)>,
    most: usize,
    series: usize,
    omitted: u64,
}

#[derive(Clone, Debug)]
struct Family {
    counter: bool,
    unit: Unit,
    /// Source and the kernel's name of one of its counters.
    help: String,
    /// By their labels as they are written.
    series: BTreeMap<String, Series>,
}

/// A counter: the kernel's name and the values, with milliseconds since 1970 where they are known.
#[derive(Clone, Debug)]
struct Series {
    name: String,
    points: Vec<(Option<u64>, u64)>,
}

impl Exposition {
    /// Nothing yet. At most `most` series are taken.
    pub fn new(most: usize) -> Exposition {
        let (families, about, own) = Default::default();
        Exposition { families, about, own, most, series: 0, omitted: 0 }
    }

    /// Says where the counters are from: labels of `mmtwin_recording_info`.
    pub fn about(&mut self, labels: Vec<(&'static str, String)>) {
        self.about = labels;
    }

    /// Adds a gauge that is no counter of the kernel. Its name begins with `mmtwin_`, and is none of a counter.
    pub fn own(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.own.push((name, help, value));
    }

    /// Takes the counters of a row that have a value. With a time, in milliseconds since 1970, they are added to those
    /// taken before; without one they take their place.
    pub fn add(&mut self, row: &CounterRow<'_>, at: Option<u64>) {
        for (name, value) in row.names.iter().zip(row.values) {
            if let Some(value) = value {
                self.point(row.source, row.key, name, *value, at);
            }
        }
    }

    /// How many series there are.
    pub fn series(&self) -> usize {
        self.series
    }

    /// How many series were refused: they were too many, or two counters had one name.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    fn point(&mut self, source: &str, key: &str, name: &str, value: u64, at: Option<u64>) {
        let Named { family, counter, unit, labels } = named(source, key, name);
        let labels = text_of(&labels);
        let known = self.families.get_mut(&family);
        if let Some(series) = known.and_then(|family| family.series.get_mut(&labels)) {
            match (series.name == name, at) {
                // Two names of the kernel that differ in characters which Prometheus does not have.
                (false, _) => self.omitted += 1,
                (true, None) => series.points = vec![(None, value)],
                (true, at) if series.points.last().is_none_or(|(last, _)| *last < at) => {
                    series.points.push((at, value))
                }
                // Samples of the same millisecond.
                (true, _) => {}
            }
            return;
        }
        let help = || format!("{name} of {source}, as the kernel counts it.");
        let new = || Family { counter, unit, help: help(), series: BTreeMap::new() };
        if self.series == self.most {
            self.omitted += 1;
            return;
        }
        let family = self.families.entry(family).or_insert_with(new);
        if family.counter != counter || family.unit != unit {
            self.omitted += 1;
            return;
        }
        family.series.insert(labels, Series { name: name.into(), points: vec![(at, value)] });
        self.series += 1;
    }

    /// Writes the text.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let points = self.families.values().flat_map(|family| family.series.values()).flat_map(|series| &series.points);
        // Who imports a text with times wants one of every value.
        let last = stamp(points.filter_map(|(at, _)| *at).max());
        if !self.about.is_empty() {
            writeln!(out, "# TYPE mmtwin_recording info\n# HELP mmtwin_recording Where the counters are from.")?;
            writeln!(out, "mmtwin_recording_info{} 1{last}", text_of(&self.about))?;
        }
        let series = ("mmtwin_series", "Series of counters in this text.", self.series as u64);
        let omitted = ("mmtwin_series_omitted", "Series that were omitted because there are too many.", self.omitted);
        for (name, help, value) in self.own.iter().copied().chain([series, omitted]) {
            writeln!(out, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {value}{last}")?;
        }
        for (name, family) in &self.families {
            writeln!(out, "# TYPE {name} {}", if family.counter { "counter" } else { "gauge" })?;
            if !family.unit.word().is_empty() {
                writeln!(out, "# UNIT {name} {}", family.unit.word())?;
            }
            writeln!(out, "# HELP {name} {}", escaped(&family.help))?;
            let total = if family.counter { "_total" } else { "" };
            for (labels, series) in &family.series {
                for (at, value) in &series.points {
                    writeln!(out, "{name}{total}{labels} {}{}", family.unit.text(*value), stamp(*at))?;
                }
            }
        }
        writeln!(out, "# EOF")
    }
}

/// Milliseconds since 1970 as they stand behind a value; nothing, if there is no time.
fn stamp(at: Option<u64>) -> String {
    at.map_or_else(String::new, |ms| format!(" {}.{:03}", ms / 1000, ms % 1000))
}

/// Labels in braces; nothing, if there are none.
fn text_of(labels: &[(&'static str, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let each: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", each.join(","))
}

/// A text with the characters escaped that end a label or a line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;

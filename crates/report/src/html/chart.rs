//! Charts over time: lines that share time axes.

use super::number::{Number, seconds};
use mmtwin_analysis::series::{Bins, Group};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the values of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "%")]
    Percent,
    #[serde(rename = "B")]
    Bytes,
    #[serde(rename = "B/s")]
    BytesPerSecond,
    #[serde(rename = "/s")]
    PerSecond,
    #[serde(rename = "tasks")]
    Tasks,
}

/// A chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chart {
    /// Stable name; the same of the same chart of another run.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) unit: Unit,
    /// Where the values are from.
    pub(super) note: String,
    pub(super) lines: Vec<Line>,
}

/// A line of a chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    /// Number of its time axis.
    pub(super) x: usize,
    /// A value for each time of the axis.
    pub(super) y: Vec<Number>,
    /// It is a limit, not a measurement.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) limit: bool,
}

impl Line {
    /// The time of its largest value, and that.
    pub(super) fn peak<'a>(&self, axes: &'a [Vec<f64>]) -> Option<(&'a f64, f64)> {
        let times = axes.get(self.x)?;
        let known = times.iter().zip(&self.y).filter_map(|(at, value)| Some((at, value.0?)));
        known.reduce(|most, next| if next.1 > most.1 { next } else { most })
    }

    fn is_known(&self) -> bool {
        self.y.iter().any(|value| value.0.is_some())
    }

    fn is_zero(&self) -> bool {
        self.y.iter().all(|value| value.0.is_none_or(|value| value == 0.0))
    }
}

/// Charts in the making.
#[derive(Debug, Default)]
pub(super) struct Charts {
    /// Begin of the recording in nanoseconds of the trace clock.
    start: u64,
    /// Seconds since the begin.
    pub(super) axes: Vec<Vec<f64>>,
    by_name: BTreeMap<String, usize>,
    pub(super) charts: Vec<Chart>,
    /// Titles of charts whose values were not recorded, and of those that were zero all the time.
    pub(super) missing: Vec<String>,
    pub(super) zero: Vec<String>,
}

/// A counter of a chart: its name among the samples, its name for people, and by what it is multiplied.
pub(super) type Counter<'a> = (&'a str, &'a str, f64);

impl Charts {
    pub(super) fn new(start: u64) -> Charts {
        Charts { start, ..Charts::default() }
    }

    /// The number of a time axis; `times` are nanoseconds of the trace clock.
    fn axis(&mut self, name: String, times: impl FnOnce() -> Vec<u64>) -> usize {
        if let Some(known) = self.by_name.get(&name) {
            return *known;
        }
        let start = self.start;
        self.axes.push(times().into_iter().map(|at| seconds(at.saturating_sub(start))).collect());
        self.by_name.insert(name, self.axes.len() - 1);
        self.axes.len() - 1
    }

    /// Lines of counters of one source and key; what was not recorded has none.
    pub(super) fn counters(&mut self, source: &str, key: &str, group: &Group, counters: &[Counter<'_>]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (name, label, factor) in counters {
            let Some(points) = group.points(name) else { continue };
            let x = self.axis(format!("{source}\n{key}"), || group.times());
            let y = points.into_iter().map(|value| Number(value.map(|value| value * factor))).collect();
            lines.push(Line { name: (*label).to_owned(), x, y, limit: false });
        }
        lines.retain(Line::is_known);
        lines
    }

    /// Lines of sums of events, per second and multiplied by a factor; of `rows` those that are not zero, or the first.
    pub(super) fn sums(&mut self, name: &str, bins: &Bins, rows: &[(usize, String)], factor: f64) -> Vec<Line> {
        let half = bins.width() / 2;
        let x = self.axis(name.to_owned(), || bins.iter().map(|(at, _)| at.saturating_add(half)).collect());
        let per_second = factor * 1e9 / bins.width() as f64;
        let line = |(row, label): &(usize, String)| {
            let value = |bin: &[u64]| bin.get(*row).copied().unwrap_or(0) as f64 * per_second;
            let y = bins.iter().map(|(_, bin)| Number(Some(value(bin)))).collect();
            Line { name: label.clone(), x, y, limit: false }
        };
        let mut lines: Vec<Line> = rows.iter().map(line).collect();
        if lines.iter().any(|line| !line.is_zero()) {
            lines.retain(|line| !line.is_zero());
        }
        lines
    }

    /// A line at one height.
    pub(super) fn constant(like: &Line, name: &str, height: f64) -> Line {
        Line { name: name.to_owned(), x: like.x, y: vec![Number(Some(height)); like.y.len()], limit: true }
    }

    /// Adds a chart, if anything was recorded and it was not zero all the time.
    pub(super) fn push(&mut self, id: impl Into<String>, title: &str, unit: Unit, note: &str, lines: Vec<Line>) {
        if !lines.iter().any(Line::is_known) {
            self.missing.push(title.to_owned());
        } else if lines.iter().all(|line| line.limit || line.is_zero()) {
            self.zero.push(title.to_owned());
        } else {
            let (id, title, note) = (id.into(), title.to_owned(), note.to_owned());
            self.charts.push(Chart { id, title, unit, note, lines });
        }
    }
}

//! What a page shows of one run.

use super::chart::{Chart, Charts};
use super::events::{self, Events};
use super::flame::{self, Flame};
use super::marks::{self, Mark};
use super::number::seconds;
use super::{Run, charts};
use crate::screen;
use mmtwin_analysis::explain::waiting::Cause;
use mmtwin_analysis::series::{Bins, Series, latency_of_row};
use serde::Serialize;
use std::collections::BTreeMap;

/// Columns of heat maps.
const HEAT: usize = 128;

/// One run.
#[derive(Debug, Serialize)]
pub(super) struct RunData {
    name: String,
    /// What it is, for people.
    heading: Vec<String>,
    /// Seconds; `null`: not known, and then there are no charts.
    length: Option<f64>,
    /// Begin in seconds of the trace clock, for commands that take such times.
    start: Option<f64>,
    axes: Vec<Vec<f64>>,
    charts: Vec<Chart>,
    /// What was not recorded, and what did not happen.
    missing: Vec<String>,
    zero: Vec<String>,
    marks: Vec<Mark>,
    latency: Option<Heat>,
    waits: Waits,
    events: Events,
    flame: Option<Flame>,
}

/// Counts by time and length.
#[derive(Debug, Serialize)]
struct Heat {
    /// Seconds of the first column, and of the width of each.
    start: f64,
    width: f64,
    columns: usize,
    /// Least length of each row in seconds, from the row `first`.
    rows: Vec<f64>,
    /// Column, row, count.
    cells: Vec<(usize, usize, u64)>,
}

/// The longest waits of every part of the time.
#[derive(Debug, Serialize)]
struct Waits {
    /// All waits, also those that are not listed.
    count: u64,
    tasks: Vec<String>,
    causes: Vec<&'static str>,
    /// Begin and length in seconds, task, cause, order, pages scanned and freed.
    rows: Vec<WaitRow>,
}

type WaitRow = (f64, f64, usize, usize, Option<i32>, u64, u64);

/// Data of a run, of which no line has more than `most` blocks.
pub(super) fn data(run: &mut Run<'_>, most: usize) -> RunData {
    let range = screen::range(&run.subject);
    if let Some((start, end)) = range {
        run.series.cover(start, end);
    }
    run.series.thin(most);
    let (start, series) = (range.map_or(0, |(start, _)| start), &run.series);
    let made = match range {
        Some(_) => charts::all(&run.subject, series, start),
        None => Charts::new(0),
    };
    RunData {
        name: run.name.to_owned(),
        heading: screen::heading(&run.subject),
        length: range.map(|(start, end)| seconds(end - start)),
        start: range.map(|(start, _)| start as f64 / 1e9),
        marks: marks::all(&run.subject, &made, series, start),
        latency: range.and_then(|_| heat(&series.latency, start)),
        waits: waits(series, start),
        events: events::of(run.subject.analysis, series, start),
        flame: flame::of(run.subject.analysis),
        axes: made.axes,
        charts: made.charts,
        missing: made.missing,
        zero: made.zero,
    }
}

fn heat(bins: &Bins, start: u64) -> Option<Heat> {
    let mut bins = bins.clone();
    bins.thin(HEAT);
    let least = bins.iter().filter_map(|(_, bin)| bin.iter().position(|count| *count > 0)).min()?;
    let (first, _) = bins.iter().next()?;
    let mut cells = Vec::new();
    for (column, (_, bin)) in bins.iter().enumerate() {
        let counts = bin.iter().enumerate().filter(|(_, count)| **count > 0);
        cells.extend(counts.map(|(row, count)| (column, row - least, *count)));
    }
    // The first column may begin before the recording.
    let begin = (i128::from(first) - i128::from(start)) as f64 / 1e9;
    Some(Heat {
        start: begin,
        width: bins.width() as f64 / 1e9,
        columns: bins.iter().count(),
        rows: (least..bins.rows()).map(|row| latency_of_row(row) / 1e9).collect(),
        cells,
    })
}

fn waits(series: &Series, start: u64) -> Waits {
    let (mut tasks, mut by_name) = (Vec::new(), BTreeMap::new());
    let mut rows = Vec::new();
    for wait in series.waits.kept() {
        let task = *by_name.entry(wait.who.as_str()).or_insert_with(|| {
            tasks.push(wait.who.clone());
            tasks.len() - 1
        });
        let cause = Cause::ALL.iter().position(|cause| *cause == wait.cause).unwrap_or(0);
        let from = seconds(wait.from.saturating_sub(start));
        rows.push((from, wait.length() as f64 / 1e9, task, cause, wait.order, wait.scanned, wait.freed));
    }
    Waits { count: series.waits.count, tasks, causes: Cause::ALL.map(Cause::short).to_vec(), rows }
}

//! `invariants`: sums over events and counters that are equal in a complete recording.
//!
//! `analysis` documents what they are and why they hold. A row is the difference, so that a gate can require 0:
//! `--fail-on 'invariants.violated > 0'`.

use super::{metrics, row};
use crate::model::Better::{Lower, Neutral};
use crate::model::{Cell, CrossCheck, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::invariants::{self, Unknown};

fn cell(value: Result<i128, Unknown>) -> Cell {
    match value {
        Ok(value) => Cell::Int(value),
        Err(Unknown::NotRecorded) => Cell::Na(Na::NotRecorded),
        Err(Unknown::NotInKernel) => Cell::Na(Na::NotInKernel),
        Err(Unknown::Lost) => Cell::Na(Na::Lost),
    }
}

/// Both sides of those whose counters are known.
pub fn lines(analysis: &Analysis) -> Vec<CrossCheck> {
    let known = invariants::all(analysis).into_iter().filter(|line| line.counters.is_ok());
    let line = |line: invariants::Invariant| CrossCheck {
        key: line.key.into(),
        label: line.label.into(),
        events: cell(line.events),
        counters: cell(line.counters),
    };
    known.map(line).collect()
}

/// The differences, and how many are none.
pub fn table(analysis: &Analysis) -> Table {
    let all = invariants::all(analysis);
    let differences: Vec<i128> = all.iter().filter_map(|line| line.difference().ok()).collect();
    let violated = differences.iter().filter(|difference| **difference != 0).count() as i128;
    let judged = invariants::is_complete(analysis) && !differences.is_empty();
    let violated = if judged { Cell::Int(violated) } else { Cell::Na(Na::NotRecorded) };
    let mut rows = vec![row("violated", "Invariants violated", "", Lower, None, violated)];
    let line =
        |line: &invariants::Invariant| row(line.key, line.label, line.unit, Neutral, None, cell(line.difference()));
    rows.extend(all.iter().map(line));
    let note = "Events minus counters between the first and the last sample; 0 in a complete recording.";
    metrics("invariants", "Event/counter invariants", note, rows)
}

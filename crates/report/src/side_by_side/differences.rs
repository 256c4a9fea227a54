//! The quantities that differ, as data: for a page, which has room for all of them.

use super::change::{State, change, figure, interval, is_sure, state};
use super::{choose, header};
use crate::compare::{Comparison, Row};
use serde::Serialize;

/// What differs between columns.
#[derive(Debug, Serialize)]
pub(crate) struct Differences {
    /// What the number of runs allows to say.
    claim: Option<String>,
    /// Worse first, then better, then those of which neither direction is good; of each the significant ones first.
    rows: Vec<Difference>,
    /// Quantities that are equal in all columns, or are not known in one.
    equal: usize,
    unknown: usize,
}

/// A quantity.
#[derive(Debug, Serialize)]
struct Difference {
    label: String,
    /// Of each column, for sorting; `null` if it is not known.
    values: Vec<Option<f64>>,
    /// The same with three digits and a unit.
    figures: Vec<String>,
    /// Of each column behind the first.
    changes: Vec<Change>,
}

/// A column against the first.
#[derive(Debug, Serialize)]
struct Change {
    state: &'static str,
    significant: bool,
    /// `+12.0 %`, and the interval of it where there are several runs of each.
    change: String,
    interval: String,
}

/// What differs; `None`: there is but one column.
pub(crate) fn differences(comparison: &Comparison) -> Option<Differences> {
    if comparison.columns.len() < 2 {
        return None;
    }
    let rows = choose::rows(comparison);
    // Of several columns the first in this order speaks.
    let of_row = |row: &Row| row.values.iter().skip(1).map(|value| state(row, value)).min().unwrap_or(State::Unknown);
    let mut differ: Vec<(State, bool, &Row)> = Vec::new();
    for row in &rows {
        let sure = row.values.iter().skip(1).any(is_sure);
        differ.push((of_row(row), !sure, row));
    }
    let count = |wanted: State| differ.iter().filter(|(state, ..)| *state == wanted).count();
    let (equal, unknown) = (count(State::Equal), count(State::Unknown));
    differ.retain(|(state, ..)| *state < State::Equal);
    differ.sort_by_key(|(state, unsure, _)| (*state, *unsure));
    let rows = differ.into_iter().map(|(_, _, row)| difference(row)).collect();
    Some(Differences { claim: header::claim(comparison), rows, equal, unknown })
}

fn difference(row: &Row) -> Difference {
    let known = |number: Option<f64>| number.filter(|number| number.is_finite());
    let values: Vec<_> = row.values.iter().map(|value| known(value.cell.number())).collect();
    let words = |value: &Option<f64>| value.map_or("n/a".into(), |value| figure(value, &row.unit));
    let figures = values.iter().map(words).collect();
    let changes = row.values.iter().skip(1).map(|value| Change {
        state: match state(row, value) {
            State::Worse => "worse",
            State::Better => "better",
            State::Other => "changed",
            State::Equal => "equal",
            State::Unknown => "unknown",
        },
        significant: is_sure(value),
        change: change(row, value),
        interval: interval(row, value),
    });
    Difference { label: choose::label(row), values, figures, changes: changes.collect() }
}

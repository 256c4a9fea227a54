//! A sweep: many runs of one scenario with other values of some keys.
//!
//! [`model`] has the runs, `choose` says which quantities are shown, [`lines`] prints one table with a row for each case,
//! [`curve`] draws a quantity over a key, and [`check_curve`] refuses its name before the runs; [`page`] is both as
//! HTML. Medians, intervals and tests are those of [`compare`](crate::compare); the first
//! case of which a run reached its end is the baseline, and one table is one family of tests.

mod check;
mod choose;
mod curve;
mod lines;
mod model;
mod page;
mod plot;
mod svg;

pub use check::check_curve;
pub use curve::{CurveError, curve};
pub use lines::lines;
pub use model::{Case, Number, Quantity, Row, Status, Sweep, short_keys};
pub use page::page;

use crate::compare::{Comparison, compare};
use crate::model::Report;

/// The cases side by side, the first that has a whole run as the baseline; of each run the tables whose names `wanted` accepts.
pub fn comparison(sweep: &Sweep, wanted: impl Fn(&str) -> bool) -> Comparison {
    let names = short_keys(&sweep.keys);
    let column = |case: &Case<'_>| {
        let runs: Vec<Report> = case.rows.iter().map(|row| sweep.report(row, &wanted)).collect();
        (case.label(&names), runs)
    };
    let mut comparison = compare(sweep.compared().iter().map(column).collect());
    (comparison.findings, comparison.cross_check) = (None, None);
    comparison
}

#[cfg(test)]
mod tests;

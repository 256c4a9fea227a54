//! Which quantities of a sweep are shown: the main figures of the workload, then what changed.

use crate::compare::{Comparison, JoinedBody, Row};
use crate::model::Better;
use crate::quantities::OVERVIEW;
use crate::side_by_side::change::{State, is_sure, state};
use crate::side_by_side::choose::{self, CGROUP, WORKLOAD, tells_of_work};

/// Whether a table has any of them.
pub(super) fn is_needed(table: &str) -> bool {
    [WORKLOAD, OVERVIEW, CGROUP].contains(&table)
}

/// Quantities in the order in which they are shown.
pub(super) struct Chosen<'a> {
    /// Figures of the workload by which cases are judged; the first decides which is the best.
    pub main: Vec<&'a Row>,
    /// What differs from the first case in some other, surest first.
    pub changed: Vec<&'a Row>,
}

pub(super) fn choose(comparison: &Comparison) -> Chosen<'_> {
    let main = main(comparison);
    let (mut work, mut others) = (Vec::new(), Vec::new());
    let of_workload = rows(comparison, WORKLOAD);
    for row in choose::rows(comparison).into_iter().filter(|row| changes(row)) {
        if main.iter().any(|other| std::ptr::eq(*other, row)) {
            continue;
        }
        let is_work = of_workload.iter().any(|other| std::ptr::eq(other, row));
        if is_work { work.push(row) } else { others.push(row) }
    }
    // The system says why the workload's figures are what they are; more of the workload's own say the same again.
    let mut changed: Vec<&Row> = others.into_iter().chain(work).collect();
    changed.sort_by_key(|row| !row.values.iter().any(is_sure));
    Chosen { main, changed }
}

fn rows<'a>(comparison: &'a Comparison, name: &str) -> &'a [Row] {
    match comparison.tables.iter().find(|table| table.name == name).map(|table| &table.body) {
        Some(JoinedBody::Metric(rows)) => rows,
        _ => &[],
    }
}

/// Rates of the workload of which more is better, without those of filling memory first; else other figures of it; else
/// the elapsed time.
fn main(comparison: &Comparison) -> Vec<&Row> {
    let work: Vec<&Row> =
        rows(comparison, WORKLOAD).iter().filter(|row| !row.label.contains("/populate") && is_known(row)).collect();
    let of = |wanted: &dyn Fn(&Row) -> bool| work.iter().copied().filter(|row| wanted(row)).collect::<Vec<&Row>>();
    let rates = of(&|row| row.better == Better::Higher && row.unit == "/s");
    if !rates.is_empty() {
        return rates;
    }
    let figures = of(&tells_of_work);
    if !figures.is_empty() {
        return figures;
    }
    rows(comparison, OVERVIEW).iter().filter(|row| row.key == "elapsed" && is_known(row)).collect()
}

fn is_known(row: &Row) -> bool {
    row.values.iter().any(|value| value.cell.number().is_some())
}

/// Whether some case differs from the first.
fn changes(row: &Row) -> bool {
    row.values.iter().skip(1).any(|value| !matches!(state(row, value), State::Equal | State::Unknown))
}

/// The case with the best value of a row; of equal ones the first. `None` if no direction is good.
pub(super) fn best(row: &Row, is_candidate: impl Fn(usize) -> bool) -> Option<usize> {
    let values = row.values.iter().enumerate().filter(|(case, _)| is_candidate(*case));
    let mut known = values.filter_map(|(case, value)| Some((case, value.cell.number()?)));
    let first = known.next()?;
    let better = |best: f64, other: f64| match row.better {
        Better::Higher => other > best,
        Better::Lower => other < best,
        Better::Neutral => false,
    };
    let found = known.fold(first, |best, other| if better(best.1, other.1) { other } else { best });
    (row.better != Better::Neutral).then_some(found.0)
}

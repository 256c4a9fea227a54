//! Which quantities a screen shows, in the order in which a person would look: what the workload achieved, the overview,
//! then for how long cgroups waited and how often they were at their limits.

use crate::compare::{Comparison, JoinedBody, Row};
use crate::model::Better;
use crate::quantities::OVERVIEW;
use mmtwin_event::words::glob;

pub(crate) const WORKLOAD: &str = "workload";
pub(crate) const CGROUP: &str = "cgroup";

/// Of the counters of a cgroup these.
const OF_CGROUPS: &[&str] = &[
    "*.memory.pressure.some",
    "*.memory.pressure.full",
    "*.io.pressure.some",
    "*.memory.events.oom_kill",
    "*.memory.oom_control.oom_kill",
    "*.memory.current",
    "*.memory.usage_in_bytes",
    "*.memory.stat.workingset_refault_file",
    "*.memory.stat.workingset_refault_anon",
];

/// The rows, of the tables that there are.
pub(crate) fn rows(comparison: &Comparison) -> Vec<&Row> {
    let of = |name: &str| {
        let table = comparison.tables.iter().find(|table| table.name == name);
        match table.map(|table| &table.body) {
            Some(JoinedBody::Metric(rows)) => rows.as_slice(),
            _ => &[],
        }
    };
    let mut work: Vec<&Row> = of(WORKLOAD).iter().filter(|row| tells_of_work(row)).collect();
    // What fills memory first says least.
    work.sort_by_key(|row| row.label.contains("/populate:"));
    let cgroups = of(CGROUP).iter().filter(|row| OF_CGROUPS.iter().any(|pattern| glob(pattern, &row.key)));
    work.into_iter().chain(of(OVERVIEW)).chain(cgroups).collect()
}

/// Rates and times; how much was done in all follows from a rate, and phases last as long as the scenario says.
pub(crate) fn tells_of_work(row: &Row) -> bool {
    row.better != Better::Neutral && (!row.unit.is_empty() || row.key.ends_with("_failures"))
}

/// A label that says the same with fewer words.
pub(crate) fn label(row: &Row) -> String {
    let label = row.label.replace(" per second", "/s");
    label.replace(": CPU time per access", ": CPU time/access").replace(": time per operation", ": time/operation")
}

//! Whether a curve can be drawn at all, before the first run: what the scenario's runs will measure is not known yet, but
//! keys and the names of tables are.

use super::CurveError;
use super::curve::unknown;
use super::model::short_keys;
use crate::model::{Body, Report, Table};
use crate::quantities::{self, OVERVIEW, key};
use crate::tables::{reclaim_tables, subject_tables};
use mmtwin_analysis::Analysis;

/// Tables that a report on nothing does not have: those of a run's workload.
const OF_RUNS: [&str; 2] = ["workload", "placement"];
/// How the names of histograms of latency begin, of which there are as many as were recorded.
const HISTOGRAMS: &str = "latency";

/// Refuses the name of a curve that is neither a key of the sweep nor `TABLE.KEY` of a table that there is. Of the tables
/// only the overview has the same keys in each report; whether another has a key is known after the runs. `differ`: the
/// sweep has a key with several values.
///
/// # Errors
/// [`CurveError::Unknown`] and [`CurveError::NoKey`].
pub fn check_curve(keys: &[String], differ: bool, name: &str) -> Result<(), CurveError> {
    if keys.iter().chain(&short_keys(keys)).any(|key| key == name) {
        return Ok(());
    }
    let tables = tables();
    let is_table = |table: &str| {
        OF_RUNS.contains(&table) || table.starts_with(HISTOGRAMS) || tables.iter().any(|known| known.name == table)
    };
    let overview: Vec<String> = tables.iter().filter(|table| table.name == OVERVIEW).flat_map(rows).collect();
    let known = match name.split_once('.') {
        Some((OVERVIEW, _)) => overview.iter().any(|key| key == name),
        Some((table, _)) => is_table(table),
        None => false,
    };
    match known {
        false => Err(unknown(name, keys, overview.iter().map(String::as_str))),
        true if !differ => Err(CurveError::NoKey(name.into())),
        true => Ok(()),
    }
}

/// The tables of quantities of a report on nothing.
fn tables() -> Vec<Table> {
    let nothing = Analysis::default();
    let mut report = Report::default();
    report.tables.extend(reclaim_tables(&nothing));
    report.tables.extend(subject_tables(&nothing));
    report.tables.extend(quantities::of_nodes_and_zones(&nothing));
    quantities::of(&nothing, report).tables
}

/// Keys of the rows of a table.
fn rows(table: &Table) -> Vec<String> {
    let Body::Metric(rows) = &table.body else { return Vec::new() };
    rows.iter().map(|row| key(&table.name, &row.key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_key_or_a_quantity() {
        let keys = ["cgroup./box.memory.max".to_string()];
        let said = |name: &str| check_curve(&keys, true, name).err().map(|error| error.to_string());
        for name in ["memory.max", "cgroup./box.memory.max", "overview.elapsed", "workload.x", "vmstat.pgfault"] {
            assert_eq!(said(name), None, "{name}");
        }
        for name in ["memory.maxx", "elapsed", "none.x", ""] {
            assert!(
                said(name).is_some_and(|error| error.contains("keys of this sweep: cgroup./box.memory.max")),
                "{name}"
            );
        }
        let error = said("overview.elapse").unwrap_or_default();
        assert!(error.contains("did you mean 'overview.elapsed'?"), "{error}");
        assert_eq!(check_curve(&keys, false, "overview.elapsed"), Err(CurveError::NoKey("overview.elapsed".into())));
    }
}

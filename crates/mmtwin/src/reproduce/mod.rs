//! Published tables beside the twin's.
//!
//! A study is a directory of `scenarios/published`: a scenario and the published figures, each row with the overrides
//! that it was measured with. Every row is run; none is looked up. A row is fitted if the file of its machine names a
//! figure that was fixed on it.

mod numa_counters;
mod tables;
mod vmalloc_purge;

use crate::Failure;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::machine::Provenance;
use mmtwin_scenario::published::{Histogram, Published, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A published study.
pub struct Study {
    /// Name of its directory.
    pub name: &'static str,
    scenario: &'static str,
    published: &'static str,
    /// Runs one row; with the published histogram of the row, if it has one.
    run: fn(&Scenario, Option<&Histogram>) -> Result<Found, String>,
}

/// All studies.
pub const ALL: [Study; 2] = [
    Study {
        name: "numa-counters",
        scenario: include_str!("../../../../scenarios/published/numa-counters/scenario.toml"),
        published: include_str!("../../../../scenarios/published/numa-counters/published.toml"),
        run: numa_counters::run,
    },
    Study {
        name: "vmalloc-purge",
        scenario: include_str!("../../../../scenarios/published/vmalloc-purge/scenario.toml"),
        published: include_str!("../../../../scenarios/published/vmalloc-purge/published.toml"),
        run: vmalloc_purge::run,
    },
];

/// What the twin found for a row.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Values by the keys of the published metrics.
    pub values: BTreeMap<&'static str, f64>,
    /// Latencies of one run, where calls are timed.
    pub latencies: Latencies,
    /// More about the run.
    pub more: Vec<More>,
    /// What must be said of it.
    pub remark: Option<String>,
}

/// Latencies of calls in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// (least, greatest, count), by powers of two.
    pub slots: Vec<(u64, u64, u64)>,
    /// Their mean.
    pub mean: f64,
    /// Their sum.
    pub total: u64,
}

/// A quantity beside the metrics.
#[derive(Clone, Debug)]
pub struct More {
    /// Key, and key of the published list of the row.
    pub key: &'static str,
    /// For people.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// One value, or the least and the greatest of many.
    pub values: Vec<f64>,
}

/// A row with what the twin found.
pub struct Reproduced {
    /// The published row.
    pub row: Row,
    /// The twin's.
    pub found: Found,
    /// A figure of its machine was fixed on it.
    pub fitted: bool,
}

/// A study with what the twin found.
pub struct Reproduction {
    /// Its name.
    pub name: &'static str,
    /// What was published.
    pub published: Published,
    /// All rows, in the published order.
    pub rows: Vec<Reproduced>,
    /// Figures of machine files that were fixed on its rows, as `MACHINE KEY`.
    pub parameters: BTreeSet<String>,
}

/// Runs all rows of a study.
pub fn reproduce(study: &Study) -> Result<Reproduction, Failure> {
    reproduce_with(study, &[])
}

/// The same with further overrides for every row, as `--set` takes them.
pub fn reproduce_with(study: &Study, sets: &[String]) -> Result<Reproduction, Failure> {
    let failed = |message: String| Failure::Error(format!("{}: {message}", study.name));
    let published = Published::parse(study.name, study.published).map_err(|faults| failed(faults.to_string()))?;
    let (mut rows, mut parameters) = (Vec::new(), BTreeSet::new());
    for row in &published.rows {
        let overrides = [&row.set[..], sets].concat();
        let scenario = mmtwin_scenario::parse(study.name, study.scenario, Path::new(""), &overrides)
            .map_err(|faults| failed(faults.to_string()))?;
        let id = format!("{}:{}", study.name, row.key);
        let fixed = scenario.machine.figures.iter().filter(|f| f.provenance == Provenance::Fitted);
        let fixed: Vec<_> = fixed.filter(|figure| figure.fits.contains(&id)).collect();
        for key in fixed.iter().flat_map(|figure| &figure.of) {
            parameters.insert(format!("{} {key}", scenario.machine.name));
        }
        let histogram = published.histograms.iter().find(|histogram| histogram.row == row.key);
        let found = (study.run)(&scenario, histogram).map_err(|message| failed(format!("{}: {message}", row.key)))?;
        rows.push(Reproduced { row: row.clone(), found, fitted: !fixed.is_empty() });
    }
    let fitted = rows.iter().filter(|row| row.fitted).count();
    if fitted > parameters.len() {
        let all = parameters.into_iter().collect::<Vec<_>>().join(", ");
        return Err(failed(format!("{fitted} rows are fitted, but the machine files name fewer parameters: {all}")));
    }
    Ok(Reproduction { name: study.name, published, rows, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bars: five rows fitted at most, the others within 3 %, out of a run that is shorter than the published one.
    #[test]
    fn the_threshold_table_comes_out_of_the_mechanism() {
        let loops = ["process.page_bench03.phase.bench.action.#0.count=20000".to_string()];
        let reproduction = reproduce_with(&ALL[0], &loops).unwrap_or_else(|e| panic!("{e}"));
        let published: Vec<_> = reproduction.rows.iter().filter(|row| !row.row.key.starts_with("follow-up")).collect();
        assert_eq!(published.len(), 10);
        assert!(published.iter().filter(|row| row.fitted).count() <= 5);
        for row in published {
            let (ours, theirs) = (row.found.values["cycles"], row.row.values["cycles"]);
            assert!((ours / theirs - 1.0).abs() < 0.03, "{}: {ours} cycles, published {theirs}", row.row.label);
        }
        let names: Vec<_> = reproduction.tables().into_iter().map(|table| table.name).collect();
        let expected = ["numa-counters-cycles", "numa-counters-throughput", "numa-counters-not-identifiable"];
        assert_eq!(names, expected);
    }
}

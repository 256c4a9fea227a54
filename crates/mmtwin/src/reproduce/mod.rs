//! Published tables beside the twin's.
//!
//! A study is a directory of `scenarios/published`: a scenario and the published figures, each row with the overrides
//! that it was measured with. Every row is run; none is looked up. A row is fitted if the file of its machine names a
//! figure that was fixed on it.

mod numa_counters;
mod vmalloc_purge;

use crate::Failure;
use mmtwin_report::model::{Body, Cell, Column, Na, Table};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::machine::Provenance;
use mmtwin_scenario::published::{Published, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A published study.
pub struct Study {
    /// Name of its directory.
    pub name: &'static str,
    scenario: &'static str,
    published: &'static str,
    /// Runs one row.
    run: fn(&Scenario) -> Result<Found, String>,
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
    /// (least, greatest, count) of the latencies in microseconds, where the row has a histogram.
    pub slots: Vec<(u64, u64, u64)>,
    /// More about the run.
    pub more: Vec<More>,
    /// What must be said of it.
    pub remark: Option<String>,
}

/// A quantity beside the metrics.
#[derive(Clone, Debug)]
pub struct More {
    /// Key in the published lists.
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
        let found = (study.run)(&scenario).map_err(|message| failed(format!("{}: {message}", row.key)))?;
        rows.push(Reproduced { row: row.clone(), found, fitted: !fixed.is_empty() });
    }
    let fitted = rows.iter().filter(|row| row.fitted).count();
    if fitted > parameters.len() {
        let all = parameters.into_iter().collect::<Vec<_>>().join(", ");
        return Err(failed(format!("{fitted} rows are fitted, but the machine files name fewer parameters: {all}")));
    }
    Ok(Reproduction { name: study.name, published, rows, parameters })
}

impl Reproduction {
    /// One table per metric, then histograms and what else is known.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = (0..self.published.metrics.len()).filter_map(|at| self.metric(at)).collect();
        tables.extend(self.histograms());
        tables.extend(self.more());
        tables
    }

    /// What must be said of the runs, one sentence each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.rows
            .iter()
            .filter_map(|row| row.found.remark.as_ref().map(|remark| format!("{}: {remark}", row.row.label)))
    }

    fn metric(&self, at: usize) -> Option<Table> {
        let metric = &self.published.metrics[at];
        let mut rows = Vec::new();
        for Reproduced { row, found, fitted } in &self.rows {
            let Some(&published) = row.values.get(&metric.key) else { continue };
            let ours = found.values.get(metric.key.as_str()).copied();
            rows.push(vec![
                Cell::Text(row.label.clone()),
                Cell::float(Some(published)),
                Cell::float(ours.map(three_more_digits)),
                Cell::float(ours.map(|ours| (1000.0 * (ours / published - 1.0)).round() / 10.0)),
                Cell::Text(if *fitted { "fitted" } else { "predicted" }.into()),
            ]);
        }
        let columns = vec![
            column("row", "row", ""),
            column("published", "published", ""),
            column("twin", "twin", ""),
            column("error_percent", "error", "%"),
            column("status", "status", ""),
        ];
        let fitted = self.rows.iter().filter(|row| row.fitted).count();
        let note = format!(
            "{}. Source: {}. {fitted} rows were fitted with as many parameters or more: {}. {}",
            metric.unit,
            self.published.source,
            self.parameters.iter().cloned().collect::<Vec<_>>().join(", "),
            self.published.note
        );
        (!rows.is_empty()).then(|| Table {
            name: format!("{}-{}", self.name, metric.key.replace('_', "-")),
            title: format!("{}: {}", self.published.title, metric.label),
            note,
            body: Body::List { columns, rows },
        })
    }

    fn histograms(&self) -> impl Iterator<Item = Table> {
        self.published.histograms.iter().flat_map(|published| {
            let ours = self.rows.iter().find(|row| row.row.key == published.row);
            let label = ours.map_or_else(String::new, |row| row.row.label.clone());
            let highest =
                |i: usize| published.slots.get(i + 1).map_or_else(|| published.slots[i][0] * 2 - 1, |n| n[0] - 1);
            let theirs =
                published.slots.iter().enumerate().map(|(i, &[low, count])| (low, highest(i), count)).collect();
            let table = |whose: &str, slots: Vec<(u64, u64, u64)>, mean: f64, total: u64| Table {
                name: format!("{}-histogram-{whose}", self.name),
                title: format!("{label}: {whose}"),
                note: String::new(),
                body: Body::Histogram { unit: "us", slots, mean: Some(mean), total },
            };
            let found = ours.map(|row| &row.found);
            let mean = found.and_then(|f| f.values.get("average")).copied().unwrap_or(0.0);
            let slots = found.map_or_else(Vec::new, |found| found.slots.clone());
            let calls: u64 = slots.iter().map(|slot| slot.2).sum();
            [
                table("published", theirs, published.average as f64, published.total),
                table("twin", slots, mean, (mean * calls as f64) as u64),
            ]
        })
    }

    fn more(&self) -> Option<Table> {
        let mut rows = Vec::new();
        for row in &self.rows {
            for More { key, label, unit, values } in &row.found.more {
                let published = self.published.lists.iter().find(|list| list.row == row.row.key && list.key == *key);
                rows.push(vec![
                    Cell::Text(row.row.label.clone()),
                    Cell::Text((*label).into()),
                    Cell::Text((*unit).into()),
                    published.map_or(Cell::Na(Na::NotRecorded), |list| range(&list.values)),
                    range(values),
                ]);
            }
        }
        let columns = vec![
            column("row", "row", ""),
            column("what", "what", ""),
            column("unit", "unit", ""),
            column("published", "published", ""),
            column("twin", "twin", ""),
        ];
        let (name, title) = (format!("{}-more", self.name), "The runs in more detail".into());
        (!rows.is_empty()).then(|| Table { name, title, note: String::new(), body: Body::List { columns, rows } })
    }
}

/// One value as a number, several as their range.
fn range(values: &[f64]) -> Cell {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match values {
        [] => Cell::Na(Na::NotRecorded),
        [value] => Cell::float(Some(three_more_digits(*value))),
        _ => Cell::Text(format!("{} to {}", three_more_digits(least), three_more_digits(greatest))),
    }
}

/// Four significant digits, more before the point.
fn three_more_digits(value: f64) -> f64 {
    let scale = match value.abs() {
        v if v >= 1000.0 => 1.0,
        v if v >= 100.0 => 10.0,
        v if v >= 10.0 => 100.0,
        _ => 1000.0,
    };
    (value * scale).round() / scale
}

fn column(key: &str, label: &str, unit: &'static str) -> Column {
    Column { key: key.into(), label: label.into(), unit }
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
        assert!(reproduction.tables().len() >= 2);
    }

    #[test]
    fn values_keep_what_is_significant() {
        assert_eq!([0.012_34, 12.3456, 123.456, 123_456.7].map(three_more_digits), [0.012, 12.35, 123.5, 123_457.0]);
        assert_eq!(range(&[2.0, 1.0]), Cell::Text("1 to 2".into()));
    }
}

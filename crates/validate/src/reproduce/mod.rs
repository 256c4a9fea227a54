//! Published tables beside the twin's.
//!
//! A study is a directory of `scenarios/published`: a scenario and the published figures, each row with the overrides
//! that it was measured with. Every row is run; none is looked up. A row is fitted if the file of its machine, or of the
//! study, names a parameter that was fixed on it.

mod attempts;
mod balancing;
mod change;
mod cover;
mod decisions;
mod jobs;
mod layouts;
mod lumpy_2012;
mod numa_counters;
mod page;
mod pseudo_interleaving;
mod reclaim_test;
mod runs;
mod scores;
mod sensitivity;
mod shares;
mod staggered_scan;
mod steps;
mod tables;
mod variant;
mod vmalloc_purge;
mod vmscan_2010;

pub use change::{Agreement, Moved, Sign};
pub use decisions::{Decisions, Difference};
pub use runs::Known;
pub use scores::Score;
pub use sensitivity::sensitivity;
pub use steps::{Change, Signs, Step, by_patch};
pub use variant::Variant;

use crate::Error;
use mmtwin_event::results::{Attempt, BalancingTime};
use mmtwin_report::statistics;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::machine::Provenance;
use mmtwin_scenario::published::{Fixed, Published, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A published study.
pub struct Study {
    /// Name of its directory.
    pub name: &'static str,
    /// The page that tells of its series.
    pub page: Option<&'static str>,
    /// Scenarios by name; the first is that of rows that name none.
    scenarios: &'static [(&'static str, &'static str)],
    published: &'static str,
    /// Runs one row.
    run: runs::Measure,
    /// What follows from the values of a row, sums of rows included.
    derive: fn(&mut Found),
}

/// All studies.
pub const ALL: [Study; 7] = [
    Study {
        name: "numa-counters",
        page: Some("docs/model/series/numa-counters-2017.md"),
        scenarios: &[("scenario", include_str!("../../published/numa-counters/scenario.toml"))],
        published: include_str!("../../published/numa-counters/published.toml"),
        run: numa_counters::run,
        derive: |_| {},
    },
    Study {
        name: "vmalloc-purge",
        page: Some("docs/model/series/vmalloc-2024.md"),
        scenarios: &[("scenario", include_str!("../../published/vmalloc-purge/scenario.toml"))],
        published: include_str!("../../published/vmalloc-purge/published.toml"),
        run: vmalloc_purge::run,
        derive: |_| {},
    },
    pseudo_interleaving::STUDY,
    staggered_scan::STUDY,
    vmscan_2010::STUDY,
    lumpy_2012::STUDY,
    lumpy_2012::EXPLAINED,
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
    /// Time of NUMA balancing, where the study is about it.
    pub balancing: Option<Balancing>,
    /// Attempts to get blocks, by the phase that they were made in.
    pub attempts: Vec<(String, Vec<Attempt>)>,
    /// What the kernel decided.
    pub decisions: Decisions,
    /// Why the run was ended early, if it was. Then it has no values.
    pub halted: Option<String>,
    /// Of the kernels that it was run beside: which have the same run. Empty where none was asked.
    pub alike: Vec<bool>,
}

/// Time of NUMA balancing in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balancing {
    /// Its parts.
    pub time: BalancingTime,
    /// Nanoseconds that all threads had.
    pub of: u64,
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
    /// The twin's; of several runs the medians.
    pub found: Found,
    /// Every run, if there were several.
    pub runs: Vec<Found>,
    /// A figure of its machine was fixed on it.
    pub fitted: bool,
    /// It is a run of the variant, not a published row.
    pub variant: bool,
}

/// A study with what the twin found.
pub struct Reproduction {
    /// Its name.
    pub name: &'static str,
    /// What was published.
    pub published: Published,
    /// All rows, in the published order.
    pub rows: Vec<Reproduced>,
    /// Figures of machine files that were fixed on its rows, as `MACHINE KEY`, and the keys of the rows.
    pub parameters: BTreeSet<(String, String)>,
}

/// What is run of a study.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// Further overrides for every row, as `--set` takes them.
    pub sets: &'a [String],
    /// Run only the rows of the patches, each with so many seeds.
    pub seeds: Option<u32>,
    /// With `seeds`: only patches in tests of these labels; none: in all.
    pub tests: &'a [String],
    /// A kernel to run beside those of the study.
    pub variant: Option<&'a Variant>,
    /// Runs of studies before, to which those of this one are added.
    pub known: Option<&'a Known>,
}

/// Runs all rows of a study.
pub fn reproduce(study: &Study) -> Result<Reproduction, Error> {
    reproduce_as(study, &Request::default())
}

/// Runs what is requested of a study.
pub fn reproduce_as(study: &Study, request: &Request<'_>) -> Result<Reproduction, Error> {
    let failed = |message: String| Error::Study { study: study.name, message };
    let mut published = Published::parse(study.name, study.published).map_err(|faults| failed(faults.to_string()))?;
    if let Some(variant) = request.variant {
        variant.insert(study, &mut published)?;
    }
    if let Some(seeds) = request.seeds {
        keep_patches(&mut published, request.tests, seeds);
    }
    let mut rows: Vec<Reproduced> = Vec::new();
    let (mut scenarios, mut parameters) = (Vec::new(), BTreeSet::new());
    for row in published.rows.iter().filter(|row| row.sum.is_empty()) {
        let scenario = study.scenario(row, request.sets).map_err(failed)?;
        let id = format!("{}:{}", study.name, row.key);
        let fixed = scenario.machine.figures.iter().filter(|f| f.provenance == Provenance::Fitted);
        for key in fixed.filter(|figure| figure.fits.contains(&id)).flat_map(|figure| &figure.of) {
            parameters.insert((format!("{} {}", scenario.machine.name, parameter(key)), row.key.clone()));
        }
        scenarios.push((row, scenario));
    }
    let fresh = Known::default();
    let found = runs::all(study, &published, &scenarios, request.known.unwrap_or(&fresh));
    let mut found = found.into_iter();
    for row in &published.rows {
        if !row.sum.is_empty() {
            rows.push(sum(&rows, row, study.derive));
            continue;
        }
        let of_row = found.next().unwrap_or_default().into_iter().collect::<Result<Vec<Found>, _>>();
        let mut runs = of_row.map_err(|message| failed(format!("{}: {message}", row.key)))?;
        let mut middle = runs[0].clone();
        if row.seeds > 1 {
            middle.halted = runs.iter().find_map(|run| run.halted.clone());
            middle.values = medians(&runs);
            middle.balancing = balancing::median(&runs);
            runs.iter_mut().for_each(study.derive);
        } else {
            runs.clear();
        }
        (study.derive)(&mut middle);
        let of_study = published.parameters.iter();
        let mut of_study = of_study.filter(|p| p.how == Fixed::Fitted && p.metrics.is_empty());
        let fitted =
            of_study.any(|p| p.row == row.key) || parameters.iter().any(|(_, of): &(String, String)| *of == row.key);
        let variant = request.variant.is_some_and(|variant| variant.is_row(&row.key));
        rows.push(Reproduced { row: row.clone(), found: middle, runs, fitted, variant });
    }
    for metric in &published.metrics {
        let Some(on) = &metric.scaled_on else { continue };
        let key = metric.key.as_str();
        let Some(at) = rows.iter_mut().find(|row| row.row.key == *on) else { continue };
        at.fitted = true;
        parameters.insert((format!("unit of {}", metric.label), on.clone()));
        let Some(factor) = at.found.values.get(key).map(|ours| at.row.values[key] / ours) else { continue };
        let all = rows.iter_mut().flat_map(|row| std::iter::once(&mut row.found).chain(&mut row.runs));
        all.filter_map(|found| found.values.get_mut(key)).for_each(|value| *value *= factor);
    }
    let names = parameters.iter().map(|(name, _)| name);
    let of_study = published.parameters.iter().filter(|p| p.how == Fixed::Fitted).map(|p| &p.name);
    let names: BTreeSet<&String> = names.chain(of_study).collect();
    let fitted = rows.iter().filter(|row| row.fitted).count();
    if fitted > names.len() {
        let all = names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(failed(format!("{fitted} rows are fitted, but the files name fewer parameters: {all}")));
    }
    Ok(Reproduction { name: study.name, published, rows, parameters })
}

impl Study {
    /// The scenario of a row, with further overrides.
    fn scenario(&self, row: &Row, sets: &[String]) -> Result<Scenario, String> {
        let overrides = [&row.set[..], sets].concat();
        let name = row.scenario.as_deref().unwrap_or(self.scenarios[0].0);
        let text = self.scenarios.iter().find(|(known, _)| *known == name);
        let (_, text) = text.ok_or_else(|| format!("{}: no scenario {name}", row.key))?;
        mmtwin_scenario::parse(name, text, Path::new(""), &overrides).map_err(|faults| faults.to_string())
    }
}

/// Drops rows that no patch needs, and sets the number of runs of the others.
fn keep_patches(published: &mut Published, tests: &[String], seeds: u32) {
    if !tests.is_empty() {
        let of: BTreeSet<&String> =
            published.tests.iter().filter(|test| tests.contains(&test.label)).flat_map(|test| &test.rows).collect();
        published.patches.iter_mut().for_each(|patch| patch.steps.retain(|[_, after]| of.contains(after)));
    }
    let mut needed: BTreeSet<String> =
        published.patches.iter().flat_map(|p| p.steps.iter().flatten().cloned()).collect();
    for row in published.rows.iter().rev() {
        if needed.contains(&row.key) {
            needed.extend(row.sum.iter().cloned());
        }
    }
    published.rows.retain(|row| needed.contains(&row.key));
    published.rows.iter_mut().for_each(|row| row.seeds = seeds);
}

/// A row that adds up others: their values, and those of each seed if all have as many runs.
fn sum(rows: &[Reproduced], of: &Row, derive: fn(&mut Found)) -> Reproduced {
    let parts: Vec<&Reproduced> = rows.iter().filter(|row| of.sum.contains(&row.row.key)).collect();
    let found = added(parts.iter().map(|row| &row.found), derive);
    let seeds = parts.iter().map(|row| row.runs.len()).min().unwrap_or(0);
    let alike = parts.iter().all(|row| row.runs.len() == seeds);
    let runs = (0..if alike { seeds } else { 0 }).map(|i| added(parts.iter().map(|row| &row.runs[i]), derive));
    Reproduced { row: of.clone(), found, runs: runs.collect(), fitted: false, variant: false }
}

/// The sum of runs.
fn added<'f>(parts: impl Iterator<Item = &'f Found>, derive: fn(&mut Found)) -> Found {
    let mut all = Found::default();
    for found in parts {
        for (key, value) in &found.values {
            *all.values.entry(key).or_default() += value;
        }
        for (key, count) in &found.decisions.events {
            *all.decisions.events.entry(key).or_default() += count;
        }
        for (key, count) in &found.decisions.counters {
            *all.decisions.counters.entry(key.clone()).or_default() += count;
        }
        if let Some(of) = &found.balancing {
            let sum = all.balancing.get_or_insert_default();
            sum.time.add(&of.time);
            sum.of += of.of;
        }
    }
    derive(&mut all);
    all
}

/// Medians over runs.
fn medians(runs: &[Found]) -> BTreeMap<&'static str, f64> {
    let of = |key: &&'static str| {
        let mut values: Vec<f64> = runs.iter().filter_map(|run| run.values.get(key).copied()).collect();
        values.sort_by(f64::total_cmp);
        Some((*key, statistics::median(&values)?))
    };
    let keys: BTreeSet<&&'static str> = runs.iter().flat_map(|run| run.values.keys()).collect();
    keys.into_iter().filter_map(of).collect()
}

/// What counts as one parameter: a figure, or all classes of one (`line.handoff.same_core`), which are fixed together.
fn parameter(key: &str) -> &str {
    match key.match_indices('.').nth(1) {
        Some((end, _)) => &key[..end],
        None => key,
    }
}

#[cfg(test)]
mod tests;

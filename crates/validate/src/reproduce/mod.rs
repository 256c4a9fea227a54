//! Published tables beside the twin's.
//!
//! A study is a directory of `scenarios/published`: a scenario and the published figures, each row with the overrides
//! that it was measured with. Every row is run; none is looked up. A row is fitted if the file of its machine names a
//! figure that was fixed on it.

mod attempts;
mod balancing;
mod layouts;
mod lumpy_2012;
mod numa_counters;
mod pseudo_interleaving;
mod reclaim_test;
mod shares;
mod staggered_scan;
mod tables;
mod vmalloc_purge;
mod vmscan_2010;

use crate::Error;
use mmtwin_event::results::{Attempt, BalancingTime};
use mmtwin_report::statistics;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::machine::Provenance;
use mmtwin_scenario::published::{Histogram, Published, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A published study.
pub struct Study {
    /// Name of its directory.
    pub name: &'static str,
    /// Scenarios by name; the first is that of rows that name none.
    scenarios: &'static [(&'static str, &'static str)],
    published: &'static str,
    /// Runs one row; with the published histogram of the row, if it has one.
    run: fn(&Scenario, Option<&Histogram>) -> Result<Found, String>,
    /// What follows from the values of a row, sums of rows included.
    derive: fn(&mut Found),
}

/// All studies.
pub const ALL: [Study; 7] = [
    Study {
        name: "numa-counters",
        scenarios: &[("scenario", include_str!("../../published/numa-counters/scenario.toml"))],
        published: include_str!("../../published/numa-counters/published.toml"),
        run: numa_counters::run,
        derive: |_| {},
    },
    Study {
        name: "vmalloc-purge",
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
pub fn reproduce(study: &Study) -> Result<Reproduction, Error> {
    reproduce_with(study, &[])
}

/// The same with further overrides for every row, as `--set` takes them.
pub fn reproduce_with(study: &Study, sets: &[String]) -> Result<Reproduction, Error> {
    let failed = |message: String| Error::Study { study: study.name, message };
    let published = Published::parse(study.name, study.published).map_err(|faults| failed(faults.to_string()))?;
    let (mut rows, mut parameters) = (Vec::new(), BTreeSet::new());
    for row in &published.rows {
        if !row.sum.is_empty() {
            let found = sum(&rows, &row.sum, study.derive);
            rows.push(Reproduced { row: row.clone(), found, runs: Vec::new(), fitted: false });
            continue;
        }
        let overrides = [&row.set[..], sets].concat();
        let name = row.scenario.as_deref().unwrap_or(study.scenarios[0].0);
        let text = study.scenarios.iter().find(|(known, _)| *known == name);
        let (_, text) = text.ok_or_else(|| failed(format!("{}: no scenario {name}", row.key)))?;
        let mut scenario = mmtwin_scenario::parse(name, text, Path::new(""), &overrides)
            .map_err(|faults| failed(faults.to_string()))?;
        let id = format!("{}:{}", study.name, row.key);
        let fixed = scenario.machine.figures.iter().filter(|f| f.provenance == Provenance::Fitted);
        let fixed: Vec<_> = fixed.filter(|figure| figure.fits.contains(&id)).collect();
        for key in fixed.iter().flat_map(|figure| &figure.of) {
            parameters.insert(format!("{} {}", scenario.machine.name, parameter(key)));
        }
        let histogram = published.histograms.iter().find(|histogram| histogram.row == row.key);
        let said = published.parameters.iter().filter(|parameter| parameter.row == row.key);
        let said: Vec<String> = said.map(|parameter| parameter.name.clone()).collect();
        let fitted = !fixed.is_empty() || !said.is_empty();
        parameters.extend(said);
        let mut runs = Vec::new();
        for _ in 0..row.seeds {
            let run = (study.run)(&scenario, histogram);
            runs.push(run.map_err(|message| failed(format!("{}: {message}", row.key)))?);
            scenario.run.seed = scenario.run.seed.wrapping_add(1);
        }
        let mut found = runs[0].clone();
        if row.seeds > 1 {
            found.values = medians(&runs);
            found.balancing = balancing::median(&runs);
        } else {
            runs.clear();
        }
        (study.derive)(&mut found);
        rows.push(Reproduced { row: row.clone(), found, runs, fitted });
    }
    for metric in &published.metrics {
        let Some(on) = &metric.scaled_on else { continue };
        let key = metric.key.as_str();
        let Some(at) = rows.iter_mut().find(|row| row.row.key == *on) else { continue };
        at.fitted = true;
        parameters.insert(format!("unit of {}", metric.label));
        let Some(factor) = at.found.values.get(key).map(|ours| at.row.values[key] / ours) else { continue };
        let all = rows.iter_mut().flat_map(|row| std::iter::once(&mut row.found).chain(&mut row.runs));
        all.filter_map(|found| found.values.get_mut(key)).for_each(|value| *value *= factor);
    }
    let fitted = rows.iter().filter(|row| row.fitted).count();
    if fitted > parameters.len() {
        let all = parameters.into_iter().collect::<Vec<_>>().join(", ");
        return Err(failed(format!("{fitted} rows are fitted, but the machine files name fewer parameters: {all}")));
    }
    Ok(Reproduction { name: study.name, published, rows, parameters })
}

/// What rows have found, added up.
fn sum(rows: &[Reproduced], parts: &[String], derive: fn(&mut Found)) -> Found {
    let mut all = Found::default();
    for found in rows.iter().filter(|row| parts.contains(&row.row.key)).map(|row| &row.found) {
        for (key, value) in &found.values {
            *all.values.entry(key).or_default() += value;
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
    runs[0].values.keys().filter_map(of).collect()
}

/// What counts as one parameter: a figure, or all classes of one (`line.handoff.same_core`), which are fixed together.
fn parameter(key: &str) -> &str {
    match key.match_indices('.').nth(1) {
        Some((end, _)) => &key[..end],
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_report::compare::single;
    use mmtwin_report::format;
    use mmtwin_report::model::{InputInfo, Report, Table};
    use serde_json::{Value, json};

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

    /// One run of a study, smaller than the published one.
    fn run(study: &str, scenario: &str, sets: &[&str]) -> Found {
        let study = ALL.iter().find(|of| of.name == study).expect("a study");
        let (name, text) = study.scenarios.iter().find(|(name, _)| *name == scenario).expect("a scenario");
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let scenario = mmtwin_scenario::parse(name, text, Path::new(""), &sets).unwrap_or_else(|e| panic!("{e}"));
        let mut found = (study.run)(&scenario, None).unwrap_or_else(|e| panic!("{e}"));
        (study.derive)(&mut found);
        found
    }

    /// Two instances of twenty warehouses on a machine of four nodes: bound ones are the fastest, those that nobody
    /// balances the slowest, and the time of balancing is reported in its parts.
    #[test]
    fn warehouses_are_faster_near_their_memory() {
        let run = |more: &str| {
            let (count, threads) = ("process.jbb.instances.count=2", "process.jbb.threads=20");
            let (own, heap) = ("process.jbb.region.warehouses.size=640 MiB", "process.jbb.region.heap.size=256 MiB");
            let (start, delay) =
                ("process.jbb.phase.start.access.0.count=65536", "process.jbb.phase.ramp-up.duration=6s");
            let measured = "process.jbb.phase.measured.duration=2s";
            let machine = "machine.preset=westmere-ex-4s";
            run(STUDY, "scenario", &[count, threads, own, heap, start, delay, measured, machine, more])
        };
        const STUDY: &str = "pseudo-interleaving";
        let bound = run("process.jbb.instances.bound=true");
        let balanced = run("kernel.release=2014-v2");
        let off = run("kernel.sysctl.kernel.numa_balancing=0");
        let rate = |found: &Found| found.values["rate"];
        assert!(rate(&bound) >= rate(&balanced) * 0.999 && rate(&balanced) > rate(&off), "{balanced:?} {off:?}");
        let time = |found: &Found| found.balancing.unwrap_or_default().time;
        // Of bound programs only their images are scanned.
        assert!(time(&bound).migrate < time(&balanced).migrate / 10 && time(&off) == Default::default(), "{bound:?}");
        assert!(time(&balanced).scan > 0 && time(&balanced).fault > 0 && time(&balanced).migrate > 0);
        let parts = time(&balanced);
        let sum = (parts.scan + parts.fault + parts.migrate) as f64 / 1e9;
        assert!((balanced.values["system"] - sum).abs() < 1e-9);
    }

    /// A collector that takes nearly all faults makes its node the only active one, unless faults are weighed.
    #[test]
    fn a_collector_takes_a_group_over_unless_faults_are_weighed() {
        let active = |weight: &str| {
            let weight = format!("kernel.numa_balancing.cpu_weight={weight}");
            let (young, old) = ("process.jvm.region.young.size=64 MiB", "process.jvm.region.old.size=1 GiB");
            let small = "machine.preset=westmere-ex-8s";
            run(
                "pseudo-interleaving",
                "collector",
                &[young, old, small, "process.jvm.phase.work.duration=16s", &weight],
            )
            .values["active_nodes"]
        };
        assert_eq!(active("none"), 1.0);
        assert!(active("1024-guarded") > 2.0);
    }

    /// Staggered threads scan less, over some seeds: one run says little.
    #[test]
    fn staggered_threads_scan_less() {
        let scanned = |release: &str| -> f64 {
            let release = format!("kernel.release={release}");
            let (slices, arrays) = ("process.mg.region.slices.size=512 MiB", "process.mg.region.arrays.size=256 MiB");
            let of = |seed: u64| {
                let seed = format!("run.seed={seed}");
                let sets = [slices, arrays, "run.duration=6s", &release, &seed];
                run("staggered-scan", "mg", &sets).values["numa_pte_updates"]
            };
            (1..=4).map(of).sum()
        };
        assert!(scanned("4.17-staggered") < scanned("4.17"));
    }

    #[test]
    fn sums_and_medians_of_runs() {
        let found = |pages: f64, faults: f64| Found {
            values: BTreeMap::from([("numa_hint_faults", faults), ("numa_hint_faults_local", pages)]),
            ..Found::default()
        };
        let row = |key: &str, found: Found| {
            let text = format!("title = \"\"\nsource = \"\"\nmetric = []\n[[row]]\nkey = \"{key}\"\nlabel = \"\"\n");
            let row = Published::parse("p.toml", &text).unwrap_or_else(|e| panic!("{e}")).rows.remove(0);
            Reproduced { row, found, runs: Vec::new(), fitted: false }
        };
        let rows = [row("a", found(1.0, 4.0)), row("b", found(5.0, 8.0)), row("c", found(90.0, 90.0))];
        let all = sum(&rows, &["a".into(), "b".into()], balancing::derive);
        assert_eq!((all.values["numa_hint_faults"], all.values["local_percent"]), (12.0, 50.0));
        let runs = [found(3.0, 1.0), found(1.0, 9.0), found(2.0, 2.0)];
        assert_eq!(medians(&runs), found(2.0, 2.0).values);
    }

    fn json(tables: Vec<Table>) -> Value {
        let input = InputInfo { name: "twin".into(), arm: "twin".into(), ..InputInfo::default() };
        let mut out = Vec::new();
        let comparison = single(Report { input, tables, ..Report::default() });
        format::write(&comparison, format::Format::Json, &format::Style::default(), &mut out)
            .expect("memory takes all");
        serde_json::from_slice(&out).expect("it is JSON")
    }

    /// A shorter run has other values; what stands beside what is the same.
    #[test]
    fn programs_get_metrics_with_what_was_published() {
        let short = ["process.vmalloc_test.phase.stress.action.#0.loops=2000".to_string()];
        let reproduction = reproduce_with(&ALL[1], &short).unwrap_or_else(|e| panic!("{e}"));
        let document = json(reproduction.tables());
        let tables = document["tables"].as_array().expect("tables");
        let names: Vec<_> = tables.iter().map(|table| table["name"].as_str().unwrap_or_default()).collect();
        let expected = ["average", "gain", "more", "histogram-published", "histogram-twin", "not-identifiable"];
        assert_eq!(
            BTreeSet::from_iter(names),
            expected.map(|name| format!("vmalloc-purge-{name}")).iter().map(String::as_str).collect()
        );
        let row = |table: &str, key: &str| {
            let table = tables.iter().find(|at| at["name"] == format!("vmalloc-purge-{table}")).expect("the table");
            assert_eq!((&table["kind"], &table["columns"]), (&json!("metric"), &json!(["twin"])));
            let rows = table["rows"].as_array().expect("rows");
            rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key} is in {rows:?}")).clone()
        };
        let before = row("average", "448_before");
        assert_eq!((&before["published"], &before["fitted"]), (&json!([1_992_122.0]), &json!([true])));
        let error = 100.0 * (before["values"][0].as_f64().expect("a value") / 1_992_122.0 - 1.0);
        assert!((before["error_percent"][0].as_f64().expect("an error") - error).abs() < 1e-9, "{before}");
        assert_eq!(row("average", "72_after")["fitted"], json!([false]));
        assert_eq!(row("gain", "448_gain")["published"], json!([99.65]));
        assert_eq!(row("more", "448_before_nr_purged_min")["published"], json!([663_070.0]));
        assert_eq!(row("more", "448_before_top_three_share")["published"], json!([92.0]));
        let distance = row("more", "448_before_ks_time");
        assert_eq!((&distance["published"], &distance["fitted"]), (&json!([null]), &json!([null])));
        assert!(distance["values"][0].as_f64().is_some_and(|distance| distance > 0.0 && distance <= 1.0), "{distance}");
    }

    #[test]
    fn classes_of_a_figure_are_one_parameter() {
        assert_eq!(["line.handoff.same_core", "cost.zone_reread"].map(parameter), ["line.handoff", "cost.zone_reread"]);
    }
}

//! Studies in small, and the rules by which rows become one.

use super::*;
use mmtwin_report::compare::single;
use mmtwin_report::format;
use mmtwin_report::model::{InputInfo, Report, Table};
use serde_json::{Value, json};

fn with(study: &Study, sets: &[String]) -> Result<Reproduction, Error> {
    reproduce_as(study, &Request { sets, ..Request::default() })
}

/// The bars: five rows fitted at most, the others within 3 %, out of a run that is shorter than the published one.
#[test]
fn the_threshold_table_comes_out_of_the_mechanism() {
    let loops = ["process.page_bench03.phase.bench.action.#0.count=20000".to_string()];
    let reproduction = with(&ALL[0], &loops).unwrap_or_else(|e| panic!("{e}"));
    let published: Vec<_> = reproduction.rows.iter().filter(|row| !row.row.key.starts_with("follow-up")).collect();
    assert_eq!(published.len(), 10);
    assert!(published.iter().filter(|row| row.fitted).count() <= 5);
    for row in published {
        let (ours, theirs) = (row.found.values["cycles"], row.row.values["cycles"]);
        assert!((ours / theirs - 1.0).abs() < 0.03, "{}: {ours} cycles, published {theirs}", row.row.label);
    }
    let names: Vec<_> = reproduction.tables().into_iter().map(|table| table.name).collect();
    let expected = ["parameters", "cycles", "throughput", "gain", "not-identifiable", "score"];
    assert_eq!(names, expected.map(|name| format!("numa-counters-{name}")));
}

/// One run of a study, smaller than the published one.
fn run(study: &str, scenario: &str, sets: &[&str]) -> Found {
    let study = ALL.iter().find(|of| of.name == study).expect("a study");
    let (name, text) = study.scenarios.iter().find(|(name, _)| *name == scenario).expect("a scenario");
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let scenario = mmtwin_scenario::parse(name, text, Path::new(""), &sets).unwrap_or_else(|e| panic!("{e}"));
    let mut found = (study.run)(&scenario, None, &[]).unwrap_or_else(|e| panic!("{e}"));
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
        let (start, delay) = ("process.jbb.phase.start.access.0.count=65536", "process.jbb.phase.ramp-up.duration=6s");
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
        run("pseudo-interleaving", "collector", &[young, old, small, "process.jvm.phase.work.duration=16s", &weight])
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
        Reproduced { row, found, runs: Vec::new(), fitted: false, variant: false }
    };
    let rows = [row("a", found(1.0, 4.0)), row("b", found(5.0, 8.0)), row("c", found(90.0, 90.0))];
    let mut of = rows[0].row.clone();
    of.sum = vec!["a".into(), "b".into()];
    let all = sum(&rows, &of, balancing::derive);
    assert_eq!((all.found.values["numa_hint_faults"], all.found.values["local_percent"]), (12.0, 50.0));
    let runs = [found(3.0, 1.0), found(1.0, 9.0), found(2.0, 2.0)];
    assert_eq!(medians(&runs), found(2.0, 2.0).values);
}

fn json(tables: Vec<Table>) -> Value {
    let input = InputInfo { name: "twin".into(), arm: "twin".into(), ..InputInfo::default() };
    let mut out = Vec::new();
    let comparison = single(Report { input, tables, ..Report::default() });
    format::write(&comparison, format::Format::Json, &format::Style::default(), &mut out).expect("memory takes all");
    serde_json::from_slice(&out).expect("it is JSON")
}

/// A shorter run has other values; what stands beside what is the same.
#[test]
fn programs_get_metrics_with_what_was_published() {
    let short = ["process.vmalloc_test.phase.stress.action.#0.loops=2000".to_string()];
    let reproduction = with(&ALL[1], &short).unwrap_or_else(|e| panic!("{e}"));
    let document = json(reproduction.tables());
    let tables = document["tables"].as_array().expect("tables");
    let names: Vec<_> = tables.iter().map(|table| table["name"].as_str().unwrap_or_default()).collect();
    let expected =
        ["parameters", "average", "gain", "more", "histogram-published", "histogram-twin", "not-identifiable", "score"];
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

/// Every row of a series is in a test, and both rows of a step are in the same one.
#[test]
fn rows_of_series_are_in_tests() {
    for study in &ALL {
        let published = Published::parse(study.name, study.published).unwrap_or_else(|e| panic!("{e}"));
        if published.patches.is_empty() {
            assert_eq!(study.name, "explain-2012");
            continue;
        }
        for row in &published.rows {
            assert!(published.test_of(&row.key).is_some(), "{}: {}", study.name, row.key);
        }
        for [before, after] in published.patches.iter().flat_map(|patch| &patch.steps) {
            let same = published.test_of(before) == published.test_of(after);
            assert!(same, "{}: {before} and {after} are of different tests", study.name);
        }
    }
}

/// The table of a series: seeds, decisions that differ, the published sign; and a score in one line.
#[test]
fn a_patch_is_told_by_decisions_and_signs() {
    let sets = ["process.vmalloc_test.phase.stress.action.#0.loops=1000".to_string()];
    let request = Request { sets: &sets, seeds: Some(2), ..Request::default() };
    let reproduction = reproduce_as(&ALL[1], &request).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(reproduction.rows.len(), 6, "only the rows of the patch");
    let steps = reproduction.steps();
    let tests: Vec<&str> = steps.iter().map(|step| step.test).collect();
    assert_eq!(tests, ["72 CPUs", "192 CPUs", "448 CPUs"]);
    for step in &steps {
        assert!(step.runs == 2 && step.decisions.identical == 0 && step.decisions.counters > 0, "{:?}", step.decisions);
        let [change] = &step.changes[..] else { panic!("{}: one quantity", step.test) };
        assert!(change.twin.is_some_and(|twin| twin.interval.is_some() && twin.noise.is_some()));
    }
    let table = by_patch(std::slice::from_ref(&reproduction)).expect("a table");
    let document = json(vec![table]);
    assert_eq!(document["tables"][0]["rows"].as_array().map(Vec::len), Some(3), "{document}");
    let (_, all) = reproduction.scores().pop().expect("a score");
    let whole = all.line();
    assert!(
        whole.contains(" cells, median error ") && whole.contains(" of 3 changes above the noise floor"),
        "{whole}"
    );
}

/// A bundle of the user: a column and a patch; what it does not change is said; unknown keys and bases are refused.
#[test]
fn a_variant_runs_beside_its_base() {
    let folder = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        Variant::load(&path)
    };
    let sets = ["process.page_bench03.phase.bench.action.#0.count=2000".to_string()];
    let run = |variant: &Variant| {
        let request = Request { sets: &sets, seeds: Some(1), variant: Some(variant), ..Request::default() };
        reproduce_as(&ALL[0], &request)
    };
    let bundle = |base: &str, keys: &str| format!("base = \"{base}\"\n[kernel]\nrelease = \"mine\"\n{keys}");
    let fewer = write("fewer.toml", &bundle("4.13", "[kernel.vmstat]\nthreshold = 64\n")).expect("a bundle");
    let found = run(&fewer).unwrap_or_else(|e| panic!("{e}"));
    let steps = found.steps();
    let step = steps.iter().find(|step| step.patch == "variant fewer").expect("its patch");
    let cycles = step.changes.iter().find(|change| change.metric.key == "cycles").and_then(|change| change.twin);
    assert!(cycles.is_some_and(|cycles| cycles.sign == Sign::Up), "a lower threshold costs more: {cycles:?}");
    assert_eq!(found.unexercised(&fewer), None);
    let idle = write("idle.toml", &bundle("4.13", "[kernel.vmalloc]\npurge_accounting = \"batched\"\n"));
    let idle = idle.expect("a bundle");
    let said = run(&idle).unwrap_or_else(|e| panic!("{e}")).unexercised(&idle).expect("a sentence");
    assert!(said.contains("idle changes nothing in numa-counters"), "{said}");
    assert!(said.contains("kernel.vmalloc.purge_accounting"), "{said}");
    let refused = |variant: &Variant| run(variant).err().expect("refused").to_string();
    let unknown = write("unknown.toml", &bundle("4.13", "[kernel.vmstat]\nthreshhold = 64\n")).expect("a bundle");
    assert!(refused(&unknown).contains("threshhold"), "{}", refused(&unknown));
    let other = write("other.toml", &bundle("3.3", "")).expect("a bundle");
    assert!(
        refused(&other).contains("base 3.3 is no kernel of numa-counters; its kernels: 4.13"),
        "{}",
        refused(&other)
    );
    let none = write("none.toml", "[kernel]\nrelease = \"mine\"\n").expect_err("refused").to_string();
    assert!(none.contains("names no base"), "{none}");
}

/// Constants at the ends of their ranges: a table with the verdicts that change, most first.
#[test]
fn constants_that_matter_are_found() {
    let sets = ["process.page_bench03.phase.bench.action.#0.count=2000".to_string()];
    let table = sensitivity(&ALL[0], &sets).unwrap_or_else(|e| panic!("{e}")).expect("ranges are stated");
    let document = json(vec![table]);
    let rows = document["tables"][0]["rows"].as_array().expect("rows");
    let keys: BTreeSet<_> = rows.iter().filter_map(|row| row[0].as_str()).collect();
    assert_eq!(keys, BTreeSet::from(["machine.cost.zone_reread", "machine.cpu.smt_slowdown"]));
    // Neither makes the patches right or wrong.
    assert!(rows.iter().all(|row| row[3] == "0 of 4" && row[5] == "4 of 4"), "{document}");
    assert!(sensitivity(&ALL[6], &[]).unwrap_or_else(|e| panic!("{e}")).is_none(), "explain-2012 states none");
}

#[test]
fn classes_of_a_figure_are_one_parameter() {
    assert_eq!(["line.handoff.same_core", "cost.zone_reread"].map(parameter), ["line.handoff", "cost.zone_reread"]);
}

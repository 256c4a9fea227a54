//! `bench` and `calibrate`: that everything is measured and printed. How long things take is not tested.

use super::support::{cell, cpus, finding_keys, mmtwin, ok, rows, scratch};
use serde_json::Value;
use std::collections::BTreeMap;

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&ok([arguments, &["--duration", "1ms", "--format", "json"]].concat())).expect("JSON")
}

/// Every time is positive, its rounds around it, and contention is marked on a machine that cannot tell it.
fn expect_times(report: &Value, table: &str, threads: impl Fn(&BTreeMap<String, Value>) -> u64) {
    for row in rows(report, table) {
        let time = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{row:?}"));
        assert!(0.0 < time("low") && time("low") <= time("time") && time("time") <= time("high"), "{row:?}");
        let expected = if threads(&row) == 1 || cpus() >= 4 { "yes" } else { "no" };
        assert_eq!(row["calibrates"], expected, "{row:?}");
    }
}

fn expect_finding(report: &Value) {
    let said = finding_keys(report).contains(&"contention_not_calibrated".to_string());
    assert_eq!(said, cpus() < 4);
}

#[test]
fn counters_of_every_design() {
    let report = json(&["bench", "counters", "--work", "10ns"]);
    expect_finding(&report);
    let threads = |row: &BTreeMap<String, Value>| row["threads"].as_u64().expect("a number");
    expect_times(&report, "bench-counters", threads);
    expect_times(&report, "bench-thresholds", threads);
    expect_times(&report, "bench-reads", |row| threads(row) + 1);

    let updates = rows(&report, "bench-counters");
    for design in ["zone-s8", "separate-s8", "separate-u16", "off", "events"] {
        let of = |t: usize| updates.iter().any(|r| r["design"] == design && r["threads"] == t);
        assert!(of(1) && of(cpus()), "{design}");
    }
    let swept = rows(&report, "bench-thresholds");
    for (threshold, designs) in
        [(32, 3), (64, 3), (125, 3), (256, 2), (512, 2), (4096, 2), (20_000, 2), (30_000, 2), (65_533, 1)]
    {
        assert_eq!(swept.iter().filter(|r| r["threshold"] == threshold).count(), designs, "{threshold}");
    }
    let last = swept.last().expect("rows");
    assert_eq!((&last["threshold"], &last["design"]), (&"none".into(), &"off".into()));
    // The baseline is itself.
    assert_eq!(cell(&report, "bench-counters", "zone-s8", "change_percent"), Some(0.0));
    let files = if cpus() > 1 { 4 } else { 2 };
    assert_eq!(rows(&report, "bench-reads").len(), 5 * files);
}

#[test]
fn purges_both_ways() {
    let report = json(&["bench", "purge"]);
    expect_finding(&report);
    let purges = rows(&report, "bench-purge");
    let mix =
        |purging: usize, freeing: usize| purges.iter().any(|r| r["purging"] == purging && r["freeing"] == freeing);
    assert!(mix(1, 0) && mix(1, cpus() - 1) && mix(cpus(), 0));
    for row in purges {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{row:?}"));
        assert!(number("per_area") > 0.0 && number("batched") > 0.0 && number("gain_percent") < 100.0);
        assert!(number("per_area_list") >= number("per_area") / 1e3);
    }
}

#[test]
fn tables_are_chosen_and_printed() {
    let short = ["bench", "purge", "--duration", "1ms"];
    let text = ok(short);
    assert!(text.contains("[bench-purge]") && text.contains("Gain"), "{text}");
    assert_eq!(text.contains("cannot calibrate contention"), cpus() < 4, "{text}");
    let csv = ok([&short[..], &["--format", "csv", "--table", "bench-purge"]].concat());
    assert!(csv.lines().next().is_some_and(|l| l.contains("per_area") && l.contains("gain_percent")), "{csv}");
    let unknown = mmtwin([&short[..], &["--table", "bench-purges"]].concat());
    assert_eq!(unknown.status, 2);
    assert!(unknown.err.contains("bench-purge"), "{}", unknown.err);
}

#[test]
fn too_much_work_is_a_usage_error() {
    let run = mmtwin(["bench", "counters", "--work", "2s"]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("must be at most 1ms"), "{}", run.err);
}

/// The machine file is TOML with this machine's nodes, is not overwritten, and every pair of CPUs is in the report.
#[test]
fn calibration_writes_a_machine_file() {
    let scratch = scratch();
    let path = scratch.path().join("machine.toml");
    let file = path.to_str().expect("UTF-8");
    let run = mmtwin(["calibrate", "-o", file, "--format", "json"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let report: Value = serde_json::from_str(run.text()).expect("JSON");
    expect_finding(&report);
    let pairs = &report["tables"].as_array().expect("tables").iter().find(|t| t["name"] == "calibrate-transfer");
    let values = pairs.expect("a matrix")["values"].as_array().expect("values").iter();
    let known = values.flat_map(|row| row.as_array().expect("a row")).filter(|v| v.as_f64().is_some_and(|v| v > 0.0));
    assert_eq!(known.count(), cpus() * (cpus() - 1));
    assert!(
        rows(&report, "calibrate-atomics")
            .iter()
            .any(|r| r["what"] == "uncontended addition" && r["calibrates"] == "yes")
    );

    let machine: toml::Value =
        std::fs::read_to_string(&path).expect("a file").parse::<toml::Table>().expect("TOML")["machine"].clone();
    let nodes = std::fs::read_dir("/sys/devices/system/node").expect("sysfs").flatten();
    let nodes = nodes
        .filter(|n| n.file_name().to_string_lossy().strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok()));
    assert_eq!(machine["node"].as_array().map(Vec::len), Some(nodes.count().max(1)));
    assert!(machine["line"]["atomic"].as_str().is_some_and(|t| t.ends_with(" ns")));

    let again = mmtwin(["calibrate", "-o", file]);
    assert_eq!(again.status, 1);
    assert!(again.err.contains("machine.toml: exists; -f replaces it"), "{}", again.err);
}

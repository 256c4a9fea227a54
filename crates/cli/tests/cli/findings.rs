//! Every rule through the program: a recording on which it must speak, and one on which it must not.
//!
//! Recordings are those of real kernels in `tests/data/findings`, whose README says what each must find. Migrations
//! that fail and migrations that never end have no real recording; their text is made here.

use super::support::{V6, finding_keys, ok, recording, report_json, root, scratch};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Rules, and whether a real recording is found by each.
const RULES: [(&str, bool); 16] = [
    ("oom_kill", true),
    ("lost_events", true),
    ("cgroup_limit", true),
    ("direct_reclaim", true),
    ("scan_efficiency", true),
    ("refault_thrash", true),
    ("refault_streaming", true),
    ("kswapd_never_sleeps", true),
    ("writeback_throttling", true),
    ("slab_dominates", true),
    ("high_order_reclaim", true),
    ("numa_locality", true),
    ("numa_migration_failures", false),
    ("numa_convergence", false),
    ("numa_fallback", true),
    ("vmalloc_purge", true),
];

/// Rules whose recordings are in `tests/verdicts`, or made by hand beside them.
const ELSEWHERE: [&str; 10] = [
    "refault_transition",
    "refault_cold_start",
    "swap_storm",
    "dirty_throttling",
    "thp_stalls",
    "kswapd_lags",
    "node_imbalance",
    "cgroup_near_limit",
    "proactive_compaction",
    "limit_unused",
];

/// Findings of an input, with the counters that were saved beside it.
fn found(path: &Path) -> Vec<String> {
    let base = path.to_str().expect("UTF-8").trim_end_matches(".txt.gz");
    let counters = ["before", "after"].map(|when| format!("{base}.{when}.vmstat"));
    let mut options = vec!["--table".to_string(), "findings".into()];
    if counters.iter().all(|file| Path::new(file).exists()) {
        options.extend(["--counters".to_string(), counters.join(",")]);
    }
    finding_keys(&report_json(path, options))
}

/// One row of the README: the recording, what it must find, and what it must not.
type Row = (String, Vec<String>, Vec<String>);

fn rows() -> Vec<Row> {
    let readme = std::fs::read_to_string(root().join("tests/data/findings/README.md")).expect("the README");
    let list = |cell: &str| cell.split(',').map(|k| k.trim().to_string()).filter(|k| !k.is_empty()).collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, must, must_not] = cells[..] else { panic!("not four cells: {line}") };
        (name.trim_matches('`').to_string(), list(must), list(must_not))
    };
    readme.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

/// Page migrations of NUMA balancing, one each second: pages that moved and pages that failed.
fn migrations(name: &str, directory: &Path, seconds: u64, pages: impl Fn(u64) -> (u64, u64)) -> PathBuf {
    let mut text = String::from("# tracer: nop\n#\n");
    for second in 0..seconds {
        let (moved, failed) = pages(second);
        let _ = writeln!(
            text,
            "          worker-900     [000] .....  {:>4}.000000: mm_migrate_pages: nr_succeeded={moved} nr_failed={failed} \
             nr_thp_succeeded=0 nr_thp_failed=0 nr_thp_split=0 mode=MIGRATE_ASYNC reason=numa_misplaced",
            second + 100
        );
    }
    let path = directory.join(name);
    std::fs::write(&path, text).expect("text");
    path
}

#[test]
fn every_rule_fires_and_is_silent() {
    let scratch = scratch();
    let keys: BTreeSet<&str> = RULES.iter().map(|(key, _)| *key).chain(ELSEWHERE).collect();
    let (mut fired, mut silent) = (BTreeSet::new(), BTreeSet::new());
    let mut check = |path: &Path, must: &[String], must_not: &[String], real: bool| {
        let found = found(path);
        for key in found.iter().chain(must).chain(must_not) {
            assert!(keys.contains(key.as_str()), "{path:?}: {key} is no rule of the list");
        }
        assert!(must.iter().all(|key| found.contains(key)), "{path:?}: {found:?}, not {must:?}");
        assert!(!must_not.iter().any(|key| found.contains(key)), "{path:?}: {found:?}, none of {must_not:?}");
        fired.extend(must.iter().map(|key| (key.clone(), real)));
        silent.extend(must_not.iter().cloned());
    };
    for (name, must, must_not) in rows() {
        check(&root().join(recording(&name)), &must, &must_not, true);
    }
    let [failures, convergence] = ["numa_migration_failures", "numa_convergence"].map(String::from);
    let failing = migrations("failing.txt", scratch.path(), 5, |_| (800, 300));
    check(&failing, std::slice::from_ref(&failures), std::slice::from_ref(&convergence), false);
    let endless = migrations("endless.txt", scratch.path(), 60, |_| (500, 0));
    check(&endless, std::slice::from_ref(&convergence), std::slice::from_ref(&failures), false);
    check(
        &migrations("settled.txt", scratch.path(), 60, |t| (30_000 >> t.min(20), 0)),
        &[],
        &[failures, convergence],
        false,
    );
    check(&root().join(V6), &[], &["oom_kill".into()], true);
    for (key, real) in RULES {
        assert!(fired.contains(&(key.to_string(), real)), "{key} fires nowhere");
        assert!(silent.contains(key), "{key} is silent nowhere");
    }
    assert!(RULES.iter().filter(|(_, real)| *real).count() * 2 >= RULES.len());
}

/// Findings come first, worst first, and each names a table that exists.
#[test]
fn findings_lead_to_tables() {
    for (name, _, _) in rows() {
        let path = recording(&name);
        let report = report_json(Path::new(&path), ["--table", "findings"]);
        let findings = report["findings"].as_array().expect("findings");
        let severities: Vec<u64> = findings.iter().map(|f| f["severity"].as_u64().expect("a number")).collect();
        assert!(severities.is_sorted_by(|a, b| a >= b), "{name}: {severities:?}");
        for finding in findings {
            let table = finding["command"].as_str().and_then(|c| c.split(" --table ").nth(1)).expect("a table");
            let report = report_json(Path::new(&path), ["--table", table]);
            assert_eq!(report["tables"][0]["name"], table, "{name}");
        }
        let text = ok(["report", &path]);
        let worst = findings.first().map_or("No finding", |worst| worst["sentence"].as_str().expect("a sentence"));
        let begin: String = worst.chars().take(30).collect();
        assert!(text.lines().any(|line| line.starts_with(&begin)), "{name}: {text}");
    }
}

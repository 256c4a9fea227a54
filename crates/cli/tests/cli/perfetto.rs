//! Traces of Perfetto, read with Perfetto's own definitions.

use super::support::{V6, command, ok, python, report_json, root, rows, scratch};
use std::path::Path;

#[test]
fn a_trace_has_the_name_and_place_that_were_asked_for() {
    let scratch = scratch();
    let [by_name, by_format] = ["a.pftrace", "b"].map(|name| scratch.path().join(name));
    ok([Path::new("convert"), Path::new(V6), Path::new("-o"), &by_name]);
    ok(["convert".as_ref(), V6.as_ref(), "--format=perfetto".as_ref(), "-o".as_ref(), by_format.as_os_str()]);
    let trace = std::fs::read(&by_name).unwrap();
    assert!(trace == std::fs::read(&by_format).unwrap() && trace.len() > 10_000);
    let again = command(["convert", V6, "-o"]).arg(&by_name).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "nothing is replaced without -f");
}

/// `make exports-again`.
#[test]
#[ignore = "needs Python packages"]
fn the_package_of_perfetto_reads_what_is_written() {
    let scratch = scratch();
    let inputs = [
        V6.to_string(),
        "tests/data/host-6.18.dat".into(),
        "tests/verdicts/host-wc-loop.tar.zst".into(),
        "tests/verdicts/host-dirty.tar.zst".into(),
        "tests/data/unknown-6.18.txt.gz".into(),
    ];
    for (at, input) in inputs.iter().enumerate() {
        let trace = scratch.path().join(format!("{at}.pftrace"));
        ok([Path::new("convert"), Path::new(input), Path::new("-o"), &trace]);
        let Some(mut python) = python("perfetto") else { return };
        let run = python.arg(root().join("tools/read_perfetto.py")).arg(&trace).output().unwrap();
        assert!(run.status.success(), "{input}: {}", String::from_utf8_lossy(&run.stderr));
        let seen: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
        eprintln!("{input}: {seen}");
        if input.contains("host-dirty") {
            assert!(seen["flows"].as_u64() > Some(50) && seen["slices"]["kswapd"].as_u64() > Some(50), "{seen}");
        }
        if input.contains("unknown") {
            continue;
        }
        let report = report_json(Path::new(input), [""; 0]);
        let reclaim = rows(&report, "reclaim");
        // A reclaimer whose events were not recorded has no column.
        let figure = |row: &str, column: &str| {
            let row = reclaim.iter().find(|r| r["quantity"] == row).expect("a row");
            row.get(column).and_then(serde_json::Value::as_f64).unwrap_or(0.0)
        };
        for (slice, column) in [("direct reclaim", "direct"), ("cgroup reclaim", "cgroup")] {
            let [done, unpaired] =
                ["Reclaims (kswapd: wakes)", "Unpaired (no begin or no end)"].map(|row| figure(row, column));
            let slices = seen["slices"][slice].as_f64().unwrap_or(0.0);
            assert!((done..=done + unpaired).contains(&slices), "{input}: {slices} slices, {done} and {unpaired}");
        }
    }
}

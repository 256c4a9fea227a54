//! `mmtwin scenario`: what it prints, and how it ends on files that are wrong.

use super::support::{mmtwin, ok, scratch};
use std::fs;

const EXAMPLE: &str = "scenarios/examples/vmalloc-purge-small.toml";

#[test]
fn a_scenario_is_described_and_spelled_out() {
    let described = ok(["scenario", "check", EXAMPLE]);
    let start =
        format!("{EXAMPLE}: machine small, nodes 1, CPUs 8, memory 8 GiB; kernel 6.12; processes 1, threads 8; hash ");
    assert!(described.starts_with(&start), "{described}");
    let scratch = scratch();
    let shown = scratch.path().join("shown.toml");
    fs::write(&shown, ok(["scenario", "show", EXAMPLE])).expect("a file");
    let again = ok(["scenario".as_ref(), "check".as_ref(), shown.as_os_str()]);
    let behind = |text: &str| text.split_once(": ").map(|(_, rest)| rest.to_string());
    assert_eq!(behind(&again), behind(&described));
    let changed = ok(["scenario", "show", EXAMPLE, "--set", "kernel.vmalloc.purge_accounting=per-area"]);
    assert!(changed.contains("purge_accounting = \"per-area\""), "{changed}");
}

#[test]
fn json_and_schema_are_json() {
    let shown: serde_json::Value =
        serde_json::from_str(&ok(["scenario", "show", EXAMPLE, "--format", "json"])).expect("JSON");
    assert_eq!(shown["kernel"]["hz"], 250);
    let schema: serde_json::Value = serde_json::from_str(&ok(["scenario", "schema"])).expect("JSON");
    assert_eq!(schema["title"], "mmtwin scenario");
}

#[test]
fn faults_of_all_files_end_with_status_1() {
    let scratch = scratch();
    let (wrong, binary) = (scratch.path().join("wrong.toml"), scratch.path().join("binary.toml"));
    fs::write(&wrong, "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\nhertz = 250\n").expect("a file");
    fs::write(&binary, b"title = \"\xff\"").expect("a file");
    let run = mmtwin(["scenario".as_ref(), "check".as_ref(), wrong.as_os_str(), binary.as_os_str()]);
    assert_eq!((run.status, run.text()), (1, ""));
    assert!(run.err.contains("wrong.toml:5:1: unknown key `hertz` in `kernel`"), "{}", run.err);
    assert!(run.err.contains("binary.toml: is no UTF-8 text: byte 9 is wrong"), "{}", run.err);
}

#[test]
fn a_new_scenario_is_one() {
    let scratch = scratch();
    let file = scratch.path().join("new.toml");
    let new = |arguments: &[&str]| mmtwin([&["scenario", "new"], arguments].concat());
    let path = file.to_str().expect("UTF-8");
    for machine in [&[][..], &["--host"]] {
        let run = new(&[&["--archetype", "containers", "-f", "-o", path], machine].concat());
        assert_eq!((run.status, run.text()), (0, ""), "{}", run.err);
        ok(["scenario", "check", path]);
    }
    let there = new(&["--archetype", "cache", "-o", path]);
    assert!(there.status == 1 && there.err.contains("new.toml"), "{}", there.err);
    let asked = new(&[]);
    assert_eq!(asked.status, 2);
    assert!(asked.err.contains("--archetype is needed: database, cache, build"), "{}", asked.err);
    let trace = new(&["--archetype", "cache", "--from", super::support::V6]);
    assert!(trace.status == 1 && trace.err.contains("it is no recording"), "{}", trace.err);
}

//! What a recording says of its owner: `record --private` and `mmtwin scrub`.

use super::record::tracefs;
use super::support::{command, mmtwin, ok, scratch};
use serde_json::Value;
use std::fs;
use std::path::Path;

const SECRETS: [&str; 3] = ["payroll-alice", "hunter2", "for-nobody"];

/// Runs a program with a telling name and arguments under `record`, its start recorded where this machine can.
fn record(directory: &Path, output: &Path, options: &[&str]) {
    let program = directory.join("payroll-alice");
    fs::copy("/bin/sh", &program).expect("a copy of sh");
    let test = "what a recording says of its owner";
    let events: &[&str] =
        if tracefs(test).is_some() { &["-e", "sched:sched_process_exec,sched:sched_switch"] } else { &[] };
    let mut arguments = vec!["record", "-I", "0", "-o", output.to_str().expect("UTF-8")];
    arguments.extend(events.iter().chain(options));
    let mut command = command(arguments);
    let run = command.arg("--").arg(&program).args(["-c", "/bin/true --password=hunter2 for-nobody"]);
    let run = run.output().expect("the program");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

fn all_bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(path).expect("a directory") {
        let path = entry.expect("an entry").path();
        bytes.extend(if path.is_dir() { all_bytes(&path) } else { fs::read(&path).expect("a file") });
    }
    bytes
}

/// Secrets that stand in some file of a directory.
fn found(path: &Path) -> Vec<&'static str> {
    let bytes = all_bytes(path);
    SECRETS.into_iter().filter(|word| bytes.windows(word.len()).any(|w| w == word.as_bytes())).collect()
}

fn said_of_command(recording: &Path) -> Value {
    let text = fs::read(recording.join("manifest.json")).expect("a manifest");
    serde_json::from_slice::<Value>(&text).expect("JSON")["command"].clone()
}

#[test]
fn arguments_stay_out_of_a_recording_unless_they_are_wanted() {
    let scratch = scratch();
    let (plain, whole) = (scratch.path().join("plain.mmt"), scratch.path().join("whole.mmt"));
    record(scratch.path(), &plain, &[]);
    assert_eq!(found(&plain), ["payroll-alice"]);
    assert_eq!(said_of_command(&plain), serde_json::json!(["payroll-alice"]));
    record(scratch.path(), &whole, &["--arguments"]);
    assert_eq!(found(&whole), SECRETS);
}

#[test]
fn a_private_recording_has_no_names_and_a_scrubbed_one_has_none_either() {
    let scratch = scratch();
    let [private, whole, shareable] =
        ["private.mmt", "whole.mmt", "shareable.mmt"].map(|name| scratch.path().join(name));
    record(scratch.path(), &private, &["--private"]);
    assert_eq!(found(&private), [""; 0]);
    record(scratch.path(), &whole, &["--arguments"]);
    let names = scratch.path().join("names.json");
    let arguments = [
        "scrub".as_ref(),
        whole.as_os_str(),
        "-o".as_ref(),
        shareable.as_os_str(),
        "--names".as_ref(),
        names.as_os_str(),
    ];
    let said = ok(arguments);
    assert_eq!(found(&shareable), [""; 0]);
    assert!(said.contains("Replaced by pseudonyms") && said.contains("Kept unchanged"), "{said}");
    // Other tasks of this machine may be called as something is that stays.
    assert!(SECRETS.iter().all(|word| !said.contains(word)), "{said}");
    // Whoever has the table knows who is who.
    assert!(fs::read_to_string(&names).expect("a table").contains("payroll-alice"));
    for recording in [&private, &shareable] {
        ok(["report".as_ref(), recording.as_os_str()]);
        let host = fs::read_to_string(recording.join("run.json")).expect("run.json");
        assert!(host.contains("\"host-1\""), "{host}");
    }
    let again = mmtwin(arguments);
    assert_eq!(again.status, 1, "an output is not replaced without -f: {}", again.err);
}

#[test]
fn what_is_no_recording_is_not_scrubbed() {
    let scratch = scratch();
    let output = scratch.path().join("s.mmt");
    let run =
        mmtwin(["scrub".as_ref(), "crates/trace/tests/data/vmscan-v6.dat".as_ref(), "-o".as_ref(), output.as_os_str()]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("vmscan-v6.dat"), "{}", run.err);
    assert!(!output.exists());
}

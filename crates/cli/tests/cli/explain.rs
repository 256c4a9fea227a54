//! `mmtwin explain`: golden transcripts of a small run on the twin and of a trace of a real kernel, and bad names.

use super::support::{mmtwin, ok, recording, scratch};
use super::transcripts::transcript_in;
use serde_json::Value;
use std::path::Path;

const SCENARIO: &str = "scenarios/examples/numa-explain.toml";

/// Runs the example into SCRATCH/e.mmt.
fn example(scratch: &Path) {
    let output = scratch.join("e.mmt");
    ok(["run", SCENARIO, "-o", output.to_str().expect("UTF-8"), "--table", "workload"]);
}

#[test]
fn pages_tasks_and_groups() {
    let scratch = scratch();
    example(scratch.path());
    let explain = |name: &str, arguments: &[&str]| {
        transcript_in(scratch.path(), name, &[&["explain", "SCRATCH/e.mmt"], arguments].concat());
    };
    // Refused because the node is full; followed; accessed where it was.
    explain("explain-page-refused", &["--page", "pair/heap:0xad000"]);
    explain("explain-page-followed", &["--page", "heap:1120KiB"]);
    explain("explain-task", &["--task", "1001"]);
    explain("explain-task-stuck", &["--task", "1002"]);
    explain("explain-group", &["--group", "1001"]);
    explain("explain-page-json", &["--page", "pair@0x7f00000ad000", "--format", "json"]);
    explain("explain-page-csv", &["--page", "pair@0x7f00000ad000", "--format", "csv"]);
    // Names of nothing and of several.
    explain("explain-no-page", &["--page", "1"]);
    explain("explain-no-offset", &["--page", "pair/heap:4MiB"]);
    explain("explain-no-region", &["--page", "pair/heep:0"]);
    explain("explain-no-address", &["--page", "pair@0x1000"]);
    explain("explain-several-tasks", &["--task", "pair"]);
    explain("explain-no-task", &["--task", "pear"]);
    explain("explain-no-group", &["--group", "7"]);
    explain("explain-usage-page", &["--page", "heap"]);
    explain("explain-nothing-waited", &[]);
    explain("explain-usage-two", &["--task", "1001", "--group", "1001"]);
}

#[test]
fn what_was_not_recorded_is_not_known() {
    let scratch = scratch();
    let output = scratch.path().join("q.mmt");
    let events = "run.events=[\"sched:*_numa\"]";
    ok(["run", SCENARIO, "--set", events, "-o", output.to_str().expect("UTF-8"), "--table", "workload"]);
    let explain = |name: &str, arguments: &[&str]| {
        transcript_in(scratch.path(), name, &[&["explain", "SCRATCH/q.mmt"], arguments].concat());
    };
    explain("explain-task-sampled", &["--task", "1001"]);
    explain("explain-pages-not-recorded", &["--page", "0x1000"]);
    explain("explain-regions-not-recorded", &["--page", "pair/heap:0"]);
}

#[test]
fn a_trace_of_a_real_kernel() {
    let (scratch, numa) = (scratch(), recording("numa-6.1"));
    transcript_in(scratch.path(), "explain-kernel-task", &["explain", &numa, "--task", "wl1"]);
    let recorded = ["explain", &numa, "--task", "wl1", "--recorded", "sched:*"];
    transcript_in(scratch.path(), "explain-kernel-recorded", &recorded);
    transcript_in(scratch.path(), "explain-kernel-page", &["explain", &numa, "--page", "0x1000"]);
    transcript_in(scratch.path(), "explain-kernel-group", &["explain", &numa, "--group", "1"]);
    transcript_in(scratch.path(), "explain-stdin", &["explain", "-", "--task", "1"]);
}

/// A stored recording of a real kernel in the lab: what it has of a task is reported, what no kernel traces is named.
#[test]
fn a_recording_of_the_lab() {
    let stored = "tests/data/recordings/numa-two-fit-6.1.tar.zst";
    let script = ok(["script", stored, "-e", "sched:sched_*_numa"]);
    let field =
        |line: &str, name: &str| -> Option<String> { line.split_once(name)?.1.split(' ').next().map(str::to_string) };
    let stuck: Vec<&str> = script.lines().filter(|line| line.contains("sched_stick_numa")).collect();
    let pid = field(stuck[0], "src_pid=").expect("a task");
    let own = stuck.iter().filter(|line| field(line, "src_pid=").as_ref() == Some(&pid)).count() as u64;
    let json: Value = serde_json::from_str(&ok(["explain", stored, "--task", &pid, "--format", "json"])).expect("JSON");
    let rows = json["tables"][0]["rows"].as_array().expect("steps").clone();
    let times =
        |event: &str| -> u64 { rows.iter().filter(|row| row[3] == event).filter_map(|row| row[2].as_u64()).sum() };
    assert_eq!(times("sched_stick_numa"), own);
    let unknown = json["tables"][1]["rows"].as_array().expect("what is not known");
    assert!(unknown.iter().any(|row| row[1].as_str().is_some_and(|fix| fix.contains("kernels do not trace it"))));
    assert!(rows.iter().all(|row| !row[3].as_str().is_some_and(|event| event.starts_with("numa_"))));
}

/// All formats say the same, and the same twice; a converted trace says what the recording says.
#[test]
fn one_chain_in_every_format() {
    let scratch = scratch();
    example(scratch.path());
    let path = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_string();
    let (recording, text, dat) = (path("e.mmt"), path("e.txt"), path("e.dat"));
    for converted in [&text, &dat] {
        ok(["convert", &recording, "-o", converted]);
    }
    let task = ["--task", "1001"];
    let table = ok([&["explain", recording.as_str()], &task[..]].concat());
    assert_eq!(table, ok([&["explain", recording.as_str()], &task[..]].concat()));
    let json = |input: &str| -> Value {
        let arguments = [&["explain", input], &task[..], &["--format", "json"]].concat();
        serde_json::from_str(&ok(arguments)).expect("JSON")
    };
    let whole = json(&recording);
    let answer = whole["findings"][0]["sentence"].as_str().expect("an answer");
    assert!(table.ends_with(&format!("\n{answer}\n")), "{answer}");
    let steps = whole["tables"][0]["rows"].as_array().expect("steps");
    assert!(steps.len() > 10);
    let text_of_step = |step: &Value| step.as_array().and_then(|row| row.last()?.as_str()).expect("what").to_string();
    assert!(steps.iter().all(|step| table.contains(&text_of_step(step))));
    for converted in [&text, &dat] {
        let other = json(converted);
        let rules = |of: &Value| -> Vec<Value> {
            of["tables"][0]["rows"].as_array().expect("steps").iter().map(|row| row[4].clone()).collect()
        };
        assert_eq!(rules(&other), rules(&whole), "{converted}");
    }
}

/// Waits of real kernels and of the twin: the list, one of them, of a task, of a cgroup, refaults and kills.
#[test]
fn who_waited_and_why() {
    let scratch = scratch();
    let explain = |name: &str, arguments: &[&str]| {
        transcript_in(scratch.path(), name, &[&["explain"], arguments].concat());
    };
    let host = "tests/data/host-6.18.dat";
    explain("explain-waits", &[host]);
    explain("explain-stall", &[host, "--stall"]);
    explain("explain-stall-at", &[host, "--stall", "100ms"]);
    explain("explain-stall-none", &[host, "--stall", "9s"]);
    explain("explain-waits-of-task", &[host, "--task", "stream"]);
    explain("explain-stall-writeback", &[&recording("writeback-6.18"), "--stall", "2"]);
    explain("explain-oom", &["tests/verdicts/oom.tar.zst", "--oom"]);
    explain("explain-oom-none", &[host, "--oom"]);
    explain("explain-refault", &["tests/verdicts/reread-filemap.tar.zst", "--refault"]);
    explain("explain-cgroup", &["tests/verdicts/reread-filemap.tar.zst", "--cgroup", "app"]);
    explain("explain-cgroup-none", &["tests/verdicts/reread-filemap.tar.zst", "--cgroup", "/web"]);
    explain("explain-usage-stall", &[host, "--stall", "soon"]);
    let twin = scratch.path().join("twin.mmt");
    let limit = "cgroup./box.memory.max=\"480 MiB\"";
    let scenario = "scenarios/guide/container-limit.toml";
    let output = twin.to_str().expect("UTF-8");
    ok(["run", scenario, "--set", limit, "--set", "run.events=[\"vmscan:*\"]", "-o", output, "--table", "workload"]);
    explain("explain-twin-stall", &["SCRATCH/twin.mmt", "--stall"]);
    explain("explain-twin-cgroup", &["SCRATCH/twin.mmt", "--cgroup", "/box"]);
}

/// One screen of any stored recording, and what findings say can be typed: of a quarter of the recordings, of all with
/// `MMTWIN_VERDICTS=all` (`make verdicts-again`).
#[test]
fn commands_that_findings_print_work() {
    let folder = super::support::root().join("tests/verdicts");
    let mut paths: Vec<_> =
        folder.read_dir().expect("recordings").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "zst"));
    paths.sort();
    if !std::env::var("MMTWIN_VERDICTS").is_ok_and(|recordings| recordings == "all") {
        paths = paths.into_iter().step_by(4).collect();
    }
    let mut tried = 0;
    for path in paths {
        let input = path.to_str().expect("UTF-8");
        let screen = ok(["explain", input]);
        assert!(screen.lines().count() <= 40, "{input}: {}\n{screen}", screen.lines().count());
        let report: Value = serde_json::from_str(&ok(["report", input, "--format", "json"])).expect("JSON");
        for finding in report["findings"].as_array().expect("findings") {
            let Some(command) = finding["next"].as_str().and_then(|next| next.strip_prefix("mmtwin explain ")) else {
                continue;
            };
            let arguments: Vec<&str> = command.split(' ').collect();
            let screen = ok([&["explain"], arguments.as_slice()].concat());
            assert!((4..=40).contains(&screen.lines().count()), "{command}\n{screen}");
            tried += 1;
        }
    }
    assert!(tried >= 10, "{tried}");
}

#[test]
fn a_reader_is_told_what_to_do_without_a_file() {
    let run = mmtwin(["explain", "no/such.mmt", "--task", "1"]);
    assert_eq!((run.status, run.out.len()), (1, 0));
    assert!(run.err.contains("no/such.mmt"), "{}", run.err);
}

//! Access traces through the program: `run --access-trace` and `replay`.

use super::support::{command, installed, mmtwin, ok, scratch};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const SCENARIO: &str = "[machine]\nname = \"m\"\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"64 MiB\"\n\
    [kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
    [[process]]\nname = \"app\"\nthreads = 2\n[[process.region]]\nname = \"heap\"\nsize = \"1 MiB\"\n\
    [[process.region]]\nname = \"data\"\nsize = \"1 MiB\"\nkind = \"file\"\n";

/// A cyclic walk over 100 pages by two tasks, 10 times each.
fn walks() -> String {
    let mut text = String::from("time,pid,page,rw\n");
    for i in 0..1000u64 {
        for pid in [1000, 1001] {
            text += &format!("{},{pid},{},{}\n", i * 1000, i % 100, if i % 4 == 0 { 'w' } else { 'r' });
        }
    }
    text
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").into()
}

#[test]
fn a_run_makes_the_touches_of_a_trace() {
    let scratch = scratch();
    let (scenario, trace) = (write(scratch.path(), "s.toml", SCENARIO), write(scratch.path(), "t.csv", &walks()));
    let run =
        ["run", &scenario, "--access-trace", &trace, "--check-determinism", "--format", "json", "--table", "workload"];
    let run = mmtwin(run);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.err.contains("note: access trace: 2000 of 2000 accesses were made"), "{}", run.err);
    let json: serde_json::Value = serde_json::from_str(run.text()).expect("JSON");
    let text = json["tables"][0].to_string();
    assert!(text.contains("trace") && text.contains("2000"), "{text}");
}

#[test]
fn a_trace_that_does_not_fit_is_refused_with_its_line() {
    let scratch = scratch();
    let scenario = write(scratch.path(), "s.toml", SCENARIO);
    for (row, message) in [
        ("0,999,0,r", "3: the scenario has no pid 999: its threads are 1000 to 1001"),
        ("0,1001,512,r", "3: pid 1001 has no page 512: the regions of process \"app\" have 512 pages, from 0 on"),
        ("0,1001,300", "3: expected 4 columns (time,pid,page,rw), found 3"),
    ] {
        let trace = write(scratch.path(), "t.csv", &format!("time,pid,page,rw\n0,1000,0,w\n{row}\n"));
        let output = scratch.path().join("rec");
        let run = ["run", &scenario, "--access-trace", &trace, "-o", output.to_str().expect("UTF-8")];
        let run = mmtwin(run);
        assert_eq!(run.status, 1, "{}", run.err);
        assert!(run.err.contains(&format!("error: {trace}:{message}")), "{}", run.err);
        assert!(!output.exists() && run.out.is_empty());
    }
    let run = mmtwin(["run", &scenario, "--access-trace", &scenario, "--on", "host"]);
    assert_eq!(run.status, 2, "{}", run.err);
}

#[test]
fn replay_prints_hits_of_every_policy_and_size() {
    let scratch = scratch();
    let trace = write(scratch.path(), "t.csv", &walks());
    // 200 pages in a loop: nothing is found where they do not fit, all but the first round where they do.
    let out = ok(["replay", "--pages", "199,200", &trace, "--format", "csv"]);
    let rows: Vec<&str> = out.lines().filter_map(|line| Some(line.split_once("t.csv,")?.1)).collect();
    assert_eq!(rows, ["lru,199,0,2000,0", "lru,200,1800,200,90", "clock,199,0,2000,0", "clock,200,1800,200,90"]);

    let mut child = command(["replay", "--policy", "clock", "--pages", "200", "-", "--format", "csv"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a child");
    child.stdin.take().expect("a pipe").write_all(walks().as_bytes()).expect("a trace");
    let out = child.wait_with_output().expect("an end");
    assert!(String::from_utf8_lossy(&out.stdout).contains("clock,200,1800,200,90\n"));

    let run = mmtwin(["replay", "--pages", "0", &trace]);
    assert_eq!(run.status, 2, "{}", run.err);
    let trace = write(scratch.path(), "t.csv", "time,pid,page,rw\n5,1,2,r\n4,1,2,r\n");
    let run = mmtwin(["replay", "--pages", "1", &trace]);
    assert_eq!((run.status, run.text()), (1, ""), "{}", run.err);
    assert!(run.err.contains(&format!("{trace}:3: time 4 is before that of the row above, 5")), "{}", run.err);
}

#[test]
fn a_damaged_parquet_file_is_an_error() {
    let scratch = scratch();
    let damaged = write(scratch.path(), "t.parquet", "PAR1 and no more PAR1");
    let run = mmtwin(["replay", &damaged, "--pages", "10"]);
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.err.contains(&damaged), "{}", run.err);
}

#[test]
fn pages_far_apart_take_little_memory() {
    if !installed("pages_far_apart_take_little_memory", "prlimit") {
        return;
    }
    let scratch = scratch();
    let mut text = String::from("time,pid,page,rw\n");
    (0..300_000u64).for_each(|i| text += &format!("{i},1,{},r\n", i * 1_000_003 * 4096));
    let trace = write(scratch.path(), "t.csv", &text);
    // Room for a block of 512 pages each would be 0.8 GB.
    let mut limited = std::process::Command::new("prlimit");
    limited.args(["--as=600000000", env!("CARGO_BIN_EXE_mmtwin"), "replay", &trace, "--pages", "1000"]);
    let output = limited.stdin(Stdio::null()).output().expect("prlimit");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

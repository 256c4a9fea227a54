//! A part of an input: by process, cgroup, node and time, in every verb that reads.

use super::support::{cell, command, ok, report_json, root, scratch};
use super::transcripts::{golden, transcript_in};
use std::path::Path;

const HOST: &str = "tests/data/host-6.18.dat";

#[test]
fn transcripts_of_parts() {
    let transcript = |name: &str, arguments: &[&str]| transcript_in(&root(), name, arguments);
    transcript("filter-screen", &["report", HOST, "--process", "str*", "--from", "100ms", "--to", "200ms"]);
    transcript("filter-nothing", &["report", HOST, "--process", "redis*", "--cgroup", "/web", "--node", "3"]);
    transcript("filter-no-time", &["report", HOST, "--from", "1m"]);
    transcript("filter-times", &["report", HOST, "--from", "2s", "--to", "1s"]);
    transcript("filter-script", &["script", HOST, "-e", "*begin", "--from", "103ms", "--to", "105ms"]);
    transcript("filter-compare", &["compare", HOST, HOST, "--to", "100ms", "--table", "reclaim-cgroup"]);
}

/// Pages scanned in a part of the sample.
fn scanned(options: &[&str]) -> f64 {
    let report = report_json(Path::new(HOST), options.iter().copied());
    cell(&report, "reclaim", "Pages scanned", "cgroup").expect("events of cgroup reclaim")
}

#[test]
fn parts_add_up_to_the_whole() {
    let parts = [["--to", "150ms"], ["--from", "150.000001ms"]].map(|options| scanned(&options));
    assert_eq!(parts.iter().sum::<f64>(), scanned(&[]));
    assert_eq!(scanned(&["--process", "stream"]), scanned(&[]));
}

#[test]
fn what_is_converted_is_the_part() {
    let scratch = scratch();
    let (dat, text) = (scratch.path().join("part.dat"), scratch.path().join("part.txt"));
    for to in [&dat, &text] {
        let output = to.to_str().expect("UTF-8");
        ok(["convert", HOST, "-o", output, "--from", "100ms", "--to", "200ms"]);
    }
    let events = |path: &Path| report_json(path, [""; 0])["inputs"][0]["events"].as_u64();
    let whole = report_json(Path::new(HOST), ["--from", "100ms", "--to", "200ms"])["inputs"][0]["events"].as_u64();
    assert_eq!((events(&dat), events(&text)), (whole, whole));
}

#[test]
fn a_recording_is_cut_by_cgroup_with_its_counters() {
    let scratch = scratch();
    let recording = scratch.path().join("r.mmt");
    let file =
        std::fs::File::open(root().join("tests/data/recordings/reclaim-cgroup-6.1.tar.zst")).expect("a recording");
    tar::Archive::new(zstd::Decoder::new(file).expect("zstd")).unpack(&recording).expect("a recording");
    let run = command(["report", "r.mmt", "--cgroup", "/box"]).current_dir(scratch.path()).output();
    golden("filter-cgroup", &String::from_utf8(run.expect("the program").stdout).expect("UTF-8"));
}

//! `report --fleet`: many recordings on one page.

use super::support::{Run, command, mmtwin, root, scratch};
use super::transcripts::{golden, transcript_in};
use parquet::file::reader::SerializedFileReader;
use parquet::record::RowAccessor;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Four recordings in two directories, and a file that is none.
fn some(directory: &Path) {
    let packed = |name: &str| root().join("tests/verdicts").join(format!("{name}.tar.zst"));
    std::fs::create_dir(directory.join("db")).unwrap();
    for (name, to) in [
        ("host-cp", "web1.tar.zst"),
        ("host-wc-loop", "web2.tar.zst"),
        ("host-redis-oom", "db/a.tar.zst"),
        ("host-cp-free", "db/b.tar.zst"),
    ] {
        std::fs::copy(packed(name), directory.join(to)).unwrap();
    }
    std::fs::write(directory.join("cut.dat"), "17.9").unwrap();
}

#[test]
fn one_line_for_each_worst_first_and_what_cannot_be_read() {
    let scratch = scratch();
    some(scratch.path());
    let fleet = ["report", "--fleet", "db", "web1.tar.zst"];
    for (name, arguments, status) in [
        ("fleet", vec!["report", "--fleet", "."], 1),
        ("fleet-all", [&fleet[..], &["--all"]].concat(), 0),
        ("fleet-json", [&fleet[..], &["--format", "json"]].concat(), 0),
        ("fleet-csv", [&fleet[..], &["--format", "csv"]].concat(), 0),
    ] {
        // Lines are broken by the length of names, which would be that of the scratch directory.
        let run = Run::of(command(&arguments).current_dir(scratch.path()).output().unwrap());
        assert_eq!((run.status, run.err.as_str()), (status, ""));
        golden(name, &format!("$ mmtwin {}\n{}", arguments.join(" "), run.text()));
    }
}

#[test]
fn what_cannot_be_a_fleet_is_refused() {
    let scratch = scratch();
    std::fs::create_dir(scratch.path().join("empty")).unwrap();
    std::fs::write(scratch.path().join("there.parquet"), "mine").unwrap();
    transcript_in(scratch.path(), "fleet-empty", &["report", "--fleet", "SCRATCH/empty"]);
    let there = ["report", "--fleet", "SCRATCH/empty", "--index", "SCRATCH/there.parquet"];
    transcript_in(scratch.path(), "fleet-index-exists", &there);
    transcript_in(scratch.path(), "fleet-index-alone", &["report", "x.mmt", "--index", "SCRATCH/there.parquet"]);
    assert_eq!(std::fs::read(scratch.path().join("there.parquet")).unwrap(), b"mine");
}

#[test]
fn the_index_has_a_row_for_each_recording_and_finding() {
    let scratch = scratch();
    some(scratch.path());
    let index = scratch.path().join("index.parquet");
    let run = mmtwin(["report", "--fleet", scratch.path().to_str().unwrap(), "--index", index.to_str().unwrap()]);
    assert_eq!(run.status, 1, "{}", run.err);
    let rows = SerializedFileReader::new(File::open(index).unwrap()).unwrap().into_iter();
    let names: Vec<String> =
        rows.map(|row| row.unwrap().get_string(0).unwrap().rsplit('/').next().unwrap().to_string()).collect();
    for name in ["a.tar.zst", "b.tar.zst", "web1.tar.zst", "web2.tar.zst"] {
        assert!(names.iter().any(|n| n == name), "{names:?}");
    }
}

/// The time and memory of a thousand recordings of 2.2 MB; `make fleet-again`. The bar of time, 30 s, is for an optimised
/// build on a quiet machine, so it is printed only.
#[test]
#[ignore = "takes some minutes"]
fn a_thousand_recordings_fit_in_little_memory() {
    let scratch = scratch();
    let packed = File::open(root().join("tests/verdicts/host-wc-loop.tar.zst")).unwrap();
    let first = scratch.path().join("0.mmt");
    tar::Archive::new(zstd::Decoder::new(packed).unwrap()).unpack(&first).unwrap();
    let mut bytes = 0;
    for n in 0..1000 {
        let to = scratch.path().join(format!("{n}.mmt"));
        bytes += copy(&first, &to);
    }
    let begun = Instant::now();
    let program = std::env::var("MMTWIN_BIN").unwrap_or(env!("CARGO_BIN_EXE_mmtwin").into());
    let mut run = Command::new(program).args(["report", "--fleet"]).arg(scratch.path()).spawn().unwrap();
    let status = format!("/proc/{}/status", run.id());
    let mut peak = String::new();
    let ended = loop {
        // The largest so far; nothing once the program has ended.
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        if let Some(line) = status.lines().find(|line| line.starts_with("VmHWM")) {
            peak = line.into();
        }
        if let Some(ended) = run.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success());
    let kib: u64 = peak.split_whitespace().find_map(|word| word.parse().ok()).expect("a peak");
    assert!(kib < 256 << 10, "{peak}");
    eprintln!("1,000 recordings, {} MB: {:.1} s, {peak}", bytes / 1_000_000, begun.elapsed().as_secs_f64());
}

/// Copies a directory unless it is there; its size.
fn copy(from: &Path, to: &Path) -> u64 {
    let _ = std::fs::create_dir(to);
    let entries = std::fs::read_dir(from).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let to = to.join(entry.file_name());
            match (entry.file_type().unwrap().is_dir(), to.is_file()) {
                (true, _) => copy(&entry.path(), &to),
                (false, true) => entry.metadata().unwrap().len(),
                (false, false) => std::fs::copy(entry.path(), to).unwrap(),
            }
        })
        .sum()
}

//! `mmtwin sweep`: many runs, their table, and how they are continued.

use super::support::{Run, command, mmtwin, scratch, with_signals};
use super::transcripts::golden;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// 24 MiB of which a fifth is used most, on a machine of 96 MiB.
const SMALL: &str = r#"
[machine]
distance = [[10]]
[[machine.node]]
cpus = "0"
memory = "96 MiB"
[machine.swap]
size = "64 MiB"
latency = "100 us"
bandwidth = "500 MB/s"
[kernel]
release = "6.1"
thp = "never"
[[cgroup]]
name = "/box"
[[process]]
name = "server"
cgroup = "/box"
[[process.region]]
name = "heap"
size = "24 MiB"
populate = true
[[process.phase]]
name = "work"
duration = "1 s"
[[process.phase.access]]
region = "heap"
pattern = "hot-cold"
hot = "20 %"
access_share = "95 %"
write = 0.3
think = "20 us"
[run]
sample = "100 ms"
"#;

fn small() -> tempfile::TempDir {
    let scratch = scratch();
    fs::write(scratch.path().join("s.toml"), SMALL).unwrap();
    scratch
}

fn sweep(directory: &Path, arguments: &[&str]) -> Run {
    Run::of(command([&["sweep"], arguments].concat()).current_dir(directory).output().unwrap())
}

/// The transcript of a run in a directory.
fn transcript(name: &str, directory: &Path, arguments: &[&str]) {
    let run = sweep(directory, arguments);
    let err: String = run.err.lines().map(|line| format!("[stderr] {line}\n")).collect();
    let command = arguments.join(" ");
    golden(name, &format!("$ mmtwin sweep {command}\n{}{err}[status {}]\n", run.text(), run.status));
}

const LIMITS: &str = "cgroup./box.memory.max=12MiB..30MiB:4";

#[test]
fn a_table_a_curve_and_the_same_bytes_on_any_number_of_threads() {
    let scratch = small();
    let at = |name: &str| fs::read(scratch.path().join(name)).unwrap();
    let both = ["--set", LIMITS, "--set", "kernel.sysctl.vm.swappiness=60", "--seeds", "1,2"];
    let first = [&["s.toml"], &both[..], &["-o", "a.parquet", "-j", "2", "--curve", "memory.max"]].concat();
    transcript("sweep", scratch.path(), &first);
    assert!(!scratch.path().join("a.parquet.journal").exists());
    let second = [&["s.toml"], &both[..], &["-o", "b.parquet", "-j", "1"]].concat();
    assert_eq!(sweep(scratch.path(), &second).status, 0);
    assert!(at("a.parquet") == at("b.parquet"), "the bytes depend on the number of threads");
    // Continued, with what is missing.
    let one = [&["s.toml"], &both[..4], &["--seeds", "2", "-o", "c.parquet"]].concat();
    assert_eq!(sweep(scratch.path(), &one).status, 0);
    let rest = sweep(scratch.path(), &[&["s.toml"], &both[..], &["-o", "c.parquet"]].concat());
    assert!(rest.err.contains("4 of 8 runs were there"), "{}", rest.err);
    assert!(at("a.parquet") == at("c.parquet"), "the bytes depend on what was there");
    transcript("sweep-report", scratch.path(), &["report", "a.parquet", "--curve", "overview.major_faults"]);
    transcript("sweep-html", scratch.path(), &["report", "a.parquet", "--html", "a.html"]);
    let page = String::from_utf8(at("a.html")).unwrap();
    // A line with four points and their values, and the table below.
    assert_eq!((page.matches("<polyline").count(), page.matches("<circle").count()), (1, 4), "{page}");
    assert!(page.contains("<title>12 MiB: ") && page.contains("<h2>Cases by memory.max"), "{page}");
    transcript("sweep-html-again", scratch.path(), &["report", "a.parquet", "--html", "a.html"]);
    let other = ["report", "a.parquet", "--html", "a.html", "-f", "--curve", "overview.major_faults"];
    assert_eq!(sweep(scratch.path(), &other).status, 0);
    assert_ne!(String::from_utf8(at("a.html")).unwrap(), page);
    // Others than those that are wanted.
    transcript("sweep-other-runs", scratch.path(), &one);
    transcript("sweep-other-keys", scratch.path(), &["s.toml", "--set", LIMITS, "-o", "a.parquet"]);
    transcript("sweep-no-such-curve", scratch.path(), &["report", "a.parquet", "--curve", "memory.min"]);
    fs::write(scratch.path().join("text.parquet"), "mine").unwrap();
    transcript("sweep-no-sweep", scratch.path(), &["s.toml", "--set", LIMITS, "-o", "text.parquet"]);
    assert_eq!(at("text.parquet"), b"mine");
}

#[test]
fn every_fault_is_said_before_the_first_run() {
    let scratch = small();
    let cases = "cgroup./box.memory.max,kernel.thp\n12 MiB,never\n\nmuch,never\n16 MiB,often\n";
    fs::write(scratch.path().join("cases.csv"), cases).unwrap();
    let ranges = ["s.toml", "--set", "kernel.hz=5..5:2", "--set", "kernel.thp=a,,b", "--cases", "none.csv", "-o", "o"];
    transcript("sweep-bad-values", scratch.path(), &ranges);
    transcript("sweep-bad-cases", scratch.path(), &["s.toml", "--cases", "cases.csv", "-o", "o.parquet"]);
    let unknown = ["s.toml", "--set", "kernel.sysctl.vm.swappines=10,20", "-o", "o.parquet"];
    transcript("sweep-unknown-key", scratch.path(), &unknown);
    for curve in ["memory.min", "overview.major_fault"] {
        let run = sweep(scratch.path(), &["s.toml", "--set", LIMITS, "-o", "o.parquet", "--curve", curve]);
        assert!(run.err.contains(&format!("--curve: no key or quantity '{curve}'")), "{}", run.err);
        assert_eq!((run.status, run.text()), (2, ""));
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2, "nothing was written");
}

#[test]
fn a_run_that_runs_out_of_memory_is_a_row_with_its_reason() {
    let scratch = small();
    let sets = ["--set", "machine.swap.size=0 B,64 MiB", "--set", "cgroup./box.memory.max=8MiB", "-o", "o.parquet"];
    transcript("sweep-out-of-memory", scratch.path(), &[&["s.toml"], &sets[..]].concat());
}

/// A signal that asks for an end, and one that cannot be caught.
#[test]
fn finished_runs_survive_signals() {
    let scratch = small();
    let all = ["sweep", "s.toml", "--set", LIMITS, "--seeds", "1..50", "-o", "o.parquet", "-j", "1"];
    let journal = scratch.path().join("o.parquet.journal");
    let rows = || fs::read_to_string(&journal).unwrap_or_default().matches("{\"row\":").count();
    let until = |wanted: usize| {
        let began = Instant::now();
        let mut child = with_signals(command(all).current_dir(scratch.path())).stderr(Stdio::piped()).spawn().unwrap();
        while rows() < wanted && began.elapsed() < Duration::from_secs(60) {
            assert!(child.try_wait().unwrap().is_none(), "all runs have ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    };
    let mut killed = until(2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let kept = rows();
    assert!(kept >= 2 && !scratch.path().join("o.parquet").exists());
    // A line that was cut.
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 9]).unwrap();
    let stopped = until(kept + 1);
    assert!(std::process::Command::new("kill").args(["-INT", &stopped.id().to_string()]).status().unwrap().success());
    let ended = Run::of(stopped.wait_with_output().unwrap());
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert!(ended.err.contains("runs are in o.parquet; the same command continues"), "{}", ended.err);
    assert!(!journal.exists());
    let table = sweep(scratch.path(), &["report", "o.parquet"]);
    assert!(table.text().contains(" of 200 runs"), "{}", table.text());
}

#[test]
fn what_is_no_sweep_is_refused() {
    let usage = mmtwin(["sweep", "s.toml"]);
    assert_eq!(usage.status, 2, "{}", usage.err);
    assert!(usage.err.contains("--output <OUT>"), "{}", usage.err);
    let missing = mmtwin(["sweep", "report", "/none.parquet"]);
    assert_eq!((missing.status, missing.err.contains("/none.parquet")), (1, true), "{}", missing.err);
}

/// CPU seconds of a process of this system: a thread's or all of them, from the `stat` file of `/proc`.
fn cpu(stat: &str) -> f64 {
    let fields: Vec<f64> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    // utime and stime, after the state, which is no number.
    fields.get(10..12).map_or(0.0, |times| times.iter().sum::<f64>() / rustix::param::clock_ticks_per_second() as f64)
}

/// Runs the program, and gives elapsed seconds, CPU seconds of all threads and those of the first.
fn timed(program: &str, directory: &Path, arguments: &[&str]) -> [f64; 3] {
    let begun = Instant::now();
    let mut command = std::process::Command::new(program);
    let mut run = command.arg("sweep").args(arguments).current_dir(directory).stdout(Stdio::null()).spawn().unwrap();
    let id = run.id();
    let stat = |path: String| cpu(&fs::read_to_string(path).unwrap_or_default());
    let (mut all, mut first) = (0.0f64, 0.0f64);
    loop {
        // The largest so far; nothing once the program has ended.
        all = all.max(stat(format!("/proc/{id}/stat")));
        first = first.max(stat(format!("/proc/{id}/task/{id}/stat")));
        if let Some(ended) = run.try_wait().unwrap() {
            assert!(ended.success());
            return [begun.elapsed().as_secs_f64(), all, first];
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Figures of an optimised build on a quiet machine, so all but the CPU time of a run is printed only.
#[test]
#[ignore = "takes some minutes"]
fn a_thousand_runs_take_little_more_than_their_runs() {
    let scratch = small();
    let program = std::env::var("MMTWIN_BIN").unwrap_or(env!("CARGO_BIN_EXE_mmtwin").into());
    let all = ["s.toml", "--set", LIMITS, "--seeds", "1..250", "-f", "-o", "o.parquet", "-j"];
    for threads in ["1", "2", "1", "2"] {
        let [elapsed, all, first] = timed(&program, scratch.path(), &[&all[..], &[threads]].concat());
        // The first thread plans, keeps rows and writes them, and at the end makes the table.
        let [_, table, _] = timed(&program, scratch.path(), &["report", "o.parquet"]);
        let scheduling = 100.0 * (first - table).max(0.0) / all;
        eprintln!(
            "1,000 runs, {threads} threads: {elapsed:.2} s; {all:.2} s of CPU, of which {table:.2} s are the table \
             and {scheduling:.1} % the scheduling"
        );
        assert!(all / 1000.0 < 0.1, "{all} s of CPU");
    }
}

#[test]
fn ray_needs_the_package_and_says_so() {
    let scratch = small();
    let run = |arguments: &[&str]| {
        let all = [&["sweep", "s.toml", "-o", "o.parquet", "--engine", "ray"], arguments].concat();
        Run::of(command(all).env("PATH", scratch.path()).current_dir(scratch.path()).output().unwrap())
    };
    let none = run(&[]);
    let said = "mmtwin: error: --engine ray needs the Python package: pip install 'mmtwin[ray]' (python3: ";
    assert!(none.status == 1 && none.err.starts_with(said), "{}", none.err);
    assert!(!scratch.path().join("o.parquet").exists());
    let jobs = run(&["-j", "2"]);
    assert!(jobs.status == 2 && jobs.err.contains("-j is of --engine local"), "{}", jobs.err);
    let address = sweep(scratch.path(), &["s.toml", "-o", "o.parquet", "--address", "a:1"]);
    assert!(address.status == 2 && address.err.contains("--address is of --engine ray"), "{}", address.err);
}

//! `mmtwin run` on the twin: recordings are the same bytes everywhere, tables are those of the recording, and what
//! cannot be run says why.

use super::support::{mmtwin, ok, report_json, root, scratch, value};
use super::transcripts::transcript_in;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Hash and scenario of every example's recording.
const HASHES: &str = "tests/golden/recordings.txt";

fn examples() -> Vec<PathBuf> {
    let directory = fs::read_dir(root().join("scenarios/examples")).expect("examples");
    let names = directory.map(|entry| entry.expect("an entry").file_name());
    let mut examples: Vec<PathBuf> = names.map(|name| Path::new("scenarios/examples").join(name)).collect();
    examples.sort();
    assert!(examples.len() >= 3);
    examples
}

/// All files below a directory, sorted, as relative path and bytes; without `run.json`, which says who recorded,
/// and the marker, which every recording has.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(directory).expect("below it").to_str().expect("UTF-8").to_string();
            match path.is_dir() {
                true => waiting.push(path),
                false if name == "run.json" || name == "mmtwin.recording" => {}
                false => found.push((name, fs::read(&path).expect("a file"))),
            }
        }
    }
    found.sort();
    found
}

fn record(scenario: &Path, output: &Path) -> Vec<(String, Vec<u8>)> {
    ok([
        "run".as_ref(),
        scenario.as_os_str(),
        "-o".as_ref(),
        output.as_os_str(),
        "--table".as_ref(),
        "workload".as_ref(),
    ]);
    files(output)
}

fn hash(files: &[(String, Vec<u8>)]) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, bytes) in files {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    hasher.finalize().to_hex().to_string()
}

#[test]
fn recordings_are_the_same_bytes_everywhere() {
    let scratch = scratch();
    let mut text = String::new();
    for example in examples() {
        let name = example.file_stem().and_then(|name| name.to_str()).expect("UTF-8");
        let [first, second] = [1, 2].map(|run| record(&example, &scratch.path().join(format!("{name}.{run}"))));
        for (one, two) in first.iter().zip(&second) {
            assert_eq!(one.0, two.0, "{name}: the same files");
            assert!(one.1 == two.1, "{name}: {} differs from run to run", one.0);
        }
        assert_eq!(first.len(), second.len());
        let _ = writeln!(text, "{}  {}", hash(&first), example.display());
    }
    let golden = root().join(HASHES);
    if std::env::var_os("MMTWIN_GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&golden, text).expect("hashes are written");
        return;
    }
    let expected = fs::read_to_string(&golden).expect("hashes");
    assert_eq!(text, expected, "a recording has changed; MMTWIN_GOLDEN=write accepts it");
}

#[test]
fn a_recording_is_read_as_the_run_was_told() {
    let scratch = scratch();
    let output = scratch.path().join("rec");
    let tables = "workload,vmstat,numastat,zoneinfo,vmalloc";
    for example in ["scenarios/examples/vmalloc-purge-small.toml", "scenarios/examples/interleave-memoryless.toml"] {
        let json = ["--format", "json", "--table", tables];
        let run = [&["run", example, "-f", "-o", output.to_str().expect("UTF-8")], &json[..]].concat();
        let report = [&["report", output.to_str().expect("UTF-8")], &json[..]].concat();
        let [run, report] =
            [run, report].map(|arguments| serde_json::from_str::<serde_json::Value>(&ok(arguments)).expect("JSON"));
        assert_eq!(run["tables"], report["tables"], "{example}");
        assert!(run["tables"].as_array().is_some_and(|tables| tables.len() >= 4), "{example}");
        assert_eq!(run["inputs"], report["inputs"], "{example}");
        assert_eq!(run["inputs"][0]["arm"], "twin");
    }
}

#[test]
fn two_runs_are_compared_on_request() {
    let run =
        mmtwin(["run", "scenarios/examples/vmalloc-purge-small.toml", "--check-determinism", "--table", "vmalloc"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.err.contains("both runs have the same events and counters"), "{}", run.err);
}

#[test]
fn another_seed_is_another_run() {
    let with =
        |seed: &str| ok(["run", "scenarios/examples/vmalloc-purge-small.toml", "--set", seed, "--table", "vmalloc"]);
    assert_ne!(with("run.seed=1"), with("run.seed=2"));
}

/// A scenario of one process on a small machine.
fn scenario(machine: &str, process: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\n{machine}[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n[[process]]\nname = \"p\"\n{process}"
    )
}

const SMALL: &str = "[[machine.node]]\ncpus = \"0-1\"\nmemory = \"64 MiB\"\n";

/// Runs a text as a scenario; its file is `s.toml`.
fn run(text: &str, more: &[&str]) -> super::support::Run {
    let scratch = scratch();
    let path = scratch.path().join("s.toml");
    fs::write(&path, text).expect("a file");
    mmtwin(["run", path.to_str().expect("UTF-8")].iter().chain(more).copied())
}

#[test]
fn want_of_memory_ends_with_the_counters_so_far() {
    let region = "[[process.region]]\nname = \"r\"\nsize = \"1 GiB\"\npopulate = true\n";
    let run = run(&scenario(SMALL, region), &["--table", "findings,workload,placement,vmstat"]);
    assert_eq!(run.status, 5, "{}", run.err);
    assert!(run.err.contains("error: out of memory after 0.0"), "{}", run.err);
    let message = "page allocation failure: order:0, mode:GFP_HIGHUSER_MOVABLE|__GFP_ZERO, CPU 0";
    assert!(run.text().contains(message) && run.err.contains(message), "{}", run.text());
    assert!(run.text().contains("pgfault") && run.text().contains("p/populate"), "{}", run.text());
}

#[test]
fn who_is_killed_is_named_and_the_others_go_on() {
    let (scratch, scenario) = (scratch(), "scenarios/guide/out-of-memory.toml");
    let tables = "workload,oom,oom-victims,cgroup";
    let run = ["run", scenario, "-o", "SCRATCH/o.mmt", "--table", tables];
    transcript_in(scratch.path(), "run-out-of-memory", &run);
    // The recording is complete.
    transcript_in(scratch.path(), "script-out-of-memory", &["script", "SCRATCH/o.mmt", "-e", "mark_victim"]);
}

#[test]
fn impossible_machines_and_unknown_words_are_told_with_their_place() {
    let process = "";
    let cases: [(&str, &[&str], &str); 8] = [
        ("distance = [[10, 20]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n", &[], "s.toml:3:"),
        ("distance = [[11]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n", &[], "s.toml:3:"),
        ("[[machine.node]]\ncpus = \"0,2\"\nmemory = \"1 GiB\"\n", &[], "s.toml:3:1: CPU 1 is in no node"),
        ("[[machine.node]]\ncpus = \"0\"\n", &[], "s.toml:"),
        (SMALL, &["--set", "kernel.vmstat.threshold=0"], "kernel.vmstat.threshold"),
        (SMALL, &["--set", "kernel.vmstat.numa_counters=separate-u8"], "separate-u8"),
        (SMALL, &["--set", "run.duration=99999999999 s"], "run.duration"),
        (SMALL, &["--set", "process.p.threads=0"], "process.p.threads"),
    ];
    for (machine, sets, place) in cases {
        let run = run(&scenario(machine, process), sets);
        assert_eq!((run.status, run.text()), (1, ""), "{machine}{sets:?}");
        assert!(run.err.contains(place), "{machine}{sets:?}: {}", run.err);
    }
}

#[test]
fn what_the_twin_does_not_do_is_said_before_anything_is_written() {
    let scratch = scratch();
    let output = scratch.path().join("rec");
    let region = "[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\nhuge = \"hugetlb\"\n";
    let run = run(&scenario(SMALL, region), &["-o", output.to_str().expect("UTF-8")]);
    assert_eq!(run.status, 1);
    let message = "error: region \"r\" of process \"p\": huge = \"hugetlb\": not modelled; there are no \
                   reserved huge pages";
    assert!(run.err.contains(message), "{}", run.err);
    assert!(!output.exists());
}

/// One program, three readers: a machine that executes it, the twin access by access, and the twin by rates.
#[test]
fn three_readers_of_a_program_agree() {
    let patterns = [
        "pattern = \"sequential\"\nwrite = 1.0\ncount = 5000",
        "pattern = \"uniform\"\nwrite = 0.5\ncount = 6000",
        "pattern = \"zipf\"\nskew = 0.9\nwrite = 0.7\ncount = 9000",
    ];
    for pattern in patterns {
        let process = format!(
            "[[process.region]]\nname = \"r\"\nsize = \"16 MiB\"\nhuge = \"never\"\n[[process.phase]]\n\
             [[process.phase.access]]\nregion = \"r\"\n{pattern}\n"
        );
        let machine = "[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"\n";
        let text = scenario(machine, &process);
        let both = ["--table", "workload,placement", "--format", "json"];
        let read = |how: &[&str]| {
            let run = run(&text, &[&both[..], how].concat());
            assert_eq!(run.status, 0, "{pattern}: {}", run.err);
            let json: serde_json::Value = serde_json::from_str(run.text()).expect("JSON");
            let placement =
                json["tables"].as_array().and_then(|tables| tables.iter().find(|t| t["name"] == "placement"));
            let pages = placement.and_then(|table| table["rows"][0][2].as_u64()).expect("pages on node 0");
            let rows = json["tables"][0]["rows"].as_array().expect("rows").clone();
            let accesses =
                rows.iter().find(|row| row["label"].as_str().is_some_and(|label| label.ends_with(": accesses")));
            (pages, accesses.and_then(|row| row["values"][0].as_u64()).expect("accesses"))
        };
        let (host, explicit, sampled) = (read(&["--on", "host"]), read(&["--explicit"]), read(&[]));
        assert_eq!(host, explicit, "{pattern}: the machine and the twin access by access");
        assert_eq!(sampled.1, explicit.1, "{pattern}");
        // The number of pages that chance brings in has a variance below its mean.
        let error = sampled.0.abs_diff(explicit.0) as f64;
        let exact = pattern.contains("sequential");
        assert!(
            if exact { error == 0.0 } else { error < 5.0 * (2.0 * explicit.0 as f64).sqrt() },
            "{pattern}: {sampled:?} {explicit:?}"
        );
    }
}

#[test]
fn the_times_of_a_run_are_known_in_its_report() {
    let scratch = scratch();
    let recorded = scratch.path().join("rec");
    let scenario = "scenarios/fidelity/reclaim-stream-read.toml";
    ok(["run", scenario, "--set", "run.duration=\"3 s\"", "-o", recorded.to_str().expect("UTF-8")]);
    let report = report_json(&recorded, ["--table", "duration"]);
    let [user, system, elapsed] = ["user", "system", "elapsed"].map(|key| value(&report, "duration", key));
    let (user, system, elapsed) = (user.expect("user"), system.expect("system"), elapsed.expect("elapsed"));
    assert!(
        (2.9..3.2).contains(&elapsed) && user + system <= 2.0 * elapsed && system > 1.0,
        "{user} {system} {elapsed}"
    );
    // The run itself says the same.
    let json = ok(["run", scenario, "--set", "run.duration=\"3 s\"", "--table", "duration", "--format", "json"]);
    let run: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value(&run, "duration", "elapsed"), Some(elapsed));
}

#[test]
fn a_run_begins_where_a_recording_began() {
    let scratch = scratch();
    let held = scratch.path().join("held.mmt");
    let packed = root().join("tests/data/recordings/reclaim-cgroup-6.1.tar.zst");
    let stream = zstd::Decoder::new(std::fs::File::open(packed).expect("a recording")).expect("Zstandard");
    tar::Archive::new(stream).unpack(&held).expect("a recording");
    let (scenario, held) = ("scenarios/fidelity/reclaim-cgroup.toml", held.to_str().expect("UTF-8"));
    let free = |more: &[&str]| {
        let set = "run.duration=\"1 ms\"";
        let csv = ok([&["run", scenario, "--set", set, "--file", "buddyinfo"], more].concat());
        let pages = |line: &str| {
            let counts = line.split_whitespace().skip(4).map(|n| n.parse::<u64>().expect("a number"));
            counts.enumerate().map(|(order, n)| n << order).sum::<u64>()
        };
        csv.lines().map(pages).sum::<u64>()
    };
    let (boot, begun) = (free(&[]), free(&["--from-state", held]));
    assert!((235_000..236_000).contains(&begun) && boot > begun + 10_000, "{boot} {begun}");
    let refused = mmtwin(["run", scenario, "--on", "host", "--from-state", held]);
    assert_eq!(refused.status, 2, "{}", refused.err);
    // Of another machine nothing is begun.
    let output = scratch.path().join("rec");
    let output = output.to_str().expect("UTF-8");
    let other = "scenarios/examples/interleave-memoryless.toml";
    let refused = mmtwin(["run", other, "--from-state", held, "-o", output]);
    assert_eq!(refused.status, 1, "{}", refused.err);
    let said = format!("error: {held}: the state is of another machine than the scenario's: nodes: 1 recorded, ");
    assert!(refused.err.contains(&said) && refused.err.contains("CPUs: 2 recorded, "), "{}", refused.err);
    assert!(!std::path::Path::new(output).exists());
}

#[test]
fn a_run_that_gets_nowhere_ends_with_an_error_and_its_tables() {
    let scratch = scratch();
    let (scenario, output) = (scratch.path().join("still.toml"), scratch.path().join("still.mmt"));
    // Reading the file takes no time on this machine, and is done over and over.
    let text = "[machine]\nname = \"m\"\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"64 MiB\"\n\
                [machine.cost]\nstat_file = \"0 ns\"\nstat_row = \"0 ns\"\ncounter_read = \"0 ns\"\n\
                [kernel]\nrelease = \"6.1\"\n[[process]]\nname = \"reader\"\nstart = \"3 ms\"\n[[process.phase]]\n\
                duration = \"5 ms\"\n[[process.phase.action]]\nkind = \"read\"\nfile = \"buddyinfo\"\ninterval = \"0 ns\"\n";
    fs::write(&scenario, text).expect("a scenario");
    let run = mmtwin(["run".as_ref(), scenario.as_os_str(), "-o".as_ref(), output.as_os_str()]);
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.err.contains("got nowhere") && run.err.contains("0.003000000 s"), "{}", run.err);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(run.err.contains("reader (pid 1000)") && words(run.text()).contains("got nowhere"), "{}", run.err);
    let report = ok(["report".as_ref(), output.as_os_str()]);
    assert!(words(&report).contains("got nowhere"), "{report}");
}

#[test]
fn marks_above_what_lists_may_hold_are_no_panic() {
    for (memory, sysctl) in [
        ("4 MiB", "vm.watermark_scale_factor=1000"),
        ("1 GiB", "vm.watermark_scale_factor=1000"),
        ("8 GiB", "vm.watermark_scale_factor=3000"),
        ("256 MiB", "vm.min_free_kbytes=67584"),
    ] {
        for release in ["6.9", "6.12", "6.18"] {
            let scratch = scratch();
            let scenario = scratch.path().join("marks.toml");
            let (name, value) = sysctl.split_once('=').expect("a value");
            let text = format!(
                "[machine]\nname = \"m\"\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"{memory}\"\n\
                 [kernel]\nrelease = \"{release}\"\nsysctl = {{ \"{name}\" = {value} }}\n[[process]]\nname = \"p\"\n\
                 [[process.region]]\nname = \"h\"\nsize = \"8 MiB\"\npopulate = true\n[[process.phase]]\n\
                 duration = \"1 ms\"\n"
            );
            fs::write(&scenario, text).expect("a scenario");
            let run = mmtwin(["run".as_ref(), scenario.as_os_str(), "--table".as_ref(), "workload".as_ref()]);
            assert!(matches!(run.status, 0 | 5), "{memory} {sysctl} {release}: {} {}", run.status, run.err);
        }
    }
}

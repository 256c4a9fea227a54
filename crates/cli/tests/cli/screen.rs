//! What people see first: one screen of any input, topics, the newest recording, the pager.

use super::support::{V6, V7, command, installed, mmtwin, ok, recording, root, scratch};
use super::transcripts::transcript_in;
use std::path::{Path, PathBuf};

/// Unpacks the recordings that the tests have, into a directory.
fn unpacked(scratch: &Path) -> Vec<PathBuf> {
    let folder = root().join("tests/data/recordings");
    let mut packed: Vec<PathBuf> =
        folder.read_dir().expect("recordings").map(|entry| entry.expect("an entry").path()).collect();
    packed.sort();
    let unpack = |packed: &PathBuf| {
        let name = packed.file_name().and_then(|name| name.to_str()).expect("a name");
        let output = scratch.join(name.replace(".tar.zst", ".mmt"));
        let file = std::fs::File::open(packed).expect("a recording");
        let plain = zstd::Decoder::new(file).expect("zstd");
        tar::Archive::new(plain).unpack(&output).expect("a recording");
        output
    };
    packed.iter().map(unpack).collect()
}

/// Every sample input of the tests.
fn samples(scratch: &Path) -> Vec<PathBuf> {
    let mut samples = unpacked(scratch);
    samples.extend([V6, V7, "tests/data/host-6.18.dat", "tests/data/postprocess-6.1.txt.gz"].map(PathBuf::from));
    samples.push("tests/data/unknown-6.18.txt.gz".into());
    let findings = root().join("tests/data/findings");
    let names = findings.read_dir().expect("findings").map(|entry| entry.expect("an entry").path());
    samples.extend(names.filter(|path| path.to_string_lossy().ends_with(".txt.gz")));
    samples
}

/// Columns of the widest line.
fn widest(text: &str) -> (usize, &str) {
    let lines = text.lines().map(|line| (line.chars().count(), line));
    lines.max().expect("a line")
}

fn printed(columns: Option<&str>, arguments: &[&Path]) -> String {
    let mut command = command(arguments);
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    let output = command.output().expect("the program");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_sample_fits_one_screen() {
    let scratch = scratch();
    let samples = samples(scratch.path());
    assert!(samples.len() > 15, "{samples:?}");
    for sample in &samples {
        for (columns, width) in [(Some("60"), 60), (None, 80), (Some("200"), 100)] {
            let text = printed(columns, &[Path::new("report"), sample]);
            let lines = text.lines().count();
            assert!((5..=40).contains(&lines), "{}: {lines} lines\n{text}", sample.display());
            assert!(widest(&text).0 <= width, "{} of {width}: {}\n{text}", sample.display(), widest(&text).1);
        }
    }
}

#[test]
fn every_comparison_fits_one_screen() {
    let scratch = scratch();
    let samples = samples(scratch.path());
    for pair in samples.windows(2) {
        for (columns, width) in [(Some("60"), 60), (None, 80)] {
            let text = printed(columns, &[Path::new("compare"), &pair[0], &pair[1]]);
            let lines = text.lines().count();
            assert!((5..=40).contains(&lines), "{pair:?}: {lines} lines\n{text}");
            assert!(widest(&text).0 <= width, "{pair:?} of {width}: {}\n{text}", widest(&text).1);
        }
    }
}

/// A twin beside the lab's run of the same scenario: whether it began with the guest's memory.
#[test]
fn a_twin_beside_the_lab_says_where_it_began() {
    let scratch = scratch();
    let lab = unpacked(scratch.path()).into_iter().find(|path| path.ends_with("reclaim-cgroup-6.1.mmt"));
    let lab = lab.expect("a recording of the lab");
    let (alone, continued) = (scratch.path().join("alone.mmt"), scratch.path().join("continued.mmt"));
    let scenario = Path::new("scenarios/fidelity/reclaim-cgroup.toml");
    let run = |output: &Path, more: &[&Path]| {
        let arguments = [Path::new("run"), scenario, Path::new("-o"), output, "--table".as_ref(), "workload".as_ref()];
        ok([&arguments[..], more].concat());
    };
    run(&alone, &[]);
    run(&continued, &["--from-state".as_ref(), &lab]);
    let compare = |twin: &Path| ok([Path::new("compare"), &lab, twin]).replace('\n', " ");
    assert!(compare(&alone).contains("--from-state"), "{}", compare(&alone));
    let text = compare(&continued);
    assert!(text.contains("The twin began with the free memory that the lab's kernel had."), "{text}");
}

#[test]
fn topics_fit_the_width() {
    let scratch = scratch();
    let mut samples = unpacked(scratch.path());
    samples.extend(["tests/data/host-6.18.dat".into(), PathBuf::from(recording("writeback-6.18"))]);
    const TOPICS: [&str; 12] = [
        "reclaim",
        "cgroup",
        "psi",
        "numa",
        "vmalloc",
        "alloc",
        "stacks",
        "compaction",
        "oom",
        "counters",
        "findings",
        "workload",
    ];
    for sample in &samples {
        for topic in TOPICS {
            for (columns, width) in [("60", 60), ("80", 80)] {
                let text = printed(Some(columns), &[Path::new("report"), sample, Path::new(topic)]);
                assert!(widest(&text).0 <= width, "{} {topic}: {}", sample.display(), widest(&text).1);
            }
        }
    }
}

#[test]
fn screens_and_topics() {
    let scratch = scratch();
    let recordings = unpacked(scratch.path());
    let name = |at: &Path| format!("SCRATCH/{}", at.file_name().and_then(|name| name.to_str()).expect("a name"));
    transcript_in(scratch.path(), "screen-host", &["report", "tests/data/host-6.18.dat"]);
    transcript_in(scratch.path(), "screen-several", &["report", V6, &recording("slab-6.18")]);
    for recording in &recordings {
        let stem = recording.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        // Paths of a scratch directory differ in length: it is the current directory.
        let run = command(["report", &name(recording).replace("SCRATCH/", "")]).current_dir(scratch.path()).output();
        let text = String::from_utf8(run.expect("the program").stdout).expect("UTF-8");
        super::transcripts::golden(&format!("screen-{stem}"), &text);
    }
    transcript_in(scratch.path(), "topic-reclaim", &["report", "tests/data/host-6.18.dat", "reclaim"]);
    transcript_in(scratch.path(), "topic-findings", &["report", &recording("lost-6.18"), "findings"]);
    transcript_in(scratch.path(), "topic-nothing", &["report", V6, "vmalloc"]);
    transcript_in(scratch.path(), "topic-with-table", &["report", V6, "vmalloc", "--table", "reclaim"]);
    transcript_in(scratch.path(), "topic-historic", &["report", V6, "vmalloc", "--style", "historic"]);
}

/// A topic narrows the other formats to its tables, with exact values; `--all` leaves numbers as they are.
#[test]
fn topics_of_other_formats_are_exact() {
    let report = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&ok([&["report", V6], arguments].concat())).expect("JSON")
    };
    let names = |report: &serde_json::Value| -> Vec<String> {
        let tables = report["tables"].as_array().expect("tables").iter();
        tables.map(|table| table["name"].as_str().expect("a name").to_string()).collect()
    };
    let (all, topic) = (report(&["--format", "json"]), report(&["reclaim", "--format", "json"]));
    assert!(names(&all).iter().any(|name| name == "mmtests-vmstat") && names(&all).len() > 40);
    assert!(names(&topic).iter().all(|name| !name.starts_with("mmtests")) && names(&topic).len() > 3);
    for table in topic["tables"].as_array().expect("tables") {
        assert!(all["tables"].as_array().expect("tables").contains(table), "{}", table["name"]);
    }
}

#[test]
fn without_an_input_the_newest_recording_here() {
    let scratch = scratch();
    let none = command(["report"]).current_dir(scratch.path()).output().expect("the program");
    assert_eq!(none.status.code(), Some(2));
    let message = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(message.contains("`mmtwin record -- CMD` makes one"), "{message}");
    let recordings = unpacked(scratch.path());
    let of_time = |path: &Path, seconds: u64| {
        let manifest = std::fs::File::options().append(true).open(path.join("manifest.json")).expect("a manifest");
        manifest.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).expect("a time");
    };
    recordings.iter().for_each(|recording| of_time(recording, 1_000));
    of_time(&recordings[1], 2_000);
    std::fs::create_dir(scratch.path().join("empty.mmt")).expect("a directory");
    let run = |arguments: &[&str]| {
        let run = command(arguments).current_dir(scratch.path()).output().expect("the program");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).expect("UTF-8")
    };
    let name = recordings[1].file_name().and_then(|name| name.to_str()).expect("a name");
    let said = run(&["report"]);
    assert!(said.starts_with(&format!("{name} (newest recording here): ")), "{said}");
    assert!(run(&["report", "counters"]).starts_with(name));
}

/// A file that is called like a topic is an input by its path.
#[test]
fn a_file_of_the_name_of_a_topic() {
    let scratch = scratch();
    std::fs::copy(root().join(V6), scratch.path().join("numa")).expect("a file");
    let run = command(["report", "./numa"]).current_dir(scratch.path()).output().expect("the program");
    assert!(String::from_utf8_lossy(&run.stdout).starts_with("./numa: imported trace"), "{run:?}");
    let run = command(["report", "numa"]).current_dir(scratch.path()).output().expect("the program");
    assert_eq!(run.status.code(), Some(2), "a topic of the newest recording");
}

/// Runs the program on a terminal of some size, as `script` makes one.
fn on_a_terminal(rows: u32, arguments: &str, pager: &str) -> Option<String> {
    if !installed("the pager", "script") {
        return None;
    }
    let program = env!("CARGO_BIN_EXE_mmtwin");
    let line = format!("stty rows {rows} cols 80; {program} {arguments}");
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(root()).env_remove("COLUMNS").env("MMTWIN_PAGER", pager);
    let output = script.stdin(std::process::Stdio::null()).output().expect("script");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_pager_only_where_text_is_longer_than_the_terminal() {
    let report = "report tests/data/host-6.18.dat";
    let pager = "sed s/^/paged:/";
    let Some(short) = on_a_terminal(10, report, pager) else { return };
    assert!(short.contains("paged:339 ms elapsed"), "{short}");
    let refused = on_a_terminal(10, &format!("{report} --no-pager"), pager).expect("a terminal");
    let tall = on_a_terminal(60, report, pager).expect("a terminal");
    let missing = on_a_terminal(10, report, "no-such-pager-here").expect("a terminal");
    for plain in [refused, tall, missing] {
        assert!(plain.contains("tests/data/host-6.18.dat") && !plain.contains("paged:"), "{plain}");
    }
    // In a pipe there is none.
    let mut piped = command(report.split(' '));
    let piped = piped.env("MMTWIN_PAGER", pager).output().expect("the program");
    assert!(!String::from_utf8_lossy(&piped.stdout).contains("paged:"));
    assert_eq!(mmtwin(report.split(' ')).status, 0);
}

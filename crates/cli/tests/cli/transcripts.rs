//! Golden transcripts: what the program prints, and how it ends, word for word.
//!
//! They are in `tests/golden`. `MMTWIN_GOLDEN=write` regenerates them; the difference is then for git to show.

use super::support::{V6, V7, command, installed, mmtwin, recording, root, scratch};
use std::fmt::Write;
use std::path::Path;

/// Runs the program and compares with the transcript of this name. `SCRATCH` in arguments stands for a directory.
fn transcript(name: &str, arguments: &[&str]) {
    transcript_in(scratch().path(), name, arguments);
}

/// The same with a directory that `SCRATCH` stands for.
pub fn transcript_in(scratch: &Path, name: &str, arguments: &[&str]) {
    let directory = scratch.to_str().expect("UTF-8");
    let run = mmtwin(arguments.iter().map(|a| a.replace("SCRATCH", directory)));
    let mut text = String::from("$ mmtwin");
    for argument in arguments {
        let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,:".contains(c));
        let _ = if plain { write!(text, " {argument}") } else { write!(text, " '{argument}'") };
    }
    let _ = write!(text, "\n{}", run.text());
    for line in run.err.lines() {
        let _ = writeln!(text, "[stderr] {line}");
    }
    let _ = writeln!(text, "[status {}]", run.status);
    golden(name, &text.replace(directory, "SCRATCH"));
}

/// Compares a text with the transcript of this name, or writes it.
pub fn golden(name: &str, text: &str) {
    let path = root().join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("MMTWIN_GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(&path, text).expect("a transcript is written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if expected != text {
        let (at, pair) = expected
            .lines()
            .map(Some)
            .chain([None])
            .zip(text.lines().map(Some).chain([None]))
            .enumerate()
            .find(|(_, (a, b))| a != b)
            .expect("texts that differ have a line that differs");
        panic!(
            "tests/golden/{name}.txt differs in line {}\n expected: {:?}\n      got: {:?}\nMMTWIN_GOLDEN=write accepts it",
            at + 1,
            pair.0,
            pair.1
        );
    }
}

#[test]
fn report_of_a_trace_dat() {
    transcript("report-dat", &["report", V6, "--all"]);
    transcript("report-csv", &["report", V6, "--format", "csv", "--table", "reclaim,process"]);
    transcript("report-json", &["report", V7, "--format", "json", "--table", "reclaim,latency-cgroup"]);
}

#[test]
fn report_of_text_with_counters() {
    let counters = "tests/data/findings/cgroup-6.18.before.vmstat,tests/data/findings/cgroup-6.18.after.vmstat";
    transcript(
        "report-text-counters",
        &["report", &recording("cgroup-6.18"), "--counters", counters, "--times", "1.5,3.25,60"],
    );
    transcript(
        "report-recorded",
        &["report", &recording("kswapd-6.1"), "--recorded", "vmscan:*", "--table", "vmscan,throttle"],
    );
}

#[test]
fn report_of_function_graph() {
    transcript("report-fgraph", &["report", &recording("vmalloc-6.12-fgraph"), "--table", "findings,vmalloc"]);
}

#[test]
fn report_of_several_inputs() {
    transcript("report-several", &["report", V6, &recording("slab-6.18"), "--table", "latency,slab"]);
}

#[test]
fn historic_layouts() {
    transcript("historic", &["report", "--style", "historic", "tests/data/postprocess-6.1.txt.gz"]);
    transcript("historic-refused", &["report", "--style", "historic", "--table", "slab", V6]);
}

#[test]
fn lost_events_and_the_exit_status() {
    let lost = recording("lost-6.18");
    transcript("max-lost", &["report", &lost, "--max-lost", "0", "--table", "lost-events"]);
    transcript("max-lost-none", &["report", V6, "--max-lost", "0", "--table", "lost-events"]);
}

#[test]
fn comparisons() {
    let [cgroup, writeback, slab, lost] = ["cgroup-6.18", "writeback-6.18", "slab-6.18", "lost-6.18"].map(recording);
    transcript("compare", &["compare", &cgroup, &writeback, "--table", "reclaim-cgroup,vmscan"]);
    let columns = ["base=tests/data/postprocess-6.1.txt.gz", "new=tests/data/postprocess-6.1.txt.gz"];
    transcript("compare-historic", &[&["compare", "--style", "historic"], &columns[..]].concat());
    let base = format!("base={V6},{slab},{writeback}");
    let new = format!("new={cgroup},{lost},{V7}");
    transcript("compare-runs", &["compare", &base, &new, "--table", "reclaim-cgroup"]);
    transcript("compare-runs-json", &["compare", &base, &new, "--table", "reclaim-cgroup", "--format", "json"]);
    let fail = ["compare", &writeback, &cgroup, "--table", "reclaim-cgroup", "--fail-on"];
    transcript("compare-fail-on", &[&fail[..], &["reclaim-cgroup.scanned > +10%"]].concat());
    transcript("compare-fail-on-passes", &[&fail[..], &["reclaim-cgroup.scanned < -10%"]].concat());
    transcript("compare-fail-on-unknown-row", &[&fail[..], &["reclaim-cgroup.scaned > +10%"]].concat());
    transcript("compare-fail-on-renamed-row", &[&fail[..], &["reclaim-cgroup.kept > +10%"]].concat());
    let both = ["compare", &writeback, &cgroup];
    transcript(
        "compare-fail-on-glob",
        &[&both[..], &["-t", "latency", "--fail-on", "process.*.stalled worse > 5%"]].concat(),
    );
    let few = "any significant worse > 5%";
    transcript("compare-fail-on-too-few", &["compare", &base, &new, "--fail-on", few]);
    transcript("compare-screen", &both);
    transcript("compare-screen-runs", &["compare", &base, &new]);
    transcript("compare-topic", &[&both[..], &["reclaim"]].concat());
    transcript("compare-several", &["compare", &cgroup, &writeback, &slab]);
    transcript("report-keys", &["report", V6, "reclaim", "--keys"]);
    transcript("report-keys-of-nothing", &["report", "oom", "--keys"]);
    transcript("compare-fail-on-unreadable", &[&fail[..], &["more, please"]].concat());
}

#[test]
fn scripts() {
    transcript("script-kernel", &["script", V7]);
    transcript("script-trace-cmd", &["script", V7, "--style", "trace-cmd"]);
    let reclaim = "tests/data/postprocess-6.1.txt.gz";
    transcript("script-some", &["script", reclaim, "-e", "vmscan:*kswapd*,mm_vmscan_direct*", "--until", "70.3"]);
}

#[test]
fn runs() {
    let pages = "scenarios/examples/numastat-pages.toml";
    transcript("run-pages", &["run", pages, "--table", "workload,numastat"]);
    transcript("run-vmalloc", &["run", "scenarios/examples/vmalloc-purge-small.toml"]);
    transcript("run-numastat", &["run", "scenarios/examples/interleave-memoryless.toml", "--file", "numastat"]);
    transcript("run-zoneinfo", &["run", pages, "--file", "zoneinfo"]);
    transcript("run-no-file", &["run", "none.toml"]);
}

#[test]
fn conversions() {
    let oom = recording("oom-6.18");
    transcript("convert", &["convert", &oom, "-o", "SCRATCH/out.dat"]);
    transcript("convert-skipped", &["convert", &recording("vmalloc-6.12-fgraph"), "-o", "SCRATCH/out.dat"]);
    transcript("convert-no-format", &["convert", V6, "-o", "SCRATCH/out"]);
    transcript("convert-exists", &["convert", V6, "-o", "LICENSE-MIT", "--format", "text"]);
    transcript("convert-no-directory", &["convert", V6, "-o", "SCRATCH/none/out.txt"]);
}

/// A disk that is full by the last byte, which compressors write when they are reported to finish.
#[test]
fn what_cannot_be_written_is_an_error() {
    let test = "what_cannot_be_written_is_an_error";
    if !installed(test, "prlimit") {
        return;
    }
    let scratch = scratch();
    for name in ["out.txt", "out.txt.gz", "out.txt.zst", "out.dat"] {
        let output = scratch.path().join(name);
        let convert = [Path::new("convert"), Path::new(V6), Path::new("-o"), &output];
        assert_eq!(mmtwin(convert).status, 0);
        let length = output.metadata().expect("the output").len();
        std::fs::remove_file(&output).expect("it can go");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec prlimit \"$@\"", "sh", &format!("--fsize={}", length - 1)]);
        let run = shell.arg(env!("CARGO_BIN_EXE_mmtwin")).args(convert).current_dir(root()).output().expect("sh");
        let message = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{name}: {message}");
        assert!(message.contains(name) && message.contains("too large"), "{message}");
        assert_eq!(scratch.path().read_dir().expect("the directory").count(), 0, "{name}");
    }
}

/// What converting replaces, it replaces only when it is reported to.
#[test]
fn nothing_is_overwritten_without_force() {
    let scratch = scratch();
    let output = scratch.path().join("out.txt");
    std::fs::write(&output, "precious").expect("a file");
    let convert = |more: &[&Path]| {
        let arguments = [Path::new("convert"), Path::new(V6), Path::new("-o"), &output];
        mmtwin([&arguments[..], more].concat())
    };
    let refused = convert(&[]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("out.txt: exists; -f replaces it"), "{}", refused.err);
    assert_eq!(std::fs::read(&output).expect("the file"), b"precious");
    assert_eq!(convert(&[Path::new("-f")]).status, 0);
    assert!(std::fs::read_to_string(&output).expect("the file").contains("mm_vmscan_"));
    let left: Vec<_> = scratch.path().read_dir().expect("the directory").map(|e| e.expect("an entry").path()).collect();
    assert_eq!(left, [output]);
}

#[test]
fn errors() {
    transcript("error-missing-file", &["report", "no/such/trace.dat"]);
    transcript("error-directory-of-nothing", &["report", "SCRATCH"]);
    transcript("error-directory-of-several", &["report", "crates/trace/tests/data"]);
    transcript("error-unknown-table", &["report", V6, "--table", "reclam"]);
    transcript("error-renamed-table", &["report", V6, "--table", "reclaim-where"]);
    transcript("error-counters-missing", &["report", V6, "--counters", "before,after"]);
    transcript("error-no-dat", &["report", "LICENSE-MIT"]);
    transcript("usage-no-input", &["report"]);
    transcript("usage-no-input-of-topic", &["report", "numa"]);
    transcript("usage-one-input", &["compare", V6]);
    transcript("compare-historic-format", &["compare", V6, V7, "--style", "historic", "--format", "json"]);
    transcript("compare-historic-table", &["compare", V6, V7, "--style", "historic", "--table", "reclaim"]);
    transcript("usage-unknown-option", &["report", V6, "--tabel", "reclaim"]);
    transcript("usage-unknown-verb", &["reprot", V6]);
    transcript("usage-reproduce", &["reproduce", "vmaloc-purge"]);
    transcript("usage-reproduce-docs", &["reproduce", "explain-2012", "--write-docs"]);
    transcript("usage-reproduce-seeds", &["reproduce", "--by-patch", "--seeds", "0"]);
    transcript("usage-reproduce-historic", &["reproduce", "numa-counters", "--style", "historic", "--format", "csv"]);
    let variant = |file: &'static str| ["reproduce", "numa-counters", "--variant", file];
    transcript("reproduce-variant-no-base", &variant("kernels/4.13.toml"));
    transcript("reproduce-variant-other-base", &variant("kernels/3.4.toml"));
    transcript("reproduce-variant-unknown-key", &variant("tests/data/variant-unknown-key.toml"));
    transcript("usage-times", &["report", V6, "--times", "1,2"]);
    transcript("usage-counters", &["report", V6, "--counters", "before"]);
    transcript("usage-since", &["script", V6, "--since", "yesterday"]);
    transcript("usage-interval", &["record", "-o", "SCRATCH/r.mmt", "-I", "3 fortnights", "--", "true"]);
}

#[test]
fn help() {
    transcript("help", &["--help"]);
    transcript("help-report", &["report", "--help"]);
    transcript("help-explain", &["explain", "--help"]);
}

/// The version, and the commit that was built where this is a working tree of git.
#[test]
fn version() {
    let git = std::process::Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).current_dir(root()).output();
    let commit = git.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let commit = commit.map_or_else(String::new, |text| format!(" ({})", String::from_utf8_lossy(&text).trim_end()));
    let printed = mmtwin(["--version"]);
    let expected = format!("mmtwin {}{commit}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((printed.status, String::from_utf8_lossy(&printed.out).as_ref()), (0, expected.as_str()));
}

#[test]
fn a_reader_that_leaves_ends_the_program_quietly() {
    let mut child = command(["script", &recording("cgroup-6.18")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}

#[test]
fn standard_input_is_an_input() {
    let name = recording("slab-6.18");
    let file = std::fs::File::open(root().join(&name)).expect("a recording");
    let piped = command(["script", "-"]).stdin(file).output().expect("the program");
    assert_eq!(piped.status.code(), Some(0), "{}", String::from_utf8_lossy(&piped.stderr));
    assert!(piped.stdout == mmtwin(["script", &name]).out && !piped.stdout.is_empty());
}

/// The same input gives the same bytes.
#[test]
fn output_is_deterministic() {
    for input in [V6.to_string(), recording("numa-6.1")] {
        let [a, b] = [(); 2].map(|()| mmtwin(["report", &input, "--format", "json"]).out);
        assert!(a == b && !a.is_empty(), "{input}");
    }
}

//! Running the program, and what it is given.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Binary recordings of all vmscan events, trace.dat version 6 and version 7 with zstd.
pub const V6: &str = "crates/trace/tests/data/vmscan-v6.dat";
pub const V7: &str = "crates/trace/tests/data/vmscan-v7-zstd.dat";

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Name of a text recording for findings.
pub fn recording(name: &str) -> String {
    format!("tests/data/findings/{name}.txt.gz")
}

/// The program with these arguments, in the root of the repository, its width and colours its own choice.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mmtwin"));
    command.args(arguments).current_dir(root()).env_remove("COLUMNS").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// A command on which signals have their usual effect: tests may run below `nohup` or in the background of a shell, which
/// ignore some, and a program inherits that.
pub fn with_signals(command: &Command) -> Command {
    // By its path: a test may have a PATH of its own.
    let mut usual = Command::new("/usr/bin/env");
    usual.arg("--default-signal=HUP,INT,TERM").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => usual.env(name, value),
            None => usual.env_remove(name),
        };
    }
    usual.current_dir(command.get_current_dir().unwrap_or(&root())).stdin(Stdio::null());
    usual
}

/// How a run ended.
pub struct Run {
    pub status: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let ended = output.status;
        let status = ended.code().unwrap_or_else(|| panic!("ended by signal {:?}: {err}", ended.signal()));
        assert!(status != 101 && !err.contains("panicked"), "{err}");
        Run { status, out: output.stdout, err }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("UTF-8 on standard output")
    }
}

/// Runs the program; a panic or a signal fails the test.
pub fn mmtwin<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    Run::of(command(arguments).output().expect("the program"))
}

/// Standard output of a run that must succeed.
pub fn ok<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let run = mmtwin(arguments);
    assert_eq!(run.status, 0, "{}", run.err);
    String::from_utf8(run.out).expect("UTF-8 on standard output")
}

/// A report of some tables, parsed.
pub fn report_json<S: AsRef<OsStr>>(input: &Path, more: impl IntoIterator<Item = S>) -> serde_json::Value {
    let mut arguments: Vec<_> = ["report", "--format", "json"].map(Into::into).into();
    arguments.push(input.as_os_str().to_os_string());
    arguments.extend(more.into_iter().map(|a| a.as_ref().to_os_string()));
    serde_json::from_str(&ok(arguments)).expect("JSON")
}

/// The member of a list that has this value; its absence fails the test.
pub fn named<'a>(list: &'a serde_json::Value, what: &str, name: &str) -> &'a serde_json::Value {
    let found = list.as_array().into_iter().flatten().find(|x| x[what] == name);
    found.unwrap_or_else(|| panic!("no {what} {name}"))
}

/// A row of a table of metrics in a parsed report: its value, `None` for n/a.
pub fn value(report: &serde_json::Value, table: &str, key: &str) -> Option<f64> {
    named(&named(&report["tables"], "name", table)["rows"], "key", key)["values"][0].as_f64()
}

/// Rows of a list in a parsed report, each with its values by column.
pub fn rows(report: &serde_json::Value, table: &str) -> Vec<BTreeMap<String, serde_json::Value>> {
    let table = named(&report["tables"], "name", table);
    let columns = table["columns"].as_array().expect("columns").iter();
    let keys: Vec<String> = columns.map(|c| c["key"].as_str().expect("a key").to_string()).collect();
    let row = |cells: &serde_json::Value| {
        keys.iter().cloned().zip(cells.as_array().expect("cells").iter().cloned()).collect()
    };
    table["rows"].as_array().expect("rows").iter().map(row).collect()
}

/// A number of a list in a parsed report: in the row that begins with `first`, of this column. `None`: n/a.
pub fn cell(report: &serde_json::Value, table: &str, first: &str, column: &str) -> Option<f64> {
    let begins = &named(&report["tables"], "name", table)["columns"][0]["key"];
    let begins = begins.as_str().expect("a first column");
    let rows = rows(report, table);
    let row = rows.iter().find(|row| row[begins] == first).unwrap_or_else(|| panic!("{table}: no row {first}"));
    row.get(column).unwrap_or_else(|| panic!("{table}: no column {column}")).as_f64()
}

/// Keys of the findings of a parsed report.
pub fn finding_keys(report: &serde_json::Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().map(|f| f["key"].as_str().expect("a key").to_string()).collect()
}

/// CPUs that the program may run on: those of this process.
pub fn cpus() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).expect("a mask of CPUs");
    mask.chars().filter_map(|c| c.to_digit(16)).map(u32::count_ones).sum::<u32>() as usize
}

/// A directory for what a test writes, removed at its end.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// Says that a test was skipped, past the test harness, which keeps the output of tests that pass.
pub fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// True if a program can be run; says that the test is skipped if not.
pub fn installed(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        skipped(test, &format!("{program} is not installed"));
    }
    found
}

/// Python with the packages of `tools/python.sh`, if they are installed.
pub fn python(test: &str) -> Option<Command> {
    let python = root().join("target/python/bin/python");
    if python.exists() {
        return Some(Command::new(python));
    }
    skipped(test, "no target/python: run tools/python.sh");
    None
}

/// Text of a gzip file of the repository.
pub fn gunzip(name: &str) -> String {
    let packed = std::fs::File::open(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
    text
}

/// Lines of a trace without comments.
pub fn events(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}

//! Every system call that writes an output fails once in turn: what was complete before is whole after, what is
//! incomplete reports it when it is read, the exit status is right, and nothing is left.
//!
//! `strace` makes the calls fail. A few of them, chosen by a fixed seed, in every `make test`; `make inject` does all.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

const INPUT: &str = "crates/trace/tests/data/vmscan-v6.dat";
const SCENARIO: &str = "scenarios/examples/numastat-pages.toml";

/// Calls that fail, each with the errors it can have.
const CALLS: [(&str, &[&str]); 16] = [
    ("openat", &["EMFILE", "ENOSPC", "EIO", "ENOMEM"]),
    ("write", &["ENOSPC", "EIO"]),
    ("writev", &["ENOSPC", "EIO"]),
    ("pwrite64", &["ENOSPC", "EIO"]),
    ("copy_file_range", &["ENOSPC", "EIO"]),
    ("sendfile", &["ENOSPC", "EIO"]),
    ("splice", &["EIO", "ENOMEM"]),
    ("rename", &["ENOSPC", "EIO"]),
    ("renameat2", &["ENOSPC", "EIO"]),
    ("linkat", &["ENOSPC", "EIO"]),
    ("mkdir", &["ENOSPC", "EIO"]),
    ("fsync", &["ENOSPC", "EIO"]),
    ("ftruncate", &["ENOSPC", "EIO"]),
    ("fallocate", &["ENOSPC", "EIO"]),
    ("mmap", &["ENOMEM"]),
    ("brk", &["ENOMEM"]),
];

/// A command, and what it writes.
struct Verb {
    name: &'static str,
    arguments: &'static [&'static str],
    output: &'static str,
    /// Its options for replacing; the output is there then.
    force: bool,
}

const VERBS: [Verb; 9] = [
    Verb { name: "convert text", arguments: &["convert", INPUT], output: "x.txt", force: false },
    Verb { name: "convert packed text", arguments: &["convert", INPUT], output: "x.txt.gz", force: true },
    Verb { name: "convert dat", arguments: &["convert", INPUT], output: "x.dat", force: true },
    Verb { name: "convert parquet", arguments: &["convert", INPUT], output: "x.parquet", force: false },
    Verb { name: "convert parquet again", arguments: &["convert", INPUT], output: "x.parquet", force: true },
    Verb { name: "run", arguments: &["run", SCENARIO, "--table", "workload"], output: "x.mmt", force: false },
    Verb { name: "run again", arguments: &["run", SCENARIO, "--table", "workload"], output: "x.mmt", force: true },
    Verb { name: "record", arguments: &["record", "-I", "20ms"], output: "x.mmt", force: false },
    Verb { name: "record again", arguments: &["record", "-I", "20ms"], output: "x.mmt", force: true },
];

/// What the recorded command does: it makes some events, and ends with a status that is reported from others.
const COMMAND: [&str; 4] = ["--", "sh", "-c", "for i in 1 2 3 4 5; do sleep 0.02; ls / >/dev/null; done; exit 7"];

impl Verb {
    fn records(&self) -> bool {
        self.arguments[0] == "record"
    }

    fn arguments(&self, output: &Path) -> Vec<std::ffi::OsString> {
        let mut all: Vec<_> = self.arguments.iter().map(|a| a.into()).collect();
        all.extend(["-o".into(), output.as_os_str().to_os_string()]);
        all.extend(self.force.then(|| "-f".into()));
        all.extend(COMMAND.iter().filter(|_| self.records()).map(|a| a.into()));
        all
    }

    /// The status of a run in which nothing fails.
    fn done(&self) -> i32 {
        if self.records() { 7 } else { 0 }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn mmtwin(arguments: &[std::ffi::OsString]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mmtwin")).args(arguments).current_dir(root()).output().expect("the program")
}

/// Runs a verb under strace with these options.
fn traced(options: &[&str], log: &Path, verb: &Verb, output: &Path) -> Output {
    let mut strace = Command::new("timeout");
    strace.args(["60", "strace", "-f", "-qq", "-o"]).arg(log).args(options).arg("--");
    strace.arg(env!("CARGO_BIN_EXE_mmtwin")).args(verb.arguments(output)).current_dir(root());
    strace.stdin(Stdio::null()).output().expect("strace")
}

/// Files below a directory, as relative path and bytes; without what tells of the run itself.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![directory.to_path_buf()]);
    if directory.is_file() {
        return BTreeMap::from([(PathBuf::new(), fs::read(directory).expect("a file"))]);
    }
    while let Some(next) = todo.pop() {
        for path in fs::read_dir(next).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => todo.push(path),
                false if path.ends_with("run.json") => {}
                false => {
                    let name = path.strip_prefix(directory).expect("below").to_path_buf();
                    found.insert(name, fs::read(path).expect("a file"));
                }
            }
        }
    }
    found
}

/// Calls of one run by name, as its threads make them.
fn counted(log: &Path) -> BTreeMap<String, u32> {
    let text = fs::read_to_string(log).expect("strace's output");
    // A call is counted per process, as strace does; only those of the program itself are made to fail.
    let own = text.split_whitespace().next().unwrap_or_default().to_string();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        if let (true, Some((call, _))) = (pid == own, rest.trim_start().split_once('(')) {
            *counts.entry(call.to_string()).or_default() += 1;
        }
    }
    counts
}

/// One failure: of a verb, the nth of a call, with an error.
struct Failure {
    verb: usize,
    call: &'static str,
    nth: u32,
    error: &'static str,
    /// So do all that follow, and every other call by which the allocator gets memory: there is none left.
    lasts: bool,
}

impl Failure {
    /// What strace is asked for.
    fn options(&self) -> Vec<String> {
        let Failure { call, nth, error, lasts, .. } = self;
        match lasts {
            false => vec![format!("trace={call}"), format!("inject={call}:error={error}:when={nth}")],
            // The program's start, its first calls of brk, is that of any program.
            true => vec![
                "trace=mmap,mremap,brk".into(),
                format!("inject=mmap:error={error}:when={nth}+"),
                format!("inject=mremap,brk:error={error}:when=4+"),
            ],
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let on = if self.lasts { " and all that follow" } else { "" };
        write!(f, "{}: {} number {}{on} with {}", VERBS[self.verb].name, self.call, self.nth, self.error)
    }
}

fn tracefs_instances() -> usize {
    let Ok(tracefs) = mmtwin_host::tracefs::find() else { return 0 };
    let own = format!("mmtwin-{}", std::process::id());
    fs::read_dir(tracefs.join("instances"))
        .map_or(0, |entries| entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&own)).count())
}

/// Makes one call fail. Returns what is wrong then.
fn fail(scratch: &Path, failure: &Failure, whole: &[BTreeMap<PathBuf, Vec<u8>>]) -> Result<bool, String> {
    let verb = &VERBS[failure.verb];
    let place = tempfile::tempdir_in(scratch).expect("a directory");
    let output = place.path().join(verb.output);
    let log = place.path().with_extension("log");
    let mut before = BTreeMap::new();
    if verb.force {
        mmtwin(&Verb { force: false, ..*verb }.arguments(&output));
        before = files(&output);
    }
    let options = failure.options();
    let options: Vec<&str> = options.iter().flat_map(|option| ["-e", option]).collect();
    let ended = traced(&options, &log, verb, &output);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let injected = fs::read_to_string(&log).is_ok_and(|log| log.contains("INJECTED"));
    if !injected {
        // It came later than this run went: a recorder's calls differ from run to run.
        return Ok(false);
    }
    let wrong = |what: &str| Err(format!("{what}; status {:?}, said: {said}", ended.status));
    // Rust's own runtime, when a thread begins; nothing of ours has run then.
    let runtime = said.contains("failed to allocate an alternative stack");
    if said.contains("panicked") && !runtime {
        return wrong("a panic");
    }
    // Without memory the allocator ends the process, as any program's.
    let aborted = ended.status.code().is_none() || said.contains("memory allocation") || runtime;
    let loader = said.contains("error while loading shared libraries");
    let left: Vec<_> = fs::read_dir(place.path()).expect("a directory").flatten().map(|e| e.file_name()).collect();
    if !aborted && left.iter().any(|name| *name != verb.output) {
        return wrong(&format!("left {left:?}"));
    }
    let after = files(&output);
    let complete = match verb.records() {
        true => after.contains_key(Path::new("end.json")) && is_complete(&output),
        false => after == whole[failure.verb],
    };
    let status = ended.status.code();
    if status == Some(124) {
        return wrong("it hung");
    }
    if status == Some(verb.done()) && !complete && !(verb.records() && says_so(&output)) {
        return wrong("it says that it is done, and is not");
    }
    if status != Some(verb.done()) && output.exists() && !loader {
        let old = verb.force && after == before;
        let tells = verb.records() && says_so(&output);
        if !(old || complete || tells) {
            return wrong("what is there is neither the old one, nor whole, nor does it say that it is truncated");
        }
    }
    if verb.force && !output.exists() {
        return wrong("the old one is gone");
    }
    // After the next start nothing is left.
    if aborted {
        mmtwin(&Verb { force: true, ..*verb }.arguments(&output));
        let left: Vec<_> = fs::read_dir(place.path()).expect("a directory").flatten().map(|e| e.file_name()).collect();
        if left.iter().any(|name| *name != verb.output) {
            return wrong(&format!("left {left:?} after the next start"));
        }
    }
    Ok(true)
}

fn report(output: &Path) -> Output {
    mmtwin(&["report".into(), output.into(), "--table".into(), "vmstat".into()])
}

/// A recording that is read without a word of something missing.
fn is_complete(output: &Path) -> bool {
    let report = report(output);
    report.status.success() && !String::from_utf8_lossy(&report.stderr).contains("warning")
}

/// A recording that tells its reader that it is not whole, or what is missing in it.
fn says_so(output: &Path) -> bool {
    let report = report(output);
    let said = String::from_utf8_lossy(&report.stderr).into_owned();
    let notes = fs::read_to_string(output.join("end.json")).unwrap_or_default();
    !said.contains("panicked")
        && (said.contains("warning") || said.contains("error") || notes.contains("is not recorded"))
}

/// What `work` makes of each item, in their order.
fn on_two_threads<I: Send, T: Send>(items: impl Iterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let todo = Mutex::new(items.enumerate().collect::<VecDeque<_>>());
    let take = || {
        let next = || todo.lock().expect("no panic").pop_front();
        std::iter::from_fn(next).map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let other = scope.spawn(take);
        take().into_iter().chain(other.join().expect("no panic")).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[test]
fn every_call_fails_once() {
    let say = |line: String| _ = writeln!(std::io::stderr(), "{line}");
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return say("skipped: every_call_fails_once: strace is not installed (apt-get install strace)".into());
    }
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let asked = std::env::var("MMTWIN_INJECT").unwrap_or_else(|_| "12".into());
    let only = std::env::var("MMTWIN_INJECT_VERB").unwrap_or_default();
    let (mut all, mut whole) = (Vec::new(), Vec::new());
    let names: Vec<&str> = CALLS.iter().map(|(call, _)| *call).collect();
    let trace = format!("trace={}", names.join(","));
    let counted = on_two_threads(VERBS.iter().enumerate(), |(number, verb)| {
        let output = scratch.path().join(format!("whole-{number}")).join(verb.output);
        fs::create_dir(output.parent().expect("a parent")).expect("a directory");
        let log = scratch.path().join(format!("count-{number}.log"));
        let ended = traced(&["-e", &trace], &log, verb, &output);
        if ended.status.code() != Some(verb.done()) {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            // Where nobody may trace.
            assert!(said.contains("ptrace") || said.contains("PTRACE"), "{}: {:?}: {said}", verb.name, ended.status);
            return Err(said);
        }
        Ok((files(&output), counted(&log)))
    });
    for (number, counted) in counted.into_iter().enumerate() {
        let (files, calls) = match counted {
            Ok(counted) => counted,
            Err(said) => return say(format!("skipped: every_call_fails_once: {said}")),
        };
        whole.push(files);
        for (call, count) in calls {
            let Some((call, errors)) = CALLS.iter().find(|(known, _)| *known == call) else { continue };
            // Beyond the last, for a recorder's calls differ from run to run.
            for nth in 1..=count {
                let error = errors[nth as usize % errors.len()];
                all.push(Failure { verb: number, call, nth, error, lasts: false });
            }
            if *call == "mmap" {
                all.extend((1..=count).map(|nth| Failure { verb: number, call, nth, error: "ENOMEM", lasts: true }));
            }
        }
    }
    all.retain(|failure| VERBS[failure.verb].name.starts_with(&only));
    let possible = all.len();
    let step = asked.parse::<usize>().map_or(1, |wanted| (possible / wanted.max(1)).max(1));
    // Not always the same of every call: steps that have nothing in common with the number of calls.
    let chosen: Vec<&Failure> = all.iter().skip(step / 2).step_by(step).collect();
    let (mut wrong, mut failed) = (Vec::new(), 0);
    let made = on_two_threads(chosen.iter(), |failure| fail(scratch.path(), failure, &whole));
    for (failure, made) in chosen.iter().zip(made) {
        failed += usize::from(*made.as_ref().unwrap_or(&true));
        if let Err(why) = made {
            let line = format!("{failure}: {why}");
            say(line.clone());
            wrong.push(line);
        }
    }
    say(format!("{failed} of {possible} calls were made to fail, {} went wrong", wrong.len()));
    assert!(failed * 2 > chosen.len(), "strace made hardly any call fail");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tracefs_instances(), 0);
}

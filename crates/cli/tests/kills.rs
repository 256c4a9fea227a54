//! Recorders that are killed or hung up on at any moment: what they wrote can be read, and after the next start
//! nothing of them is left on the machine.
//!
//! A few in every `make test`; `make kills` does 100 and 50. Moments come from a fixed seed.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn count(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn mmtwin(arguments: &[&Path]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_mmtwin")).args(arguments).output().expect("the program");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

fn start(output: &Path, command: &[&str]) -> Child {
    // Whatever started this test may have ignored the signals.
    let mut recorder = Command::new("env");
    recorder.arg("--default-signal=HUP,INT,TERM").arg(env!("CARGO_BIN_EXE_mmtwin"));
    recorder.args(["record", "-I", "20ms", "-o"]).arg(output);
    if !command.is_empty() {
        recorder.arg("--").args(command);
    }
    recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a recorder")
}

fn signal(child: &Child, name: &str) {
    // It may have ended.
    let _ = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
}

/// Names in a directory, hidden ones too.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Tracing instances of these processes.
fn instances(pids: &[u32]) -> Vec<String> {
    let Ok(tracefs) = mmtwin_host::tracefs::find() else { return Vec::new() };
    let mut found = names(&tracefs.join("instances"));
    found.retain(|name| pids.iter().any(|pid| name.starts_with(&format!("mmtwin-{pid}-"))));
    found
}

/// Microseconds until a recorder has begun on this machine, as busy as it is.
fn time_to_begin(root: &Path) -> u64 {
    let (output, began) = (root.join("first.mmt"), Instant::now());
    let mut first = start(&output, &[]);
    while !output.exists() {
        assert!(first.try_wait().expect("its status").is_none() && began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    let time = began.elapsed();
    signal(&first, "TERM");
    assert_eq!(first.wait().expect("its end").code(), Some(128 + 15));
    time.as_micros() as u64
}

struct Ended {
    pid: u32,
    output: PathBuf,
    status: std::process::ExitStatus,
}

/// Starts recorders, one after another, and ends each at its moment: as likely before it has begun as after.
fn end_them(root: &Path, how: &str, many: usize, seed: u64) -> Vec<Ended> {
    let mut number = seed;
    let within = 3 * time_to_begin(root);
    let ended = (0..many).map(|n| {
        number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let moment = Duration::from_micros((number >> 33) % within);
        let output = root.join(format!("{how}{n}.mmt"));
        // Killed, a recorder leaves its command, so there is none then.
        let command: &[&str] = if how == "HUP" && n % 2 == 1 { &["sleep", "60"] } else { &[] };
        let began = Instant::now();
        let mut child = start(&output, command);
        std::thread::sleep(moment.saturating_sub(began.elapsed()));
        signal(&child, how);
        Ended { pid: child.id(), output, status: child.wait().expect("its end") }
    });
    ended.collect()
}

/// What is there of recordings is read. Returns how many are there.
fn readable(ended: &[Ended]) -> usize {
    let there: Vec<&Ended> = ended.iter().filter(|e| e.output.exists()).collect();
    for Ended { output, .. } in &there {
        let report = mmtwin(&["report".as_ref(), output.as_path(), "--table".as_ref(), "vmstat".as_ref()]);
        assert_eq!(report.status.code(), Some(0), "{output:?}: {}", String::from_utf8_lossy(&report.stderr));
    }
    there.len()
}

fn say(line: &str) {
    // Past the harness, which keeps the output of tests that pass.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn nothing_is_left(root: &Path, ended: &[Ended]) {
    let next = root.join("next.mmt");
    let run = mmtwin(
        &["record", "-f", "-o"]
            .map(Path::new)
            .into_iter()
            .chain([&*next])
            .chain(["--", "true"].map(Path::new))
            .collect::<Vec<_>>(),
    );
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let hidden: Vec<String> = names(root).into_iter().filter(|name| !name.ends_with(".mmt")).collect();
    assert_eq!(hidden, [""; 0], "after the next start");
    let pids: Vec<u32> = ended.iter().map(|e| e.pid).collect();
    assert_eq!(instances(&pids), [""; 0], "after the next start");
}

#[test]
fn killed_at_any_moment() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let many = count("MMTWIN_KILLS", 5);
    let ended = end_them(root.path(), "KILL", many, 16);
    let there = readable(&ended);
    nothing_is_left(root.path(), &ended);
    // What was killed in progress may be replaced.
    for Ended { output, .. } in ended.iter().take(3) {
        let again = mmtwin(&["record".as_ref(), "-f".as_ref(), "-o".as_ref(), output, "--".as_ref(), "true".as_ref()]);
        assert_eq!(again.status.code(), Some(0), "{output:?}: {}", String::from_utf8_lossy(&again.stderr));
    }
    say(&format!("kill -9 of {many} recorders: {there} had begun and were read, {} had not", many - there));
}

#[test]
fn hung_up_at_any_moment() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let many = count("MMTWIN_HANGUPS", 5);
    let ended = end_them(root.path(), "HUP", many, 17);
    for Ended { output, status, pid } in &ended {
        // Before the program has taken the signal, it ends of it.
        let by_signal = status.code() == Some(129) || status.signal() == Some(1);
        assert!(by_signal, "{output:?}: {status:?}");
        assert!(!output.exists() || output.join("end.json").exists(), "{output:?} was not closed");
        assert_eq!(instances(&[*pid]), [""; 0]);
    }
    let there = readable(&ended);
    assert!(names(root.path()).iter().all(|name| name.ends_with(".mmt")), "{:?}", names(root.path()));
    nothing_is_left(root.path(), &ended);
    say(&format!("SIGHUP to {many} recorders: {there} had begun and were closed, {} had not", many - there));
}

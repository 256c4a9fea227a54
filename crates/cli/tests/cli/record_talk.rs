//! What `mmtwin record` says, the names that it chooses, and the cgroups that it is given. Needs no tracefs.

use super::support::{command, scratch};
use std::path::Path;
use std::process::Output;

/// `mmtwin record` in a directory, with a command.
fn record(directory: &Path, options: &[&str], script: &str) -> Output {
    let arguments = [&["record"], options, &["--", "sh", "-c", script]].concat();
    command(arguments).current_dir(directory).output().expect("the program")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_recording_says_what_it_does_and_how_it_went() {
    let scratch = scratch();
    let run = record(scratch.path(), &["-I", "0"], "echo out; echo err >&2; exit 3");
    let err = said(&run);
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(3), &b"out\n"[..]), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    assert!(lines.contains(&"mmtwin: recording to mmtwin.mmt"), "{err}");
    assert!(lines.iter().any(|l| l.contains("counters at start and end")), "{err}");
    let end = lines.iter().find(|l| l.starts_with("mmtwin: mmtwin.mmt: ")).expect("how it went");
    for part in ["MiB in ", "recording took ", " of CPU time with start and end"] {
        assert!(end.contains(part) || end.replace("KiB", "MiB").contains(part), "{end}");
    }
    assert_eq!(lines.last(), Some(&"mmtwin: next: mmtwin report mmtwin.mmt"), "{err}");
    // Quiet: what is left is the command's own.
    let run = record(scratch.path(), &["-q", "-I", "0", "-o", "q.mmt"], "echo err >&2");
    let own: Vec<String> =
        said(&run).lines().filter(|l| !l.contains("recording counters only")).map(Into::into).collect();
    assert_eq!(own, ["err"]);
}

#[test]
fn recordings_without_a_name_are_numbered() {
    let scratch = scratch();
    let run = |options: &[&str]| {
        let run = record(scratch.path(), &[options, &["-I", "0"]].concat(), "true");
        assert!(run.status.success(), "{}", said(&run));
        said(&run).lines().last().and_then(|l| l.rsplit_once(' ')).map(|(_, name)| name.to_string())
    };
    for name in ["mmtwin.mmt", "mmtwin-2.mmt", "mmtwin-3.mmt"] {
        assert_eq!(run(&[]).as_deref(), Some(name));
        assert!(scratch.path().join(name).join("end.json").exists());
    }
    assert_eq!(run(&["-f"]).as_deref(), Some("mmtwin.mmt"), "-f replaces the first");
    // A name of the user's own is not changed.
    let refused = record(scratch.path(), &["-o", "mmtwin.mmt"], "true");
    assert!(refused.status.code() == Some(1) && said(&refused).contains("exists"), "{}", said(&refused));
    // Readers take the newest, which -f made.
    for verb in [&["report", "counters"][..], &["script"], &["convert", "-o", "x.parquet"], &["scrub", "-o", "s.mmt"]] {
        let read = command(verb).current_dir(scratch.path()).output().expect("the program");
        assert!(read.status.success(), "{verb:?} {}", said(&read));
        assert!(said(&read).contains("reading mmtwin.mmt, the newest recording here"), "{verb:?} {}", said(&read));
    }
}

#[test]
fn cgroups_that_do_not_exist_are_refused_with_what_there_is() {
    let scratch = scratch();
    for pattern in ["/no-such-cgroup", "/no-such-*,/"] {
        let run = record(scratch.path(), &["--cgroup", pattern], "true");
        let err = said(&run);
        assert!(run.status.code() == Some(1) && err.contains("no memory cgroup `/no-such-"), "{err}");
        assert!(err.contains("there are ") || err.contains("none found"), "{err}");
    }
}

#[test]
fn recorders_that_start_at_once_have_names_of_their_own() {
    let scratch = scratch();
    let start = |_| {
        let arguments = ["record", "-q", "-I", "0", "--", "sleep", "0.3"];
        command(arguments).current_dir(scratch.path()).stderr(std::process::Stdio::piped()).spawn().expect("a recorder")
    };
    let recorders: Vec<_> = (0..4).map(start).collect();
    for recorder in recorders {
        let run = recorder.wait_with_output().expect("its end");
        assert!(run.status.success(), "{}", said(&run));
    }
    let names = std::fs::read_dir(scratch.path()).expect("recordings").flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["mmtwin-2.mmt", "mmtwin-3.mmt", "mmtwin-4.mmt", "mmtwin.mmt"]);
}

//! `mmtwin record --flight`, `mmtwin snap` and `record --max-time` on this machine. What needs tracefs says that it is
//! skipped without.

use super::record::{Cgroup, tracefs};
use super::support::{cell, command, mmtwin, report_json, scratch, skipped, with_signals};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills a recorder that a failing test leaves.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn flight(directory: &Path, options: &[&str]) -> Command {
    let mut arguments: Vec<_> = ["record", "--flight", "4M", "-I", "100ms", "-o"].map(std::ffi::OsStr::new).into();
    arguments.push(directory.as_os_str());
    arguments.extend(options.iter().map(std::ffi::OsStr::new));
    with_signals(&command(arguments))
}

/// Bytes of the segments, those that are written included.
fn bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory.join("segments")).into_iter().flatten().flatten();
    entries.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len())).sum()
}

/// Starts a recorder and waits until something is kept.
fn start(directory: &Path, options: &[&str]) -> Killed {
    let before = bytes(directory);
    let child = flight(directory, options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child");
    let (mut recorder, began) = (Killed(child), Instant::now());
    while bytes(directory) < before + 4096 {
        assert!(recorder.0.try_wait().expect("its status").is_none(), "the recorder ended");
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is kept after a minute");
        // Makes events.
        drop(vec![1u8; 8 << 20]);
        std::thread::sleep(Duration::from_millis(10));
    }
    recorder
}

fn snap(directory: &Path) -> PathBuf {
    let run = mmtwin([Path::new("snap"), directory]);
    assert_eq!(run.status, 0, "{}", run.err);
    PathBuf::from(run.text().trim_end())
}

#[test]
fn a_flight_is_written_out_killed_and_goes_on() {
    let test = "a_flight_is_written_out_killed_and_goes_on";
    if tracefs(test).is_none() {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path().join("f");
    let events = ["-e", "kmem:mm_page_alloc,kmem:mm_page_free"];
    let recorder = start(&directory, &events);
    let first = snap(&directory);
    assert_eq!(first, fs::canonicalize(directory.join("dumps/1-snap.mmt")).expect("a recording"));
    let report = report_json(&first, [""; 0]);
    assert!(report["inputs"][0]["events"].as_u64().is_some_and(|events| events > 100), "{}", report["inputs"]);
    assert_eq!(report["inputs"][0]["lost_events"].as_u64(), Some(0));
    assert!(report["inputs"][0].get("incomplete").is_none(), "{}", report["inputs"]);
    // Another recorder is refused as long as this one runs.
    let refused = flight(&directory, &events).output().expect("the program");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another recorder runs there"));
    drop(recorder);
    assert!(directory.join("socket").exists(), "it was killed");
    // What it left can be written out without it, and the next one goes on.
    let left = snap(&directory);
    let events_of = |path: &Path| report_json(path, [""; 0])["inputs"][0]["events"].as_u64().expect("events");
    assert!(left.ends_with("2-snap.mmt") && events_of(&left) >= events_of(&first));
    let recorder = start(&directory, &events);
    let both = snap(&directory);
    assert!(both.ends_with("3-snap.mmt") && events_of(&both) > events_of(&left), "it reaches back over the restart");
    assert_eq!(fs::read_dir(directory.join("heads")).expect("heads").count(), 1);
    drop(recorder);
}

#[test]
fn a_condition_writes_one_recording_of_the_time_around_it() {
    let test = "a_condition_writes_one_recording_of_the_time_around_it";
    let (Some(_), Some(group)) = (tracefs(test), Cgroup::new(test)) else { return };
    let scratch = scratch();
    let (directory, file) = (scratch.path().join("f"), scratch.path().join("sparse"));
    fs::File::create(&file).and_then(|f| f.set_len(128 << 20)).expect("a sparse file");
    let mut recorder = start(&directory, &["--when", "stall > 0s", "--after", "200ms"]);
    // Of 128 MiB half has to go again, for which the reader waits.
    let script = format!("echo $$ > {} && exec cat {}", group.0.join("cgroup.procs").display(), file.display());
    let read = Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).status();
    assert!(read.is_ok_and(|status| status.success()));
    let (dump, began) = (directory.join("dumps/1-stall.mmt"), Instant::now());
    while !dump.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no recording after a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&recorder.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert_eq!(recorder.0.wait().expect("its status").code(), Some(143));
    assert_eq!(fs::read_dir(directory.join("dumps")).expect("recordings").count(), 1);
    let report = report_json(&dump, [""; 0]);
    assert!(report["inputs"][0]["events"].as_u64().is_some_and(|events| events > 0), "{}", report["inputs"]);
    let end = fs::read_to_string(dump.join("end.json")).expect("an end");
    assert!(end.contains("written by the flight recorder: task"), "{end}");
}

#[test]
fn a_full_disk_and_the_loss_of_tracefs_are_said_and_survived() {
    let test = "a_full_disk_and_the_loss_of_tracefs_are_said_and_survived";
    let scratch = scratch();
    fs::create_dir(scratch.path().join("disk")).expect("a directory");
    // $1 program. The disk has 300 KiB for a ring of 1 MiB; processes that start make events until that is said. Then
    // tracefs goes, which the next segment notices.
    let script = "
        export LC_ALL=C
        mount -t tmpfs -o size=2m tmpfs disk || exit 77
        grep -q ' /sys/kernel/tracing tracefs ' /proc/mounts || mount -t tracefs tracefs /sys/kernel/tracing || exit 77
        wait_for() { n=0; until grep -q \"$1\" err || [ $n -ge 3000 ]; do $2; n=$((n + 1)); sleep 0.02; done; }
        forks() { for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; }
        \"$1\" record --flight 1M -I 50ms -e kmem:mm_page_alloc,kmem:mm_page_free -o disk/f 2>err &
        wait_for 'a recording of now' true
        dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null
        truncate -s -300K disk/fill
        wait_for 'the disk is full' forks
        umount -l /sys/kernel/tracing
        \"$1\" snap disk/f 2>/dev/null && echo fitted
        wait_for 'events cannot be read' true
        rm disk/fill
        sleep 0.2
        kill $!
        wait $!
        echo $?
        \"$1\" snap disk/f && mv disk/f/dumps/1-snap.mmt .";
    let mut run = Command::new("unshare");
    run.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).arg(env!("CARGO_BIN_EXE_mmtwin"));
    let run = with_signals(run.current_dir(scratch.path())).output().expect("unshare");
    if run.status.code() == Some(77) || String::from_utf8_lossy(&run.stderr).contains("unshare") {
        return skipped(test, "no file system can be mounted here");
    }
    let said = fs::read_to_string(scratch.path().join("err")).expect("what it said");
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(out.starts_with("143\n") && !said.contains("panicked"), "{out} {said}");
    assert!(said.contains("the disk is full: ") && said.contains("events cannot be read any more"), "{said}");
    let report = report_json(&scratch.path().join("1-snap.mmt"), [""; 0]);
    assert!(report["inputs"][0]["events"].as_u64().is_some_and(|events| events > 100), "{}", report["inputs"]);
    assert!(cell(&report, "vmstat", "pgfault", "delta").is_some_and(|faults| faults > 0.0));
}

#[test]
fn signals_and_times_end_flights_and_recordings() {
    let scratch = scratch();
    let directory = scratch.path().join("f");
    let run =
        flight(&directory, &["--max-time", "300ms", "--when", "oom", "--cgroup", "/"]).output().expect("the program");
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(0), "{said}");
    assert!(said.contains("keeping the last 4.00 MiB in") && said.contains("0 recordings written"), "{said}");
    assert!(snap(&directory).ends_with("1-snap.mmt"));
    let record = |name: &str, more: &[&str]| {
        let name = scratch.path().join(name);
        let options = ["record", "-I", "0", "--max-time", "200ms", "-o", name.to_str().expect("UTF-8")];
        let run = mmtwin(options.iter().chain(more));
        let end = fs::read_to_string(name.join("end.json")).expect("an end");
        (run.status, serde_json::from_str::<serde_json::Value>(&end).expect("JSON")["stopped"].clone())
    };
    assert_eq!(record("a", &[]), (0, serde_json::Value::Null), "without a command that is its end");
    assert_eq!(record("b", &["--", "sh", "-c", "sleep 0.5; exit 7"]), (7, "it reached --max-time (200ms)".into()));
}

#[test]
fn what_a_flight_refuses() {
    let scratch = scratch();
    let error = |arguments: &[&str]| {
        let run =
            super::support::Run::of(command(arguments).current_dir(scratch.path()).output().expect("the program"));
        (run.status, run.err)
    };
    fs::create_dir(scratch.path().join("full"))
        .and_then(|()| fs::write(scratch.path().join("full/x"), ""))
        .expect("a file");
    for (arguments, status, expected) in [
        (&["record", "--flight", "1K"][..], 1, "--flight 1024: the ring has at least 1048576 bytes"),
        (&["record", "--flight", "4M", "-o", "full"], 1, "full: is not empty and no directory of a flight recorder"),
        (&["record", "--flight", "4M", "-I", "0"], 2, "--flight needs samples of the counters: -I above 0"),
        (&["record", "--flight", "4M", "--", "true"], 2, "cannot be used with"),
        (&["record", "--when", "oom"], 2, "--flight <SIZE>"),
        (&["record", "--flight", "4M", "--when", "stal > 1s"], 2, "'stal > 1s', column 1: expected"),
        (&["snap", "full"], 1, "full: is no directory of a flight recorder"),
    ] {
        let (found, message) = error(arguments);
        assert!(found == status && message.contains(expected), "{arguments:?}: {found} {message}");
    }
    assert!(!scratch.path().join("mmtwin.flight").exists());
}

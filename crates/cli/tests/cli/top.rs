//! `mmtwin top` in a pseudo-terminal.

use super::pty::Pty;
use super::record::{Cgroup, tracefs};
use super::support::{mmtwin, report_json, root, scratch, skipped};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SMALL: (u16, u16) = (80, 24);
/// Without events: what counters alone show, as any user.
const COUNTERS: [&str; 4] = ["top", "--no-events", "-I", "100ms"];

fn started(arguments: &[&str], variables: &[(&str, &str)]) -> Pty {
    let mut top = Pty::start(arguments, variables, SMALL);
    // Pressure is known from the second sample on.
    top.wait_until("pressure", |screen| screen.rows(0, 80).nth(1).is_some_and(|line| line.ends_with(" %")));
    top
}

#[test]
fn the_screen_is_taken_and_given_back() {
    let mut top = started(&COUNTERS, &[]);
    top.wait_until("a screen of its own", |screen| screen.alternate_screen() && screen.hide_cursor());
    for part in
        ["mmtwin top  counters only", "every 100ms  Linux ", "memory some", "KSWAPD", "CGROUP", "PROCESS", "q quit"]
    {
        top.wait_for(part);
    }
    top.press("q");
    let (status, left) = top.end();
    assert_eq!((status, left.trim()), (0, ""));
}

#[test]
fn keys_change_what_is_shown() {
    let mut top = started(&COUNTERS, &[]);
    for (keys, shown) in [
        ("?", "fg continues"),
        ("?", "CGROUP"),
        ("s", "sort: faults"),
        ("r", "sort: faults reversed"),
        (" ", "FROZEN"),
        ("/no such thing", "filter: no such thing_"),
        ("\r", "nothing fits the filter no such thing"),
        ("\u{1b}", "/ filter  s sort"),
        ("\t\r", "COUNTER"),
        ("\u{1b}", "CGROUP"),
    ] {
        top.press(keys);
        top.wait_for(shown);
    }
    top.press(" ");
    top.wait_until("the newest again", |screen| !screen.contents().contains("FROZEN"));
    top.press("\u{3}");
    assert_eq!(top.end().0, 0, "Ctrl-C is a key here");
}

#[test]
fn a_terminal_may_change_its_size() {
    let mut top = started(&COUNTERS, &[]);
    top.resize(200, 50);
    top.wait_until("a wide screen", |screen| {
        screen.rows(0, 200).any(|line| line.contains("CGROUP") && line.contains("PROCESS"))
    });
    top.resize(40, 10);
    top.wait_for("too small: top needs 60x12");
    top.resize(80, 24);
    top.wait_for("q quit");
    top.press("q");
    assert_eq!(top.end().0, 0);
}

#[test]
fn signals_end_it_and_the_terminal_is_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let top = started(&COUNTERS, &[]);
        kill_process(Pid::from_raw(top.id() as i32).expect("a pid"), signal).expect("the program");
        assert_eq!(top.end().0, 128 + signal.as_raw());
    }
}

#[test]
fn what_was_seen_becomes_a_recording() {
    let scratch = scratch();
    let path = scratch.path().join("seen.mmt");
    let output = path.to_str().expect("UTF-8");
    let mut top = started(&[&COUNTERS[..], &["-o", output]].concat(), &[]);
    top.press("w");
    top.wait_for("written: ");
    top.press("w");
    let second = scratch.path().join("seen-2.mmt");
    top.wait_until("the second one", |_| second.join("end.json").exists());
    top.press("q");
    assert_eq!(top.end().0, 0);
    for recording in [&path, &second] {
        let report = report_json(recording, ["--table", "vmstat,psi"]);
        assert_eq!(report["inputs"][0]["arm"], "host");
        assert!(report["tables"].as_array().is_some_and(|tables| !tables.is_empty()), "{report}");
    }
}

#[test]
fn without_colours_there_are_none() {
    let coloured = |top: &Pty| {
        let (rows, columns) = top.screen().size();
        let (rows, columns) = (rows.get(), columns.get());
        let mut cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        cells.any(|(row, column)| {
            let cell = top.screen().cell(row, column).expect("a cell");
            [cell.fgcolor(), cell.bgcolor()].iter().any(|colour| *colour != vt100::Color::Default)
        })
    };
    for (variables, expected) in [(&[("NO_COLOR", "1")][..], false), (&[], true)] {
        let mut top = started(&COUNTERS, variables);
        assert_eq!(coloured(&top), expected, "{variables:?}");
        top.press("q");
        assert_eq!(top.end().0, 0);
    }
}

#[test]
fn who_waits_at_a_limit_is_shown_with_the_reason() {
    let test = "who_waits_at_a_limit_is_shown_with_the_reason";
    let (Some(tracefs), Some(group)) = (tracefs(test), Cgroup::new(test)) else { return };
    let scratch = scratch();
    let file = scratch.path().join("sparse");
    fs::File::create(&file).and_then(|f| f.set_len(256 << 20)).expect("a sparse file");
    let name = group.0.file_name().expect("a name").to_str().expect("UTF-8").to_string();
    let mut top = started(&["top", "-I", "100ms", "--cgroup", &format!("/{name}")], &[]);
    top.wait_for("events and counters");
    let procs = group.0.join("cgroup.procs");
    let read = format!(
        "echo $$ > {}; while :; do dd if={} of=/dev/null bs=1M status=none; done",
        procs.display(),
        file.display()
    );
    let mut reader = Command::new("sh").args(["-c", &read]).spawn().expect("a shell");
    top.wait_until("dd at its limit", |screen| {
        screen.rows(0, 80).any(|line| line.contains(" dd ") && line.contains("cgroup limit"))
    });
    top.wait_until("hits of the limit", |screen| {
        let is_group = |line: &String| line.starts_with('…') && line.contains(" 64.0 MiB ");
        let hits = |line: String| line.split_whitespace().rev().nth(1).is_some_and(|hits| hits != "0" && hits != "n/a");
        screen.rows(0, 80).filter(is_group).any(hits)
    });
    let _ = reader.kill();
    let _ = reader.wait();
    // What the shell had started ends by itself.
    let emptied = || fs::read_to_string(&procs).is_ok_and(|tasks| tasks.is_empty());
    top.wait_until("an empty cgroup", |_| emptied());
    let pid = top.id();
    top.press("q");
    assert_eq!(top.end().0, 0);
    let left = fs::read_dir(tracefs.join("instances")).expect("instances").flatten();
    let own = format!("mmtwin-{pid}-");
    assert!(
        !left.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(&own)),
        "its instance is left"
    );
}

#[test]
fn what_is_no_terminal_is_refused() {
    let run = mmtwin(["top"]);
    assert_eq!((run.status, run.out.len()), (2, 0));
    assert!(run.err.contains("needs a terminal") && run.err.contains("mmtwin report"), "{}", run.err);
}

/// Cgroups that do nothing, removed at the end.
struct Idle(PathBuf);

impl Idle {
    fn make(count: usize) -> Option<Idle> {
        let mount = mmtwin_host::cgroup::mounts().into_iter().next()?;
        let idle = Idle(mount.path.join(format!("mmtwin-idle-{}", std::process::id())));
        fs::create_dir(&idle.0).ok()?;
        // Version 2 hands the controller down only where it is told to.
        let _ = fs::write(idle.0.join("cgroup.subtree_control"), "+memory");
        (0..count).all(|i| fs::create_dir(idle.0.join(i.to_string())).is_ok()).then_some(idle)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten().filter(|e| e.path().is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Nanoseconds that a process ran. It has one thread.
fn ran(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("/proc");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// `make top-cost`: the share of a CPU that it takes, as figures of the binary that MMTWIN_BINARY names.
#[test]
#[ignore = "takes two minutes"]
fn top_cost() {
    let program = std::env::var("MMTWIN_BINARY").unwrap_or(env!("CARGO_BIN_EXE_mmtwin").into());
    assert!(Path::new(&program).is_file(), "{program}");
    let seconds = std::env::var("MMTWIN_SECONDS").map_or(60, |text| text.parse().expect("seconds"));
    for cgroups in [0, 1000] {
        let idle = if cgroups == 0 { None } else { Idle::make(cgroups) };
        if cgroups > 0 && idle.is_none() {
            return skipped("top_cost", "cgroups cannot be made here");
        }
        let mut command = Command::new(&program);
        command.arg("top").current_dir(root()).stdin(Stdio::null());
        let mut top = Pty::of(&command, SMALL);
        top.wait_until("pressure", |screen| screen.rows(0, 80).nth(1).is_some_and(|line| line.ends_with(" %")));
        let before = ran(top.id());
        top.watch(Duration::from_secs(seconds));
        let share = (ran(top.id()) - before) as f64 / 1e9 / seconds as f64 * 100.0;
        println!("with {cgroups} more cgroups: {share:.2} % of a CPU over {seconds} s");
        top.press("q");
        assert_eq!(top.end().0, 0);
        assert!(share <= 1.0, "{share:.2} %");
    }
}

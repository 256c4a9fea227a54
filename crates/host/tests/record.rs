//! Recordings of this machine. What needs tracefs or a memory cgroup reports it and is skipped without.

use mmtwin_event::manifest::Exit;
use mmtwin_event::vocabulary::MmVmscanLruShrinkInactive;
use mmtwin_event::{CounterRow, Event, Kind, Sink, Task};
use mmtwin_host::record::{Options, record};
use mmtwin_host::{cgroup, tracefs};
use mmtwin_trace::Outcome;
use mmtwin_trace::recording::Recording;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Past the test harness, which keeps the output of tests that pass.
fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

fn tracing(test: &str) -> Option<PathBuf> {
    tracefs::find().inspect_err(|o| skipped(test, &format!("{} (fix: {})", o.what, o.fix))).ok()
}

/// A memory cgroup with a limit, removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(test: &str, limit: u64) -> Option<Cgroup> {
        for mount in cgroup::mounts() {
            let path = mount.path.join(format!("mmtwin-test-{}-{test}", std::process::id()));
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Cgroup(path);
            let limits = ["memory.limit_in_bytes", "memory.max"];
            if limits.iter().any(|f| group.0.join(f).exists() && fs::write(group.0.join(f), limit.to_string()).is_ok())
            {
                return Some(group);
            }
        }
        skipped(test, "no memory cgroup can be made here");
        None
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn options(output: &Path, command: &[&str]) -> Options {
    Options {
        output: output.into(),
        interval: Some(Duration::from_millis(100)),
        command: command.iter().map(Into::into).collect(),
        ..Options::default()
    }
}

#[derive(Default)]
struct Seen {
    events: u64,
    kinds: BTreeMap<String, u64>,
    scanned: u64,
    reclaimed: u64,
    lost: u64,
    tasks: Vec<(i32, String, Option<String>)>,
    first: BTreeMap<(String, String), u64>,
    last: BTreeMap<(String, String), u64>,
    stamps: Vec<u64>,
}

impl Seen {
    fn delta(&self, source: &str, name: &str) -> u64 {
        let key = (source.to_string(), name.to_string());
        self.last[&key] - self.first[&key]
    }
}

impl Sink for Seen {
    fn task(&mut self, task: &Task<'_>) {
        let comm = String::from_utf8_lossy(task.comm).into_owned();
        self.tasks.push((task.pid, comm, task.cgroup.map(str::to_string)));
    }
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.stamps.extend(self.stamps.is_empty().then_some(event.ts));
        *self.kinds.entry(format!("{:?}", event.kind)).or_default() += 1;
        if event.kind == Kind::MmVmscanLruShrinkInactive {
            let shrink = event.typed::<MmVmscanLruShrinkInactive>();
            self.scanned += shrink.nr_scanned;
            self.reclaimed += shrink.nr_reclaimed;
        }
    }
    fn lost(&mut self, _cpu: u32, events: Option<u64>, _at: u64) {
        self.lost += events.unwrap_or(1);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        for (name, value) in row.names.iter().zip(row.values) {
            let key = (format!("{}{}", row.source, row.key), name.clone());
            if let Some(value) = value {
                self.first.entry(key.clone()).or_insert(*value);
                self.last.insert(key, *value);
            }
        }
    }
}

fn read(path: &Path) -> (Recording, Seen, Outcome) {
    let recording = Recording::open(path).unwrap();
    let (mut seen, mut outcome) = (Seen::default(), Outcome::default());
    recording.read(&mut seen, &mut outcome).unwrap();
    (recording, seen, outcome)
}

/// A shell command that reads `file` within `group`, and lives on for a while: a cgroup is known of living tasks.
fn reader(group: &Cgroup, file: &Path) -> String {
    let (procs, file) = (group.0.join("cgroup.procs"), file.display());
    format!(
        "mkfifo {file}.fifo; sleep 3 > {file}.fifo & echo $$ > {} && exec cat {file} {file}.fifo > /dev/null",
        procs.display()
    )
}

/// A file without blocks: reading it fills the page cache and needs no disk.
fn sparse(directory: &Path, size: u64) -> PathBuf {
    let path = directory.join("sparse");
    File::create(&path).unwrap().set_len(size).unwrap();
    path
}

#[test]
fn reclaim_of_a_small_cgroup_is_recorded_and_agrees_with_the_counters() {
    let test = "reclaim";
    let (Some(_), Some(group)) = (tracing(test), Cgroup::new(test, 32 << 20)) else { return };
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = sparse(root.path(), 192 << 20);
    let output = root.path().join("r.mmt");
    let mut options = options(&output, &["sh", "-c", &reader(&group, &file)]);
    let key = format!("/{}", group.0.file_name().unwrap().to_str().unwrap());
    options.cgroups = vec![key.clone()];
    let outcome = record(&options, &mut |m| panic!("{m}")).unwrap();
    assert_eq!((outcome.status(), outcome.lost()), (0, 0));
    let (recording, seen, read) = read(&output);
    assert_eq!(read.warnings.list(), []);
    let end = recording.end.as_ref().unwrap();
    assert_eq!(end.exit, Some(Exit::Code(0)));
    assert!(end.cost.page_bytes > 0 && end.cost.counter_bytes > 0 && end.cost.cpu_time > 0);
    assert!(end.times.unwrap().elapsed > 0.0);
    assert!(seen.kinds["MmVmscanMemcgReclaimBegin"] > 20, "{:?}", seen.kinds);
    assert_eq!(seen.kinds["MmVmscanMemcgReclaimBegin"], seen.kinds["MmVmscanMemcgReclaimEnd"]);
    // What the kernel counted is what its events say. Before 4.8 the kernel has other names.
    for (counters, events) in
        [(["pgscan_anon", "pgscan_file"], seen.scanned), (["pgsteal_anon", "pgsteal_file"], seen.reclaimed)]
    {
        let counted: u64 = counters.iter().map(|name| seen.delta("vmstat", name)).sum();
        assert!(
            events > 10_000 && counted.abs_diff(events) * 100 <= counted,
            "{counters:?}: {counted}, events {events}"
        );
    }
    let cgroup = format!("cgroup{key}");
    assert!(seen.first.keys().any(|(source, name)| *source == cgroup && name.starts_with("memory.stat.")));
    let cat = seen.tasks.iter().find(|(_, comm, _)| comm == "cat");
    assert_eq!(cat.and_then(|(_, _, cgroup)| cgroup.as_deref()), Some(key.as_str()), "{:?}", seen.tasks);
    // Counters and events share a clock.
    let manifest = &recording.manifest;
    assert!(seen.stamps.iter().all(|ts| (manifest.start..=end.end).contains(ts)));
    assert!(manifest.evidence.memory.is_some() && manifest.evidence.files.contains_key("/proc/sys/vm/swappiness"));
}

#[test]
fn the_commands_status_is_forwarded() {
    let root = tempfile::tempdir().unwrap();
    let status = |name: &str, script: &str| {
        record(&options(&root.path().join(name), &["sh", "-c", script]), &mut |_| {}).unwrap().status()
    };
    assert_eq!(status("a", "exit 7"), 7);
    assert_eq!(status("b", "kill -TERM $$"), 128 + 15);
}

#[test]
fn a_command_that_does_not_start_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("r.mmt");
    assert!(record(&options(&output, &["/no/such/program"]), &mut |_| {}).is_err());
    assert!(!output.exists());
}

#[test]
fn unknown_events_and_cgroups_leave_nothing() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("r.mmt");
    let mut options = options(&output, &["true"]);
    options.cgroups = vec!["/no/such/cgroup".into()];
    assert!(record(&options, &mut |_| {}).is_err());
    if tracing("unknown events").is_some() {
        options.cgroups.clear();
        options.events = vec!["vmscan:mm_vmscan_kswapd_slep".into()];
        let message = record(&options, &mut |_| {}).unwrap_err().to_string();
        assert!(message.contains("did you mean `vmscan:mm_vmscan_kswapd_sleep`"), "{message}");
    }
    assert!(!output.exists());
}

/// The settings of the machine's own tracing.
fn global_settings(tracefs: &Path) -> Vec<(&'static str, String)> {
    [
        "trace_clock",
        "buffer_size_kb",
        "tracing_on",
        "set_event",
        "trace_options",
        "current_tracer",
        "saved_cmdlines_size",
    ]
    .map(|file| (file, fs::read_to_string(tracefs.join(file)).unwrap_or_default()))
    .into()
}

fn own_instances(tracefs: &Path, pid: u32) -> Vec<String> {
    let names = fs::read_dir(tracefs.join("instances")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names
        .filter(|n| n.strip_prefix("mmtwin-").is_some_and(|n| n.split(['.', '-']).next() == Some(&pid.to_string())))
        .collect()
}

#[test]
fn a_recorder_that_is_interrupted_ends_cleanly_and_restores_everything() {
    let Some(tracefs) = tracing("interrupted") else { return };
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("r.mmt");
    let before = global_settings(&tracefs);
    let mut child = recorder(&output);
    assert_eq!(own_instances(&tracefs, child.id()).len(), 1);
    signal(&child, "INT");
    assert!(child.wait().unwrap().success());
    assert_eq!(global_settings(&tracefs), before);
    assert!(own_instances(&tracefs, child.id()).is_empty());
    let (recording, _, read) = read(&output);
    assert_eq!(read.warnings.list(), []);
    assert_eq!(recording.end.unwrap().exit, None);
}

#[test]
fn a_killed_recording_is_readable_and_the_next_one_cleans_up() {
    let Some(tracefs) = tracing("killed") else { return };
    let root = tempfile::tempdir().unwrap();
    let mut live = recorder(&root.path().join("live.mmt"));
    let killed_output = root.path().join("killed.mmt");
    let mut killed = recorder(&killed_output);
    signal(&killed, "KILL");
    killed.wait().unwrap();
    assert_eq!(own_instances(&tracefs, killed.id()).len(), 1, "nobody could remove it");
    let (recording, seen, outcome) = read(&killed_output);
    assert!(recording.end.is_none() && seen.events > 0, "{} events", seen.events);
    assert!(seen.first.contains_key(&("vmstat".to_string(), "pgfault".to_string())));
    assert!(outcome.warnings.list().iter().any(|w| w.message.contains("truncated")), "{:?}", outcome.warnings);
    // A recorder of somebody else, by name, is left alone too.
    let foreign = tracefs.join("instances").join(format!("mmtwin-test-{}", std::process::id()));
    fs::create_dir(&foreign).unwrap();
    record(&options(&root.path().join("next.mmt"), &["true"]), &mut |_| {}).unwrap();
    let (left, kept, foreign_kept) =
        (own_instances(&tracefs, killed.id()), own_instances(&tracefs, live.id()), foreign.exists());
    fs::remove_dir(&foreign).unwrap();
    signal(&live, "TERM");
    assert!(live.wait().unwrap().success());
    assert!(left.is_empty() && kept.len() == 1 && foreign_kept, "{left:?} {kept:?} {foreign_kept}");
}

fn signal(child: &std::process::Child, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap().success());
}

/// Starts a recorder of page allocations as a process of its own and waits until pages are in its recording.
fn recorder(output: &Path) -> std::process::Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recorder_process", "--nocapture"])
        .env("MMTWIN_TEST_OUTPUT", output)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let filled = || {
        let pages = fs::read_dir(output.join("cpu")).into_iter().flatten().flatten();
        let sampled = output.join("counters/vmstat.arrows").metadata().is_ok_and(|m| m.len() > 0);
        sampled && pages.map(|e| e.metadata().map_or(0, |m| m.len())).sum::<u64>() > 0
    };
    while !filled() {
        assert!(child.try_wait().unwrap().is_none(), "the recorder ended");
        assert!(start.elapsed() < Duration::from_secs(60), "no pages after a minute");
        // Makes events.
        drop(vec![1u8; 8 << 20]);
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Not a test of its own: what [`recorder`] runs.
#[test]
fn recorder_process() {
    let Some(output) = std::env::var_os("MMTWIN_TEST_OUTPUT") else { return };
    let mut options = options(Path::new(&output), &[]);
    options.events = vec!["kmem:mm_page_alloc".into(), "kmem:mm_page_free".into()];
    record(&options, &mut |_| {}).unwrap();
}

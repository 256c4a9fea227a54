//! Files and swap on devices with latency, used by a scenario's own workload: requests wait for the guest's timers, so
//! that two runs in mode exact are equal byte by byte. Without QEMU 9, the kernels or the agent, which `make lab` sets
//! up, the tests report that they are skipped.

use crate::common::Guest;
use mmtwin_event::{CounterRow, Event, Sink};
use mmtwin_lab::{Job, Mode, run_all};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// One process writes a file and then uses it, another more memory than there is.
const SCENARIO: &str = r#"
[machine]
distance = [[10, 21], [21, 10]]
disk.latency = "2 ms"
swap = { size = "256 MiB", synchronous = false, latency = "2 ms" }
[[machine.node]]
cpus = "0"
memory = "192 MiB"
[[machine.node]]
cpus = "1"
memory = "128 MiB"

[kernel]
release = "6.1"
thp = "never"

[[process]]
name = "files"
[[process.region]]
name = "data"
kind = "file"
size = "32 MiB"
[[process.phase]]
[[process.phase.access]]
region = "data"
pattern = "sequential"
via = "syscall"
write = 1.0
count = 8192
[[process.phase]]
duration = "2 s"
[[process.phase.access]]
region = "data"
pattern = "uniform"
write = 0.1
think = "2 us"

[[process]]
name = "hog"
[[process.region]]
name = "heap"
size = "256 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
think = "2 us"
count = 90_000

[run]
sample = "500 ms"
events = ["vmscan:*"]
"#;

/// The last value of every counter of /proc/vmstat, and how many events there were.
#[derive(Default)]
struct Seen {
    vmstat: BTreeMap<String, u64>,
    events: u64,
}

impl Sink for Seen {
    fn event(&mut self, _: &Event<'_>) {
        self.events += 1;
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.source == "vmstat" {
            let known = row.names.iter().zip(row.values).filter_map(|(name, value)| Some((name.clone(), (*value)?)));
            self.vmstat.extend(known);
        }
    }
}

/// The tests take turns: each keeps as many CPUs busy as it has guests.
static TURN: Mutex<()> = Mutex::new(());

/// Runs the scenario this many times in parallel. `None`: a part is missing, which was reported.
fn runs(release: &str, sets: &[&str], directory: &Path, count: usize) -> Option<Vec<PathBuf>> {
    let guest = Guest::new(release, Mode::Exact)?;
    let sets: Vec<String> =
        [&format!("kernel.release={release:?}")[..]].iter().chain(sets).map(|s| s.to_string()).collect();
    let (scenario, agent) = (crate::common::parse(SCENARIO, &sets), guest.agent());
    let outputs: Vec<PathBuf> = (0..count).map(|number| directory.join(format!("{release}-{number}"))).collect();
    let jobs: Vec<Job<'_>> = outputs.iter().map(|output| guest.job(&scenario, &agent, output)).collect();
    let _turn = TURN.lock();
    for result in run_all(&guest.lab, &jobs, count, &AtomicBool::new(false), &|_, _| {}) {
        eprintln!("{release}: {:?}", result.unwrap_or_else(|e| panic!("{e}")));
    }
    Some(outputs)
}

fn seen(recording: &Path) -> Seen {
    let mut seen = Seen::default();
    crate::common::read(recording, &mut seen);
    seen
}

/// A file that two recordings do not have in common.
fn different(a: &Path, b: &Path) -> Option<PathBuf> {
    let (a, b) = (crate::common::measured(a), crate::common::measured(b));
    assert!(a.keys().eq(b.keys()) && a.len() > 20);
    a.into_iter().find(|(name, content)| *content != b[name]).map(|(name, _)| name)
}

fn two_runs_are_equal(release: &str) {
    let directory = tempfile::tempdir().expect("directory");
    let Some(outputs) = runs(release, &[], &directory.path().join("two"), 2) else { return };
    if let Some(name) = different(&outputs[0], &outputs[1]) {
        // The emulator has a race of its own (see pinned.rs in mmtwin-lab): a third run shows which of the two it has
        // affected.
        eprintln!("{release}: {} differs, once more", name.display());
        let Some(third) = runs(release, &[], &directory.path().join("third"), 1) else { return };
        let differences = outputs.iter().map(|output| different(output, &third[0]));
        assert!(differences.clone().any(|name| name.is_none()), "{:?} differ", differences.collect::<Vec<_>>());
    }
    let seen = seen(&outputs[0]);
    assert!(seen.events > 1000, "{} events", seen.events);
    for name in ["pswpin", "pswpout", "pgpgin", "pgmajfault", "pgscan_kswapd", "swap_ra", "nr_written"] {
        assert!(seen.vmstat[name] > 0, "{name}: the devices are not used");
    }
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn files_and_swap_of_6_1_are_equal_byte_by_byte() {
    two_runs_are_equal("6.1");
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn files_and_swap_of_6_12_are_equal_byte_by_byte() {
    two_runs_are_equal("6.12");
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn synchronous_devices_are_memory_itself() {
    let directory = tempfile::tempdir().expect("directory");
    let sets = ["machine.disk.latency=\"0 ns\"", "machine.swap.synchronous=true"];
    let Some(outputs) = runs("6.1", &sets, directory.path(), 1) else { return };
    let seen = seen(&outputs[0]);
    assert!(seen.vmstat["pswpin"] > 100 && seen.vmstat["pswpout"] > 100);
    assert_eq!(seen.vmstat["swap_ra"], 0, "nothing is read ahead from a device that is as fast as memory");
}

/// Reads of single pages at distant places of a file that was not read before, one after another.
const READS: &str = r#"
[machine]
preset = "lab-4n"
distance = [[10]]
[[machine.node]]
cpus = "0-1"
memory = "192 MiB"
[kernel]
release = "6.1"
[[process]]
name = "reader"
[[process.region]]
name = "data"
kind = "file"
size = "64 MiB"
[[process.phase]]
[[process.phase.access]]
region = "data"
pattern = "uniform"
via = "syscall"
count = 300
[run]
sample = "0 s"
counters = ["pgpgin"]
"#;

/// Mean microseconds of a read.
fn read_takes(release: &str, sets: &[&str], directory: &Path) -> Option<f64> {
    let guest = Guest::new(release, Mode::Exact)?;
    let sets: Vec<String> =
        [&format!("kernel.release={release:?}")[..]].iter().chain(sets).map(|s| s.to_string()).collect();
    let (scenario, output) =
        (crate::common::parse(READS, &sets), directory.join(sets.join(" ").replace(['/', '"'], "")));
    let _turn = TURN.lock();
    guest.record(&scenario, &output);
    let (recording, _) = crate::common::read(&output, &mut Seen::default());
    let phase = recording.results.expect("results").phases[0].clone();
    let took = (phase.end - phase.start) as f64 / 1e3 / phase.accesses[0].touches as f64;
    eprintln!("{release} {sets:?}: {took:.1} us");
    Some(took)
}

/// Microseconds of latency of a disk: requested, and measured.
fn disk_is_as_slow_as_asked(release: &str, asked: &[f64], directory: &Path) {
    let Some(memory) = read_takes(release, &[], directory) else { return };
    for asked in asked {
        let set = format!("machine.disk.latency=\"{asked} us\"");
        let Some(got) = read_takes(release, &[&set], directory) else { return };
        // The guest's own work for a request and its interrupt, at 8 ns an instruction.
        let more = got - asked - memory;
        assert!((0.0..120.0).contains(&more), "{release}: {asked} us took {got:.1} us, memory {memory:.1} us");
    }
}

#[test]
fn a_disk_has_the_requested_latency() {
    let directory = tempfile::tempdir().expect("directory");
    disk_is_as_slow_as_asked("6.12", &[1000.0], directory.path());
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn a_disk_has_the_requested_latency_on_every_kernel() {
    let directory = tempfile::tempdir().expect("directory");
    for release in ["6.1", "6.12"] {
        disk_is_as_slow_as_asked(release, &[150.0, 1000.0, 2500.0], directory.path());
        // The kernel's own target, by ticks of 4 ms.
        let sets = ["machine.disk.latency=\"1 ms\"", "machine.disk.ticks=true"];
        let Some(got) = read_takes(release, &sets, directory.path()) else { return };
        let ticks = if release == "6.1" { 8000.0 } else { 4000.0 };
        assert!((got - ticks).abs() < 200.0, "{release}: {got:.1} us");
    }
}

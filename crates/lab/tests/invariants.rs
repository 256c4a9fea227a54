//! Boots real kernels under memory pressure and NUMA balancing, and compares sums of events with the kernel's counters,
//! as `report` does. Missing parts (QEMU, the kernels, the agent) are named, and the tests report that they are
//! skipped.

use crate::common::Guest;
use mmtwin_analysis::Analysis;
use mmtwin_lab::Mode;
use mmtwin_report::model::{Body, Cell};
use mmtwin_report::tables;
use std::collections::BTreeMap;

/// More files and memory than the nodes have, a cgroup that reads more than it may keep, and threads on both nodes
/// whose memory is on the first.
const PRESSED: &str = r#"
[machine]
swap = { size = "128 MiB", synchronous = true, latency = "10 us" }
[[machine.node]]
cpus = "0-1"
memory = "192 MiB"
[[machine.node]]
cpus = "2-3"
memory = "128 MiB"

[kernel]
release = "RELEASE"
thp = "never"
[kernel.numa_balancing]
scan_delay_ms = 100
scan_period_min_ms = 100

[[cgroup]]
name = "/limited"
memory.max = "16 MiB"

[[process]]
name = "balanced"
threads = 2
cpus = "0,2"
pin = true
[[process.region]]
name = "own"
size = "8 MiB"
sharing = "private"
populate = true
populate_policy = "bind:0"
[[process.phase]]
duration = "2 s"
[[process.phase.access]]
region = "own"
pattern = "uniform"
think = "20 us"
write = 0.3

[[process]]
name = "limited"
cgroup = "/limited"
[[process.region]]
name = "log"
kind = "file"
size = "32 MiB"
[[process.phase]]
[[process.phase.access]]
region = "log"
pattern = "sequential"
count = 8192

[[process]]
name = "filler"
start = "2 s"
[[process.region]]
name = "data"
kind = "file"
size = "128 MiB"
[[process.region]]
name = "heap"
size = "192 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
count = 49_152
[[process.phase.access]]
region = "data"
pattern = "sequential"
count = 32_768

[run]
events = [
  "vmscan:mm_vmscan_lru_shrink_inactive", "vmscan:mm_vmscan_*reclaim_begin", "vmscan:mm_vmscan_*reclaim_end",
  "vmscan:mm_vmscan_kswapd_*", "migrate:mm_migrate_pages", "sched:sched_*_numa",
]
"#;

/// Runs it, in mode exact where QEMU can; `None` if something is missing.
fn recorded(release: &str) -> Option<Analysis> {
    let mut guest = Guest::new(release, Mode::Smp)?;
    if guest.lab.qemu.major() >= 9 {
        guest.mode = Mode::Exact;
    }
    let directory = tempfile::tempdir().expect("directory");
    let output = directory.path().join("recording");
    guest.record(&crate::common::parse(&PRESSED.replace("RELEASE", release), &[]), &output);
    let mut analysis = Analysis::default();
    let (_, outcome) = crate::common::read(&output, &mut analysis);
    assert_eq!(outcome.warnings.list(), []);
    Some(analysis)
}

/// Every invariant is known and holds, and there was something to hold.
fn check(analysis: &Analysis) {
    let table = tables::invariants::table(analysis);
    let Body::Metric(rows) = &table.body else { panic!("rows") };
    let values: BTreeMap<&str, &Cell> = rows.iter().map(|row| (row.key.as_str(), &row.value)).collect();
    let lines = tables::cross_check::reclaim(analysis);
    let sides: Vec<_> = lines.iter().map(|line| (&line.key, &line.events, &line.counters)).collect();
    for row in rows {
        assert_eq!(*values[row.key.as_str()], Cell::Int(0), "{}: {sides:?}", row.key);
    }
    for key in ["pgscan_kswapd", "pageoutrun", "memcg_scanned", "memcg_reclaimed", "numa_pages_migrated"] {
        let line = lines.iter().find(|line| line.key == key).unwrap_or_else(|| panic!("{key}"));
        assert!(line.events.number().is_some_and(|n| n > 0.0), "{key}: {sides:?}");
    }
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn sums_of_events_are_the_counters_on_the_older_kernel() {
    recorded("6.1").as_ref().map(check);
}

#[test]
fn sums_of_events_are_the_counters_on_the_newer_kernel() {
    recorded("6.12").as_ref().map(check);
}

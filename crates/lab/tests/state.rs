//! The module's state of a guest at the start of its workload equals the kernel's counters. Missing parts (QEMU, the
//! kernels, the module, the agent) are named, and the test reports that it is skipped.

use crate::common::Guest;
use mmtwin_event::counters::{self, Run};
use mmtwin_lab::Mode;
use mmtwin_trace::recording::Recording;

/// Two nodes; a process in a cgroup has memory of its own when the state is read.
const SCENARIO: &str = r#"
[machine]
distance = [[10, 21], [21, 10]]
[[machine.node]]
cpus = "0-1"
memory = "384 MiB"
[[machine.node]]
cpus = "2-3"
memory = "256 MiB"

[kernel]
release = "6.1"

[[cgroup]]
name = "/box"
memory.max = "64 MiB"

[[process]]
name = "boxed"
cpus = "2"
cgroup = "/box"

[[process.region]]
name = "file"
size = "8 MiB"
kind = "file"

[[process.phase]]
[[process.phase.action]]
kind = "lookup"
count = 3000

[[process.phase.access]]
region = "file"
pattern = "sequential"
via = "syscall"
count = 2048

[run]
sample = "0 s"
"#;

/// Pages in differentials of CPUs, or changed between the reads of two files of the state.
const MARGIN: u64 = 250;

#[test]
fn lists_and_shrinkers_are_the_kernels() {
    for release in ["6.1", "6.12"] {
        let Some(guest) = Guest::new(release, Mode::Exact) else { return };
        let scenario = crate::common::parse(SCENARIO, &[format!("kernel.release={release:?}")]);
        let directory = tempfile::tempdir().expect("directory");
        let output = directory.path().join("recording");
        guest.record(&scenario, &output);
        let recording = Recording::open(&output).expect("a recording");
        let files = recording.state.expect("a state").files;
        let Some(text) = files.get("/proc/mmtwin_lru") else {
            eprintln!("skipped: the module mmtwin for kernel {release} is not today's: run `make lab`");
            return;
        };
        let mut problems = Vec::new();
        let lru = counters::lru(text, &mut problems);
        let zones = counters::zoneinfo(&files["/proc/zoneinfo"], &mut problems);
        let shrinkers = counters::shrinkers(&files["/proc/mmtwin_shrinkers"], &mut problems);
        let nodes = &files["/proc/mmtwin_nodes"];
        assert_eq!(problems, []);

        assert_eq!(
            lru.lruvecs.iter().map(|of| (of.cgroup.as_str(), of.node)).collect::<Vec<_>>(),
            [("/", 0), ("/", 1), ("/box", 0), ("/box", 1)]
        );
        let pages = |runs: &[Run]| runs.iter().map(|run| run.folios << run.order).sum::<u64>();
        for node in 0..2 {
            let row = zones.iter().find(|row| row.key == node.to_string()).expect("a node");
            for (list, name) in
                ["nr_inactive_anon", "nr_active_anon", "nr_inactive_file", "nr_active_file"].iter().enumerate()
            {
                let listed: u64 =
                    lru.lruvecs.iter().filter(|of| of.node == node).map(|of| pages(&of.lists[list])).sum();
                let counted = row.value(name).expect("a counter");
                assert!(
                    listed.abs_diff(counted) <= MARGIN,
                    "{release}, node {node}: {name} {counted}, listed {listed}"
                );
            }
            let line = nodes.lines().find(|line| line.starts_with(&format!("node={node} kswapd_order=")));
            assert!(line.is_some_and(|line| line.split(' ').any(|word| word == "kswapd_failures=0")), "{nodes}");
        }
        let dentries = shrinkers.iter().filter(|of| of.of.as_deref() == Some("ext4"));
        assert!(dentries.clone().count() >= 2 && dentries.clone().all(|of| of.name == "super_cache_scan"));
        assert!(dentries.map(|of| of.objects).sum::<u64>() > 0);

        let results = recording.results.expect("results");
        let looked = &results.phases[0].actions[0];
        assert_eq!((looked.kind.as_str(), looked.operations), ("lookup", 3000));
    }
}

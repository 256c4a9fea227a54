//! Boots real kernels. Without QEMU or without the kernels, which `make lab` sets up, the tests report that they are
//! skipped.

use crate::common::Guest;
use mmtwin_lab::{Error, Job, Mode, Outcome, Stage, run};
use mmtwin_scenario::Scenario;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Nodes of different sizes, one without memory, distances that differ, also in the two directions.
const FOUR_NODES: &str = r#"
[machine]
name = "four"
asymmetric = true
distance = [[10, 21, 31, 21], [22, 10, 21, 31], [40, 21, 10, 21], [21, 31, 20, 10]]
[[machine.node]]
cpus = "0-1"
memory = "512 MiB"
[[machine.node]]
cpus = "2-3"
memory = "384 MiB"
[[machine.node]]
cpus = "4-5"
[[machine.node]]
cpus = "6-7"
memory = "256 MiB"
"#;

/// Stands for the agent: writes the kernel's nodes and settings.
const LISTING: &str = r#"#!/bin/sh
for node in /sys/devices/system/node/node*; do
    to=$2/${node##*/}
    mkdir -p "$to"
    for file in cpulist distance meminfo; do cat "$node/$file" >"$to/$file"; done
done
cat /proc/sys/vm/swappiness /proc/sys/vm/stat_interval >"$2/sysctl"
cat /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/debug/sched/numa_balancing/scan_size_mb >"$2/settings"
cat /proc/swaps >"$2/swaps"
cat /proc/mounts >"$2/mounts"
cat /proc/vmstat >"$2/vmstat"
cat /proc/sys/kernel/random/uuid >"$2/random"
echo "$MMTWIN_ARM" >"$2/arm"
"#;

struct Bench {
    guest: Guest,
    directory: tempfile::TempDir,
}

impl Bench {
    /// Files for a test, or a message on missing ones.
    fn new(kernel: &str, mode: Mode) -> Option<Bench> {
        let directory = tempfile::tempdir().expect("directory");
        Guest::bare(kernel, mode).map(|guest| Bench { guest, directory })
    }

    fn run(&self, scenario: &Scenario, agent: &str, output: &str) -> Result<Outcome, Error> {
        self.run_for(scenario, agent, output, Duration::from_secs(300))
    }

    fn run_for(&self, scenario: &Scenario, agent: &str, output: &str, time_out: Duration) -> Result<Outcome, Error> {
        let (script, output) = (self.path(&format!("{output}.sh")), self.path(output));
        std::fs::write(&script, agent).expect("script");
        let job = Job { room: 16 << 20, time_out, ..self.guest.job(scenario, &script, &output) };
        let mut stages = Vec::new();
        let outcome = run(&self.guest.lab, &job, &AtomicBool::new(false), &mut |progress| stages.push(progress.stage));
        assert!(stages.is_sorted(), "a guest does not go back: {stages:?}");
        if let Ok(outcome) = &outcome {
            assert_eq!(stages.last(), Some(&Stage::Sending));
            eprintln!("{} {}: {outcome:?}", self.guest.kernel.version, self.guest.mode);
        }
        outcome
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|e| panic!("{path}: {e}")).trim_end().to_string()
    }
}

fn scenario(machine: &str, release: &str, rest: &str) -> Scenario {
    let text = format!("{machine}\n[kernel]\nrelease = \"{release}\"\n{rest}");
    crate::common::parse(&text, &[])
}

#[test]
fn the_kernel_sees_the_nodes_and_settings_of_the_scenario() {
    let Some(bench) = Bench::new("6.1", Mode::Smp) else { return };
    let rest = "thp = \"never\"\n[kernel.sysctl]\n\"vm.swappiness\" = 33\n[kernel.numa_balancing]\nscan_size_mb = 128";
    let scenario = scenario(FOUR_NODES, "6.1", rest);
    bench.run(&scenario, LISTING, "rec").unwrap_or_else(|e| panic!("{e}"));
    for (nid, node) in scenario.machine.nodes.iter().enumerate() {
        let list = format!("{}-{}", node.cpus[0], node.cpus[1]);
        assert_eq!(bench.text(&format!("rec/node{nid}/cpulist")), list);
        let distance: Vec<String> = scenario.machine.distance[nid].iter().map(u32::to_string).collect();
        assert_eq!(bench.text(&format!("rec/node{nid}/distance")), distance.join(" "));
        let meminfo = bench.text(&format!("rec/node{nid}/meminfo"));
        let total = meminfo.lines().find_map(|l| l.split_once("MemTotal:")?.1.trim().strip_suffix(" kB")?.parse().ok());
        let total: u64 = total.expect("MemTotal");
        let memory = node.memory.0 >> 10;
        // Page structures and, on node 0, the kernel itself are not counted.
        let kernel = if nid == 0 { 96 << 10 } else { 0 };
        assert!(total <= memory && total >= memory - memory / 32 - kernel, "node {nid}: {total} of {memory} kB");
    }
    assert_eq!(bench.text("rec/sysctl"), "33\n1");
    assert_eq!(bench.text("rec/settings"), "always madvise [never]\n128");
    assert_eq!(bench.text("rec/arm"), "lab");
    assert!(bench.text("rec/lab.json").contains("\"mode\": \"smp\""));
}

/// Memory without CPUs that is slower, cores of two threads, caches of two cores.
const TIERS: &str = r#"
[machine]
distance = [[10, 21, 17], [21, 10, 28], [17, 28, 10]]
threads_per_core = 2
siblings = "adjacent"
cluster_cores = 2
memory.latency = { 10 = "80 ns", 17 = "250 ns", 21 = "140 ns", 28 = "300 ns" }
memory.bandwidth = { 10 = "100 GB/s", 17 = "30 GB/s", 21 = "50 GB/s", 28 = "20 GB/s" }
[[machine.node]]
cpus = "0-7"
memory = "256 MiB"
[[machine.node]]
cpus = "8-11"
memory = "256 MiB"
[[machine.node]]
memory = "256 MiB"
"#;

const TIER_LISTING: &str = r#"#!/bin/sh
for tier in /sys/devices/virtual/memory_tiering/memory_tier*; do cat "$tier/nodelist"; done >"$2/tiers"
cd /sys/devices/system/cpu
for cpu in cpu0 cpu5 cpu11; do
    cat $cpu/topology/thread_siblings_list $cpu/cache/index3/shared_cpu_list
done >"$2/cpus"
"#;

#[test]
fn memory_without_cpus_is_a_lower_tier() {
    let Some(bench) = Bench::new("6.12", Mode::Smp) else { return };
    bench.run(&scenario(TIERS, "6.12", ""), TIER_LISTING, "rec").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bench.text("rec/tiers"), "0-1\n2");
    assert_eq!(bench.text("rec/cpus"), "0-1\n0-3\n4-5\n4-7\n10-11\n8-11");
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn two_exact_runs_are_equal_byte_by_byte() {
    let Some(bench) = Bench::new("6.1", Mode::Exact) else { return };
    let scenario = scenario(FOUR_NODES, "6.1", "");
    for name in ["a", "b"] {
        bench.run(&scenario, LISTING, name).unwrap_or_else(|e| panic!("{e}"));
    }
    let (a, b) = (crate::common::files(&bench.path("a")), crate::common::files(&bench.path("b")));
    assert!(a.keys().eq(b.keys()) && a.len() > 15);
    for (name, content) in &a {
        assert!(*content == b[name], "{} differs", name.display());
    }
    let mut other = scenario;
    other.run.seed = 2;
    bench.run(&other, LISTING, "c").unwrap_or_else(|e| panic!("{e}"));
    assert_ne!(bench.text("c/random"), bench.text("a/random"), "what the kernel draws follows the seed");
}

const ONE_NODE: &str = "[machine]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"";

#[test]
fn failures_have_a_message_and_leave_no_files() {
    let Some(bench) = Bench::new("6.1", Mode::Smp) else { return };
    let scenario = scenario(ONE_NODE, "6.1", "");
    let fail = |agent: &str, seconds| {
        let error = bench.run_for(&scenario, agent, "rec", Duration::from_secs(seconds)).expect_err("an error");
        assert!(!bench.path("rec").exists());
        error
    };
    let failed = fail("#!/bin/sh\necho no such node >&2\nexit 3\n", 300);
    assert!(matches!(&failed, Error::Workload { status: 3, message } if message == "no such node"), "{failed}");
    let panicked = fail("#!/bin/sh\necho c >/proc/sysrq-trigger\n", 300);
    assert!(
        matches!(&panicked, Error::Panic { message, console } if message.contains("sysrq") && !console.is_empty()),
        "{panicked}"
    );
    let held = "#!/bin/sh\nsleep 100 >$2/held &\necho yes >$2/file\n";
    bench.run(&scenario, held, "held").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bench.text("held/file"), "yes", "a process that is left behind does no harm");
    let late = fail("#!/bin/sh\nsleep 1000\n", 2);
    assert!(matches!(late, Error::TimeOut { .. }), "{late}");
    let large = fail("#!/bin/sh\n/bin/busybox dd if=/dev/zero of=$2/big bs=1048576 count=60\n", 300);
    assert!(matches!(large, Error::Results { room: 16_777_216, .. }), "{large}");
    let hungry = "#!/bin/sh\nmount -t tmpfs -o size=900m tmpfs /tmp\n/bin/busybox dd if=/dev/zero of=/tmp/a bs=1048576 count=800\n";
    let full = fail(hungry, 300);
    assert!(matches!(full, Error::GuestMemory { .. }), "{full}");
}

#[test]
fn impossible_runs_are_refused_before_they_start() {
    let Some(bench) = Bench::new("6.1", Mode::Smp) else { return };
    let refuse = |scenario: &Scenario| bench.run(scenario, LISTING, "rec").expect_err("an error");
    let other = refuse(&scenario(ONE_NODE, "6.12", ""));
    assert!(matches!(&other, Error::Refused(all) if all[0].key == "kernel.release"), "{other}");
    let huge = refuse(&scenario("[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"900 TiB\"", "6.1", ""));
    assert!(matches!(huge, Error::HostMemory { .. }), "{huge}");
    std::fs::write(bench.path("rec"), "another's").expect("file");
    let there = refuse(&scenario(ONE_NODE, "6.1", ""));
    assert!(matches!(there, Error::Output(_)), "{there}");
}

#[test]
fn a_recording_is_replaced_only_with_force() {
    let Some(bench) = Bench::new("6.1", Mode::Smp) else { return };
    let (scenario, script, output) = (scenario(ONE_NODE, "6.1", ""), bench.path("agent"), bench.path("rec"));
    std::fs::write(&script, LISTING).expect("script");
    std::fs::create_dir(&output).expect("directory");
    // What an unfinished recording has.
    std::fs::write(output.join("mmtwin.recording"), "").expect("marker");
    let job = Job { force: true, ..bench.guest.job(&scenario, &script, &output) };
    run(&bench.guest.lab, &job, &AtomicBool::new(false), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"));
    assert!(bench.path("rec/lab.json").exists());
}

#[test]
fn errors_of_qemu_are_passed_on() {
    let Some(bench) = Bench::new("6.1", Mode::Smp) else { return };
    // QEMU's table of latencies has 16 bits for each.
    let machine = TIERS.replace("10 = \"80 ns\"", "10 = \"1 ns\"").replace("28 = \"300 ns\"", "28 = \"200 us\"");
    let error = bench.run(&scenario(&machine, "6.1", ""), LISTING, "rec").expect_err("an error");
    assert!(matches!(&error, Error::Qemu { message } if message.contains("latency=200000")), "{error}");
    assert!(!bench.path("rec").exists());
}

#[test]
fn a_stopped_run_leaves_no_process() {
    let Some(bench) = Bench::new("6.1", Mode::Smp) else { return };
    let scenario = scenario(ONE_NODE, "6.1", "");
    let script = bench.path("agent");
    std::fs::write(&script, LISTING).expect("script");
    let output = bench.path("rec");
    let job = bench.guest.job(&scenario, &script, &output);
    let stop = AtomicBool::new(false);
    let stopped =
        run(&bench.guest.lab, &job, &stop, &mut |_| stop.store(true, Ordering::Relaxed)).expect_err("stopped");
    assert!(matches!(stopped, Error::Interrupted), "{stopped}");
    let own = std::process::id().to_string();
    let children = std::fs::read_dir("/proc").expect("processes").flatten().filter(|process| {
        let status = std::fs::read_to_string(process.path().join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        parent == Some(own.as_str()) && status.contains("State:\tZ")
    });
    assert_eq!(children.count(), 0);
    assert!(!bench.path("rec").exists());
}

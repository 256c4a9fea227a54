//! Work of a kernel module in guests: pages, vmalloc areas, and modules that are loaded and unloaded. Missing parts
//! (QEMU, the kernels, the module, the agent) are named, and the tests report that they are skipped.

use crate::common::Guest;
use mmtwin_event::results::{ActionResult, PhaseResult, Results};
use mmtwin_event::vocabulary::PurgeVmapAreaLazy;
use mmtwin_event::{CounterRow, Event, Kind, Sink};
use mmtwin_lab::Mode;
use std::collections::BTreeMap;
use std::path::Path;

/// A guest with the module; `None`: a part is missing, which was reported.
fn guest(release: &str, mode: Mode) -> Option<Guest> {
    let guest = Guest::new(release, mode)?;
    let module = guest.kernel.modules.as_ref().map(|modules| modules.join("extra/mmtwin.ko"));
    if module.is_none_or(|module| !module.is_file()) {
        eprintln!("skipped: there is no module mmtwin for kernel {release}: run `make lab`");
        return None;
    }
    Some(guest)
}

/// Runs a workload on two nodes of 384 MiB with two CPUs each, and leaves the recording.
fn run_into(guest: &Guest, workload: &str, output: &Path) {
    let release = guest.kernel.bundle.as_deref().expect("a kernel of the lab");
    let text = format!(
        "[machine]\ndistance = [[10, 21], [21, 10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"384 MiB\"\n\
         [[machine.node]]\ncpus = \"2-3\"\nmemory = \"384 MiB\"\n[kernel]\nrelease = \"{release}\"\n{workload}"
    );
    guest.record(&crate::common::parse(&text, &[]), output);
}

/// Runs it, and returns what was recorded.
fn run(guest: &Guest, workload: &str) -> (Results, Seen) {
    let directory = tempfile::tempdir().expect("directory");
    let output = directory.path().join("recording");
    run_into(guest, workload, &output);
    let mut seen = Seen::default();
    let (recording, outcome) = crate::common::read(&output, &mut seen);
    assert_eq!(outcome.warnings.list(), []);
    let results = recording.results.clone().expect("results");
    results.phases.iter().flat_map(|phase| &phase.actions).for_each(|action| eprintln!("{action:?}"));
    (results, seen)
}

#[derive(Default)]
struct Seen {
    /// Values of every counter of a node in time order, by node and name.
    nodes: BTreeMap<(String, String), Vec<(u64, u64)>>,
    /// Time of every pass that purged areas, and how many.
    purges: Vec<(u64, u32)>,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        if event.kind == Kind::PurgeVmapAreaLazy {
            self.purges.push((event.ts, event.typed::<PurgeVmapAreaLazy>().num_purged));
        }
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.source == "numastat" {
            for (name, value) in row.names.iter().zip(row.values) {
                let values = self.nodes.entry((row.key.to_string(), name.clone())).or_default();
                values.extend(value.map(|value| (row.at, value)));
            }
        }
    }
}

impl Seen {
    /// Increase of a node's counter in a phase, from the boundary before it to the one after: the first sample after a
    /// phase's end, for which the next phase waits. The last one before a phase may be read while it already runs.
    fn delta(&self, node: usize, name: &str, phases: &[PhaseResult], index: usize) -> u64 {
        let values = &self.nodes[&(node.to_string(), name.to_string())];
        let boundary = |end: u64| values.iter().find(|(at, _)| *at >= end).expect("a sample of the boundary").1;
        boundary(phases[index].end) - boundary(index.checked_sub(1).map_or(0, |before| phases[before].end))
    }

    /// Passes in a phase, and areas that they purged.
    fn purged(&self, phase: &PhaseResult) -> (usize, u64) {
        let within = self.purges.iter().filter(|(at, _)| (phase.start..=phase.end).contains(at));
        within.fold((0, 0), |(passes, areas), (_, purged)| (passes + 1, areas + u64::from(*purged)))
    }
}

fn only(phase: &PhaseResult) -> &ActionResult {
    assert_eq!(phase.actions.len(), 1);
    &phase.actions[0]
}

/// One thread on the first CPU.
const PAGES: &str = r#"
[[process]]
name = "pages"
cpus = "0"

[[process.phase]]
name = "local"
[[process.phase.action]]
kind = "page-loop"
gfp = "GFP_ATOMIC"
count = 300_000

[[process.phase]]
name = "far"
[[process.phase.action]]
kind = "page-loop"
node = 1
hold = 100
count = 300_000

[[process.phase]]
name = "spread"
[[process.phase.action]]
kind = "page-loop"
gfp = "GFP_HIGHUSER_MOVABLE"
policy = "interleave:0-1"
hold = 64
count = 300_000

[[process.phase]]
name = "huge"
[[process.phase.action]]
kind = "page-loop"
gfp = "GFP_TRANSHUGE_LIGHT"
order = 9
hold = 4
count = 2000

[[process.phase]]
name = "paced"
[[process.phase.action]]
kind = "page-loop"
rate = "20000 pages/s"
count = 20_000

[[process.phase]]
name = "full"
[[process.phase.action]]
kind = "page-hog"
gfp = "GFP_TRANSHUGE_LIGHT"
order = 9
policy = "bind:1"
count = 1000
"#;

#[test]
fn pages_are_counted_where_they_are_allocated() {
    let Some(guest) = guest("6.1", Mode::Smp) else { return };
    let (results, seen) = run(&guest, PAGES);
    let names = ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];
    for (index, phase) in results.phases.iter().enumerate() {
        let of = |node| names.map(|name| seen.delta(node, name, &results.phases, index));
        eprintln!("{}: {} operations, {names:?} {:?} {:?}", phase.phase, only(phase).operations, of(0), of(1));
    }
    // Other programs of a guest allocate pages too.
    let check = |phase: usize, node: usize, name: &str, wanted: u64| {
        let delta = seen.delta(node, name, &results.phases, phase);
        let most = wanted + wanted / 50 + 2000;
        let phase = &results.phases[phase].phase;
        assert!((wanted..=most).contains(&delta), "{phase} {name} of node {node}: {delta}, not {wanted}");
    };
    let counts = [300_000, 300_000, 300_000, 2000, 20_000];
    for (phase, count) in results.phases.iter().zip(counts) {
        assert_eq!((only(phase).operations, only(phase).failures), (count, 0), "{}", phase.phase);
    }
    for name in ["numa_hit", "local_node"] {
        check(0, 0, name, 300_000);
        check(3, 0, name, 2000);
        check(4, 0, name, 20_000);
    }
    check(1, 1, "numa_hit", 300_000);
    check(1, 1, "other_node", 300_000);
    for node in [0, 1] {
        check(2, node, "numa_hit", 150_000);
        check(2, node, "interleave_hit", 150_000);
    }
    let paced = &results.phases[4];
    assert!(paced.end - paced.start >= 999_000_000, "20,000 pages at 20,000 a second");
    let full = only(&results.phases[5]);
    assert!(full.failures == 1 && (100..192).contains(&full.operations), "{full:?}");
    check(5, 1, "numa_hit", full.operations);
}

/// A kernel thread per CPU.
const VMALLOC: &str = r#"
[[process]]
name = "vmalloc_test"
threads = 4

[[process.phase]]
[[process.phase.action]]
kind = "vmalloc-test"
tests = ["fix_size_alloc_test", "long_busy_list_alloc_test"]
loops = 4000

[run]
events = EVENTS
"#;

/// Areas that a thread frees: 4000, 2 x 4000, the 15,000 that are kept meanwhile, and the list of them.
const FREED: u64 = 3 * 4000 + 15_000 + 1;

fn vmalloc(release: &str, events: &str) -> Option<(PhaseResult, Seen)> {
    let guest = guest(release, Mode::Smp)?;
    let (results, seen) = run(&guest, &VMALLOC.replace("EVENTS", events));
    let phase = results.phases[0].clone();
    let action = only(&phase);
    assert_eq!((action.threads, action.operations, action.failures), (4, 4 * FREED, 0));
    assert_eq!(action.more["fix_size_alloc_test_loops"], 4.0 * 4000.0);
    assert_eq!(action.more["long_busy_list_alloc_test_loops"], 4.0 * 4000.0);
    let latency = action.latency.as_ref().expect("purges were timed");
    let calls: u64 = latency.slots.iter().map(|slot| slot.1).sum();
    assert!(calls > 0 && action.more["purge_calls"] == calls as f64);
    assert!(!action.more.contains_key("purge_calls_lost"));
    Some((phase, seen))
}

#[test]
fn areas_are_purged_per_node_on_the_newer_kernel() {
    let Some((phase, seen)) = vmalloc("6.12", "[\"vmalloc:purge_vmap_area_lazy\"]") else { return };
    let (passes, areas) = seen.purged(&phase);
    let calls = only(&phase).more["purge_calls"] as usize;
    eprintln!("{passes} passes, {areas} areas, {calls} calls");
    // A pass calls once per node with areas; there are four nodes.
    assert!(passes > 0 && calls > 0 && calls <= 4 * (passes + 1));
    // Pages not purged at the end are fewer than those that start a purge, plus those freed during the last one.
    assert!((4 * FREED - 4 * 24_576..=4 * FREED + 10_000).contains(&areas), "{areas} of {}", 4 * FREED);
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn areas_are_purged_by_one_pass_on_the_older_kernel() {
    let Some((phase, seen)) = vmalloc("6.1", "[]") else { return };
    assert!(seen.purges.is_empty(), "it has no such event");
    // Pages freed, over those that start a purge: a pass frees more of them or, when it is repeated at once, fewer.
    let pages = 4 * (2 * 4000 + 103 * 4000 + 2 * 15_000);
    let calls = only(&phase).more["purge_calls"];
    assert!((2.0..=10.0 * f64::from(pages) / 24_576.0).contains(&calls), "{calls} for {pages} pages");
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn a_test_that_would_last_longer_ends_with_its_phase() {
    let Some(guest) = guest("6.12", Mode::Smp) else { return };
    let (results, _) = run(
        &guest,
        "[[process]]\nname = \"p\"\nthreads = 2\n[[process.phase]]\nduration = \"3 s\"\n[[process.phase.action]]\n\
         kind = \"vmalloc-test\"\nthreads = \"1\"\nloops = 1_000_000_000\n\
         tests = [\"fix_size_alloc_test\", \"full_fit_alloc_test\", \"long_busy_list_alloc_test\"]\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"vmalloc-test\"\nthreads = \"0\"\nloops = 10\n\
         repeat = 3\ntests = [\"full_fit_alloc_test\"]\n",
    );
    let cut = only(&results.phases[0]);
    assert!(cut.failures == 0 && cut.operations > 0, "{cut:?}");
    assert!(cut.more.iter().all(|(name, loops)| !name.ends_with("_loops") || *loops < 1e9), "{cut:?}");
    let whole = only(&results.phases[1]);
    // Three CPU counts of 8192 areas that stay and as many holes, and the lists of both.
    assert_eq!((whole.operations, whole.failures), (3 * (10 + 2 * 3 * 8192 + 2), 0));
    assert_eq!(whole.more["full_fit_alloc_test_loops"], 30.0);
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn two_exact_runs_are_equal_byte_by_byte() {
    let Some(guest) = guest("6.12", Mode::Exact) else { return };
    let workload = "[[process]]\nname = \"p\"\nthreads = 4\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\nhold = 10\ncount = 2000\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"vmalloc-test\"\nloops = 300\n\
         tests = [\"fix_size_alloc_test\", \"long_busy_list_alloc_test\"]\n\
         [run]\nevents = [\"vmalloc:purge_vmap_area_lazy\"]\n";
    let directory = tempfile::tempdir().expect("directory");
    let recorded = ["a", "b"].map(|name| {
        let output = directory.path().join(name);
        run_into(&guest, workload, &output);
        crate::common::measured(&output)
    });
    let [a, b] = recorded;
    assert!(a.keys().eq(b.keys()) && a.contains_key(Path::new("results.json")));
    for (name, content) in a {
        assert!(content == b[&name], "{} differs", name.display());
    }
}

#[test]
#[ignore = "guests that take long: make lab-again"]
fn loading_and_unloading_modules_purges_areas() {
    let cycle = "[[process]]\nname = \"cycle\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"module-cycle\"\n\
                 name = \"xfs\"\ncount = 5\n";
    let older = guest("6.1", Mode::Smp).map(|guest| (guest, "[run]\nevents = []\n"));
    let newer = guest("6.12", Mode::Smp).map(|guest| (guest, "[run]\nevents = [\"vmalloc:purge_vmap_area_lazy\"]\n"));
    for (guest, events) in older.into_iter().chain(newer) {
        let (results, seen) = run(&guest, &format!("{cycle}{events}"));
        let phase = &results.phases[0];
        assert_eq!((only(phase).operations, only(phase).detail.as_str()), (5, "xfs"));
        eprintln!("{}: {:?} passes and areas", guest.kernel.version, seen.purged(phase));
        assert!(only(phase).more["purge_calls"] >= 5.0);
    }
}

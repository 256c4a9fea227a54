//! Whole runs of scenarios: phases, actions, accesses, counters.

use crate::common::scenario::{MACHINE, ran, ran_explicitly, refused};
use mmtwin_event::results::Ending;
use mmtwin_event::{Event, Sink};
use mmtwin_twin::engine::{Options, State, run};

/// A process with a region of 256 MiB that two threads access.
fn touching(pattern: &str, sharing: &str, rest: &str) -> String {
    format!(
        "{MACHINE}[[process]]\nname = \"p\"\nthreads = 2\npin = true\ncpus = \"0,4\"\n[[process.region]]\n\
         name = \"r\"\nsize = \"256 MiB\"\nsharing = \"{sharing}\"\n[[process.phase]]\n[[process.phase.access]]\n\
         region = \"r\"\npattern = \"{pattern}\"\n{rest}\n"
    )
}

#[test]
fn a_walk_accesses_every_page_of_its_part_on_its_node() {
    let run = ran(&touching("sequential", "private", "count = 32768\nwrite = 1.0"));
    let phase = &run.results.phases[0];
    assert_eq!((phase.accesses[0].touches, phase.accesses[0].faults, phase.accesses[0].threads), (65_536, 65_536, 2));
    assert_eq!(phase.placement[0].nodes, [32_768, 32_768]);
    assert_eq!((run.results.ending.clone(), run.counter("vmstat", "", "pgfault")), (Ending::Completed, 65_536));
    // Of each node, every allocation was a hit and local, those of a page table for every 512 pages too; the first
    // thread was the first to need the two tables above them.
    for (node, tables) in [("0", 66), ("1", 64)] {
        assert_eq!(run.counter("numastat", node, "numa_hit"), 32_768 + tables);
        assert_eq!(run.counter("numastat", node, "local_node"), 32_768 + tables);
    }
}

#[test]
fn reads_map_the_zero_page_and_writes_allocate() {
    let read = ran(&touching("sequential", "private", "count = 32768"));
    // Only page tables are allocated.
    assert_eq!((read.results.phases[0].accesses[0].faults, read.counter("numastat", "0", "numa_hit")), (65_536, 66));
    let both = ran(&touching("sequential", "private", "count = 65536\nwrite = 0.5"));
    let nodes = &both.results.phases[0].placement[0].nodes;
    // Two rounds: a page is written in one of them with probability 3/4; five standard deviations are 392.
    assert!(nodes.iter().all(|&pages| pages.abs_diff(24_576) < 392), "{nodes:?}");
}

/// Sampled accesses fault in as many pages as explicit ones, and take as long.
#[test]
fn sampled_accesses_equal_explicit_ones_on_average() {
    let patterns = [
        "pattern = \"uniform\"",
        "pattern = \"zipf\"\nskew = 0.8",
        "pattern = \"hot-cold\"\nhot = 0.1\naccess_share = 0.9",
    ];
    for (pattern, sharing) in patterns.iter().flat_map(|p| [(p, "shared"), (p, "private")]) {
        let config = touching("uniform", sharing, "count = 40000\nwrite = 0.3\nthink = \"500 ns\"");
        let config = config.replace("pattern = \"uniform\"", pattern);
        let (sampled, explicit) = (ran(&config), ran_explicitly(&config));
        let both = [&sampled, &explicit].map(|run| &run.results.phases[0]);
        let pages = both.map(|phase| phase.placement[0].nodes.iter().sum::<u64>() as f64);
        let faults = both.map(|phase| phase.accesses[0].faults as f64);
        let times = both.map(|phase| phase.accesses[0].cpu_time as f64);
        // Both are sums of chances, so their variance is below their mean: five standard deviations of a difference.
        let near = |[a, b]: [f64; 2]| (a - b).abs() < 5.0 * (2.0 * b).sqrt();
        assert!(near(pages), "{pattern} {sharing}: pages {pages:?}");
        assert!(near(faults), "{pattern} {sharing}: faults {faults:?}");
        assert!((times[0] / times[1] - 1.0).abs() < 0.03, "{pattern} {sharing}: times {times:?}");
        assert_eq!(both[0].accesses[0].touches, both[1].accesses[0].touches);
    }
}

#[test]
fn phases_follow_each_other_and_memory_is_freed() {
    let config = format!(
        "{MACHINE}[[process]]\nname = \"p\"\nstart = \"10 ms\"\n[[process.region]]\nname = \"r\"\nsize = \"4 MiB\"\n\
         populate = true\n[[process.phase]]\nname = \"rest\"\n[[process.phase.action]]\nkind = \"sleep\"\n\
         time = \"100 ms\"\n[[process.phase]]\nduration = \"50 ms\"\n[[process.phase.access]]\nregion = \"r\"\n\
         pattern = \"uniform\"\nthink = \"1 us\"\n"
    );
    let run = ran(&config);
    let phases = &run.results.phases;
    assert_eq!(phases.iter().map(|phase| phase.phase.as_str()).collect::<Vec<_>>(), ["populate", "rest", "1"]);
    assert_eq!((phases[0].start, phases[0].accesses[0].faults), (10_000_000, 1024));
    assert_eq!(phases[1].end - phases[1].start, 100_000_000);
    assert_eq!(phases[2].end - phases[2].start, 50_000_000);
    let touches = phases[2].accesses[0].touches;
    // 1 us of thinking and some 100 ns of memory.
    assert!((43_000..48_000).contains(&touches), "{touches}");
    let kernel = &run.kernel;
    // Two page tables with it, and the two above them.
    assert_eq!(kernel.stat.events.freed, 1024 + 2 + 2);
}

#[test]
fn page_loops_hold_rate_and_fill() {
    let config = format!(
        "{MACHINE}[[process]]\nname = \"p\"\nthreads = 2\npin = true\n[[process.phase]]\n[[process.phase.action]]\n\
         kind = \"page-loop\"\nhold = 64\ncount = 1000\nthreads = \"0\"\n[[process.phase.action]]\n\
         kind = \"page-loop\"\norder = 1\nrate = \"200k pages/s\"\ncount = 1000\nthreads = \"1\"\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"page-hog\"\norder = 2\ncount = 10\n"
    );
    let run = ran(&config);
    let (loops, fill) = (&run.results.phases[0], &run.results.phases[1]);
    assert_eq!(loops.actions.iter().map(|action| action.operations).collect::<Vec<_>>(), [1000, 1000]);
    // 1000 pairs of pages at 200,000 pages a second, nearly all of it pauses.
    assert!((9_900_000..10_200_000).contains(&(loops.end - loops.start)), "{loops:?}");
    assert!((80_000..300_000).contains(&loops.actions[1].time), "{}", loops.actions[1].time);
    assert_eq!((fill.actions[0].operations, fill.actions[0].threads), (20, 2));
    let events = &run.kernel.stat.events;
    assert_eq!(events.allocated.iter().sum::<u64>(), 1000 + 2000 + 80);
    assert_eq!(events.freed, 1000 + 2000 + 80);
}

#[test]
fn memory_that_is_full_ends_the_run_with_the_counters_so_far() {
    let config = format!(
        "{MACHINE}[[process]]\nname = \"hog\"\n[[process.region]]\nname = \"r\"\nsize = \"3 GiB\"\npopulate = true\n"
    );
    let run = ran(&config);
    let Ending::OutOfMemory { pid, comm, message, .. } = &run.results.ending else {
        panic!("{:?}", run.results.ending)
    };
    assert_eq!((*pid, comm.as_str()), (1000, "hog"));
    assert!(message.contains("page allocation failure: order:0, mode:GFP_HIGHUSER_MOVABLE|__GFP_ZERO"), "{message}");
    let placed: u64 = run.results.phases[0].placement[0].nodes.iter().sum();
    assert!(placed > 450_000 && run.counter("vmstat", "", "pgfault") == placed, "{placed}");
    // A loop that cannot wait only notes the failure.
    let config = format!(
        "{MACHINE}[[process]]\nname = \"fill\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"page-hog\"\n\
         gfp = \"GFP_ATOMIC\"\ncount = 1000000\n"
    );
    let run = ran(&config);
    assert_eq!((run.results.ending.clone(), run.results.phases[0].actions[0].failures), (Ending::Completed, 1));
}

#[test]
fn cpus_are_hotplugged_and_sysctls_written() {
    let config = format!(
        "{MACHINE}[[process]]\nname = \"loop\"\ncpus = \"3\"\npin = true\n[[process.phase]]\nduration = \"40 ms\"\n\
         [[process.phase.action]]\nkind = \"page-loop\"\n[[process]]\nname = \"admin\"\ncpus = \"0\"\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"sleep\"\ntime = \"10 ms\"\n[[process.phase.action]]\n\
         kind = \"cpu-offline\"\ncpus = \"3\"\n[[process.phase.action]]\nkind = \"sleep\"\ntime = \"10 ms\"\n\
         [[process.phase.action]]\nkind = \"cpu-online\"\ncpus = \"3\"\n[[process.phase.action]]\nkind = \"sysctl\"\n\
         name = \"vm.numa_stat\"\nvalue = 0\n[[process.phase.action]]\nkind = \"read\"\nfile = \"numastat\"\ncount = 2\n"
    );
    let run = ran(&config);
    assert_eq!(run.counter("numastat", "0", "numa_hit"), 0);
    assert!(run.kernel.stat.is_online(3));
    let looped = run.results.phases[0].actions[0].operations;
    // 40 ms of loops of about 100 ns, on another CPU from 10 ms on.
    assert!(looped > 300_000, "{looped}");
    assert_eq!(run.results.phases[1].actions[5].operations, 2);
}

#[test]
fn unmodelled_features_are_refused_by_name() {
    let with = |rest: &str| refused(&format!("{MACHINE}{rest}"));
    let region = "[[process]]\nname = \"p\"\n[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\n";
    assert!(with(&format!("{region}huge = \"hugetlb\"\n")).contains("hugetlb"));
    let phase = "[[process]]\nname = \"p\"\n[[process.phase]]\n[[process.phase.action]]\n";
    assert!(
        with(&format!("{phase}kind = \"sysctl\"\nname = \"vm.zone_reclaim_mode\"\nvalue = 1\n"))
            .contains("vm.zone_reclaim_mode")
    );
    assert!(with(&format!("{phase}kind = \"sleep\"\ntime = \"999999 s\"\n")).contains("the longest is 10 days"));
    assert!(with(&format!("{phase}kind = \"read\"\nfile = \"vmallocinfo\"\ncount = 1\n")).contains("vmallocinfo"));
    let cycle = format!("{phase}kind = \"module-cycle\"\nname = \"xfs\"\ncount = 5\n");
    assert!(with(&cycle).contains("process \"p\": module-cycle of xfs"));
}

#[test]
fn the_vmalloc_test_takes_its_threads_time() {
    let machine = MACHINE.replace("6.1", "6.12");
    let config = format!(
        "{machine}[[process]]\nname = \"vmalloc_test\"\nthreads = 4\npin = true\n[[process.phase]]\n\
         [[process.phase.action]]\nkind = \"vmalloc-test\"\ntests = [\"fix_size_alloc_test\"]\nloops = 5000\n\
         [run]\nevents = [\"vmalloc:*\"]\n"
    );
    let run = ran(&config);
    let action = &run.results.phases[0].actions[0];
    assert_eq!((action.threads, action.operations), (4, 20_000));
    assert_eq!(
        action.latency.as_ref().map(|l| l.slots.iter().map(|s| s.1).sum::<u64>()),
        Some(action.more["purge_calls"] as u64)
    );
    assert!(action.more["passes"] >= 1.0 && run.results.phases[0].end > 0);
}

#[test]
fn threads_of_one_cpu_share_it() {
    let one = |threads: u32| {
        let config = format!(
            "{MACHINE}[[process]]\nname = \"p\"\nthreads = {threads}\ncpus = \"0\"\n[[process.region]]\nname = \"r\"\n\
             size = \"1 MiB\"\n[[process.phase]]\nduration = \"400 ms\"\n[[process.phase.access]]\nregion = \"r\"\n\
             pattern = \"uniform\"\nthink = \"1 us\"\n"
        );
        ran(&config).results.phases[0].accesses[0].touches as f64
    };
    assert!((one(4) / one(1) - 1.0).abs() < 0.02);
}

/// A machine whose CPUs share one budget is one CPU with several threads: all work takes as long as if it were
/// serialized.
#[test]
fn busy_cpus_share_one_budget_if_the_machine_says_so() {
    let one_budget = "[machine.cpu]\nsingle_threaded_tcg = true\n[machine.cost]\nsample = \"0 ns\"\n[kernel]";
    let shared = MACHINE.replace("[kernel]", one_budget);
    let end = |machine: &str, threads: u32, work: &str| {
        let cpus = ["0", "0,1", "0-2", "0-3"][threads as usize - 1];
        let config = format!(
            "{machine}[[process]]\nname = \"p\"\nthreads = {threads}\npin = true\ncpus = \"{cpus}\"\n\
             [[process.region]]\nname = \"r\"\nsize = \"64 MiB\"\nsharing = \"private\"\n[[process.phase]]\n{work}"
        );
        let run = ran(&config);
        let phase = &run.results.phases[0];
        (phase.end as f64, phase.accesses.iter().map(|access| access.cpu_time).sum::<u64>() as f64)
    };
    // Some milliseconds each: faults and thinking, pure thinking with sleep between, loops alone and in bulk.
    let touch = "[[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\nwrite = 1.0\nthink = \"2 us\"\n";
    let page_loop = "[[process.phase.action]]\nkind = \"page-loop\"\n";
    let works = [
        format!("{touch}count = 10000\n"),
        format!("{page_loop}count = 100000\n"),
        format!("{page_loop}count = 100000\nhold = 64\n"),
    ];
    for work in &works {
        let alone = end(MACHINE, 1, work);
        assert_eq!(end(&shared, 1, work), alone, "{work}: a busy CPU alone has it all");
        for threads in 2..=4 {
            let (own, one) = (end(MACHINE, threads, work), end(&shared, threads, work));
            let times = f64::from(threads);
            // Which thread is charged while another ends is known to an epoch, 4 ms.
            assert!((one.0 - times * own.0).abs() < 4e6 + 0.02 * one.0, "{work}, {threads}: {own:?} {one:?}");
            assert!((one.1 - times * own.1).abs() < 4e6 * times + 0.02 * one.1, "{work}, {threads}: {own:?} {one:?}");
        }
    }
    // Sleep is no work.
    let asleep = "[[process.phase.action]]\nkind = \"sleep\"\ntime = \"50 ms\"\n";
    assert_eq!(end(&shared, 4, asleep), end(MACHINE, 4, asleep));
}

#[test]
fn samples_take_from_a_single_threaded_tcg_what_they_cost() {
    let touches = |shared: bool, sample: &str| {
        let cost =
            format!("[machine.cpu]\nsingle_threaded_tcg = {shared}\n[machine.cost]\nsample = \"20 ms\"\n[kernel]");
        let config = format!(
            "{}[[process]]\nname = \"p\"\ncpus = \"0\"\n[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\n\
             [[process.phase]]\nduration = \"1 s\"\n[[process.phase.access]]\nregion = \"r\"\n\
             pattern = \"uniform\"\nthink = \"10 us\"\n[run]\nsample = \"{sample}\"\n",
            MACHINE.replace("[kernel]", &cost)
        );
        ran(&config).results.phases[0].accesses[0].touches as f64
    };
    let all = touches(true, "0 s");
    // Nine while it runs, and it begins together with the first, which shares the CPU with it.
    let left = touches(true, "100 ms") / all;
    assert!((left - 0.81).abs() < 0.005, "{left}");
    assert_eq!((touches(false, "100 ms"), touches(false, "0 s")), (all, all));
}

#[test]
fn an_atomic_request_leaves_its_bound_node_when_that_is_full() {
    // On kernel 6.1 a page-hog bound to node 1 had pages of node 0 too, counted as hits.
    let fill = |gfp: &str| {
        let config = format!(
            "{MACHINE}[[process]]\nname = \"fill\"\npolicy = \"bind:1\"\ncpus = \"0\"\n[[process.phase]]\n\
             [[process.phase.action]]\nkind = \"page-hog\"\ngfp = \"{gfp}\"\ncount = 400000\n"
        );
        ran(&config)
    };
    let atomic = fill("GFP_ATOMIC");
    assert_eq!(atomic.results.phases[0].actions[0].operations, 400_000);
    assert!(atomic.counter("numastat", "0", "numa_hit") > 100_000);
    assert_eq!(atomic.counter("numastat", "0", "numa_miss"), 0);
    let waiting = fill("GFP_KERNEL");
    assert!(matches!(waiting.results.ending, Ending::OutOfMemory { .. }));
    assert_eq!(waiting.counter("numastat", "0", "numa_hit"), 0);
}

#[test]
fn a_scenario_without_processes_ends_at_once() {
    let run = ran(MACHINE);
    assert_eq!((run.end, run.results.ending.clone()), (0, Ending::Completed));
}

#[test]
fn a_cpu_that_stops_takes_no_place_from_threads_that_have_not_begun() {
    let config = format!(
        "{MACHINE}[[process]]\nname = \"admin\"\ncpus = \"1\"\n[[process.phase]]\n[[process.phase.action]]\n\
         kind = \"cpu-offline\"\ncpus = \"0\"\n[[process]]\nname = \"later\"\nstart = \"10 ms\"\nthreads = 2\n\
         cpus = \"0,2-3\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\ncount = 1000\n"
    );
    let run = ran(&config);
    // Each has a CPU of its own, so both take as long as one.
    let action = &run.results.phases[1].actions[0];
    let duration = run.results.phases[1].end - run.results.phases[1].start;
    assert_eq!((action.threads, action.operations), (2, 2000));
    assert!(duration <= action.time / 2 + 1000, "{duration} {}", action.time);
}

#[test]
fn an_idle_cpu_pulls_a_thread_that_waits() {
    let process = |name: &str, count: u64| {
        format!(
            "[[process]]\nname = \"{name}\"\n{}[[process.phase]]\n{}count = {count}\n",
            "[[process.region]]\nname = \"heap\"\nsize = \"1 MiB\"\n",
            "[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\nthink = \"1 ms\"\n"
        )
    };
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n[kernel]\n\
         release = \"6.1\"\n{}{}{}",
        process("first", 2000),
        process("short", 500),
        process("last", 2000)
    );
    let run = ran(&text);
    let end = run.results.phases.iter().map(|phase| phase.end).max().expect("phases");
    // 4.5 s of work on two CPUs; with both long ones on one of them it would take 4 s.
    assert!(end < 3_000_000_000, "{end}");
}

#[test]
fn threads_begin_where_the_state_has_them() {
    let text = "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
                memory = \"256 MiB\"\n[[machine.node]]\ncpus = \"2-3\"\nmemory = \"256 MiB\"\n[kernel]\nrelease = \"6.1\"\n\
                [[process]]\nname = \"p\"\n[[process.region]]\nname = \"heap\"\nsize = \"1 MiB\"\npopulate = true\n";
    let scenario = mmtwin_scenario::parse("test", text, std::path::Path::new(""), &[]).unwrap();
    for (cpus, began, nodes) in
        [(1, Some(3), [0, 256]), (3, Some(0), [256, 0]), (3, None, [0, 256]), (3, Some(9), [0, 256])]
    {
        let began = began.map(|cpu| vec![vec![cpu]]).unwrap_or_default();
        let state = State { cpus: vec![vec![cpus]], began, ..State::default() };
        let options = Options { state, explicit: false, trace: None, events: Vec::new(), progress: &mut |_| {} };
        let ran = run(&scenario, options, &mut Ignored).unwrap();
        assert_eq!(ran.results.phases[0].placement[0].nodes, nodes, "last on {cpus}");
    }
}

/// Takes what a run writes.
struct Ignored;

impl Sink for Ignored {
    fn event(&mut self, _: &Event<'_>) {}
}

#[test]
fn a_process_that_exits_frees_its_memory_in_parts() {
    let process = "[[process]]\nname = \"p\"\n[[process.region]]\nname = \"heap\"\nsize = \"96 MiB\"\n\
                   [[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\n\
                   write = \"100 %\"\ncount = 24576\n";
    let until = |run: &str| {
        ran(&format!(
            "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"128 MiB\"\n\
             [kernel]\nrelease = \"6.1\"\nthp = \"never\"\n{process}{run}"
        ))
    };
    let whole = until("");
    let phase = whole.results.phases[0].end;
    let middle = (phase + whole.end) / 2;
    let part = until(&format!("[run]\nduration = \"{middle} ns\"\n"));
    let left = [&whole, &part].map(|run| run.counter("vmstat", "", "nr_anon_pages"));
    assert_eq!(left[0], 0);
    assert!((6000..18_000).contains(&left[1]), "{left:?}");
    assert_eq!((part.results.phases[0].end, &part.results.ending), (phase, &Ending::Completed));
}

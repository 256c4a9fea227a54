//! Limits and protections of cgroups in whole runs.

use crate::common::scenario::{Finished, ran};
use mmtwin_event::results::Ending;

/// A machine of 256 MiB with two CPUs, swap that is memory, and cgroups.
fn machine(cgroups: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [machine.disk]\nbandwidth = \"1 GB/s\"\n\
         [machine.swap]\nsize = \"512 MiB\"\nsynchronous = true\nlatency = \"0 ns\"\nbandwidth = \"10 GB/s\"\n\
         [kernel]\nrelease = \"6.1\"\nthp = \"never\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         [run]\nevents = [\"vmscan:*\"]\n{cgroups}"
    )
}

/// A process of a cgroup that reads through a file once, and one page of it every `think`.
fn reader(cgroup: &str, megabytes: u64, think: &str) -> String {
    format!(
        "[[process]]\nname = \"reader\"\ncgroup = \"{cgroup}\"\ncpus = \"0\"\n[[process.region]]\nname = \"file\"\n\
         size = \"{megabytes} MiB\"\nkind = \"file\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\n\
         pattern = \"sequential\"\nvia = \"syscall\"\nthink = \"{think}\"\ncount = {}\n",
        megabytes * 256
    )
}

/// A process of a cgroup that populates a heap and then waits.
fn heap(name: &str, cgroup: &str, megabytes: u64, rest: &str) -> String {
    format!(
        "[[process]]\nname = \"{name}\"\ncgroup = \"{cgroup}\"\ncpus = \"1\"\n[[process.region]]\nname = \"heap\"\n\
         size = \"{megabytes} MiB\"\npopulate = true\n[[process.phase]]\nduration = \"2 s\"\n{rest}"
    )
}

fn of(run: &Finished, cgroup: &str, name: &str) -> u64 {
    run.counter("cgroup", cgroup, name)
}

#[test]
fn above_high_a_task_reclaims_its_own_and_no_process_is_killed() {
    let cgroup = "[[cgroup]]\nname = \"/a\"\nmemory.high = \"32 MiB\"\n";
    let run = ran(&format!("{}{}", machine(cgroup), reader("/a", 128, "1 us")));
    let count = |name: &str| run.counter("vmstat", "", name);
    assert_eq!(run.results.ending, Ending::Completed);
    // Of 128 MiB the pages beyond 32 are reclaimed. The target of a reclaim is the 64 pages that were charged: of 32
    // MiB 2, 4, 8, ... 32 and 64.
    let freed = count("pgsteal_file");
    assert!((24_576 - 200..24_576 + 200).contains(&freed), "{freed}");
    let high = of(&run, "/a", "memory.events.high");
    assert!((freed / 126..freed / 64).contains(&high), "{high}");
    assert_eq!((of(&run, "/a", "memory.events.max"), count("pgsteal_kswapd"), count("pgscan_direct")), (0, 0, 0));
    let (stalled, reclaim) = (of(&run, "/a", "memory.pressure.some_total"), reclaimed_for(&run) / 1000);
    assert!((reclaim - 1..reclaim + reclaim / 20).contains(&stalled), "{stalled} {reclaim}");
}

#[test]
fn a_task_without_reclaimable_memory_sleeps_above_high() {
    // 40 MiB without swap, 32 of them allowed: the last 8 are charged 64 pages at a time, each with a sleep that grows
    // with the square of the overage.
    let cgroup = |high: &str| format!("[[cgroup]]\nname = \"/a\"\n{high}memory.swap.max = \"0 B\"\n");
    let time = |high: &str| {
        let config = format!("{}{}", machine(&cgroup(high)), heap("hog", "/a", 40, ""));
        let run = ran(&config);
        assert_eq!(run.results.ending, Ending::Completed);
        assert_eq!(run.counter("vmstat", "", "pswpout"), 0);
        run.results.phases[0].end - run.results.phases[0].start
    };
    let (free, slow) = (time(""), time("memory.high = \"32 MiB\"\n"));
    // After the i-th batch of 32 usage is 8192 + 64 i pages; the sleep has (i/128)^2 * 2^6 * 250 ticks of 4 ms, those of at
    // most 2 ticks are passed over, the longest is 2 s.
    let ticks: u64 =
        (1..=32u64).map(|i| (((i << 13) * (i << 13) * 250) >> 34).min(500)).filter(|ticks| *ticks > 2).sum();
    let expected = ticks * 4_000_000;
    assert!(slow > free + expected * 9 / 10 && slow < free + expected * 11 / 10, "{free} {slow} {expected}");
}

#[test]
fn swap_of_a_cgroup_is_limited() {
    let cgroup = "[[cgroup]]\nname = \"/a\"\nmemory.max = \"32 MiB\"\nmemory.swap.max = \"16 MiB\"\n";
    let fits = ran(&format!("{}{}", machine(cgroup), heap("heap", "/a", 44, "")));
    assert_eq!(fits.results.ending, Ending::Completed);
    assert!(fits.counter("vmstat", "", "pswpout") >= 3072, "{}", fits.counter("vmstat", "", "pswpout"));
    assert!(of(&fits, "/a", "memory.swap.current") == 0 && of(&fits, "/a", "memory.events.max") > 0);

    let run = ran(&format!("{}{}", machine(cgroup), heap("heap", "/a", 64, "")));
    assert!(matches!(run.results.ending, Ending::OutOfMemory { .. }), "{:?}", run.results.ending);
    assert!((4096..4096 + 512).contains(&run.counter("vmstat", "", "pswpout")));
    assert_eq!((of(&run, "/a", "memory.events.oom"), of(&run, "/a", "memory.events.oom_kill")), (1, 1));
    assert_eq!((of(&run, "/a", "memory.current"), of(&run, "/a", "memory.swap.current")), (0, 0), "it is gone");
}

/// A heap of a cgroup beside one of the root, together more than memory, when the run is cut off.
fn beside(cgroup: &str, megabytes: [u64; 2], other: &str) -> Finished {
    let limits = format!("[[cgroup]]\nname = \"/a\"\n{cgroup}");
    let machine = machine(&limits).replace("[run]\n", "[run]\nduration = \"1500 ms\"\n");
    let other = heap("other", "/", megabytes[1], "").replace("populate", &format!("{other}populate"));
    ran(&format!("{machine}{}{other}", heap("heap", "/a", megabytes[0], "")))
}

#[test]
fn protected_memory_stays_while_others_have_some() {
    let left = |limits: &str| {
        let run = beside(limits, [120, 200], "");
        assert_eq!((run.results.ending.clone(), of(&run, "/a", "memory.events.low")), (Ending::TimeUp, 0));
        of(&run, "/a", "memory.current") >> 20
    };
    let [plain, low, min] = ["", "memory.low = \"110 MiB\"\n", "memory.min = \"110 MiB\"\n"].map(left);
    let stays = plain.max(107) + 1..=120;
    assert!(plain < 108 && stays.contains(&low) && stays.contains(&min), "{plain} {low} {min}");
}

#[test]
fn where_nothing_else_is_left_low_is_broken_and_min_is_not() {
    let low = beside("memory.low = \"240 MiB\"\n", [150, 150], "locked = true\n");
    assert_eq!(low.results.ending, Ending::TimeUp);
    assert!(of(&low, "/a", "memory.events.low") > 0 && of(&low, "/a", "memory.swap.current") > 40 << 20);
    let min = beside("memory.min = \"240 MiB\"\n", [150, 150], "locked = true\n");
    assert!(matches!(min.results.ending, Ending::OutOfMemory { .. }), "{:?}", min.results.ending);
    assert_eq!((of(&min, "/a", "memory.swap.current"), min.counter("vmstat", "", "pswpout")), (0, 0));
}

/// Nanoseconds between begins and ends of a cgroup's reclaims, of one task.
fn reclaimed_for(run: &Finished) -> u64 {
    let times = |what: &str| {
        let name = format!("mm_vmscan_memcg_reclaim_{what}");
        run.events.iter().filter(|event| event.2 == name).map(|event| event.0).collect::<Vec<u64>>()
    };
    let (begins, ends) = (times("begin"), times("end"));
    assert_eq!(begins.len(), ends.len());
    begins.iter().zip(ends).map(|(begin, end)| end - begin).sum()
}

#[test]
fn memory_pressure_of_a_stream_is_the_time_in_reclaim() {
    let cgroups =
        "[[cgroup]]\nname = \"/a\"\nmemory.max = \"32 MiB\"\n[[cgroup]]\nname = \"/a/b\"\n[[cgroup]]\nname = \"/c\"\n";
    let config = format!("{}{}", machine(cgroups), reader("/a/b", 128, "1 us"));
    let run = ran(&config);
    let (reclaim, elapsed) = (reclaimed_for(&run), run.end);
    for cgroup in ["/a", "/a/b"] {
        let [some, full] = ["some", "full"].map(|tasks| of(&run, cgroup, &format!("memory.pressure.{tasks}_total")));
        // Nobody else of it runs, so all stall. The totals are whole microseconds.
        assert!(some == full && some.abs_diff(reclaim / 1000) <= 1 + some / 100, "{some} {full} {reclaim}");
        let io = of(&run, cgroup, "io.pressure.some_total");
        assert!(io > 0 && (some + io) * 1000 < elapsed, "{io} {elapsed}");
        // What is hit is the limit of /a.
        let own = of(&run, cgroup, "memory.events.local.max");
        assert_eq!(own > 0, cgroup == "/a", "{own}");
        assert!(of(&run, cgroup, "memory.events.max") == if cgroup == "/a" { own } else { 0 });
    }
    assert_eq!(of(&run, "/a", "memory.peak"), 32 << 20);
    assert_eq!((of(&run, "/c", "memory.pressure.some_total"), of(&run, "/c", "memory.peak")), (0, 0));
    let by = |who: &str| of(&run, "/a", &format!("memory.stat.pgsteal{who}"));
    assert_eq!((by("_kswapd"), by("_direct"), by("") > 20_000), (0, by(""), true));
    assert!(run.counter("psi", "", "memory_some_total") >= of(&run, "/a", "memory.pressure.some_total"));
    let without = ran(&config.replace("[kernel]", "[kernel]\npsi = false"));
    assert!(!without.has("cgroup", "/a", "memory.pressure.some_total") && without.has("cgroup", "/a", "memory.peak"));
    assert_eq!(without.events, run.events);
}

#[test]
fn waits_for_the_working_set_are_memory_pressure_and_others_are_not() {
    let swap = "[machine.swap]\nsize = \"512 MiB\"\nlatency = \"100 us\"\nbandwidth = \"1 GB/s\"\n";
    let again = "[[process.phase.access]]\nregion = \"heap\"\npattern = \"uniform\"\ncount = 163840\n";
    let run = |max: &str| {
        let machine = machine(&format!("[[cgroup]]\nname = \"/a\"\n{max}"));
        let (before, after) = machine.split_once("[machine.swap]").expect("swap");
        let after = after.split_once("[kernel]").expect("a kernel").1;
        let heap = heap("heap", "/a", 40, again).replace("duration = \"2 s\"\n", "");
        ran(&format!("{before}{swap}[kernel]{after}{heap}"))
    };
    let thrashes = run("memory.max = \"32 MiB\"\n");
    let [memory, io] = ["memory", "io"].map(|of_what| of(&thrashes, "/a", &format!("{of_what}.pressure.some_total")));
    let restored = of(&thrashes, "/a", "memory.stat.workingset_restore_anon");
    assert!(restored > 100, "{restored}");
    assert!(memory > reclaimed_for(&thrashes) / 1000 && io > 0, "{memory} {io}");
    let fits = run("");
    assert_eq!(of(&fits, "/a", "memory.pressure.some_total") + of(&fits, "/a", "io.pressure.some_total"), 0);
}

#[test]
fn version_1_has_its_own_files() {
    let cgroup = "[[cgroup]]\nname = \"/a\"\nmemory.max = \"32 MiB\"\n[[cgroup]]\nname = \"/a/b\"\n";
    let machine = machine(cgroup).replace("[kernel]", "[kernel]\ncgroup = \"v1\"");
    let run = ran(&format!("{machine}{}", reader("/a/b", 64, "1 us")));
    assert_eq!(of(&run, "/a", "memory.limit_in_bytes"), 32 << 20);
    assert_eq!(of(&run, "/a", "memory.max_usage_in_bytes"), 32 << 20);
    assert_eq!(of(&run, "/a/b", "memory.limit_in_bytes"), 0x7fff_ffff_ffff_f000);
    let usage = of(&run, "/a/b", "memory.usage_in_bytes");
    assert!(of(&run, "/a", "memory.failcnt") > 100 && usage == of(&run, "/a", "memory.usage_in_bytes"));
    // Lists of the cgroup itself.
    assert_eq!(of(&run, "/a", "memory.stat.inactive_file"), 0);
    assert!(of(&run, "/a/b", "memory.stat.inactive_file") > 16 << 20);
    assert!(!run.has("cgroup", "/a", "memory.current") && !run.has("cgroup", "/a", "memory.pressure.some_total"));
}

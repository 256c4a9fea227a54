//! Reclaim in whole runs: events and counters agree, pages refault, sampled accesses have the same results as explicit
//! ones.

use crate::common::scenario::{Finished, MACHINE, access, ran, ran_explicitly, region};
use mmtwin_event::results::Ending;

/// A small machine with swap that is memory.
fn small(megabytes: u64, swap: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"{megabytes} MiB\"\n\
         [machine.swap]\nsize = \"{swap}\"\nsynchronous = true\nlatency = \"0 ns\"\nbandwidth = \"10 GB/s\"\n\
         [kernel]\nrelease = \"6.1\"\nthp = \"never\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         [run]\nevents = [\"vmscan:*\"]\n"
    )
}

/// The kernel's counters equal the sums of its events, and the pages on lists are those in memory.
fn agrees(run: &Finished) {
    let count = |name: &str| run.counter("vmstat", "", name);
    let [kswapd, direct] = run.shrunk;
    assert_eq!((count("pgscan_kswapd"), count("pgsteal_kswapd")), kswapd);
    assert_eq!((count("pgscan_direct"), count("pgsteal_direct")), direct);
    assert_eq!(count("pgscan_anon") + count("pgscan_file"), kswapd.0 + direct.0);
    assert_eq!(count("pgsteal_anon") + count("pgsteal_file"), kswapd.1 + direct.1);
    let events = |name: &str| run.events.iter().filter(|event| event.2 == name).count() as u64;
    assert_eq!(events("mm_vmscan_kswapd_wake"), count("pageoutrun"));
    assert_eq!(events("mm_vmscan_direct_reclaim_begin"), events("mm_vmscan_direct_reclaim_end"));
    assert_eq!(events("mm_vmscan_write_folio"), count("nr_vmscan_write"));
    let isolated = count("nr_isolated_anon") + count("nr_isolated_file");
    assert_eq!(isolated, 0);
}

#[test]
fn a_reader_of_more_than_memory_reads_on() {
    for (via, pattern) in [("syscall", "sequential"), ("mmap", "sequential")] {
        let config = format!(
            "{}[[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
            small(256, "0 B"),
            region("file", 512, "file"),
            access("file", &format!("pattern = \"{pattern}\"\nvia = \"{via}\"\ncount = 131072"))
        );
        let run = ran(&config);
        agrees(&run);
        let (read, steal) = (run.counter("vmstat", "", "pgpgin") / 4, run.counter("vmstat", "", "pgsteal_file"));
        // A fault reads around its page, so that a mapped reader may read a page again.
        let most = if via == "mmap" { 131_072 + 200 } else { 131_072 };
        assert!((131_072..=most).contains(&read), "{via}: {read}");
        let count = |name: &str| run.counter("vmstat", "", name);
        assert_eq!(count("nr_file_pages"), read - steal, "{via}: what was not reclaimed stays in the page cache");
        assert_eq!(count("nr_mapped"), 0, "{via}: no process maps it any more");
        assert!((65_536..131_072).contains(&steal), "{via}: {steal}");
        assert_eq!(run.counter("vmstat", "", "workingset_refault_file"), read - 131_072, "{via}");
    }
}

#[test]
fn a_second_pass_over_a_file_refaults() {
    let config = format!(
        "{}[[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
        small(256, "0 B"),
        region("file", 300, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 153600")
    );
    let run = ran(&config);
    agrees(&run);
    // LRU keeps nothing of a loop that is longer than memory.
    let refaults = run.counter("vmstat", "", "workingset_refault_file");
    assert!((50_000..=76_800).contains(&refaults), "{refaults}");
    // The distance is the whole file's, which is more than the active list and the rest of the inactive one have.
    assert!(run.counter("vmstat", "", "workingset_activate_file") < refaults);
}

#[test]
fn pages_accessed_through_two_mappings_are_activated_at_the_first_check() {
    let mapper = |name: &str, cpu: u32| {
        format!(
            "[[process]]\nname = \"{name}\"\ncpus = \"{cpu}\"\n{}file = \"common\"\n[[process.phase]]\n{}\
             [[process.phase]]\n[[process.phase.action]]\nkind = \"sleep\"\ntime = \"20 s\"\n",
            region("data", 100, "file"),
            access("data", "pattern = \"sequential\"\ncount = 25600")
        )
    };
    let reader = format!(
        "[[process]]\nname = \"reader\"\nstart = \"5 s\"\n{}[[process.phase]]\n{}",
        region("stream", 400, "file"),
        access("stream", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 102400")
    );
    let activated = |mappers: &[String]| {
        let run = ran(&format!("{}{}{reader}", small(256, "0 B"), mappers.concat()));
        agrees(&run);
        run.counter("vmstat", "", "pgactivate")
    };
    let (one, two) = (activated(&[mapper("a", 0)]), activated(&[mapper("a", 0), mapper("b", 1)]));
    // A page that was accessed once stays on the inactive list, and is reclaimed at the second scan.
    assert!(one < 1000, "{one}");
    assert!(two > 20_000, "{two}");
}

#[test]
fn anonymous_memory_overflows_to_swap() {
    let hot = "pattern = \"hot-cold\"\nhot = 0.2\naccess_share = 0.9\nthink = \"5 us\"\nwrite = 1\ncount = 400000";
    let config = format!(
        "{}[[process]]\nname = \"heap\"\n{}populate = true\n[[process.phase]]\n{}",
        small(256, "1 GiB"),
        region("heap", 300, "anon"),
        access("heap", hot)
    );
    let (sampled, explicit) = (ran(&config), ran_explicitly(&config));
    for run in [&sampled, &explicit] {
        agrees(run);
        let count = |name: &str| run.counter("vmstat", "", name);
        assert!(count("pswpout") > 15_000 && count("pswpin") > 1000, "{} {}", count("pswpout"), count("pswpin"));
        assert!(count("pswpin") <= count("pswpout") && count("workingset_refault_anon") == count("pswpin"));
        assert_eq!(run.results.ending, Ending::Completed);
        // Nothing of a process is left when it has ended.
        assert_eq!((count("nr_anon_pages"), count("nr_swapcached"), count("nr_file_pages")), (0, 0, 0));
    }
    // Rates find the same young pages as single accesses.
    for name in ["pswpin", "pswpout", "pgscan_anon", "pgmajfault"] {
        let [a, b] = [&sampled, &explicit].map(|run| run.counter("vmstat", "", name) as f64);
        assert!((a / b - 1.0).abs() < 0.15, "{name}: {a} by rates, {b} one by one");
    }
}

#[test]
fn kswapd_interrupts_the_cpus_of_unmapped_pages() {
    let [quiet, interrupted] = ["0 ns", "50 us"].map(|cost| {
        let config = format!(
            "{}[[process]]\nname = \"writer\"\ncpus = \"0\"\npin = true\n{}[[process.phase]]\n{}",
            small(256, "1 GiB").replace("[kernel]", &format!("[machine.cost]\ntlb_interrupt = \"{cost}\"\n[kernel]")),
            region("heap", 384, "anon"),
            access("heap", "pattern = \"sequential\"\nwrite = 1.0\ncount = 98304")
        );
        let run = ran(&config);
        agrees(&run);
        let phase = &run.results.phases[0];
        (phase.end - phase.start, run.counter("vmstat", "", "pgsteal_kswapd"))
    });
    // A page that kswapd takes is one more interrupt, so it can keep ahead of a slower writer with more of its pages.
    assert!(interrupted.1 > quiet.1, "{quiet:?} {interrupted:?}");
    assert!(interrupted.0 - quiet.0 > interrupted.1 * 25_000, "{quiet:?} {interrupted:?}");
}

#[test]
fn without_swap_anonymous_memory_ends_the_run() {
    let config =
        format!("{}[[process]]\nname = \"hog\"\n{}populate = true\n", small(256, "0 B"), region("heap", 300, "anon"));
    let run = ran(&config);
    assert!(matches!(run.results.ending, Ending::OutOfMemory { .. }));
    assert_eq!((run.counter("vmstat", "", "oom_kill"), run.counter("vmstat", "", "pgsteal_anon")), (1, 0));
    agrees(&run);
}

/// Recorded events slow down the CPU that writes them, and no other.
#[test]
fn events_take_time_where_they_are_recorded() {
    let config = |events: &str, time: &str| {
        let reader = format!(
            "{}[machine.cost]\ntrace_event = \"{time}\"\n[[process]]\nname = \"reader\"\ncpus = \"0\"\n{}\
             [[process.phase]]\n{}",
            small(256, "0 B").replace("[run]\nevents = [\"vmscan:*\"]\n", &format!("[run]\nevents = [{events}]\n")),
            region("file", 400, "file"),
            access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 102400")
        );
        ran(&reader)
    };
    let (none, free, dear) = (config("", "1 ms"), config("\"vmscan:*\"", "0 ns"), config("\"vmscan:*\"", "100 us"));
    assert_eq!(none.end, free.end, "events alone change nothing");
    let longer = dear.end - free.end;
    // The time of kswapd's events is not the reader's if each has a CPU.
    assert!(longer > 0 && longer <= dear.events.len() as u64 * 100_000, "{longer} ns");
}

#[test]
fn a_full_node_is_reclaimed_and_the_other_left_alone() {
    let config = format!(
        "{MACHINE}[[process]]\nname = \"reader\"\ncpus = \"0\"\npolicy = \"bind:0\"\n{}policy = \"bind:0\"\n\
         [[process.phase]]\n{}[run]\nevents = [\"vmscan:*\"]\n",
        region("file", 1400, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 358400")
    );
    let run = ran(&config);
    agrees(&run);
    assert!(run.counter("vmstat", "", "pgsteal_kswapd") > 80_000);
    let wakes: Vec<_> = run.events.iter().filter(|event| event.2 == "mm_vmscan_wakeup_kswapd").collect();
    assert!(!wakes.is_empty());
    assert!(run.counter("numastat", "1", "numa_hit") < 1000);
}

#[test]
fn a_cgroup_at_its_limit_reclaims_its_own() {
    let config = format!(
        "{}[[cgroup]]\nname = \"/web\"\nmemory.max = \"64 MiB\"\n[[process]]\nname = \"in\"\ncgroup = \"/web\"\n{}\
         [[process.phase]]\n{}[[process]]\nname = \"out\"\n{}populate = true\n[[process.phase]]\nduration = \"1 s\"\n{}",
        small(512, "0 B"),
        region("file", 128, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 32768"),
        region("heap", 64, "anon"),
        access("heap", "pattern = \"uniform\"\nthink = \"1 ms\""),
    );
    let run = ran(&config);
    let count = |name: &str| run.counter("vmstat", "", name);
    // Of 128 MiB the pages beyond 64 are reclaimed, in passes of 32 pages or a few more, and no pages of others.
    assert!((16_384..16_384 + 100).contains(&count("pgsteal_file")), "{}", count("pgsteal_file"));
    assert_eq!((count("pgsteal_kswapd"), count("pgsteal_direct"), count("pgscan_anon")), (0, 0, 0));
    let events = |name: &str| run.events.iter().filter(|event| event.2 == name).count() as u64;
    let passes = events("mm_vmscan_memcg_reclaim_begin");
    assert!((16_384 / 64..=16_384 / 32 + 1).contains(&passes), "{passes}");
    assert_eq!(events("mm_vmscan_direct_reclaim_begin") + count("allocstall_movable"), 0);
}

#[test]
fn blocks_are_made_of_memory_that_is_full() {
    let config = format!(
        "{}[[process]]\nname = \"orders\"\n{}{}[[process.phase]]\n{}{}[[process.phase]]\n{}[[process.phase]]\n\
         [[process.phase.action]]\nkind = \"page-loop\"\norder = 3\ngfp = \"GFP_KERNEL\"\nhold = 3000\ncount = 6000\n",
        small(256, "0 B").replace("\"vmscan:*\"", "\"vmscan:*\", \"compaction:*\""),
        region("file", 320, "file"),
        region("heap", 80, "anon"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 81920"),
        access("heap", "pattern = \"uniform\"\nwrite = 1\ncount = 81920"),
        access("file", "pattern = \"uniform\"\nvia = \"syscall\"\ncount = 40000")
    );
    let run = ran(&config);
    agrees(&run);
    let count = |name: &str| run.counter("vmstat", "", name);
    let action = &run.results.phases[2].actions[0];
    assert_eq!((action.operations, action.failures), (6000, 0));
    // Every stall ends in one way or the other.
    assert!(count("compact_success") > 0, "{}", count("compact_stall"));
    assert_eq!(count("compact_stall"), count("compact_success") + count("compact_fail"));
    let events = |name: &str| run.events.iter().filter(|event| event.2 == name).count();
    // kcompactd may be at work when the run ends.
    let under_way = events("mm_compaction_begin") - events("mm_compaction_end");
    assert!(under_way <= 1, "{under_way}");
    // A request of this order compacts before it reclaims.
    let orders = run.events.iter().skip_while(|event| event.2 != "mm_compaction_try_to_compact_pages");
    let (mut tried, mut reclaimed) = (0, 0);
    for (_, _, name) in orders {
        tried += u32::from(name == "mm_compaction_try_to_compact_pages");
        reclaimed += u32::from(name == "mm_vmscan_direct_reclaim_begin");
        assert!(reclaimed <= tried, "{reclaimed} reclaims after {tried} compactions");
    }
    // Freed pages are free: no block is lost between a task and the lists.
    let free = count("nr_free_pages") + count("nr_file_pages");
    assert!(free > 65_536 * 9 / 10 && events("mm_compaction_migratepages") > 0, "{free}");
}

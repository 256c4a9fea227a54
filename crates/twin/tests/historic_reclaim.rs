//! Reclaim by zones, as in 2010, in whole runs: events and counters agree, and the results follow the rules.

use crate::common::scenario::{Finished, access, count, events, ran, refused, region};
use mmtwin_event::results::Ending;

/// A small machine of zones DMA and DMA32.
fn small(release: &str, swap: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [machine.disk]\nlatency = \"0 ns\"\n\
         [machine.swap]\nsize = \"{swap}\"\nsynchronous = true\nlatency = \"0 ns\"\nbandwidth = \"10 GB/s\"\n\
         [kernel]\nrelease = \"{release}\"\n[run]\nevents = [\"vmscan:*\", \"writeback:*\"]\n"
    )
}

fn stream(release: &str, via: &str) -> Finished {
    ran(&format!(
        "{}[[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
        small(release, "0 B"),
        region("file", 512, "file"),
        access("file", &format!("pattern = \"sequential\"\nvia = \"{via}\"\ncount = 131072"))
    ))
}

/// The sum over zones.
fn zoned(run: &Finished, family: &str) -> u64 {
    ["dma", "dma32", "normal", "movable"].map(|zone| count(run, &format!("{family}_{zone}"))).iter().sum()
}

/// The kernel's counters equal the sums of its events.
fn agrees(run: &Finished) {
    let [kswapd, direct] = run.shrunk;
    assert_eq!((zoned(run, "pgscan_kswapd"), zoned(run, "pgscan_direct")), (kswapd.0, direct.0));
    assert_eq!((count(run, "kswapd_steal"), zoned(run, "pgsteal")), (kswapd.1, kswapd.1 + direct.1));
    assert_eq!(events(run, "mm_vmscan_direct_reclaim_begin"), count(run, "allocstall"));
    assert_eq!(events(run, "mm_vmscan_direct_reclaim_end"), count(run, "allocstall"));
    assert!(events(run, "mm_vmscan_kswapd_wake") <= count(run, "pageoutrun"));
    assert_eq!(events(run, "mm_vmscan_write_folio"), count(run, "nr_vmscan_write"));
    assert_eq!(count(run, "nr_isolated_anon") + count(run, "nr_isolated_file"), 0);
}

#[test]
fn a_mapped_stream_is_looked_at_twice() {
    let run = stream("2.6.36", "mmap");
    agrees(&run);
    assert_eq!(run.results.ending, Ending::Completed);
    let (scanned, stolen) = (zoned(&run, "pgscan_kswapd") + zoned(&run, "pgscan_direct"), zoned(&run, "pgsteal"));
    assert!((60_000..131_072).contains(&stolen), "{stolen}");
    // A referenced page goes around once; some are scanned and stay.
    assert!(scanned >= 2 * stolen && scanned < 4 * stolen, "{scanned} {stolen}");
    // Every request for kswapd is an event, and far more than wake it.
    assert!(events(&run, "mm_vmscan_wakeup_kswapd") > 10 * events(&run, "mm_vmscan_kswapd_sleep").max(1));
    // Each page faults by itself.
    assert!(count(&run, "pgfault") >= 131_072);
    assert_eq!(events(&run, "mm_vmscan_throttled") + events(&run, "mm_vmscan_lru_shrink_active"), 0);
}

#[test]
fn calls_leave_no_marks_and_their_pages_are_reclaimed_at_the_first_scan() {
    let run = stream("2.6.36", "syscall");
    agrees(&run);
    let (scanned, stolen) = (zoned(&run, "pgscan_kswapd") + zoned(&run, "pgscan_direct"), zoned(&run, "pgsteal"));
    assert!(stolen > 60_000 && scanned < stolen + stolen / 20, "{scanned} {stolen}");
}

#[test]
fn tasks_wait_in_2_6_36_and_not_since() {
    let waits =
        |run: &Finished| [events(run, "writeback_congestion_wait"), events(run, "writeback_wait_iff_congested")];
    let (before, after) = (stream("2.6.36", "mmap"), stream("2.6.37", "mmap"));
    agrees(&after);
    assert!(waits(&before)[0] > 0 && waits(&before)[1] == 0, "{:?}", waits(&before));
    assert!(waits(&after)[1] > 0, "{:?}", waits(&after));
    assert!(before.end > after.end, "{} {}", before.end, after.end);
}

#[test]
fn anonymous_memory_is_swapped_from_the_active_list_on() {
    let hot = "pattern = \"hot-cold\"\nhot = 0.2\naccess_share = 0.9\nthink = \"5 us\"\nwrite = 1\ncount = 100000";
    let run = ran(&format!(
        "{}[[process]]\nname = \"heap\"\n{}populate = true\n[[process.phase]]\n{}",
        small("2.6.36", "1 GiB"),
        region("heap", 300, "anon"),
        access("heap", hot)
    ));
    agrees(&run);
    assert!(count(&run, "pswpout") > 15_000 && count(&run, "pswpin") > 1000);
    assert!(zoned(&run, "pgrefill") > 15_000 && count(&run, "pgdeactivate") == zoned(&run, "pgrefill"));
    assert_eq!((count(&run, "nr_anon_pages"), count(&run, "nr_file_pages")), (0, 0));
}

#[test]
fn without_swap_anonymous_memory_ends_the_run() {
    let hog = format!("[[process]]\nname = \"hog\"\n{}populate = true\n", region("heap", 300, "anon"));
    let run = ran(&format!("{}{hog}", small("2.6.36", "0 B")));
    assert!(matches!(run.results.ending, Ending::OutOfMemory { .. }));
    agrees(&run);
}

#[test]
fn a_note_names_the_kernels_with_rules_of_6_1() {
    let noted = |release: &str| {
        let run = ran(&format!("{}[[process]]\nname = \"p\"\n", small(release, "0 B")));
        run.results.notes.iter().any(|note| note.contains("rules of 6.1"))
    };
    assert_eq!(["2.6.36", "3.3", "3.5", "3.13", "4.13", "6.1"].map(noted), [false, false, false, true, true, false]);
}

#[test]
fn pages_of_a_cgroup_without_limits_are_reclaimed_as_all_others() {
    let of = |release: &str, cgroup: &str, of: &str| {
        ran(&format!(
            "{cgroup}{}[[process]]\nname = \"reader\"\n{of}{}[[process.phase]]\n{}",
            small(release, "0 B"),
            region("file", 512, "file"),
            access("file", "pattern = \"sequential\"\nvia = \"mmap\"\ncount = 131072")
        ))
    };
    for release in ["2.6.36", "3.3", "3.5"] {
        let inside = of(release, "[[cgroup]]\nname = \"/g\"\n", "cgroup = \"/g\"\n");
        let outside = of(release, "", "");
        assert_eq!(inside.results.ending, Ending::Completed);
        assert_eq!(inside.shrunk, outside.shrunk, "{release}");
        assert!(inside.shrunk[0].1 + inside.shrunk[1].1 > 60_000, "{release}: {:?}", inside.shrunk);
    }
}

#[test]
fn limits_of_cgroups_are_refused() {
    let cgroup =
        "[[cgroup]]\nname = \"/web\"\nmemory.max = \"64 MiB\"\n[[process]]\nname = \"in\"\ncgroup = \"/web\"\n";
    let why = refused(&format!("{}{cgroup}", small("2.6.37", "0 B")));
    assert!(why.contains("/web") && why.contains("not modelled"), "{why}");
}

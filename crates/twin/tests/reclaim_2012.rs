//! Reclaim in the kernels of 2012, in whole runs.

use crate::common::scenario::{Finished, access, count, events, ran, region};
use mmtwin_event::results::Ending;

/// The kernels, in the order in which they followed each other.
const KERNELS: [&str; 4] = ["3.3", "3.4", "3.4-lumpyremove", "3.5"];

/// A small machine with disks.
fn machine(release: &str, memory: u64, swap: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"{memory} MiB\"\n\
         [machine.disk]\nlatency = \"4 ms\"\nbandwidth = \"300 MB/s\"\n\
         [machine.swap]\nsize = \"{swap}\"\nsynchronous = false\nlatency = \"4 ms\"\nbandwidth = \"40 MB/s\"\n\
         [kernel]\nrelease = \"{release}\"\nthp = \"never\"\n[run]\nevents = [\"vmscan:*\", \"writeback:*\", \"compaction:*\"]\n"
    )
}

/// A mapped file larger than memory is read.
fn stream(release: &str) -> Finished {
    ran(&format!(
        "{}[[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
        machine(release, 256, "0 B"),
        region("file", 512, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"mmap\"\ncount = 131072")
    ))
}

/// Two files of which one is written through a mapping.
fn writer(release: &str) -> Finished {
    ran(&format!(
        "{}[[process]]\nname = \"writer\"\n{}[[process.phase]]\n{}",
        machine(release, 256, "0 B"),
        region("file", 600, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"mmap\"\nwrite = 1\ncount = 150000")
    ))
}

/// Attempts to allocate huge pages while a heap is used, a file is read and one is written.
fn blocks(release: &str, more: &str) -> Finished {
    ran(&scenario_of_blocks(release, more))
}

fn scenario_of_blocks(release: &str, more: &str) -> String {
    format!(
        "{}{more}[[process]]\nname = \"heap\"\n{}populate = true\n[[process.phase]]\nduration = \"8 s\"\n{}\
         [[process]]\nname = \"reader\"\n{}[[process.phase]]\nduration = \"8 s\"\n{}\
         [[process]]\nname = \"writer\"\n{}[[process.phase]]\nduration = \"8 s\"\n{}\
         [[process]]\nname = \"blocks\"\nstart = \"5 s\"\n[[process.phase]]\n[[process.phase.action]]\n\
         kind = \"high-order-alloc\"\norder = 9\ngfp = \"GFP_HIGHUSER_MOVABLE\"\ncount = 250\ninterval = \"10 ms\"\n",
        machine(release, 1280, "1 GiB"),
        region("heap", 600, "anon"),
        access("heap", "pattern = \"hot-cold\"\nhot = 0.3\naccess_share = 0.9\nthink = \"20 us\"\nwrite = 1"),
        region("file", 1000, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"mmap\"\nthink = \"2 us\""),
        region("written", 300, "file"),
        access("written", "pattern = \"uniform\"\nvia = \"syscall\"\nwrite = 1\nthink = \"50 us\""),
    )
}

/// The sum over zones.
fn zoned(run: &Finished, family: &str) -> u64 {
    ["dma", "dma32", "normal", "movable"].map(|zone| count(run, &format!("{family}_{zone}"))).iter().sum()
}

/// The kernel's counters equal the sums of its events.
fn agrees(run: &Finished, release: &str) {
    let [kswapd, direct] = run.shrunk;
    assert_eq!((zoned(run, "pgscan_kswapd"), zoned(run, "pgscan_direct")), (kswapd.0, direct.0));
    let reclaimed = match release {
        "3.5" => (zoned(run, "pgsteal_kswapd"), zoned(run, "pgsteal_direct")),
        _ => (count(run, "kswapd_steal"), zoned(run, "pgsteal") - count(run, "kswapd_steal")),
    };
    assert_eq!(reclaimed, (kswapd.1, direct.1));
    assert_eq!(run.has("vmstat", "", "kswapd_steal"), release != "3.5");
    assert_eq!(events(run, "mm_vmscan_direct_reclaim_begin"), count(run, "allocstall"));
    assert_eq!(events(run, "mm_vmscan_direct_reclaim_end"), count(run, "allocstall"));
    assert_eq!(events(run, "mm_vmscan_write_folio"), count(run, "nr_vmscan_write"));
    assert_eq!(run.blocks.writes[0], count(run, "pswpout"));
    assert_eq!(events(run, "mm_compaction_migratepages"), count(run, "compact_blocks_moved"));
    assert!(count(run, "compact_success") + count(run, "compact_fail") <= count(run, "compact_stall"));
    assert!(events(run, "mm_vmscan_kswapd_wake") <= count(run, "pageoutrun"));
    // Only requests that wake kswapd are events: during its short sleep, or when it is asleep.
    let wakes = count(run, "kswapd_low_wmark_hit_quickly") + events(run, "mm_vmscan_kswapd_sleep") + 1;
    assert!(events(run, "mm_vmscan_wakeup_kswapd") <= wakes, "{wakes}");
    assert_eq!(count(run, "nr_isolated_anon") + count(run, "nr_isolated_file"), 0);
}

#[test]
fn a_mapped_stream_is_looked_at_twice() {
    for release in KERNELS {
        let run = stream(release);
        agrees(&run, release);
        assert_eq!(run.results.ending, Ending::Completed);
        let [kswapd, direct] = run.shrunk;
        let (scanned, reclaimed) = (kswapd.0 + direct.0, kswapd.1 + direct.1);
        assert!((60_000..131_072).contains(&reclaimed) && scanned >= 2 * reclaimed, "{scanned} {reclaimed}");
        // Tasks find little: kswapd has scanned the lists before them.
        assert!(direct.1 * 10 < direct.0, "{direct:?}");
    }
}

#[test]
fn single_pages_are_reclaimed_alike() {
    let ends = KERNELS.map(|release| (stream(release).end, stream(release).shrunk));
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
}

#[test]
fn writers_are_slowed_down_before_reclaim_finds_their_pages() {
    for release in KERNELS {
        let run = writer(release);
        agrees(&run, release);
        assert_eq!((run.results.ending.clone(), count(&run, "nr_vmscan_write")), (Ending::Completed, 0));
        assert!(count(&run, "pgpgout") > 400_000, "{}", count(&run, "pgpgout"));
    }
}

#[test]
fn without_neighbours_and_blocks_kswapd_scans_and_writes_far_less() {
    let runs = KERNELS.map(|release| blocks(release, ""));
    for (run, release) in runs.iter().zip(KERNELS) {
        agrees(run, release);
        let compacted = ["compact_stall", "compact_pages_moved"].map(|name| count(run, name));
        assert!(compacted[0] > 50 && compacted[1] > 10_000, "{release}: {compacted:?}");
        assert!(count(run, "nr_vmscan_immediate_reclaim") > 0);
        assert_eq!(run.blocks.neighbours[0] > 0, release == "3.3", "{release}");
    }
    let [of_3_3, of_3_4, removed, of_3_5] = runs;
    assert!(of_3_4.shrunk[0].0 * 2 < of_3_3.shrunk[0].0, "{:?} {:?}", of_3_4.shrunk, of_3_3.shrunk);
    let written = |run: &Finished| run.blocks.writes[1];
    assert!(written(&of_3_3) > 5000 && written(&of_3_4) < 1000, "{} {}", written(&of_3_3), written(&of_3_4));
    // No device is congested, which is all that was left of lumpy reclaim.
    assert!(of_3_4.events == removed.events && of_3_4.end == removed.end);
    // 3.5 scans no batch a second time. Earlier kernels do (`historic_blocks.rs`).
    assert_eq!(of_3_5.blocks.sync_batches, 0);
}

#[test]
fn kswapds_test_for_single_pages_alone_makes_a_difference() {
    let without = blocks("3.4", "[kernel.reclaim]\nkswapd_order_zero = false\n");
    agrees(&without, "3.4");
    let with = blocks("3.4", "");
    assert!(with.shrunk[0].0 < without.shrunk[0].0, "{:?} {:?}", with.shrunk, without.shrunk);
}

#[test]
fn requests_that_insist_get_more_blocks() {
    let failures = |hard: bool| {
        let text = scenario_of_blocks("3.4", "");
        let text = if hard {
            text.replace("interval = \"10 ms\"", "interval = \"10 ms\"\ngfp_retry_mayfail = true")
        } else {
            text
        };
        let run = ran(&text);
        agrees(&run, "3.4");
        run.results.phases.iter().flat_map(|phase| &phase.actions).map(|action| action.failures).sum::<u64>()
    };
    let [once, hard] = [false, true].map(failures);
    assert!(hard < once, "{hard} {once}");
}

/// Small files are read until their pages are active, then a large one streams through memory.
fn small_files(release: &str, files: &str) -> Finished {
    ran(&format!(
        "{}[[process]]\nname = \"reader\"\n{}{files}{}[[process.phase]]\n{}[[process.phase]]\n{}",
        machine(release, 256, "0 B"),
        region("small", 60, "file"),
        region("large", 1024, "file"),
        access("small", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 46080"),
        access("large", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 262144")
    ))
}

#[test]
fn an_inode_takes_its_pages_along() {
    for release in KERNELS {
        let (without, with) = (small_files(release, ""), small_files(release, "files = 5000\n"));
        agrees(&with, release);
        let stolen = |run: &Finished| count(run, "pginodesteal") + count(run, "kswapd_inodesteal");
        assert_eq!((stolen(&without), count(&without, "slabs_scanned")), (0, 0));
        // Batches are those of a file system.
        let scanned = count(&with, "slabs_scanned");
        assert!(scanned >= 2 * 5000 && scanned.is_multiple_of(1024), "{scanned}");
        // The stream's reclaim never scans active pages while inactive ones are more; it scans their inodes.
        assert!(stolen(&with) > 15_360 / 2, "{}", stolen(&with));
        let reclaimed = |run: &Finished| run.shrunk[0].1 + run.shrunk[1].1;
        assert!(reclaimed(&with) + stolen(&with) / 2 < reclaimed(&without), "{:?} {:?}", with.shrunk, without.shrunk);
    }
}

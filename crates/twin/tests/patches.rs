//! Each patch of the two reclaim series changes decisions: small runs in which its mechanism must matter, by the kernel
//! before it and the one with it. What is compared are events of reclaim, never a published figure.

use crate::common::scenario::{Finished, access, count, ran, refused, region};

/// Decisions of a run, by what they are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decisions {
    /// Unconditional and conditional waits for congestion of tasks and kswapd, and those that slept.
    waits: [usize; 2],
    slept: [usize; 2],
    /// Isolations in lumpy mode, neighbours taken with them.
    lumpy: u64,
    neighbours: u64,
    /// Batches and writes of a synchronous pass.
    sync_batches: u64,
    sync_writes: u64,
    /// Pages of anonymous memory and of files written by reclaim.
    writes: [u64; 2],
    /// Pages of files written by tasks.
    task_file_writes: u64,
    /// Pages that tasks scanned and reclaimed.
    direct: (u64, u64),
}

fn decisions(run: &Finished) -> Decisions {
    let of = &run.blocks;
    Decisions {
        waits: [0, 1].map(|kind| of.waits[kind].len()),
        slept: [0, 1].map(|kind| of.waits[kind].iter().filter(|wait| wait.1 > 0).count()),
        lumpy: of.lumpy,
        neighbours: of.neighbours[0],
        sync_batches: of.sync_batches,
        sync_writes: of.sync_writes,
        writes: of.writes,
        task_file_writes: of.task_file_writes,
        direct: run.shrunk[1],
    }
}

/// A full machine of 128 MiB with slow disks: a heap that is swapped, a file that is written, a stream of clean pages, and
/// requests for huge pages.
pub fn full(release: &str, kernel: &str, disks: [&str; 2]) -> String {
    let [disk, swap] = disks;
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-3\"\nmemory = \"128 MiB\"\n\
         [machine.disk]\nlatency = \"8 ms\"\nbandwidth = \"{disk}\"\n\
         [machine.swap]\nsize = \"1 GiB\"\nsynchronous = false\nlatency = \"8 ms\"\nbandwidth = \"{swap}\"\n\
         [kernel]\nrelease = \"{release}\"\nthp = \"never\"\n{kernel}[run]\nevents = [\"vmscan:*\", \"writeback:*\"]\n\
         [[process]]\nname = \"heap\"\n{}populate = true\n[[process.phase]]\nduration = \"4 s\"\n{}\
         [[process]]\nname = \"writer\"\n{}[[process.phase]]\nduration = \"4 s\"\n{}\
         [[process]]\nname = \"stream\"\n{}sparse = true\n[[process.phase]]\nduration = \"4 s\"\n{}\
         [[process]]\nname = \"blocks\"\nstart = \"1 s\"\n[[process.phase]]\n[[process.phase.action]]\n\
         kind = \"high-order-alloc\"\norder = 9\ngfp = \"GFP_HIGHUSER_MOVABLE\"\ncount = 40\ninterval = \"50 ms\"\n",
        region("heap", 64, "anon"),
        access("heap", "pattern = \"hot-cold\"\nhot = 0.3\naccess_share = 0.9\nthink = \"20 us\"\nwrite = 1"),
        region("file", 200, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\nwrite = 1\nthink = \"30 us\"\nrecycle = true"),
        region("clean", 512, "file"),
        access("clean", "pattern = \"sequential\"\nvia = \"mmap\"\nthink = \"20 us\"\nrecycle = true"),
    )
}

/// The disk of files and that of swap.
pub const FAST: [&str; 2] = ["40 MB/s", "40 MB/s"];

fn of(release: &str, kernel: &str, disks: [&str; 2]) -> Decisions {
    decisions(&ran(&full(release, kernel, disks)))
}

#[test]
fn lowlumpy_takes_fewer_neighbours() {
    let [before, after] = ["2.6.36", "2.6.36-lowlumpy"].map(|release| of(release, "", FAST));
    assert!(before.lumpy > 0 && after.lumpy > 0, "{before:?} {after:?}");
    // With each isolation: how many there are depends on the rest of the run.
    let fewer = before.neighbours * after.lumpy > after.neighbours * before.lumpy;
    assert!(fewer && after.neighbours > 0, "{before:?} {after:?}");
}

/// Requests that insist (`__GFP_REPEAT`), as those of hugetlbfs do, are tried again while too little was freed.
#[test]
fn waitcongest_does_not_wait_before_it_tries_again() {
    let run = |release| {
        let text = full(release, "", FAST).replace("count = 40", "count = 40\ngfp_retry_mayfail = true");
        decisions(&ran(&text))
    };
    let [before, after] = ["2.6.36-lowlumpy", "2.6.36-waitcongest"].map(run);
    assert!(before.waits[1] == 0 && after.waits[1] > 0, "{before:?} {after:?}");
    // Reclaim itself waits in both.
    assert!(after.waits[0] > 0, "{after:?}");
}

#[test]
fn waitwriteback_waits_in_reclaim_only_where_a_device_and_the_zone_are_congested() {
    // The disk of files is slow enough to be congested whatever the order of requests.
    let [before, after] = ["2.6.36-waitcongest", "2.6.37"].map(|release| of(release, "", ["20 MB/s", "40 MB/s"]));
    assert!(after.waits[1] > before.waits[1] && after.waits[0] < before.waits[0], "{before:?} {after:?}");
    // Zones are marked, and a device is congested at times.
    assert!(after.slept[1] > 0 && after.slept[1] < after.waits[1], "{after:?}");
}

#[test]
fn the_first_posting_waits_for_writeback_and_its_tasks_write_no_files() {
    let [before, waits] = ["2.6.36", "2.6.36-nocongest"].map(|release| of(release, "", FAST));
    assert!(before.waits[1] == 0 && waits.waits[1] > 0 && waits.slept[1] > 0, "{before:?} {waits:?}");
    let conditional = "[kernel.reclaim]\ncongestion = \"wait-iff-writeback\"\n";
    let (low, direct) = (of("2.6.36-lowlumpy", conditional, FAST), of("2.6.36-nodirect", "", FAST));
    assert!(low.sync_batches > 0 && direct.sync_batches == 0, "{low:?} {direct:?}");
    assert!(low.task_file_writes > 0 && direct.task_file_writes == 0, "{low:?} {direct:?}");
    assert!(direct.writes[1] > 0, "kswapd writes them: {direct:?}");
}

/// With compaction what is left of lumpy reclaim in 3.4 is that requests for large blocks may write to a congested device.
#[test]
fn lumpyremove_no_longer_writes_to_congested_devices_for_large_blocks() {
    let swapping = "[kernel.sysctl]\n\"vm.swappiness\" = 100\n";
    let run = |release| {
        let text = full(release, swapping, ["40 MB/s", "2 MB/s"]).replace("size = \"64 MiB\"", "size = \"200 MiB\"");
        decisions(&ran(&text))
    };
    let [before, after] = ["3.4", "3.4-lumpyremove"].map(run);
    assert!(before.writes[0] > 0 && before.writes[0] != after.writes[0], "{before:?} {after:?}");
}

#[test]
fn lumpyremove_takes_no_neighbours_where_there_is_no_compaction() {
    let [before, after] = ["3.4", "3.4-lumpyremove"].map(|release| ran(&full(release, "compaction = false\n", FAST)));
    assert!(decisions(&before).neighbours > 1000 && decisions(&after).neighbours == 0);
    assert!(decisions(&before).direct != decisions(&after).direct);
    // Counters of what the kernel does not have are absent, not 0.
    assert!(!before.has("vmstat", "", "compact_stall") && count(&before, "allocstall") > 0);
    let with = refused(&full("3.4", "compaction = false\n", FAST).replace("thp = \"never\"", "thp = \"always\""));
    assert!(with.contains("kernel.compaction"), "{with}");
}

#[test]
fn nosync_passes_over_no_batch_a_second_time() {
    let [before, after] = ["3.4-lumpyremove", "3.5"].map(|release| of(release, "", FAST));
    assert!(before.sync_batches > 0 && after.sync_batches == 0, "{before:?} {after:?}");
    assert!(before.direct != after.direct);
}

//! Reclaim for blocks in the kernels of 2010, in whole runs: a full machine with dirty files and swap on slow disks, and
//! requests for huge pages.

use crate::common::scenario::{Blocks, Finished, count, events, ran, refused};

/// The kernels, in the order in which they followed each other.
const KERNELS: [&str; 4] = ["2.6.36", "2.6.36-lowlumpy", "2.6.36-waitcongest", "2.6.37"];

/// A machine with so much memory.
fn machine(release: &str, megabytes: u64, kernel: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
         memory = \"{megabytes} MiB\"\n[machine.disk]\nlatency = \"2 ms\"\nbandwidth = \"40 MB/s\"\n\
         [machine.swap]\nsize = \"1 GiB\"\nsynchronous = false\nlatency = \"4 ms\"\nbandwidth = \"40 MB/s\"\n\
         [kernel]\nrelease = \"{release}\"\n{kernel}[run]\nevents = [\"vmscan:*\", \"writeback:*\"]\n"
    )
}

fn attempts(order: u32, rest: &str) -> String {
    format!(
        "[[process]]\nname = \"blocks\"\n{rest}[[process.phase]]\n[[process.phase.action]]\nkind = \"high-order-alloc\"\n\
         order = {order}\ngfp = \"GFP_HIGHUSER_MOVABLE\"\ncount = 45\ninterval = \"2 ms\"\ngfp_retry_mayfail = true\n"
    )
}

/// Memory and files that are written to fill a small machine, and requests for huge pages.
fn run(release: &str) -> Finished {
    ran(&full(release, 1))
}

fn full(release: &str, seed: u64) -> String {
    format!(
        "{}[[process]]\nname = \"heap\"\n[[process.region]]\nname = \"heap\"\nsize = \"96 MiB\"\nkind = \"anon\"\n\
         populate = true\n[[process.phase]]\nduration = \"3 s\"\n[[process.phase.access]]\nregion = \"heap\"\n\
         pattern = \"hot-cold\"\nhot = 0.3\naccess_share = 0.9\nthink = \"20 us\"\nwrite = 1\n\
         [[process]]\nname = \"writer\"\n[[process.region]]\nname = \"file\"\nsize = \"200 MiB\"\nkind = \"file\"\n\
         [[process.phase]]\nduration = \"3 s\"\n[[process.phase.access]]\nregion = \"file\"\n\
         pattern = \"uniform\"\nvia = \"syscall\"\nwrite = 1\nthink = \"30 us\"\n\
         [[process]]\nname = \"end\"\n[[process.phase]]\nduration = \"4 s\"\n{}",
        machine(release, 128, ""),
        attempts(9, "start = \"1 s\"\n")
    )
    .replace("[run]", &format!("[run]\nseed = {seed}"))
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
    assert_eq!(run.blocks.writes.iter().sum::<u64>(), count(run, "nr_vmscan_write"));
    assert_eq!(run.blocks.writes[0], count(run, "pswpout"));
    assert_eq!(count(run, "nr_isolated_anon") + count(run, "nr_isolated_file"), 0);
    // An attempt that finds its block while it begins to wait has only stalled.
    assert!(count(run, "compact_success") + count(run, "compact_fail") <= count(run, "compact_stall"));
}

#[test]
fn huge_pages_of_a_full_machine_by_the_kernels_of_2010() {
    let runs = KERNELS.map(run);
    for (kernel, run) in KERNELS.iter().zip(&runs) {
        agrees(run);
        let of = &run.blocks;
        let [taken, dirty, failed] = of.neighbours;
        assert!(taken > 1000 && dirty > 100 && failed > 3 && of.lumpy > 5, "{kernel} {:?}", of.neighbours);
        assert!(of.writes[1] > 500 && of.sync_batches > 0, "{kernel} {:?}", of.writes);
        assert!(count(run, "compact_stall") > 0 && count(run, "allocstall") > 0, "{kernel}");
        let waits: Vec<_> = of.waits.iter().flatten().collect();
        // Times are whole ticks of 4 ms, and some waits end because a queue has room again.
        assert!(waits.iter().all(|wait| wait.0 % 4000 == 0 && wait.1 % 4000 == 0), "{kernel} {waits:?}");
        assert!(waits.iter().any(|wait| wait.1 > 0 && wait.1 < wait.0), "{kernel} {waits:?}");
    }
    // One run is too short to show what changed.
    let sums = |kernel: &str| {
        let runs = [1, 2, 3, 4, 5, 6].map(|seed| ran(&full(kernel, seed)).blocks);
        let sum = |count: fn(&Blocks) -> usize| runs.iter().map(count).sum::<usize>();
        // Waits for congestion: unconditional, conditional, and the conditional ones that found a congested device.
        let waits = [
            sum(|of| of.waits[0].len()),
            sum(|of| of.waits[1].len()),
            sum(|of| of.waits[1].iter().filter(|wait| wait.1 > 0).count()),
        ];
        (sum(|of| of.sync_writes as usize), waits)
    };
    let [first, low, conditional, zone] = KERNELS.map(sums);
    // Lumpy reclaim begins at a lower priority, and waits less, for its own writes too.
    assert!(low.0 < first.0 && low.1[0] < first.1[0] && low.1[1] == 0, "{first:?} {low:?}");
    for late in [conditional, zone] {
        assert!(late.1[2] > 0 && late.1[0] < low.1[0], "{low:?} {late:?}");
    }
}

#[test]
fn blocks_are_as_large_as_the_kernel_has_them() {
    let large = |kernel: &str| format!("{}{}", machine("2.6.36", 256, kernel), attempts(12, ""));
    let run = ran(&large("page_alloc = { max_order = 12 }\n"));
    let of = &run.results.phases[0].actions[0];
    // 256 MiB have 16 blocks of 16 MiB, some of them in use from the start.
    assert!((12..16).contains(&(of.operations - of.failures)), "{} {}", of.operations, of.failures);
    let other =
        refused(&large("").replacen("[machine]\n", "[machine]\nhuge_page = \"16 MiB\"\n", 1).replace("2.6.36", "3.13"));
    assert!(other.contains("huge pages of 16 MiB"), "{other}");
    let why = refused(&large(""));
    assert!(why.contains("order 12") && why.contains("max_order is 10"), "{why}");
}

//! Workloads of the published tests of 2010 and 2012: attempts to allocate blocks, memory and files that are freed
//! while others continue, and controls with hardly any memory pressure, in which the kernels agree.

use crate::common::scenario::{Finished, count, ran, ran_with};
use mmtwin_event::results::Attempt;

/// 256 MiB with a disk that takes time, and a process of one thread.
fn machine(release: &str, rest: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [machine.disk]\nlatency = \"1 ms\"\nbandwidth = \"100 MB/s\"\n[kernel]\nrelease = \"{release}\"\n\
         [[process]]\nname = \"p\"\n{rest}"
    )
}

#[test]
fn a_heap_is_freed_and_filled_again() {
    let run = ran(&machine(
        "2.6.36",
        "[[process.region]]\nname = \"heap\"\nsize = \"16 MiB\"\n[[process.phase]]\n[[process.phase.access]]\n\
         region = \"heap\"\npattern = \"sequential\"\nwrite = 1.0\nrecycle = true\ncount = 409600\n[[process.phase]]\n\
         duration = \"1 ms\"\n",
    ));
    let phase = &run.results.phases[0];
    // 100 times the size of memory, without memory pressure: every access is a fault, and one heap is left.
    assert_eq!((phase.accesses[0].faults, phase.placement[0].nodes.clone()), (409_600, vec![4096]));
    assert_eq!((count(&run, "allocstall"), count(&run, "pageoutrun"), count(&run, "nr_anon_pages")), (0, 0, 0));
}

#[test]
fn a_huge_page_of_two_threads_is_discarded_by_neither() {
    let text = machine(
        "6.1",
        "threads = 2\n[[process.region]]\nname = \"heap\"\nsize = \"9 MiB\"\nsharing = \"private\"\n\
         [[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\nwrite = 1.0\n\
         recycle = true\ncount = 11520\n",
    );
    let run =
        ran(&text.replace("release =", "thp = \"always\"\nsysctl = { \"kernel.numa_balancing\" = 0 }\nrelease ="));
    // Each has half of the third of four huge pages; the last MiB has none. Ten rounds.
    let each_round = 3 + 256;
    assert_eq!(run.results.phases[0].accesses[0].faults, 1 + 10 * each_round);
    assert_eq!((count(&run, "thp_fault_alloc"), count(&run, "nr_anon_pages")), (31, 0));
}

#[test]
fn a_deleted_file_takes_its_dirty_pages_along() {
    let of = |recycle: bool| {
        ran(&machine(
            "3.4",
            &format!(
                "[[process.region]]\nname = \"file\"\nsize = \"8 MiB\"\nkind = \"file\"\ntemporary = {recycle}\n\
                 [[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\npattern = \"sequential\"\n\
                 via = \"syscall\"\nwrite = 1.0\nrecycle = {recycle}\ncount = 8192\n"
            ),
        ))
    };
    let (kept, deleted) = (of(false), of(true));
    // A file that is overwritten stays one file; deleted pages are freed, dirty or not, and never written.
    assert_eq!((count(&kept, "nr_dirty"), count(&deleted, "nr_dirty")), (2048, 0));
    assert_eq!((count(&kept, "pgpgout"), count(&deleted, "pgpgout")), (0, 0));
    assert_eq!(count(&kept, "nr_file_pages") - count(&deleted, "nr_file_pages"), 2048);
    assert_eq!(count(&deleted, "nr_dirtied"), 8192);
}

fn attempts(release: &str, phase: &str) -> (Finished, Vec<Attempt>) {
    let rest = format!(
        "[[process.region]]\nname = \"file\"\nsize = \"320 MiB\"\nkind = \"file\"\n[[process.phase]]\n\
         [[process.phase.access]]\nregion = \"file\"\npattern = \"sequential\"\nvia = \"syscall\"\ncount = 81920\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"high-order-alloc\"\n{phase}[[process.phase]]\nduration = \"1 ms\"\n"
    );
    let run = ran(&machine(release, &rest));
    let attempts = run.results.phases[1].actions[0].attempts.clone();
    (run, attempts)
}

#[test]
fn attempts_continue_after_failures() {
    for release in ["2.6.36", "2.6.37", "3.3", "3.5", "6.1"] {
        let (run, attempts) = attempts(release, "order = 9\ncount = 140\ninterval = \"20 ms\"\n");
        let action = &run.results.phases[1].actions[0];
        let failed = attempts.iter().filter(|attempt| !attempt.success).count() as u64;
        // There are 128 blocks at most, and memory is full of reclaimable pages.
        assert_eq!((action.operations, action.failures), (140, failed), "{release}");
        assert!((13..=110).contains(&failed), "{release}: {failed}");
        let interval = |pair: &[Attempt]| pair[1].at - pair[0].at;
        assert!(attempts.windows(2).all(|pair| interval(pair) >= 20_000_000.max(pair[0].latency)), "{release}");
        // All blocks have been freed.
        assert!(count(&run, "nr_free_pages") > 512 * (140 - failed), "{release}");
    }
}

#[test]
fn attempts_that_are_retried_hard_get_no_less() {
    let got = |hard: bool| {
        let (_, attempts) =
            attempts("3.4", &format!("order = 9\ncount = 140\ninterval = \"20 ms\"\ngfp_retry_mayfail = {hard}\n"));
        attempts.iter().filter(|attempt| attempt.success).count()
    };
    let (soft, hard) = (got(false), got(true));
    assert!(hard >= soft && soft > 0, "{soft} {hard}");
}

const KERNELS: [&str; 8] =
    ["2.6.36", "2.6.36-lowlumpy", "2.6.36-waitcongest", "2.6.37", "3.3", "3.4", "3.4-lumpyremove", "3.5"];

/// Kernels take as long for a control, on average over two seeds, within the spread of the seeds or to one percent, at
/// about a quarter of its size. There is some pressure in each.
fn agrees(control: &str, sets: &[&str]) {
    let path = format!("{}/../../scenarios/controls/{control}.toml", env!("CARGO_MANIFEST_DIR"));
    let control = std::fs::read_to_string(path).expect("a control");
    // Times within a tick cannot be distinguished.
    const TICK: u64 = 4_000_000;
    let took = |release: &str, seed: u32| {
        let mut sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        sets.extend([
            "machine.node.0.memory=128 MiB".into(),
            format!("kernel.release={release}"),
            format!("run.seed={seed}"),
        ]);
        let run = ran_with(&control, &sets);
        assert!(count(&run, "pageoutrun") > 0, "{release}: there is some pressure");
        let last = run.results.phases.iter().map(|phase| phase.end).max();
        last.unwrap_or_default()
    };
    let times = KERNELS.map(|release| [took(release, 1), took(release, 2)]);
    let spread = times.iter().map(|[a, b]| a.abs_diff(*b)).max().unwrap_or_default();
    let means = times.map(|[a, b]| (a + b) / 2);
    let (least, most) = (means.iter().min(), means.iter().max());
    assert!(
        most.zip(least).is_some_and(|(most, least)| most - least <= spread.max(TICK).max(least / 100)),
        "{times:?}"
    );
}

#[test]
fn kernels_agree_on_builds() {
    agrees(
        "kernbench",
        &[
            "process.make.region.heap.size=12 MiB",
            "process.make.region.sources.size=50 MiB",
            "process.make.region.objects.size=10 MiB",
            "process.make.phase.build.access.0.count=46_080",
            "process.make.phase.build.access.1.count=12_800",
            "process.make.phase.build.access.2.count=2_560",
        ],
    );
}

#[test]
fn kernels_agree_on_a_database() {
    agrees(
        "sysbench",
        &[
            "process.mysqld.region.buffers.size=32 MiB",
            "process.mysqld.region.table.size=140 MiB",
            "process.mysqld.phase.queries.access.0.count=21_000",
            "process.mysqld.phase.queries.access.1.count=21_000",
        ],
    );
}

#[test]
fn kernels_agree_on_a_copy() {
    agrees(
        "dd",
        &[
            "process.dd.region.from.size=160 MiB",
            "process.dd.region.to.size=160 MiB",
            "process.dd.phase.copy.access.0.count=40_960",
            "process.dd.phase.copy.access.1.count=40_960",
        ],
    );
}

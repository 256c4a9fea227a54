//! Huge pages for faults on a machine whose memory is full: faults that wait for them have them after reclaim and
//! compaction; and for reads, which have the huge zero page where there is one.

use crate::common::scenario::ran;

/// A reader scatters pages of its file over 512 MiB; then a program writes 128 MiB, with `MADV_HUGEPAGE` or without.
fn text(defrag: &str, config: &str) -> String {
    format!(
        "[machine]\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"512 MiB\"\n\
         [kernel]\nrelease = \"6.1\"\nthp_defrag = \"{defrag}\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         [[process]]\nname = \"reader\"\n\
         [[process.region]]\nname = \"file\"\nsize = \"768 MiB\"\nkind = \"file\"\n\
         [[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\npattern = \"uniform\"\nvia = \"syscall\"\n\
         count = 400_000\n\
         [[process]]\nname = \"writer\"\nstart = \"40 s\"\n\
         [[process.region]]\nname = \"heap\"\nsize = \"128 MiB\"\nhuge = \"{config}\"\n\
         [[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\nwrite = 1.0\n\
         count = 32_768\n[run]\nseed = 1\n"
    )
}

#[test]
fn faults_that_wait_allocate_huge_pages_from_full_memory() {
    let found = ["never", "madvise"].map(|defrag| {
        let run = ran(&text(defrag, "madvise"));
        let count = |name: &str| run.counter("vmstat", "", name);
        // Every block of the heap has a huge page or was refused one, once.
        assert_eq!(count("thp_fault_alloc") + count("thp_fault_fallback"), 64, "{defrag}");
        assert_eq!(count("compact_stall"), count("compact_success") + count("compact_fail"), "{defrag}");
        assert_eq!(count("nr_anon_pages"), 0, "{defrag}: all is given back at the end");
        [count("thp_fault_alloc"), count("compact_stall")]
    });
    let [[_, no_stall], [waiting, stalls]] = found;
    assert!(no_stall == 0 && stalls > 10 && waiting > found[0][0], "{found:?}");
}

#[test]
fn huge_pages_for_which_swap_has_no_room_are_split() {
    // A heap of huge pages, 2 MiB above its limit.
    let pswpout = |swap: &str| {
        let run = ran(&format!(
            "[machine]\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"512 MiB\"\n[machine.swap]\n\
             size = \"256 MiB\"\nsynchronous = true\n[kernel]\nrelease = \"6.1\"\nthp = \"always\"\ncgroup = \"v2\"\n\
             sysctl = {{ \"kernel.numa_balancing\" = 0 }}\n[[cgroup]]\nname = \"/box\"\nmemory.max = \"64 MiB\"\n\
             memory.swap.max = \"{swap}\"\n[[process]]\nname = \"p\"\ncgroup = \"/box\"\n\
             [[process.region]]\nname = \"heap\"\nsize = \"66 MiB\"\npopulate = true\n[[process.phase]]\n\
             duration = \"1 s\"\n[run]\nsample = \"100 ms\"\n"
        ));
        [run.counter("vmstat", "", "pswpout"), run.counter("vmstat", "", "thp_fault_alloc")]
    };
    let ([whole, huge], [split, _]) = (pswpout("64 MiB"), pswpout("1020 KiB"));
    assert!(huge > 25 && whole >= 512 && whole % 512 == 0, "{whole} {huge}");
    assert!((1..=255).contains(&split), "{split}");
}

#[test]
fn reads_have_the_huge_zero_page_on_machines_of_half_a_gibibyte() {
    // 16 MiB are read, then written. Guests with 6.1, the first two, and 7.3.
    let found = |memory: &str, release: &str| {
        let access =
            "[[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\ncount = 4096\n";
        let run = ran(&format!(
            "[machine]\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"{memory}\"\n[kernel]\n\
             release = \"{release}\"\nthp = \"always\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
             [[process]]\nname = \"p\"\n[[process.region]]\nname = \"heap\"\nsize = \"16 MiB\"\n{access}{access}write = 1.0\n"
        ));
        let faults = |number: usize| run.results.phases[number].accesses[0].faults;
        [faults(0), faults(1), run.counter("vmstat", "", "thp_fault_alloc")]
    };
    assert_eq!(found("448 MiB", "6.1"), [8, 0, 8]);
    assert_eq!(found("768 MiB", "6.1"), [8, 4096, 0]);
    assert_eq!(found("768 MiB", "7.3"), [8, 8, 8]);
}

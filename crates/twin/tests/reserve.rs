//! Tasks that reclaim while the reserve is used up wait for kswapd.

use crate::common::scenario::{Finished, ran};
use mmtwin_event::results::Ending;

/// A reader that may use node 1 only, whose kswapd is slow. The node has no zone that is reserved for other requests.
fn run(boost: u64) -> Finished {
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
         memory = \"256 MiB\"\n[[machine.node]]\ncpus = \"2-5\"\nmemory = \"256 MiB\"\n\
         [machine.cost]\nreclaim_scan_page = \"27 us\"\n\
         [machine.disk]\nbandwidth = \"2 GB/s\"\n[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
         sysctl = {{ \"kernel.numa_balancing\" = 0, \"vm.watermark_boost_factor\" = {boost} }}\n\
         [run]\nevents = [\"vmscan:*\"]\n\
         [[process]]\nname = \"reader\"\ncpus = \"2\"\npolicy = \"bind:1\"\n[[process.region]]\nname = \"file\"\n\
         size = \"512 MiB\"\nkind = \"file\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\n\
         pattern = \"sequential\"\nvia = \"syscall\"\nthink = \"5 us\"\ncount = 131072\n"
    );
    ran(&text)
}

#[test]
fn below_half_of_the_reserve_tasks_wait_for_kswapd() {
    let waits = |run: &Finished| {
        assert_eq!(run.results.ending, Ending::Completed);
        // All that was scanned and reclaimed is in events still.
        let count = |name: &str| run.counter("vmstat", "", name);
        assert_eq!(run.shrunk[1], (count("pgscan_direct"), count("pgsteal_direct")));
        assert!(count("pgscan_direct") > 0);
        count("pgscan_direct_throttle")
    };
    assert_eq!(waits(&run(0)), 0);
    // A block of another type that the file's index takes pages of boosts the marks, and half of them is more than is free.
    assert!(waits(&run(15_000)) > 0);
}

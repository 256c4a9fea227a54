//! Tasks that reclaim while the reserve is gone wait for kswapd.

mod common;

use common::scenario::{Finished, ran};
use mmtwin_event::results::Ending;

/// A reader that may use node 1 only, and somebody who takes pages there without waiting once that is full. The node has no
/// zone that is kept for others.
fn run(taken: u64) -> Finished {
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
         memory = \"256 MiB\"\n[[machine.node]]\ncpus = \"2-5\"\nmemory = \"256 MiB\"\n\
         [machine.disk]\nbandwidth = \"2 GB/s\"\n[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
         sysctl = {{ \"kernel.numa_balancing\" = 0 }}\n[run]\nevents = [\"vmscan:*\"]\n\
         [[process]]\nname = \"reader\"\ncpus = \"2\"\npolicy = \"bind:1\"\n[[process.region]]\nname = \"file\"\nsize = \"512 MiB\"\n\
         kind = \"file\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\npattern = \"sequential\"\n\
         via = \"syscall\"\nthink = \"5 us\"\ncount = 131072\n\
         [[process]]\nname = \"taker\"\nthreads = 2\ncpus = \"3-4\"\nstart = \"900 ms\"\n[[process.phase]]\n\
         duration = \"500 ms\"\n[[process.phase.action]]\nkind = \"page-fill\"\ngfp = \"GFP_ATOMIC\"\ncount = {taken}\n"
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
        count("pgscan_direct_throttle")
    };
    assert_eq!(waits(&run(1)), 0);
    assert!(waits(&run(4000)) > 0);
}

//! A run without progress ends, and reports place and reason.

use crate::common::scenario::ran;
use mmtwin_event::results::Ending;
use mmtwin_twin::engine::Halted;

/// A machine on which reading a statistics file takes no time, and a process that does this repeatedly.
const STILL: &str = "[machine]\nname = \"m\"\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"64 MiB\"\n\
    [machine.cost]\nstat_file = \"0 ns\"\nstat_row = \"0 ns\"\ncounter_read = \"0 ns\"\n[kernel]\nrelease = \"6.1\"\n\
    [[process]]\nname = \"reader\"\nstart = \"3 ms\"\n[[process.phase]]\nduration = \"5 ms\"\n[[process.phase.action]]\n\
    kind = \"read\"\nfile = \"buddyinfo\"\ninterval = \"0 ns\"\n[run]\ncounters = [\"*\"]\n";

#[test]
fn a_run_ends_whose_time_stands_still() {
    let run = ran(STILL);
    let Some(Halted::StandsStill { at, pid, comm, activity, .. }) = &run.halted else { panic!("{:?}", run.halted) };
    assert_eq!((*at, *pid, comm.as_str(), activity.as_str()), (3_000_000, 1000, "reader", "action number 0"));
    let Ending::Stopped { at, message, .. } = &run.results.ending else { panic!("{:?}", run.results.ending) };
    assert!(
        *at == 3_000_000 && message.contains("0.003000000 s") && message.contains("reader (pid 1000)"),
        "{message}"
    );
    // Its results are kept: the phase that was cut off, and the samples of its start and end.
    assert_eq!(run.results.phases.len(), 1);
    assert!(run.counter("vmstat", "", "nr_free_pages") < u64::MAX);
    // And at the same place again.
    assert_eq!(ran(STILL).halted, run.halted);
}

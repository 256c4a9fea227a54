//! NUMA balancing in whole runs.

mod common;

use common::scenario::{Finished, ran, ran_explicitly};

/// Four nodes with two CPUs and 512 MiB each.
const FOUR: &str = "[machine]\nname = \"m\"\ndistance = [[10, 20, 20, 20], [20, 10, 20, 20], [20, 20, 10, 20], \
    [20, 20, 20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"512 MiB\"\n[[machine.node]]\ncpus = \"2-3\"\n\
    memory = \"512 MiB\"\n[[machine.node]]\ncpus = \"4-5\"\nmemory = \"512 MiB\"\n[[machine.node]]\ncpus = \"6-7\"\n\
    memory = \"512 MiB\"\n";

fn said(kernel: &str, rest: &str) -> String {
    format!("{FOUR}[kernel]\n{kernel}\n{rest}")
}

fn vmstat(run: &Finished, name: &str) -> u64 {
    run.counter("vmstat", "", name)
}

/// A process whose memory was populated on node 0 and that works on node 2.
fn far(kernel: &str, huge: bool) -> String {
    let thp = if huge { "always" } else { "never" };
    said(
        &format!("release = \"{kernel}\"\nthp = \"{thp}\""),
        "[[process]]\nname = \"filler\"\ncpus = \"0\"\n[[process.region]]\nname = \"heap\"\nkind = \"shmem\"\nfile = \"heap\"\n\
         size = \"64 MiB\"\npopulate = true\n[[process.phase]]\nduration = \"100 s\"\n[[process.phase.action]]\nkind = \"sleep\"\n\
         time = \"99 s\"\n[[process]]\nname = \"user\"\nstart = \"1 s\"\ncpus = \"4\"\n[[process.region]]\nname = \"heap\"\nkind = \"shmem\"\n\
         file = \"heap\"\nsize = \"64 MiB\"\n[[process.phase]]\nduration = \"12 s\"\n[[process.phase.access]]\nregion = \"heap\"\n\
         pattern = \"uniform\"\nwrite = 0.5\nthink = \"2 us\"\n[run]\nduration = \"14 s\"\nsample = \"1 s\"\nevents = [\"sched:*\", \"migrate:*\"]\n",
    )
}

const COUNTERS: [&str; 5] =
    ["numa_pte_updates", "numa_huge_pte_updates", "numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"];

#[test]
fn memory_follows_its_only_user_in_both_modes() {
    for huge in [false, true] {
        let runs = [ran(&far("6.1", huge)), ran_explicitly(&far("6.1", huge))];
        for run in &runs {
            let counters = COUNTERS.map(|name| vmstat(run, name));
            // One pass moves all of it, those after it find it near: shared memory is not huge here.
            assert_eq!(counters, [49152, 0, 49152, 32768, 16384], "{huge}");
            let placed = [0, 1, 2, 3].map(|node| run.counter("numa_maps", "user/heap", &format!("N{node}")));
            assert_eq!(placed, [0, 0, 16384, 0]);
            assert_eq!(run.events.iter().filter(|event| event.2 == "mm_migrate_pages").count(), 16384);
            assert_eq!(vmstat(run, "pgmigrate_fail"), 0);
        }
    }
}

//! Node reclaim (`vm.zone_reclaim_mode`) in whole runs.

use crate::common::scenario::{Finished, count, events, ran, refused};
use mmtwin_event::results::Ending;

/// Two nodes of 256 MiB at this distance, with or without CPUs on the second.
fn machine(mode: u32, distance: u32, cpus: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10, {distance}], [{distance}, 10]]\n[[machine.node]]\ncpus = \"0-1\"\n\
         memory = \"256 MiB\"\n[[machine.node]]\n{cpus}memory = \"256 MiB\"\n[machine.disk]\nbandwidth = \"2 GB/s\"\n\
         [kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
         sysctl = {{ \"kernel.numa_balancing\" = 0, \"vm.zone_reclaim_mode\" = {mode} }}\n[run]\nevents = [\"vmscan:*\"]\n"
    )
}

const CPUS: &str = "cpus = \"2-3\"\n";

/// A process on node 0 that accesses a region once, in order.
fn process(kind: &str, megabytes: u64, via: &str, write: &str) -> String {
    format!(
        "[[process]]\nname = \"p\"\ncpus = \"0\"\n[[process.region]]\nname = \"r\"\nsize = \"{megabytes} MiB\"\n\
         kind = \"{kind}\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"sequential\"\n\
         via = \"{via}\"\nthink = \"5 us\"\n{write}count = {}\n",
        megabytes * 256
    )
}

/// Reclaims of nodes that had enough and that had not; both ends of each are there.
fn reclaims(run: &Finished) -> (u64, u64) {
    // 6.1 has no row of the first.
    let [failed, success] = run.kernel.stat.node_reclaims.unwrap();
    let both = (success, count(run, "zone_reclaim_failed"));
    assert_eq!(both.1, failed);
    let ends = events(run, "mm_vmscan_node_reclaim_end");
    assert_eq!((events(run, "mm_vmscan_node_reclaim_begin"), both.0 + both.1), (ends, ends));
    both
}

fn elsewhere(run: &Finished) -> u64 {
    run.counter("numastat", "1", "numa_miss")
}

#[test]
fn a_file_stays_on_its_node() {
    let read = process("file", 400, "syscall", "");
    let off = ran(&format!("{}{read}", machine(0, 20, CPUS)));
    assert!(elsewhere(&off) > 30_000 && reclaims_of(&off) == 0, "{}", elsewhere(&off));
    let on = ran(&format!("{}{read}", machine(1, 20, CPUS)));
    assert_eq!((on.results.ending.clone(), elsewhere(&on), count(&on, "pgscan_kswapd")), (Ending::Completed, 0, 0));
    let (success, failed) = reclaims(&on);
    // Each aims at 32 pages and takes what a sixteenth of the list has in batches of 32: no fewer.
    let stolen = count(&on, "pgsteal_direct");
    assert!(success > 0 && failed == 0 && stolen >= 32 * success && count(&on, "allocstall_movable") == 0);
    assert!((30_000..60_000).contains(&stolen), "{stolen}");
    // Dirty pages are written by others: scanned and reclaimed pages equal those of the events.
    let (of_tasks, of_kswapd) = (on.shrunk[1], on.shrunk[0]);
    assert_eq!((of_tasks, of_kswapd), ((count(&on, "pgscan_direct"), stolen), (0, 0)));
}

fn reclaims_of(run: &Finished) -> u64 {
    events(run, "mm_vmscan_node_reclaim_begin")
}

#[test]
fn kernels_since_6_11_count_those_that_had_enough_too() {
    let text = format!("{}{}", machine(1, 20, CPUS).replace("6.1", "6.12"), process("file", 400, "syscall", ""));
    let run = ran(&text);
    let [failed, success] = run.kernel.stat.node_reclaims.unwrap();
    assert!(success > 0);
    assert_eq!((count(&run, "zone_reclaim_success"), count(&run, "zone_reclaim_failed")), (success, failed));
}

#[test]
fn memory_without_page_cache_falls_back_at_once() {
    let run = ran(&format!("{}{}", machine(1, 20, CPUS), process("anon", 300, "mmap", "write = 1.0\n")));
    assert!(elsewhere(&run) > 10_000);
    assert_eq!(reclaims(&run), (0, 0));
}

#[test]
fn mapped_pages_stay_unless_the_mode_takes_them() {
    let map = process("file", 400, "mmap", "");
    let kept = ran(&format!("{}{map}", machine(1, 20, CPUS)));
    let taken = ran(&format!("{}{map}", machine(5, 20, CPUS)));
    // Pages of read-ahead are not mapped yet.
    assert!(elsewhere(&kept) > 20_000, "{}", elsewhere(&kept));
    assert!(elsewhere(&taken) == 0 && reclaims(&taken).0 > 0, "{}", elsewhere(&taken));
}

#[test]
fn of_other_nodes_only_those_near_and_without_cpus_are_reclaimed() {
    // Node 0 is small and full of a heap. The file is allocated on node 1, which is full of it after a while.
    let heap = "[[process.region]]\nname = \"heap\"\nsize = \"70 MiB\"\npopulate = true\n";
    let run = |distance, cpus| {
        let machine = machine(1, distance, cpus).replacen("memory = \"256 MiB\"", "memory = \"64 MiB\"", 1);
        let read =
            process("file", 500, "syscall", "").replacen("[[process.region]]", &format!("{heap}[[process.region]]"), 1);
        let run = ran(&format!("{machine}{read}"));
        assert!(count(&run, "pgsteal_kswapd") + count(&run, "pgsteal_direct") > 30_000);
        reclaims(&run).0 > 0
    };
    assert_eq!([run(20, ""), run(40, ""), run(20, CPUS)], [true, false, false]);
}

#[test]
fn a_policys_node_is_at_no_distance() {
    let read = process("file", 400, "syscall", "").replace("cpus = \"0\"\n", "cpus = \"0\"\npolicy = \"bind:1\"\n");
    assert!(reclaims(&ran(&format!("{}{read}", machine(1, 40, "")))).0 > 0);
}

#[test]
fn zones_of_2010_are_refused() {
    let text = machine(1, 20, CPUS).replace("6.1", "2.6.36").replace("\"kernel.numa_balancing\" = 0, ", "");
    let message = refused(&format!("{text}{}", process("file", 1, "syscall", "")));
    assert!(message.contains("vm.zone_reclaim_mode above 0"), "{message}");
}

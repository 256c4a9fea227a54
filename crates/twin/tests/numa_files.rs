//! NUMA balancing and fault-around of files and shared memory that several processes map, in whole runs.

use crate::common::scenario::{Finished, MACHINE, ran, ran_explicitly, ran_with};

/// Four nodes with two CPUs and 512 MiB each, scanned four times a second.
fn config(rest: &str) -> String {
    let node = |cpus: &str| format!("[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"512 MiB\"\n");
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10, 20, 20, 20], [20, 10, 20, 20], [20, 20, 10, 20], [20, 20, 20, 10]]\n\
         {}{}{}{}[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n[kernel.numa_balancing]\nscan_delay_ms = 250\n\
         scan_period_min_ms = 250\n{rest}[run]\nsample = \"1 s\"\n",
        node("0-1"),
        node("2-3"),
        node("4-5"),
        node("6-7")
    )
}

/// A process that reads a file of 16 MiB `count` times in order.
fn reader(name: &str, kind: &str, via: &str, start: &str, cpus: &str, passes: u64) -> String {
    let count = 4096 * passes;
    format!(
        "[[process]]\nname = \"{name}\"\nstart = \"{start}\"\ncpus = \"{cpus}\"\n[[process.region]]\nname = \"data\"\n\
         kind = \"{kind}\"\nfile = \"data\"\nsize = \"16 MiB\"\n[[process.phase]]\n[[process.phase.access]]\n\
         region = \"data\"\npattern = \"sequential\"\nvia = \"{via}\"\nthink = \"20 us\"\ncount = {count}\n"
    )
}

fn vmstat(run: &Finished, name: &str) -> u64 {
    run.counter("vmstat", "", name)
}

/// Faults of the accesses of a process.
fn faults(run: &Finished, process: &str) -> u64 {
    let phases = run.results.phases.iter().filter(|phase| phase.process == process);
    phases.flat_map(|phase| &phase.accesses).map(|access| access.faults).sum()
}

#[test]
fn unmapped_pages_of_the_cache_are_not_marked() {
    let run = ran(&config(&reader("r", "file", "syscall", "0 s", "0", 60)));
    // The rest are pages of the program itself.
    let updates = vmstat(&run, "numa_pte_updates");
    assert!(updates < 500, "{updates}");
    assert!(vmstat(&run, "numa_pages_migrated") < 200 && vmstat(&run, "nr_file_pages") >= 4096);
    let mapped = ran(&config(&reader("r", "file", "mmap", "0 s", "0", 60)));
    assert!(vmstat(&mapped, "numa_pte_updates") > 10_000, "the same file through a mapping");
}

#[test]
fn dirty_pages_of_a_mapped_file_are_not_marked() {
    let text = config(&reader("r", "file", "mmap", "0 s", "0", 30).replace("think", "write = 1.0\nthink"));
    // Nothing is written back so soon.
    let run = ran(&text);
    assert!(vmstat(&run, "numa_pte_updates") < 500, "{}", vmstat(&run, "numa_pte_updates"));
    assert!(vmstat(&run, "nr_dirty") >= 4000);
}

#[test]
fn each_process_maps_a_cached_file_for_itself() {
    for explicit in [false, true] {
        for kind in ["file", "shmem"] {
            let both = [reader("a", kind, "mmap", "0 s", "0", 1), reader("b", kind, "mmap", "3 s", "4", 2)];
            let stays = "[[process]]\nname = \"keeper\"\ncpus = \"6\"\n[[process.region]]\nname = \"data\"\n\
                kind = \"KIND\"\nfile = \"data\"\nsize = \"16 MiB\"\n[[process.phase]]\nduration = \"6 s\"\n\
                [[process.phase.action]]\nkind = \"sleep\"\ntime = \"5 s\"\n";
            let text = config(&format!("{}{}", both.concat(), stays.replace("KIND", kind)));
            let run = if explicit { ran_explicitly(&text) } else { ran(&text) };
            // A fault that reads maps the 16 pages around it, once per process.
            assert_eq!(faults(&run, "b"), 256, "{kind} {explicit}");
            let writes =
                text.replace("start = \"3 s\"", "start = \"3 s\"\n").replacen("think", "write = 1.0\nthink", 2);
            let run = if explicit { ran_explicitly(&writes) } else { ran(&writes) };
            // One that writes maps its own alone.
            assert_eq!(faults(&run, "b"), 4096, "{kind} {explicit}");
            assert_eq!(vmstat(&run, "nr_mapped"), if kind == "file" { 0 } else { vmstat(&run, "nr_mapped") });
        }
    }
}

#[test]
fn each_page_that_a_fault_maps_besides_its_own_takes_time() {
    let both = [reader("a", "file", "syscall", "0 s", "0", 1), reader("b", "file", "mmap", "3 s", "4", 1)];
    let took = |cost: &str| {
        let sets = [format!("machine.cost.map_around=\"{cost}\""), "kernel.sysctl.kernel.numa_balancing=0".to_string()];
        let run = ran_with(&config(&both.concat()), &sets);
        assert_eq!(faults(&run, "b"), 256);
        run.results.phases.iter().filter(|phase| phase.process == "b").map(|phase| phase.end - phase.start).sum::<u64>()
    };
    // 256 faults map 15 pages more each.
    assert_eq!(took("1 us") - took("0 ns"), 3_840_000);
}

#[test]
fn a_file_is_mapped_until_its_last_process_ends() {
    let text = config(&format!(
        "{}{}",
        reader("a", "file", "mmap", "0 s", "0", 1),
        reader("b", "file", "mmap", "1 s", "4", 200)
    ));
    let run = ran(&text);
    assert_eq!((vmstat(&run, "nr_mapped"), faults(&run, "a") >= 256), (0, true));
    // The pages follow the process that continues to use them, and their counters with them.
    for node in 0..4 {
        let of = |name: &str| run.counter("node_vmstat", &node.to_string(), name);
        assert_eq!(of("nr_mapped"), 0, "{node}");
    }
    assert!(vmstat(&run, "numa_pages_migrated") >= 4000, "{}", vmstat(&run, "numa_pages_migrated"));
}

#[test]
fn calls_on_shared_memory_map_nothing() {
    let of = |write: &str| {
        let text = config(&reader("a", "shmem", "syscall", "0 s", "0", 1).replace("think", &format!("{write}think")));
        ran(&text)
    };
    let pages = |run: &Finished| run.results.phases[0].placement[0].nodes.iter().sum::<u64>();
    let (read, written) = (of(""), of("write = 1.0\n"));
    assert_eq!((faults(&read, "a"), pages(&read)), (0, 0));
    assert_eq!((faults(&written, "a"), pages(&written)), (0, 0));
    // A read of what was never written allocates nothing.
    let allocated = |run: &Finished| vmstat(run, "pgalloc_dma32") + vmstat(run, "pgalloc_normal");
    let more = allocated(&written) - allocated(&read);
    assert!((4096..4400).contains(&more), "{more}");
}

#[test]
fn shared_memory_is_marked_accessed_when_it_is_unmapped() {
    let keeper = "[[process]]\nname = \"keeper\"\ncpus = \"6\"\n[[process.region]]\nname = \"data\"\nkind = \"shmem\"\n\
                  file = \"data\"\nsize = \"16 MiB\"\n[[process.phase]]\nduration = \"6 s\"\n[[process.phase.action]]\n\
                  kind = \"sleep\"\ntime = \"5 s\"\n";
    let one = [reader("a", "shmem", "mmap", "0 s", "0", 1), keeper.into()].concat();
    let both = [reader("b", "shmem", "mmap", "2 s", "4", 1), one.clone()].concat();
    let activated = |text: &str| vmstat(&ran(&config(text)), "pgactivate");
    let (first, second) = (activated(&one), activated(&both));
    // The first to exit makes the pages referenced, the second active.
    assert!(second - first >= 4000, "{first} {second}");
}

#[test]
fn pages_of_a_file_interleave_by_the_reads_of_a_task() {
    // Every second page of a file is read: by their places in it they would all be on one node. A policy of the mapping
    // does not count.
    let read = |policy: &str, of_region: &str| {
        let run = ran(&format!(
            "{MACHINE}[[process]]\nname = \"p\"\npolicy = \"{policy}\"\ncpus = \"0\"\n[[process.region]]\nname = \"f\"\n\
             size = \"32 MiB\"\nkind = \"file\"\n{of_region}[[process.phase]]\n[[process.phase.access]]\nregion = \"f\"\n\
             pattern = \"strided\"\nstride = \"8 KiB\"\nvia = \"syscall\"\ncount = 4096\n"
        ));
        ["0", "1"].map(|node| run.counter("numastat", node, "numa_hit"))
    };
    let [first, second] = read("interleave:all", "");
    assert!(first >= 2048 && first.abs_diff(second) <= 100, "{first} and {second}");
    let [near, far] = read("default", "policy = \"bind:1\"\n");
    assert!(near >= 4096 && far < 100, "{near} and {far}");
}

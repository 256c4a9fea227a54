//! Full memory: the victim, the kernel's traces of the kill, and that other processes continue.

use crate::common::scenario::{Finished, events, ran};
use mmtwin_event::results::Ending;

/// A machine of 256 MiB without swap, with two CPUs.
fn machine(release: &str, more: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [kernel]\nrelease = \"{release}\"\nthp = \"never\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         [run]\nevents = [\"oom:*\", \"kmem:mm_page_free\"]\n{more}"
    )
}

/// A process that populates a heap from a time on and then accesses it for two seconds.
fn heap(name: &str, megabytes: u64, start: &str, more: &str) -> String {
    format!(
        "[[process]]\nname = \"{name}\"\nstart = \"{start}\"\n{more}[[process.region]]\nname = \"heap\"\n\
         size = \"{megabytes} MiB\"\npopulate = true\n[[process.phase]]\nduration = \"2 s\"\n"
    )
}

fn killed(run: &Finished) -> (i32, &str) {
    match &run.results.ending {
        Ending::OutOfMemory { pid, comm, .. } => (*pid, comm),
        ending => panic!("{ending:?}"),
    }
}

#[test]
fn the_largest_is_killed_and_others_continue() {
    // The last one allocates when memory is full; the second is the largest.
    let text = format!(
        "{}{}{}{}",
        machine("6.1", ""),
        heap("small", 40, "0 s", ""),
        heap("large", 120, "0 s", ""),
        heap("last", 100, "1 s", "")
    );
    let run = ran(&text);
    assert_eq!(killed(&run), (1001, "large"));
    assert_eq!((run.counter("vmstat", "", "oom_kill"), events(&run, "mark_victim")), (1, 1));
    // Refusals before the kill are events by zone, until one has enough or all have too little.
    assert!(events(&run, "reclaim_retry_zone") > 0);
    let phases: Vec<(&str, &str)> =
        run.results.phases.iter().map(|phase| (phase.process.as_str(), phase.phase.as_str())).collect();
    let all = [
        ("small", "populate"),
        ("small", "0"),
        ("large", "populate"),
        ("large", "0"),
        ("last", "populate"),
        ("last", "0"),
    ];
    assert_eq!(phases, all);
    let lasted = |number: usize| run.results.phases[number].end - run.results.phases[number].start;
    assert!((lasted(1), lasted(5)) == (2_000_000_000, 2_000_000_000) && lasted(3) < 1_500_000_000);
    // Its memory was freed after that, and that of others when they ended.
    let at = run.events.iter().position(|event| event.2 == "mark_victim").unwrap();
    let after = run.events[at..].iter().filter(|event| event.2 == "mm_page_free").count();
    assert!((30_720 + 10_240 + 25_600..30_720 + 10_240 + 25_600 + 400).contains(&after), "{after}");
    assert_eq!(run.kernel.stat.events.freed, run.kernel.stat.events.allocated.iter().sum::<u64>());
}

#[test]
fn the_allocating_process_may_be_the_victim() {
    let run = ran(&format!("{}{}{}", machine("6.12", ""), heap("small", 40, "0 s", ""), heap("hog", 300, "0 s", "")));
    assert_eq!(killed(&run), (1001, "hog"));
    let hog = run.results.phases.last().unwrap();
    assert_eq!((hog.process.as_str(), hog.phase.as_str()), ("hog", "populate"));
    assert_eq!(run.counter("vmstat", "", "oom_kill"), 1);
}

#[test]
fn several_are_killed_one_after_the_other() {
    let more: String = (0..3).map(|i| heap(&format!("p{i}"), 200, &format!("{} ms", 100 * i), "")).collect();
    let run = ran(&format!("{}{more}", machine("6.1", "")));
    // Each is the largest when the next one has become as large as there is room for.
    assert_eq!(
        (killed(&run), run.counter("vmstat", "", "oom_kill"), events(&run, "mark_victim")),
        ((1000, "p0"), 2, 2)
    );
    let notes: Vec<&String> = run.results.notes.iter().filter(|note| note.contains("was killed")).collect();
    assert!(notes.len() == 1 && notes[0].contains("p1 (pid 1001)"), "{notes:?}");
}

#[test]
fn a_cgroup_at_its_limit_loses_one_of_its_own() {
    // The largest of all is outside, the largest inside is not the one that allocates.
    let text = format!(
        "{}{}{}{}",
        machine("6.1", "[[cgroup]]\nname = \"/box\"\nmemory.max = \"64 MiB\"\n"),
        heap("outside", 100, "0 s", ""),
        heap("inside", 40, "0 s", "cgroup = \"/box\"\n"),
        heap("asks", 30, "1 s", "cgroup = \"/box\"\n")
    );
    let run = ran(&text);
    assert_eq!(killed(&run), (1001, "inside"));
    let of = |name: &str| run.counter("cgroup", "/box", name);
    assert_eq!(
        (of("memory.events.oom"), of("memory.events.oom_kill"), run.counter("vmstat", "", "oom_kill")),
        (1, 1, 1)
    );
    assert_eq!(run.results.phases.iter().filter(|phase| phase.phase == "0").count(), 3);
}

#[test]
fn only_processes_bound_to_the_full_node_are_candidates() {
    let nodes = "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [[machine.node]]\ncpus = \"2-3\"\nmemory = \"128 MiB\"\n[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
         sysctl = { \"kernel.numa_balancing\" = 0 }\n[run]\nevents = [\"oom:*\"]\n";
    let text = format!(
        "{nodes}{}{}",
        heap("near", 150, "0 s", "policy = \"bind:0\"\ncpus = \"0\"\n"),
        heap("far", 140, "0 s", "policy = \"bind:1\"\ncpus = \"2\"\n")
    );
    assert_eq!(killed(&ran(&text)), (1001, "far"));
}

#[test]
fn an_old_kernel_has_no_event_of_it() {
    let machine = machine("2.6.36", "")
        .replace("sysctl = { \"kernel.numa_balancing\" = 0 }\n", "")
        .replace("\"oom:*\", \"kmem:mm_page_free\"", "\"vmscan:*\"");
    let run = ran(&format!("{machine}{}", heap("hog", 300, "0 s", "")));
    assert_eq!((killed(&run), events(&run, "mark_victim")), ((1000, "hog"), 0));
}

/// Files that fill memory and are read further while a heap that is larger than all of memory is populated.
fn files_and_heap(release: &str, swap: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0-3\"\nmemory = \"64 MiB\"\n\
         [machine.swap]\nsize = \"{swap}\"\n[kernel]\nrelease = \"{release}\"\n\
         [[process]]\nname = \"f\"\nthreads = 3\n[[process.region]]\nname = \"r\"\nsize = \"100 MiB\"\nkind = \"file\"\n\
         populate = true\n[[process.phase]]\nduration = \"4 ms\"\n\
         [[process]]\nname = \"a\"\nstart = \"20 ms\"\n[[process.region]]\nname = \"h\"\nsize = \"300 MiB\"\npopulate = true\n\
         [[process.phase]]\nduration = \"10 us\"\n"
    )
}

#[test]
fn readers_without_read_ahead_reach_an_end() {
    // Each attempt for the page itself used to begin with read-ahead again, so that no request reached its limit of
    // retries.
    for release in ["2.6.36", "3.4", "3.5", "3.13", "4.19", "6.1", "6.9", "6.12", "6.18"] {
        for swap in ["0 B", "4 MiB"] {
            let run = ran(&files_and_heap(release, swap));
            assert_eq!((killed(&run).1, run.halted.as_ref()), ("a", None), "{release}, {swap} of swap");
        }
    }
}

#[test]
fn a_wait_for_an_index_of_2012_ends() {
    // Blocks of the page cache's index are allocated in two sizes; there is one CPU, which only a task that frees
    // memory may yield.
    let text = "[machine]\nname = \"m\"\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0\"\nmemory = \"4 MiB\"\n\
                [machine.swap]\nsize = \"1 MiB\"\nsynchronous = true\n[kernel]\nrelease = \"3.4\"\n\
                sysctl = { \"vm.dirty_ratio\" = 0 }\n\
                [[process]]\nname = \"p\"\nthreads = 2\npin = true\n[[process.region]]\nname = \"a\"\nsize = \"195 MiB\"\n\
                populate = true\n[[process.region]]\nname = \"b\"\nsize = \"29 MiB\"\npopulate = true\nlocked = true\n\
                [[process.phase]]\nduration = \"4 ms\"\n[run]\nduration = \"2 s\"\n";
    let run = ran(text);
    assert_eq!((killed(&run).1, run.halted.as_ref()), ("p", None));
}

#[test]
fn no_process_is_killed_for_a_huge_page_of_a_small_cgroup() {
    let text = format!(
        "{}[[process]]\nname = \"p\"\ncgroup = \"/box\"\n[[process.region]]\nname = \"h\"\nsize = \"2 MiB\"\nhuge = \"madvise\"\n\
         [[process.phase]]\n[[process.phase.access]]\nregion = \"h\"\npattern = \"sequential\"\nwrite = 1.0\ncount = 100\n",
        machine("6.1", "[[cgroup]]\nname = \"/box\"\nmemory.max = \"1 MiB\"\n").replace("thp = \"never\"\n", "")
    );
    let run = ran(&text);
    assert_eq!((&run.results.ending, run.counter("vmstat", "", "oom_kill")), (&Ending::Completed, 0));
    assert!(run.kernel.stat.events.thp_fault_fallback >= 1 && run.kernel.stat.events.thp_fault_alloc == 0);
}

/// A heap larger than memory at `vm.swappiness = 0`, on the lab's machine with one node.
fn unswappy(thp: &str) -> Finished {
    ran(&format!(
        "[machine]\npreset = \"lab-4n\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"512 MiB\"\n\
         [machine.swap]\nsize = \"512 MiB\"\nsynchronous = true\nlatency = \"0 ns\"\nbandwidth = \"1 GB/s\"\n\
         [kernel]\nrelease = \"6.1\"\n{thp}[kernel.sysctl]\n\"kernel.numa_balancing\" = 0\n\"vm.swappiness\" = 0\n\
         [[process]]\nname = \"a\"\ncpus = \"0\"\n[[process.region]]\nname = \"h\"\nsize = \"576 MiB\"\n[[process.phase]]\n\
         [[process.phase.access]]\nregion = \"h\"\npattern = \"sequential\"\nwrite = 1.0\ncount = 147456\n\
         [run]\ncounters = [\"*\"]\n"
    ))
}

#[test]
fn at_swappiness_0_the_marks_decide_between_swap_and_a_kill() {
    // Anonymous memory is scanned only when files and free pages are no more than the high marks. With huge pages on
    // these are 8,901 pages: a guest with kernel 6.1 swapped 60,217 pages in a run of this and a second phase, and
    // killed no process.
    let run = unswappy("");
    assert_eq!((&run.results.ending, run.counter("vmstat", "", "oom_kill")), (&Ending::Completed, 0));
    assert!(run.counter("vmstat", "", "pswpout") > 20_000);
    // Without they are about 1,000, less than the reserve of zone DMA keeps free for others: the guest killed the heap with
    // 424,832 KiB of it in memory and most of swap free, and so did 6.12.
    let run = unswappy("thp = \"never\"\n");
    assert_eq!((killed(&run).1, run.counter("vmstat", "", "oom_kill")), ("a", 1));
}

/// NUMA balancing needs the pages of a process's own program, its image, before the process starts.
#[test]
fn a_limit_below_the_image_kills_when_the_workload_allocates() {
    let nodes = "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [[machine.node]]\ncpus = \"2-3\"\nmemory = \"128 MiB\"\n[kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
         sysctl = { \"kernel.numa_balancing\" = 1 }\n[run]\nevents = [\"oom:*\"]\n\
         [[cgroup]]\nname = \"/box\"\nmemory.max = \"64 KiB\"\n";
    let text = format!("{nodes}{}{}", heap("boxed", 40, "0 s", "cgroup = \"/box\"\n"), heap("free", 40, "0 s", ""));
    let run = ran(&text);
    assert_eq!(killed(&run), (1000, "boxed"));
    assert_eq!(run.counter("cgroup", "/box", "memory.events.oom_kill"), 1);
    let free = run.results.phases.last().unwrap();
    assert_eq!((free.process.as_str(), free.end - free.start), ("free", 2_000_000_000));
}

//! Memory that is freed while the workload runs: `madvise`, `munmap`, limits of cgroups, `memory.reclaim`.

use crate::common::scenario::{Finished, count, ran, ran_explicitly};
use mmtwin_event::results::Ending;

/// A machine of 256 MiB with two CPUs, swap that is memory, and a cgroup.
fn machine(more: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [machine.disk]\nbandwidth = \"1 GB/s\"\n\
         [machine.swap]\nsize = \"512 MiB\"\nsynchronous = true\nlatency = \"0 ns\"\nbandwidth = \"10 GB/s\"\n\
         [kernel]\nrelease = \"6.1\"\nthp = \"never\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         [run]\nevents = [\"vmscan:*\"]\n[[cgroup]]\nname = \"/a\"\n{more}"
    )
}

/// A process that populates 64 MiB of memory, does an action, and then the rest.
fn heap(action: &str, rest: &str) -> String {
    format!(
        "[[process]]\nname = \"heap\"\ncgroup = \"/a\"\ncpus = \"0\"\n[[process.region]]\nname = \"heap\"\nsize = \"64 MiB\"\n\
         populate = true\n[[process.phase]]\n[[process.phase.action]]\n{action}\n{rest}"
    )
}

const MADVISE: &str = "kind = \"madvise\"\nregion = \"heap\"\n";

/// A phase that accesses the first so many pages of the heap.
fn touch(pages: u64, write: f64) -> String {
    format!(
        "[[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\nthink = \"1 us\"\n\
         write = {write:?}\ncount = {pages}\n"
    )
}

/// A phase without work.
const WAIT: &str = "[[process.phase]]\nduration = \"50 ms\"\n";

/// Pages of the process's heap at the end of each phase.
fn pages(run: &Finished) -> Vec<u64> {
    let phases = run.results.phases.iter().filter(|phase| phase.process == "heap");
    phases.map(|phase| phase.placement[0].nodes.iter().sum()).collect()
}

#[test]
fn dontneed_and_munmap_free_at_once() {
    for call in [format!("{MADVISE}advice = \"dontneed\""), "kind = \"munmap\"\nregion = \"heap\"".into()] {
        let text = format!("{}{}", machine(""), heap(&format!("{call}\nfrom = 0.25\nto = 0.5"), &touch(16_384, 1.0)));
        for run in [ran(&text), ran_explicitly(&text)] {
            assert_eq!((run.results.ending.clone(), pages(&run)), (Ending::Completed, vec![16_384, 12_288, 16_384]));
            assert_eq!(count(&run, "pgfault"), 16_384 + 4_096, "each page that was freed faults again");
            let action = &run.results.phases[1].actions[0];
            assert_eq!((action.operations, action.failures), (1, 0));
            assert!(action.detail.contains("25 % to 50 %"), "{}", action.detail);
        }
    }
}

#[test]
fn calls_repeat_at_their_interval_beside_accesses() {
    let action = format!("{MADVISE}advice = \"dontneed\"\nthreads = \"1\"\ncount = 5\ninterval = \"20 ms\"");
    let access = "[[process.phase.access]]\nregion = \"heap\"\nthreads = \"0\"\npattern = \"uniform\"\nthink = \"500 ns\"\n\
                  write = 1.0\ncount = 300000\n";
    let text =
        format!("{}{}", machine(""), heap(&action, access)).replace("cpus = \"0\"", "cpus = \"0-1\"\nthreads = 2");
    let [sampled, single] = [ran(&text), ran_explicitly(&text)];
    for run in [&sampled, &single] {
        let action = &run.results.phases[1].actions[0];
        assert_eq!(action.operations, 5);
        assert!(action.time < 40_000_000, "pauses are no part of the calls: {}", action.time);
    }
    let [sampled, single] = [sampled, single].map(|run| count(&run, "pgfault") as f64);
    assert!(single > 60_000.0 && (sampled / single - 1.0).abs() < 0.05, "{sampled} {single}");
}

#[test]
fn memory_given_up_is_freed_before_anything_is_swapped() {
    let limit = machine("memory.max = \"72 MiB\"\n");
    let reader = "[[process]]\nname = \"reader\"\nstart = \"200 ms\"\ncgroup = \"/a\"\ncpus = \"1\"\n[[process.region]]\n\
                  name = \"file\"\nsize = \"128 MiB\"\nkind = \"file\"\n[[process.phase]]\n[[process.phase.access]]\n\
                  region = \"file\"\npattern = \"sequential\"\nvia = \"syscall\"\nthink = \"1 us\"\ncount = 32768\n";
    let run = |rest: &str| {
        let free = format!("{MADVISE}advice = \"free\"");
        let wait = "[[process.phase]]\nduration = \"1 s\"\n";
        let text = format!("{limit}{}{reader}", heap(&free, &format!("{rest}{wait}")));
        [ran(&text), ran_explicitly(&text)]
    };
    for run in run("") {
        assert_eq!((count(&run, "pglazyfree"), count(&run, "pswpout")), (16_384, 0));
        let freed = count(&run, "pglazyfreed");
        assert!(freed > 14_000 && pages(&run).last() == Some(&(16_384 - freed)), "{freed} {:?}", pages(&run));
    }
    // Pages that were read may still be freed, pages that were written are anonymous memory again: also those that were
    // written in a phase before reclaim looks, in any order.
    let uniform = touch(40_000, 1.0).replace("sequential", "uniform");
    for run in run(&uniform) {
        // Of 16,384 pages 40,000 accesses miss a share of exp(-2.44).
        let freed = count(&run, "pglazyfreed");
        assert!((1_200..1_600).contains(&freed), "uniform: {freed}");
    }
    for (write, least, most) in [(0.0, 12_000, 16_384), (1.0, 7_000, 8_192)] {
        for run in run(&touch(8_192, write)) {
            let freed = count(&run, "pglazyfreed");
            assert!((least..=most).contains(&freed), "write {write}: {freed}");
        }
    }
}

#[test]
fn a_limit_that_is_lowered_is_reclaimed_to() {
    let limit = |file: &str| format!("kind = \"cgroup-limit\"\nname = \"/a\"\nlimit = \"{file}\"\nsize = \"32 MiB\"");
    for file in ["memory.max", "memory.high"] {
        let run = ran(&format!("{}{}", machine(""), heap(&limit(file), WAIT)));
        assert_eq!(run.results.ending, Ending::Completed);
        let last = pages(&run).pop();
        assert!(last.is_some_and(|pages| (6_000..=8_192).contains(&pages)), "{file}: {last:?}");
        assert!(count(&run, "pswpout") >= 8_192, "{file}: {}", count(&run, "pswpout"));
        assert_eq!(run.counter("cgroup", "/a", "memory.events.high"), 0, "{file}: the writer is no task above it");
    }
    let run = ran(&format!("{}{}", machine("memory.swap.max = \"0 B\"\n"), heap(&limit("memory.max"), WAIT)));
    assert!(matches!(run.results.ending, Ending::OutOfMemory { .. }), "{:?}", run.results.ending);
    assert_eq!(run.counter("cgroup", "/a", "memory.events.oom_kill"), 1);
    let run = ran(&format!("{}{}", machine("memory.swap.max = \"0 B\"\n"), heap(&limit("memory.high"), WAIT)));
    assert_eq!((run.results.ending.clone(), pages(&run).pop()), (Ending::Completed, Some(16_384)));
}

#[test]
fn a_limit_that_is_raised_ends_reclaim() {
    let raise = "kind = \"cgroup-limit\"\nname = \"/a\"\nlimit = \"memory.max\"";
    let small = machine("memory.max = \"32 MiB\"\n");
    let run = |action: &str| ran(&format!("{small}{}", heap(action, &touch(16_384, 1.0))));
    let [raised, kept] = [run(raise), run(&format!("{raise}\nsize = \"32 MiB\""))];
    assert_eq!(pages(&raised).last(), Some(&16_384));
    assert!(count(&kept, "pswpin") > count(&raised, "pswpin"), "the walk swaps out what it needs next");
}

#[test]
fn memory_reclaim_takes_an_amount_or_what_there_is() {
    let reclaim = "kind = \"memory-reclaim\"\nname = \"/a\"\nsize = \"16 MiB\"";
    let run = ran(&format!("{}{}", machine(""), heap(reclaim, WAIT)));
    let out = count(&run, "pswpout");
    assert!((4_096..4_200).contains(&out), "{out}");
    let action = &run.results.phases[1].actions[0];
    assert_eq!((action.kind.as_str(), action.operations, action.failures), ("memory-reclaim", 1, 0));
    let run = ran(&format!("{}{}", machine("memory.swap.max = \"0 B\"\n"), heap(reclaim, WAIT)));
    let action = &run.results.phases[1].actions[0];
    assert_eq!((count(&run, "pswpout"), action.operations, action.failures), (0, 0, 1), "EAGAIN");
}

#[test]
fn swappiness_can_change_amid_a_run() {
    let admin = |value: &str| {
        format!(
            "[[process]]\nname = \"admin\"\nstart = \"100 ms\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"sysctl\"\n\
             name = \"vm.swappiness\"\nvalue = {value}\n"
        )
    };
    let reader = "[[process]]\nname = \"reader\"\nstart = \"200 ms\"\ncgroup = \"/a\"\ncpus = \"1\"\n[[process.region]]\n\
                  name = \"file\"\nsize = \"64 MiB\"\nkind = \"file\"\n[[process.phase]]\n[[process.phase.access]]\n\
                  region = \"file\"\npattern = \"uniform\"\nvia = \"syscall\"\nthink = \"1 us\"\ncount = 60000\n";
    let wait = "[[process.phase]]\nduration = \"2 s\"\n";
    let idle = "kind = \"sleep\"\ntime = \"1 ms\"";
    let run = |value: &str| {
        let limit = machine("memory.max = \"96 MiB\"\n");
        count(&ran(&format!("{limit}{}{}{reader}", heap(idle, wait), admin(value))), "pswpout")
    };
    let [never, always] = [run("0"), run("200")];
    assert!(never == 0 && always > 4_000, "{never} {always}");
}

//! Memory that is full: who is killed, what the kernel leaves of it, and that others go on.

mod common;

use common::scenario::{Finished, events, ran};
use mmtwin_event::results::Ending;

/// A machine of 256 MiB without swap, with two CPUs.
fn machine(release: &str, more: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [kernel]\nrelease = \"{release}\"\nthp = \"never\"\nsysctl = {{ \"kernel.numa_balancing\" = 0 }}\n\
         [run]\nevents = [\"oom:*\", \"kmem:mm_page_free\"]\n{more}"
    )
}

/// A process that populates a heap from a time on and then touches it for two seconds.
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
fn the_largest_is_killed_and_others_go_on() {
    // The last one asks when memory is full; the second is the largest.
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
    // What was refused before is said by zone, until one has enough or all have too little.
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
    // Its memory came back after that, and what others had when they ended.
    let at = run.events.iter().position(|event| event.2 == "mark_victim").unwrap();
    let after = run.events[at..].iter().filter(|event| event.2 == "mm_page_free").count();
    assert!((30_720 + 10_240 + 25_600..30_720 + 10_240 + 25_600 + 400).contains(&after), "{after}");
    assert_eq!(run.kernel.stat.events.freed, run.kernel.stat.events.allocated.iter().sum::<u64>());
}

#[test]
fn whoever_asks_may_be_the_one() {
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
    // The largest of all is outside, the largest inside is not the one that asks.
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
fn only_those_bound_to_the_full_node_are_asked() {
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

//! Access traces: replayed access by access, through the same faults and lists as every access.

use crate::common::scenario::{Finished, ran_explicitly, replayed};
use mmtwin_event::results::Ending;
use mmtwin_scenario::program;
use mmtwin_twin::workload::trace::{Trace, TraceError};
use std::path::Path;

/// One CPU with less memory than is accessed, and swap that is memory.
const SMALL: &str = "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"\n\
    [machine.swap]\nsize = \"1 GiB\"\nsynchronous = true\nlatency = \"0 ns\"\nbandwidth = \"10 GB/s\"\n\
    [kernel]\nrelease = \"6.1\"\nthp = \"never\"\nsysctl = { \"kernel.numa_balancing\" = 0 }\n\
    [run]\nsample = \"0 s\"\nevents = [\"vmscan:*\", \"kmem:mm_page_alloc\"]\n\
    [[process]]\nname = \"one\"\npin = true\n\
    [[process.region]]\nname = \"heap\"\nsize = \"330 MiB\"\n\
    [[process.region]]\nname = \"file\"\nsize = \"100 MiB\"\nkind = \"file\"\n";

fn counters(run: &Finished) -> Vec<u64> {
    ["pgfault", "pgmajfault", "pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file", "pswpin", "pswpout"]
        .iter()
        .chain(&["pgactivate", "pgdeactivate", "workingset_refault_anon", "workingset_refault_file", "pgpgin"])
        .map(|name| run.counter("vmstat", "", name))
        .collect()
}

#[test]
fn a_trace_equals_the_same_accesses() {
    let of = |region: &str, rest: &str| {
        format!("[[process.phase.access]]\nregion = \"{region}\"\nthink = \"0 s\"\n{rest}\n")
    };
    let heap = of("heap", "pattern = \"uniform\"\nwrite = 0.7\ncount = 400000");
    let file = of("file", "pattern = \"sequential\"\ncount = 40000");
    let config = format!("{SMALL}[[process.phase]]\n{heap}{file}");
    let explicit = ran_explicitly(&config);

    let scenario = mmtwin_scenario::parse("test", &config, Path::new(""), &[]).unwrap();
    let threads = program::threads(&scenario.processes[0], 0, 1, scenario.run.seed);
    let phase = &threads[0].phases[0];
    let touches = program::PhaseAccesses::new(phase).map(|touch| {
        let first = if phase.accesses[touch.access].region == 0 { 0 } else { 330 << 8 };
        (0, 1000, first + touch.what.page, touch.what.write)
    });
    let run = replayed(SMALL, touches);
    assert_eq!(counters(&run), counters(&explicit));
    assert!(run.counter("vmstat", "", "pswpin") > 1000, "memory was short: {:?}", counters(&run));
    assert_eq!(run.events, explicit.events, "to the nanosecond");
    let touched = |run: &Finished| -> Vec<(u64, u64)> {
        run.results.phases[0].accesses.iter().map(|access| (access.touches, access.faults)).collect()
    };
    assert_eq!(touched(&run), touched(&explicit));
    let note = "access trace: 440000 of 440000 accesses were made, at most ";
    assert!(run.results.notes.iter().any(|config| config.starts_with(note)), "{:?}", run.results.notes);
}

#[test]
fn accesses_are_made_at_their_times() {
    let config = SMALL.replace("pin = true", "threads = 2\npin = true").replace("\"0\"", "\"0-1\"");
    let touches = [(0, 1000, 0), (70_000, 1001, 1), (90_000, 1000, 2), (100_000_000, 1001, 3), (100_000_100, 1000, 4)];
    let run = replayed(&config, touches.map(|(at, pid, page)| (at, pid, page, true)));
    let allocated = run.events.iter().filter(|event| event.2 == "mm_page_alloc");
    // Page tables are allocated too, just before the first page.
    let found: Vec<(u64, u32)> = allocated.map(|event| (event.0, event.1)).collect();
    for (at, pid, page) in touches {
        let cpu = (pid - 1000) as u32;
        assert!(
            found.iter().any(|event| (at..at + 5000).contains(&event.0) && event.1 == cpu),
            "page {page}: {found:?}"
        );
    }
    assert!(found.iter().all(|event| touches.iter().any(|touch| (touch.0..touch.0 + 5000).contains(&event.0))));
}

#[test]
fn a_run_that_ends_before_its_trace_has_a_note() {
    let config = SMALL.replace("[run]\n", "[run]\nduration = \"1 s\"\n");
    let run = replayed(&config, [(0, 1000, 0, true), (900_000_000, 1000, 1, true), (1_100_000_000, 1000, 2, true)]);
    assert_eq!(run.results.ending, Ending::TimeUp);
    let note = "access trace: 2 of 3 accesses were made";
    assert!(run.results.notes.iter().any(|config| config.starts_with(note)), "{:?}", run.results.notes);
}

#[test]
fn keys_absent_from_a_scenario_are_refused() {
    let busy = "[[process]]\nname = \"two\"\n[[process.region]]\nname = \"heap\"\nsize = \"4 KiB\"\n\
                [[process.phase]]\nduration = \"1 s\"\n";
    let text = format!("{SMALL}{busy}");
    let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap();
    let mut trace = Trace::new(&scenario);
    assert_eq!(trace.add(0, 1000, 110_079, true), Ok(()));
    let (process, pages) = ("one".to_string(), 110_080);
    assert_eq!(trace.add(0, 1000, 110_080, true), Err(TraceError::Page { pid: 1000, process, page: 110_080, pages }));
    assert_eq!(trace.add(0, 999, 0, true), Err(TraceError::Pid { pid: 999, last: 1001 }));
    assert_eq!(trace.add(0, 1002, 0, true), Err(TraceError::Pid { pid: 1002, last: 1001 }));
    assert_eq!(trace.add(0, 1001, 0, true), Err(TraceError::Busy { pid: 1001, process: "two".into() }));
}

//! A kernel that a run is said to be of as well has that run: the same events, counters and results.

use crate::common::scenario::{access, region};
use crate::patches::{FAST, full};
use mmtwin_event::NullSink;
use mmtwin_scenario::Scenario;
use mmtwin_twin::engine::{Options, State, kinds, run_beside};
use mmtwin_twin::time::determinism::Hashing;
use std::path::Path;

/// Digest of all events and counters, how many there were, results.
type Digest = (u64, u64, String);

fn beside(scenario: &Scenario, rivals: &[&Scenario]) -> (Digest, Vec<bool>) {
    let mut sink = NullSink;
    let mut hashing = Hashing::new(&mut sink, None);
    let events = kinds(scenario);
    let options = Options { state: State::default(), explicit: false, trace: None, events, progress: &mut |_| {} };
    let (ran, alike) = run_beside(scenario, rivals, options, &mut hashing).unwrap_or_else(|error| panic!("{error}"));
    let digest = hashing.finish().unwrap_or_else(|difference| panic!("{difference}"));
    ((digest.last, digest.count, format!("{:?}", ran.results)), alike)
}

/// Runs the first release beside the others, and each of these by itself; which had the run of the first.
fn alike(releases: &[&str], text: impl Fn(&str) -> String) -> Vec<bool> {
    let scenario = |release: &&str| {
        mmtwin_scenario::parse("test", &text(release), Path::new(""), &[]).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let scenarios: Vec<Scenario> = releases.iter().map(scenario).collect();
    let others: Vec<&Scenario> = scenarios[1..].iter().collect();
    let (first, alike) = beside(&scenarios[0], &others);
    for ((other, release), &alike) in others.iter().zip(&releases[1..]).zip(&alike) {
        let (own, none) = beside(other, &[]);
        assert!(!alike || own == first, "{release} has another run than {}", releases[0]);
        assert!(none.is_empty());
    }
    alike
}

const OF_2010: [&str; 3] = ["2.6.36", "2.6.36-lowlumpy", "2.6.36-waitcongest"];

/// A mapped file that is larger than memory; no blocks are requested.
fn stream(release: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"128 MiB\"\n\
         [kernel]\nrelease = \"{release}\"\n[run]\nevents = [\"vmscan:*\", \"writeback:*\"]\n\
         [[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
        region("file", 256, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"mmap\"\ncount = 65536")
    )
}

#[test]
fn kernels_that_differ_for_blocks_only_have_one_run_without_blocks() {
    assert_eq!(alike(&OF_2010, stream), [true; 2]);
    assert_eq!(alike(&["3.4", "3.4-lumpyremove"], stream), [true]);
    // Other events.
    assert_eq!(alike(&["3.4", "3.5", "3.3"], stream), [false; 2]);
}

#[test]
fn kernels_that_reclaim_for_blocks_otherwise_have_others() {
    let blocks = |release: &str| full(release, "", FAST);
    assert_eq!(alike(&OF_2010, blocks), [false; 2]);
    let insisting = |release: &str| blocks(release).replace("count = 40", "count = 40\ngfp_retry_mayfail = true");
    assert_eq!(alike(&OF_2010[1..], insisting), [false]);
    // Nobody is refused by a device that is never congested.
    let swapping = |disks| {
        move |release: &str| {
            full(release, "[kernel.sysctl]\n\"vm.swappiness\" = 100\n", disks)
                .replace("size = \"64 MiB\"", "size = \"200 MiB\"")
        }
    };
    assert_eq!(alike(&["3.4", "3.4-lumpyremove"], swapping(["40 MB/s", "2 MB/s"])), [false]);
    assert_eq!(alike(&["3.4", "3.4-lumpyremove"], swapping(["40 GB/s", "40 GB/s"])), [true]);
}

//! A disk that seeks, with swap on it or not, in whole runs.

mod common;

use common::scenario::{Finished, access, count, ran, refused, region};

/// A machine of 128 MiB and disks of 40 MB/s.
fn machine(release: &str, disk: &str, swap: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"128 MiB\"\n\
         [machine.disk]\nlatency = \"0 ns\"\nbandwidth = \"40 MB/s\"\n{disk}\n\
         [machine.swap]\nsize = \"1 GiB\"\nlatency = \"0 ns\"\nbandwidth = \"40 MB/s\"\n{swap}\n\
         [kernel]\nrelease = \"{release}\"\nthp = \"never\"\n"
    )
}

/// A heap that does not fit is filled twice, and beside it a file is read.
fn run(release: &str, disk: &str, swap: &str) -> Finished {
    let run = ran(&format!(
        "{}[[process]]\nname = \"heap\"\n{}[[process.phase]]\n{}[[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
        machine(release, disk, swap),
        region("heap", 160, "anon"),
        access("heap", "pattern = \"sequential\"\nwrite = 1\nthink = \"20 us\"\ncount = 81920"),
        region("file", 64, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 16384"),
    ));
    assert!(count(&run, "pswpout") > 10_000 && count(&run, "pswpin") > 1_000);
    run
}

/// Seconds that all transfers take one disk at its bandwidth, and those of the run.
fn seconds(run: &Finished) -> (f64, f64) {
    let kib = count(run, "pgpgin") + count(run, "pgpgout");
    let end = run.results.phases.iter().map(|phase| phase.end).max().unwrap();
    (kib as f64 * 1024.0 / 40e6, end as f64 / 1e9)
}

#[test]
fn one_disk_does_one_thing_at_a_time() {
    for release in ["2.6.36", "3.5", "6.1"] {
        let (busy, lasted) = seconds(&run(release, "seek = \"4 ms\"", "on_disk = true"));
        assert!(lasted > busy, "{release}: {busy} s of {lasted} s");
        let (_, of_two) = seconds(&run(release, "seek = \"4 ms\"", "on_disk = false"));
        assert!(of_two < lasted, "{release}: {of_two} s with two disks, {lasted} s with one");
    }
}

#[test]
fn what_lies_together_is_written_together() {
    // Nothing is read, so seeks are few.
    let written = |seek: &str| {
        let run = ran(&format!(
            "{}[[process]]\nname = \"heap\"\n{}[[process.phase]]\n{}",
            machine("6.1", seek, "on_disk = true"),
            region("heap", 200, "anon"),
            access("heap", "pattern = \"sequential\"\nwrite = 1\ncount = 51200"),
        ));
        assert_eq!(count(&run, "pswpin"), 0);
        (count(&run, "pswpout"), seconds(&run).1)
    };
    let ((pages, without), (others, with)) = (written("seek = \"1 us\""), written("seek = \"8 ms\""));
    assert!(pages > 15_000 && others > 15_000);
    // A seek for every cluster of 256 pages at most: 8 ms for 26.
    assert!((1.0..1.4).contains(&(with / without)), "{with} s, {without} s without seeks");
}

#[test]
fn swap_on_the_disk_is_not_memory() {
    let text = machine("6.1", "", "on_disk = true\nsynchronous = true");
    let faults = refused(&format!("{text}[[process]]\nname = \"p\"\n[[process.phase]]\nduration = \"1 s\"\n"));
    assert!(faults.contains("on_disk = true") && faults.contains("swap on the disk is not `synchronous`"), "{faults}");
}

//! A disk that seeks, with swap on it or not, in whole runs.

use crate::common::scenario::{Finished, access, count, ran, refused, region};

/// A machine of 128 MiB and disks of 40 MB/s. Older kernels than 6.1 sleep while no queue is congested, so two disks can be
/// slower than one.
fn machine(seek: &str, swap: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"128 MiB\"\n\
         [machine.disk]\nlatency = \"0 ns\"\nbandwidth = \"40 MB/s\"\nseek = \"{seek}\"\n\
         [machine.swap]\nsize = \"1 GiB\"\nlatency = \"0 ns\"\nbandwidth = \"40 MB/s\"\n{swap}\n\
         [kernel]\nrelease = \"6.1\"\nthp = \"never\"\n"
    )
}

/// A heap that does not fit is filled and begun again, and beside it a file is read.
fn run(swap: &str) -> Finished {
    let run = ran(&format!(
        "{}[[process]]\nname = \"heap\"\n{}[[process.phase]]\n{}[[process]]\nname = \"reader\"\n{}[[process.phase]]\n{}",
        machine("4 ms", swap),
        region("heap", 160, "anon"),
        access("heap", "pattern = \"sequential\"\nwrite = 1\nthink = \"20 us\"\ncount = 56320"),
        region("file", 64, "file"),
        access("file", "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 16384"),
    ));
    assert!(count(&run, "pswpout") > 5_000 && count(&run, "pswpin") > 1_000);
    run
}

/// Seconds until the last process has ended.
fn seconds(run: &Finished) -> f64 {
    run.results.phases.iter().map(|phase| phase.end).max().unwrap() as f64 / 1e9
}

#[test]
fn one_disk_does_one_thing_at_a_time() {
    let lasted = |swap| seconds(&run(swap));
    let (one, two) = (lasted("on_disk = true"), lasted("on_disk = false"));
    assert!(one > 1.05 * two, "{one} s with one disk, {two} s with two");
}

#[test]
fn adjacent_pages_are_written_together() {
    // Nothing is read, so seeks are few.
    let written = |seek: &str| {
        let run = ran(&format!(
            "{}[[process]]\nname = \"heap\"\n{}[[process.phase]]\n{}",
            machine(seek, "on_disk = true"),
            region("heap", 200, "anon"),
            access("heap", "pattern = \"sequential\"\nwrite = 1\ncount = 51200"),
        ));
        assert_eq!(count(&run, "pswpin"), 0);
        (count(&run, "pswpout"), seconds(&run))
    };
    let ((pages, without), (others, with)) = (written("1 us"), written("8 ms"));
    assert!(pages > 15_000 && others > 15_000);
    // A seek for every cluster of 256 pages at most: 8 ms for 26.
    assert!((0.99..1.4).contains(&(with / without)), "{with} s, {without} s without seeks");
}

#[test]
fn swap_on_the_disk_is_not_memory() {
    let text = machine("0 ns", "on_disk = true\nsynchronous = true");
    let faults = refused(&format!("{text}[[process]]\nname = \"p\"\n[[process.phase]]\nduration = \"1 s\"\n"));
    assert!(faults.contains("on_disk = true") && faults.contains("swap on the disk is not `synchronous`"), "{faults}");
}

//! What work takes in the lab's guest (mode exact, kernels 6.1 and 6.12): figures of real kernels, measured on 29 November
//! 2026 with these scenarios (docs/model/notebook.md, "Turns of one clock", "Kinds of work, one after another").

use crate::common::scenario::{Finished, ran};

const GUEST: &str = "[machine]\npreset = \"PRESET\"\ndistance = [[10]]\ndisk.latency = \"500 us\"\n\
    [[machine.node]]\ncpus = \"0-3\"\nmemory = \"768 MiB\"\n\
    [kernel]\nrelease = \"6.1\"\nthp = \"never\"\n\
    [kernel.sysctl]\n\"kernel.numa_balancing\" = 0\n\"vm.min_free_kbytes\" = 2432\n\
    [run]\nsample = \"20 s\"\ncounters = [\"pg*\"]\n";

/// Computes on CPU 1.
const COMPUTES: &str = "[[process]]\nname = \"w\"\ncpus = \"1\"\n\
    [[process.region]]\nname = \"h\"\nsize = \"1 MiB\"\npopulate = true\n\
    [[process.phase]]\nduration = \"2 s\"\n\
    [[process.phase.access]]\nregion = \"h\"\npattern = \"uniform\"\nthink = \"20 us\"\n";

fn guest(release: &str) -> String {
    let preset = if release == "6.1" { "lab-4n" } else { "lab-4n-6.12" };
    GUEST.replace("PRESET", preset).replace("\"6.1\"", &format!("\"{release}\""))
}

/// Sleeps, or reads pages of a disk, on a CPU.
fn waits(cpu: u32, reads: bool) -> String {
    let (region, access) = match reads {
        true => ("size = \"64 MiB\"\nkind = \"file\"", "via = \"syscall\""),
        false => ("size = \"1 MiB\"\npopulate = true", "sleep = \"200 us\""),
    };
    format!(
        "[[process]]\nname = \"s{cpu}\"\ncpus = \"{cpu}\"\n[[process.region]]\nname = \"r\"\n{region}\n\
         [[process.phase]]\nduration = \"3 s\"\n\
         [[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\n{access}\n"
    )
}

/// Accesses a second of a process.
fn rate(run: &Finished, process: &str) -> f64 {
    let phase = run.results.phases.iter().find(|phase| phase.process == process && phase.phase != "populate");
    let phase = phase.expect("a phase");
    phase.accesses[0].touches as f64 / (phase.end - phase.start) as f64 * 1e9
}

fn assert_near(what: &str, twin: f64, kernel: f64, tolerance: f64) {
    assert!((twin / kernel - 1.0).abs() < tolerance, "{what}: {twin}, kernel {kernel}");
}

#[test]
fn a_cpu_that_wakes_waits_for_the_turns_of_others() {
    // Release, what waits on which CPUs, and accesses a second of the one that computes and the first that waits.
    let cases = [
        ("6.1", false, &[2][..], 42_876.0, 2_541.0),
        ("6.1", false, &[0], 41_065.0, 2_966.0),
        ("6.1", false, &[2, 3], 31_173.0, 3_129.0),
        ("6.1", true, &[2], 40_330.0, 1_536.0),
        ("6.1", true, &[0], 39_238.0, 1_680.0),
        ("6.12", false, &[2], 42_156.0, 2_544.0),
        ("6.12", true, &[0], 38_262.0, 1_644.0),
    ];
    for (release, reads, cpus, computes, first) in cases {
        let waits: String = cpus.iter().map(|&cpu| waits(cpu, reads)).collect();
        let run = ran(&format!("{}{COMPUTES}{waits}", guest(release)));
        let what = format!("{release}, reads {reads}, CPUs {cpus:?}");
        assert_near(&what, rate(&run, "w"), computes, 0.03);
        assert_near(&what, rate(&run, &format!("s{}", cpus[0])), first, 0.05);
    }
}

#[test]
fn kinds_of_work_take_as_long_as_in_the_guest() {
    let access = |region: &str, rest: &str, count: u32| {
        format!("[[process.phase]]\n[[process.phase.access]]\nregion = \"{region}\"\n{rest}\ncount = {count}\n")
    };
    let (order, random, write) = ("pattern = \"sequential\"", "pattern = \"uniform\"", "\nwrite = 1.0");
    let call = "\nvia = \"syscall\"";
    let phases = [
        access("f1", &format!("{order}{call}"), 20_480),
        access("f1", order, 20_480),
        access("f2", random, 4_000),
        access("f3", order, 20_480),
        access("heap", order, 8_192),
        access("heap", &format!("{order}{write}"), 8_192),
        access("log", &format!("{order}{call}{write}"), 8_192),
        access("log", &format!("{order}{write}"), 8_192),
    ];
    // Seconds of each on the kernel; not compared: the first writes by calls.
    let kernels = [
        ("6.1", [0.980, 0.145, 0.752, 0.773, 0.101, 0.308, 0.0, 0.265]),
        ("6.12", [1.185, 0.142, 0.934, 0.965, 0.119, 0.333, 0.0, 0.277]),
    ];
    let region = |name: &str, size: u32, kind: &str| {
        format!("[[process.region]]\nname = \"{name}\"\nsize = \"{size} MiB\"\nkind = \"{kind}\"\n")
    };
    let regions =
        [("f1", 80, "file"), ("f2", 80, "file"), ("f3", 80, "file"), ("heap", 32, "anon"), ("log", 32, "file")];
    let regions = regions.map(|(name, size, kind)| region(name, size, kind)).concat();
    for (release, kernel) in kernels {
        let guest = guest(release).replace("disk.latency = \"500 us\"\n", "");
        let run = ran(&format!("{guest}[[process]]\nname = \"q\"\n{regions}{}", phases.concat()));
        for (number, (phase, kernel)) in
            run.results.phases.iter().zip(kernel).enumerate().filter(|(_, (_, at))| *at > 0.0)
        {
            let seconds = (phase.end - phase.start) as f64 / 1e9;
            assert_near(&format!("{release}, phase {number}"), seconds, kernel, 0.03);
        }
    }
}

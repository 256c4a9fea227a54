//! What work takes in the lab's guest (mode exact, kernels 6.1, 6.12 and 7.3): figures of real kernels, measured on 29 and
//! 30 November 2026 with these scenarios (docs/model/notebook.md, "Turns of one clock", "Kinds of work, one after another", "Where several
//! processes meet", "Files, one process alone").

use crate::common::scenario::{Finished, ran};
use crate::lab_contention;

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

pub(crate) fn assert_near(what: &str, twin: f64, kernel: f64, tolerance: f64) {
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
        // Two runs of the kernel: 31,173 and 31,841.
        assert_near(&what, rate(&run, "w"), computes, if cpus.len() > 1 { 0.05 } else { 0.03 });
        assert_near(&what, rate(&run, &format!("s{}", cpus[0])), first, 0.06);
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
        // The last phase ends about when the flusher first looks; it did before on the kernel.
        let guest = guest(release).replace("disk.latency = \"500 us\"", "disk.first_flush = \"5 s\"");
        let run = ran(&format!("{guest}[[process]]\nname = \"q\"\n{regions}{}", phases.concat()));
        for (number, (phase, kernel)) in
            run.results.phases.iter().zip(kernel).enumerate().filter(|(_, (_, at))| *at > 0.0)
        {
            let seconds = (phase.end - phase.start) as f64 / 1e9;
            assert_near(&format!("{release}, phase {number}"), seconds, kernel, 0.03);
        }
    }
}

/// Milliseconds from the end of a process's phase to the beginning of the next; before the first from its start.
fn waited(run: &Finished, process: &str, start: u64) -> Vec<f64> {
    let phases = run.results.phases.iter().filter(|phase| phase.process == process);
    let mut before = start;
    let mut gap = |of: &mmtwin_event::results::PhaseResult| {
        let waited = of.start.saturating_sub(before) as f64 / 1e6;
        before = of.end;
        waited
    };
    phases.map(&mut gap).collect()
}

#[test]
fn a_process_waits_for_a_sample_between_phases_and_when_it_starts_late() {
    let process = |name: &str, start: &str, size: u32, phases: usize| {
        let phase = "[[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\n\
                     write = 1.0\ncount = 2000\n";
        format!(
            "[[process]]\nname = \"{name}\"\nstart = \"{start}\"\n\
             [[process.region]]\nname = \"heap\"\nsize = \"{size} MiB\"\npopulate = true\n{}",
            phase.repeat(phases)
        )
    };
    let two = process("one", "0 s", 32, 2) + &process("late", "1500 ms", 1, 1);
    let seven = (0..5).fold(two.clone(), |text, n| text + &process(&format!("other{n}"), "4 s", 1, 0));
    // Release, processes, and what the kernel's waited: one of 8,192 pages, then a late one alone.
    let cases = [
        ("6.1", &two, 35.0, 24.0),
        ("6.1", &seven, 47.2, 35.9),
        ("6.12", &two, 34.6, 25.6),
        ("6.12", &seven, 46.0, 36.7),
    ];
    for (release, processes, one, late) in cases {
        let run = ran(&format!("{}{processes}", guest(release)));
        let begin = run.results.phases.iter().map(|phase| phase.start).min().expect("a phase");
        waited(&run, "one", begin)[1..].iter().for_each(|&gap| assert_near(release, gap, one, 0.05));
        waited(&run, "late", begin + 1_500_000_000).iter().for_each(|&gap| assert_near(release, gap, late, 0.08));
    }
}

/// Faults that miss so often that they read their page alone.
#[test]
fn writes_at_random_to_a_mapped_file_take_as_long_as_in_the_guest() {
    let process = "[[process]]\nname = \"w\"\n[[process.region]]\nname = \"f\"\nsize = \"225 MiB\"\nkind = \"file\"\n\
                   [[process.phase]]\n[[process.phase.access]]\nregion = \"f\"\npattern = \"uniform\"\nwrite = 1.0\n\
                   think = \"100 us\"\ncount = 11000\n";
    for (release, seconds) in [("6.1", 2.115), ("6.12", 2.259)] {
        let guest = guest(release).replace("disk.latency = \"500 us\"\n", "").replace("\"0-3\"", "\"0\"");
        let run = ran(&format!("{guest}{process}"));
        let phase = &run.results.phases[0];
        assert_near(release, (phase.end - phase.start) as f64 / 1e9, seconds, 0.05);
    }
}

/// Two threads that read through one descriptor have one state of read-ahead: 7.3 leaves pages out of windows, and large
/// folios become small ones.
#[test]
fn two_threads_that_read_one_file_ahead_have_small_folios() {
    let process = "[[process]]\nname = \"r\"\nthreads = 2\n\
                   [[process.region]]\nname = \"t\"\nsize = \"300 MiB\"\nkind = \"file\"\nsharing = \"private\"\n\
                   [[process.phase]]\n[[process.phase.access]]\nregion = \"t\"\npattern = \"sequential\"\nvia = \"syscall\"\n\
                   count = 30000\n";
    let guest = "[machine]\npreset = \"lab-4n-7.3\"\ndistance = [[10]]\n\
                 [[machine.node]]\ncpus = \"0-1\"\nmemory = \"384 MiB\"\n\
                 [kernel]\nrelease = \"7.3\"\nthp = \"never\"\n[run]\nsample = \"20 s\"\ncounters = [\"numa_*\"]\n";
    let run = ran(&format!("{guest}{process}"));
    let phase = &run.results.phases[0];
    assert_near("seconds", (phase.end - phase.start) as f64 / 1e9, 3.087, 0.06);
    assert_near("allocations", run.counter("vmstat", "", "numa_hit") as f64, 19_855.0, 0.06);
}

/// Memory that processes share: faults, and swap.
#[test]
fn shared_memory_takes_as_long_as_in_the_guest() {
    let machine = |release: &str, balancing: u32, more: &str| {
        let preset = if release == "6.1" { "lab-4n".into() } else { format!("lab-4n-{release}") };
        format!(
            "[machine]\npreset = \"{preset}\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"512 MiB\"\n\
             [machine.swap]\nsize = \"256 MiB\"\nsynchronous = true\nlatency = \"0 us\"\nbandwidth = \"1 GB/s\"\n\
             [kernel]\nrelease = \"{release}\"\nthp = \"never\"\n\
             [kernel.sysctl]\n\"kernel.numa_balancing\" = {balancing}\n{more}\
             [run]\nsample = \"20 s\"\ncounters = [\"numa_*\"]\n"
        )
    };
    let process = |cgroup: &str, pattern: &str, write: &str| {
        format!(
            "[[process]]\nname = \"a\"\n{cgroup}[[process.region]]\nname = \"m\"\nsize = \"160 MiB\"\nkind = \"shmem\"\n\
             populate = true\n[[process.phase]]\n[[process.phase.access]]\nregion = \"m\"\npattern = \"{pattern}\"\n\
             write = \"{write}\"\ncount = 40000\n"
        )
    };
    // Seconds of the kernel: the populate, random reads and random writes, with 64 MiB.
    for (release, seconds) in
        [("6.1", [4.424, 4.703, 4.449]), ("6.12", [5.335, 6.002, 5.706]), ("7.3", [5.718, 6.311, 5.944])]
    {
        for (write, phase) in [("0 %", 1), ("100 %", 2)] {
            let text = machine(release, 0, "[[cgroup]]\nname = \"/box\"\nmemory.max = \"64 MiB\"\n");
            let run = ran(&(text + &process("cgroup = \"/box\"\n", "uniform", write)));
            let took = |at: usize| (run.results.phases[at].end - run.results.phases[at].start) as f64 / 1e9;
            assert_near(release, took(0), seconds[0], 0.03);
            assert_near(release, took(1), seconds[phase], 0.04);
        }
    }
    // 6.12 marks it for NUMA balancing, on a machine with one node too if that is said; 6.1 does not.
    for (release, marked, seconds) in [("6.1", 0.0, 0.084), ("6.12", 31_534.0, 0.763), ("7.3", 28_873.0, 0.728)] {
        let run = ran(&(machine(release, 1, "") + &process("", "sequential", "100 %")));
        let phase = &run.results.phases[1];
        let updates = run.counter("vmstat", "", "numa_pte_updates") as f64;
        assert!((updates - marked).abs() <= 0.1 * marked, "{release}: {updates}, kernel {marked}");
        assert_near(release, (phase.end - phase.start) as f64 / 1e9, seconds, 0.16);
    }
}

#[test]
fn swapping_takes_as_long_as_in_the_guest() {
    let swap = "[machine.swap]\nsize = \"256 MiB\"\nsynchronous = true\nlatency = \"0 us\"\nbandwidth = \"1 GB/s\"\n\
                [[cgroup]]\nname = \"/c\"\nmemory.max = \"64 MiB\"\n";
    let process = "[[process]]\nname = \"a\"\ncgroup = \"/c\"\n\
                   [[process.region]]\nname = \"h\"\nsize = \"160 MiB\"\npopulate = true\n\
                   [[process.phase]]\n[[process.phase.access]]\nregion = \"h\"\npattern = \"sequential\"\nwrite = 1.0\n\
                   think = \"100 us\"\ncount = 40000\n";
    // Seconds of the kernel for both phases.
    for (release, seconds) in [("6.1", [3.571, 9.851]), ("6.12", [4.331, 11.808])] {
        let guest = guest(release).replace("[kernel.sysctl]\n", "[kernel.sysctl]\n\"vm.page-cluster\" = 0\n");
        let run = ran(&format!("{guest}{swap}{process}"));
        for (phase, kernel) in run.results.phases.iter().zip(seconds) {
            assert_near(release, (phase.end - phase.start) as f64 / 1e9, kernel, 0.04);
        }
    }
}

#[test]
fn files_of_one_process_take_as_long_as_in_the_guest() {
    let call = "via = \"syscall\"\n";
    let write = "write = 1.0\n";
    // Size of the file, access, and seconds on each kernel.
    let cases = [
        (400, format!("pattern = \"sequential\"\n{call}count = 102400"), [4.944, 5.952, 4.031]),
        (100, format!("pattern = \"uniform\"\n{call}count = 3000"), [0.196, 0.222, 0.228]),
        (400, "pattern = \"sequential\"\ncount = 102400".into(), [3.898, 4.849, 2.489]),
        (1200, "pattern = \"uniform\"\ncount = 3000".into(), [2.730, 3.478, 0.462]),
        (60, format!("pattern = \"sequential\"\n{call}{write}count = 61440"), [1.925, 1.938, 2.057]),
        (60, format!("pattern = \"sequential\"\n{write}count = 61440"), [1.219, 1.376, 0.549]),
    ];
    for (size, access, kernels) in cases {
        for (release, kernel) in ["6.1", "6.12", "7.3"].into_iter().zip(kernels) {
            let guest = lab_contention::guest(release, &[("0-1", 768)], "\"kernel.numa_balancing\" = 0");
            let run = ran(&format!(
                "{}[[process]]\nname = \"a\"\ncpus = \"0\"\n\
                 [[process.region]]\nname = \"d\"\nsize = \"{size} MiB\"\nkind = \"file\"\n\
                 [[process.phase]]\n[[process.phase.access]]\nregion = \"d\"\n{access}\n",
                guest.replace("numa_*", "pg*")
            ));
            let what = format!("{release}, {size} MiB, {access}");
            assert_near(&what, lab_contention::seconds(&run, 0), kernel, 0.03);
            // Each page is read once, and the exit marks each folio once (`zap_present_ptes`).
            if access.contains("sequential") && !access.contains("write") {
                assert_eq!(run.counter("vmstat", "", "pgactivate"), 0, "{what}");
            }
        }
    }
}

/// A thread reads from a disk of 250 us, alone and beside one that computes.
#[test]
fn slow_disks_take_as_long_as_in_the_guest() {
    let beside = "[[process]]\nname = \"w\"\ncpus = \"1\"\n\
                  [[process.region]]\nname = \"own\"\nsize = \"4 MiB\"\n\
                  [[process.phase]]\nduration = \"6 s\"\n[[process.phase.access]]\nregion = \"own\"\n\
                  pattern = \"zipf\"\nskew = 0.8\nwrite = \"20 %\"\nthink = \"40 us\"\n";
    // Pattern, accesses, another process, and seconds on each kernel.
    let cases = [
        ("sequential", 30_000, "", [1.472, 1.766, 1.206]),
        ("uniform", 3000, "", [1.072, 1.111, 1.133]),
        ("sequential", 30_000, beside, [3.000, 3.533, 2.432]),
        ("uniform", 3000, beside, [1.716, 1.763, 1.664]),
    ];
    for (pattern, count, other, kernels) in cases {
        for (release, kernel) in ["6.1", "6.12", "7.3"].into_iter().zip(kernels) {
            let guest = lab_contention::guest(release, &[("0-3", 1024)], "\"kernel.numa_balancing\" = 0")
                .replace("[machine]\n", "[machine]\ndisk.latency = \"250 us\"\n");
            let run = ran(&format!(
                "{guest}[[process]]\nname = \"r\"\ncpus = \"2\"\n\
                 [[process.region]]\nname = \"data\"\nsize = \"257 MiB\"\nkind = \"file\"\n\
                 [[process.phase]]\n[[process.phase.access]]\nregion = \"data\"\npattern = \"{pattern}\"\n\
                 via = \"syscall\"\ncount = {count}\n{other}"
            ));
            let phase = run.results.phases.iter().position(|phase| phase.process == "r").unwrap();
            assert_near(&format!("{release}, {pattern} {other}"), lab_contention::seconds(&run, phase), kernel, 0.03);
        }
    }
}

/// A process with 200 MiB ends, which takes time of one that computes.
#[test]
fn ends_of_processes_take_as_long_as_in_the_guest() {
    // Of what memory, and how many accesses a second the other has on each kernel.
    let cases = [
        ("never", "populate = true", "", [45_229.0, 45_100.0, 44_167.0]),
        ("always", "populate = true", "", [48_780.0, 48_706.0, 48_470.0]),
        ("never", "populate = true", "kind = \"file\"\n", [47_333.0, 47_466.0, 48_093.0]),
        ("never", "populate = true", "kind = \"shmem\"\nfile = \"seg\"\n", [47_227.0, 47_310.0, 46_703.0]),
    ];
    for (thp, populate, kind, kernels) in cases {
        for (release, kernel) in ["6.1", "6.12", "7.3"].into_iter().zip(kernels) {
            let guest = lab_contention::guest(release, &[("0-1", 768)], "\"kernel.numa_balancing\" = 0")
                .replace("thp = \"never\"", &format!("thp = \"{thp}\""));
            let run = ran(&format!(
                "{guest}[[process]]\nname = \"w\"\ncpus = \"0\"\nstart = \"5 s\"\n\
                 [[process.region]]\nname = \"own\"\nsize = \"1 MiB\"\npopulate = true\n\
                 [[process.phase]]\nduration = \"8 s\"\n[[process.phase.access]]\nregion = \"own\"\n\
                 pattern = \"uniform\"\nthink = \"20 us\"\n\
                 [[process]]\nname = \"ends\"\ncpus = \"1\"\n\
                 [[process.region]]\nname = \"d\"\nsize = \"200 MiB\"\n{kind}{populate}\n\
                 [[process.phase]]\nduration = \"5500 ms\"\n[[process.phase.access]]\nregion = \"d\"\n\
                 pattern = \"uniform\"\nsleep = \"500 ms\"\n"
            ));
            let phase = run.results.phases.iter().find(|of| of.process == "w" && of.phase != "populate").unwrap();
            let touches: u64 = phase.accesses.iter().map(|of| of.touches).sum();
            assert_near(&format!("{release}, {thp}, {kind}"), touches as f64 / 8.0, kernel, 0.005);
        }
    }
}

/// Calls on a file that is in memory, and threads that sleep beside others that compute: a process with several threads
/// takes a reference of its files, and a CPU that has another thread switches to that and back.
#[test]
fn threads_that_share_files_or_cpus_take_as_long_as_in_the_guest() {
    // Seconds of 30,720 and 61,440 reads in order of 15,360 pages by each thread, on each kernel.
    let reads =
        [(1, [[0.657, 1.148], [0.674, 1.162], [0.609, 1.205]]), (2, [[1.193, 2.389], [1.211, 2.421], [1.256, 2.511]])];
    for (threads, kernels) in reads {
        for (release, seconds) in ["6.1", "6.12", "7.3"].into_iter().zip(kernels) {
            let guest = lab_contention::guest(release, &[("0-1", 384)], "\"kernel.numa_balancing\" = 0");
            let phase = |count: u32| {
                format!(
                    "[[process.phase]]\n[[process.phase.access]]\nregion = \"f\"\npattern = \"sequential\"\n\
                     via = \"syscall\"\ncount = {count}\n"
                )
            };
            let run = ran(&format!(
                "{guest}[[process]]\nname = \"a\"\nthreads = {threads}\n\
                 [[process.region]]\nname = \"f\"\nsize = \"60 MiB\"\nkind = \"file\"\n{}{}{}",
                phase(15_360),
                phase(30_720),
                phase(61_440)
            ));
            for (number, kernel) in (1..).zip(seconds) {
                let what = format!("{release}, {threads} threads, phase {number}");
                assert_near(&what, lab_contention::seconds(&run, number), kernel, 0.02);
            }
        }
    }
    // CPUs, threads that sleep for 500 us and that compute, and their accesses a second on each kernel.
    let shared = [
        ("0", 3, 1, [[5_064.0, 33_886.0], [4_574.0, 34_592.0], [4_596.0, 31_230.0]]),
        ("0-1", 4, 2, [[6_258.0, 29_906.0], [5_116.0, 32_273.0], [4_998.0, 28_594.0]]),
    ];
    for (cpus, sleep, compute, kernels) in shared {
        for (release, rates) in ["6.1", "6.12", "7.3"].into_iter().zip(kernels) {
            let guest = lab_contention::guest(release, &[("0-1", 512)], "\"kernel.numa_balancing\" = 0");
            let process = |name: &str, threads: u32, wait: &str| {
                format!(
                    "[[process]]\nname = \"{name}\"\nthreads = {threads}\ncpus = \"{cpus}\"\n\
                     [[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\npopulate = true\n\
                     [[process.phase]]\nduration = \"2 s\"\n\
                     [[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\n{wait}\n"
                )
            };
            let sleeps = process("s", sleep, "sleep = \"500 us\"");
            let run = ran(&format!("{guest}{sleeps}{}", process("w", compute, "think = \"20 us\"")));
            for (name, kernel) in ["s", "w"].into_iter().zip(rates) {
                assert_near(&format!("{release}, CPUs {cpus}, {name}"), rate(&run, name), kernel, 0.08);
            }
        }
    }
}

/// Whoever samples opens the `numa_maps` of each process, for which the kernel allocates a block of four pages, one a sample
/// and process in guests of 6.1, 6.12 and 7.3.
#[test]
fn a_sample_takes_a_block_of_pages_for_each_process() {
    let process = |name: &str| {
        format!(
            "[[process]]\nname = \"{name}\"\n[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\npopulate = true\n\
             [[process.phase]]\nduration = \"2 s\"\n[[process.phase.access]]\nregion = \"r\"\n\
             pattern = \"uniform\"\nthink = \"20 us\"\n"
        )
    };
    for processes in [1, 2] {
        let guest = guest("6.1").replace("sample = \"20 s\"", "sample = \"500 ms\"\nevents = [\"kmem:mm_page_alloc\"]");
        let all: String = (0..processes).map(|number| process(&format!("a{number}"))).collect();
        let run = ran(&format!("{guest}{all}"));
        let begin = run.results.phases.iter().filter(|phase| phase.phase != "populate").map(|phase| phase.start).max();
        let (from, until) = (begin.unwrap() + 100_000_000, begin.unwrap() + 1_900_000_000);
        let blocks = run.events.iter().filter(|event| event.2 == "mm_page_alloc" && (from..until).contains(&event.0));
        // Samples at 0.5, 1 and 1.5 s and some tenths after the phases begin.
        assert_eq!(blocks.count(), 3 * processes, "{processes} processes");
    }
}

/// Threads go through 100 MiB that nobody has written, one, two and four of them on four CPUs: one write in 31 refills its CPU's
/// list or adds a batch to an LRU list, and who finds the zone or the lists locked by a CPU without a turn waits for it.
#[test]
fn first_writes_take_as_long_as_in_the_guest() {
    // Seconds by threads, and the median and the longest but 1 % of one thread's writes, in microseconds.
    let kernels = [
        ("6.1", [0.873, 0.938, 1.049], (22.4, 74.2)),
        ("6.12", [0.966, 1.031, 1.150], (25.5, 118.3)),
        ("7.3", [1.061, 1.126, 1.250], (27.4, 148.5)),
    ];
    for (release, seconds, (p50, p99)) in kernels {
        let guest = lab_contention::guest(release, &[("0-3", 512)], "\"kernel.numa_balancing\" = 0");
        for (threads, kernel) in [1, 2, 4].into_iter().zip(seconds) {
            let run = ran(&format!(
                "{}[[process]]\nname = \"a\"\nthreads = {threads}\n\
                 [[process.region]]\nname = \"h\"\nsize = \"100 MiB\"\n\
                 [[process.phase]]\n[[process.phase.access]]\nregion = \"h\"\npattern = \"sequential\"\n\
                 write = 1.0\ncount = 25600\n",
                guest.replace("numa_*", "pg*")
            ));
            let what = format!("{release}, {threads} threads");
            assert_near(&what, lab_contention::seconds(&run, 0), kernel, 0.02);
            if threads == 1 {
                let latency = run.results.phases[0].accesses[0].latency.clone().expect("latencies");
                assert_near(&what, latency.p50.expect("a median") as f64 / 1e3, p50, 0.03);
                assert_near(&what, latency.p99.expect("a 99th percentile") as f64 / 1e3, p99, 0.05);
            }
        }
    }
}

/// A process writes 200 MiB of a file by calls, and then again, beside the flusher: both take the lock of the file's pages.
#[test]
fn a_writer_beside_the_flusher_takes_as_long_as_in_the_guest() {
    for (release, kernel) in [("6.1", [1.840, 1.453]), ("6.12", [1.854, 1.360]), ("7.3", [2.095, 1.511])] {
        let sysctls =
            "\"kernel.numa_balancing\" = 0\n\"vm.dirty_background_bytes\" = 67108864\n\"vm.dirty_bytes\" = 419430400";
        let guest = lab_contention::guest(release, &[("0-1", 768)], sysctls);
        let phase = "[[process.phase]]\n[[process.phase.access]]\nregion = \"f\"\npattern = \"sequential\"\n\
                     via = \"syscall\"\nwrite = 1.0\ncount = 25600\n";
        let run = ran(&format!(
            "{}[[process]]\nname = \"w\"\nstart = \"7 s\"\n[[process.region]]\nname = \"f\"\nsize = \"200 MiB\"\nkind = \"file\"\n\
             {phase}{phase}[machine.disk]\nlatency = \"100 us\"\n",
            guest.replace("numa_*", "pg*")
        ));
        assert_near(&format!("{release}, new"), lab_contention::seconds(&run, 0), kernel[0], 0.03);
        assert_near(&format!("{release}, again"), lab_contention::seconds(&run, 1), kernel[1], 0.07);
    }
}

/// Loops of an allocation and a free, of one block and of 64 that are held, whose frees may empty the CPU's lists.
#[test]
fn loops_of_allocations_take_as_long_as_in_the_guest() {
    let kernels = [
        ("6.1", [(0, 1, 10.9), (1, 64, 15.6), (2, 1, 24.5), (2, 64, 29.3)]),
        ("6.12", [(0, 1, 12.4), (1, 64, 21.1), (2, 1, 26.7), (2, 64, 30.7)]),
        ("7.3", [(0, 1, 13.5), (1, 64, 18.7), (2, 1, 28.1), (2, 64, 33.5)]),
    ];
    for (release, loops) in kernels {
        let guest = lab_contention::guest(release, &[("0-2", 448)], "\"kernel.numa_balancing\" = 0");
        let phase = |(order, hold, _): &(u32, u32, f64)| {
            format!(
                "[[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\norder = {order}\n\
                 gfp = \"GFP_ATOMIC\"\ncount = 12000\nhold = {hold}\n"
            )
        };
        let phases: String = loops.iter().map(phase).collect();
        let guest = guest.replace("numa_*", "pg*");
        let run = ran(&format!("{guest}[[process]]\nname = \"k\"\ncpus = \"1\"\n{phases}"));
        for (number, (order, hold, kernel)) in loops.into_iter().enumerate() {
            let twin = lab_contention::seconds(&run, number) * 1e6 / 12_000.0;
            assert_near(&format!("{release}, order {order}, {hold} held"), twin, kernel, 0.05);
        }
    }
}

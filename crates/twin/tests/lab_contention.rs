//! What threads and processes cost each other in the lab's guest (mode exact): figures of real kernels, measured on 30
//! November 2026 with these scenarios (docs/model/notebook.md, "Segments, huge pages in swap, and when a scan begins" and
//! "Short sleeps").

use crate::common::scenario::{Finished, ran};
use crate::lab_time::assert_near;

/// A guest of a release with nodes, and keys of its kernel.
pub fn guest(release: &str, nodes: &[(&str, u32)], kernel: &str) -> String {
    let preset = if release == "6.1" { "lab-4n".into() } else { format!("lab-4n-{release}") };
    let row = |from: usize| {
        let far = (0..nodes.len()).map(|to| if from == to { "10" } else { "20" });
        format!("[{}]", far.collect::<Vec<_>>().join(", "))
    };
    let distance = (0..nodes.len()).map(row).collect::<Vec<_>>().join(", ");
    let node = |(cpus, mib): &(&str, u32)| format!("[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"{mib} MiB\"\n");
    format!(
        "[machine]\npreset = \"{preset}\"\ndistance = [{distance}]\n\
         memory.latency = {{ 10 = \"8 ns\", 20 = \"8 ns\" }}\nmemory.bandwidth = {{ 10 = \"1 GB/s\", 20 = \"1 GB/s\" }}\n\
         {}[kernel]\nrelease = \"{release}\"\nthp = \"never\"\n[kernel.sysctl]\n{kernel}\n\
         [run]\nsample = \"20 s\"\ncounters = [\"numa_*\"]\n",
        nodes.iter().map(node).collect::<String>()
    )
}

pub fn seconds(run: &Finished, number: usize) -> f64 {
    let phase = &run.results.phases[number];
    (phase.end - phase.start) as f64 / 1e9
}

#[test]
fn two_processes_fill_one_segment() {
    let process = |name: &str| {
        format!(
            "[[process]]\nname = \"{name}\"\nstart = \"500 ms\"\n[[process.region]]\nname = \"s\"\nsize = \"120 MiB\"\n\
             kind = \"shmem\"\nfile = \"s\"\npopulate = true\n[[process.phase]]\n[[process.phase.access]]\n\
             region = \"s\"\npattern = \"uniform\"\ncount = 1\n"
        )
    };
    for (release, kernel) in [("6.1", 2.823), ("6.12", 3.147), ("7.3", 3.419)] {
        let guest = guest(release, &[("0-2", 448)], "\"kernel.numa_balancing\" = 0");
        let run = ran(&format!("{guest}{}{}", process("a"), process("b")));
        assert_near(release, seconds(&run, 0), kernel, 0.04);
    }
}

#[test]
fn who_copies_the_zero_page_interrupts_the_other_threads() {
    for (release, kernel) in [("6.1", [0.400, 0.687, 0.899]), ("6.12", [0.435, 0.738, 0.959])] {
        for (threads, kernel) in (1..).zip(kernel) {
            let guest = guest(release, &[("0-2", 384)], "\"kernel.numa_balancing\" = 0");
            let run = ran(&format!(
                "{guest}[[process]]\nname = \"p\"\nthreads = {threads}\n[[process.region]]\nname = \"h\"\n\
                 size = \"60 MiB\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"h\"\n\
                 pattern = \"uniform\"\nwrite = \"50 %\"\nthink = \"5 us\"\ncount = 20000\n"
            ));
            assert_near(&format!("{release}, {threads} threads"), seconds(&run, 0), kernel, 0.04);
        }
    }
}

/// A run of threads that populate memory by a policy and access it.
fn interleaved(release: &str, threads: u32, mib: u32, policy: &str, count: u32) -> Finished {
    let guest = guest(release, &[("0-1", 256), ("2-3", 256)], "\"kernel.numa_balancing\" = 1");
    ran(&format!(
        "{guest}[[process]]\nname = \"s\"\nthreads = {threads}\n[[process.region]]\nname = \"own\"\nsize = \"{mib} MiB\"\n\
         populate = true\n{policy}[[process.phase]]\n[[process.phase.access]]\n\
         region = \"own\"\npattern = \"uniform\"\nwrite = \"30 %\"\nthink = \"50 us\"\ncount = {count}\n"
    ))
}

const POLICY: &str = "populate_policy = \"interleave:all\"\n";

#[test]
fn what_a_worker_does_before_its_workload_brings_its_first_scan_nearer() {
    for (release, threads, kernel) in [("6.1", 1, 3_942.0), ("6.1", 2, 28_749.0), ("6.12", 1, 4_532.0)] {
        let faults = interleaved(release, threads, 80, POLICY, 30_000).counter("vmstat", "", "numa_hint_faults");
        assert_near(&format!("{release}, {threads} threads"), faults as f64, kernel, 0.07);
    }
}

#[test]
fn nothing_is_marked_while_memory_is_populated_by_a_policy() {
    let marked = |policy: &str| interleaved("6.1", 2, 240, policy, 1).counter("vmstat", "", "numa_pte_updates");
    let (with, without) = (marked(POLICY), marked(""));
    assert!(with == 0 && without > 1000, "{with} {without}");
}

#[test]
fn threads_that_sleep_for_a_while_share_one_clock() {
    // Accesses in 3 s with 700 us of work and a sleep of 500 before each.
    for (release, alone, four) in [("6.1", 2_322.0, 3_862.0), ("6.12", 2_314.0, 3_824.0), ("7.3", 2_300.0, 3_762.0)] {
        for (threads, kernel) in [(1, alone), (4, four)] {
            let guest = guest(release, &[("0-3", 256)], "\"kernel.numa_balancing\" = 0");
            let run = ran(&format!(
                "{guest}[[process]]\nname = \"s\"\nthreads = {threads}\n[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\n\
                 populate = true\n[[process.phase]]\nduration = \"3 s\"\n[[process.phase.access]]\nregion = \"r\"\n\
                 pattern = \"sequential\"\nthink = \"700 us\"\nsleep = \"500 us\"\n"
            ));
            let accesses = run.results.phases.last().expect("two phases").accesses[0].touches;
            assert_near(&format!("{release}, {threads} threads"), accesses as f64, kernel, 0.015);
        }
    }
}

#[test]
fn readers_of_a_disk_are_in_each_others_way() {
    // A reader alone takes 0.70 s.
    for (release, kernel) in [("6.1", 0.817), ("6.12", 0.870), ("7.3", 0.907)] {
        let guest = guest(release, &[("0-3", 448)], "\"kernel.numa_balancing\" = 0");
        let reader = |name: u32| {
            format!(
                "[[process]]\nname = \"s{name}\"\n[[process.region]]\nname = \"r\"\nsize = \"100 MiB\"\nkind = \"file\"\n\
                 [[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"strided\"\nstride = \"64 KiB\"\n\
                 via = \"syscall\"\ncount = 1200\n"
            )
        };
        let readers: String = (0..4).map(reader).collect();
        let run = ran(&format!("{guest}{readers}[machine.disk]\nlatency = \"500 us\"\n"));
        let mean = (0..4).map(|number| seconds(&run, number)).sum::<f64>() / 4.0;
        assert_near(release, mean, kernel, 0.08);
    }
}

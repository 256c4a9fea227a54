//! Sampled accesses under NUMA balancing compared with explicit ones: the same number of accesses, marks and hinting
//! faults.

use crate::common::scenario::{Finished, ran, ran_explicitly};

/// Two threads on each of which nodes, so much memory per node, and one region with one access in each of its phases.
struct Case {
    name: &'static str,
    thp: &'static str,
    threads: u32,
    node: &'static str,
    region: &'static str,
    accesses: &'static str,
    /// Allowed differences of accesses, marks and faults.
    within: [f64; 3],
}

const CASES: [Case; 7] = [
    // No thread returns to pages that were marked behind it.
    Case {
        name: "fill",
        thp: "never",
        threads: 1,
        node: "512 MiB",
        region: "size = \"256 MiB\"",
        accesses: "pattern = \"sequential\"\nwrite = 1.0\nthink = \"40 us\"\ncount = 65536\n",
        within: [0.0, 0.05, 0.2],
    },
    Case {
        name: "fill with huge pages",
        thp: "always",
        threads: 1,
        node: "512 MiB",
        region: "size = \"256 MiB\"",
        accesses: "pattern = \"sequential\"\nwrite = 1.0\nthink = \"40 us\"\ncount = 65536\n",
        within: [0.0, 0.05, 0.2],
    },
    Case {
        name: "rounds",
        thp: "never",
        threads: 1,
        node: "512 MiB",
        region: "size = \"64 MiB\"\npopulate = true\npopulate_policy = \"bind:3\"",
        accesses: "pattern = \"sequential\"\nwrite = 0.5\nthink = \"10 us\"\n",
        within: [0.02, 0.05, 0.05],
    },
    Case {
        name: "strides",
        thp: "never",
        threads: 2,
        node: "512 MiB",
        region: "size = \"64 MiB\"\npopulate = true\npopulate_policy = \"bind:3\"",
        accesses: "pattern = \"strided\"\nstride = \"28 KiB\"\nwrite = 0.5\nthink = \"10 us\"\n",
        within: [0.03, 0.15, 0.15],
    },
    Case {
        name: "uniform",
        thp: "never",
        threads: 4,
        node: "512 MiB",
        region: "size = \"64 MiB\"\npopulate = true\npopulate_policy = \"bind:3\"",
        accesses: "pattern = \"uniform\"\nwrite = 0.3\nthink = \"20 us\"\n",
        within: [0.03, 0.15, 0.15],
    },
    Case {
        name: "zipf",
        thp: "never",
        threads: 4,
        node: "512 MiB",
        region: "size = \"64 MiB\"\npopulate = true",
        accesses: "pattern = \"zipf\"\nskew = 0.9\nwrite = 0.3\nthink = \"20 us\"\n",
        within: [0.03, 0.2, 0.2],
    },
    // More than a node has, and a server that is slower for its faults than for its work.
    Case {
        name: "spilled",
        thp: "never",
        threads: 4,
        node: "96 MiB",
        region: "size = \"240 MiB\"\npopulate = true",
        accesses: "pattern = \"uniform\"\nwrite = 0.3\nthink = \"5 us\"\n",
        within: [0.03, 0.15, 0.15],
    },
];

fn scenario(case: &Case, seed: u64) -> String {
    let Case { thp, threads, node, region, accesses, .. } = case;
    let node = |cpus: &str| format!("[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"{node}\"\n");
    let time = if accesses.contains("count") { "" } else { "duration = \"4 s\"\n" };
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10, 20, 20, 20], [20, 10, 20, 20], [20, 20, 10, 20], [20, 20, 20, 10]]\n\
         {}{}{}{}[machine.cost]\nhint_fault = \"13.5 us\"\nmigrate_page = \"68 us\"\n[kernel]\nrelease = \"6.1\"\n\
         thp = \"{thp}\"\n[kernel.numa_balancing]\nscan_delay_ms = 250\nscan_period_min_ms = 250\n[[process]]\n\
         name = \"p\"\nthreads = {threads}\n[[process.region]]\nname = \"heap\"\n{region}\n[[process.phase]]\n{time}\
         [[process.phase.access]]\nregion = \"heap\"\n{accesses}[run]\nseed = {seed}\nsample = \"1 s\"\n",
        node("0-1"),
        node("2-3"),
        node("4-5"),
        node("6-7")
    )
}

/// Accesses of the program, marks, hinting faults: the mean of four seeds.
fn measured(case: &Case, explicit: bool) -> [f64; 3] {
    let of = |run: Finished| {
        let phases = run.results.phases.iter().filter(|phase| phase.phase != "populate");
        let touches: u64 = phases.flat_map(|phase| &phase.accesses).map(|access| access.touches).sum();
        [touches, run.counter("vmstat", "", "numa_pte_updates"), run.counter("vmstat", "", "numa_hint_faults")]
    };
    let runs = [1, 2, 3, 4].map(|seed| {
        let text = scenario(case, seed);
        of(if explicit { ran_explicitly(&text) } else { ran(&text) })
    });
    [0, 1, 2].map(|at| runs.iter().map(|run| run[at] as f64).sum::<f64>() / runs.len() as f64)
}

#[test]
fn sampled_accesses_fault_like_single_ones() {
    let mut wrong = Vec::new();
    for case in &CASES {
        let (sampled, explicit) = (measured(case, false), measured(case, true));
        eprintln!("{}: {sampled:?} {explicit:?}", case.name);
        for at in 0..3 {
            // Random faults on a program's own pages are not the region's.
            let off = ((sampled[at] - explicit[at]).abs() - if at == 0 { 0.0 } else { 60.0 }).max(0.0);
            if off > explicit[at] * case.within[at] {
                wrong.push((case.name, ["touches", "marks", "faults"][at], sampled[at], explicit[at]));
            }
        }
    }
    assert!(wrong.is_empty(), "sampled and explicit: {wrong:?}");
}

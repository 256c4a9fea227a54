//! Effect of the counter threshold on the published machine and on others; the published table itself is checked by
//! `mmtwin reproduce numa-counters` and its test.

use crate::common::{BROADWELL, GIB, broadwell, kernel, machine, vmstat};
use mmtwin_twin::hw::Machine;
use mmtwin_twin::page_alloc::{Policy, Request, Rules};
use mmtwin_twin::vmstat::{Design, closed_form};
use mmtwin_twin::workload::alloc_loop::{AllocLoop, LoopResult};

fn run(machine: Machine, cpus: u32, design: Design, threshold: Option<u32>, loops: u64, seed: u64) -> LoopResult {
    let mut kernel = kernel(machine, Rules::V4_13, vmstat(design, threshold));
    kernel.age_counters(seed);
    let cpus = (0..cpus).collect();
    kernel.run_loops(&AllocLoop { cpus, loops, request: Request::ATOMIC, policy: Policy::Default }).unwrap()
}

#[test]
fn the_closed_form_agrees() {
    // The CPUs of a node on other cores write the line that a CPU reads.
    for threshold in [32, 125, 512, 4096] {
        let result = run(broadwell(), 88, Design::InZone, Some(threshold), 50_000, 2);
        let period = f64::from(threshold + 1 + threshold / 2);
        let costs = BROADWELL.shared_core;
        let expected = closed_form(costs.work + 2.0 * costs.count_s8, BROADWELL.refetch, 42.0, period);
        // The closed form assumes loops of one length. Short ones, which fetch nothing, meet fewer writes than the
        // mean, so the simulated CPUs are a little cheaper where fetches are frequent.
        assert!((result.cycles() / expected - 1.0).abs() < 0.02, "{threshold}: {} {expected}", result.cycles());
    }
}

#[test]
fn other_machines_never_lose_by_a_larger_threshold() {
    for (nodes, cores, threads) in [(1, 2, 1), (1, 8, 2), (2, 4, 1), (4, 18, 1), (8, 10, 1), (8, 28, 2)] {
        let cpus = nodes * cores * threads;
        let rates: Vec<f64> = [1, 2, 4, 8, 16, 32, 64, 125, 256, 512, 1024, 4096]
            .map(|threshold| {
                let loops = 2_000 + 20 * u64::from(threshold);
                run(machine(nodes, cores, threads, 8 * GIB), cpus, Design::InZone, Some(threshold), loops, 3)
                    .throughput()
            })
            .to_vec();
        // Where every loop fetches the line there is nothing to gain; only the first loops of a run differ.
        let ordered = rates.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-6));
        assert!(ordered, "{nodes} nodes of {cores} cores: {rates:?}");
    }
}

#[test]
fn loops_take_longer_with_more_cpus_of_a_node() {
    let cycles: Vec<f64> =
        [2, 4, 8, 16, 22].map(|cpus| run(broadwell(), cpus, Design::InZone, None, 20_000, 4).cycles()).to_vec();
    assert!(cycles.windows(2).all(|pair| pair[0] < pair[1]), "{cycles:?}");
    // The other node's CPUs do not matter, the other threads of the cores do.
    let both = run(broadwell(), 44, Design::InZone, None, 20_000, 4).cycles();
    assert!((both / cycles[4] - 1.0).abs() < 0.02, "{both} {cycles:?}");
    assert!(run(broadwell(), 88, Design::InZone, None, 20_000, 4).cycles() > 1.5 * both);
}

#[test]
fn counters_do_not_stay_in_step() {
    // All counters at 0 overflow together, on a machine that has just booted; after a while it is like any other.
    let in_step = |loops| {
        let mut fresh = kernel(broadwell(), Rules::V4_13, vmstat(Design::InZone, Some(32)));
        let cpus = (0..88).collect();
        let work = AllocLoop { cpus, loops, request: Request::ATOMIC, policy: Policy::Default };
        fresh.run_loops(&work).unwrap().cycles()
    };
    let aged = [1, 2, 3].map(|seed| run(broadwell(), 88, Design::InZone, Some(32), 20_000, seed).cycles());
    assert!(in_step(200) < 0.9 * aged[0], "{} {aged:?}", in_step(200));
    assert!((in_step(20_000) / aged[0] - 1.0).abs() < 0.01, "{} {aged:?}", in_step(20_000));
    // Nor does it matter where they stood.
    assert!(aged.iter().all(|cycles| (cycles / aged[0] - 1.0).abs() < 0.005), "{aged:?}");
}

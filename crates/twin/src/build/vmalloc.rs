//! vmalloc and its stress test.

use super::BuildError;
use crate::hw::line::HandOff;
use crate::vmalloc::Params;
use crate::vmalloc::params::{Areas, Counters, Machine, PurgeAccounting, Rules, SmallPools, TlbFlush, Workload};
use mmtwin_scenario::kernel::Vmalloc;
use mmtwin_scenario::machine::Between;
use mmtwin_scenario::units::Cost;
use mmtwin_scenario::workload::{ActionKind, VmallocTest};
use mmtwin_scenario::{Machine as SaidMachine, Scenario, kernel as say};

/// The parameters of a scenario of one process with one phase whose only work is a `vmalloc-test`.
pub fn vmalloc(scenario: &Scenario) -> Result<Params, BuildError> {
    let refuse = |what| Err(BuildError::NotModelled(what, "vmalloc runs with one process, one phase and one action"));
    let [process] = &scenario.processes[..] else { return refuse("process") };
    let [phase] = &process.phases[..] else { return refuse("process.phase") };
    let ([action], []) = (&phase.actions[..], &phase.accesses[..]) else { return refuse("process.phase.action") };
    let threads = action.threads.numbers(process.threads).len() as u32;
    vmalloc_test(scenario, &action.kind, threads, scenario.machine.cpus.len() as u32)
}

/// The parameters of a `vmalloc-test` with this many threads on this many CPUs that are online.
pub fn vmalloc_test(
    scenario: &Scenario,
    action: &ActionKind,
    threads: u32,
    online_cpus: u32,
) -> Result<Params, BuildError> {
    let mut params = Params {
        machine: Machine { online_cpus, ..machine(&scenario.machine, &scenario.kernel.vmalloc) },
        rules: rules(&scenario.kernel.vmalloc)?,
        workload: workload(&scenario.machine, action, threads)?,
    };
    if scenario.machine.cpu.single_threaded_tcg {
        share_budget(&mut params, scenario.kernel.hz);
    }
    Ok(params)
}

/// CPUs that take turns are slower: threads by the number of threads, a purge by one more. A flush of all TLBs waits
/// until every CPU has had its turn, and turns end with the tick. Not modelled: that threads are slower while a purge
/// runs.
fn share_budget(params: &mut Params, hz: u32) {
    let threads = params.workload.threads.min(params.machine.online_cpus);
    params.workload.loop_us.iter_mut().for_each(|us| *us *= f64::from(threads));
    params.machine.purge_local_us *= f64::from(threads + 1);
    params.machine.tlb_flush = TlbFlush::Broadcast { flush_us: 1e6 / f64::from(hz) };
}

fn ns(cost: Cost) -> f64 {
    cost.0 as f64 / 1e3
}

fn us(cost: Cost) -> f64 {
    ns(cost) / 1e3
}

fn machine(of: &SaidMachine, vmalloc: &Vmalloc) -> Machine {
    let cost = &of.cost;
    Machine {
        online_cpus: of.cpus.len() as u32,
        possible_cpus: of.possible_cpus,
        line_ns: hand_off(of).service_ns(),
        purge_local_us: us(cost.purge_area),
        worker_share: cost.purge_worker_share.get(),
        slice_us: us(cost.purge_slice),
        wake_us: us(cost.purge_wakeup),
        tlb_flush: match vmalloc.tlb_flush {
            say::TlbFlush::Ipi => TlbFlush::Ipi { base_us: us(cost.tlb_flush), per_cpu_us: us(cost.tlb_flush_per_cpu) },
            say::TlbFlush::Broadcast => TlbFlush::Broadcast { flush_us: us(cost.tlb_flush) },
        },
    }
}

/// Transfer times of a line between cores, from the core of CPU 0 to the others.
fn hand_off(of: &SaidMachine) -> HandOff {
    let cost = |between| ns(of.line.handoff.of(between));
    let mut cores: Vec<(u32, f64)> = Vec::new();
    for closeness in [Between::SameCluster, Between::SameSocket, Between::CrossSocket] {
        let others = (0..of.cpus.len() as u32).filter(|&cpu| of.cpus[cpu as usize].thread == 0);
        let count = others.filter(|&cpu| of.between(0, cpu) == closeness).count() as u32;
        if count > 0 {
            cores.push((count, cost(closeness)));
        }
    }
    HandOff { threads_per_core: of.threads_per_core, sibling_ns: cost(Between::SameCore), cores }
}

fn rules(of: &Vmalloc) -> Result<Rules, BuildError> {
    if of.free_space == say::FreeSpace::BusyList {
        return Err(BuildError::NotModelled(
            "kernel.vmalloc.free_space = \"busy-list\"",
            "the tree of 5.2 and newer is",
        ));
    }
    let (areas, nodes) = match of.vmap_nodes {
        say::VmapNodes::Single => (Areas::SingleList, None),
        say::VmapNodes::Auto => (Areas::Nodes, None),
        say::VmapNodes::Fixed(nodes) => (Areas::Nodes, Some(nodes)),
    };
    Ok(Rules {
        areas,
        nodes,
        purge_accounting: match of.purge_accounting {
            say::PurgeAccounting::PerArea => PurgeAccounting::PerArea,
            say::PurgeAccounting::Batched => PurgeAccounting::Batched,
        },
        small_pools: match of.pool_decay {
            say::PoolDecay::DecayAll => SmallPools::Emptied,
            say::PoolDecay::KeepSmall => SmallPools::Kept,
        },
        counters: match of.counters {
            say::AreaCounters::SharedCacheline => Counters::OneLine,
            say::AreaCounters::Aligned => Counters::Aligned,
        },
        lazy_max: of.lazy_max_pages.given(),
        trace_events: of.events,
    })
}

fn workload(machine: &SaidMachine, action: &ActionKind, threads: u32) -> Result<Workload, BuildError> {
    let ActionKind::VmallocTest { tests, loops, repeat, pages } = action else {
        let (what, why) = ("process.phase.action.kind other than \"vmalloc-test\"", "vmalloc runs only that");
        return Err(BuildError::NotModelled(what, why));
    };
    let cost = &machine.cost;
    let mut loop_us = [cost.vmalloc_fix_size, cost.vmalloc_full_fit, cost.vmalloc_long_busy_list].map(us);
    // In preset lab-4n, where a page costs 11.6 us, the first test took 9.9 us more for each page of 64.
    loop_us[0] += f64::from(pages.saturating_sub(1)) * us(cost.page_alloc_free);
    Ok(Workload {
        threads,
        tests: tests.iter().map(VmallocTest::bit).fold(0, |mask, bit| mask | bit),
        loops: *loops,
        repeats: *repeat,
        pages: *pages,
        loop_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn params(machine: &str, cpus: u32) -> Params {
        let text = format!(
            "[machine]\npreset = \"{machine}\"\n[kernel]\nrelease = \"6.9\"\n[[process]]\nname = \"t\"\nthreads = {cpus}\n\
             [[process.phase]]\n[[process.phase.action]]\nkind = \"vmalloc-test\"\n\
             tests = [\"fix_size_alloc_test\", \"long_busy_list_alloc_test\"]\nloops = 1000\n"
        );
        vmalloc(&mmtwin_scenario::parse("t", &text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))).unwrap()
    }

    #[test]
    fn the_published_machines_have_the_line_times_of_their_files() {
        for (machine, cpus, line_ns) in
            [("xeon-3rd-1s-72", 72, 24.6), ("xeon-5th-2s-192", 192, 80.4), ("epyc-zen4-2s-448", 448, 80.4)]
        {
            let params = params(machine, cpus);
            assert!((params.machine.line_ns - line_ns).abs() < 0.05, "{machine}: {}", params.machine.line_ns);
            assert_eq!((params.machine.online_cpus, params.workload.threads, params.workload.tests), (cpus, cpus, 5));
            assert!(params.check().is_ok());
        }
        assert_eq!(params("epyc-zen4-2s-448", 448).rules, Rules::V6_11);
    }
}

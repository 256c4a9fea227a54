//! Where the recorder itself runs: beside the workload, so that its memory is not taken from the workload's nodes, and
//! NUMA balancing counts the workload's pages alone.

use super::policy::MemPolicy;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::Policy;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;

/// Moves this thread to the last CPU of a node on which no process of the scenario may run, or else to the last CPU
/// that no process may use. Without such a CPU it stays where it is. With NUMA balancing (`balances`) it gets a memory
/// policy, so that its pages are not scanned; the workload's processes set their own.
pub(super) fn step(scenario: &Scenario, balances: bool) {
    if balances {
        // Without it the counters have its pages too.
        let _ = MemPolicy::of(&Policy::Local, &scenario.machine).set_for_thread();
    }
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let Some(cpu) = place(scenario, |cpu| allowed.is_set(cpu as usize)) else { return };
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    // A CPU may have gone since; the workload is the same without.
    let _ = sched_setaffinity(None, &set);
}

fn place(scenario: &Scenario, allowed: impl Fn(u32) -> bool) -> Option<u32> {
    let cpus = &scenario.machine.cpus;
    let all: Vec<u32> = (0..cpus.len() as u32).collect();
    let of = |process: &mmtwin_scenario::workload::Process| {
        process.cpus.as_ref().map_or_else(|| all.clone(), |cpus| cpus.numbers().to_vec())
    };
    let used: BTreeSet<u32> = scenario.processes.iter().flat_map(of).collect();
    let node = |cpu: u32| cpus.get(cpu as usize).map(|cpu| cpu.node);
    let nodes: BTreeSet<_> = used.iter().filter_map(|&cpu| node(cpu)).collect();
    let free = || all.iter().rev().copied().filter(|&cpu| !used.contains(&cpu) && allowed(cpu));
    free().find(|&cpu| node(cpu).is_some_and(|node| !nodes.contains(&node))).or_else(|| free().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_recorder_keeps_away_from_the_workload() {
        let with = |cpus: &str| {
            let text = format!(
                "[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"6.1\"\n[[process]]\nname = \"a\"\ncpus = \"{cpus}\"\n"
            );
            place(&mmtwin_scenario::parse("s.toml", &text, Path::new("."), &[]).unwrap(), |cpu| cpu != 7)
        };
        assert_eq!([with("2"), with("0-5"), with("0,2,4,6"), with("0-7")], [Some(6), Some(6), Some(5), None]);
    }
}

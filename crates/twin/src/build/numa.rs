//! NUMA balancing: rules, costs and the state before anything runs.

use super::{balance, clear_huge_on};
use crate::hw::PAGE_SIZE;
use crate::mm::prot_numa::{Balance, Mapping};
use crate::mm::region::Region;
use crate::numa::{Costs, Mm, Numa, Rules, Task, Topology};
use mmtwin_scenario::program;
use mmtwin_scenario::workload::Policy;
use mmtwin_scenario::{Kernel, Scenario};

/// Addresses of regions: above it mappings begin, each at a multiple of 2 MiB behind the one before.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;
/// Bytes that a huge page has.
const HUGE: u64 = 2 << 20;

/// True if pages are marked for NUMA balancing in a scenario: it is on, and there are pages.
pub fn balances(scenario: &Scenario) -> bool {
    let on = scenario.kernel.sysctl.kernel_numa_balancing.is_some_and(|mode| mode & 1 == 1);
    on && scenario.processes.iter().any(|process| !process.regions.is_empty())
}

/// The rules of a kernel.
pub(crate) fn numa_rules(of: &Kernel) -> Rules {
    let deferred = of.sysctl.kernel_numa_balancing_migrate_deferred.unwrap_or(16);
    Rules {
        config: of.numa_balancing,
        sched: of.sched,
        hz: of.hz.into(),
        cpu_bits: of.nr_cpus.max(1).next_power_of_two().trailing_zeros(),
        migrate_deferred: deferred,
    }
}

/// Mappings of each process of a scenario; `processes` has the numbers of its regions among all, and of its mapping
/// among those of each. Regions that a program maps one after another have descending addresses.
pub(crate) fn mappings(scenario: &Scenario, processes: &[Vec<(usize, usize)>], regions: &[Region]) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    for (process, (own, said)) in processes.iter().zip(&scenario.processes).enumerate() {
        let mut address = FIRST_ADDRESS;
        for (number, &(region, mapper)) in own.iter().enumerate().rev() {
            let pages = regions[region].len();
            let mut mapping = Mapping::new(process, region, pages, address);
            mapping.mapper = mapper;
            let accesses = said.phases.iter().flat_map(|phase| &phase.accesses);
            let own: Vec<f64> = accesses
                .filter(|access| access.region == said.regions[number].name)
                .map(|access| access.write.get())
                .collect();
            mapping.write = own.iter().sum::<f64>() / own.len().max(1) as f64;
            mapping.balance = balance_of(&regions[region], program::policy(said, number), scenario);
            mappings.push(mapping);
            address += (pages * PAGE_SIZE).next_multiple_of(HUGE) + HUGE;
        }
    }
    mappings
}

/// Permissions of NUMA balancing on a region under a policy. Shared memory may have a policy of its own, and the
/// implicit one does not count (`vma_policy_mof`).
fn balance_of(region: &Region, policy: &Policy, scenario: &Scenario) -> Balance {
    let asks = !region.anon && !region.file && scenario.kernel.numa_balancing.shmem_policy;
    match balance(policy, &scenario.machine) {
        Balance::Anywhere if asks => Balance::Never,
        balance => balance,
    }
}

/// The state before anything runs. `threads` are pid, tgid, process and the CPU that a thread is pinned to.
pub(crate) fn numa(scenario: &Scenario, mappings: &[Mapping], threads: &[(i32, i32, usize, Option<u32>)]) -> Numa {
    let (machine, cost) = (&scenario.machine, &scenario.machine.cost);
    let rules = numa_rules(&scenario.kernel);
    let row = |row: &Vec<u32>| row.iter().map(|&distance| distance.min(u8::MAX.into()) as u8).collect();
    let on = |nid: usize| {
        let cpus = machine.cpus.iter().zip(0..).filter(|(cpu, _)| cpu.node as usize == nid);
        cpus.map(|(_, number)| number).collect()
    };
    let nodes = machine.nodes.len();
    let distance = machine.distance.iter().map(row).collect();
    let topology = Topology::new(distance, (0..nodes).map(on).collect(), rules.config.distance_limit_included);
    let copy = |from: usize| (0..nodes).map(|to| clear_huge_on(machine, from, to)).collect();
    let costs = Costs {
        hint_fault: cost.hint_fault.0,
        scan_pte: cost.scan_pte.0,
        walk_pte: cost.walk_pte.0,
        tlb_flush: [cost.tlb_flush.0, cost.tlb_flush_per_cpu.0],
        migrate_page: cost.migrate_page.0,
        copy_huge: (0..nodes).map(copy).collect(),
    };
    let task = |&(pid, tgid, process, pinned): &(i32, i32, usize, Option<u32>)| {
        let own = scenario.processes[process].cpus.as_ref().map(|cpus| cpus.numbers().to_vec());
        Task::new(pid, tgid, process, pinned.map(|cpu| vec![cpu]).or(own))
    };
    let mm = |process: usize| {
        let own = mappings.iter().enumerate().filter(|(_, mapping)| mapping.process == process);
        let mappings: Vec<usize> = own.map(|(number, _)| number).collect();
        let vmas = vec![None; mappings.len()];
        let accesses: usize = scenario.processes[process].phases.iter().map(|phase| phase.accesses.len()).sum();
        let start = cost.process_start.0 + cost.process_access.0 * accesses as u64;
        Mm { mappings, vmas, start, ..Mm::default() }
    };
    let names = scenario.processes.iter().map(|process| process.name.clone()).collect();
    let mms = (0..scenario.processes.len()).map(mm).collect();
    Numa::new(rules, topology, costs, threads.iter().map(task).collect(), mms, names)
}

//! Automatic NUMA balancing: pages follow tasks, tasks follow pages.
//!
//! | kernel | here |
//! |---|---|
//! | `task_tick_numa`, `task_numa_work`, `change_prot_numa` | `scanner.rs`, `vma_filter.rs` |
//! | `task_scan_min` ... `update_task_scan_period` | `period.rs` |
//! | `do_numa_page`, `mpol_misplaced` | `fault.rs` |
//! | `should_numa_migrate_memory` | `filter.rs` |
//! | `migrate_misplaced_page` and its limit | `migrate.rs`, `rate_limit.rs` |
//! | `task_numa_fault`, `task_numa_group` | `statistics.rs`, `group.rs` |
//! | `task_numa_placement`, `update_numa_active_node_mask` | `placement.rs`, `active.rs` |
//! | `init_numa_topology_type`, `preferred_group_nid` | `topology.rs` |
//! | `task_numa_migrate`, `task_numa_find_cpu` | `task_migrate.rs`, `task_compare.rs` |
//! | `migrate_degrades_locality` | `load_balance.rs` |
//!
//! Marks of pages are in [`crate::mm::memory`], with the draw of the first accesses to them. Not modelled: memory
//! tiering, cpusets, memory cgroups.

mod active;
mod decisions;
mod fault;
mod filter;
mod group;
mod load_balance;
mod migrate;
mod period;
mod placement;
mod rate_limit;
mod rules;
mod scanner;
mod statistics;
mod task;
pub(crate) mod task_compare;
pub(crate) mod task_migrate;
#[cfg(test)]
pub(crate) mod task_migrate_tests;
mod topology;
mod vma_filter;

pub(crate) use decisions::{nid_of, write_group, write_period};
pub(crate) use group::Groups;
pub(crate) use rules::Rules;
pub(crate) use task::{Mm, Spent, Task};
pub(crate) use topology::Topology;

use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::sched::RunQueues;
use crate::time::{Ns, Ps};
use rate_limit::RateLimit;
use std::fmt::Write;
use task::{MEM, fault_index};
use vma_filter::VmaState;

/// Costs of the work, in picoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    /// A fault without a migration.
    pub hint_fault: Ps,
    /// Marking one entry.
    pub scan_pte: Ps,
    /// Looking at one that is not marked.
    pub walk_pte: Ps,
    /// Flushing TLBs after marks: always, and per CPU that runs the program.
    pub tlb_flush: [Ps; 2],
    /// A migration without the copy.
    pub migrate_page: Ps,
    /// Copying a huge page, by source node, then target node.
    pub copy_huge: Vec<Vec<Ps>>,
}

impl Costs {
    fn flush(&self, users: u32) -> Ps {
        self.tlb_flush[0] + self.tlb_flush[1] * u64::from(users.saturating_sub(1))
    }

    fn copy(&self, from: usize, to: usize) -> Ps {
        self.copy_huge[from][to]
    }
}

#[cfg(test)]
impl Costs {
    /// Next to nothing, on a machine of some nodes.
    pub(crate) fn least(nodes: usize) -> Costs {
        Costs {
            hint_fault: 1,
            scan_pte: 1,
            walk_pte: 1,
            tlb_flush: [0; 2],
            migrate_page: 1,
            copy_huge: vec![vec![1; nodes]; nodes],
        }
    }
}

/// Context of a hinting fault.
pub(crate) struct NumaCtx<'a> {
    pub kernel: &'a mut Kernel,
    pub memory: &'a mut AccessState,
    pub queues: &'a RunQueues,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Numa {
    pub rules: Rules,
    pub topology: Topology,
    pub costs: Costs,
    /// By number of the thread.
    pub tasks: Vec<Task>,
    /// By number of the process.
    pub mms: Vec<Mm>,
    /// Names of the processes.
    pub names: Vec<String>,
    pub groups: Groups,
    limit: RateLimit,
    /// Placements that would have divided by zero.
    pub divided_by_zero: u64,
}

/// 1000 times a node's part of a task's memory faults.
pub(crate) fn task_weight(topology: &Topology, task: &Task, nid: usize, limit: u8) -> i64 {
    topology.weight(nid, limit, task.total_numa_faults, |nid| task.faults(topology.nodes(), MEM, nid))
}

/// The same of its group; 0 without one.
pub(crate) fn group_weight(topology: &Topology, groups: &Groups, task: &Task, nid: usize, limit: u8) -> i64 {
    let group = groups.of(task);
    group.map_or(0, |group| topology.weight(nid, limit, group.total_faults, |nid| group.mem(nid)))
}

impl Numa {
    /// Nothing has run yet.
    pub(crate) fn new(
        rules: Rules,
        topology: Topology,
        costs: Costs,
        tasks: Vec<Task>,
        mms: Vec<Mm>,
        names: Vec<String>,
    ) -> Numa {
        let limit = RateLimit::new(topology.nodes());
        Numa { rules, topology, costs, tasks, mms, names, groups: Groups::default(), limit, divided_by_zero: 0 }
    }

    /// Resident pages of an address space.
    pub(crate) fn rss(&self, memory: &AccessState, mm: usize) -> u64 {
        let mappings = self.mms[mm].mappings.iter().map(|&mapping| &memory.mappings[mapping]);
        mappings.map(|of| memory.regions[of.region].resident(of.mapper)).sum()
    }

    /// The state of an area for the filter of 6.12.
    fn vma_of(&mut self, mm: usize, mapping: usize) -> Option<&mut Option<VmaState>> {
        let mm = &mut self.mms[mm];
        let at = mm.mappings.iter().position(|&of| of == mapping)?;
        mm.vmas.get_mut(at)
    }

    /// A task is on another CPU than before.
    pub(crate) fn task_moved(&mut self, memory: &AccessState, task: usize, cpu: u32, nodes: (usize, usize)) {
        let rss = self.rss(memory, self.tasks[task].mm);
        let of = &mut self.tasks[task];
        of.cpu = cpu;
        self.rules.update_scan_period(of, nodes.0, nodes.1, rss, self.groups.of(&of.clone()));
    }

    /// A tick updates the runtime of a task. `ran` is the share of the time since the last tick in which it ran,
    /// `decay` the weight of the time before.
    pub(crate) fn update_curr(&mut self, task: usize, now: Ns, ran: f64, decay: f64) {
        let of = &mut self.tasks[task];
        of.load_sum = of.load_sum * decay + ran * (1.0 - decay);
        if ran > 0.0 {
            (of.sum_exec, of.exec_start) = (of.exec / crate::time::PS_PER_NS, now);
        }
    }

    /// A task has ended. Its address space no longer counts it; its statistics leave its group when it is released.
    pub(crate) fn exit(&mut self, task: usize) {
        let of = &mut self.tasks[task];
        of.alive = false;
        self.mms[of.mm].users -= 1;
        self.groups.leave(of);
        of.numa_faults.clear();
        of.total_numa_faults = 0;
    }

    /// The NUMA lines of `/proc/PID/sched` (`proc_sched_show_task`, 4.x and newer).
    pub(crate) fn sched_text(&self, task: usize, node: usize) -> String {
        let (of, nodes) = (&self.tasks[task], self.topology.nodes());
        let group = self.groups.of(of);
        let preferred = of.numa_preferred_nid.map_or(-1, |nid| nid as i64);
        let mut text = String::new();
        let rows = [
            ("mm->numa_scan_seq", i64::from(self.mms[of.mm].numa_scan_seq)),
            ("numa_pages_migrated", of.numa_pages_migrated as i64),
            ("numa_preferred_nid", preferred),
            ("total_numa_faults", of.total_numa_faults as i64),
        ];
        for (name, value) in rows {
            let _ = writeln!(text, "{name:<45}:{value:>21}");
        }
        let gid = group.map_or(0, |group| group.gid);
        let _ = writeln!(text, "current_node={node}, numa_group_id={gid}");
        for nid in 0..nodes {
            let at = |private| fault_index(nodes, MEM, nid, private);
            let own = |private| of.numa_faults.get(at(private)).copied().unwrap_or(0);
            let theirs = |private| group.map_or(0, |group| group.faults[at(private)]);
            let (private, shared) = (own(true), own(false));
            let (of_group, shared_of_group) = (theirs(true), theirs(false));
            let _ = writeln!(
                text,
                "numa_faults node={nid} task_private={private} task_shared={shared} group_private={of_group} \
                 group_shared={shared_of_group}"
            );
        }
        text
    }
}

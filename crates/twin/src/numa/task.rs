//! State of a task and of an address space for NUMA balancing: the fields of `task_struct` and `mm_struct`.

use super::vma_filter::VmaState;
use crate::time::{Ns, Ps};

/// Index of a fault count: `task_faults_idx`. `s`: 0 memory, 1 CPU (both decayed), 2 memory buffer, 3 CPU buffer.
#[inline]
pub(crate) fn fault_index(nodes: usize, s: usize, nid: usize, private: bool) -> usize {
    2 * (s * nodes + nid) + usize::from(private)
}

/// Decayed faults in memory of a node.
pub(crate) const MEM: usize = 0;
/// Decayed faults by CPUs of a node.
pub(crate) const CPU: usize = 1;
/// Faults since the last placement.
pub(crate) const MEMBUF: usize = 2;
/// Faults since the last placement.
pub(crate) const CPUBUF: usize = 3;

/// Faults since the scan period was last set: `numa_faults_locality`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Locality {
    pub remote: u64,
    pub local: u64,
    pub failed: u64,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub pid: i32,
    pub tgid: i32,
    /// Number of its address space.
    pub mm: usize,
    /// CPU it runs on, or ran on last; set by the engine.
    pub cpu: u32,
    /// CPUs it may run on, ascending; `None`: all.
    pub allowed: Option<Vec<u32>>,
    /// It has started and has not ended.
    pub alive: bool,
    /// When it started.
    pub started: Ns,
    /// CPU time up to now.
    pub exec: Ps,
    /// CPU time as of the last tick: `se.sum_exec_runtime`.
    pub sum_exec: Ns,
    /// The last tick: `se.exec_start`.
    pub exec_start: Ns,
    /// Part of the time it ran lately, in thousandths of 47742: `load_sum`.
    pub load_sum: f64,
    pub numa_scan_seq: i32,
    /// Milliseconds.
    pub numa_scan_period: u64,
    /// Milliseconds.
    pub numa_scan_period_max: u64,
    pub numa_preferred_nid: Option<usize>,
    /// Jiffies.
    pub numa_migrate_retry: u64,
    /// CPU time at which the next scan is due, less the period.
    pub node_stamp: Ns,
    pub last_task_numa_placement: Ns,
    pub last_sum_exec_runtime: Ns,
    /// Number of its group.
    pub numa_group: Option<usize>,
    /// By [`fault_index`]; empty before the first fault.
    pub numa_faults: Vec<u64>,
    pub total_numa_faults: u64,
    pub locality: Locality,
    pub numa_pages_migrated: u64,
    /// 3.13: shared faults that still have to stay.
    pub numa_migrate_deferred: u32,
    /// Total cost.
    pub spent: Spent,
}

/// CPU time of the work for NUMA balancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub scan: Ps,
    /// With the migrations.
    pub fault: Ps,
    pub migrate: Ps,
}

impl Task {
    /// A task that has not started, on a machine of some nodes.
    pub(crate) fn new(pid: i32, tgid: i32, mm: usize, allowed: Option<Vec<u32>>) -> Task {
        Task {
            pid,
            tgid,
            mm,
            cpu: 0,
            allowed,
            alive: false,
            started: 0,
            exec: 0,
            sum_exec: 0,
            exec_start: 0,
            load_sum: 0.0,
            numa_scan_seq: 0,
            numa_scan_period: 0,
            numa_scan_period_max: 0,
            numa_preferred_nid: None,
            numa_migrate_retry: 0,
            node_stamp: 0,
            last_task_numa_placement: 0,
            last_sum_exec_runtime: 0,
            numa_group: None,
            numa_faults: Vec::new(),
            total_numa_faults: 0,
            locality: Locality::default(),
            numa_pages_migrated: 0,
            numa_migrate_deferred: 0,
            spent: Spent::default(),
        }
    }

    /// True if it may run on a CPU.
    pub(crate) fn may_run_on(&self, cpu: u32) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.binary_search(&cpu).is_ok())
    }

    /// Decayed faults of a node, private and shared; `s` is [`MEM`] or [`CPU`].
    pub(crate) fn faults(&self, nodes: usize, s: usize, nid: usize) -> u64 {
        let at = fault_index(nodes, s, nid, false);
        self.numa_faults.get(at..at + 2).map_or(0, |both| both[0] + both[1])
    }
}

/// An address space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mm {
    /// CPU time of its first thread before the workload.
    pub start: Ps,
    /// Its threads have a policy of their own by which they allocate, under which nothing is marked (`vma_policy_mof`).
    pub by_policy: bool,
    /// Its mappings among all, by ascending address.
    pub mappings: Vec<usize>,
    /// Jiffies; 0 before the first attempt.
    pub numa_next_scan: u64,
    /// Time of the placement that set it: a placement of an earlier time that is simulated later does not change it.
    pub next_scan_said: Ns,
    /// Address at which the next scan begins.
    pub numa_scan_offset: u64,
    /// Completed passes, those of a scan under way included.
    pub numa_scan_seq: i32,
    /// When the last scan ends, and the passes that were completed before it.
    pub scan: (Ns, i32),
    /// Tasks that use it.
    pub users: u32,
    /// 6.12: by mapping, as `mappings`.
    pub vmas: Vec<Option<VmaState>>,
}

impl Mm {
    /// Completed passes that are visible to tasks: during a scan other tasks fault on pages that it has marked already.
    pub(crate) fn seq_at(&self, now: Ns) -> i32 {
        if now < self.scan.0 { self.scan.1 } else { self.numa_scan_seq }
    }
}

//! One interval of a machine: plain data for whoever draws it.

use super::Waited;

/// One interval of a machine.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Its end, in nanoseconds of the trace clock.
    pub at: u64,
    /// Its length in seconds; `None`: it is the first, and has no rates.
    pub seconds: Option<f64>,
    /// Pressure stall information of the machine.
    pub pressure: Pressure,
    /// Counters of the machine.
    pub system: System,
    /// NUMA nodes, ascending.
    pub nodes: Vec<Node>,
    /// Cgroups, by key.
    pub cgroups: Vec<Cgroup>,
    /// Processes, by pid.
    pub processes: Vec<Process>,
    /// Events that the kernel lost; gaps of unknown size count as one.
    pub lost: u64,
}

/// Shares of the time, in percent, in which some or all tasks that could run waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Some task waited for memory.
    pub memory_some: Option<f64>,
    /// All waited for memory.
    pub memory_full: Option<f64>,
    /// Some task waited for I/O.
    pub io_some: Option<f64>,
    /// All waited for I/O.
    pub io_full: Option<f64>,
    /// Some task waited for a CPU.
    pub cpu_some: Option<f64>,
}

/// Counters of the machine: pages per second, where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct System {
    /// Memory in bytes.
    pub total: Option<u64>,
    /// Memory in bytes that can be had without swapping (`MemAvailable`).
    pub available: Option<u64>,
    /// Scanned by kswapd.
    pub scanned_kswapd: Option<f64>,
    /// Reclaimed by kswapd.
    pub stolen_kswapd: Option<f64>,
    /// Scanned by tasks in direct reclaim.
    pub scanned_direct: Option<f64>,
    /// Reclaimed by tasks in direct reclaim.
    pub stolen_direct: Option<f64>,
    /// Scanned for limits of cgroups: what all scanned beyond kswapd, direct and other reclaim of the machine.
    pub scanned_cgroup: Option<f64>,
    /// Reclaimed for limits of cgroups, likewise.
    pub stolen_cgroup: Option<f64>,
    /// Times per second that a task entered direct reclaim.
    pub allocstalls: Option<f64>,
    /// Times per second that a task entered direct compaction.
    pub compact_stalls: Option<f64>,
    /// Refaulted anonymous pages.
    pub refaults_anon: Option<f64>,
    /// Refaulted file pages; of kernels before 5.9 those of both kinds.
    pub refaults_file: Option<f64>,
    /// Read from swap.
    pub swapped_in: Option<f64>,
    /// Written to swap.
    pub swapped_out: Option<f64>,
    /// Major faults per second.
    pub major_faults: Option<f64>,
    /// Share of allocations, in percent, on the node of the CPU.
    pub local: Option<f64>,
    /// NUMA hinting faults per second.
    pub hint_faults: Option<f64>,
    /// Share of the hinting faults, in percent, that were local.
    pub hint_local: Option<f64>,
    /// Migrated by NUMA balancing.
    pub migrated: Option<f64>,
    /// Tasks per second that NUMA balancing moved to another node.
    pub moves: Option<f64>,
    /// Bytes of vmalloc space in use.
    pub vmalloc: Option<u64>,
    /// Purges of vmalloc areas per second.
    pub purges: Option<f64>,
    /// Areas purged per second.
    pub purged: Option<f64>,
    /// Processes per second that the OOM killer killed.
    pub kills: Option<f64>,
}

/// A NUMA node: pages per second, where nothing else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Node {
    /// Number.
    pub id: u32,
    /// Free pages.
    pub free: Option<u64>,
    /// Scanned by its kswapd.
    pub scanned: Option<f64>,
    /// Reclaimed by its kswapd.
    pub stolen: Option<f64>,
    /// Times per second that its kswapd was woken.
    pub wakes: Option<f64>,
    /// Share of the time, in percent, that its kswapd was awake.
    pub awake: Option<f64>,
    /// Refaulted pages.
    pub refaults: Option<f64>,
    /// Share of the allocations on it, in percent, by CPUs of its own.
    pub local: Option<f64>,
    /// Allocations that were meant for another node (`numa_miss`).
    pub misses: Option<f64>,
}

/// A memory cgroup: pages per second, where nothing else is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cgroup {
    /// Path below the mount.
    pub key: String,
    /// Share of the time, in percent, in which some task in it waited for memory.
    pub some: Option<f64>,
    /// All tasks in it waited.
    pub full: Option<f64>,
    /// Time that its tasks waited in reclaim, compaction and for writeback, in percent of the interval; 100 for each task
    /// that waited all the time.
    pub waited: Option<f64>,
    /// Bytes in use.
    pub usage: Option<u64>,
    /// Limit in bytes; `None`: none, or it is not known.
    pub limit: Option<u64>,
    /// Times per second that it hit its limit.
    pub hits: Option<f64>,
    /// Refaulted pages.
    pub refaults: Option<f64>,
    /// Processes per second that were killed at its limit.
    pub kills: Option<f64>,
}

/// A process, or a task whose process is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Number.
    pub pid: i32,
    /// Name; empty if it is not known.
    pub comm: String,
    /// Its cgroup.
    pub cgroup: Option<String>,
    /// What its tasks waited for; `None` without events.
    pub waited: Option<Waited>,
    /// Time that its tasks waited, in percent of the interval.
    pub share: Option<f64>,
    /// Major faults per second.
    pub major_faults: Option<f64>,
    /// Time that it waited for block I/O, in percent of the interval.
    pub io: Option<f64>,
    /// Resident bytes.
    pub resident: Option<u64>,
}

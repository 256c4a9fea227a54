//! Common part of all designs of the NUMA counters.

use super::ReadCost;
use crate::hw::CounterType;
use std::fmt::Debug;

/// Number of NUMA counters.
pub const NUMA_ITEMS: usize = 6;

/// A NUMA counter (`enum numa_stat_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum NumaItem {
    /// Allocated from the requested node.
    Hit = 0,
    /// Allocated from this node although another was requested.
    Miss = 1,
    /// Requested here, allocated on another node.
    Foreign = 2,
    /// Interleave policy, on the node it chose.
    Interleave = 3,
    /// The CPU is of this node.
    Local = 4,
    /// The CPU is of another node.
    Other = 5,
}

/// A file that shows NUMA counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `/proc/vmstat`.
    Vmstat,
    /// `/proc/zoneinfo`.
    Zoneinfo,
    /// `nodeN/numastat` or `nodeN/vmstat` of a node.
    Node,
}

/// A design of the NUMA counters. Zones are numbers, CPUs too; `online` lists the CPUs that run.
pub trait NumaCounters: Debug + Send {
    /// Cost of an increment; `None` if nothing is counted.
    fn counter_type(&self) -> Option<CounterType>;

    /// Counts 1; true if that wrote the zone's shared words.
    fn count(&mut self, zone: usize, cpu: u32, item: NumaItem) -> bool;

    /// The same as counting `n` times.
    fn run(&mut self, zone: usize, cpu: u32, item: NumaItem, n: u64);

    /// Counts until the shared words are written, the one that does it included; `None` if they never are.
    fn until_shared(&self, zone: usize, cpu: u32, item: NumaItem) -> Option<u64>;

    /// Counts from one write of the shared words to the next; `None` if there is none.
    fn period(&self, zone: usize) -> Option<u64>;

    /// The threshold of the zone's other counters has changed.
    fn zone_threshold(&mut self, zone: usize, threshold: u32);

    /// Periodic fold of a CPU's counts of a zone; true if that wrote the shared words.
    fn fold(&mut self, zone: usize, cpu: u32) -> bool;

    /// True if the periodic fold of a CPU must not stop.
    fn needs_update(&self, cpu: u32) -> bool;

    /// The CPU leaves: nothing of it may remain uncounted in a zone's shared words. True if that wrote them.
    fn offline(&mut self, zone: usize, cpu: u32) -> bool;

    /// Done before a file is read.
    fn before_read(&mut self, file: File, zones: &[usize], online: &[u32], cost: &mut ReadCost);

    /// Counters of a zone as zoneinfo and the nodes' files show them.
    fn zone(&self, zone: usize, online: &[u32], cost: &mut ReadCost) -> [u64; NUMA_ITEMS];

    /// Counters of the system as `/proc/vmstat` shows them.
    fn system(&self, cost: &mut ReadCost) -> [u64; NUMA_ITEMS];

    /// Counts of a zone, including all differentials.
    fn snapshot(&self, zone: usize, online: &[u32]) -> [u64; NUMA_ITEMS];

    /// Totals of the system that are negative; the next refresh warns of them.
    fn negative(&self) -> Vec<NumaItem>;

    /// `vm.numa_stat`: switches counting. The message is for the kernel log; `None` if there is no such switch or it
    /// has this value already.
    fn set_enabled(&mut self, enabled: bool, online: &[u32]) -> Option<&'static str>;
}

impl NumaItem {
    /// All, in the kernel's order.
    pub const ALL: [NumaItem; NUMA_ITEMS] =
        [NumaItem::Hit, NumaItem::Miss, NumaItem::Foreign, NumaItem::Interleave, NumaItem::Local, NumaItem::Other];

    /// Name in zoneinfo and vmstat.
    pub fn name(self) -> &'static str {
        ["numa_hit", "numa_miss", "numa_foreign", "numa_interleave", "numa_local", "numa_other"][self as usize]
    }

    /// Name in `nodeN/numastat`.
    pub fn numastat_name(self) -> &'static str {
        ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"][self as usize]
    }
}

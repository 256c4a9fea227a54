//! The page allocator: zones, watermarks, zonelists, buddy lists, per-CPU lists, NUMA policies.
//!
//! A zone's number is node x [`ZONES`](crate::frame::ZONES) + kind, so that unpopulated zones, which the kernel prints too, have one.

mod allocate;
mod buddy;
mod capture;
pub(crate) mod dirty_limits;
mod fallback;
mod free_by_type;
mod pageset;
mod pcp_high;
mod policy;
mod request;
mod reserve;
mod rules;
mod watermark;
mod zone;
mod zonelist;

pub use allocate::Allocated;
pub(crate) use allocate::Search;
use capture::Capture;
use dirty_limits::Limits;
pub use free_by_type::FreeBlocksByType;
pub use pageset::PerCpuState;
pub use pcp_high::PerCpuPages;
pub use policy::{NodeMask, Policy};
pub(crate) use request::TaskDirty;
pub use request::{AllocationFailure, Caller, Context, NodeReclaimRequest, NotAllocated, Request};
pub use rules::{NodeOrder, PerCpuHigh, Rules, StealPolicy};
pub use watermark::Marks;
pub use zone::{HUGE_ORDER, MAX_ORDER, Zone};

use crate::frame::{Frames, Migratetype, Pfn, State};
use crate::hw::Machine;
use crate::vmstat::ZoneSize;

/// All page frames, zones and lists.
#[derive(Clone, Debug)]
pub struct PageAllocator {
    /// Page frames.
    pub frames: Frames,
    /// All zones by number.
    pub zones: Vec<Zone>,
    /// Migratetype of each pageblock.
    blocks: Vec<Migratetype>,
    /// Pageblocks that the allocator was given as a whole, where some are kept in reserve.
    whole: Vec<bool>,
    /// By node: zone numbers in the order in which they are tried.
    zonelists: Vec<Vec<u32>>,
    /// By zone number (empty for unpopulated zones), then CPU.
    pagesets: Vec<Vec<PerCpuPages>>,
    rules: Rules,
    /// How often anything has been moved to or from the buddy lists.
    lock_count: u64,
    /// Block that a task in direct compaction needs.
    capture: Option<Capture>,
    /// Captured blocks, by the task that has not picked them up yet.
    captured: Vec<(i32, Pfn)>,
    /// Dirty limits; `None`: there are none.
    pub dirty_limits: Option<Limits>,
}

impl PageAllocator {
    /// The allocator after boot: all memory that is not reserved is free.
    pub fn new(machine: &Machine, rules: Rules) -> PageAllocator {
        let zones = zone::of_machine(machine);
        let blocks = machine.end_pfn().div_ceil(1 << rules.pageblock_order) as usize;
        // With fewer pageblocks than types the kernel does not group pages by type.
        let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
        let grouped = managed >= (Migratetype::ALL.len() as u64 + 1) << rules.pageblock_order;
        let first = if grouped { Migratetype::Movable } else { Migratetype::Unmovable };
        let mut allocator = PageAllocator {
            frames: Frames::new(machine.end_pfn()),
            blocks: vec![first; blocks],
            whole: vec![false; if rules.migrate_reserve { blocks } else { 0 }],
            zonelists: zonelist::of_machine(machine, &zones, rules.node_order),
            pagesets: zones
                .iter()
                .map(|zone| Vec::with_capacity(if zone.populated() { machine.cpus.len() } else { 0 }))
                .collect(),
            zones,
            rules,
            lock_count: 0,
            capture: None,
            captured: Vec::new(),
            dirty_limits: None,
        };
        for zone in 0..allocator.zones.len() {
            for range in zone::managed_ranges(machine, &allocator.zones[zone]) {
                allocator.note_whole(&range);
                allocator.give(zone, range);
            }
        }
        watermark::set_up(&mut allocator.zones, &allocator.rules);
        allocator.set_reserves();
        for (zone, sets) in allocator.pagesets.iter_mut().enumerate() {
            if allocator.zones[zone].populated() {
                sets.resize(machine.cpus.len(), PerCpuPages::default());
            }
        }
        allocator
    }

    /// Changes rules that decide the watermarks, and these and the reserves with them.
    pub(crate) fn set_marks(&mut self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules);
        watermark::set_up(&mut self.zones, &self.rules);
        self.set_reserves();
    }

    /// Takes a free block of any type out of the buddy lists without an owner. False if there is none.
    pub(crate) fn occupy(&mut self, zone: usize, order: u32) -> bool {
        // Blocks for unmovable pages were counted as free.
        let own = self.take_smallest(zone, order, Migratetype::Movable).map(|page| (Migratetype::Movable, page));
        let block = own.or_else(|| self.take_any(zone, order));
        block.map(|(of, page)| self.frames.set(page, State::Allocated, order, of, zone)).is_some()
    }

    /// Takes a block of a type, or of another one if there is none, as if it had been allocated. It takes no time and is not
    /// counted.
    pub(crate) fn take_for(&mut self, zone: usize, order: u32, migratetype: Migratetype) -> Option<Pfn> {
        let own = self.take_smallest(zone, order, migratetype).map(|page| (migratetype, page));
        let (of, page) = own.or_else(|| self.take_any(zone, order))?;
        self.frames.set(page, State::Allocated, order, of, zone);
        Some(page)
    }

    /// Removes a free block of any type from the lists.
    fn take_any(&mut self, zone: usize, order: u32) -> Option<(Migratetype, Pfn)> {
        Migratetype::ALL.into_iter().find_map(|of| Some((of, self.take_smallest(zone, order, of)?)))
    }

    /// log2 of the pages of the largest block.
    pub fn max_order(&self) -> u32 {
        self.rules.max_order
    }

    /// log2 of the pages of a pageblock.
    pub fn pageblock_order(&self) -> u32 {
        self.rules.pageblock_order
    }

    /// Numbers of the populated zones.
    pub fn populated(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.zones.len()).filter(|&zone| self.zones[zone].populated())
    }

    /// A CPU's list of pages of a zone; `None` if the zone is not populated.
    pub fn pageset(&self, zone: usize, cpu: u32) -> Option<&PerCpuPages> {
        self.pagesets[zone].get(cpu as usize)
    }

    /// The order in which the zones are tried for a node.
    pub fn zonelist(&self, node: usize) -> &[u32] {
        &self.zonelists[node]
    }

    /// Migratetype of the pageblock of a page.
    pub fn block_type(&self, page: Pfn) -> Migratetype {
        self.blocks[(page >> self.rules.pageblock_order) as usize]
    }

    /// Pages on the free lists of a zone, counted there and not by a counter.
    pub fn free_pages(&self, zone: usize) -> u64 {
        self.free_pages_from(zone, 0)
    }

    /// Pages on the free lists of a zone in blocks of at least an order.
    pub fn free_pages_from(&self, zone: usize, order: u32) -> u64 {
        (order..=MAX_ORDER).map(|order| self.free_blocks(zone, order) << order).sum()
    }

    /// Inputs of the counters' thresholds, by zone number.
    pub fn zone_sizes(&self) -> Vec<ZoneSize> {
        let of = |zone: &Zone| {
            let Marks { min, low, high, .. } = zone.marks;
            ZoneSize { node: zone.node, present: zone.present, managed: zone.managed, min, low, high }
        };
        self.zones.iter().map(of).collect()
    }

    /// Free blocks of an order of a zone, as `/proc/buddyinfo` shows them.
    pub fn free_blocks(&self, zone: usize, order: u32) -> u64 {
        self.zones[zone].free[order as usize].iter().map(|list| u64::from(list.len())).sum()
    }

    /// The number of times that anything moved to or from the buddy lists.
    pub(crate) fn lock_count(&self) -> u64 {
        self.lock_count
    }
}

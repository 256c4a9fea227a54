//! Compaction: pages are moved to one end of a zone so that blocks of higher orders become free at the other;
//! mm/compaction.c, 5.14 to 6.12; before 3.7 in [`early`].
//!
//! Two scanners walk a zone: one isolates movable pages from its start ([`scan`]), the other free pages from its end,
//! and a run is complete when they meet ([`zone`]). A task compacts for itself when it finds no block ([`direct`]),
//! kcompactd in the background ([`kcompactd`]), on request or by itself ([`proactive`]). After failures it is deferred
//! ([`defer`]).
//!
//! Not modelled: contention, migration of huge pages, compaction requested from user space,
//! retries of failed migrations (6.3 and later). Checked by tests here and by `tests/reclaim.rs`; against guests in
//! docs/fidelity.md (`reclaim-high-order`).

mod defer;
mod direct;
pub(crate) mod early;
mod fast;
mod kcompactd;
mod migrate;
mod proactive;
mod scan;
mod skip;
mod zone;

pub(crate) use direct::{Compact, Priority, Tries};
pub(crate) use kcompactd::Kcompactd;
pub(crate) use proactive::INTERVAL;

use crate::frame::ZoneKind;
use crate::mm::kernel::Kernel;
use crate::mm::vmscan::{COSTLY_ORDER, Poll, TaskCtx, compact_gap};
use crate::page_alloc::{HUGE_ORDER, MAX_ORDER, PageAllocator};
use crate::probe::Task;
use crate::vmstat::ZoneItem;
use defer::Deferral;
use mmtwin_event::value::{CompactResult, Zone as ZoneName};
use mmtwin_event::vocabulary::MmCompactionSuitable;

/// Pages of a pageblock; other sizes are for [`early`] compaction only.
const BLOCK: u64 = 1 << HUGE_ORDER;

/// Result of a compaction, in the kernel's order (`enum compact_result`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Memory is short rather than fragmented; only in events.
    NotSuitableZone = 0,
    /// There is too little free memory, or there are free blocks enough.
    Skipped = 1,
    Deferred = 2,
    /// A pageblock was scanned and there is no block yet; only in events.
    NoSuitablePage = 3,
    Continue = 4,
    /// The whole zone was scanned.
    Complete = 5,
    /// The scanners met before.
    PartialSkipped = 6,
    /// There was no free page to move to.
    Contended = 7,
    Success = 8,
}

/// Compaction state of a zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zone {
    /// Where the migration scanner continues: asynchronous, and synchronous (`compact_cached_migrate_pfn`).
    migrate: [u64; 2],
    /// Where the free scanner continues (`compact_cached_free_pfn`); beyond the zone: at its end.
    free: u64,
    /// The first pageblocks of both scanners when those that held nothing were forgotten last (`compact_init_*_pfn`).
    first_migrate: u64,
    first_free: u64,
    /// End in the kernel whose recorded state the run starts with: it may be in memory of other zones.
    pub end: u64,
    /// The next quiet moment forgets which pageblocks held nothing (`compact_blockskip_flush`).
    flush: bool,
    deferral: Deferral,
}

/// Request to the kcompactd of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    order: u32,
    highest: Option<ZoneKind>,
    works: bool,
}

/// Compaction state of the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compaction {
    /// By number.
    pub zones: Vec<Zone>,
    nodes: Vec<Node>,
    /// By pageblock: there was nothing to take (`PB_migrate_skip`).
    skip: Vec<bool>,
    /// Nodes whose kcompactd is to be woken.
    pub wakes: Vec<usize>,
}

/// A task that compacts, by the rules of the kernel's generation.
#[derive(Clone, Debug)]
pub(crate) enum TaskCompact {
    Today(Compact),
    Early(early::Direct),
}

impl TaskCompact {
    /// Continues; at the end, the result.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        match self {
            TaskCompact::Today(compact) => compact.step(ctx),
            TaskCompact::Early(compact) => compact.step(ctx),
        }
    }
}

impl Compaction {
    /// Of an allocator's zones, nodes and pageblocks; `early`: before 3.7.
    pub(crate) fn new(alloc: &PageAllocator, nodes: usize, blocks: usize, early: bool) -> Compaction {
        let deferral = if early { Deferral::default() } else { Deferral::new(alloc.max_order()) };
        let zone = Zone { deferral, ..Zone::default() };
        Compaction {
            zones: vec![zone; alloc.zones.len()],
            nodes: vec![Node::default(); nodes],
            skip: vec![false; blocks],
            wakes: Vec::new(),
        }
    }
}

impl Kernel {
    /// `compaction_suitable`: whether a zone has too little memory for compaction, or blocks already.
    pub(crate) fn compaction_suitable(
        &mut self,
        (cpu, task): (u32, Task),
        zone: usize,
        order: u32,
        highest: ZoneKind,
    ) -> Status {
        let status = self.is_suitable(zone, order, highest);
        if status == Status::Success && self.reclaim.rules.finishes_pageblocks {
            // From 6.5 on that is found out before.
            return status;
        }
        let of = &self.alloc.zones[zone];
        let event = MmCompactionSuitable {
            node: of.node as i32,
            zone: ZoneName(of.kind as u32),
            order: order as i32,
            ret: CompactResult(status as u32),
        };
        let at = self.now(cpu);
        self.probe.write(at, cpu, task, &event, b"");
        if status == Status::NotSuitableZone { Status::Skipped } else { status }
    }

    /// Page frames from the first of a zone to its last.
    fn compacted_span(&self, zone: usize) -> (u64, u64) {
        let of = &self.alloc.zones[zone];
        (of.start_pfn, (of.start_pfn + of.spanned).max(self.compaction.zones[zone].end))
    }

    /// True if a pageblock is memory (`pageblock_pfn_to_page`).
    fn is_block(&self, zone: usize, block: u64) -> bool {
        let of = &self.alloc.zones[zone];
        block * BLOCK < of.start_pfn + of.spanned
    }

    fn is_suitable(&self, zone: usize, order: u32, highest: ZoneKind) -> Status {
        let of = &self.alloc.zones[zone];
        let free = self.stat.plain(zone, ZoneItem::FreePages);
        if of.watermark_ok(order, of.marks.min, free, highest, Default::default()) {
            return Status::Success;
        }
        let mark = if order > COSTLY_ORDER { of.marks.low } else { of.marks.min } + compact_gap(order);
        if order > MAX_ORDER || !of.watermark_ok(0, mark, free, highest, Default::default()) {
            return Status::Skipped;
        }
        let blocks: Vec<u64> = (0..=MAX_ORDER).map(|at| self.alloc.free_blocks(zone, at)).collect();
        let most = self.reclaim.rules.extfrag_threshold;
        let too_few = order > COSTLY_ORDER && (0..=most).contains(&fragmentation_index(&blocks, order));
        if too_few { Status::NotSuitableZone } else { Status::Continue }
    }
}

/// `fragmentation_index`: from 0, memory is short, to 1000, it is scattered; -1000: there is a block. `blocks` are free
/// ones by order.
fn fragmentation_index(blocks: &[u64], order: u32) -> i64 {
    let all: u64 = blocks.iter().sum();
    let free: u64 = (0..).zip(blocks).map(|(at, blocks): (u32, &u64)| blocks << at).sum();
    match () {
        () if all == 0 => 0,
        () if blocks[order as usize..].iter().any(|&blocks| blocks > 0) => -1000,
        () => 1000 - ((1000 + free * 1000 / (1 << order)) / all) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Migratetype, State};
    use crate::hw::{Cpu, Machine, PageCosts};
    use crate::mm::kernel::KernelRules;
    use crate::page_alloc::{Caller, Policy, Request, Rules};
    use crate::probe::Probe;
    use crate::vmstat::{Design, Dialect, VmStatRules};

    /// A kernel on one CPU with a node of 256 MiB, which is in zones DMA and DMA32.
    pub(super) fn kernel() -> Kernel {
        let machine = Machine::pc(&[1 << 16], 0, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        let costs = PageCosts::of_work(100.0);
        let (design, dialect) = (Design::Off, Dialect::V6_1);
        let early_drift_marks = false;
        let vmstat =
            VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, early_drift_marks, dialect };
        let rules = KernelRules { alloc: Rules::V6_1, vmstat, reclaim: crate::mm::vmscan::Rules::V6_1 };
        Kernel::new(machine, costs, rules, Probe::off()).unwrap()
    }

    #[test]
    fn a_task_takes_the_block_that_it_frees() {
        let mut kernel = kernel();
        let task = Task { pid: 7, tgid: 7 };
        let mut caller = Caller::new(0, task, Policy::Default);
        let request = Request::KERNEL.of_order(4);
        let page = kernel.allocate(&mut caller, &request).unwrap();
        let zone = kernel.alloc.frames.zone(page);
        let free = kernel.stat.plain(zone, ZoneItem::FreePages);
        // A block in another zone is left.
        kernel.alloc.begin_capture(zone - 1, 4, Migratetype::Unmovable);
        let other = kernel.allocate(&mut caller, &request).unwrap();
        kernel.free(0, task, other).unwrap();
        assert!(!kernel.alloc.end_capture(7));
        // So is one in a pageblock for movable memory.
        let movable = kernel.allocate(&mut caller, &Request::USER.of_order(4)).unwrap();
        kernel.alloc.begin_capture(zone, 4, Migratetype::Unmovable);
        let free = free - kernel.stat.plain(zone, ZoneItem::FreePages);
        kernel.free(0, task, movable).unwrap();
        assert!(!kernel.alloc.end_capture(7) && free == 16);
        let free = kernel.stat.plain(zone, ZoneItem::FreePages);
        kernel.alloc.begin_capture(zone, 4, Migratetype::Unmovable);
        kernel.free(0, task, page).unwrap();
        assert!(kernel.alloc.has_captured() && kernel.alloc.end_capture(7) && !kernel.alloc.has_captured());
        assert_eq!((kernel.alloc.frames.state(page), kernel.alloc.frames.order(page)), (State::Allocated, 4));
        assert_eq!(kernel.stat.plain(zone, ZoneItem::FreePages), free, "it is not free");
        let allocated = kernel.stat.events.allocated;
        kernel.awaited = Some(request);
        assert_eq!((kernel.allocate(&mut caller, &request), kernel.awaited), (Ok(page), None));
        assert_eq!(kernel.stat.events.allocated, allocated, "it is not counted");
    }

    #[test]
    fn memory_is_short_or_scattered() {
        // 10 single pages are too few for 16; 4000 are enough.
        assert_eq!(fragmentation_index(&[10, 0, 0, 0, 0], 4), 1000 - 1625 / 10);
        assert_eq!(fragmentation_index(&[4000, 0, 0, 0, 0], 4), 1000 - 251_000 / 4000);
        assert_eq!(fragmentation_index(&[1, 0, 0, 1, 0], 4), 1000 - 1562 / 2);
        assert_eq!(fragmentation_index(&[1, 0, 0, 0, 1], 4), -1000);
        assert_eq!(fragmentation_index(&[0; 5], 4), 0);
    }
}

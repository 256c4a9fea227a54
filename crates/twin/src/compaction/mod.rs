//! Compaction: pages are moved to one end of a zone so that blocks of higher orders become free at the other;
//! mm/compaction.c, 5.14 to 6.12.
//!
//! Two scanners walk a zone: one takes pages of processes and files from its begin ([`scan`]), the other free pages from
//! its end, and they end when they meet ([`zone`]). A task does so for itself when it finds no block ([`direct`]), and
//! kcompactd in the background ([`kcompactd`]). What did not help is put off ([`defer`]).
//!
//! Left out: the fast search for pages to move (so more of them are looked at than in the kernel), contention, proactive compaction, huge pages as what is moved, zones that are compacted from user space. Checked by
//! tests here and by `tests/reclaim.rs`; against guests in docs/fidelity.md (`reclaim-high-order`).

mod defer;
mod direct;
mod fast;
mod kcompactd;
mod scan;
mod zone;

pub(crate) use direct::{Compact, Priority, Tries};
pub(crate) use kcompactd::Kcompactd;

use crate::alloc::{MAX_ORDER, PAGEBLOCK_ORDER, ZoneKind};
use crate::kernel::Kernel;
use crate::probe::Task;
use crate::reclaim::{COSTLY_ORDER, compact_gap};
use crate::vmstat::ZoneItem;
use defer::Deferral;
use mmtwin_event::value::{CompactResult, Zone as ZoneName};
use mmtwin_event::vocabulary::MmCompactionSuitable;

/// Pages of a pageblock.
const BLOCK: u64 = 1 << PAGEBLOCK_ORDER;
/// Fragmentation below which free memory is too little for compaction, and not too scattered (`vm.extfrag_threshold`).
const EXTFRAG_THRESHOLD: i64 = 500;

/// How a compaction came out, in the kernel's order (`enum compact_result`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// There is too little free memory, or there are free blocks enough.
    Skipped = 1,
    Deferred = 2,
    Continue = 4,
    /// The whole zone was scanned.
    Complete = 5,
    /// The scanners met before.
    PartialSkipped = 6,
    /// There was no free page to move to.
    Contended = 7,
    Success = 8,
}

/// What compaction remembers of a zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zone {
    /// Where the scanner of pages goes on: when nobody waits, and else (`compact_cached_migrate_pfn`).
    migrate: [u64; 2],
    /// Where the scanner of free pages goes on; 0: at the end.
    free: u64,
    /// The next quiet moment forgets which pageblocks held nothing (`compact_blockskip_flush`).
    flush: bool,
    deferral: Deferral,
}

/// What was asked of the kcompactd of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    order: u32,
    highest: Option<ZoneKind>,
    works: bool,
}

/// What the kernel knows for compaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compaction {
    /// By number.
    zones: Vec<Zone>,
    nodes: Vec<Node>,
    /// By pageblock: there was nothing to take (`PB_migrate_skip`).
    skip: Vec<bool>,
    /// Nodes whose kcompactd is to be woken.
    pub wakes: Vec<usize>,
}

impl Compaction {
    /// Of zones, nodes and pageblocks.
    pub(crate) fn new(zones: usize, nodes: usize, blocks: usize) -> Compaction {
        let zone = Zone { deferral: Deferral::new(), ..Zone::default() };
        Compaction {
            zones: vec![zone; zones],
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
        let of = &self.alloc.zones[zone];
        let event = MmCompactionSuitable {
            node: of.node as i32,
            zone: ZoneName(of.kind as u32),
            order: order as i32,
            ret: CompactResult(status as u32),
        };
        let at = self.now(cpu);
        self.probe.write(at, cpu, task, &event, b"");
        status
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
        let too_few = order > COSTLY_ORDER && (0..=EXTFRAG_THRESHOLD).contains(&fragmentation_index(&blocks, order));
        if too_few { Status::Skipped } else { Status::Continue }
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

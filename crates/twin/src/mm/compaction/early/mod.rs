//! Compaction before 3.7 (2.6.36 to 3.5).
//!
//! Every run begins at the ends of its zone, not where earlier ones stopped ([`pass`]). It needs single pages above the
//! low mark, and ends when the zone has a block above it. A task compacts for itself when it finds no block
//! ([`direct`]), and from 3.4 on kswapd before it sleeps ([`node`]). After failures compaction is deferred
//! ([`crate::mm::compaction::defer`]), before 3.4 for all orders. Not modelled: waiting for too many isolated pages.
//! Checked by a test of [`pass`] and by `tests/historic_reclaim.rs`.

mod direct;
mod node;
mod pass;

pub(crate) use direct::Direct;
pub(crate) use node::Node;

use super::{Status, fragmentation_index};
use crate::frame::ZoneKind;
use crate::mm::kernel::Kernel;
use crate::page_alloc::MAX_ORDER;
use crate::vmstat::ZoneItem;

impl Kernel {
    /// `compaction_suitable`: whether a zone has too little memory for compaction, or blocks already.
    pub(crate) fn early_suitable(&self, zone: usize, order: u32) -> Status {
        let mark = self.alloc.zones[zone].marks.low + (2 << order);
        if !self.early_above(zone, 0, mark) {
            return Status::Skipped;
        }
        let blocks: Vec<u64> = (0..=MAX_ORDER).map(|at| self.alloc.free_blocks(zone, at)).collect();
        match fragmentation_index(&blocks, order) {
            index if (0..=self.reclaim.rules.extfrag_threshold).contains(&index) => Status::Skipped,
            -1000 if self.early_above(zone, order, mark) => Status::Success,
            _ => Status::Continue,
        }
    }

    /// A zone is above a mark, for any caller.
    fn early_above(&self, zone: usize, order: u32, mark: u64) -> bool {
        let free = self.stat.plain(zone, ZoneItem::FreePages);
        self.alloc.zones[zone].watermark_ok(order, mark, free, ZoneKind::Dma, Default::default())
    }

    /// A request for a block would find one in a zone.
    pub(crate) fn early_has_block(&self, zone: usize, order: u32) -> bool {
        self.early_above(zone, order, self.alloc.zones[zone].marks.low)
    }
}

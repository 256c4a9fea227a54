//! Putting off compaction that did not help: `defer_compaction`, `compaction_deferred`, `compaction_defer_reset`,
//! `compaction_restarting` (3.x to 6.18); before 3.7 without events, before 3.4 for all orders together.

use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::MAX_ORDER;
use mmtwin_event::value::Zone as ZoneName;
use mmtwin_event::vocabulary::{MmCompactionDeferCompaction, MmCompactionDeferReset, MmCompactionDeferred};

/// Upper bound of the doublings of deferrals (`COMPACT_MAX_DEFER_SHIFT`).
pub(super) const MAX_SHIFT: u32 = 6;

/// Deferrals of a zone, and their orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deferral {
    considered: u32,
    shift: u32,
    /// The least order that has failed.
    order_failed: u32,
}

impl Deferral {
    /// Nothing has failed, where blocks have up to an order. Before 3.7 all orders count as having failed once until one
    /// works, which is the default.
    pub(super) fn new(max_order: u32) -> Deferral {
        Deferral { order_failed: max_order + 1, ..Deferral::default() }
    }

    /// A compaction for an order has failed.
    fn defer(&mut self, order: u32) {
        self.considered = 0;
        self.shift = (self.shift + 1).min(MAX_SHIFT);
        self.order_failed = self.order_failed.min(order);
    }

    /// One more attempt: true if it is deferred.
    fn is_deferred(&mut self, order: u32) -> bool {
        if order < self.order_failed {
            return false;
        }
        self.considered = (self.considered + 1).min(1 << self.shift);
        self.considered < 1 << self.shift
    }

    /// One has succeeded; if a block was allocated, compaction is not deferred any more.
    fn reset(&mut self, order: u32, got: bool) {
        if got {
            (self.considered, self.shift) = (0, 0);
        }
        if order >= self.order_failed {
            self.order_failed = order + 1;
        }
    }

    /// There is a block of an order: lower ones are put off no more (`compact_pgdat`).
    fn note_block(&mut self, order: u32) {
        if order > self.order_failed {
            self.order_failed = order + 1;
        }
    }

    /// It was put off for as long as is possible.
    pub(super) fn restarts(&self, order: u32) -> bool {
        order >= self.order_failed && self.shift == MAX_SHIFT && self.considered >= 1 << MAX_SHIFT
    }
}

impl TaskCtx<'_> {
    /// Compaction of a zone for an order has failed.
    pub(super) fn defer_compaction(&mut self, zone: usize, order: u32) {
        self.kernel.compaction.zones[zone].deferral.defer(order);
        let (node, zone, order_failed, consider, limit, defer_shift) = self.of_deferral(zone);
        let order = order as i32;
        self.write(&MmCompactionDeferCompaction { node, zone, order, order_failed, consider, limit, defer_shift });
    }

    /// An attempt to compact a zone for an order: true if it is deferred.
    pub(super) fn compaction_deferred(&mut self, zone: usize, order: u32) -> bool {
        if !self.kernel.compaction.zones[zone].deferral.is_deferred(order) {
            return false;
        }
        let (node, zone, order_failed, consider, limit, defer_shift) = self.of_deferral(zone);
        let order = order as i32;
        self.write(&MmCompactionDeferred { node, zone, order, order_failed, consider, limit, defer_shift });
        true
    }

    /// Compaction of a zone for an order has succeeded; a block was allocated if `got`.
    pub(crate) fn compaction_defer_reset(&mut self, zone: usize, order: u32, got: bool) {
        let of = &mut self.kernel.compaction.zones[zone];
        of.flush &= !got;
        of.deferral.reset(order, got);
        let (node, zone, order_failed, consider, limit, defer_shift) = self.of_deferral(zone);
        let order = order as i32;
        self.write(&MmCompactionDeferReset { node, zone, order, order_failed, consider, limit, defer_shift });
    }

    /// Compaction of a zone has failed, before 3.7.
    pub(crate) fn early_defer(&mut self, zone: usize, order: u32) {
        let order = self.deferred_as(order);
        self.kernel.compaction.zones[zone].deferral.defer(order);
    }

    /// An attempt: true if it is deferred.
    pub(crate) fn early_deferred(&mut self, zone: usize, order: u32) -> bool {
        let order = self.deferred_as(order);
        self.kernel.compaction.zones[zone].deferral.is_deferred(order)
    }

    /// It has succeeded, and a block was allocated.
    pub(crate) fn early_defer_reset(&mut self, zone: usize, order: u32) {
        let order = self.deferred_as(order);
        self.kernel.compaction.zones[zone].deferral.reset(order, true);
    }

    /// kswapd has compacted a zone for an order.
    pub(super) fn early_note(&mut self, zone: usize, order: u32) {
        if self.kernel.early_has_block(zone, order) {
            self.kernel.compaction.zones[zone].deferral.note_block(order);
        }
    }

    /// The order that is recorded: one for all where orders are not distinguished.
    fn deferred_as(&self, order: u32) -> u32 {
        if self.kernel.reclaim.rules.defers_by_order { order } else { MAX_ORDER + 1 }
    }

    /// Fields of the events: node, zone, order that failed, attempts considered, and their limit.
    #[allow(clippy::type_complexity)] // the fields of three events
    fn of_deferral(&self, zone: usize) -> (i32, ZoneName, i32, u32, Option<u64>, Option<u32>) {
        let (of, at) = (&self.kernel.compaction.zones[zone].deferral, &self.kernel.alloc.zones[zone]);
        let name = ZoneName(at.kind as u32);
        (at.node as i32, name, of.order_failed as i32, of.considered, Some(1 << of.shift), Some(of.shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_put_off_longer_and_longer() {
        let mut at = Deferral::new(10);
        assert!(!at.is_deferred(3));
        at.defer(3);
        assert!(!at.is_deferred(2), "smaller orders have not failed");
        assert_eq!([at.is_deferred(3), at.is_deferred(4)], [true, false]);
        at.defer(3);
        assert_eq!([(); 4].map(|()| at.is_deferred(3)), [true, true, true, false]);
        (0..9).for_each(|_| at.defer(3));
        assert_eq!((0..64).filter(|_| at.is_deferred(9)).count(), 63);
        assert!(at.restarts(3) && !at.restarts(2));
        at.reset(3, false);
        assert_eq!((at.order_failed, at.shift, at.is_deferred(3)), (4, 6, false));
        at.reset(5, true);
        assert_eq!((at.order_failed, at.shift), (6, 0));
    }
}

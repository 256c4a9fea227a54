//! The page allocator: allocations and frees by order, and allocations that took a block of another migratetype.
//!
//! Whether an allocation came from the node it asked for is counted by the kernel, not traced (`numastat`).

use mmtwin_event::vocabulary::*;
use mmtwin_event::{Event, Kind};
use std::collections::BTreeMap;

/// Orders kept separate; no kernel has more.
pub const ORDERS: usize = 16;

/// What events of the page allocator tell.
#[derive(Clone, Debug, Default)]
pub struct Alloc {
    /// Allocations by order, failed ones included; the last place also holds larger (damaged) orders.
    pub allocated: [u64; ORDERS],
    /// Allocations that failed, by order.
    pub failed: [u64; ORDERS],
    /// Frees by order.
    pub freed: [u64; ORDERS],
    /// Pages of order 0 freed in batches.
    pub freed_batched: u64,
    /// Blocks taken from the free lists under the zone lock, by order.
    pub zone_locked: [u64; ORDERS],
    /// Blocks returned from per-CPU lists, by order.
    pub drained: [u64; ORDERS],
    /// Fallbacks to another migratetype, by order of the request and of the block taken.
    pub fallbacks: BTreeMap<(i32, i32), u64>,
    /// Fallbacks that changed the whole pageblock's migratetype.
    pub stolen: Option<u64>,
}

impl Alloc {
    /// Takes one event of this subject.
    #[inline]
    pub fn event(&mut self, ev: &Event<'_>) {
        match ev.kind {
            Kind::MmPageAlloc => {
                let e: MmPageAlloc = ev.typed();
                self.allocated[place(e.order)] += 1;
                // Binary events have all ones or a null pointer, text prints page frame 0, which is never handed out.
                let failed = matches!(e.pfn, Some(0 | u64::MAX)) || e.page.is_some_and(|page| page.0 == 0);
                self.failed[place(e.order)] += u64::from(failed);
            }
            Kind::MmPageFree => self.freed[place(ev.typed::<MmPageFree>().order)] += 1,
            Kind::MmPageFreeBatched => self.freed_batched += 1,
            Kind::MmPageAllocZoneLocked => self.zone_locked[place(ev.typed::<MmPageAllocZoneLocked>().order)] += 1,
            Kind::MmPagePcpuDrain => self.drained[place(ev.typed::<MmPagePcpuDrain>().order)] += 1,
            Kind::MmPageAllocExtfrag => {
                let e: MmPageAllocExtfrag = ev.typed();
                let order = |order: i32| order.clamp(0, ORDERS as i32 - 1);
                *self.fallbacks.entry((order(e.alloc_order), order(e.fallback_order))).or_default() += 1;
                if let Some(changed) = e.change_ownership {
                    *self.stolen.get_or_insert(0) += u64::from(changed != 0);
                }
            }
            _ => {}
        }
    }
}

fn place(order: u32) -> usize {
    (order as usize).min(ORDERS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    #[test]
    fn failures_are_told_in_every_era() {
        let mut a = Alloc::default();
        let alloc = |order| EventBuilder::new(Kind::MmPageAlloc).set("order", order);
        a.event(&alloc(0).set("pfn", 7).set("page", 9).event());
        a.event(&alloc(3).set("pfn", -1).event());
        a.event(&alloc(3).set("pfn", 0).set("page", 0).event());
        a.event(&alloc(2).set("page", 0).event());
        a.event(&alloc(99).set("pfn", 1).event());
        assert_eq!((a.allocated[0], a.allocated[3], a.allocated[2], a.allocated[ORDERS - 1]), (1, 2, 1, 1));
        assert_eq!((a.failed[0], a.failed[3], a.failed[2]), (0, 2, 1));
    }

    #[test]
    fn fallbacks_count_by_both_orders() {
        let mut a = Alloc::default();
        let e = EventBuilder::new(Kind::MmPageAllocExtfrag).set("alloc_order", 2).set("fallback_order", 9);
        a.event(&e.set("change_ownership", 1).event());
        assert_eq!((a.fallbacks[&(2, 9)], a.stolen), (1, Some(1)));
    }
}

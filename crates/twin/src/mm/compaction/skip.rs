//! Skip bits of pageblocks, cleared when kswapd sleeps, and restart of the scanners: `reset_isolation_suitable`,
//! `__reset_isolation_suitable`, `__reset_isolation_pfn` (5.1 to 6.12).
//!
//! Checked by a test.

use super::BLOCK;
use crate::frame::{Flag, Migratetype, Pfn, State, ZONES};
use crate::mm::kernel::Kernel;
use crate::page_alloc::HUGE_ORDER;

/// Distance between checked pages.
const STEP: usize = 8;

/// Pages for which a pageblock is checked.
#[derive(Clone, Copy)]
struct Suitable {
    /// Pages that can be moved.
    source: bool,
    /// Free pages.
    target: bool,
}

impl Kernel {
    /// kswapd of a node is about to sleep.
    pub(crate) fn forget_skips(&mut self, node: usize) {
        (node * ZONES..(node + 1) * ZONES).for_each(|zone| self.reset_isolation_suitable(zone));
    }

    /// After the scanners have met, both begin where pages can be isolated, from the ends of the zone to its middle.
    pub(super) fn reset_isolation_suitable(&mut self, zone: usize) {
        if !std::mem::take(&mut self.compaction.zones[zone].flush) {
            return;
        }
        let (start, end) = self.compacted_span(zone);
        let end = end - 1;
        let (mut low, mut high) = (start, end);
        let (mut source, mut target) = (None, None);
        while low < high {
            if self.clear_skip_if(zone, low, Suitable { source: true, target: source.is_some() }) {
                source = source.or(Some(low));
            }
            if self.clear_skip_if(zone, high, Suitable { source: target.is_some(), target: true }) {
                target = target.or(Some(high));
            }
            (low, high) = (low + BLOCK, high.saturating_sub(BLOCK));
        }
        let zone_state = &mut self.compaction.zones[zone];
        if let Some(pfn) = source {
            (zone_state.first_migrate, zone_state.migrate) = (pfn, [pfn; 2]);
        }
        if let Some(pfn) = target {
            (zone_state.first_free, zone_state.free) = (pfn, pfn);
        }
        if source.unwrap_or(end) >= target.unwrap_or(start) {
            (zone_state.migrate, zone_state.free) = ([low; 2], high);
        }
    }

    /// True if a pageblock is a huge page (`pageblock_skip_persistent`).
    pub(super) fn is_huge(&self, block: u64) -> bool {
        let (frames, first) = (&self.alloc.frames, (block * BLOCK) as Pfn);
        frames.state(first) == State::Allocated && frames.order(first) >= HUGE_ORDER
    }

    /// True if a pageblock has such pages; then it is no longer skipped.
    fn clear_skip_if(&mut self, zone: usize, pfn: u64, suitable: Suitable) -> bool {
        let (block, of) = ((pfn / BLOCK) as usize, &self.alloc.zones[zone]);
        if !self.is_block(zone, block as u64) {
            return false;
        }
        if suitable.source && suitable.target && !self.compaction.skip[block] {
            return true;
        }
        if self.is_huge(block as u64) {
            return false;
        }
        let first = (pfn / BLOCK * BLOCK).max(of.start_pfn);
        if !suitable.source && self.alloc.block_type(pfn as Pfn) != Migratetype::Movable {
            return false;
        }
        let frames = &self.alloc.frames;
        let end = (pfn / BLOCK + 1) * BLOCK;
        let has = |page: Pfn| match frames.state(page) {
            State::Allocated => suitable.source && frames.has(page, Flag::Lru),
            State::Free => suitable.target,
            State::PerCpu | State::None => false,
        };
        let found = (first..end).step_by(STEP).any(|page| has(page as Pfn));
        if found {
            self.compaction.skip[block] = false;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::kernel;
    use super::*;
    use crate::page_alloc::{Caller, Policy, Request};
    use crate::probe::Task;

    /// DMA32.
    const ZONE: usize = 1;

    /// A kernel with the skip bit of all pageblocks set.
    fn skipped() -> (Kernel, u64, u64) {
        let mut kernel = kernel();
        let (start, end) = kernel.compacted_span(ZONE);
        kernel.compaction.skip.fill(true);
        (kernel, start, end)
    }

    #[test]
    fn skip_bits_are_cleared_only_after_the_scanners_have_met() {
        let (mut kernel, _, _) = skipped();
        kernel.reset_isolation_suitable(ZONE);
        assert!(kernel.compaction.skip.iter().all(|skip| *skip));
        kernel.compaction.zones[ZONE].flush = true;
        kernel.reset_isolation_suitable(ZONE);
        let zone_state = &kernel.compaction.zones[ZONE];
        // There is something to move to, but nothing to move: no distance is left.
        assert!(!zone_state.flush && zone_state.first_free > 0 && zone_state.first_migrate == 0);
        assert_eq!(zone_state.migrate[0], zone_state.migrate[1]);
        assert!(zone_state.free < zone_state.migrate[0]);
    }

    #[test]
    fn scanners_begin_where_pages_can_be_isolated() {
        let (mut kernel, start, end) = skipped();
        let mut caller = Caller::new(0, Task::default(), Policy::Default);
        // As much as there is, but for the last megabytes.
        let request = Request::USER.of_order(9);
        while kernel.stat.plain(ZONE, crate::vmstat::ZoneItem::FreePages) > 16 * BLOCK {
            kernel.allocate(&mut caller, &request).unwrap();
        }
        let low = start / BLOCK + 3;
        kernel.alloc.frames.set(low as Pfn * BLOCK as Pfn, State::Allocated, 0, Migratetype::Movable, ZONE);
        kernel.alloc.frames.set_flag(low as Pfn * BLOCK as Pfn, Flag::Lru, true);
        kernel.compaction.zones[ZONE].flush = true;
        kernel.reset_isolation_suitable(ZONE);
        let zone_state = &kernel.compaction.zones[ZONE];
        let head = |block: u64| kernel.alloc.frames.state((block * BLOCK) as Pfn) == State::Free;
        assert_eq!((zone_state.first_migrate / BLOCK, zone_state.migrate), (low, [zone_state.first_migrate; 2]));
        let free = zone_state.first_free / BLOCK;
        assert!(head(free) && (free + 1..end / BLOCK).all(|block| !head(block)), "{free}");
        assert_eq!((zone_state.free, kernel.compaction.skip[low as usize]), (zone_state.first_free, false));
    }
}

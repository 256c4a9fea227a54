//! Moving a batch of pages to free ones: `migrate_pages`, `unmap_and_move`, as compaction calls it.
//!
//! A large folio moves to a free block of its order. Not modelled: huge pages, splitting a folio for which there is no
//! block, that many pages of a folio take less time than as many single ones, locks that are held, pages that fail and
//! are tried again. Checked by the tests of [`super`].

use crate::frame::{Flag, Pfn};
use crate::mm::prot_numa::Unit;
use crate::mm::region::Entry;
use crate::mm::tlb;
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{Caller, Policy};

/// Pages that were not moved.
pub(super) struct Left {
    pub pages: Vec<Pfn>,
    /// Number of pages tried: without a target page migration stops.
    pub failed: u64,
    /// There was none to move to.
    pub out_of_free: bool,
}

impl TaskCtx<'_> {
    /// True if a page that was taken off its list can be moved: its region has it or, of a page in the swap cache, its
    /// slot.
    pub(super) fn is_movable(&self, page: Pfn) -> bool {
        let frames = &self.kernel.alloc.frames;
        let at = self.memory.of_content(frames.content(page));
        let entry = self.memory.regions[at.region].entry(at.page);
        let known = || {
            entry == Entry::Present(page)
                || self.memory.swap.slot_of(page).is_some_and(|slot| entry == Entry::Gone(slot))
        };
        !frames.has(page, Flag::Writeback) && !self.memory.is_being_read(self.kernel, self.cpu, page) && known()
    }

    /// Compaction is for large blocks only and waits for writes (before 2.6.38).
    pub(super) fn compacts_as_in_2010(&self) -> bool {
        self.kernel.reclaim.rules.compacts_costly
    }

    /// True if a page that was taken off its list can be moved when it has been written, and that is waited for (before
    /// 2.6.38).
    pub(super) fn is_late(&self, page: Pfn) -> bool {
        let frames = &self.kernel.alloc.frames;
        self.compacts_as_in_2010() && frames.has(page, Flag::Writeback)
    }

    /// Moves those of pages that can be to what `next_free` has of their order: how many it did, and the others.
    pub(super) fn move_pages(
        &mut self,
        zone: usize,
        pages: Vec<Pfn>,
        can_move: impl Fn(&Self, Pfn) -> bool,
        mut next_free: impl FnMut(&mut Self, u32) -> Option<Pfn>,
    ) -> (u64, Left) {
        let (mut moved, mut left) = (0, Left { pages: Vec::new(), failed: 0, out_of_free: false });
        for old in pages {
            let (tried, order) = (!left.out_of_free, self.kernel.alloc.frames.order(old));
            if tried && can_move(self, old) {
                if let Some(new) = next_free(self, order) {
                    self.move_page(zone, old, new);
                    moved += 1 << order;
                    continue;
                }
                left.out_of_free = order == 0;
            }
            left.failed += u64::from(tried) << order;
            left.pages.push(old);
        }
        (moved, left)
    }

    /// Moves a page that was taken off its list to a free one of its zone.
    fn move_page(&mut self, zone: usize, old: Pfn, new: Pfn) {
        let frames = &mut self.kernel.alloc.frames;
        let at = self.memory.of_content(frames.content(old));
        let (owner, pages) = (frames.owner(old), 1u64 << frames.order(old));
        frames.set_owner(new, owner);
        let node = self.kernel.alloc.zones[zone].node;
        if self.memory.regions[at.region].entry(at.page) == Entry::Present(old) {
            tlb::flush(self.kernel, &self.memory.costs, self.cpu, self.memory.regions[at.region].cpus);
            for (page, new) in (at.page..at.page + pages).zip(new..) {
                self.memory.relocate(at.region, Unit { page: page as u32, huge: false }, new, node, node);
            }
        }
        self.memory.swap.relocate(old, new);
        self.spend((self.memory.costs.migrate_page + self.memory.costs.copy_page) * pages);
        let caller = Caller::new(self.cpu, self.task, Policy::Default);
        let freed = self.kernel.replace(&caller, old, new);
        debug_assert!(freed.is_ok(), "what was mapped was allocated");
    }
}

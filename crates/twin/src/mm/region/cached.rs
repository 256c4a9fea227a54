//! Pages of a file: dirty ones, those with state of the file system, and those that were mapped.

use super::{Entry, GONE, Region};
use crate::frame::{NO_PAGE, Pfn};
use crate::mm::costs::FaultCosts;
use crate::mm::kernel::Kernel;
use crate::page_alloc::{Caller, HUGE_ORDER};
use crate::time::Ps;
use crate::vmstat::NodeItem;
use std::ops::Range;

impl Region {
    /// True if a page is in memory.
    pub(crate) fn is_cached(&self, page: u64) -> bool {
        self.entries[page as usize] < GONE
    }

    /// Maps a page of a file that is in the page cache, on a node; true if no mapping had it.
    pub(crate) fn map_cached(&mut self, mapper: usize, page: u64, node: usize) -> bool {
        self.touch(mapper, page);
        self.map_shared(mapper, page, node)
    }

    /// A page of a file differs from the disk's; true if no other does.
    pub(crate) fn set_dirty(&mut self, page: u64) -> bool {
        self.dirty.insert(page);
        self.dirty.count() == 1
    }

    /// True if a page of a file differs from the disk's.
    pub(crate) fn is_dirty(&self, page: u64) -> bool {
        self.dirty.has(page)
    }

    /// A page is written or truncated; false if it was not dirty.
    pub(crate) fn set_clean(&mut self, page: u64) -> bool {
        self.dirty.remove(page)
    }

    /// The file system remembers a page in a block.
    pub(crate) fn remember(&mut self, page: u64, block: Pfn) {
        if self.buffers.is_empty() {
            self.buffers = vec![NO_PAGE; self.entries.len()];
        }
        self.buffers[page as usize] = block;
    }

    /// The file system forgets a page; the block in which it remembered it.
    pub(crate) fn forget(&mut self, page: u64) -> Option<Pfn> {
        let block = std::mem::replace(self.buffers.get_mut(page as usize)?, NO_PAGE);
        (block != NO_PAGE).then_some(block)
    }

    /// True if the file system remembers a page.
    pub(crate) fn remembers(&self, page: u64) -> bool {
        self.buffers.get(page as usize).is_some_and(|&block| block != NO_PAGE)
    }

    /// Pages that differ from the disk's.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty.count()
    }

    /// The first of some pages that differs from the disk's.
    pub(crate) fn next_dirty(&self, among: Range<u64>) -> Option<u64> {
        self.dirty.next(among)
    }

    /// What it takes a process to unmap pages, besides freeing them: an entry of a huge page is one, and pages of a large
    /// folio that lie one after another are unmapped together (`zap_present_ptes`).
    pub(crate) fn zap_time(&self, kernel: &Kernel, costs: &FaultCosts, mapper: usize, pages: Range<u64>) -> Ps {
        let one = if self.anon { costs.zap_page } else { costs.zap_shared };
        let frames = &kernel.alloc.frames;
        let of = |page| match self.entry_of(mapper, page) {
            Entry::Present(pfn) if frames.head(pfn) == pfn && frames.order(pfn) >= HUGE_ORDER => one + costs.zap_huge,
            Entry::Present(pfn) if frames.head(pfn) == pfn => one,
            Entry::Present(pfn) if frames.order(frames.head(pfn)) < HUGE_ORDER => costs.zap_further,
            Entry::Present(_) | Entry::Absent | Entry::Zero | Entry::Gone(_) => 0,
        };
        pages.map(of).sum()
    }

    /// A process unmaps pages of a file or of shared memory: they leave its page tables and stay in the page cache; those
    /// that it has accessed since the last check are marked accessed, neighbours in a large folio once
    /// (`zap_present_ptes`).
    pub(crate) fn unmap_shared(&mut self, kernel: &mut Kernel, caller: &Caller, mapper: usize, pages: Range<u64>) {
        let mut next = pages.start;
        let mut marked = None;
        loop {
            let node_of = |pfn| kernel.node_of_frame(kernel.alloc.frames.head(pfn));
            let Some((page, last, young)) = self.unmap_next(mapper, next..pages.end, node_of) else { break };
            if page != next {
                marked = None;
            }
            next = page + 1;
            if let Entry::Present(pfn) = self.entry(page) {
                let (_, folio) = self.block(kernel, page, pfn);
                if self.file {
                    kernel.stat.pages.add(kernel.node_of_frame(folio), NodeItem::Mapped, -i64::from(last));
                }
                if young && marked != Some(folio) {
                    kernel.mark_accessed(caller.cpu, folio);
                    marked = Some(folio);
                }
            }
        }
    }
}

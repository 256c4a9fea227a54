//! Pages of a file: which are mapped, which differ from the disk's, and which the file system remembers.

use super::{Entry, GONE, Region};
use crate::alloc::Caller;
use crate::kernel::{Kernel, KernelError};
use crate::page::{NO_PAGE, Pfn};
use crate::vmstat::NodeItem;

impl Region {
    /// True if a page is in memory.
    pub(crate) fn is_cached(&self, page: u64) -> bool {
        self.entries[page as usize] < GONE
    }

    /// Maps a page of a file that is in the page cache; false if it was mapped.
    pub(crate) fn map_cached(&mut self, page: u64) -> bool {
        self.young.insert(page);
        self.mapped.insert(page)
    }

    /// Takes a file's page out of all page tables; false if it was in none.
    pub(crate) fn unmap_cached(&mut self, page: u64) -> bool {
        self.mapped.remove(page)
    }

    /// A page of a file differs from the disk's; true if no other does.
    pub(crate) fn set_dirty(&mut self, page: u64) -> bool {
        self.dirty.insert(page);
        self.dirty.count() == 1
    }

    /// A page is going to the disk or away; false if it did not differ.
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

    /// The first page from one on that differs from the disk's.
    pub(crate) fn next_dirty(&self, from: u64) -> Option<u64> {
        self.dirty.next(from)
    }

    /// Pages of a file that processes map.
    pub(crate) fn mapped_pages(&self) -> u64 {
        self.mapped.count()
    }

    /// Nobody maps a file any more: its pages leave the page tables and stay in the page cache, those that were used since
    /// somebody looked as used (`zap_pte_range`).
    pub(crate) fn unmap_file(&mut self, kernel: &mut Kernel, caller: &Caller) -> Result<(), KernelError> {
        let mut next = 0;
        while let Some(page) = self.mapped.next(next) {
            self.mapped.remove(page);
            let young = self.young.remove(page);
            if let Entry::Present(pfn) = self.entry(page) {
                kernel.stat.pages.add(kernel.node_of_frame(pfn), NodeItem::Mapped, -1);
                if young {
                    kernel.mark_accessed(caller.cpu, pfn);
                }
            }
            next = page + 1;
        }
        self.tables.free(kernel, caller)
    }
}

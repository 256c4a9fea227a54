//! Memory that is freed while other tasks continue: `zap_pte_range`, `truncate_inode_pages_range`, `cancel_dirty_page`
//! (2.6.36 to 6.12).
//!
//! Anonymous memory is freed with its swap slots, a file loses its pages, of which dirty ones are never written. A
//! huge page of which only a part is discarded stays, as its memory does in the kernel until it is split. Not modelled:
//! that the part is unmapped then, the blocks of the file on the disk, page tables, that truncation waits for pages
//! that are being written: they are freed at once. Checked by `tests/workloads.rs`.

use crate::frame::{Flag, Pfn};
use crate::mm::kernel::{Kernel, KernelError};
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;
use crate::mm::region::Entry;
use crate::page_alloc::Caller;
use crate::vmstat::NodeItem;
use std::ops::Range;

impl AccessState {
    /// Frees pages of a region.
    pub(crate) fn discard(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        region: usize,
        pages: Range<u64>,
    ) -> Result<(), KernelError> {
        let file = self.regions[region].file;
        let mut page = pages.start;
        while page < pages.end {
            let mut length = 1;
            match self.regions[region].entry(page) {
                Entry::Present(pfn) if file => {
                    let (first, head) = self.regions[region].block(kernel, page, pfn);
                    let whole = first..first + (1 << kernel.alloc.frames.order(head));
                    if pages.start <= whole.start && whole.end <= pages.end {
                        length = whole.end - page;
                        self.drop_cached(kernel, caller, (region, first), head)?;
                    } else {
                        self.split_cached(kernel, caller, head);
                        self.drop_cached(kernel, caller, (region, page), pfn)?;
                    }
                }
                Entry::Present(pfn) => {
                    let (first, pfn) = self.regions[region].block(kernel, page, pfn);
                    let whole = first..first + (1 << kernel.alloc.frames.order(pfn));
                    length = whole.end - page;
                    if pages.start <= whole.start && whole.end <= pages.end {
                        let node = kernel.node_of_frame(pfn);
                        self.regions[region].count(kernel, pfn, -1);
                        for page in whole {
                            self.regions[region].clear(page, Some(node));
                            self.missing(region, page, node);
                        }
                        self.free_slots(kernel, (caller.cpu, caller.task), pfn);
                        self.let_go(kernel, caller, pfn)?;
                    }
                }
                Entry::Gone(slot) if !file => match self.cached(slot) {
                    Some((cached, first_slot)) => {
                        let first = page - u64::from(slot - first_slot);
                        let whole = first..first + (1 << kernel.alloc.frames.order(cached));
                        length = whole.end - page;
                        if pages.start <= whole.start && whole.end <= pages.end {
                            whole.for_each(|page| self.regions[region].clear(page, None));
                            self.free_slots(kernel, (caller.cpu, caller.task), cached);
                            self.let_go(kernel, caller, cached)?;
                        }
                    }
                    None => {
                        self.regions[region].clear(page, None);
                        self.free_slot(kernel, (caller.cpu, caller.task), slot);
                    }
                },
                Entry::Absent => {}
                Entry::Zero => self.regions[region].clear(page, None),
                Entry::Gone(_) => {
                    self.regions[region].clear(page, None);
                    if file && self.index.keeps_shadows {
                        self.leave_index(kernel, (caller.cpu, caller.task), region, page);
                    }
                }
            }
            page += length;
        }
        if file && self.regions[region].dirty() == 0 {
            kernel.writeback.file_is_clean(region, self.regions[region].wb);
        }
        Ok(())
    }

    /// A mapping loses pages: those of anonymous memory are freed, others stay in the page cache (`zap_page_range`).
    pub(crate) fn zap(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        (region, mapper): (usize, usize),
        pages: Range<u64>,
    ) -> Result<(), KernelError> {
        for mapping in self.mappings.iter_mut().filter(|of| (of.region, of.mapper) == (region, mapper)) {
            let mut marked = Vec::new();
            mapping.each_marked(pages.start, pages.end, |unit| marked.push(unit));
            let whole = |unit: &Unit| {
                let start = u64::from(unit.page);
                pages.start <= start && start + unit.pages() <= pages.end
            };
            marked.into_iter().filter(whole).for_each(|unit| {
                mapping.clear(unit);
            });
        }
        if self.regions[region].anon {
            return self.discard(kernel, caller, region, pages);
        }
        for page in pages.clone() {
            if let Entry::Present(pfn) = self.regions[region].entry_of(mapper, page) {
                self.missing(region, page, kernel.node_of_frame(kernel.alloc.frames.head(pfn)));
            }
        }
        self.regions[region].unmap_shared(kernel, caller, mapper, pages);
        Ok(())
    }

    /// Makes single pages of a large folio of which a part is removed (`truncate_inode_partial_folio`); those that are dirty
    /// stay so.
    fn split_cached(&mut self, kernel: &mut Kernel, caller: &Caller, head: Pfn) {
        let order = kernel.alloc.frames.order(head);
        if order == 0 {
            return;
        }
        let dirty = kernel.alloc.frames.set_flag(head, Flag::Dirty, false);
        if dirty {
            kernel.count_dirty(head, -1);
        }
        let being_read = self.reading.remove(&head);
        if kernel.alloc.frames.has(head, Flag::Writeback) {
            // Its write ends without it, as that of a page that is removed.
            self.requests.forget(head);
            kernel.end_writeback(caller.cpu, head);
        }
        kernel.reclaim.forget(&mut kernel.alloc.frames, &mut kernel.stat, caller.cpu, head);
        kernel.alloc.frames.split(head);
        for pfn in head..head + (1 << order) {
            let at = self.of_content(kernel.alloc.frames.content(pfn));
            if dirty && self.regions[at.region].is_dirty(at.page) {
                kernel.alloc.frames.set_flag(pfn, Flag::Dirty, true);
                kernel.count_dirty(pfn, 1);
            }
            self.reading.extend(being_read.map(|until| (pfn, until)));
            kernel.add_to_lru(caller.cpu, pfn);
        }
    }

    /// Removes a page or a large folio of a file from the page cache, without a shadow.
    pub(super) fn drop_cached(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        (region, page): (usize, u64),
        pfn: Pfn,
    ) -> Result<(), KernelError> {
        let (node, order) = (kernel.node_of_frame(pfn), kernel.alloc.frames.order(pfn));
        if kernel.alloc.frames.set_flag(pfn, Flag::Dirty, false) {
            kernel.count_dirty(pfn, -1);
        }
        for page in page..page + (1 << order) {
            if self.regions[region].set_clean(page) {
                kernel.writeback.pages_cleaned(self.regions[region].wb, 1);
            }
            if self.regions[region].unmap_everywhere(page, node) {
                kernel.stat.pages.add(node, NodeItem::Mapped, -1);
            }
            self.regions[region].clear(page, Some(node));
            self.missing(region, page, node);
            let by = (caller.cpu, caller.task);
            self.forget_page(kernel, by, region, page);
            self.leave_index(kernel, by, region, page);
        }
        kernel.stat.pages.add(node, NodeItem::FilePages, -(1 << order));
        self.let_go(kernel, caller, pfn)
    }

    /// Frees a page, even if it is being read or written.
    fn let_go(&mut self, kernel: &mut Kernel, caller: &Caller, pfn: Pfn) -> Result<(), KernelError> {
        self.reading.remove(&pfn);
        if kernel.alloc.frames.has(pfn, Flag::Writeback) {
            self.requests.forget(pfn);
            kernel.alloc.frames.set_flag(pfn, Flag::Reclaim, false);
            kernel.end_writeback(caller.cpu, pfn);
        }
        kernel.release(caller, pfn)
    }
}

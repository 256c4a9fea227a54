//! Memory that a program needs no more but may use again: `madvise_free_pte_range`, `lru_lazyfree`, `try_to_unmap` and
//! `shrink_folio_list` of such pages (4.12 to 6.18).
//!
//! `MADV_FREE` gives up a page's swap slot, forgets that it was accessed or written, and moves it to the inactive file
//! list. Reclaim frees it without writing it; one that was written since is anonymous memory again and active. Where
//! accesses are drawn by rates, so are the writes since the call. Not modelled: the batch of pages on their way to the list
//! (`lru_lazyfree` moves 15 or 31 at once), that a huge page of which only a part is freed is split: it stays as it
//! is, and releases of 4.5 to 4.11, which leave the page among anonymous ones. Checked by `tests/madvise.rs`; beside a
//! guest with 6.12 (16,384 pages given up, 4,096 written again, then 32,768 pages of a file read in a cgroup of 96 MiB):
//! `pglazyfreed` 12,288 and 12,288, `pgactivate` 4,096 and 4,096, pages taken from the file list 24,702 and 24,605.

use crate::frame::{Flag, Pfn};
use crate::mm::kernel::{Kernel, KernelError};
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::mm::tlb::Cpus;
use crate::page_alloc::Caller;
use crate::vmstat::NodeItem;
use std::ops::Range;

impl AccessState {
    /// Reclaim may free pages of anonymous memory from now on.
    pub(crate) fn free_lazily(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        region: usize,
        pages: Range<u64>,
    ) -> Result<(), KernelError> {
        kernel.lru_add_drain(caller.cpu);
        let mut page = pages.start;
        while page < pages.end {
            let mut length = 1;
            match self.regions[region].entry(page) {
                Entry::Present(pfn) => {
                    let (first, pfn) = self.regions[region].block(kernel, page, pfn);
                    let whole = first..first + (1 << kernel.alloc.frames.order(pfn));
                    length = whole.end - page;
                    if pages.start <= whole.start && whole.end <= pages.end {
                        self.free_page_lazily(kernel, caller, (region, whole), pfn);
                    }
                }
                // What is in swap is of no use.
                Entry::Gone(_) => self.discard(kernel, caller, region, page..page + 1)?,
                Entry::Absent | Entry::Zero => {}
            }
            page += length;
        }
        Ok(())
    }

    fn free_page_lazily(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        (region, pages): (usize, Range<u64>),
        pfn: Pfn,
    ) {
        if self.has_slot(pfn) {
            // A page that is being written stays in the swap cache.
            if kernel.alloc.frames.has(pfn, Flag::Writeback) {
                return;
            }
            self.free_slots(kernel, (caller.cpu, caller.task), pfn);
        }
        kernel.alloc.frames.set_flag(pfn, Flag::Dirty, false);
        let of = &mut self.regions[region];
        of.test_and_clear_young(pages.clone());
        // Accesses count from now on.
        of.stamp(&pages, self.epoch);
        self.looked = true;
        of.watch_writes(pages);
        kernel.reclaim.lazyfree(&mut kernel.alloc.frames, &mut kernel.stat, pfn);
    }

    /// Reclaim takes a page out of the page tables that may be freed; where, if others than this CPU may have it in their
    /// TLBs. `None`: it was written since, and is anonymous memory again.
    pub(super) fn unmap_lazily_freed(
        &mut self,
        kernel: &mut Kernel,
        cpu: u32,
        page: Pfn,
        content: u32,
    ) -> Option<Cpus> {
        let at = self.of_content(content);
        let (node, count) = (kernel.node_of_frame(page), 1u64 << kernel.alloc.frames.order(page));
        let pages = at.page..at.page + count;
        let region = &mut self.regions[at.region];
        if region.take_rewritten(pages.clone()) {
            kernel.alloc.frames.set_flag(page, Flag::Swapbacked, true);
            return None;
        }
        let elsewhere = region.cpus.without(cpu);
        kernel.spend(cpu, self.costs.unmap_page * count);
        kernel.stat.pages.add(node, NodeItem::AnonPages, -(count as i64));
        for page in pages {
            self.regions[at.region].clear(page, Some(node));
            self.missing(at.region, page, node);
        }
        kernel.stat.events.reclaim.pglazyfreed += count;
        Some(elsewhere)
    }
}

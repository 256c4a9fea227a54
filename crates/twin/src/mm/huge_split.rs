//! Splitting a huge page that reclaim cannot swap as a whole: `shrink_folio_list`, `split_folio_to_list` (4.13 to 7.3).
//!
//! Without a free cluster of swap, or room for it below `memory.swap.max`, a huge page becomes base pages, each of which
//! goes through the same pass: the first one, then the others from the last on. Not modelled: huge pages that are
//! mapped in part, which are split before; the queue of those (`deferred_split`). Checked by `tests/huge_pages.rs`.

use crate::frame::Pfn;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;

impl AccessState {
    /// Makes base pages of a huge page that is on no list: those behind its first one.
    pub(crate) fn split_huge(&mut self, kernel: &mut Kernel, page: Pfn) -> std::ops::Range<Pfn> {
        let frames = &mut kernel.alloc.frames;
        let pages = 1u64 << frames.order(page);
        let at = self.of_content(frames.content(page));
        frames.split(page);
        // Entries of page tables do not change; what was marked as a whole is no longer marked.
        let node = kernel.node_of_frame(page);
        self.relocate(at.region, Unit { page: at.page as u32, huge: true }, page, node, node);
        let epoch = self.epoch;
        let of = &mut self.regions[at.region];
        (at.page..at.page + pages).for_each(|page| {
            of.stamp(&(page..page + 1), epoch);
        });
        page + 1..page + pages as Pfn
    }
}

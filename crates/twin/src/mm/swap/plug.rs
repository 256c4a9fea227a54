//! Requests of several pages to swap: `swap_writeout`, `swap_add_folio`, `swap_write_submit` (7.3).
//!
//! Reclaim collects the pages of a batch whose slots follow one another. They are written when a page with another slot
//! comes, when there are 32, or when the batch ends, which is before its pages are back on their lists: so the write ends
//! after that, and moves them to the tail. A kernel that writes page by page has ended most writes by then, and those
//! pages stay at the head. Swap that is memory is written at once, as ever. Not modelled: requests of read-ahead. Validated
//! with the counters of guests (docs/model/swap.md).

use super::AccessState;
use crate::frame::{Flag, Pfn};
use crate::hw::IoClass;
use crate::mm::kernel::Kernel;
use crate::mm::writeback::Pages;
use crate::probe::Task;

/// Pages of a request (`SWAP_CLUSTER_MAX`).
const MOST: usize = 32;

/// The request that is being collected.
#[derive(Clone, Debug, Default)]
pub(crate) struct SwapPlug {
    pages: Pages,
    /// Slot behind its last page.
    next: u32,
}

impl AccessState {
    /// Adds a page to the request; true if others are in it.
    pub(crate) fn plug(&mut self, kernel: &mut Kernel, by: (u32, Task), page: Pfn) -> bool {
        let slot = self.swap.slot_of(page).unwrap_or_default();
        if slot != self.swap.plug.next {
            self.unplug(kernel, by);
        }
        kernel.alloc.frames.set_flag(page, Flag::Reclaim, true);
        let plug = &mut self.swap.plug;
        let joins = !plug.pages.is_empty();
        plug.pages.push(page);
        plug.next = slot + (1 << kernel.alloc.frames.order(page));
        if plug.pages.len() == MOST {
            self.unplug(kernel, by);
        }
        joins
    }

    /// Submits the request, if there is one.
    pub(crate) fn unplug(&mut self, kernel: &mut Kernel, by: (u32, Task)) {
        let pages = std::mem::take(&mut self.swap.plug.pages);
        if !pages.is_empty() {
            self.submit(kernel, by, pages, (false, IoClass::Async));
        }
    }
}

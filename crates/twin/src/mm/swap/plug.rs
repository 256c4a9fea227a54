//! Requests of several pages to swap: `swap_writeout`, `swap_add_folio`, `swap_write_submit` (7.3).
//!
//! Reclaim collects the pages of a batch whose slots follow one another. They are written when a page with another slot
//! comes, when there are 32, or when the batch ends, which is before its pages are back on their lists: so the write ends
//! after that, and moves them to the tail. In a kernel that writes page by page most writes have ended by then, and those
//! pages stay at the head. Swap that is memory is written page by page. Not modelled: requests of read-ahead. Validated by
//! `tests/lab_swap.rs` with counters of guests (docs/model/notebook.md, "Writes to swap on a disk").

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

#[cfg(test)]
mod tests {
    use crate::hw::Device;
    use crate::mm::swap::Swap;
    use crate::mm::vmscan_zone::tests::{block, on};

    #[test]
    fn neighbours_are_one_request() {
        let (requests, _) = on("7.3", |ctx| {
            let pages = block(ctx, false, 6);
            ctx.memory.swap = Swap::new(Some(Device::new(100_000, 1_000_000_000, false)), 256);
            // Two that are neighbours, one after a gap, and 33 more.
            let slots = [10, 11].into_iter().chain([20]).chain(30..63);
            let by = (ctx.cpu, ctx.task);
            let mut joined = Vec::new();
            for (&page, slot) in pages.iter().zip(slots) {
                ctx.memory.swap.by_frame.insert(page, slot);
                joined.push(ctx.memory.plug(ctx.kernel, by, page));
            }
            ctx.memory.unplug(ctx.kernel, by);
            let lengths = ctx.memory.ends.iter().map(|(_, number)| ctx.memory.requests.pages(*number).len());
            (joined.iter().filter(|&&joins| !joins).count(), lengths.collect::<Vec<_>>())
        });
        assert_eq!(requests, (4, vec![2, 1, 32, 1]));
    }
}

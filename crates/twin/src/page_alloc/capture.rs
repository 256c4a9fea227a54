//! Blocks that a task takes while it frees what they were made of: `struct capture_control`, `compaction_capture`,
//! `task_capc` (5.1 to 6.18).
//!
//! A task in direct compaction takes the block that it has made before that is put on a free list, so that no other
//! task can allocate it, independent of the watermarks. It is counted as neither allocated nor free. Checked by a test.

use super::{Allocated, Context, PageAllocator, Request};
use crate::frame::{Migratetype, Pfn, State};
use crate::vmstat::ZoneItem;

/// Block that a task needs while it compacts (`struct capture_control`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    zone: usize,
    order: u32,
    /// Its request.
    migratetype: Migratetype,
    page: Option<Pfn>,
}

impl PageAllocator {
    /// From now on a block of a zone is captured when it is freed.
    pub(crate) fn begin_capture(&mut self, zone: usize, order: u32, migratetype: Migratetype) {
        self.capture = Some(Capture { zone, order, migratetype, page: None });
    }

    /// True if a block was captured.
    pub(crate) fn has_captured(&self) -> bool {
        self.capture.is_some_and(|capture| capture.page.is_some())
    }

    /// No block is captured any more; one that was is kept for the task. True if there is one.
    pub(crate) fn end_capture(&mut self, pid: i32) -> bool {
        let page = self.capture.take().and_then(|capture| capture.page);
        self.captured.extend(page.map(|page| (pid, page)));
        page.is_some()
    }

    /// Captures a block that is being freed if it is large enough; small blocks stay in movable pageblocks. It has been
    /// counted as free.
    #[inline]
    pub(super) fn captures(&mut self, ctx: &mut Context<'_>, zone: usize, page: Pfn, order: u32) -> bool {
        let Some(wanted) = self.capture.filter(|of| of.zone == zone && of.order == order && of.page.is_none()) else {
            return false;
        };
        if order < self.rules.pageblock_order && self.block_type(page) == Migratetype::Movable {
            return false;
        }
        ctx.stat.add(zone, ctx.cpu, ZoneItem::FreePages, -(1 << order));
        self.frames.set(page, State::Allocated, order, wanted.migratetype, zone);
        self.frames.set_owner(page, u32::MAX);
        self.capture = Some(Capture { page: Some(page), ..wanted });
        true
    }

    /// The block that was captured for the task.
    #[inline]
    pub(crate) fn take_captured(&mut self, ctx: &mut Context<'_>, request: &Request) -> Option<Allocated> {
        let is_it = |&(pid, page): &(i32, Pfn)| pid == ctx.task.pid && self.frames.order(page) == request.order;
        let at = self.captured.iter().position(is_it)?;
        let (_, page) = self.captured.swap_remove(at);
        self.note_allocation(ctx, request, Some(page));
        let zone = self.frames.zone(page);
        Some(Allocated { page, zone, preferred: zone, counted: 0, fetched: 0, looked_at: 0, refilled: 0 })
    }
}

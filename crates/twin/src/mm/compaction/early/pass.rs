//! Compacting a zone: `compact_zone`, `compact_finished`, `isolate_migratepages`, `isolate_freepages`, `split_free_page`.
//!
//! Pages of processes are taken in batches, free pages by pageblocks, the first of which is scanned again next time.
//! Asynchronous compaction scans only movable pageblocks. In 2010 all compaction waits for pages under writeback.
//! Checked by a test here and by `tests/historic_reclaim.rs`.

use crate::frame::{Flag, Migratetype, Pfn, State};
use crate::mm::compaction::Status;
use crate::mm::vmscan::{BATCH, Poll, TaskCtx};
use crate::page_alloc::MAX_ORDER;
use mmtwin_event::vocabulary::{
    MmCompactionIsolateFreepages, MmCompactionIsolateMigratepages, MmCompactionMigratepages,
};

/// A compaction of a zone under way.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    zone: usize,
    order: u32,
    migratetype: Migratetype,
    /// It waits for pages.
    sync: bool,
    begun: bool,
    /// Pages of a pageblock.
    block: u64,
    /// Places of the scanners, and the end of the zone.
    migrate_pfn: u64,
    free_pfn: u64,
    end: u64,
    /// Free pages to move to.
    free: Vec<Pfn>,
    /// Pages of the batch that can be moved when they have been written, and how many others there were and could be moved.
    late: Vec<Pfn>,
    others: u64,
    moved: u64,
}

impl Pass {
    /// Of a zone, not begun.
    pub(super) fn new(zone: usize, order: u32, migratetype: Migratetype, sync: bool) -> Pass {
        let (begun, block, migrate_pfn, free_pfn, end, free) = (false, 1, 0, 0, 0, Vec::new());
        let (late, others, moved) = (Vec::new(), 0, 0);
        Pass { zone, order, migratetype, sync, begun, block, migrate_pfn, free_pfn, end, free, late, others, moved }
    }

    /// Continues by a batch of pages.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        if !self.begun {
            match ctx.kernel.early_suitable(self.zone, self.order) {
                Status::Continue => {}
                status => return Poll::Done(status),
            }
            self.begun = true;
            let of = &ctx.kernel.alloc.zones[self.zone];
            (self.migrate_pfn, self.end) = (of.start_pfn, of.start_pfn + of.spanned);
            self.block = 1 << ctx.kernel.alloc.pageblock_order();
            self.free_pfn = self.end / self.block * self.block;
            ctx.drain();
        }
        if !self.late.is_empty() {
            return self.migrate_late(ctx);
        }
        let status = self.finished(ctx);
        if status != Status::Continue {
            self.free_to_buddy(ctx);
            return Poll::Done(status);
        }
        if let Some(pages) = self.isolate_migratepages(ctx)
            // In 2010 only batches with pages counted.
            && !(pages.is_empty() && ctx.compacts_as_in_2010())
        {
            (self.others, self.moved) = (0, 0);
            let late = |page: &Pfn| ctx.is_late(*page);
            let (late, pages) = pages.into_iter().partition(late);
            self.late = late;
            self.migrate(ctx, pages);
            if !self.late.is_empty() {
                // Others run between two steps, and only a wait that has begun learns which of its pages they free.
                return self.migrate_late(ctx);
            }
        }
        Poll::On
    }

    /// Waits for pages under writeback, and moves them when they have been written.
    fn migrate_late(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        if let Some((until, why)) = ctx.wait_for_writes(self.zone, &mut self.late) {
            return Poll::Sleep(until, why);
        }
        let late = std::mem::take(&mut self.late);
        self.migrate(ctx, late);
        Poll::On
    }

    fn finished(&self, ctx: &TaskCtx<'_>) -> Status {
        if self.free_pfn <= self.migrate_pfn {
            return Status::Complete;
        }
        let of = &ctx.kernel.alloc.zones[self.zone];
        if !ctx.kernel.early_above(self.zone, self.order, of.marks.low + (1 << self.order)) {
            return Status::Continue;
        }
        let pageblock_order = ctx.kernel.alloc.pageblock_order();
        let fits = |order: u32| {
            let lists = &of.free[order as usize];
            !lists[self.migratetype as usize].is_empty()
                || order >= pageblock_order && lists.iter().any(|list| !list.is_empty())
        };
        if (self.order..=MAX_ORDER).any(fits) { Status::Success } else { Status::Continue }
    }

    fn free_to_buddy(&mut self, ctx: &mut TaskCtx<'_>) {
        for page in std::mem::take(&mut self.free) {
            let freed = ctx.kernel.free_unchecked(ctx.cpu, ctx.task, page);
            debug_assert!(freed.is_ok(), "it was isolated");
        }
    }

    /// Takes up to a batch of pages to move, to the end of the next pageblock at most; `None`: that is behind the other
    /// scanner.
    fn isolate_migratepages(&mut self, ctx: &mut TaskCtx<'_>) -> Option<Vec<Pfn>> {
        let begun = self.migrate_pfn;
        let end = (begun + self.block).next_multiple_of(self.block);
        if end > self.free_pfn {
            self.migrate_pfn = end;
            return None;
        }
        let (mut at, mut scanned, mut taken) = (begun, 0, Vec::new());
        while at < end && (taken.len() as u64) < BATCH {
            scanned += 1;
            let page = at as Pfn;
            let alloc = &ctx.kernel.alloc;
            if alloc.frames.state(page) == State::Free {
                let pages = (1u64 << alloc.frames.order(page)).min(end - at);
                scanned += pages - 1;
                at += pages;
                continue;
            }
            if !self.sync && alloc.block_type(page) != Migratetype::Movable {
                at = (at / self.block + 1) * self.block;
                continue;
            }
            // Pages that are on no list count as scanned, one by one; there may be many in a row.
            let listed = alloc.frames.next_listed(at..end.min((at / self.block + 1) * self.block));
            if listed > at {
                scanned += listed - at - 1;
                at = listed;
                continue;
            }
            let pages = 1u64 << alloc.frames.order(page);
            let waits = alloc.frames.has(page, Flag::Writeback) && !self.sync;
            if alloc.frames.state(page) == State::Allocated && alloc.frames.has(page, Flag::Lru) {
                // Locked memory stays where it is (`__isolate_lru_page`).
                if pages == 1 && !waits && !alloc.frames.has(page, Flag::Unevictable) {
                    let kernel = &mut *ctx.kernel;
                    kernel.reclaim.forget(&mut kernel.alloc.frames, &mut kernel.stat, ctx.cpu, page);
                    taken.push(page);
                }
                at += pages;
            } else {
                at += 1;
            }
        }
        self.migrate_pfn = at;
        ctx.spend(ctx.memory.costs.compact_scan * scanned);
        let (nr_scanned, nr_taken) = (scanned, taken.len() as u64);
        ctx.write(&MmCompactionIsolateMigratepages { start_pfn: None, end_pfn: None, nr_scanned, nr_taken });
        Some(taken)
    }

    /// Moves pages to free ones, and puts back what it cannot. With those that were late the batch is complete.
    fn migrate(&mut self, ctx: &mut TaskCtx<'_>, pages: Vec<Pfn>) {
        let (zone, wanted) = (self.zone, pages.len() as u64);
        let (moved, left) = ctx.move_pages(zone, pages, TaskCtx::is_movable, |ctx, _| {
            if self.free.is_empty() {
                self.isolate_freepages(ctx, wanted);
            }
            self.free.pop()
        });
        ctx.put_back(left.pages);
        (self.others, self.moved) = (self.others + wanted, self.moved + moved);
        if !self.late.is_empty() {
            return;
        }
        let (wanted, moved) = (self.others, self.moved);
        let events = &mut ctx.kernel.stat.events.reclaim;
        events.compact_blocks_moved += 1;
        events.compact_pages_moved += moved;
        events.compact_pagemigrate_failed += wanted - moved;
        ctx.write(&MmCompactionMigratepages { nr_migrated: moved, nr_failed: wanted - moved });
    }

    /// Takes free pages from the end of the zone down, pageblock by pageblock, until there are as many as are to be moved.
    fn isolate_freepages(&mut self, ctx: &mut TaskCtx<'_>, wanted: u64) {
        let low = self.migrate_pfn + self.block;
        let (mut at, mut again) = (self.free_pfn, low.min(self.free_pfn));
        while at > low && (self.free.len() as u64) < wanted {
            if self.is_target(ctx, at) && self.take_free(ctx, at) > 0 {
                again = again.max(at);
            }
            at -= self.block;
        }
        self.free_pfn = again;
    }

    /// True if a pageblock of the zone takes pages: it is of the movable type or free as a whole, and not in reserve.
    fn is_target(&self, ctx: &TaskCtx<'_>, pfn: u64) -> bool {
        let (alloc, page) = (&ctx.kernel.alloc, pfn as Pfn);
        let whole = || alloc.frames.state(page) == State::Free && alloc.frames.order(page) >= alloc.pageblock_order();
        pfn < self.end
            && match alloc.block_type(page) {
                Migratetype::Movable => true,
                Migratetype::Reserve => false,
                Migratetype::Unmovable | Migratetype::Reclaimable => whole(),
            }
    }

    /// Takes all free pages of a pageblock that the low mark leaves; how many.
    fn take_free(&mut self, ctx: &mut TaskCtx<'_>, first: u64) -> u64 {
        let (mut at, end, mut scanned, mut taken) = (first, (first + self.block).min(self.end), 0, 0);
        while at < end {
            let frames = &ctx.kernel.alloc.frames;
            let free = frames.next_free(at..end);
            scanned += free - at;
            at = free;
            if at == end {
                break;
            }
            scanned += 1;
            let page = at as Pfn;
            let pages = 1u64 << frames.order(page);
            let mark = ctx.kernel.alloc.zones[self.zone].marks.low + pages;
            if !ctx.kernel.early_above(self.zone, 0, mark)
                || !ctx.kernel.isolate_free((ctx.cpu, ctx.task), self.zone, page)
            {
                at += 1;
                continue;
            }
            self.free.extend(page..page + pages as Pfn);
            taken += pages;
            at += pages;
        }
        ctx.spend(ctx.memory.costs.compact_scan * scanned);
        let (nr_scanned, nr_taken) = (scanned, taken);
        ctx.write(&MmCompactionIsolateFreepages { start_pfn: None, end_pfn: None, nr_scanned, nr_taken });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hw::{Device, IoClass};
    use crate::mm::vmscan_zone::tests::{block, on};
    use crate::page_alloc::{Caller, Policy};

    #[test]
    fn a_page_that_is_freed_while_its_write_is_awaited_is_not_moved() {
        let (left, _) = on("2.6.36", |ctx| {
            ctx.memory.disk = Device::new(1_000_000, 0, false);
            let pages = block(ctx, true, 4);
            let mut caller = Caller::new(0, ctx.task, Policy::Default);
            assert!(ctx.memory.dirty(ctx.kernel, &mut caller, 0, 3));
            ctx.memory.write_out(ctx.kernel, (0, ctx.task), pages[3], IoClass::Async);
            let zone = ctx.kernel.alloc.frames.zone(pages[0]);
            let of = &ctx.kernel.alloc.zones[zone];
            let (block, end) = (1 << ctx.kernel.alloc.pageblock_order(), of.start_pfn + of.spanned);
            // No block of the order is left, and the scanner of free pages has not begun.
            let order = MAX_ORDER + 1;
            let (begun, migrate_pfn, free_pfn) = (true, u64::from(pages[0]), end / block * block);
            let new = Pass::new(zone, order, Migratetype::Movable, true);
            let mut pass = Pass { begun, block, migrate_pfn, free_pfn, end, ..new };
            assert!(matches!(pass.step(ctx), Poll::Sleep(..)), "{pass:?}");
            assert_eq!((pass.late.clone(), pass.others), (vec![pages[3]], 15));
            let all = 0..ctx.memory.regions[0].len();
            ctx.memory.regions[0].unmap_shared(ctx.kernel, &caller, 0, all);
            ctx.memory.discard(ctx.kernel, &caller, 0, 3..4).unwrap();
            assert_eq!(pass.step(ctx), Poll::On);
            (pass.late.len(), pass.others, ctx.kernel.reclaim.isolated.len())
        });
        assert_eq!(left, (0, 15, 0));
    }

    #[test]
    fn pages_are_not_moved_to_pageblocks_in_reserve() {
        let (targets, _) = on("3.4", |ctx| {
            let mut pass = Pass::new(1, 9, Migratetype::Movable, true);
            let (alloc, of) = (&ctx.kernel.alloc, &ctx.kernel.alloc.zones[1]);
            (pass.block, pass.end) = (1 << alloc.pageblock_order(), of.start_pfn + of.spanned);
            let blocks = (of.start_pfn..pass.end).step_by(pass.block as usize);
            let targets = blocks.map(|pfn| (alloc.block_type(pfn as Pfn), pass.is_target(ctx, pfn)));
            targets.take(3).collect::<Vec<_>>()
        });
        let (reserve, movable) = ((Migratetype::Reserve, false), (Migratetype::Movable, true));
        assert_eq!(targets, [reserve, reserve, movable]);
    }
}

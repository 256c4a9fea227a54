//! Compacting a zone: `compact_zone`, `compact_finished`, `migrate_pages` of single pages.

use super::fast::Search;
use super::migrate::Left;
use super::{BLOCK, Status};
use crate::frame::{Migratetype, Pfn, ZoneKind};
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::page_alloc::{HUGE_ORDER, MAX_ORDER};
use mmtwin_event::names::{MIGRATE_MODE, MIGRATE_REASON};
use mmtwin_event::value::{CompactResult, MigrateMode, MigrateReason};
use mmtwin_event::vocabulary::{
    MmCompactionBegin, MmCompactionEnd, MmCompactionFinished, MmCompactionMigratepages, MmMigratePages,
};

/// Mode of a compaction (`enum migrate_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It waits for nothing.
    Async,
    SyncLight,
}

/// A compaction of a zone under way.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub zone: usize,
    pub order: u32,
    pub migratetype: Migratetype,
    pub highest: ZoneKind,
    pub mode: Mode,
    /// A task does it for itself.
    pub direct: bool,
    /// The whole zone, and nothing is skipped.
    pub thorough: bool,
    /// For no order, but until fewer free pages are in small blocks ([`super::proactive`]).
    pub proactive: bool,
    /// Places of the scanners, and the end of the zone.
    pub migrate_pfn: u64,
    pub free_pfn: u64,
    pub start: u64,
    pub end: u64,
    pub search: Search,
    /// Free pages to move to.
    pub free: Vec<Pfn>,
    pub migrate_scanned: u64,
    pub free_scanned: u64,
    /// A pageblock that was begun before is scanned to its end.
    pub finish_block: bool,
    /// Where pages were moved from last.
    last: Option<u64>,
    begun: bool,
    from_start: bool,
    /// A block was captured when the list of the CPU was drained, which is noticed after the next pages have been
    /// migrated.
    pub captured: bool,
    /// Asynchronous compaction has moved nothing so far and starts at the cached position (`update_cached`).
    together: bool,
}

impl Pass {
    /// Of a zone, not begun.
    pub(super) fn new(zone: usize, order: u32, migratetype: Migratetype, highest: ZoneKind, mode: Mode) -> Pass {
        Pass {
            zone,
            order,
            migratetype,
            highest,
            mode,
            direct: false,
            thorough: false,
            proactive: false,
            migrate_pfn: 0,
            free_pfn: 0,
            start: 0,
            end: 0,
            search: Search::new(order),
            free: Vec::new(),
            migrate_scanned: 0,
            free_scanned: 0,
            finish_block: false,
            last: None,
            begun: false,
            from_start: false,
            captured: false,
            together: false,
        }
    }

    /// Continues by a batch of pages.
    pub(super) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        if !self.begun {
            if !self.proactive {
                match ctx.kernel.compaction_suitable((ctx.cpu, ctx.task), self.zone, self.order, self.highest) {
                    Status::Continue => {}
                    status => return Poll::Done(status),
                }
            }
            self.begin(ctx);
        }
        let status = self.finished(ctx);
        if status != Status::Continue {
            return Poll::Done(self.end(ctx, status));
        }
        let begun = self.migrate_pfn;
        self.finish_block = self.last.is_some_and(|last| last / BLOCK == begun / BLOCK);
        self.scan(ctx, begun)
    }

    /// Takes pages from the scanner's place on and moves them.
    fn scan(&mut self, ctx: &mut TaskCtx<'_>, begun: u64) -> Poll<Status> {
        let finishes = ctx.kernel.reclaim.rules.finishes_pageblocks;
        let pages = self.isolate_migratepages(ctx);
        if pages.is_empty() {
            if self.together {
                let [quick, thorough] = &mut ctx.kernel.compaction.zones[self.zone].migrate;
                *thorough = *quick;
            }
            return self.drain(ctx);
        }
        self.together = false;
        self.last = Some(if finishes { (self.migrate_pfn - 1) / BLOCK * BLOCK } else { begun });
        let wanted: u64 = pages.iter().map(|&page| 1u64 << ctx.kernel.alloc.frames.order(page)).sum();
        let (moved, left) = self.migrate(ctx, pages, wanted);
        ctx.write(&MmCompactionMigratepages { nr_migrated: moved, nr_failed: wanted - moved });
        if !left.pages.is_empty() {
            ctx.put_back(left.pages);
            if left.out_of_free && !self.have_met() {
                return Poll::Done(self.end(ctx, Status::Contended));
            }
            if finishes {
                let rest = !self.migrate_pfn.is_multiple_of(BLOCK);
                if rest && !self.thorough && !self.finish_block {
                    self.finish_block = true;
                    if self.order == HUGE_ORDER {
                        self.last = None;
                    }
                    return self.scan(ctx, begun);
                }
            } else if self.direct && self.mode == Mode::Async {
                // The block that it could not empty is left.
                let unit = 1u64 << self.order;
                self.migrate_pfn = ((self.migrate_pfn - 1) / unit + 1) * unit;
                self.last = None;
            }
        }
        if finishes && self.has_captured(ctx) {
            return Poll::Done(self.end(ctx, Status::Success));
        }
        self.drain(ctx)
    }

    /// When the scanner leaves a block of the order from which pages were migrated, it becomes a free block, or is
    /// captured by the task.
    fn drain(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<Status> {
        if self.last.is_some_and(|last| self.order > 0 && last < self.migrate_pfn >> self.order << self.order) {
            ctx.drain();
            ctx.kernel.drain_zone_pages(ctx.cpu, self.zone);
            self.last = None;
        }
        if !ctx.kernel.reclaim.rules.finishes_pageblocks && self.has_captured(ctx) {
            return Poll::Done(self.end(ctx, Status::Success));
        }
        Poll::On
    }

    fn has_captured(&self, ctx: &TaskCtx<'_>) -> bool {
        self.captured || ctx.kernel.alloc.has_captured()
    }

    fn begin(&mut self, ctx: &mut TaskCtx<'_>) {
        self.begun = true;
        (self.start, self.end) = ctx.kernel.compacted_span(self.zone);
        if !self.proactive && ctx.kernel.compaction.zones[self.zone].deferral.restarts(self.order) {
            ctx.kernel.reset_isolation_suitable(self.zone);
        }
        let known = &mut ctx.kernel.compaction.zones[self.zone];
        let (zone, last) = (self.start..self.end, (self.end - 1) / BLOCK * BLOCK);
        if self.thorough {
            (self.migrate_pfn, self.free_pfn) = (self.start, last);
        } else {
            if !zone.contains(&known.free) {
                known.free = last;
            }
            let from = known.migrate[usize::from(self.mode != Mode::Async)];
            if !zone.contains(&from) {
                known.migrate = [self.start; 2];
            }
            self.free_pfn = known.free;
            self.migrate_pfn = known.migrate[usize::from(self.mode != Mode::Async)];
        }
        self.from_start = self.thorough || self.migrate_pfn <= known.first_migrate;
        self.together = self.mode == Mode::Async && known.migrate[0] == known.migrate[1];
        self.write_begin(ctx);
        ctx.drain();
    }

    /// The scanners have met.
    fn have_met(&self) -> bool {
        self.free_pfn / BLOCK <= self.migrate_pfn / BLOCK
    }

    /// `compact_finished`.
    fn finished(&mut self, ctx: &mut TaskCtx<'_>) -> Status {
        let status = self.judge(ctx);
        let of = &ctx.kernel.alloc.zones[self.zone];
        let event = MmCompactionFinished {
            node: of.node as i32,
            zone: mmtwin_event::value::Zone(of.kind as u32),
            order: if self.proactive { -1 } else { self.order as i32 },
            ret: CompactResult(status as u32),
        };
        ctx.write(&event);
        if status == Status::NoSuitablePage { Status::Continue } else { status }
    }

    fn judge(&mut self, ctx: &mut TaskCtx<'_>) -> Status {
        if self.have_met() {
            let known = &mut ctx.kernel.compaction.zones[self.zone];
            (known.migrate, known.free) = ([self.start; 2], (self.end - 1) / BLOCK * BLOCK);
            known.flush |= self.direct;
            return if self.from_start { Status::Complete } else { Status::PartialSkipped };
        }
        if self.proactive {
            return ctx.kernel.proactive_finished(self.zone);
        }
        if !self.migrate_pfn.is_multiple_of(BLOCK) {
            return Status::Continue;
        }
        let free = &ctx.kernel.alloc.zones[self.zone].free;
        let fits = |order: u32| {
            let steals = order >= HUGE_ORDER / 2 || self.migratetype != Migratetype::Movable;
            let lists = Migratetype::ALL.into_iter().filter(|&of| of == self.migratetype || steals);
            lists.map(|of| free[order as usize][of as usize].len()).sum::<u32>() > 0
        };
        if (self.order..=MAX_ORDER).any(fits) { Status::Success } else { Status::NoSuitablePage }
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>, status: Status) -> Status {
        if let Some(highest) = self.free.iter().copied().max() {
            let free = u64::from(highest) / BLOCK * BLOCK;
            let known = &mut ctx.kernel.compaction.zones[self.zone];
            known.free = known.free.max(free);
            for page in std::mem::take(&mut self.free) {
                let freed = ctx.kernel.free_unchecked(ctx.cpu, ctx.task, page);
                debug_assert!(freed.is_ok(), "it was isolated");
            }
        }
        let events = &mut ctx.kernel.stat.events.reclaim;
        events.compact_migrate_scanned += self.migrate_scanned;
        events.compact_free_scanned += self.free_scanned;
        let event = MmCompactionEnd {
            zone_start: self.start,
            migrate_pfn: self.migrate_pfn,
            free_pfn: self.free_pfn,
            zone_end: self.end,
            sync: self.mode != Mode::Async,
            status: CompactResult(status as u32),
        };
        ctx.write(&event);
        status
    }

    fn write_begin(&self, ctx: &mut TaskCtx<'_>) {
        let event = MmCompactionBegin {
            zone_start: self.start,
            migrate_pfn: self.migrate_pfn,
            free_pfn: self.free_pfn,
            zone_end: self.end,
            sync: self.mode != Mode::Async,
        };
        ctx.write(&event);
    }

    /// A free block of an order to move to (`compaction_alloc`).
    fn next_free(&mut self, ctx: &mut TaskCtx<'_>, order: u32) -> Option<Pfn> {
        if order == 0 {
            return self.free.pop();
        }
        let whole =
            |run: &[Pfn]| run[0].is_multiple_of(1 << order) && run.iter().zip(run[0]..).all(|(&page, at)| page == at);
        let at = self.free.windows(1 << order).position(whole)?;
        let head = self.free[at];
        self.free.drain(at..at + (1 << order));
        ctx.kernel.alloc.frames.join(head, order);
        Some(head)
    }

    /// Moves pages to free ones, `wanted` of them: how many it did, and the others.
    fn migrate(&mut self, ctx: &mut TaskCtx<'_>, pages: Vec<Pfn>, wanted: u64) -> (u64, Left) {
        let zone = self.zone;
        let (moved, left) = ctx.move_pages(zone, pages, TaskCtx::is_movable, |ctx, order| {
            let found = self.next_free(ctx, order);
            if found.is_some() {
                return found;
            }
            self.isolate_freepages(ctx, wanted as usize);
            self.next_free(ctx, order)
        });
        let events = &mut ctx.kernel.stat.events.numa;
        events.pgmigrate_success += moved;
        events.pgmigrate_fail += left.failed;
        let mode: &[u8] = if self.mode == Mode::Async { b"MIGRATE_ASYNC" } else { b"MIGRATE_SYNC_LIGHT" };
        let none = (!ctx.kernel.probe.old_events()).then_some(0);
        let event = MmMigratePages {
            nr_succeeded: moved,
            nr_failed: left.failed,
            mode: MigrateMode(MIGRATE_MODE.index_of(mode).unwrap_or_default() as u32),
            reason: MigrateReason(MIGRATE_REASON.index_of(b"compaction").unwrap_or_default() as u32),
            nr_thp_succeeded: none,
            nr_thp_failed: none,
            nr_thp_split: none,
            nr_split: none,
        };
        ctx.write(&event);
        (moved, left)
    }
}

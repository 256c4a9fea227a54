//! The two scanners: `isolate_migratepages`, `isolate_migratepages_block`, `isolate_freepages`,
//! `isolate_freepages_block`, and the pageblocks that they skip (6.1 to 6.12; large folios by 7.3).
//!
//! Unmovable blocks are scanned page by page, as the lab's module and boot allocate them without compound pages.
//! Checked by a test of `zone.rs`, and against a guest, event by event (docs/model/compaction.md).

use super::BLOCK;
use super::zone::{Mode, Pass};
use crate::frame::{Flag, Migratetype, Pfn, State};
use crate::mm::vmscan::{BATCH, TaskCtx};
use crate::page_alloc::HUGE_ORDER;
use mmtwin_event::vocabulary::{MmCompactionIsolateFreepages, MmCompactionIsolateMigratepages};

impl Pass {
    /// Takes pages to move, from one pageblock; empty if there were none up to the other scanner.
    pub(super) fn isolate_migratepages(&mut self, ctx: &mut TaskCtx<'_>) -> Vec<Pfn> {
        let mut found = self.fast_find_migrateblock(ctx);
        while (self.migrate_pfn / BLOCK + 1) * BLOCK <= self.free_pfn {
            let block = self.migrate_pfn / BLOCK;
            let end = (block + 1) * BLOCK;
            let skipped = self.migrate_pfn.is_multiple_of(BLOCK) && !found && self.skips(ctx, block)
                || !ctx.kernel.is_block(self.zone, block);
            ctx.spend(ctx.memory.costs.compact_block);
            if skipped || !self.is_source(ctx, block) {
                (self.migrate_pfn, found) = (end, false);
                if !skipped {
                    self.note_migrate(ctx, end);
                }
                continue;
            }
            return self.take_from(ctx, end);
        }
        Vec::new()
    }

    /// True if pages of a pageblock are to be moved: it is no huge page, and a task that does not wait keeps to its own
    /// type.
    fn is_source(&self, ctx: &TaskCtx<'_>, block: u64) -> bool {
        if ctx.kernel.is_huge(block) {
            return false;
        }
        let of = ctx.kernel.alloc.block_type((block * BLOCK) as Pfn);
        self.mode != Mode::Async || !self.direct || of == self.migratetype
    }

    /// `isolate_migratepages_block`: up to a batch from the scanner's place to the end of the pageblock.
    fn take_from(&mut self, ctx: &mut TaskCtx<'_>, end: u64) -> Vec<Pfn> {
        let finishes = ctx.kernel.reclaim.rules.finishes_pageblocks;
        let (begun, mut at, mut nr_scanned) = (self.migrate_pfn, self.migrate_pfn, 0);
        let (mut taken, mut nr_taken) = (Vec::new(), 0);
        // Folios of its order and above stay (`skip_isolation_on_order`).
        let orders = 0..if self.thorough || self.proactive { HUGE_ORDER } else { self.order.min(HUGE_ORDER) }.max(1);
        // It was begun with its first page; a page of it was taken.
        let (mut first, mut touched) = (false, false);
        // Asynchronous compaction skips areas that cannot become a block of its order.
        let unit = (self.direct && self.mode == Mode::Async).then_some(1u64 << self.order);
        let mut unit_end = unit.map_or(u64::MAX, |unit| (at / unit + 1) * unit);
        while at < end {
            if let Some(unit) = unit.filter(|_| at >= unit_end) {
                if !taken.is_empty() {
                    break;
                }
                unit_end = (at / unit + 1) * unit;
            }
            nr_scanned += 1;
            if !first && (at.is_multiple_of(BLOCK) || at == self.start) {
                if self.skips(ctx, at / BLOCK) {
                    at = end;
                    break;
                }
                first = true;
            }
            let page = at as Pfn;
            let frames = &ctx.kernel.alloc.frames;
            let state = frames.state(page);
            let order = if state == State::None { 0 } else { frames.order(page) };
            if state == State::Free {
                at += 1 << order;
                nr_scanned += if finishes { (1 << order) - 1 } else { 0 };
                continue;
            }
            let on_list = state == State::Allocated && frames.has(page, Flag::Lru);
            if on_list && orders.contains(&order) && !frames.has(page, Flag::Writeback) {
                // Before 6.5 a pageblock is marked only if its first page is isolated.
                if !touched && !self.thorough && if finishes { first } else { at.is_multiple_of(BLOCK) } {
                    ctx.kernel.compaction.skip[(at / BLOCK) as usize] = true;
                }
                touched = true;
                let kernel = &mut *ctx.kernel;
                kernel.reclaim.forget(&mut kernel.alloc.frames, &mut kernel.stat, ctx.cpu, page);
                taken.push(page);
                nr_taken += 1 << order;
                at += 1 << order;
                if nr_taken >= BATCH && !self.finish_block {
                    break;
                }
                continue;
            }
            at += if on_list { 1 << order } else { 1 };
            // Since 6.4 all pages of a folio that is skipped count.
            nr_scanned += if on_list && finishes { (1 << order) - 1 } else { 0 };
            if unit.is_some() {
                ctx.put_back(std::mem::take(&mut taken));
                nr_taken = 0;
                if at < unit_end {
                    at = unit_end.min(end);
                }
            }
        }
        self.migrate_pfn = at.min(end);
        self.migrate_scanned += nr_scanned;
        ctx.kernel.stat.events.reclaim.compact_isolated += nr_taken;
        if self.migrate_pfn == end && (taken.is_empty() || self.finish_block) {
            if first && !touched {
                ctx.kernel.compaction.skip[(begun / BLOCK) as usize] = true;
            }
            self.note_migrate(ctx, end);
        }
        let event = MmCompactionIsolateMigratepages {
            start_pfn: Some(begun),
            end_pfn: Some(self.migrate_pfn),
            nr_scanned,
            nr_taken,
        };
        ctx.spend(ctx.memory.costs.compact_scan * nr_scanned);
        ctx.write(&event);
        taken
    }

    /// Takes free pages from the end of the zone down, until there are as many as are to be moved.
    pub(super) fn isolate_freepages(&mut self, ctx: &mut TaskCtx<'_>, wanted: usize) {
        self.fast_isolate_freepages(ctx, wanted);
        if !self.free.is_empty() {
            return;
        }
        let least = (self.migrate_pfn / BLOCK + 1) * BLOCK;
        let mut block = self.free_pfn / BLOCK;
        let mut at = self.free_pfn;
        // Asynchronous compaction scans few pages of a pageblock, synchronous fewer as long as none was isolated.
        let mut stride = if self.mode == Mode::Async { BATCH } else { 1 };
        while block * BLOCK >= least {
            let end = ((block + 1) * BLOCK).min(self.end);
            ctx.spend(ctx.memory.costs.compact_block);
            if ctx.kernel.is_block(self.zone, block) && self.is_target(ctx, block) && !self.skips(ctx, block) {
                let found = self.free_from(ctx, &mut at, end, wanted, stride);
                if at == end {
                    let behind = if ctx.kernel.reclaim.rules.finishes_pageblocks { block - 1 } else { block };
                    let zone = &mut ctx.kernel.compaction.zones[self.zone];
                    zone.free = zone.free.min(behind * BLOCK);
                    ctx.kernel.compaction.skip[block as usize] = true;
                }
                if self.free.len() >= wanted || at < end {
                    break;
                }
                stride = if found > 0 { 1 } else { (2 * stride).min(BATCH) };
            }
            block -= 1;
            at = block * BLOCK;
        }
        let end = ((block + 1) * BLOCK).min(self.end);
        self.free_pfn = if at >= end { (block * BLOCK).saturating_sub(BLOCK) } else { at };
    }

    /// True if a pageblock takes pages: it is of the movable type and not free as a whole.
    fn is_target(&self, ctx: &TaskCtx<'_>, block: u64) -> bool {
        let (alloc, first) = (&ctx.kernel.alloc, (block * BLOCK) as Pfn);
        let whole = alloc.frames.state(first) == State::Free && alloc.frames.order(first) >= HUGE_ORDER;
        let any_type = self.thorough && !self.proactive;
        !whole && (any_type || alloc.block_type(first) == Migratetype::Movable)
    }

    pub(super) fn free_from(
        &mut self,
        ctx: &mut TaskCtx<'_>,
        at: &mut u64,
        end: u64,
        wanted: usize,
        stride: u64,
    ) -> usize {
        let (begun, before, mut scanned) = (*at, self.free.len(), 0);
        while *at < end {
            scanned += 1;
            let page = *at as Pfn;
            let frames = &ctx.kernel.alloc.frames;
            let state = frames.state(page);
            let pages = if state == State::None { 1 } else { 1u64 << frames.order(page) };
            match state {
                State::Free => {
                    if !ctx.kernel.isolate_free((ctx.cpu, ctx.task), self.zone, page) {
                        break;
                    }
                    scanned += pages - 1;
                    self.free.extend(*at as Pfn..(*at + pages) as Pfn);
                    if self.free.len() >= wanted {
                        *at += pages;
                        break;
                    }
                    *at += pages - 1 + stride;
                }
                State::Allocated if frames.has(page, Flag::Lru) => {
                    // Since 6.6 all pages of a huge one count.
                    scanned += if ctx.kernel.reclaim.rules.finishes_pageblocks { pages - 1 } else { 0 };
                    *at += pages - 1 + stride;
                }
                State::Allocated | State::PerCpu | State::None => *at += stride,
            }
        }
        *at = (*at).min(end);
        self.free_scanned += scanned;
        let taken = self.free.len() - before;
        ctx.kernel.stat.events.reclaim.compact_isolated += taken as u64;
        let event = MmCompactionIsolateFreepages {
            start_pfn: Some(begun),
            end_pfn: Some(*at),
            nr_scanned: scanned,
            nr_taken: taken as u64,
        };
        ctx.spend(ctx.memory.costs.compact_scan * scanned);
        ctx.write(&event);
        taken
    }

    /// True if a pageblock is known to hold nothing.
    fn skips(&self, ctx: &TaskCtx<'_>, block: u64) -> bool {
        !self.thorough && ctx.kernel.compaction.skip.get(block as usize).is_some_and(|skip| *skip)
    }

    /// Records how far pages have been scanned: `update_cached_migrate`, up to the end of the pageblock that begins
    /// there.
    fn note_migrate(&self, ctx: &mut TaskCtx<'_>, pfn: u64) {
        let pfn = (pfn / BLOCK + 1) * BLOCK;
        let [quick, thorough] = &mut ctx.kernel.compaction.zones[self.zone].migrate;
        *quick = (*quick).max(pfn);
        if self.mode != Mode::Async {
            *thorough = (*thorough).max(pfn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::frame::ZoneKind;
    use crate::hw::load::Load;
    use crate::mm::memory::AccessState;
    use crate::probe::{Probe, Task};
    use std::path::Path;

    /// Pages that the scanner of a release counts as scanned in a free pageblock, and the events of a zone that has
    /// blocks.
    fn free_pageblock(release: &str) -> (u64, u64) {
        let text = format!(
            "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"\n\
             [kernel]\nrelease = \"{release}\"\n"
        );
        let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap();
        let probe = Probe::new([mmtwin_event::Kind::MmCompactionSuitable]);
        let mut kernel = build::kernel_of(&scenario, (&scenario.machine, &Default::default()), probe).unwrap();
        let load = Load::new(build::memory(&scenario.machine).unwrap());
        let mut memory = AccessState::new(load, build::fault_costs(&scenario), 1);
        let task = Task { pid: 7, tgid: 7 };
        let zone = 1;
        kernel.compaction_suitable((0, task), zone, 3, ZoneKind::Normal);
        let mut ctx = TaskCtx { kernel: &mut kernel, memory: &mut memory, cpu: 0, task };
        let mut pass = Pass::new(zone, 3, Migratetype::Unmovable, ZoneKind::Normal, Mode::SyncLight);
        (pass.start, pass.end) = ctx.kernel.compacted_span(zone);
        pass.migrate_pfn = 16 * BLOCK;
        assert_eq!(ctx.kernel.alloc.frames.state(pass.migrate_pfn as Pfn), State::Free);
        assert!(pass.take_from(&mut ctx, 17 * BLOCK).is_empty());
        assert!(ctx.kernel.compaction.skip[16] && pass.migrate_pfn == 17 * BLOCK);
        (pass.migrate_scanned, kernel.probe.written())
    }

    #[test]
    fn a_free_block_counts_as_one_page_until_6_6() {
        assert_eq!(free_pageblock("6.1"), (1, 1));
        assert_eq!(free_pageblock("6.12"), (1 << 10, 0));
    }
}

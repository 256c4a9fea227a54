//! Pageblocks by the free lists instead of by address: `fast_isolate_freepages`, `fast_isolate_around`,
//! `fast_find_migrateblock` (6.1).
//!
//! Before the free scanner continues, a few blocks of smaller orders on the lists are checked, the last ones first: one
//! high in the zone is taken. The more often that fails, the fewer are checked; the list is rotated so that the next
//! search starts at others. kcompactd, or a task that needs a large movable block, begins with a pageblock that has a
//! large free block low in the zone; 6.1 sets its skip bit before it is scanned, and so skips it. Checked by tests here
//! and against a guest, event by event (docs/model/compaction.md).

use super::BLOCK;
use super::zone::{Mode, Pass};
use crate::frame::{Migratetype, Pfn};
use crate::mm::vmscan::{BATCH, COSTLY_ORDER, TaskCtx};

/// State of the searches of a compaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// Searches in a row that found nothing.
    fails: u32,
    /// Order of free pages that is searched first.
    order: u32,
    /// Lowest page of the pageblocks that were begun with.
    start: Start,
}

/// Where a linear scan begins when pageblocks to begin with have run out (`fast_start_pfn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    None,
    At(u64),
    Used,
}

impl Search {
    /// For a compaction of an order.
    pub(super) fn new(order: u32) -> Search {
        Search { fails: 0, order, start: Start::None }
    }

    /// Blocks that are checked (`freelist_scan_limit`).
    fn limit(&self) -> u64 {
        (BATCH >> self.fails.min(15)) + 1
    }

    /// The order after one in which there was nothing; `None`: all have been searched (`next_search_order`).
    fn next(&mut self, wanted: u32, order: u32) -> Option<u32> {
        let next = order.checked_sub(1).unwrap_or(wanted - 1);
        if next != self.order {
            return Some(next);
        }
        self.order = self.order.checked_sub(1).unwrap_or(wanted - 1);
        None
    }
}

impl Pass {
    /// Isolates free blocks from the lists, up to the number needed.
    pub(super) fn fast_isolate_freepages(&mut self, ctx: &mut TaskCtx<'_>, wanted: usize) {
        if self.order == 0 {
            return;
        }
        let begins = self.free_pfn >= ctx.kernel.compaction.zones[self.zone].first_free;
        let mut limit = if begins { BLOCK / 2 } else { (self.search.limit() / 2).max(1) };
        let distance = self.free_pfn.saturating_sub(self.migrate_pfn);
        let block_of = |pfn: u64| pfn / BLOCK * BLOCK;
        let (good, least) = (block_of(self.free_pfn - distance / 4), block_of(self.free_pfn - distance / 2));
        let (mut found, mut highest, mut scanned) = (None, 0, 0);
        self.search.order = self.search.order.min(self.order - 1);
        let mut next = Some(self.search.order);
        while let Some(order) = next.filter(|_| found.is_none()) {
            let alloc = &mut ctx.kernel.alloc;
            let list = &mut alloc.zones[self.zone].free[order as usize][Migratetype::Movable as usize];
            let (mut best, mut looked, mut last, mut pick) = (0, 0, None, None);
            for page in list.iter_back(&alloc.frames) {
                looked += 1;
                let pfn = u64::from(page);
                if pfn >= highest {
                    highest = block_of(pfn).max(self.start);
                }
                if pfn >= good {
                    (self.search.fails, self.search.order, pick) = (0, order, Some(page));
                    break;
                }
                if pfn >= least && pfn > best {
                    best = pfn;
                    limit >>= 1;
                }
                if looked >= limit {
                    last = Some(page);
                    break;
                }
            }
            scanned += looked;
            let pick = pick.or((best > 0).then_some(best as Pfn));
            if let Some(page) = pick.or(last) {
                list.rotate_to_head(&mut alloc.frames, page);
            }
            let mut at = order;
            if let Some(page) = pick {
                if ctx.kernel.isolate_free((ctx.cpu, ctx.task), self.zone, page) {
                    self.free.extend(page..page + (1 << order));
                    ctx.kernel.stat.events.reclaim.compact_isolated += 1 << order;
                    scanned += (1 << order) - 1;
                    found = Some(u64::from(page));
                } else {
                    // The zone has too little left: the search ends as if all orders had been searched.
                    at = self.search.order + 1;
                }
            }
            if self.free.len() >= wanted {
                break;
            }
            if looked >= limit {
                limit = (limit >> 1).max(1);
            }
            next = self.search.next(self.order, at);
        }
        if found.is_none() {
            self.search.fails += 1;
            if begins && highest >= least {
                found = Some(highest);
            } else if begins && self.direct {
                found = Some(least);
            }
            self.free_pfn = found.unwrap_or(self.free_pfn);
        }
        let known = &mut ctx.kernel.compaction.zones[self.zone];
        if highest > 0 && highest >= known.free {
            known.free = highest.saturating_sub(BLOCK);
        }
        self.free_scanned += scanned;
        ctx.spend(ctx.memory.costs.compact_scan * scanned);
        if let Some(pfn) = found {
            self.around(ctx, pfn, wanted);
        }
    }

    /// The rest of the pageblock in which one was found, unless no more pages are needed.
    fn around(&mut self, ctx: &mut TaskCtx<'_>, pfn: u64, wanted: usize) {
        let block = pfn / BLOCK;
        let enough = self.free.len() >= wanted || self.direct && self.mode == Mode::Async;
        if enough || !ctx.kernel.is_block(self.zone, block) {
            return;
        }
        let (mut at, end) = ((block * BLOCK).max(self.start), ((block + 1) * BLOCK).min(self.end));
        self.free_from(ctx, &mut at, end, wanted, 1);
        if at == end {
            ctx.kernel.compaction.skip[block as usize] = true;
        }
    }

    /// Moves to a pageblock that is easily emptied; true if there is one.
    pub(super) fn fast_find_migrateblock(&mut self, ctx: &mut TaskCtx<'_>) -> bool {
        let begins = self.migrate_pfn == self.start;
        let finishes = ctx.kernel.reclaim.rules.finishes_pageblocks;
        if self.thorough
            || finishes && self.finish_block
            || !begins && !self.migrate_pfn.is_multiple_of(BLOCK)
            || self.order <= COSTLY_ORDER
            || self.direct && self.migratetype != Migratetype::Movable
        {
            return false;
        }
        let distance = self.free_pfn.saturating_sub(self.migrate_pfn) >> if begins { 1 } else { 3 };
        let (end, limit) = ((self.migrate_pfn + distance) / BLOCK * BLOCK, self.search.limit());
        let (mut scanned, mut found) = (0, None);
        for order in (COSTLY_ORDER..self.order).rev() {
            if scanned >= limit || found.is_some() {
                break;
            }
            let alloc = &mut ctx.kernel.alloc;
            let list = &mut alloc.zones[self.zone].free[order as usize][Migratetype::Movable as usize];
            let mut last = None;
            for page in list.iter(&alloc.frames) {
                scanned += 1;
                let low = u64::from(page) < end;
                if scanned > limit || low && !ctx.kernel.compaction.skip[page as usize / BLOCK as usize] {
                    (found, last) = ((scanned <= limit).then_some(u64::from(page)), Some(page));
                    break;
                }
            }
            last.into_iter().for_each(|page| list.rotate_to_tail(&mut alloc.frames, page));
        }
        self.migrate_scanned += scanned;
        ctx.spend(ctx.memory.costs.compact_scan * scanned);
        match found {
            Some(pfn) => {
                self.search.start = match self.search.start {
                    Start::None => Start::At(pfn),
                    Start::At(least) => Start::At(least.min(pfn)),
                    Start::Used => Start::Used,
                };
                self.search.fails = 0;
                self.migrate_pfn = (pfn / BLOCK * BLOCK).max(self.start);
                if !finishes {
                    ctx.kernel.compaction.skip[(pfn / BLOCK) as usize] = true;
                }
            }
            None => {
                self.search.fails += 1;
                if let Start::At(pfn) = self.search.start {
                    (self.migrate_pfn, self.search.start) = (pfn, Start::Used);
                }
            }
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_cyclic() {
        let of = |wanted, first: u32| {
            let mut search = Search { fails: 0, order: first, start: Start::None };
            let mut orders = vec![first];
            while let Some(next) = search.next(wanted, orders[orders.len() - 1]) {
                orders.push(next);
            }
            (orders, search.order)
        };
        // The next search begins below.
        assert_eq!((of(4, 3), of(4, 1), of(1, 0)), ((vec![3, 2, 1, 0], 2), (vec![1, 0, 3, 2], 0), (vec![0], 0)));
    }

    #[test]
    fn fewer_are_looked_at_after_failures() {
        let limit = |fails| Search { fails, order: 0, start: Start::None }.limit();
        assert_eq!([0, 1, 5, 6, 99].map(limit), [33, 17, 2, 1, 1]);
    }
}

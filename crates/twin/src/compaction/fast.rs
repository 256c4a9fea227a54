//! Free pages straight from the free lists: `fast_isolate_freepages`, `fast_isolate_around` (5.1 to 6.18).
//!
//! Before the scanner of free pages goes on, a few blocks of smaller orders are looked at on the lists, the last ones
//! first: one that lies high in the zone is taken. The more often that fails, the fewer are looked at. Left out: the
//! same search for pages to move, the first pageblock of a boot (`compact_init_free_pfn`) other than the zone's last.

use super::BLOCK;
use super::zone::{Mode, Pass};
use crate::page::{Migratetype, Pfn};
use crate::reclaim::{BATCH, World};

/// What the search has learned in a compaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// Searches in a row that found nothing.
    fails: u32,
    /// Order that is looked for first.
    order: u32,
}

impl Search {
    /// For a compaction of an order.
    pub(super) fn new(order: u32) -> Search {
        Search { fails: 0, order: order.saturating_sub(1) }
    }

    /// Orders in the order in which they are looked for: down from the last one that was good, and around.
    fn orders(&self, order: u32) -> impl Iterator<Item = u32> + use<> {
        let first = self.order.min(order - 1);
        (0..=first).rev().chain((first + 1..order).rev())
    }
}

impl Pass {
    /// Takes free blocks off the lists, as many as are wanted if there are.
    pub(super) fn fast_isolate_freepages(&mut self, world: &mut World<'_>, wanted: usize) {
        if self.order == 0 {
            return;
        }
        let from_end = self.free_pfn / BLOCK >= (self.end - 1) / BLOCK;
        let mut limit = if from_end { BLOCK / 2 } else { (BATCH >> self.search.fails.min(15)) + 1 };
        let distance = self.free_pfn.saturating_sub(self.migrate_pfn);
        let block_of = |pfn: u64| pfn / BLOCK * BLOCK;
        let (good, least) = (block_of(self.free_pfn - distance / 4), block_of(self.free_pfn - distance / 2));
        let (mut found, mut scanned) = (None, 0);
        for order in self.search.orders(self.order) {
            let alloc = &world.kernel.alloc;
            let list = &alloc.zones[self.zone].free[order as usize][Migratetype::Movable as usize];
            let (mut best, mut looked, mut pick) = (0, 0, None);
            for page in list.iter_back(&alloc.frames) {
                looked += 1;
                let pfn = u64::from(page);
                if pfn >= good {
                    (self.search.fails, self.search.order, pick) = (0, order, Some(page));
                    break;
                }
                if pfn >= least && pfn > best {
                    best = pfn;
                    limit >>= 1;
                }
                if looked >= limit {
                    break;
                }
            }
            scanned += looked;
            let pick = pick.or((best > 0).then_some(best as Pfn));
            if let Some(page) = pick.filter(|&page| u64::from(page) >= self.migrate_pfn) {
                if !world.kernel.isolate_free((world.cpu, world.task), self.zone, page) {
                    break;
                }
                self.free.extend(page..page + (1 << order));
                world.kernel.stat.events.reclaim.compact_isolated += 1 << order;
                found = Some(u64::from(page));
                break;
            }
            if looked >= limit {
                limit = (limit >> 1).max(1);
            }
        }
        self.free_scanned += scanned;
        world.spend(world.memory.costs.compact_scan * scanned);
        match found {
            Some(pfn) => {
                self.free_pfn = pfn;
                self.around(world, pfn, wanted);
            }
            None => {
                self.search.fails += 1;
                if from_end && self.direct && least > self.migrate_pfn {
                    // The lower half is nearer to what there is.
                    self.free_pfn = least;
                }
            }
        }
    }

    /// The rest of the pageblock in which one was found, unless nobody waits for more.
    fn around(&mut self, world: &mut World<'_>, pfn: u64, wanted: usize) {
        if self.free.len() >= wanted || self.direct && self.mode == Mode::Async {
            return;
        }
        let block = pfn / BLOCK;
        let (mut at, end) = ((block * BLOCK).max(self.start), ((block + 1) * BLOCK).min(self.end));
        self.free_from(world, &mut at, end, wanted, 1);
        if at == end {
            world.kernel.compaction.skip[block as usize] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_go_round() {
        let of = |order, good| Search { fails: 0, order: good }.orders(order).collect::<Vec<_>>();
        assert_eq!((of(4, 3), of(4, 1), of(1, 7)), (vec![3, 2, 1, 0], vec![1, 0, 3, 2], vec![0]));
        assert_eq!(Search::new(3).order, 2);
    }
}

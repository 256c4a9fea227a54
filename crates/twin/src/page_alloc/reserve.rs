//! Pageblocks that are kept in reserve: `setup_zone_migrate_reserve`, and `__rmqueue` where no other list has a block
//! (`MIGRATE_RESERVE`; 2.6.32 to 4.3).
//!
//! A zone has as many as its minimum mark fills, at most two: the first movable ones without reserved pages. Their free
//! pages are taken only when neither the requested type nor another has a block, and return to them, by a CPU's movable
//! list. So they are free most of the time, and count as free for every mark; but compaction neither moves pages to them
//! nor, if it does not wait, from them. Marks that change put blocks into the reserve, or take them out. Not modelled: that
//! a page which a CPU has taken for its list and frees unused leaves the reserve; that before 3.2 only the first page of a
//! pageblock had to be free of the boot's. Checked by tests here.

use super::PageAllocator;
use crate::frame::{Migratetype, Pfn, State};
use std::ops::Range;

/// Pageblocks of a zone in reserve at most.
const MOST: u64 = 2;

impl PageAllocator {
    /// Puts pageblocks of each zone into the reserve, or takes them out, by its minimum mark.
    pub(super) fn set_reserves(&mut self) {
        if !self.rules.migrate_reserve {
            return;
        }
        let order = self.rules.pageblock_order;
        for zone in 0..self.zones.len() {
            let of = &self.zones[zone];
            let mut wanted = (of.marks.min.div_ceil(1 << order)).min(MOST);
            let blocks = of.start_pfn >> order..(of.start_pfn + of.spanned).div_ceil(1 << order);
            for block in blocks {
                let is = self.blocks[block as usize];
                let to = match is {
                    Migratetype::Reserve if wanted == 0 => Migratetype::Movable,
                    Migratetype::Movable if wanted > 0 && self.whole[block as usize] => Migratetype::Reserve,
                    _ => is,
                };
                wanted -= u64::from(to == Migratetype::Reserve);
                if to != is {
                    self.set_block_type(zone, block as usize, to);
                }
            }
        }
    }

    /// The allocator is given a range of pages at boot.
    pub(super) fn note_whole(&mut self, range: &Range<u64>) {
        let order = self.rules.pageblock_order;
        let blocks = range.start.div_ceil(1 << order) as usize..(range.end >> order) as usize;
        self.whole.get_mut(blocks).into_iter().flatten().for_each(|whole| *whole = true);
    }

    /// Changes the type of a pageblock, and moves its free pages to the lists of that type.
    fn set_block_type(&mut self, zone: usize, block: usize, to: Migratetype) {
        let order = self.rules.pageblock_order;
        self.blocks[block] = to;
        let first = (block as Pfn) << order;
        for page in first..first + (1 << order) {
            if self.frames.state(page) == State::Free && self.frames.zone(page) == zone {
                self.retype(zone, page, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Caller, Policy, Request};
    use super::*;
    use crate::build;
    use crate::frame::ZoneKind;
    use crate::mm::kernel::Kernel;
    use crate::probe::{Probe, Task};
    use std::path::Path;

    const ZONE: usize = ZoneKind::Dma32 as usize;

    fn kernel(release: &str) -> Kernel {
        let text = format!(
            "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"256 MiB\"\n\
             [kernel]\nrelease = \"{release}\"\n"
        );
        let scenario = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap();
        build::kernel_of(&scenario, (&scenario.machine, &Default::default()), Probe::off()).unwrap()
    }

    /// Pageblocks in reserve of zone DMA32, and their free pages.
    fn reserve(alloc: &PageAllocator) -> (usize, u64) {
        let of = &alloc.zones[ZONE];
        let blocks = (of.start_pfn..of.start_pfn + of.spanned).step_by(1 << alloc.pageblock_order());
        let free = of.free.iter().enumerate();
        let free = free.map(|(order, lists)| u64::from(lists[Migratetype::Reserve as usize].len()) << order).sum();
        (blocks.filter(|&pfn| alloc.block_type(pfn as Pfn) == Migratetype::Reserve).count(), free)
    }

    #[test]
    fn zones_keep_pageblocks_by_their_minimum_mark() {
        assert_eq!(reserve(&kernel("3.13").alloc), (0, 0));
        let mut alloc = kernel("3.5").alloc;
        let free = alloc.free_pages(ZONE);
        assert_eq!(reserve(&alloc), (2, 1024));
        alloc.set_marks(|rules| rules.min_free_kbytes = Some(1024));
        // Both are one free block, which stays on the list that it is on.
        assert_eq!(reserve(&alloc), (1, 1024));
        alloc.set_marks(|rules| rules.min_free_kbytes = Some(8192));
        assert_eq!((reserve(&alloc), alloc.free_pages(ZONE)), ((2, 1024), free));
    }

    #[test]
    fn the_reserve_is_taken_last_and_freed_pages_return_to_it() {
        let mut kernel = kernel("3.5");
        // Else the mark is in the way.
        kernel.alloc.set_marks(|rules| rules.min_free_kbytes = Some(1024));
        let task = Task { pid: 7, tgid: 7 };
        let mut caller = Caller::new(0, task, Policy::Default);
        let request = Request { may_wait: false, ..Request::USER.of_order(9) };
        let blocks: Vec<Pfn> =
            std::iter::from_fn(|| kernel.allocate_unchecked(&mut caller, &request).ok().map(|got| got.page)).collect();
        let is_reserve = |page: &Pfn| kernel.alloc.block_type(*page) == Migratetype::Reserve;
        let own: Vec<bool> =
            blocks.iter().filter(|&&page| kernel.alloc.frames.zone(page) == ZONE).map(is_reserve).collect();
        assert_eq!(own.iter().position(|is| *is), Some(own.len() - 1));
        assert_eq!(reserve(&kernel.alloc), (1, 512));
        blocks.iter().for_each(|&page| kernel.free_unchecked(0, task, page).unwrap());
        assert_eq!(reserve(&kernel.alloc), (1, 1024));
    }
}

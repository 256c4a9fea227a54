//! Pageblocks of other types than movable, as in a kernel that has been running.
//!
//! `/proc/pagetypeinfo` has their number and the free blocks in all of them, not their places. Here free blocks are
//! spread over as many pageblocks of their type as there are, the largest first, and the pages between them are in use.
//! Not modelled: their users, so a pageblock that is in use has no page that compaction could move. Checked by tests
//! here, and by the zones and lists that serve the reader of reclaim-one-reader (docs/model/reclaim.md).

use super::{MAX_ORDER, PageAllocator};
use crate::frame::{Migratetype, Pfn, State};
use std::collections::VecDeque;

/// Free blocks of a type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeBlocksByType {
    /// Another type than movable.
    pub of: Migratetype,
    /// Blocks by order.
    pub blocks: Vec<u64>,
    /// Pageblocks of the type, free or not, if that is known.
    pub pageblocks: Option<u64>,
}

impl PageAllocator {
    /// Makes the free blocks of a type out of movable memory, and allocates no more than about `spare` pages besides.
    /// Blocks without room are omitted.
    pub(crate) fn set_free_by_type(&mut self, zone: usize, recorded: &FreeBlocksByType, mut spare: u64) {
        let (to, pageblock_order) = (recorded.of, self.rules.pageblock_order);
        let orders = recorded.blocks.iter().enumerate().take(MAX_ORDER as usize + 1).rev();
        let orders = orders.flat_map(|(order, &count)| std::iter::repeat_n(order as u32, count as usize));
        let (whole, parts): (Vec<u32>, Vec<u32>) = orders.partition(|order| *order >= pageblock_order);
        let mut left = recorded.pageblocks.unwrap_or(0);
        for order in whole {
            let Some(page) = self.take_smallest(zone, order, Migratetype::Movable) else { return };
            let (first, count) = ((page >> pageblock_order) as usize, 1 << (order - pageblock_order));
            self.blocks[first..first + count].fill(to);
            self.push_free(zone, page, order, to, true);
            left = left.saturating_sub(count as u64);
        }
        let pages: u64 = parts.iter().map(|&order| 1 << order).sum();
        let all = 1u64 << pageblock_order;
        let count = left.min((pages + spare) / all).clamp(1, parts.len().max(1) as u64) as usize;
        // Pageblock `at` has every `count`-th block.
        for at in 0..count {
            let mut own: VecDeque<u32> = parts.iter().copied().skip(at).step_by(count).collect();
            while !own.is_empty() {
                let Some((page, size)) = self.take_part(zone, packed(&own), spare) else { return };
                self.blocks[(page >> pageblock_order) as usize] = to;
                let used = self.cut(zone, (page, size), to, &mut own);
                spare = spare.saturating_sub(u64::from(size) - used);
            }
        }
    }

    /// Takes a pageblock or, if `spare` does not allow it, the part of one that has room for the pages. Returns the
    /// first page and their number.
    fn take_part(&mut self, zone: usize, pages: u64, spare: u64) -> Option<(Pfn, Pfn)> {
        let whole = self.rules.pageblock_order;
        let least = pages.max(1).next_power_of_two().ilog2().min(whole);
        let there = |order: &u32| !self.zones[zone].free[*order as usize][Migratetype::Movable as usize].is_empty();
        let fits = spare + pages >= 1 << whole;
        let order = if fits { whole } else { (least..whole).find(there).unwrap_or(whole) };
        Some((self.take_smallest(zone, order, Migratetype::Movable)?, 1 << order))
    }

    /// Cuts free blocks out of some pages, as many as there is room for; the other pages are in use. Returns the pages
    /// in use.
    fn cut(&mut self, zone: usize, (page, size): (Pfn, Pfn), of: Migratetype, blocks: &mut VecDeque<u32>) -> u64 {
        let (mut at, mut pages) = (0, 0);
        while let Some(&order) = blocks.front().filter(|order| at + (1 << **order) <= size) {
            blocks.pop_front();
            self.push_free(zone, page + at, order, of, true);
            (at, pages) = (at + (1 << order), pages + (1 << order));
            // Free neighbours would be one block.
            if blocks.front() == Some(&order) && at < size {
                self.frames.set(page + at, State::Allocated, order, of, zone);
                at += 1 << order;
            }
        }
        while at < size {
            let order = if at == 0 { size.ilog2() } else { at.trailing_zeros() };
            self.frames.set(page + at, State::Allocated, order, of, zone);
            at += 1 << order;
        }
        pages
    }
}

/// Pages of blocks, the largest first, including those between blocks of one order.
fn packed(blocks: &VecDeque<u32>) -> u64 {
    let gaps = blocks.iter().zip(blocks.iter().skip(1)).filter(|(a, b)| a == b).map(|(a, _)| a);
    blocks.iter().chain(gaps).map(|&order| 1 << order).sum()
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;
    use crate::frame::ZoneKind;
    use crate::hw::{Cpu, Machine};

    const ZONE: usize = ZoneKind::Dma32 as usize;

    fn allocator() -> PageAllocator {
        let machine = Machine::pc(&[1 << 18], 0, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        PageAllocator::new(&machine, Rules::V6_1)
    }

    /// Free blocks of a type by order, and its pageblocks.
    fn found(alloc: &PageAllocator, zone: usize) -> (Vec<u64>, usize) {
        let free = &alloc.zones[zone].free;
        let lengths = free.iter().take(11).map(|lists| lists[Migratetype::Unmovable as usize].len().into()).collect();
        (lengths, alloc.blocks.iter().filter(|of| **of == Migratetype::Unmovable).count())
    }

    fn recorded(blocks: [u64; 11], pageblocks: Option<u64>) -> FreeBlocksByType {
        FreeBlocksByType { of: Migratetype::Unmovable, blocks: blocks.to_vec(), pageblocks }
    }

    #[test]
    fn blocks_lie_in_as_many_pageblocks_as_there_are() {
        let blocks = [3, 2, 0, 0, 0, 4, 0, 0, 1, 1, 0];
        let cases = [(Some(4), 1 << 20, 4), (None, 1 << 20, 2), (Some(4), 200, 2), (Some(1000), 1 << 20, 11)];
        for (pageblocks, spare, expected) in cases {
            let mut alloc = allocator();
            let before = alloc.free_pages(ZONE);
            alloc.set_free_by_type(ZONE, &recorded(blocks, pageblocks), spare);
            assert_eq!(found(&alloc, ZONE), (blocks.to_vec(), expected), "{pageblocks:?}, {spare}");
            // The free pageblock stays whole, of the others what is not free is in use.
            let free = 7 + 4 * 32 + 256;
            assert_eq!(before - alloc.free_pages(ZONE), 512 * (expected as u64 - 1) - free);
        }
    }

    #[test]
    fn the_rest_of_a_pageblock_is_enough_for_few_blocks() {
        // 160 page frames do not belong to the zone, and 256 not to the allocator, as in a guest.
        let mut alloc = allocator();
        let zone = ZoneKind::Dma as usize;
        while alloc.take_smallest(zone, 9, Migratetype::Movable).is_some() {}
        let left = alloc.free_pages(zone);
        assert!((224..512).contains(&left), "{left} pages");
        let blocks = [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0];
        alloc.set_free_by_type(zone, &recorded(blocks, Some(1)), left - 224);
        assert_eq!(found(&alloc, zone), (blocks.to_vec(), 1));
    }

    #[test]
    fn blocks_without_room_are_omitted() {
        let mut alloc = allocator();
        let mut blocks = [0; 11];
        blocks[8] = 5000;
        alloc.set_free_by_type(ZONE, &recorded(blocks, Some(5000)), 0);
        assert!(found(&alloc, ZONE).0[8] > 100);
    }
}

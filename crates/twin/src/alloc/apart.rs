//! Pageblocks of other types than movable, as a kernel has them that has been running.
//!
//! `/proc/pagetypeinfo` says how many there are and which blocks are free in them all, not where. Here free blocks are spread
//! over as many pageblocks of their type as there are, the largest first, and what lies between is in use. Left out: what uses
//! it, so a pageblock that is in use has no page that compaction could move. Checked by tests here, and by which zones and lists
//! serve the reader of reclaim-one-reader (docs/model.md, Reclaim).

use super::{MAX_ORDER, PageAllocator};
use crate::page::{Migratetype, Pfn, State};
use std::collections::VecDeque;

/// Free blocks of a type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Another type than movable.
    pub of: Migratetype,
    /// Blocks by order.
    pub blocks: Vec<u64>,
    /// Pageblocks of the type, free or not; 0: not known.
    pub pageblocks: u64,
}

impl PageAllocator {
    /// Makes the free blocks of a type out of movable memory, and takes no more than about `spare` pages away besides. What
    /// there is no room for is left out.
    pub(crate) fn set_apart(&mut self, zone: usize, apart: &Apart, mut spare: u64) {
        let (to, pageblock_order) = (apart.of, self.rules.pageblock_order);
        let orders = apart.blocks.iter().enumerate().take(MAX_ORDER as usize + 1).rev();
        let orders = orders.flat_map(|(order, &count)| std::iter::repeat_n(order as u32, count as usize));
        let (whole, parts): (Vec<u32>, Vec<u32>) = orders.partition(|order| *order >= pageblock_order);
        let mut left = apart.pageblocks;
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
        // Each pageblock has every so-manieth block.
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

    /// Takes a pageblock or, if too little may be taken away for that, what there is of one that has room for so many pages.
    /// Returns the first page and how many there are.
    fn take_part(&mut self, zone: usize, pages: u64, spare: u64) -> Option<(Pfn, Pfn)> {
        let whole = self.rules.pageblock_order;
        let least = pages.max(1).next_power_of_two().ilog2().min(whole);
        let there = |order: &u32| !self.zones[zone].free[*order as usize][Migratetype::Movable as usize].is_empty();
        let fits = spare + pages >= 1 << whole;
        let order = if fits { whole } else { (least..whole).find(there).unwrap_or(whole) };
        Some((self.take_smallest(zone, order, Migratetype::Movable)?, 1 << order))
    }

    /// Cuts free blocks out of some pages, as many as there is room for, and lets the rest be in use. Returns the pages of those.
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

/// Pages that blocks take, the largest first, with what lies between those of one order.
fn packed(blocks: &VecDeque<u32>) -> u64 {
    let gaps = blocks.iter().zip(blocks.iter().skip(1)).filter(|(a, b)| a == b).map(|(a, _)| a);
    blocks.iter().chain(gaps).map(|&order| 1 << order).sum()
}

//! The buddy system: `__free_one_page`, `__rmqueue_smallest`, `expand`; 4.13 to 6.18.
//!
//! Free blocks of 2^order pages on a list per order and migratetype. Allocation splits the smallest block that is large
//! enough and keeps its first part; freeing joins a block with its free neighbour as long as there is one, and puts it at
//! the tail of its list if the next larger neighbour is free, as it may soon be joined again. Boot memory goes to the
//! tails in ascending order (before 5.10 the kernel used the heads). Not modelled: isolation, guard pages, page reporting,
//! shuffling. Checked by a property test against the set of free pages (`tests/allocator`).

use super::fallback::{Fallback, Source, Stolen};
use super::{Context, MAX_ORDER, PageAllocator, StealPolicy};
use crate::frame::{Migratetype, Pfn, State};
use crate::vmstat::ZoneItem;
use mmtwin_event::vocabulary::MmPageAllocZoneLocked;
use mmtwin_event::{Kind, vocabulary};
use std::ops::Range;

/// Address of the first `struct page`, and the bytes of one, on x86-64 without KASLR.
const VMEMMAP: u64 = 0xffff_ea00_0000_0000;
const STRUCT_PAGE: u64 = 64;

/// The two fields by which events name a page.
pub(super) fn named(page: Pfn) -> (Option<u64>, Option<mmtwin_event::value::Hex>) {
    (Some(u64::from(page)), Some(mmtwin_event::value::Hex(VMEMMAP + u64::from(page) * STRUCT_PAGE)))
}

impl PageAllocator {
    /// Gives free memory to a zone at boot.
    pub(super) fn give(&mut self, zone: usize, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let fits = (range.end - at).ilog2().min(self.rules.max_order);
            let order = if at == 0 { fits } else { at.trailing_zeros().min(fits) };
            let page = at as Pfn;
            self.push_free(zone, page, order, self.block_type(page), true);
            at += 1 << order;
        }
    }

    #[inline]
    pub(super) fn push_free(&mut self, zone: usize, page: Pfn, order: u32, migratetype: Migratetype, tail: bool) {
        self.frames.set(page, State::Free, order, migratetype, zone);
        let list = &mut self.zones[zone].free[order as usize][migratetype as usize];
        if tail {
            list.push_tail(&mut self.frames, page);
        } else {
            list.push_head(&mut self.frames, page);
        }
    }

    #[inline]
    pub(super) fn pull_free(&mut self, zone: usize, page: Pfn) {
        let (order, migratetype) = (self.frames.order(page), self.frames.migratetype(page));
        self.zones[zone].free[order as usize][migratetype as usize].remove(&mut self.frames, page);
        self.frames.clear(page);
    }

    #[inline]
    fn is_free(&self, zone: usize, page: Pfn, order: u32) -> bool {
        self.frames.state(page) == State::Free && self.frames.order(page) == order && self.frames.zone(page) == zone
    }

    /// Puts a block back, joined with its free neighbours, and counts it.
    pub(super) fn free_block(&mut self, ctx: &mut Context<'_>, zone: usize, page: Pfn, order: u32) {
        self.lock_count += 1;
        ctx.stat.add(zone, ctx.cpu, ZoneItem::FreePages, 1 << order);
        self.zones[zone].returned += 1;
        let migratetype = self.block_type(page);
        let (mut page, mut at) = (page, order);
        self.frames.clear(page);
        while at < self.rules.max_order {
            if self.captures(ctx, zone, page, at) {
                return;
            }
            let buddy = page ^ 1 << at;
            if !self.is_free(zone, buddy, at) {
                break;
            }
            self.pull_free(zone, buddy);
            page &= buddy;
            at += 1;
        }
        let tail = at + 1 < self.rules.max_order && {
            let joined = page & !(1 << at);
            self.is_free(zone, joined ^ 1 << (at + 1), at + 1)
        };
        self.push_free(zone, page, at, migratetype, tail);
    }

    /// Takes a free block as single pages that hold nothing yet; a large one makes its pageblock movable.
    pub(crate) fn isolate(&mut self, ctx: &mut Context<'_>, zone: usize, page: Pfn) {
        let order = self.frames.order(page);
        self.pull_free(zone, page);
        ctx.stat.add(zone, ctx.cpu, ZoneItem::FreePages, -(1 << order));
        let pageblock_order = self.rules.pageblock_order;
        if order + 1 >= pageblock_order {
            let first = (page >> pageblock_order) as usize;
            self.blocks[first..first + (1usize << order).div_ceil(1 << pageblock_order)].fill(Migratetype::Movable);
        }
        for page in page..page + (1 << order) {
            self.frames.set(page, State::Allocated, 0, Migratetype::Movable, zone);
            self.frames.set_owner(page, u32::MAX);
        }
    }

    /// Takes a block off the lists of one migratetype.
    pub(super) fn take_smallest(&mut self, zone: usize, order: u32, migratetype: Migratetype) -> Option<Pfn> {
        for at in order..=MAX_ORDER {
            let Some(page) = self.zones[zone].free[at as usize][migratetype as usize].first() else { continue };
            self.pull_free(zone, page);
            for half in (order..at).rev() {
                self.push_free(zone, page + (1 << half), half, migratetype, false);
            }
            return Some(page);
        }
        None
    }

    /// Takes a block, from the lists of other migratetypes if need be. `source` is [`Source::Own`] for the first block of
    /// a refill, and then what the block before has left. The caller counts it.
    pub(super) fn take_block(
        &mut self,
        ctx: &mut Context<'_>,
        zone: usize,
        order: u32,
        migratetype: Migratetype,
        fallback: Fallback,
        source: &mut Source,
    ) -> Option<Pfn> {
        self.lock_count += 1;
        let page = loop {
            if *source == Source::Own
                && let Some(page) = self.take_smallest(zone, order, migratetype)
            {
                break page;
            }
            if self.rules.steal_policy == StealPolicy::ClaimThenSteal {
                break self.claim_or_steal(ctx, zone, (order, migratetype), fallback, source)?;
            }
            match self.steal(ctx, zone, order, migratetype, fallback) {
                Some(Stolen::Moved) => {}
                Some(Stolen::Page(page)) => break page,
                None => break self.take_smallest(zone, order, Migratetype::Reserve)?,
            }
        };
        if ctx.probe.on(Kind::MmPageAllocZoneLocked) {
            let (pfn, address) = named(page);
            let refill = Some(i32::from(self.per_cpu_list(order, migratetype).is_some()));
            let event: MmPageAllocZoneLocked = vocabulary::MmPageAllocZoneLocked {
                order,
                migratetype: migratetype as i32,
                pfn,
                page: address,
                percpu_refill: refill,
            };
            ctx.probe.write(ctx.at, ctx.cpu, ctx.task, &event, b"");
        }
        Some(page)
    }
}

//! Taking pages of another migratetype: `__rmqueue_fallback`, `steal_suitable_fallback` (4.13 to 6.14, and before 4.0),
//! `__rmqueue_claim`, `__rmqueue_steal` (6.15 and newer, and 6.12 since its stable series has them).
//!
//! The largest block of another type is taken, so that types mix rarely, and if it is large or the request cannot be
//! moved, the free rest of its pageblock is taken too; a pageblock that is then mostly of the new type changes its
//! type. A small movable request takes the smallest block instead. From 6.10 on a block whose pageblock keeps its type
//! stays on its list, and only the requested pages are taken from it, each time with a boost.
//!
//! Before 4.0 always the largest block was taken; the rest of its pageblock was taken too if it was large or the
//! request was reclaimable. Other requests left the rest of a small block where it was, so that unmovable pages were
//! spread over many pageblocks; a pageblock changed its type if half of it was free. Compatible pages of a pageblock
//! are those that were allocated as movable (the kernel checks whether they are on an LRU list).
//!
//! Since 6.15 pageblocks are claimed first: for each order from the largest on, the pageblock of the first block of another
//! type, if half of it is free or alike; each attempt boosts the watermark. If none can be claimed, pages of the smallest
//! block are taken, without a boost, and the next pages of the same refill too. Checked by tests of the events
//! (`tests/allocator`).

use super::buddy::named;
use super::{Context, MAX_ORDER, PageAllocator, StealPolicy};
use crate::frame::{Migratetype, Pfn, State};
use Migratetype::{Movable, Reclaimable, Reserve, Unmovable};
use mmtwin_event::Kind;
use mmtwin_event::vocabulary::MmPageAllocExtfrag;

/// Result of stealing a block of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stolen {
    /// It is on the lists of the requested type.
    Moved,
    /// These pages are taken, the rest is where it was.
    Page(Pfn),
}

/// From which types a request takes, first choice first.
fn others(migratetype: Migratetype) -> [Migratetype; 2] {
    match migratetype {
        Unmovable => [Reclaimable, Movable],
        Movable | Reserve => [Reclaimable, Unmovable],
        Reclaimable => [Unmovable, Movable],
    }
}

/// What a request may do to blocks of other types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fallback {
    /// Smaller blocks stay with their type (`ALLOC_NOFRAGMENT`).
    pub smallest: u32,
    /// A boost of the marks for it wakes kswapd (`ALLOC_KSWAPD`).
    pub wakes: bool,
}

/// Where the next block of a refill is looked for (`enum rmqueue_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// On the lists of the requested type, then on others.
    Own,
    /// On the lists of other types, from which the last one was taken.
    Others,
}

impl PageAllocator {
    /// Takes a block of other types: with its pageblock if one can be claimed, else alone.
    pub(super) fn claim_or_steal(
        &mut self,
        ctx: &mut Context<'_>,
        zone: usize,
        (order, migratetype): (u32, Migratetype),
        fallback: Fallback,
        source: &mut Source,
    ) -> Option<Pfn> {
        let least = match (*source, migratetype) {
            (Source::Others, _) => MAX_ORDER + 1,
            (Source::Own, Movable) => order.max(fallback.smallest).max(self.rules.pageblock_order / 2),
            (Source::Own, _) => order.max(fallback.smallest),
        };
        for at in (least..=MAX_ORDER).rev() {
            let Some((from, page)) = self.first_of_others(zone, at, migratetype) else { continue };
            if self.claim(zone, (page, at), (migratetype, from), true, fallback.wakes) {
                *source = Source::Own;
                let taken = self.take_smallest(zone, order, migratetype)?;
                self.note_fallback(ctx, taken, (order, at), (migratetype, from));
                return Some(taken);
            }
        }
        if fallback.smallest > order {
            return None;
        }
        let found = (order..=MAX_ORDER).find_map(|at| Some((at, self.first_of_others(zone, at, migratetype)?)));
        let (at, (from, page)) = found?;
        *source = Source::Others;
        let taken = self.split_free(zone, page, order, from);
        self.note_fallback(ctx, taken, (order, at), (migratetype, from));
        Some(taken)
    }

    /// The first free block of an order of another type, and that type.
    fn first_of_others(&self, zone: usize, order: u32, migratetype: Migratetype) -> Option<(Migratetype, Pfn)> {
        let lists = &self.zones[zone].free[order as usize];
        others(migratetype).into_iter().find_map(|from| Some((from, lists[from as usize].first()?)))
    }

    fn note_fallback(
        &self,
        ctx: &mut Context<'_>,
        page: Pfn,
        (order, at): (u32, u32),
        (migratetype, from): (Migratetype, Migratetype),
    ) {
        if ctx.probe.on(Kind::MmPageAllocExtfrag) {
            let (pfn, address) = named(page);
            let event = MmPageAllocExtfrag {
                alloc_order: order as i32,
                fallback_order: at as i32,
                alloc_migratetype: migratetype as i32,
                fallback_migratetype: from as i32,
                change_ownership: Some(i32::from(self.block_type(page) == migratetype)),
                pfn,
                page: address,
            };
            ctx.probe.write(ctx.at, ctx.cpu, ctx.task, &event, b"");
        }
    }

    /// Moves a block of another type to the lists of this one, or takes a page of it; `None` if there is none.
    pub(super) fn steal(
        &mut self,
        ctx: &mut Context<'_>,
        zone: usize,
        order: u32,
        migratetype: Migratetype,
        fallback: Fallback,
    ) -> Option<Stolen> {
        let other = |this: &Self, at: u32| this.first_of_others(zone, at, migratetype);
        let smallest = fallback.smallest.max(order);
        let largest = (smallest..=MAX_ORDER).rev().find_map(|at| Some((at, other(self, at)?)));
        let (mut at, (mut from, mut page)) = largest?;
        let historic = self.rules.steal_policy == StealPolicy::LargeOrReclaimable;
        let small = if historic { migratetype == Reclaimable } else { migratetype != Movable };
        let whole = at >= self.rules.pageblock_order / 2 || small;
        if !whole && !historic && at > order {
            let found = (order..=MAX_ORDER).find_map(|at| Some((at, other(self, at)?)));
            (at, (from, page)) = found.unwrap_or((at, (from, page)));
        }
        let stolen = match self.claim(zone, (page, at), (migratetype, from), whole, fallback.wakes) {
            true => Stolen::Moved,
            false => Stolen::Page(self.split_free(zone, page, order, from)),
        };
        self.note_fallback(ctx, page, (order, at), (migratetype, from));
        Some(stolen)
    }

    /// Moves a free block of type `from`, and if `whole` what is free around it, to the lists of type `to`. False: it stays
    /// where it is.
    fn claim(
        &mut self,
        zone: usize,
        (page, order): (Pfn, u32),
        (to, from): (Migratetype, Migratetype),
        whole: bool,
        wakes: bool,
    ) -> bool {
        let pageblock_order = self.rules.pageblock_order;
        if order >= pageblock_order {
            let first = (page >> pageblock_order) as usize;
            self.blocks[first..first + (1 << (order - pageblock_order))].fill(to);
            self.retype(zone, page, to);
            return true;
        }
        let historic = self.rules.steal_policy == StealPolicy::LargeOrReclaimable;
        let stays = self.rules.no_whole_block_steal || historic && !whole;
        self.zones[zone].boost_watermark(self.rules.watermark_boost_factor, pageblock_order, wakes);
        let first = page >> pageblock_order << pageblock_order;
        let last = first + (1 << pageblock_order) - 1;
        if !whole || !self.zones[zone].spans(u64::from(last)) {
            if !stays {
                self.retype(zone, page, to);
            }
            return !stays;
        }
        let start = if self.zones[zone].spans(u64::from(first)) {
            first
        } else if self.rules.steal_policy == StealPolicy::ClaimThenSteal {
            return false;
        } else {
            page
        };
        let (mut free, mut movable, mut blocks) = (0, 0, Vec::new());
        let mut at = start;
        while at <= last {
            match self.frames.state(at) {
                State::Free if self.frames.zone(at) == zone => {
                    blocks.push(at);
                    free += 1 << self.frames.order(at);
                    at += 1 << self.frames.order(at);
                }
                State::Allocated => {
                    let pages = 1 << self.frames.order(at);
                    movable += if self.frames.migratetype(at) == Movable { pages } else { 0 };
                    at += pages;
                }
                State::Free | State::PerCpu | State::None => at += 1,
            }
        }
        let alike = match (to, from) {
            _ if historic => 0,
            (Movable, _) => movable,
            // Pages of a movable block that are neither free nor movable may be of the new type.
            (_, Movable) => (1 << pageblock_order) - free - movable,
            _ => 0,
        };
        let most = free + alike >= 1 << (pageblock_order - 1);
        if most || !stays {
            blocks.into_iter().for_each(|block| self.retype(zone, block, to));
        }
        if most {
            self.blocks[(page >> pageblock_order) as usize] = to;
        }
        most || !stays
    }

    /// Takes the beginning of a free block; the rest stays with its type.
    fn split_free(&mut self, zone: usize, page: Pfn, order: u32, of: Migratetype) -> Pfn {
        let at = self.frames.order(page);
        self.pull_free(zone, page);
        for half in (order..at).rev() {
            self.push_free(zone, page + (1 << half), half, of, false);
        }
        page
    }

    /// Moves a free block to the tail of the list of another type.
    pub(super) fn retype(&mut self, zone: usize, page: Pfn, to: Migratetype) {
        let order = self.frames.order(page);
        self.pull_free(zone, page);
        self.push_free(zone, page, order, to, true);
    }
}

//! Per-CPU page lists: `rmqueue_pcplist`, `free_unref_page_commit`, `free_pcppages_bulk`.
//!
//! A CPU allocates from the head of its own list and frees to it; an empty list is refilled with a batch from the buddy
//! lists, a long one frees a batch from its tail to them. How large batches and lists are is in [`super::pcp_high`]. Checked by
//! the property test of `tests/allocator`.

use super::buddy::named;
use super::fallback::{Fallback, Source};
use super::pcp_high::MAX_DOUBLINGS;
use super::watermark::Reserves;
use super::{Context, HUGE_ORDER, PageAllocator, PerCpuHigh};
use crate::frame::{Migratetype, Pfn, State, ZoneKind};
use crate::vmstat::ZoneItem;
use mmtwin_event::Kind;
use mmtwin_event::vocabulary::MmPagePcpuDrain;

const TYPES: usize = Migratetype::ALL.len();
/// Orders with lists: 0 to this, and the huge page's.
pub(super) const LIST_ORDERS: u32 = 3;
pub(super) const LISTS: usize = (LIST_ORDERS as usize + 2) * TYPES;

/// Recorded pages on the lists of a CPU, and the state of their automatic sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerCpuState {
    /// `high`, where it is not fixed.
    pub high: u64,
    /// Doublings of the next refill.
    pub alloc_doublings: u32,
    /// Doublings of the next return.
    pub free_doublings: u32,
    /// Pages freed lately.
    pub freed: u64,
    /// Order, type and blocks of each list.
    pub lists: Vec<(u32, Migratetype, u64)>,
}

impl PerCpuState {
    /// Pages on all lists.
    pub fn pages(&self) -> u64 {
        self.lists.iter().map(|(order, _, blocks)| blocks << order).sum()
    }
}

impl PageAllocator {
    /// The list of blocks of an order and type; `None` if such blocks are not kept per CPU.
    #[inline]
    pub(super) fn per_cpu_list(&self, order: u32, migratetype: Migratetype) -> Option<usize> {
        let row = match order {
            0 => 0,
            1..=LIST_ORDERS if self.rules.per_cpu_orders => order as usize,
            HUGE_ORDER if self.rules.per_cpu_orders => LIST_ORDERS as usize + 1,
            _ => return None,
        };
        // Pages of the reserve are used again at once if they can be.
        let of = if migratetype == Migratetype::Reserve { Migratetype::Movable } else { migratetype };
        Some(row * TYPES + of as usize)
    }

    /// Sets the sizes of all lists; `online` are the running CPUs' nodes.
    pub(crate) fn set_pageset_sizes(&mut self, online: &[usize]) {
        for (zone, sets) in self.zones.iter().zip(&mut self.pagesets) {
            let local = online.iter().filter(|&&node| node == zone.node).count();
            // A node without CPUs is used by all.
            let cpus = if local == 0 { online.len().max(1) } else { local };
            sets.iter_mut().for_each(|set| set.set_sizes(zone, &self.rules, cpus as u64));
        }
    }

    /// As [`Self::fill_per_cpu`], for lists of other types than movable: out of pageblocks of their own, of which the rest is
    /// in use. No other free block of these types must be there yet.
    pub(crate) fn fill_per_cpu_apart(&mut self, zone: usize, cpu: u32, state: &PerCpuState) {
        for of in [Migratetype::Unmovable, Migratetype::Reclaimable] {
            let lists = state.lists.iter().filter(|list| list.1 == of);
            let pages: u64 = lists.map(|(order, _, blocks)| blocks << order).sum();
            let order = self.rules.pageblock_order;
            for _ in 0..pages.div_ceil(1 << order) {
                let Some(page) = self.take_smallest(zone, order, Migratetype::Movable) else { break };
                self.blocks[(page >> order) as usize] = of;
                self.push_free(zone, page, order, of, true);
            }
        }
        self.fill_per_cpu(zone, cpu, state);
        for of in [Migratetype::Unmovable, Migratetype::Reclaimable] {
            while let Some(order) =
                (0..=self.rules.max_order).find(|&at| !self.zones[zone].free[at as usize][of as usize].is_empty())
            {
                let Some(page) = self.take_smallest(zone, order, of) else { break };
                self.frames.set(page, State::Allocated, order, of, zone);
            }
        }
    }

    /// Puts on a CPU's lists what a kernel had there, as far as there are blocks and lists.
    pub(crate) fn fill_per_cpu(&mut self, zone: usize, cpu: u32, state: &PerCpuState) {
        for &(order, of, blocks) in &state.lists {
            let Some(list) = self.per_cpu_list(order, of) else { continue };
            for _ in 0..blocks {
                let Some(page) = self.take_for(zone, order, of) else { break };
                self.frames.set(page, State::PerCpu, order, of, zone);
                let set = &mut self.pagesets[zone][cpu as usize];
                set.lists[list].push_tail(&mut self.frames, page);
                set.count += 1 << order;
            }
        }
        let Some(set) = self.pagesets[zone].get_mut(cpu as usize) else { return };
        set.alloc_doublings = state.alloc_doublings.min(MAX_DOUBLINGS);
        set.free_doublings = state.free_doublings.min(MAX_DOUBLINGS);
        set.freed = state.freed;
        if set.high_min != set.high_max {
            set.high = state.high;
        }
    }

    /// Takes a block from the CPU's list, refilled by so many if it is empty.
    #[inline]
    pub(super) fn take_per_cpu(
        &mut self,
        ctx: &mut Context<'_>,
        zone: usize,
        order: u32,
        migratetype: Migratetype,
        list: usize,
        fallback: Fallback,
    ) -> Option<(Pfn, u64)> {
        let set = &mut self.pagesets[zone][ctx.cpu as usize];
        set.free_doublings >>= 1;
        set.freed >>= 1;
        let mut refilled = 0;
        if set.lists[list].is_empty() {
            refilled = self.refill(ctx, zone, order, migratetype, list, fallback);
        }
        let set = &mut self.pagesets[zone][ctx.cpu as usize];
        let page = set.lists[list].first()?;
        set.lists[list].remove(&mut self.frames, page);
        set.count -= 1 << order;
        Some((page, refilled))
    }

    fn refill(
        &mut self,
        ctx: &mut Context<'_>,
        zone: usize,
        order: u32,
        migratetype: Migratetype,
        list: usize,
        fallback: Fallback,
    ) -> u64 {
        let below_high = self.zones[zone].below_high;
        let wanted = self.pagesets[zone][ctx.cpu as usize].refill(order, self.rules.per_cpu_high, below_high);
        let (mut taken, mut source) = (0, Source::Own);
        while taken < wanted {
            let Some(page) = self.take_block(ctx, zone, order, migratetype, fallback, &mut source) else { break };
            self.frames.set(page, State::PerCpu, order, migratetype, zone);
            self.pagesets[zone][ctx.cpu as usize].lists[list].push_tail(&mut self.frames, page);
            taken += 1;
        }
        self.pagesets[zone][ctx.cpu as usize].count += taken << order;
        if taken > 0 {
            ctx.stat.add(zone, ctx.cpu, ZoneItem::FreePages, -((taken << order) as i64));
        }
        taken
    }

    /// Puts a block on the CPU's list and frees some to the buddy allocator, as many as it returns, if it has become too long.
    #[inline]
    pub(super) fn free_per_cpu(
        &mut self,
        ctx: &mut Context<'_>,
        zone: usize,
        page: Pfn,
        order: u32,
        list: usize,
    ) -> u64 {
        let migratetype = Migratetype::ALL[list % TYPES];
        self.frames.set(page, State::PerCpu, order, migratetype, zone);
        let (of, set) = (&self.zones[zone], &mut self.pagesets[zone][ctx.cpu as usize]);
        set.lists[list].push_head(&mut self.frames, page);
        set.count += 1 << order;
        set.alloc_doublings >>= 1;
        let all = set.frees_all(order, self.rules.free_high);
        if set.freed < set.batch << MAX_DOUBLINGS {
            set.freed = (set.freed + (1 << order)).min(set.batch << MAX_DOUBLINGS);
        }
        let how = self.rules.per_cpu_high;
        let excess = if all { set.all(how) } else { set.excess(how, of.below_high, of.reclaim_active) };
        let mut blocks = 0;
        if excess > 0 {
            blocks = self.free_to_buddy(ctx, zone, ctx.cpu, excess, list);
            let (of, free) = (&self.zones[zone], ctx.stat.plain(zone, ZoneItem::FreePages));
            if of.below_high && of.watermark_ok(0, of.marks.high, free, ZoneKind::Movable, Reserves::default()) {
                self.zones[zone].below_high = false;
            }
        }
        blocks
    }

    /// Gives some of a CPU's pages back, from the tails of its lists in turn. Lists are emptied one by one, beginning
    /// with `first`; kernels without lists of higher orders take one page from each, and more after empty lists. Returns how
    /// many blocks that are.
    fn free_to_buddy(&mut self, ctx: &mut Context<'_>, zone: usize, cpu: u32, pages: u64, first: usize) -> u64 {
        let mut left = pages.min(self.pagesets[zone][cpu as usize].count) as i64;
        let mut blocks = 0;
        let one_by_one = self.rules.per_cpu_orders;
        let lists = if one_by_one { LISTS } else { TYPES };
        let (mut list, mut quota) = (if one_by_one { first + lists - 1 } else { 0 } % lists, 0);
        while left > 0 {
            loop {
                quota += 1;
                list = (list + 1) % lists;
                if !self.pagesets[zone][cpu as usize].lists[list].is_empty() {
                    break;
                }
            }
            // The only list that has any gives all.
            if one_by_one || quota == lists {
                quota = usize::MAX;
            }
            while left > 0 && quota > 0 {
                let set = &mut self.pagesets[zone][cpu as usize];
                let Some(page) = set.lists[list].last() else { break };
                set.lists[list].remove(&mut self.frames, page);
                let order = self.frames.order(page);
                set.count -= 1 << order;
                self.free_block(ctx, zone, page, order);
                (left, quota, blocks) = (left - (1 << order), quota - 1, blocks + 1);
                if ctx.probe.on(Kind::MmPagePcpuDrain) {
                    let (pfn, address) = named(page);
                    let event = MmPagePcpuDrain { order, migratetype: (list % TYPES) as i32, pfn, page: address };
                    ctx.probe.write(ctx.at, ctx.cpu, ctx.task, &event, b"");
                }
            }
            if one_by_one {
                quota = 0;
            }
        }
        blocks
    }

    /// Frees all pages of a CPU's lists to the buddy allocator.
    pub(crate) fn drain_pages(&mut self, ctx: &mut Context<'_>, cpu: u32) {
        (0..self.zones.len()).for_each(|zone| self.drain_zone_pages(ctx, cpu, zone));
    }

    /// The same of one zone.
    pub(crate) fn drain_zone_pages(&mut self, ctx: &mut Context<'_>, cpu: u32, zone: usize) {
        let count = self.pageset(zone, cpu).map_or(0, |set| set.count);
        if count > 0 {
            self.free_to_buddy(ctx, zone, cpu, count, 0);
        }
    }

    /// Periodic work of a CPU on its lists; true if it freed pages or lowered a length.
    pub(crate) fn decay_pagesets(&mut self, ctx: &mut Context<'_>, cpu: u32) -> bool {
        if self.rules.per_cpu_high != PerCpuHigh::Auto {
            return false;
        }
        let mut changed = false;
        for zone in 0..self.zones.len() {
            let Some(set) = self.pagesets[zone].get_mut(cpu as usize) else { continue };
            let before = set.high;
            let excess = set.decay();
            changed |= set.high != before;
            if excess > 0 {
                self.free_to_buddy(ctx, zone, cpu, excess, 0);
            }
        }
        changed
    }
}

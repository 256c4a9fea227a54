//! Per-CPU page lists: `rmqueue_pcplist`, `free_unref_page_commit`, `free_pcppages_bulk`, `zone_batchsize`,
//! `zone_highsize`, `nr_pcp_alloc`, `nr_pcp_free`, `nr_pcp_high`, `decay_pcp_high`.
//!
//! A CPU allocates from the head of its own list and frees to it; an empty list is refilled with a batch from the buddy
//! lists, a long one gives a batch back from its tail. How large batches and lists are is what the releases differ in
//! ([`PerCpuHigh`]). From 6.7 on lists of a zone below its high mark do not grow, and shrink when pages are freed. From 5.18
//! on frees of blocks of order 1 to 3 may empty all lists ([`PcpFreeHigh`]). Not modelled: `vm.percpu_pagelist_fraction` of
//! before 5.14, and CPUs whose caches are too small for three batches, whose lists each free of a run of blocks empties (no
//! `PCPF_FREE_HIGH_BATCH`). Checked on the sizes that kernels 6.1 and 6.18 print (`tests/zoneinfo.rs`), by the property test
//! of `tests/allocator`, by `nr_free_pages` after an exit (docs/fidelity.md), and by times of loops in guests
//! (`tests/lab_time.rs`).

use super::buddy::named;
use super::fallback::{Fallback, Source};
use super::watermark::Reserves;
use super::{Context, HUGE_ORDER, PageAllocator, PerCpuHigh, Rules, Zone};
use crate::frame::{List, Migratetype, Pfn, State, ZoneKind};
use crate::vmstat::ZoneItem;
use mmtwin_event::Kind;
use mmtwin_event::vocabulary::MmPagePcpuDrain;
use mmtwin_scenario::kernel::PcpFreeHigh;

const TYPES: usize = Migratetype::ALL.len();
/// Orders with lists: 0 to this, and the huge page's.
const LIST_ORDERS: u32 = 3;
const LISTS: usize = (LIST_ORDERS as usize + 2) * TYPES;
/// A refill or a return is at most this many doublings of a batch (`CONFIG_PCP_BATCH_SCALE_MAX`).
const MAX_DOUBLINGS: u32 = 5;
/// The share of a zone that the lists of all CPUs may have together.
const AUTO_SHARE: u64 = 8;

/// A CPU's pages of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerCpuPages {
    /// Pages on all lists.
    pub count: u64,
    /// Pages from which on a free gives some back.
    pub high: u64,
    /// Pages that move at once.
    pub batch: u64,
    /// Least `high` (6.7 and later).
    pub high_min: u64,
    /// Largest `high` (6.7 and later).
    pub high_max: u64,
    /// Doublings of the next refill.
    alloc_doublings: u32,
    /// Doublings of the next return.
    free_doublings: u32,
    /// Pages freed lately.
    freed: u64,
    /// The last free was of a block of order 1 to 3.
    freed_block: bool,
    lists: [List; LISTS],
}

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

/// Pages that move at once between a CPU's list and the buddy lists of a zone; 0 for a small zone.
fn batch_size(managed: u64, limit: u64) -> u64 {
    let batch = ((managed / 1024).min(limit) / 4).max(1);
    // One less than a power of two, so that neighbouring pages do not all share cache sets.
    (1 << (batch + batch / 2).ilog2()) - 1
}

/// The kernel's `clamp`, which does not require ordered bounds: a high low watermark makes the lower bound exceed the
/// upper; then the upper applies to longer lengths, the lower to shorter ones.
fn clamp(value: u64, least: u64, most: u64) -> u64 {
    match () {
        () if value >= most => most,
        () => value.max(least),
    }
}

impl PerCpuPages {
    /// Sets the sizes for a zone whose node has `cpus` running CPUs.
    pub(super) fn set_sizes(&mut self, zone: &Zone, rules: &Rules, cpus: u64) {
        let batch = batch_size(zone.managed, rules.batch_limit);
        self.batch = batch.max(1);
        let all = zone.managed.checked_div(rules.high_fraction).unwrap_or(zone.marks.low);
        let share = (all / cpus).max(4 * self.batch);
        match rules.per_cpu_high {
            PerCpuHigh::SixBatches => (self.high, self.high_min, self.high_max) = (6 * batch, 6 * batch, 6 * batch),
            PerCpuHigh::LowMark => (self.high, self.high_min, self.high_max) = (share, share, share),
            // The length itself begins at 0 and finds its way.
            PerCpuHigh::Auto if rules.high_fraction > 0 => (self.high_min, self.high_max) = (share, share),
            PerCpuHigh::Auto => {
                (self.high_min, self.high_max) = (share, (zone.managed / AUTO_SHARE / cpus).max(4 * self.batch));
            }
        }
    }

    /// Blocks of an order to take at once for an empty list.
    fn refill(&mut self, order: u32, how: PerCpuHigh, below_high: bool) -> u64 {
        if how != PerCpuHigh::Auto {
            return if self.batch > 1 { (self.batch >> order).max(if order == 0 { 1 } else { 2 }) } else { self.batch };
        }
        self.high = clamp(self.high, self.high_min, self.high_max);
        if self.high < self.batch {
            return 1;
        }
        let mut batch = if order == 0 { self.batch << self.alloc_doublings } else { self.batch };
        if self.high_min != self.high_max && !below_high {
            self.high = (self.high + batch).min(self.high_max);
        }
        if order == 0 {
            let most = self.high.saturating_sub(self.count + self.batch).max(self.batch);
            if batch <= most && self.alloc_doublings < MAX_DOUBLINGS {
                self.alloc_doublings += 1;
            }
            batch = batch.min(most);
        }
        if batch > 1 { (batch >> order).max(2) } else { batch }
    }

    /// Whether a block of an order that is freed empties the lists.
    fn frees_all(&mut self, order: u32, how: PcpFreeHigh) -> bool {
        let block = (1..=LIST_ORDERS).contains(&order);
        let run = std::mem::replace(&mut self.freed_block, block);
        let after = |freed: u64| block && run && self.freed >= freed && self.count >= self.batch;
        match how {
            PcpFreeHigh::Never => false,
            PcpFreeHigh::FreeFactor => block && self.free_doublings > 0,
            PcpFreeHigh::FreeCount => after(self.batch),
            PcpFreeHigh::FreeCountHighMin => after(self.batch + self.high_min / 2),
        }
    }

    /// Pages of all lists to free to the buddy lists after a free that empties them.
    fn all(&mut self, how: PerCpuHigh) -> u64 {
        if how != PerCpuHigh::Auto {
            return self.count;
        }
        let most = self.batch << MAX_DOUBLINGS;
        self.high = clamp(self.high, self.high_min, self.high_max).saturating_sub(most).max(self.high_min);
        self.count.min(most)
    }

    /// Pages to free to the buddy lists after a free; 0 if the list is not too long.
    fn excess(&mut self, how: PerCpuHigh, below_high: bool, reclaim_active: bool) -> u64 {
        match how {
            PerCpuHigh::SixBatches => {
                if self.count >= self.high {
                    self.batch
                } else {
                    0
                }
            }
            PerCpuHigh::LowMark => {
                let high = if reclaim_active { self.high.min(4 * self.batch) } else { self.high };
                if self.count < high {
                    return 0;
                }
                if high < self.batch {
                    return 1;
                }
                let most = high - self.batch;
                let batch = self.batch << self.free_doublings;
                if batch < most && self.free_doublings < MAX_DOUBLINGS {
                    self.free_doublings += 1;
                }
                clamp(batch, self.batch, most)
            }
            PerCpuHigh::Auto => {
                let mut high = clamp(self.high, self.high_min, self.high_max);
                self.high = high;
                let tuned = self.high_min != self.high_max;
                if reclaim_active {
                    self.high = high.saturating_sub(self.freed.max(self.batch)).max(self.high_min);
                    high = self.high.min(4 * self.batch);
                } else if below_high && tuned {
                    self.high = high.saturating_sub(self.freed.max(self.batch)).max(self.high_min);
                    high = self.count.max(self.high_min);
                }
                if self.count < high {
                    return 0;
                }
                if !below_high && !reclaim_active {
                    // More of the next pages are kept.
                    let wanted = self.freed + self.batch;
                    self.high = if high < wanted { clamp(wanted, self.high_min, self.high_max) } else { high };
                }
                if high < self.batch {
                    return 1;
                }
                let most = high - self.batch;
                clamp(self.freed, self.batch, most)
            }
        }
    }

    /// Lowers `high` when the CPU does little; the pages that are then too many.
    fn decay(&mut self) -> u64 {
        if self.high > self.high_min {
            let near = self.count.saturating_sub(self.batch << MAX_DOUBLINGS);
            self.high = near.max(self.high - (self.high >> 3)).max(self.high_min);
        }
        self.count.saturating_sub(self.high)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_a_power_of_two_less_one() {
        assert_eq!([3840, 116_655, 128_858, 1 << 24].map(|managed| batch_size(managed, 256)), [0, 31, 31, 63]);
        assert_eq!([3840, 1 << 24].map(|managed| batch_size(managed, 128)), [0, 31]);
    }

    #[test]
    fn returns_double_while_nothing_is_allocated() {
        let mut set = PerCpuPages { count: 500, high: 218, batch: 31, ..PerCpuPages::default() };
        let excess: Vec<u64> = (0..5).map(|_| set.excess(PerCpuHigh::LowMark, false, false)).collect();
        assert_eq!(excess, [31, 62, 124, 187, 187]);
        assert_eq!(set.excess(PerCpuHigh::SixBatches, false, false), 31);
        set.count = 217;
        assert_eq!([PerCpuHigh::SixBatches, PerCpuHigh::LowMark].map(|how| set.excess(how, false, false)), [0, 0]);
    }

    #[test]
    fn a_run_of_blocks_empties_the_lists() {
        let mut set = PerCpuPages { count: 100, high: 500, batch: 31, high_min: 200, ..PerCpuPages::default() };
        assert!(!set.frees_all(1, PcpFreeHigh::FreeFactor), "they have not overflowed");
        (set.free_doublings, set.freed) = (1, 40);
        assert_eq!([0, 1, 3, 9].map(|order| set.frees_all(order, PcpFreeHigh::FreeFactor)), [false, true, true, false]);
        assert_eq!([2, 2, 0, 2].map(|order| set.frees_all(order, PcpFreeHigh::FreeCount)), [false, true, false, false]);
        assert!(!set.frees_all(2, PcpFreeHigh::FreeCountHighMin) && set.frees_all(2, PcpFreeHigh::FreeCount));
        set.count = 20;
        assert!(!set.frees_all(2, PcpFreeHigh::FreeCount), "less than a batch is kept");
        assert_eq!((set.all(PerCpuHigh::LowMark), set.high), (20, 500));
        (set.count, set.high_max) = (2000, 4000);
        set.high = 1500;
        assert_eq!((set.all(PerCpuHigh::Auto), set.high), (992, 508));
    }

    #[test]
    fn a_least_length_may_be_above_the_largest() {
        // As marks of a tenth of the zone and more make it: the largest counts for what is as long, the least for the rest.
        assert_eq!([0, 40, 50, 80, 200].map(|value| clamp(value, 100, 50)), [100, 100, 50, 50, 50]);
        let mut set = PerCpuPages { batch: 7, high_min: 100, high_max: 50, ..PerCpuPages::default() };
        assert_eq!((set.refill(0, PerCpuHigh::Auto, true), set.high), (7, 100));
        assert_eq!((set.refill(0, PerCpuHigh::Auto, true), set.high), (14, 50));
        (set.count, set.freed) = (60, 5);
        assert_eq!((set.excess(PerCpuHigh::Auto, false, false), set.high), (7, 50));
        (set.count, set.high) = (150, 120);
        assert_eq!((set.decay(), set.high), (45, 105));
    }

    #[test]
    fn automatic_lists_grow_with_use_and_shrink_without() {
        let sizes = PerCpuPages { batch: 63, high_min: 1000, high_max: 10_000, ..PerCpuPages::default() };
        let mut set = sizes;
        let refills: Vec<u64> = (0..7).map(|_| set.refill(0, PerCpuHigh::Auto, false)).collect();
        assert_eq!(refills, [63, 126, 252, 504, 1008, 2016, 2016]);
        assert_eq!(
            (set.high, set.refill(2, PerCpuHigh::Auto, false)),
            (1000 + 63 * (1 + 2 + 4 + 8 + 16 + 32 + 32), 15)
        );
        set.count = 100;
        let high = set.high;
        assert_eq!((set.decay(), set.high), (0, high - high / 8));
        set.count = 9000;
        assert_eq!((set.decay(), set.high), (9000 - 6984, 6984));
        set.freed = 3000;
        assert_eq!(set.excess(PerCpuHigh::Auto, false, false), 3000);
        // When pages are short the length falls by the number freed, and pages are freed as if the list were full.
        set.count = 500;
        assert_eq!((set.excess(PerCpuHigh::Auto, true, false), set.high), (0, 6984 - 3000));
        set.count = 2000;
        assert_eq!((set.excess(PerCpuHigh::Auto, true, false), set.high), (2000 - 63, 1000));
        assert_eq!((set.refill(0, PerCpuHigh::Auto, true), set.high), (63, 1000));
    }
}

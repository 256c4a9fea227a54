//! How many pages a CPU's lists of a zone hold, and how many move at once: `zone_batchsize`, `zone_highsize`, `nr_pcp_alloc`,
//! `nr_pcp_free`, `nr_pcp_high`, `decay_pcp_high`, `free_high` of `free_unref_page_commit`.
//!
//! The releases differ in how large batches and lists are ([`PerCpuHigh`]). From 6.7 on lists of a zone below its high mark do
//! not grow, and shrink when pages are freed. From 5.18 on frees of blocks of order 1 to 3 may empty all lists
//! ([`PcpFreeHigh`]). Not modelled: `vm.percpu_pagelist_fraction` of before 5.14, and CPUs whose caches are too small for three
//! batches, whose lists each free of a run of blocks empties (no `PCPF_FREE_HIGH_BATCH`). Checked on the sizes that kernels 6.1
//! and 6.18 print (`tests/zoneinfo.rs`), by `nr_free_pages` after an exit (docs/fidelity.md), and by times of loops in guests
//! (`tests/lab_time.rs`).

use super::pageset::{LIST_ORDERS, LISTS};
use super::{PerCpuHigh, Rules, Zone};
use crate::frame::List;
use mmtwin_scenario::kernel::PcpFreeHigh;

/// A refill or a return is at most this many doublings of a batch (`CONFIG_PCP_BATCH_SCALE_MAX`).
pub(super) const MAX_DOUBLINGS: u32 = 5;
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
    pub(super) alloc_doublings: u32,
    /// Doublings of the next return.
    pub(super) free_doublings: u32,
    /// Pages freed lately.
    pub(super) freed: u64,
    /// The last free was of a block of order 1 to 3.
    pub(super) freed_block: bool,
    pub(super) lists: [List; LISTS],
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
    pub(super) fn refill(&mut self, order: u32, how: PerCpuHigh, below_high: bool) -> u64 {
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
    pub(super) fn frees_all(&mut self, order: u32, how: PcpFreeHigh) -> bool {
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
    pub(super) fn all(&mut self, how: PerCpuHigh) -> u64 {
        if how != PerCpuHigh::Auto {
            return self.count;
        }
        let most = self.batch << MAX_DOUBLINGS;
        self.high = clamp(self.high, self.high_min, self.high_max).saturating_sub(most).max(self.high_min);
        self.count.min(most)
    }

    /// Pages to free to the buddy lists after a free; 0 if the list is not too long.
    pub(super) fn excess(&mut self, how: PerCpuHigh, below_high: bool, reclaim_active: bool) -> u64 {
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
    pub(super) fn decay(&mut self) -> u64 {
        if self.high > self.high_min {
            let near = self.count.saturating_sub(self.batch << MAX_DOUBLINGS);
            self.high = near.max(self.high - (self.high >> 3)).max(self.high_min);
        }
        self.count.saturating_sub(self.high)
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

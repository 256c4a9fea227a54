//! Design B: NUMA counters have an array of their own, 16 bits wide. The 2017 series, merged for 4.14.
//!
//! A CPU adds all it has when it passes the constant threshold 65,533; there is no overstep. Zone and node reads add
//! what the CPUs have not added, the read of `/proc/vmstat` does not. The steps of the series can be taken one by one:
//! its first patch only moves the counters (signed bytes, the zone's threshold, overstep, plain reads), the second makes
//! them wide, the third makes the reads exact. Not modelled: the read that races with a fold, which is too small by what
//! was folded between its two parts. Checked against the published row and by the property test of [`super`].

use super::{Differential, File, NUMA_ITEMS, NumaCounters, NumaItem, Overflow, ReadCost};
use crate::hw::CounterType;

/// Threshold of the merged series: the largest 16-bit value but two, so that the sum of two steps still fits.
pub const SERIES_THRESHOLD: u32 = 65_533;

/// Step of the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separate {
    /// Constant threshold of 16-bit counters; `None`: signed bytes with the zone's threshold and overstep.
    pub threshold: Option<u32>,
    /// Zone and node reads add what the CPUs have not added.
    pub snapshot_reads: bool,
    /// The test whether a CPU needs an update checks as many bytes as there are counters, so it misses the last three
    /// of the six (4.14 to 4.19).
    pub update_test_fault: bool,
}

impl Separate {
    /// The series as merged.
    pub const MERGED: Separate =
        Separate { threshold: Some(SERIES_THRESHOLD), snapshot_reads: true, update_test_fault: true };
    /// Its first patch alone.
    pub const FIRST_PATCH: Separate = Separate { threshold: None, snapshot_reads: false, update_test_fault: false };
}

/// Design B.
#[derive(Clone, Debug)]
pub struct SeparateCounters {
    variant: Separate,
    counters: Differential,
}

impl SeparateCounters {
    /// All zero.
    pub fn new(variant: Separate, zones: usize, cpus: usize) -> SeparateCounters {
        let overflow = if variant.threshold.is_some() { Overflow::Exact } else { Overflow::Overstep };
        let mut counters = Differential::new(zones, cpus, NUMA_ITEMS, overflow);
        if let Some(threshold) = variant.threshold {
            (0..zones).for_each(|zone| counters.set_threshold(zone, threshold));
        }
        SeparateCounters { variant, counters }
    }

    /// Zeroes everything.
    pub(super) fn clear(&mut self, online: &[u32]) {
        self.counters.clear(online.iter().copied());
    }
}

impl NumaCounters for SeparateCounters {
    fn counter_type(&self) -> Option<CounterType> {
        Some(if self.variant.threshold.is_some() { CounterType::U16 } else { CounterType::S8 })
    }
    #[inline]
    fn count(&mut self, zone: usize, cpu: u32, item: NumaItem) -> bool {
        self.counters.increment(zone, cpu, item as usize)
    }
    fn run(&mut self, zone: usize, cpu: u32, item: NumaItem, n: u64) {
        self.counters.run(zone, cpu, item as usize, n);
    }
    fn until_shared(&self, zone: usize, cpu: u32, item: NumaItem) -> Option<u64> {
        Some(self.counters.until_shared(zone, cpu, item as usize))
    }
    fn period(&self, zone: usize) -> Option<u64> {
        Some(self.counters.period(zone))
    }
    fn zone_threshold(&mut self, zone: usize, threshold: u32) {
        if self.variant.threshold.is_none() {
            self.counters.set_threshold(zone, threshold);
        }
    }
    fn fold(&mut self, zone: usize, cpu: u32) -> bool {
        self.counters.fold(zone, cpu)
    }
    fn needs_update(&self, cpu: u32) -> bool {
        let seen = if self.variant.update_test_fault { NUMA_ITEMS / size_of::<u16>() } else { NUMA_ITEMS };
        self.counters.pending(cpu, seen)
    }
    fn offline(&mut self, zone: usize, cpu: u32) -> bool {
        self.counters.fold(zone, cpu)
    }
    fn before_read(&mut self, _file: File, _zones: &[usize], _online: &[u32], _cost: &mut ReadCost) {}
    fn zone(&self, zone: usize, online: &[u32], cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        cost.shared_words += NUMA_ITEMS as u64;
        if !self.variant.snapshot_reads {
            return std::array::from_fn(|item| self.counters.plain(zone, item));
        }
        // Six counters of 16 bits lie in one line per zone and CPU.
        cost.cpu_words += (NUMA_ITEMS * online.len()) as u64;
        cost.cpu_lines += online.len() as u64;
        self.snapshot(zone, online)
    }
    fn system(&self, cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        cost.shared_words += NUMA_ITEMS as u64;
        std::array::from_fn(|item| self.counters.system(item).max(0) as u64)
    }
    fn snapshot(&self, zone: usize, online: &[u32]) -> [u64; NUMA_ITEMS] {
        std::array::from_fn(|item| self.counters.snapshot(zone, item, online.iter().copied()))
    }
    fn negative(&self) -> Vec<NumaItem> {
        NumaItem::ALL.into_iter().filter(|&item| self.counters.system(item as usize) < 0).collect()
    }
    fn set_enabled(&mut self, _enabled: bool, _online: &[u32]) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_update_test_misses_the_last_three_counters() {
        let counted = |item, variant| {
            let mut counters = SeparateCounters::new(variant, 1, 1);
            counters.zone_threshold(0, 125);
            counters.count(0, 0, item);
            counters.needs_update(0)
        };
        let fixed = Separate { update_test_fault: false, ..Separate::MERGED };
        assert_eq!(NumaItem::ALL.map(|item| counted(item, Separate::MERGED)), [true, true, true, false, false, false]);
        assert_eq!(NumaItem::ALL.map(|item| counted(item, fixed)), [true; NUMA_ITEMS]);
        assert_eq!(NumaItem::ALL.map(|item| counted(item, Separate::FIRST_PATCH)), [true; NUMA_ITEMS]);
    }

    #[test]
    fn the_constant_threshold_ignores_the_zones() {
        let mut counters = SeparateCounters::new(Separate::MERGED, 1, 1);
        counters.zone_threshold(0, 4);
        assert_eq!((counters.period(0), counters.until_shared(0, 0, NumaItem::Hit)), (Some(65_534), Some(65_534)));
        let mut first = SeparateCounters::new(Separate::FIRST_PATCH, 1, 1);
        first.zone_threshold(0, 4);
        assert_eq!(first.period(0), Some(7));
    }
}

//! Design A: NUMA counters are items among the zone's others. Kernel 4.13 and before.
//!
//! They share the zone's signed-byte differentials, its threshold (also the smaller one under memory pressure) and the
//! overstep. All reads are plain. Not modelled: the common array; only its effect is kept: the periodic work checks
//! these counters like all others. Checked against the published table and by the property test of [`super`].

use super::{Differential, File, NUMA_ITEMS, NumaCounters, NumaItem, Overflow, ReadCost};
use crate::hw::CounterType;

/// Design A.
#[derive(Clone, Debug)]
pub struct InZone {
    counters: Differential,
}

impl InZone {
    /// All zero.
    pub fn new(zones: usize, cpus: usize) -> InZone {
        InZone { counters: Differential::new(zones, cpus, NUMA_ITEMS, Overflow::Overstep) }
    }
}

impl NumaCounters for InZone {
    fn counter_type(&self) -> Option<CounterType> {
        Some(CounterType::S8)
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
        self.counters.set_threshold(zone, threshold);
    }
    fn fold(&mut self, zone: usize, cpu: u32) -> bool {
        self.counters.fold(zone, cpu)
    }
    fn needs_update(&self, cpu: u32) -> bool {
        self.counters.pending(cpu, NUMA_ITEMS)
    }
    fn offline(&mut self, zone: usize, cpu: u32) -> bool {
        self.counters.fold(zone, cpu)
    }
    fn before_read(&mut self, _file: File, _zones: &[usize], _online: &[u32], _cost: &mut ReadCost) {}
    fn zone(&self, zone: usize, _online: &[u32], cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        cost.shared_words += NUMA_ITEMS as u64;
        std::array::from_fn(|item| self.counters.plain(zone, item))
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

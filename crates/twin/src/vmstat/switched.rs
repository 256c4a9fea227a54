//! Design C: design B with the sysctl `vm.numa_stat`. Kernels 4.15 to 5.13.
//!
//! A patched branch leaves the counting out while the sysctl is 0. Switching off zeroes everything, switching on starts
//! from zero. Not modelled: CPUs that are past the branch at that moment and leave small residues. Checked by tests here.

use super::{File, NUMA_ITEMS, NumaCounters, NumaItem, ReadCost, Separate, SeparateCounters};
use crate::hw::CounterType;

/// Kernel log of the switch; design D has the same.
pub(super) const DISABLED: &str = "disable numa statistics, and clear numa counters";
/// Kernel log of the switch.
pub(super) const ENABLED: &str = "enable numa statistics";

/// Design C.
#[derive(Clone, Debug)]
pub struct Switched {
    counters: SeparateCounters,
    enabled: bool,
}

impl Switched {
    /// All zero, switched on.
    pub fn new(variant: Separate, zones: usize, cpus: usize) -> Switched {
        Switched { counters: SeparateCounters::new(variant, zones, cpus), enabled: true }
    }
}

impl NumaCounters for Switched {
    fn counter_type(&self) -> Option<CounterType> {
        self.enabled.then(|| self.counters.counter_type()).flatten()
    }
    #[inline]
    fn count(&mut self, zone: usize, cpu: u32, item: NumaItem) -> bool {
        self.enabled && self.counters.count(zone, cpu, item)
    }
    fn run(&mut self, zone: usize, cpu: u32, item: NumaItem, n: u64) {
        if self.enabled {
            self.counters.run(zone, cpu, item, n);
        }
    }
    fn until_shared(&self, zone: usize, cpu: u32, item: NumaItem) -> Option<u64> {
        self.enabled.then(|| self.counters.until_shared(zone, cpu, item)).flatten()
    }
    fn period(&self, zone: usize) -> Option<u64> {
        self.enabled.then(|| self.counters.period(zone)).flatten()
    }
    fn zone_threshold(&mut self, zone: usize, threshold: u32) {
        self.counters.zone_threshold(zone, threshold);
    }
    fn fold(&mut self, zone: usize, cpu: u32) -> bool {
        self.counters.fold(zone, cpu)
    }
    fn needs_update(&self, cpu: u32) -> bool {
        self.counters.needs_update(cpu)
    }
    fn offline(&mut self, zone: usize, cpu: u32) -> bool {
        self.counters.offline(zone, cpu)
    }
    fn before_read(&mut self, file: File, zones: &[usize], online: &[u32], cost: &mut ReadCost) {
        self.counters.before_read(file, zones, online, cost);
    }
    fn zone(&self, zone: usize, online: &[u32], cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        self.counters.zone(zone, online, cost)
    }
    fn system(&self, cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        self.counters.system(cost)
    }
    fn snapshot(&self, zone: usize, online: &[u32]) -> [u64; NUMA_ITEMS] {
        self.counters.snapshot(zone, online)
    }
    fn negative(&self) -> Vec<NumaItem> {
        self.counters.negative()
    }
    fn set_enabled(&mut self, enabled: bool, online: &[u32]) -> Option<&'static str> {
        if enabled == self.enabled {
            return None;
        }
        self.enabled = enabled;
        if !enabled {
            self.counters.clear(online);
        }
        Some(if enabled { ENABLED } else { DISABLED })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switching_off_clears_and_stops() {
        let mut counters = Switched::new(Separate::MERGED, 2, 2);
        let count = |counters: &mut Switched| {
            counters.run(1, 1, NumaItem::Hit, 70_000);
            counters.count(0, 0, NumaItem::Local);
        };
        count(&mut counters);
        assert_eq!(counters.snapshot(1, &[0, 1])[0], 70_000);
        assert_eq!(counters.set_enabled(true, &[0, 1]), None);
        assert_eq!(counters.set_enabled(false, &[0, 1]), Some(DISABLED));
        count(&mut counters);
        assert_eq!((counters.counter_type(), counters.period(0)), (None, None));
        assert_eq!([0, 1].map(|zone| counters.snapshot(zone, &[0, 1])), [[0; NUMA_ITEMS]; 2]);
        assert_eq!(counters.system(&mut ReadCost::default()), [0; NUMA_ITEMS]);
        assert_eq!(counters.set_enabled(true, &[0, 1]), Some(ENABLED));
        count(&mut counters);
        assert_eq!(counters.snapshot(0, &[0, 1]), [0, 0, 0, 0, 1, 0]);
    }
}

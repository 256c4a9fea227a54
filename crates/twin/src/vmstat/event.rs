//! Design D: NUMA counters are per-CPU event words that readers fold. Kernels 5.14 to today.
//!
//! The counting CPU adds to its own word and never writes a shared one. `/proc/vmstat` and the nodes' files first fold
//! the words of all online CPUs in all populated zones; `/proc/zoneinfo` folds from the end of 2024 on and shows old
//! values before. The periodic fold skips these words. Not modelled: the unlocked add that races with a reader's
//! exchange and counts twice. Checked by tests here and by the property test of [`super`].

use super::switched::{DISABLED, ENABLED};
use super::{File, NUMA_ITEMS, NumaCounters, NumaItem, ReadCost};
use crate::hw::CounterType;

/// Design D.
#[derive(Clone, Debug)]
pub struct EventCounters {
    cpus: usize,
    zoneinfo_folds: bool,
    enabled: bool,
    /// By zone and CPU.
    own: Vec<[u64; NUMA_ITEMS]>,
    /// By zone.
    words: Vec<[u64; NUMA_ITEMS]>,
    system: [u64; NUMA_ITEMS],
}

impl EventCounters {
    /// All zero, switched on.
    pub fn new(zoneinfo_folds: bool, zones: usize, cpus: usize) -> EventCounters {
        let (own, words) = (vec![[0; NUMA_ITEMS]; zones * cpus], vec![[0; NUMA_ITEMS]; zones]);
        EventCounters { cpus, zoneinfo_folds, enabled: true, own, words, system: [0; NUMA_ITEMS] }
    }

    fn take(&mut self, zone: usize, cpu: u32) -> bool {
        let own = std::mem::take(&mut self.own[zone * self.cpus + cpu as usize]);
        for (item, n) in own.into_iter().enumerate() {
            self.words[zone][item] += n;
            self.system[item] += n;
        }
        own != [0; NUMA_ITEMS]
    }
}

impl NumaCounters for EventCounters {
    fn counter_type(&self) -> Option<CounterType> {
        self.enabled.then_some(CounterType::Word)
    }
    #[inline]
    fn count(&mut self, zone: usize, cpu: u32, item: NumaItem) -> bool {
        self.run(zone, cpu, item, 1);
        false
    }
    #[inline]
    fn run(&mut self, zone: usize, cpu: u32, item: NumaItem, n: u64) {
        if self.enabled {
            self.own[zone * self.cpus + cpu as usize][item as usize] += n;
        }
    }
    fn until_shared(&self, _zone: usize, _cpu: u32, _item: NumaItem) -> Option<u64> {
        None
    }
    fn period(&self, _zone: usize) -> Option<u64> {
        None
    }
    fn zone_threshold(&mut self, _zone: usize, _threshold: u32) {}
    fn fold(&mut self, _zone: usize, _cpu: u32) -> bool {
        false
    }
    fn needs_update(&self, _cpu: u32) -> bool {
        false
    }
    fn offline(&mut self, zone: usize, cpu: u32) -> bool {
        self.take(zone, cpu)
    }
    fn before_read(&mut self, file: File, zones: &[usize], online: &[u32], cost: &mut ReadCost) {
        if file == File::Zoneinfo && !self.zoneinfo_folds {
            return;
        }
        // Six words of 8 bytes lie in one line per zone and CPU; the exchange also takes the line from its owner.
        cost.exchanges += (NUMA_ITEMS * zones.len() * online.len()) as u64;
        cost.cpu_lines += (zones.len() * online.len()) as u64;
        for &zone in zones {
            for &cpu in online {
                self.take(zone, cpu);
            }
        }
    }
    fn zone(&self, zone: usize, _online: &[u32], cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        cost.shared_words += NUMA_ITEMS as u64;
        self.words[zone]
    }
    fn system(&self, cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        cost.shared_words += NUMA_ITEMS as u64;
        self.system
    }
    fn snapshot(&self, zone: usize, online: &[u32]) -> [u64; NUMA_ITEMS] {
        let own = |item: usize| online.iter().map(|&cpu| self.own[zone * self.cpus + cpu as usize][item]).sum::<u64>();
        std::array::from_fn(|item| self.words[zone][item] + own(item))
    }
    fn negative(&self) -> Vec<NumaItem> {
        Vec::new()
    }
    fn set_enabled(&mut self, enabled: bool, online: &[u32]) -> Option<&'static str> {
        if enabled == self.enabled {
            return None;
        }
        self.enabled = enabled;
        if !enabled {
            self.words.fill([0; NUMA_ITEMS]);
            self.system = [0; NUMA_ITEMS];
            for of_zone in self.own.chunks_mut(self.cpus) {
                online.iter().for_each(|&cpu| of_zone[cpu as usize] = [0; NUMA_ITEMS]);
            }
        }
        Some(if enabled { ENABLED } else { DISABLED })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zoneinfo_is_old_until_another_file_is_read() {
        let mut cost = ReadCost::default();
        for (zoneinfo_folds, expected) in [(false, 0), (true, 5)] {
            let mut counters = EventCounters::new(zoneinfo_folds, 2, 3);
            counters.run(1, 2, NumaItem::Hit, 5);
            counters.before_read(File::Zoneinfo, &[0, 1], &[0, 1, 2], &mut cost);
            assert_eq!(counters.zone(1, &[0, 1, 2], &mut cost)[0], expected);
            counters.before_read(File::Node, &[0, 1], &[0, 1, 2], &mut cost);
            assert_eq!(counters.zone(1, &[0, 1, 2], &mut cost)[0], 5);
        }
        // Three reads folded: 6 counters, 2 zones, 3 CPUs.
        assert_eq!((cost.exchanges, cost.cpu_lines, cost.shared_words), (3 * 36, 3 * 6, 4 * 6));
    }

    #[test]
    fn the_switch_clears() {
        let mut counters = EventCounters::new(true, 1, 1);
        counters.run(0, 0, NumaItem::Hit, 5);
        assert_eq!(counters.set_enabled(false, &[0]), Some(DISABLED));
        counters.count(0, 0, NumaItem::Hit);
        assert_eq!((counters.snapshot(0, &[0]), counters.counter_type()), ([0; NUMA_ITEMS], None));
        assert_eq!(counters.set_enabled(true, &[0]), Some(ENABLED));
    }
}

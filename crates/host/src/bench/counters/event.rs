//! NUMA counters as per-CPU event words, as from 5.14 on.
//!
//! Models `__count_numa_event` and `fold_vm_numa_events`: the counting CPU adds to a word of its own without a lock and
//! never accesses a shared one. A read first exchanges the words of all CPUs with 0 and adds them to the zone's and
//! the system's word, for every zone and item, then reads plain. An addition that is under way during the exchange may
//! bring back what was folded already: the drift is upward, rare, and the kernel's own.

use super::Design;
use super::shared::{HIT, ITEMS, LOCAL, Shared, Slots};
use std::sync::atomic::{AtomicU64, Ordering};

/// The design.
pub struct EventCounters {
    shared: Shared,
    slots: Slots<[AtomicU64; ITEMS]>,
}

impl EventCounters {
    /// Words of 0.
    pub fn new(shared: Shared, cpus: usize) -> EventCounters {
        let slots = Slots::new(shared.zones(), cpus, Default::default);
        EventCounters { shared, slots }
    }

    fn fold_all(&self) {
        for node in 0..self.shared.zones() {
            let mut sums = [0; ITEMS];
            for slot in self.slots.zone(node) {
                for (sum, word) in sums.iter_mut().zip(slot) {
                    *sum += word.swap(0, Ordering::Relaxed);
                }
            }
            for (item, sum) in sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0) {
                self.shared.add(node, item, sum as i64);
            }
        }
    }
}

impl Design for EventCounters {
    #[inline]
    fn watermark(&self, node: usize) -> u64 {
        self.shared.watermark(node)
    }

    #[inline]
    fn count(&self, cpu: usize, node: usize) -> u64 {
        let slot = self.slots.get(node, cpu);
        let one = |item: usize| {
            let word: &AtomicU64 = &slot[item];
            let before = word.load(Ordering::Relaxed);
            word.store(before.wrapping_add(1), Ordering::Relaxed);
            before
        };
        one(HIT) ^ one(LOCAL)
    }

    fn period(&self) -> u64 {
        1
    }

    fn fold(&self, cpu: usize, node: usize) {
        // The periodic fold leaves these words alone; what takes a CPU off line does not.
        for (item, word) in self.slots.get(node, cpu).iter().enumerate() {
            self.shared.add(node, item, word.swap(0, Ordering::Relaxed) as i64);
        }
    }

    fn numastat(&self, node: usize) -> [u64; ITEMS] {
        self.fold_all();
        self.shared.plain(node)
    }

    fn vmstat(&self) -> [u64; ITEMS] {
        self.fold_all();
        self.shared.system()
    }
}

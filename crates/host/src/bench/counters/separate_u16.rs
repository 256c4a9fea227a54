//! NUMA counters of 16 bits with a fixed threshold, as from 4.14 to 5.13.
//!
//! Models `__inc_numa_state` of 4.14: each CPU has an unsigned 16-bit difference per item and no threshold of its own;
//! one that exceeds 65,533 goes to both words as it is and begins again at 0. Reads of a zone add the differences of
//! all CPUs; the system's read is plain. The published sweep had other thresholds: here a number of the design.

use super::Design;
use super::shared::{HIT, ITEMS, LOCAL, Shared, Slots};
use std::sync::atomic::{AtomicU16, Ordering};

/// The design.
pub struct SeparateU16 {
    shared: Shared,
    slots: Slots<[AtomicU16; ITEMS]>,
    threshold: u16,
}

impl SeparateU16 {
    /// Differences of 0 with a threshold up to 65,534.
    pub fn new(shared: Shared, cpus: usize, threshold: u32) -> SeparateU16 {
        let slots = Slots::new(shared.zones(), cpus, Default::default);
        SeparateU16 { shared, slots, threshold: threshold as u16 }
    }
}

impl Design for SeparateU16 {
    #[inline]
    fn watermark(&self, node: usize) -> u64 {
        self.shared.watermark(node)
    }

    #[inline]
    fn count(&self, cpu: usize, node: usize) -> u64 {
        let slot = self.slots.get(node, cpu);
        let one = |item: usize| {
            let difference: &AtomicU16 = &slot[item];
            let before = difference.load(Ordering::Relaxed);
            let after = before.wrapping_add(1);
            if after > self.threshold {
                self.shared.add(node, item, after.into());
                difference.store(0, Ordering::Relaxed);
            } else {
                difference.store(after, Ordering::Relaxed);
            }
            u64::from(before)
        };
        one(HIT) ^ one(LOCAL)
    }

    fn period(&self) -> u64 {
        u64::from(self.threshold) + 1
    }

    fn fold(&self, cpu: usize, node: usize) {
        for (item, difference) in self.slots.get(node, cpu).iter().enumerate() {
            self.shared.add(node, item, difference.swap(0, Ordering::Relaxed).into());
        }
    }

    fn numastat(&self, node: usize) -> [u64; ITEMS] {
        // Item by item and the word before the differences, as the kernel reads a snapshot.
        std::array::from_fn(|item| {
            let word = self.shared.zone(node, item);
            let differences = self.slots.zone(node).map(|slot| i64::from(slot[item].load(Ordering::Relaxed)));
            (word + differences.sum::<i64>()).max(0) as u64
        })
    }

    fn vmstat(&self) -> [u64; ITEMS] {
        self.shared.system()
    }
}

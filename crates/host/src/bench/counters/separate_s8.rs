//! NUMA counters in an array of their own, else as before: the first step of the 2017 series.
//!
//! Models `__inc_numa_state` as that step has it: signed 8-bit differences with the overstep and a copy of the zone's
//! threshold, in words behind the zone's items. Reads are plain. On its own the step changes only which lines the
//! words share.

use super::Design;
use super::shared::{HIT, ITEMS, LOCAL, Shared, Slots};
use super::zone_items::{Difference, increment, period};
use std::sync::atomic::AtomicI8;

/// A CPU's slot.
struct Slot {
    threshold: AtomicI8,
    differences: [AtomicI8; ITEMS],
}

/// The design.
pub struct SeparateS8 {
    shared: Shared,
    slots: Slots<Slot>,
    period: u64,
}

impl SeparateS8 {
    /// Differences of 0 with a threshold up to 125.
    pub fn new(shared: Shared, cpus: usize, threshold: u32) -> SeparateS8 {
        let slot = || Slot { threshold: Difference::new(threshold as i32), differences: Default::default() };
        let slots = Slots::new(shared.zones(), cpus, slot);
        SeparateS8 { shared, slots, period: period(threshold) }
    }
}

impl Design for SeparateS8 {
    #[inline]
    fn watermark(&self, node: usize) -> u64 {
        self.shared.watermark(node)
    }

    #[inline]
    fn count(&self, cpu: usize, node: usize) -> u64 {
        let Slot { threshold, differences } = self.slots.get(node, cpu);
        let one = |item: usize| increment(&differences[item], threshold.get(), |by| self.shared.add(node, item, by));
        one(HIT) ^ one(LOCAL)
    }

    fn period(&self) -> u64 {
        self.period
    }

    fn fold(&self, cpu: usize, node: usize) {
        for (item, difference) in self.slots.get(node, cpu).differences.iter().enumerate() {
            self.shared.add(node, item, difference.get().into());
            difference.set(0);
        }
    }

    fn numastat(&self, node: usize) -> [u64; ITEMS] {
        self.shared.plain(node)
    }

    fn vmstat(&self) -> [u64; ITEMS] {
        self.shared.system()
    }
}

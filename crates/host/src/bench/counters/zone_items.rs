//! NUMA counters among the zone's items, as up to 4.13.
//!
//! Models `__inc_zone_state` of 4.13: each CPU has a signed 8-bit difference per item and the zone's threshold t in its
//! slot. A difference that exceeds t goes to the zone's and the system's word with t/2 on top, and begins again at
//! -(t/2); so the words are updated every t + 1 + t/2 increments. Reads are plain. [`S16`] is the same with 16 bits,
//! for the thresholds of the published sweep that 8 bits cannot hold.

use super::Design;
use super::shared::{HIT, ITEMS, LOCAL, Shared, Slots};
use std::sync::atomic::{AtomicI8, AtomicI16, Ordering};

/// One CPU's difference: only its owner writes it, so it is loaded and stored, not locked.
pub trait Difference: Send + Sync {
    /// A difference of this value, which fits.
    fn new(value: i32) -> Self;
    /// Its value.
    fn get(&self) -> i32;
    /// Replaces it by a value that fits.
    fn set(&self, value: i32);
}

impl Difference for AtomicI8 {
    fn new(value: i32) -> AtomicI8 {
        AtomicI8::new(value as i8)
    }
    #[inline]
    fn get(&self) -> i32 {
        self.load(Ordering::Relaxed).into()
    }
    #[inline]
    fn set(&self, value: i32) {
        self.store(value as i8, Ordering::Relaxed);
    }
}

impl Difference for AtomicI16 {
    fn new(value: i32) -> AtomicI16 {
        AtomicI16::new(value as i16)
    }
    #[inline]
    fn get(&self) -> i32 {
        self.load(Ordering::Relaxed).into()
    }
    #[inline]
    fn set(&self, value: i32) {
        self.store(value as i16, Ordering::Relaxed);
    }
}

/// Increments a difference; `overflow` gets what goes to the shared words. Returns what the difference was.
#[inline]
pub fn increment<D: Difference>(difference: &D, threshold: i32, overflow: impl FnOnce(i64)) -> u64 {
    let before = difference.get();
    let after = before + 1;
    if after > threshold {
        let overstep = threshold >> 1;
        overflow((after + overstep).into());
        difference.set(-overstep);
    } else {
        difference.set(after);
    }
    before as u64
}

/// Increments from one overflow to the next.
pub fn period(threshold: u32) -> u64 {
    u64::from(threshold + 1 + (threshold >> 1))
}

/// A CPU's slot: the zone's threshold beside the differences. The items before the NUMA ones are there for their room.
struct Slot<D> {
    threshold: D,
    differences: [D; FIRST + ITEMS],
}

/// Zone items before the NUMA ones.
const FIRST: usize = 12;

/// The design with a width of differences.
pub struct ZoneItems<D> {
    shared: Shared,
    slots: Slots<Slot<D>>,
    period: u64,
}

/// As in the kernel; thresholds up to 125.
pub type S8 = ZoneItems<AtomicI8>;

/// For thresholds up to 32,766.
pub type S16 = ZoneItems<AtomicI16>;

impl<D: Difference> ZoneItems<D> {
    /// Differences of 0 with a threshold that `D` holds with one more.
    pub fn new(shared: Shared, cpus: usize, threshold: u32) -> ZoneItems<D> {
        let slot = || Slot { threshold: D::new(threshold as i32), differences: std::array::from_fn(|_| D::new(0)) };
        let slots = Slots::new(shared.zones(), cpus, slot);
        ZoneItems { shared, slots, period: period(threshold) }
    }
}

impl<D: Difference> Design for ZoneItems<D> {
    #[inline]
    fn watermark(&self, node: usize) -> u64 {
        self.shared.watermark(node)
    }

    #[inline]
    fn count(&self, cpu: usize, node: usize) -> u64 {
        let slot = self.slots.get(node, cpu);
        let one = |item: usize| {
            let difference = &slot.differences[FIRST + item];
            increment(difference, slot.threshold.get(), |by| self.shared.add(node, item, by))
        };
        one(HIT) ^ one(LOCAL)
    }

    fn period(&self) -> u64 {
        self.period
    }

    fn fold(&self, cpu: usize, node: usize) {
        for (item, difference) in self.slots.get(node, cpu).differences[FIRST..].iter().enumerate() {
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

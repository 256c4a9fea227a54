//! Latencies of accesses that arrive: from the arrival to the end of the access, in slots of powers of two.

use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::results::Latency;

/// Latencies of some accesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    /// By the bits of their nanoseconds.
    slots: Vec<u64>,
    time: u128,
}

impl Latencies {
    /// An access took this long.
    pub(crate) fn note(&mut self, time: Ps) {
        let nanoseconds = time / PS_PER_NS;
        let slot = (u64::BITS - nanoseconds.leading_zeros()) as usize;
        self.slots.resize(self.slots.len().max(slot + 1), 0);
        self.slots[slot] += 1;
        self.time += u128::from(nanoseconds);
    }

    /// And those of another thread.
    pub(crate) fn add(&mut self, other: &Latencies) {
        self.slots.resize(self.slots.len().max(other.slots.len()), 0);
        self.slots.iter_mut().zip(&other.slots).for_each(|(slot, more)| *slot += more);
        self.time += other.time;
    }

    /// As in results; `None` without accesses.
    pub(crate) fn result(&self) -> Option<Latency> {
        let accesses: u64 = self.slots.iter().sum();
        let least = |bits: usize| if bits == 0 { 0 } else { 1u64 << (bits - 1) };
        let used = self.slots.iter().enumerate().filter(|(_, count)| **count > 0);
        let slots = used.map(|(bits, count)| (least(bits), *count)).collect();
        (accesses > 0).then(|| Latency { mean: self.time as f64 / accesses as f64, slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_powers_of_two() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        assert_eq!(one.result(), None);
        [900, 5_000, 7_999].into_iter().for_each(|time| one.note(time));
        other.note(1_000_000);
        one.add(&other);
        let expected = Latency { mean: (5 + 7 + 1000) as f64 / 4.0, slots: vec![(0, 1), (4, 2), (512, 1)] };
        assert_eq!(one.result(), Some(expected));
    }
}

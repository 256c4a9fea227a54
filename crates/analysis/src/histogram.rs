//! Counts by power of two, and counts over time, both of fixed size whatever they are fed.

/// Values by power of two: slot 0 holds 0 and 1, slot i holds 2^i to 2^(i+1) - 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log2 {
    slots: Vec<u64>,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u128,
    /// Largest value.
    pub max: u64,
}

impl Log2 {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let slot = value.max(1).ilog2() as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// (lowest value, highest value, count) from the first slot to the highest that is not empty.
    pub fn slots(&self) -> Vec<(u64, u64, u64)> {
        let low = |i: usize| if i == 0 { 0 } else { 1 << i };
        let high = |i: usize| u64::MAX >> (63 - i);
        self.slots.iter().enumerate().map(|(i, &n)| (low(i), high(i), n)).collect()
    }

    /// Mean of the values themselves.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// Intervals of a [`Timeline`].
const INTERVALS: usize = 128;

/// Amounts over time: at most 128 intervals of equal length, a power of two of nanoseconds that grows as needed.
/// Amounts may come in any order of time.
#[derive(Clone, Debug)]
pub struct Timeline {
    shift: u32,
    /// Number of the first interval, counted from time 0.
    origin: u64,
    amounts: Box<[u64; INTERVALS]>,
    used: usize,
}

impl Default for Timeline {
    fn default() -> Timeline {
        // 2^20 ns, about 1 ms, is finer than anything that is asked of a timeline.
        Timeline { shift: 20, origin: 0, amounts: Box::new([0; INTERVALS]), used: 0 }
    }
}

impl Timeline {
    /// Adds an amount at a time in nanoseconds.
    #[inline]
    pub fn add(&mut self, at: u64, amount: u64) {
        let mut i = (at >> self.shift).wrapping_sub(self.origin) as usize;
        if self.used == 0 || i >= INTERVALS {
            self.make_room(at);
            i = ((at >> self.shift) - self.origin) as usize;
        }
        self.amounts[i] = self.amounts[i].saturating_add(amount);
        self.used = self.used.max(i + 1);
    }

    fn make_room(&mut self, at: u64) {
        if self.used == 0 {
            self.origin = at >> self.shift;
            return;
        }
        loop {
            let i = at >> self.shift;
            let first = self.origin.min(i);
            let last = (self.origin + self.used as u64 - 1).max(i);
            if last - first < INTERVALS as u64 {
                let by = (self.origin - first) as usize;
                self.amounts.rotate_right(by);
                self.used += by;
                self.origin = first;
                return;
            }
            let mut halved = Box::new([0; INTERVALS]);
            let origin = self.origin >> 1;
            for (j, &amount) in self.amounts[..self.used].iter().enumerate() {
                let half = &mut halved[(((self.origin + j as u64) >> 1) - origin) as usize];
                *half = amount.saturating_add(*half);
            }
            self.used = (((self.origin + self.used as u64 - 1) >> 1) - origin + 1) as usize;
            self.amounts = halved;
            self.origin = origin;
            self.shift += 1;
        }
    }

    /// (start in nanoseconds, amount) of every interval from the first to the last with an amount.
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.amounts[..self.used].iter().enumerate().map(|(i, &n)| ((self.origin + i as u64) << self.shift, n))
    }

    /// Length of an interval in nanoseconds.
    pub fn interval(&self) -> u64 {
        1 << self.shift
    }

    /// Sum of the amounts from `from` on, by whole intervals that begin at or after it.
    pub fn since(&self, from: u64) -> u64 {
        self.intervals().filter(|(start, _)| *start >= from).fold(0, |sum: u64, (_, n)| sum.saturating_add(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_hold_powers_of_two() {
        let mut h = Log2::default();
        [0, 1, 2, 3, 4, 7, 8, u64::MAX].iter().for_each(|&v| h.add(v));
        let slots = h.slots();
        assert_eq!(slots[..4], [(0, 1, 2), (2, 3, 2), (4, 7, 2), (8, 15, 1)]);
        assert_eq!(slots[63], (1 << 63, u64::MAX, 1));
        assert_eq!(Log2::default().mean(), None);
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_slot(values in prop::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 1..50)) {
            let mut h = Log2::default();
            values.iter().for_each(|&v| h.add(v));
            for (low, high, n) in h.slots() {
                prop_assert_eq!(n, values.iter().filter(|v| (low..=high).contains(v)).count() as u64);
            }
            prop_assert_eq!(h.sum, values.iter().map(|&v| u128::from(v)).sum::<u128>());
        }

        #[test]
        fn timeline_loses_nothing_in_any_order(times in prop::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 1..60)) {
            let mut t = Timeline::default();
            times.iter().for_each(|&at| t.add(at, 3));
            for (start, n) in t.intervals() {
                let inside = times.iter().filter(|at| (start..=start + (t.interval() - 1)).contains(at)).count() as u64;
                prop_assert_eq!(n, inside * 3);
            }
            prop_assert_eq!(t.since(0), 3 * times.len() as u64);
        }
    }
}

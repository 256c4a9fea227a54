//! An amount over time in a bounded number of bins of equal width.
//!
//! The width is a power of two of nanoseconds and doubles when the bins would become too many, so the result depends on
//! what was added, not on the order.

/// Most bins.
pub const MAX_BINS: usize = 512;

/// Narrowest bins, as a power of two: some 1 ms.
const NARROWEST: u32 = 20;

/// The amount by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Bins are `1 << (NARROWEST + coarser)` nanoseconds wide.
    coarser: u32,
    /// Number of the first bin.
    first: u64,
    bins: Vec<u64>,
}

impl Timeline {
    /// Adds an amount at a time in nanoseconds of the trace clock.
    #[inline]
    pub fn add(&mut self, at: u64, amount: u64) {
        let bin = at >> self.shift();
        match bin.checked_sub(self.first).and_then(|i| self.bins.get_mut(i as usize)) {
            Some(sum) => *sum = sum.saturating_add(amount),
            None => self.add_outside(at, amount),
        }
    }

    /// Adds the nanoseconds of an interval, each where it passed.
    pub fn add_interval(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        // Both ends first: then the bins between them exist.
        self.add(from, 0);
        self.add(to - 1, 0);
        let shift = self.shift();
        for bin in (from >> shift)..=((to - 1) >> shift) {
            let (start, end) = (bin << shift, (bin << shift).saturating_add(1 << shift));
            self.add(start.max(from), end.min(to) - start.max(from));
        }
    }

    /// Sum between two times; a bin that is partly between them counts in proportion.
    pub fn between(&self, from: u64, to: u64) -> f64 {
        let width = 1u64 << self.shift();
        let part = |(i, sum): (usize, &u64)| {
            let start = (self.first + i as u64) << self.shift();
            let (low, high) = (start.max(from), start.saturating_add(width).min(to));
            high.saturating_sub(low) as f64 / width as f64 * *sum as f64
        };
        self.bins.iter().enumerate().filter(|(_, sum)| **sum > 0).map(part).sum()
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.bins.iter().all(|sum| *sum == 0)
    }

    fn shift(&self) -> u32 {
        NARROWEST + self.coarser
    }

    #[cold]
    fn add_outside(&mut self, at: u64, amount: u64) {
        if self.bins.is_empty() {
            self.first = at >> self.shift();
            self.bins.push(amount);
            return;
        }
        let last = |line: &Timeline| line.first + line.bins.len() as u64 - 1;
        loop {
            let bin = at >> self.shift();
            let (low, high) = (self.first.min(bin), last(self).max(bin));
            if high - low < MAX_BINS as u64 {
                let before = (self.first - low) as usize;
                self.bins.splice(0..0, std::iter::repeat_n(0, before));
                self.first = low;
                self.bins.resize((high - low + 1) as usize, 0);
                return self.add(at, amount);
            }
            self.halve();
        }
    }

    /// Joins each two bins.
    fn halve(&mut self) {
        let mut joined = Vec::with_capacity(self.bins.len() / 2 + 1);
        let first = self.first >> 1;
        for (i, sum) in self.bins.iter().enumerate() {
            let at = (((self.first + i as u64) >> 1) - first) as usize;
            joined.resize(joined.len().max(at + 1), 0u64);
            joined[at] = joined[at].saturating_add(*sum);
        }
        (self.first, self.bins, self.coarser) = (first, joined, self.coarser + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_nothing_is_lost() {
        let times = [5_000_000_000u64, 70, 3_000_000, 900_000_000_000, 4_000_000_000];
        let (mut forward, mut backward) = (Timeline::default(), Timeline::default());
        times.iter().for_each(|&at| forward.add(at, 7));
        times.iter().rev().for_each(|&at| backward.add(at, 7));
        assert_eq!(forward, backward);
        assert!(forward.bins.len() <= MAX_BINS);
        assert_eq!(forward.between(0, u64::MAX), 35.0);
    }

    #[test]
    fn intervals_count_where_they_passed() {
        let mut line = Timeline::default();
        line.add_interval(1_000_000_000, 3_000_000_000);
        line.add_interval(5, 5);
        assert!((line.between(0, 2_000_000_000) - 1e9).abs() < 1e7, "{}", line.between(0, 2_000_000_000));
        assert_eq!(line.between(0, u64::MAX), 2e9);
        assert!(Timeline::default().is_empty() && !line.is_empty());
    }

    #[test]
    fn any_time_has_a_place() {
        let mut line = Timeline::default();
        line.add(u64::MAX, 1);
        line.add(0, 1);
        line.add_interval(0, u64::MAX);
        assert!(line.bins.len() <= MAX_BINS && line.between(0, u64::MAX) > 1e19);
    }
}

//! Amounts over time in several rows that share one bounded set of bins of equal width.
//!
//! As in a [`Timeline`](crate::timeline::Timeline) the width is a power of two of nanoseconds and doubles when the bins
//! would become too many, so the result depends on what was added, not on the order.

/// Narrowest bins, as a power of two: some 1 ms.
const NARROWEST: u32 = 20;

/// Amounts by time and row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    /// Most bins.
    most: usize,
    /// Bins are `1 << shift` nanoseconds wide.
    shift: u32,
    /// Number of the first bin.
    first: u64,
    /// A bin has as many rows as the last one that was added to it.
    bins: Vec<Vec<u64>>,
}

impl Bins {
    /// At most so many bins, at least 2.
    pub fn new(most: usize) -> Bins {
        Bins { most: most.max(2), shift: NARROWEST, first: 0, bins: Vec::new() }
    }

    /// Adds an amount to a row at a time in nanoseconds of the trace clock.
    #[inline]
    pub fn add(&mut self, at: u64, row: usize, amount: u64) {
        let bin = self.hold(at);
        if bin.len() <= row {
            bin.resize(row + 1, 0);
        }
        bin[row] = bin[row].saturating_add(amount);
    }

    /// Adds the nanoseconds of an interval to a row, each where it passed.
    pub fn add_interval(&mut self, from: u64, to: u64, row: usize) {
        if from >= to {
            return;
        }
        // Both ends first: then the bins between them exist.
        self.hold(from);
        self.hold(to - 1);
        let shift = self.shift;
        for bin in (from >> shift)..=((to - 1) >> shift) {
            let (start, end) = (bin << shift, (bin << shift).saturating_add(1 << shift));
            self.add(start.max(from), row, end.min(to) - start.max(from));
        }
    }

    /// Makes the bins from one time to another, also where nothing was added.
    pub fn cover(&mut self, from: u64, to: u64) {
        self.hold(from);
        self.hold(to);
    }

    /// Width of a bin in nanoseconds.
    pub fn width(&self) -> u64 {
        1 << self.shift
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.bins.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The bins from first to last, also those without an amount: begin in nanoseconds of the trace clock, and amounts by
    /// row, of which those at the end may be missing.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.bins.iter().enumerate().map(|(i, bin)| ((self.first + i as u64) << self.shift, bin.as_slice()))
    }

    /// Joins bins until there are at most so many.
    pub fn thin(&mut self, most: usize) {
        while self.bins.len() > most.max(1) && self.shift < 63 {
            self.halve();
        }
    }

    /// The bin of a time.
    #[inline]
    fn hold(&mut self, at: u64) -> &mut Vec<u64> {
        let known = (at >> self.shift).checked_sub(self.first).filter(|i| (*i as usize) < self.bins.len());
        let place = known.unwrap_or_else(|| self.grow(at));
        &mut self.bins[place as usize]
    }

    #[cold]
    fn grow(&mut self, at: u64) -> u64 {
        if self.bins.is_empty() {
            self.first = at >> self.shift;
            self.bins.push(Vec::new());
            return 0;
        }
        loop {
            let bin = at >> self.shift;
            let last = self.first + self.bins.len() as u64 - 1;
            let (low, high) = (self.first.min(bin), last.max(bin));
            if high - low < self.most as u64 {
                let before = (self.first - low) as usize;
                self.bins.splice(0..0, std::iter::repeat_n(Vec::new(), before));
                self.first = low;
                self.bins.resize((high - low + 1) as usize, Vec::new());
                return bin - low;
            }
            self.halve();
        }
    }

    /// Joins each two bins.
    fn halve(&mut self) {
        let mut joined: Vec<Vec<u64>> = Vec::with_capacity(self.bins.len() / 2 + 1);
        let first = self.first >> 1;
        for (i, bin) in std::mem::take(&mut self.bins).into_iter().enumerate() {
            let at = (((self.first + i as u64) >> 1) - first) as usize;
            match joined.get_mut(at) {
                None => joined.push(bin),
                Some(sums) => {
                    sums.resize(sums.len().max(bin.len()), 0);
                    sums.iter_mut().zip(bin).for_each(|(sum, amount)| *sum = sum.saturating_add(amount));
                }
            }
        }
        (self.first, self.bins, self.shift) = (first, joined, self.shift + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bins: &Bins, row: usize) -> u64 {
        bins.iter().map(|(_, bin)| bin.get(row).copied().unwrap_or(0)).sum()
    }

    #[test]
    fn the_order_does_not_matter_and_nothing_is_lost() {
        let times = [5_000_000_000u64, 70, 3_000_000, 900_000_000_000, 4_000_000_000];
        let (mut forward, mut backward) = (Bins::new(64), Bins::new(64));
        times.iter().for_each(|&at| forward.add(at, 2, 7));
        times.iter().rev().for_each(|&at| backward.add(at, 2, 7));
        assert_eq!(forward, backward);
        assert!(forward.iter().count() <= 64);
        assert_eq!((sum(&forward, 2), sum(&forward, 0), forward.rows()), (35, 0, 3));
        let mut wide = forward.clone();
        wide.cover(0, 2_000_000_000_000);
        assert!(wide.iter().last().is_some_and(|(at, _)| at > 1_900_000_000_000) && sum(&wide, 2) == 35);
        forward.thin(5);
        assert!(forward.iter().count() <= 5 && sum(&forward, 2) == 35);
    }

    #[test]
    fn intervals_count_where_they_passed() {
        let mut bins = Bins::new(1024);
        bins.add_interval(1_000_000_000, 3_000_000_000, 1);
        bins.add_interval(5, 5, 0);
        assert_eq!(sum(&bins, 1), 2_000_000_000);
        assert!(bins.iter().all(|(_, bin)| bin.get(1).is_none_or(|ns| *ns <= bins.width())));
    }

    #[test]
    fn any_time_has_a_place() {
        let mut bins = Bins::new(8);
        bins.add(u64::MAX, 0, 1);
        bins.add(0, 0, 1);
        bins.add_interval(0, u64::MAX, 1);
        assert!(bins.iter().count() <= 8);
        assert_eq!((sum(&bins, 0), sum(&bins, 1)), (2, u64::MAX));
    }
}

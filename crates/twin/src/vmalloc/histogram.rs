//! Latencies of calls by power of two, in the layout of funclatency (microsecond mode).
//!
//! Models what `funclatency -u purge_vmap_node` prints: the slot of a call is that of its whole microseconds, slot 0
//! holds 0 and 1, the average is taken from nanoseconds. Checked against the published histogram of 25 slots.

use std::fmt;

/// Calls of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    slots: Vec<Slot>,
    total_ns: u64,
    calls: u64,
    longest_ns: u64,
}

/// Calls whose whole microseconds are in one power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// How many.
    pub calls: u64,
    /// Their nanoseconds.
    pub total_ns: u64,
}

/// How far two distributions over powers of two are from each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Kolmogorov-Smirnov distance of the calls: the largest difference of the shares of calls up to some slot.
    pub calls: f64,
    /// The same of the time in calls.
    pub time: f64,
    /// Slots that a call would have to move on average: earth mover's distance of the calls, in powers of two.
    pub slots: f64,
}

/// Difference of two cumulative distributions after each slot. `None` if either is empty.
fn gaps(weights: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Vec<f64>> {
    let (here, there) = weights.clone().fold((0.0, 0.0), |sums, weight| (sums.0 + weight.0, sums.1 + weight.1));
    if here <= 0.0 || there <= 0.0 {
        return None;
    }
    let mut sums = (0.0, 0.0);
    let gap = weights.map(|weight| {
        sums = (sums.0 + weight.0, sums.1 + weight.1);
        f64::abs(sums.0 / here - sums.1 / there)
    });
    Some(gap.collect())
}

impl Histogram {
    /// Adds a call of this many nanoseconds.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        let slot = (ns / 1000).max(1).ilog2() as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, Slot::default());
        }
        self.slots[slot].calls += 1;
        self.slots[slot].total_ns += ns;
        self.calls += 1;
        self.total_ns += ns;
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// The slots: number i holds 2^i to 2^(i+1) - 1 microseconds, the first one 0 and 1. None after the last with a
    /// call.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Calls.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Nanoseconds of all calls.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The longest call in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Mean in microseconds; 0 without calls.
    pub fn mean_us(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.total_ns as f64 / self.calls as f64 / 1e3 }
    }

    /// Share of the time of all calls in the three longest used slots; 0 without calls.
    pub fn top_three_share(&self) -> f64 {
        let used = self.slots.iter().rev().filter(|slot| slot.calls > 0).take(3);
        if self.total_ns == 0 { 0.0 } else { used.map(|slot| slot.total_ns).sum::<u64>() as f64 / self.total_ns as f64 }
    }

    /// Distance to another histogram of the same slots. Of that only the counts are known: the time of a slot is taken
    /// to be its calls in the middle of it. `None` if either has no calls.
    pub fn distance(&self, counts: &[u64]) -> Option<Distance> {
        let of = |i: usize| self.slots.get(i).copied().unwrap_or_default();
        let other = |i: usize| counts.get(i).copied().unwrap_or(0) as f64;
        let slots = self.slots.len().max(counts.len());
        let calls = gaps((0..slots).map(|i| (of(i).calls as f64, other(i))))?;
        // The middle of a slot is one and a half times its least; the factor is in all of them.
        let middle = |i: usize| (1u64 << i.min(63)) as f64;
        let time = gaps((0..slots).map(|i| (of(i).total_ns as f64, other(i) * middle(i))))?;
        let largest = |gaps: &[f64]| gaps.iter().copied().fold(0.0, f64::max);
        Some(Distance { calls: largest(&calls), time: largest(&time), slots: calls.iter().sum() })
    }

    /// The whole output of `funclatency -u` for this function, from its start line to its end.
    pub fn funclatency<'a>(&'a self, function: &'a str) -> impl fmt::Display + 'a {
        Funclatency { histogram: self, function }
    }
}

struct Funclatency<'a> {
    histogram: &'a Histogram,
    function: &'a str,
}

impl fmt::Display for Funclatency<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = self.histogram;
        writeln!(f, "Tracing 1 functions for \"{}\"... Hit Ctrl-C to end.\n", self.function)?;
        if h.calls > 0 {
            // Bounds of 32 bits fill narrow columns, larger ones take half of the bar.
            let (bounds, bar) = if h.slots.len() > 32 { (20, 20) } else { (10, 40) };
            let indent = if h.slots.len() > 32 { 15 } else { 5 };
            writeln!(f, "{:indent$}{:<width$} : count     distribution", "", "usecs", width = 2 * bounds + 4 - indent)?;
            let most = h.slots.iter().map(|slot| slot.calls).max().unwrap_or(1);
            for (i, slot) in h.slots.iter().enumerate() {
                let low = if i == 0 { 0 } else { 1u64 << i };
                let high = u64::MAX >> (63 - i);
                let stars = (u128::from(slot.calls) * bar as u128 / u128::from(most)) as usize;
                let stars = "*".repeat(stars);
                writeln!(f, "{low:>bounds$} -> {high:<bounds$} : {:<8} |{stars:<bar$}|", slot.calls)?;
            }
        }
        let (total, calls) = (h.total_ns, h.calls);
        let average = total.checked_div(calls).unwrap_or(0) / 1000;
        writeln!(f, "\navg = {average} usecs, total: {} usecs, count: {calls}\n\nDetaching...", total / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_funclatencys() {
        let mut h = Histogram::default();
        [1_999, 2_000, 4_000, 5_500, 6_000, 7_999].iter().for_each(|&ns| h.add(ns));
        assert_eq!(
            h.funclatency("purge_vmap_node").to_string(),
            "Tracing 1 functions for \"purge_vmap_node\"... Hit Ctrl-C to end.\n\n\
             \x20    usecs               : count     distribution\n\
             \x20        0 -> 1          : 1        |**********                              |\n\
             \x20        2 -> 3          : 1        |**********                              |\n\
             \x20        4 -> 7          : 4        |****************************************|\n\n\
             avg = 4 usecs, total: 27 usecs, count: 6\n\nDetaching...\n"
        );
        assert!(Histogram::default().funclatency("f").to_string().contains("\n\navg = 0 usecs, total: 0 usecs"));
        h.add(1_000_000 << 33);
        assert!(h.funclatency("f").to_string().contains("          4294967296 -> 8589934591           : 0        |"));
    }

    #[test]
    fn shares_and_distances() {
        let mut h = Histogram::default();
        assert_eq!((h.top_three_share(), h.mean_us(), h.distance(&[1])), (0.0, 0.0, None));
        [1_000, 2_000, 4_000, 16_000].iter().for_each(|&ns| h.add(ns));
        assert_eq!(h.top_three_share(), 22.0 / 23.0);
        let near = h.distance(&[1, 1, 1, 0, 1]).unwrap();
        assert_eq!((near.calls, near.slots), (0.0, 0.0));
        // 1, 2, 4 and 16 of 23 us; 1.5, 3, 6 and 24 of 34.5.
        assert!(near.time < 1e-12, "{near:?}");
        let far = h.distance(&[0, 2, 2, 2, 0, 2]).unwrap();
        assert_eq!((far.calls, far.slots), (0.25, 1.0), "each call one slot further");
        assert!((far.time - 16.0 / 23.0).abs() < 1e-12, "{far:?}");
        assert_eq!(h.distance(&[]), None);
    }
}

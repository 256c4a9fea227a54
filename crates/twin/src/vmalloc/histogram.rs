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

/// Calls whose whole microseconds lie in one power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// How many.
    pub calls: u64,
    /// Their nanoseconds.
    pub total_ns: u64,
}

impl Histogram {
    /// Adds a call that took so many nanoseconds.
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

    /// Share of the time of all calls that lies in the three longest slots in use; 0 without calls.
    pub fn top_three_share(&self) -> f64 {
        let used = self.slots.iter().rev().filter(|slot| slot.calls > 0).take(3);
        if self.total_ns == 0 { 0.0 } else { used.map(|slot| slot.total_ns).sum::<u64>() as f64 / self.total_ns as f64 }
    }

    /// Mean number of slots that a call would have to move to make these counts those of another histogram: the
    /// earth mover's distance of the two distributions, in powers of two. `None` if either has no calls.
    pub fn distance(&self, counts: &[u64]) -> Option<f64> {
        let other: u64 = counts.iter().sum();
        if self.calls == 0 || other == 0 {
            return None;
        }
        let (mut distance, mut here, mut there) = (0.0, 0u64, 0u64);
        for i in 0..self.slots.len().max(counts.len()) {
            here += self.slots.get(i).map_or(0, |slot| slot.calls);
            there += counts.get(i).copied().unwrap_or(0);
            distance += (here as f64 / self.calls as f64 - there as f64 / other as f64).abs();
        }
        Some(distance)
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
        assert_eq!(h.distance(&[1, 1, 1, 0, 1]), Some(0.0));
        assert_eq!(h.distance(&[0, 2, 2, 2, 0, 2]), Some(1.0), "each call one slot further");
        assert_eq!(h.distance(&[]), None);
    }
}

//! Distributions of durations: exact number, sum and largest; quantiles within 1 %.
//!
//! Log-linear buckets: 64 to each power of two, so a bucket is at most 1/64 of its lower bound wide and its middle
//! is off by half of that. The buckets grow only up to the longest duration seen, 12 KiB for a second in nanoseconds.

use crate::results::Latency;

/// Buckets per power of two, as a power of two.
const PRECISION: u32 = 6;

/// Durations in nanoseconds (or any other unit of their owner's choice).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    count: u64,
    /// Sum of the values.
    pub sum: u128,
    min: u64,
    max: u64,
    buckets: Vec<u64>,
}

impl Durations {
    /// Adds a duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.add_many(ns, 1);
    }

    /// Adds a duration that there were so many of, at least one.
    #[inline]
    pub fn add_many(&mut self, ns: u64, times: u64) {
        let bucket = bucket(ns);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += times;
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += times;
        self.sum += u128::from(ns) * u128::from(times);
    }

    /// Adds all durations of another set.
    pub fn merge(&mut self, other: &Durations) {
        if other.count == 0 {
            return;
        }
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += *theirs;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Largest value; `None` if there are none.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Value that the fraction `q` of all values does not exceed (nearest rank); `None` if there are none.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut before = 0;
        let bucket = self.buckets.iter().position(|&n| {
            before += n;
            before >= rank
        })?;
        let (low, high) = (lowest(bucket), lowest(bucket + 1) - 1);
        Some((low + (high - low) / 2).clamp(self.min, self.max))
    }

    /// (least, greatest, count) by power of two, from the first to the last that is not empty.
    pub fn powers_of_two(&self) -> Vec<(u64, u64, u64)> {
        let mut slots: Vec<(u64, u64, u64)> = Vec::new();
        for (bucket, &count) in self.buckets.iter().enumerate() {
            let power = lowest(bucket).max(1).ilog2();
            if slots.len() <= power as usize {
                slots.push((if power == 0 { 0 } else { 1 << power }, u64::MAX >> (63 - power), 0));
            }
            if let Some(slot) = slots.last_mut() {
                slot.2 += count;
            }
        }
        let empty = slots.iter().take_while(|slot| slot.2 == 0).count();
        slots.split_off(empty)
    }

    /// As in results, of nanoseconds; `None` if there are none.
    pub fn latency(&self) -> Option<Latency> {
        let used = self.powers_of_two().into_iter().filter(|slot| slot.2 > 0);
        let slots = used.map(|(least, _, count)| (least, count)).collect();
        Some(Latency { mean: self.mean()?, slots, p50: self.quantile(0.5), p99: self.quantile(0.99) })
    }
}

fn bucket(ns: u64) -> usize {
    let shift = (ns | (1 << PRECISION)).ilog2() - PRECISION;
    ((shift << PRECISION) + (ns >> shift) as u32) as usize
}

/// Least duration of a bucket.
fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let value = u128::from(bucket - (shift << PRECISION)) << shift;
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Durations {
        let mut all = Durations::default();
        values.iter().for_each(|&v| all.add(v));
        all
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_percent(mut values in prop::collection::vec(0u64..1 << 45, 1..200), percent in 1u32..=100) {
            let all = of(&values);
            values.sort_unstable();
            let q = f64::from(percent) / 100.0;
            let exact = values[(values.len() as f64 * q).ceil() as usize - 1];
            let got = all.quantile(q).unwrap();
            prop_assert!(got.abs_diff(exact) <= exact / 100, "{got} for {exact}");
            prop_assert_eq!(all.max(), values.last().copied());
            prop_assert_eq!(all.sum, values.iter().map(|&v| u128::from(v)).sum::<u128>());
        }

        #[test]
        fn merging_is_adding(a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn every_duration_lies_in_its_bucket(ns in any::<u64>()) {
            let at = bucket(ns);
            prop_assert!(lowest(at) <= ns && (ns < lowest(at + 1) || lowest(at + 1) == u64::MAX));
        }

        #[test]
        fn powers_of_two_hold_what_they_say(values in prop::collection::vec(0u64..1 << 40, 1..100)) {
            for (low, high, count) in of(&values).powers_of_two() {
                prop_assert_eq!(count, values.iter().filter(|&&v| low <= v && v <= high).count() as u64);
            }
        }
    }

    #[test]
    fn latencies_are_by_powers_of_two() {
        let mut all = of(&[1_000_000]);
        all.add_many(5, 99);
        let (mean, slots) = ((5 * 99 + 1_000_000) as f64 / 100.0, vec![(4, 99), (524_288, 1)]);
        assert_eq!(all.latency(), Some(Latency { mean, slots, p50: Some(5), p99: Some(5) }));
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let none = Durations::default();
        assert_eq!(none.latency(), None);
        assert_eq!((none.max(), none.mean(), none.quantile(0.5)), (None, None, None));
        assert!(none.powers_of_two().is_empty());
    }
}

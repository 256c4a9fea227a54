//! Parts whose sum is given, and the random numbers they are drawn with.

use super::Impossible;
use super::totals::Wait;

/// A splitmix64 generator: the same numbers for the same seed everywhere.
#[derive(Clone, Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// `parts` uneven parts of `total`; none if `parts` is 0.
pub(super) fn shares(total: u64, parts: usize, random: &mut Random) -> Vec<u64> {
    let weights: Vec<u64> = (0..parts).map(|_| 1 + random.below(16)).collect();
    let all: u64 = weights.iter().sum();
    let mut weight = 0;
    let mut before = 0;
    let part = |w: &u64| {
        weight += w;
        let here = (u128::from(total) * u128::from(weight) / u128::from(all)) as u64;
        here - std::mem::replace(&mut before, here)
    };
    weights.iter().map(part).collect()
}

/// Microseconds of a jiffy.
const JIFFY: u64 = 4000;
/// Timeout of reclaim and kswapd, and that of the allocator's retry.
const TIMEOUTS: [u64; 2] = [100_000, 20_000];

/// Timeouts and delays in microseconds of waits that add up to a total.
pub(super) fn waits(wait: &Wait, random: &mut Random) -> Result<Vec<(u32, u32)>, Impossible> {
    let Wait { number, ms, full } = *wait;
    let total = ms.checked_mul(1000).ok_or(Impossible("waits are too long"))?;
    let partial = number.checked_sub(full).ok_or(Impossible("more full waits than waits"))?;
    let [long, short] = TIMEOUTS;
    let spare =
        total.checked_sub(full.saturating_mul(short)).ok_or(Impossible("full waits are longer than all waits"))?;
    let longs = full.min(spare / (long - short));
    let spare = spare - longs * (long - short);
    // Waits that do not last their timeout take what is left, in whole jiffies.
    let most = long / JIFFY - 1;
    let jiffies = (spare / JIFFY).min(partial.saturating_mul(most));
    let rest = spare - jiffies * JIFFY;
    if rest > 0 && full == 0 && (partial == 0 || rest >= JIFFY) {
        return Err(Impossible("waits are longer than their timeouts"));
    }
    let mut all = Vec::new();
    for i in 0..full {
        let timeout = if i < longs { long } else { short };
        all.push((timeout, timeout));
    }
    for i in 0..partial {
        let jiffies = jiffies * (i + 1) / partial - jiffies * i / partial;
        all.push((long, jiffies * JIFFY));
    }
    // A full wait may last longer than its timeout; a short one may end within a jiffy.
    let last = if full > 0 { all.first_mut() } else { all.last_mut() };
    if let Some(wait) = last {
        wait.1 += rest;
    }
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i as u64 + 1) as usize);
    }
    let number = |us: u64| u32::try_from(us).map_err(|_| Impossible("a wait of more than an hour"));
    all.into_iter().map(|(timeout, delayed)| Ok((number(timeout)?, number(delayed)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up(total: u64, parts in 1usize..200, seed: u64) {
            let parts = shares(total, parts, &mut Random(seed));
            prop_assert_eq!(parts.iter().map(|p| u128::from(*p)).sum::<u128>(), u128::from(total));
        }

        #[test]
        fn waits_add_up(full in 0u64..200, partial in 0u64..200, ms in 0u64..40_000, seed: u64) {
            let wait = Wait { number: full + partial, ms, full };
            let Ok(waits) = waits(&wait, &mut Random(seed)) else {
                // Full waits are at least 20 ms, others below 100 ms.
                prop_assert!(ms < full * 20 || (full == 0 && ms >= partial * 96));
                return Ok(());
            };
            prop_assert_eq!(waits.len() as u64, wait.number);
            prop_assert_eq!(waits.iter().map(|w| u64::from(w.1)).sum::<u64>(), ms * 1000);
            prop_assert_eq!(waits.iter().filter(|w| w.1 >= w.0).count() as u64, full);
        }
    }

    #[test]
    fn published_waits_are_possible() {
        for (number, ms, full) in
            [(87, 4604, 72), (20, 1264, 10), (1312, 26560, 1105), (2935, 312, 3), (324, 0, 0), (88514, 4980, 49)]
        {
            waits(&Wait { number, ms, full }, &mut Random(1)).unwrap();
        }
        assert!(waits(&Wait { number: 1, ms: 0, full: 2 }, &mut Random(1)).is_err());
    }

    #[test]
    fn no_parts_of_nothing() {
        assert!(shares(0, 0, &mut Random(1)).is_empty());
    }
}

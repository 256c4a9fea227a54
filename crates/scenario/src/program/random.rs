//! Random numbers that depend on what they are for: (seed, use, object, draw), not on what was drawn before.
//!
//! So a mechanism may draw in any order, or not at all, without changing the numbers of another. The mixing is that
//! of SplitMix64 (Steele, Lea and Flood, 2014; its finaliser is by Stafford), once per part of the key.

/// Purposes of random numbers. The numbers of one use are independent of those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Use {
    /// Values of per-CPU counters at the start of a run.
    CounterPhase = 1,
    /// Order of the tests of a vmalloc stress thread.
    TestOrder = 2,
    /// When periodic work begins on a CPU.
    TimerOffset = 3,
    /// Page of an access.
    Access = 4,
    /// Choices of a workload: sizes, think times.
    Workload = 5,
    /// Which page of a region has which rank.
    Shuffle = 6,
    /// Number of pages with a first access, and the pages.
    FirstTouch = 7,
    /// How long a CPU waits for a cache line.
    LineFetch = 8,
    /// Pages marked for a hinting fault that some accesses reach.
    HintFault = 9,
    /// Pages that were accessed since the last check of reclaim.
    Young = 10,
    /// Which of some timers for one tick is the earliest.
    Turns = 11,
}

/// Random numbers of one use.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    key: u64,
}

/// Random numbers of one use and one object, for callers that draw many of them.
#[derive(Clone, Copy, Debug)]
pub struct OfObject {
    key: u64,
}

impl OfObject {
    /// Number `draw`, uniform over all words.
    #[inline]
    pub fn word(&self, draw: u64) -> u64 {
        mix(self.key.wrapping_add(draw))
    }

    /// The same, uniform below `n` (0 if `n` is 0). Biased by less than `n` / 2^64.
    #[inline]
    pub fn below(&self, draw: u64, n: u64) -> u64 {
        ((u128::from(self.word(draw)) * u128::from(n)) >> 64) as u64
    }
}

/// A probability as a 64-bit threshold, made once, so that a decision is an integer comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// `p` below 0 counts as 0, above 1 and not a number as 1.
    #[inline]
    pub fn of(p: f64) -> Chance {
        // Rounds to a multiple of 2^-53, exactly; a probability of 1 needs the largest word.
        if p.is_nan() || p >= 1.0 {
            Chance(u64::MAX)
        } else {
            Chance(((p.max(0.0) * (1u64 << 53) as f64) as u64) << 11)
        }
    }

    /// The probability.
    #[inline]
    pub fn get(self) -> f64 {
        if self.0 == u64::MAX { 1.0 } else { (self.0 >> 11) as f64 / (1u64 << 53) as f64 }
    }
}

impl Random {
    /// The numbers of `for_what` in a run with this seed.
    #[inline]
    pub fn new(seed: u64, for_what: Use) -> Random {
        Random { key: mix(mix(seed) ^ for_what as u64) }
    }

    /// The numbers of `object`.
    #[inline]
    pub fn of(&self, object: u64) -> OfObject {
        OfObject { key: mix(self.key ^ object) }
    }

    /// Number `draw` of `object`, uniform over all words.
    #[inline]
    pub fn word(&self, object: u64, draw: u64) -> u64 {
        self.of(object).word(draw)
    }

    /// The same, uniform below `n` (0 if `n` is 0). Biased by less than `n` / 2^64.
    #[inline]
    pub fn below(&self, object: u64, draw: u64, n: u64) -> u64 {
        self.of(object).below(draw, n)
    }

    /// The same, uniform in [0, 1).
    #[inline]
    pub fn fraction(&self, object: u64, draw: u64) -> f64 {
        (self.word(object, draw) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with the given probability.
    #[inline]
    pub fn happens(&self, object: u64, draw: u64, chance: Chance) -> bool {
        chance.0 == u64::MAX || self.word(object, draw) < chance.0
    }
}

#[inline]
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_everywhere() {
        let random = Random::new(1, Use::Access);
        let words: Vec<u64> = (0..3).map(|draw| random.word(7, draw)).collect();
        assert_eq!(words, (0..3).map(|draw| Random::new(1, Use::Access).word(7, draw)).collect::<Vec<_>>());
        assert_ne!(words[0], Random::new(1, Use::Workload).word(7, 0));
        assert_ne!(words[0], Random::new(2, Use::Access).word(7, 0));
        // The first two outputs of SplitMix64 from seed 0, as its authors' reference program prints them.
        assert_eq!([mix(0), mix(0x9e37_79b9_7f4a_7c15)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_below_n_are_even() {
        let random = Random::new(3, Use::TestOrder);
        let mut counts = [0u32; 6];
        (0..60_000).for_each(|draw| counts[random.below(0, draw, 6) as usize] += 1);
        // Five standard deviations of a binomial count: 5 * sqrt(60000 / 6 * 5 / 6) = 456.
        assert!(counts.iter().all(|n| n.abs_diff(10_000) < 456), "{counts:?}");
        assert_eq!(random.below(0, 0, 0), 0);
    }

    #[test]
    fn chances_are_thresholds() {
        let random = Random::new(3, Use::Access);
        let hits = |p: f64| (0..10_000).filter(|&draw| random.happens(9, draw, Chance::of(p))).count();
        assert_eq!([hits(0.0), hits(-1.0), hits(1.0), hits(2.0)], [0, 0, 10_000, 10_000]);
        // Five standard deviations: 5 * sqrt(10000 * 0.3 * 0.7) = 229.
        assert!(hits(0.3).abs_diff(3000) < 229);
    }
}

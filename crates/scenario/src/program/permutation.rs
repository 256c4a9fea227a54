//! Ranks of the pages of a region: a fixed shuffle of 0..n that is computed, not stored.
//!
//! Without it the popular pages of a Zipf region would be adjacent, and for huge pages and NUMA scanning, which depend
//! on addresses, it would be another workload. A Feistel network of four rounds on the next even power of two, walked
//! until it falls below n (Black and Rogaway's cycle walking), at most four times on average.

use super::random::{Random, Use};

/// A shuffle of 0..n.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// The shuffle of a region with `n` pages, by seed and number of the region.
    #[inline]
    pub fn new(n: u64, seed: u64, region: u64) -> Permutation {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let random = Random::new(seed, Use::Shuffle);
        let keys = [0, 1, 2, 3].map(|round| random.word(region, round));
        Permutation { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// The page of a rank below n; other ranks are returned.
    #[inline]
    pub fn page(&self, rank: u64) -> u64 {
        self.walk(rank, |word| self.round_trip(word))
    }

    /// The rank of a page below n; other pages are returned.
    #[inline]
    pub fn rank(&self, page: u64) -> u64 {
        self.walk(page, |word| self.round_trip_back(word))
    }

    /// Goes on until it falls below n.
    #[inline]
    fn walk(&self, from: u64, step: impl Fn(u64) -> u64) -> u64 {
        if from >= self.n {
            return from;
        }
        let mut to = step(from);
        while to >= self.n {
            to = step(to);
        }
        to
    }

    #[inline]
    fn round_trip(&self, word: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (word >> self.half_bits, word & mask);
        for key in self.keys {
            (left, right) = (right, left ^ mixed(right, key) & mask);
        }
        left << self.half_bits | right
    }

    #[inline]
    fn round_trip_back(&self, word: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (word >> self.half_bits, word & mask);
        for key in self.keys.into_iter().rev() {
            (left, right) = (right ^ mixed(left, key) & mask, left);
        }
        left << self.half_bits | right
    }
}

#[inline]
fn mixed(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product >> 32 ^ product >> 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_page_has_one_rank(n in 1u64..5000, seed: u64, region: u64) {
            let permutation = Permutation::new(n, seed, region);
            let mut pages: Vec<u64> = (0..n).map(|rank| permutation.page(rank)).collect();
            prop_assert!((0..).zip(&pages).all(|(rank, &page)| permutation.rank(page) == rank));
            pages.sort_unstable();
            prop_assert_eq!(pages, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_are_spread() {
        let permutation = Permutation::new(1 << 16, 1, 0);
        let first: u64 = (0..1024).map(|rank| permutation.page(rank) >> 15).sum();
        // About half of the popular pages lie in the upper half: 5 standard deviations are 80.
        assert!(first.abs_diff(512) < 80, "{first}");
        assert_eq!((permutation.page(1 << 16), permutation.rank(1 << 16)), (1 << 16, 1 << 16));
        let large = Permutation::new(u64::MAX, 1, 0);
        assert!(large.page(12) < u64::MAX);
    }
}

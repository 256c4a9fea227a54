//! LRU and CLOCK beside small implementations of another kind, and beside Che's approximation.

use mmtwin_twin::mm::replacement::{Clock, Lru, Policy, hits};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// LRU as a queue that is searched: the most recent page first.
fn lru_by_search(size: usize, pages: &[u32]) -> Vec<bool> {
    let mut queue: VecDeque<u32> = VecDeque::new();
    let mut touch = |page: u32| {
        let at = queue.iter().position(|&other| other == page);
        at.and_then(|at| queue.remove(at));
        queue.push_front(page);
        queue.truncate(size);
        at.is_some()
    };
    pages.iter().map(|&page| touch(page)).collect()
}

/// CLOCK as a queue that is searched: the oldest page first, accessed ones move to its end once.
fn clock_by_search(size: usize, pages: &[u32]) -> Vec<bool> {
    let mut queue: VecDeque<(u32, bool)> = VecDeque::new();
    let mut touch = |page: u32| {
        if let Some((_, touched)) = queue.iter_mut().find(|(other, _)| *other == page) {
            *touched = true;
            return true;
        }
        while queue.len() == size {
            let Some((oldest, touched)) = queue.pop_front() else { break };
            if touched {
                queue.push_back((oldest, false));
            }
        }
        queue.push_back((page, false));
        false
    };
    pages.iter().map(|&page| touch(page)).collect()
}

fn size(size: usize) -> NonZeroU32 {
    NonZeroU32::new(size as u32).unwrap()
}

fn touched(policy: &mut impl Policy, pages: &[u32]) -> Vec<bool> {
    pages.iter().map(|&page| policy.touch(page)).collect()
}

proptest! {
    #[test]
    fn policies_are_those_of_the_reference(
        of in 1..40usize,
        // Sequential runs among random accesses.
        runs in prop::collection::vec((0..60u32, 1..30u32), 0..200),
    ) {
        let pages: Vec<u32> = runs.into_iter().flat_map(|(first, many)| (first..first + many).map(|page| page % 60)).collect();
        prop_assert_eq!(touched(&mut Lru::new(size(of), 60), &pages), lru_by_search(of, &pages));
        prop_assert_eq!(touched(&mut Clock::new(size(of), 60), &pages), clock_by_search(of, &pages));
    }
}

/// Independent accesses to pages whose popularity falls with a power of their rank.
struct Popular {
    /// Probabilities that the page is this one or one before.
    sums: Vec<f64>,
    state: u64,
}

impl Popular {
    fn new(pages: u32, skew: f64) -> Popular {
        let weights = (1..=pages).map(|rank| libm::pow(f64::from(rank), -skew));
        let sums: Vec<f64> = weights
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let all = sums.last().copied().unwrap();
        Popular { sums: sums.into_iter().map(|sum| sum / all).collect(), state: 1 }
    }

    fn probability(&self, page: usize) -> f64 {
        self.sums[page] - if page == 0 { 0.0 } else { self.sums[page - 1] }
    }

    /// The hit ratio of an LRU cache by Che's approximation: a page is cached if it was accessed within the number of
    /// accesses that reach as many different pages as fit.
    fn che(&self, size: usize) -> f64 {
        let there = |page: usize, time: f64| 1.0 - libm::exp(-self.probability(page) * time);
        let different = |time: f64| (0..self.sums.len()).map(|page| there(page, time)).sum::<f64>();
        let (mut low, mut high) = (0.0, 1e12);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if different(middle) < size as f64 { low = middle } else { high = middle }
        }
        (0..self.sums.len()).map(|page| self.probability(page) * there(page, low)).sum()
    }
}

impl Iterator for Popular {
    type Item = u32;

    /// splitmix64.
    fn next(&mut self) -> Option<u32> {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let fraction = ((word ^ word >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        Some(self.sums.partition_point(|&sum| sum <= fraction) as u32)
    }
}

#[test]
fn long_traces_have_the_hits_of_the_reference() {
    let pages: Vec<u32> = Popular::new(3000, 0.9).take(60_000).collect();
    for of in [1, 10, 300, 1024, 2999, 3000] {
        let sum = |hits: Vec<bool>| hits.into_iter().map(u64::from).sum::<u64>();
        assert_eq!(hits(&mut Lru::new(size(of), 3000), &pages), sum(lru_by_search(of, &pages)), "LRU {of}");
        assert_eq!(hits(&mut Clock::new(size(of), 3000), &pages), sum(clock_by_search(of, &pages)), "CLOCK {of}");
    }
}

#[test]
fn lru_follows_che_where_accesses_are_independent() {
    let (pages, many) = (10_000, 1_000_000);
    for skew in [0.6, 0.8, 1.0, 1.2] {
        let trace: Vec<u32> = Popular::new(pages, skew).take(many).collect();
        let popular = Popular::new(pages, skew);
        for of in [100, 1000, 5000] {
            let mut lru = Lru::new(size(of), pages);
            // It is full before hits are counted.
            let (before, counted) = trace.split_at(many / 4);
            hits(&mut lru, before);
            let ratio = hits(&mut lru, counted) as f64 / counted.len() as f64;
            let expected = popular.che(of);
            // Five standard deviations of a count of independent accesses.
            let noise = 5.0 * (expected * (1.0 - expected) / counted.len() as f64).sqrt();
            assert!((ratio - expected).abs() < 0.001 + noise, "skew {skew}, {of} pages: {ratio} {expected}");
        }
    }
}

#[test]
fn nothing_is_found_in_a_loop_that_does_not_fit() {
    let pages: Vec<u32> = (0..100_000).map(|i| i % 1000).collect();
    // All pages are equally popular, and 0.9 of them fit; but an access predicts the next one.
    assert_eq!(hits(&mut Lru::new(size(900), 1000), &pages), 0);
    assert_eq!(hits(&mut Clock::new(size(900), 1000), &pages), 0);
    assert_eq!(hits(&mut Lru::new(size(1000), 1000), &pages), 99_000);
    assert_eq!(hits(&mut Clock::new(size(1000), 1000), &pages), 99_000);
}

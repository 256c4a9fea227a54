//! First accesses to marked pages, drawn in bulk.
//!
//! A marked page waits in a bucket of every pool that can access it. Base pages of a class are equally likely, so the
//! class is their bucket; huge pages have the sum of their pages' likelihoods, and those of a bucket differ by less
//! than a quarter. `n` accesses reach each page of a bucket with at most probability p: a binomial number of random
//! picks, of which each is kept with its own probability over p, is exact. The thread that accesses first is drawn in
//! proportion to the accesses of each thread, the time from the exponential law cut off at the end of the interval. A
//! page that another pool has accessed meanwhile stays listed until it is picked, which changes no probability. Cost
//! follows faults; marked pages that are never accessed cost nothing. Checked against single accesses in
//! `tests/numa_balancing.rs`.

use super::binomial::{at_least_once, binomial};
use super::pool::Class;
use crate::mm::prot_numa::{HUGE_PAGES, Mapping, Unit};
use crate::time::Random;
use mmtwin_scenario::program::{Classes, Cursor, Permutation};
use std::ops::Range;

/// The page is counted among its class's pages of a node.
const COUNTED: u8 = 0x80;

/// Marked units that are about equally likely.
#[derive(Clone, Debug)]
struct Bucket {
    /// Upper bound of the probability that an access reaches one of them.
    most: f64,
    units: Vec<u32>,
}

/// State of a pool for hinting faults. 1 1/8 bytes per page, and 4 per page that is marked.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    first: u64,
    /// By page: its class, and whether it is [`COUNTED`].
    class_of: Vec<u8>,
    /// By huge page from that of the first page on: sum of its pages' probabilities; empty where there are none.
    block_weight: Vec<f64>,
    /// One per class for base pages, then those of huge pages.
    buckets: Vec<Bucket>,
    /// Buckets of huge pages by the leading bits of their probability.
    huge: Vec<(u16, usize)>,
    /// Listed units: base pages, huge pages.
    listed: [Vec<u64>; 2],
    draws: u64,
}

/// A unit that a thread will access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub unit: Unit,
    /// Index among the threads that were given.
    pub thread: usize,
    /// Time, as a fraction of the accesses.
    pub when: f64,
}

impl Hit {
    /// Number of the access, of `touches` from `from` on.
    pub(crate) fn touch(&self, from: u64, touches: u64) -> u64 {
        from + ((self.when * touches as f64) as u64).min(touches.saturating_sub(1))
    }
}

impl Hints {
    /// Of the pages of a range, in a region that may have huge pages or not.
    pub(crate) fn new(classes: &Classes, permutation: &Permutation, range: &Range<u64>, huge: bool) -> Hints {
        let pages = range.end - range.start;
        let mut class_of = vec![0; pages as usize];
        let first_block = range.start / HUGE_PAGES;
        let blocks = range.end.div_ceil(HUGE_PAGES) - first_block;
        let mut block_weight = vec![0.0; if huge { blocks as usize } else { 0 }];
        let pages_of = |block: u64| {
            let block = (first_block + block) * HUGE_PAGES;
            (block + HUGE_PAGES).min(range.end) - block.max(range.start)
        };
        if let [only] = classes.list() {
            let each = only.share / only.pages as f64;
            block_weight.iter_mut().zip(0..).for_each(|(weight, block)| *weight = pages_of(block) as f64 * each);
        }
        let several = if classes.list().len() > 1 { classes.list() } else { &[] };
        for (number, class) in several.iter().enumerate() {
            let each = class.share / class.pages as f64;
            for rank in class.first..class.first + class.pages {
                let page = permutation.page(rank);
                class_of[page as usize] = number as u8;
                if huge {
                    block_weight[((range.start + page) / HUGE_PAGES - first_block) as usize] += each;
                }
            }
        }
        let bucket = |class: &mmtwin_scenario::program::Class| Bucket {
            most: class.share / class.pages as f64,
            units: Vec::new(),
        };
        Hints {
            first: range.start,
            class_of,
            block_weight,
            buckets: classes.list().iter().map(bucket).collect(),
            huge: Vec::new(),
            listed: [vec![0; pages.div_ceil(64) as usize], vec![0; blocks.div_ceil(64) as usize]],
            draws: 0,
        }
    }

    /// The class of a page.
    #[inline]
    pub(crate) fn class(&self, page: u64) -> usize {
        usize::from(self.class_of[(page - self.first) as usize] & !COUNTED)
    }

    /// Notes that a page is counted on its node.
    #[inline]
    pub(crate) fn count(&mut self, page: u64) {
        self.class_of[(page - self.first) as usize] |= COUNTED;
    }

    /// A page has left its node for nowhere.
    pub(crate) fn uncount(&mut self, page: u64) {
        self.class_of[(page - self.first) as usize] &= !COUNTED;
    }

    /// Pages have moved between nodes.
    pub(crate) fn moved(&mut self, classes: &mut [Class], unit: Unit, from: usize, to: usize) {
        let start = u64::from(unit.page);
        let end = (start + unit.pages()).min(self.first + self.class_of.len() as u64);
        for page in start.max(self.first)..end {
            if self.class_of[(page - self.first) as usize] & COUNTED != 0 {
                let by_node = &mut classes[self.class(page)].by_node;
                by_node[from] -= 1;
                by_node[to] += 1;
            }
        }
    }

    /// True if some of these pages are the pool's.
    pub(crate) fn reaches(&self, pages: Range<u64>) -> bool {
        pages.start < self.first + self.class_of.len() as u64 && self.first < pages.end
    }

    /// Place of a unit in its list of bits; `None` if the pool has none of its pages.
    fn place(&self, unit: Unit) -> Option<u64> {
        let (start, end) = (u64::from(unit.page), self.first + self.class_of.len() as u64);
        if start + unit.pages() <= self.first || start >= end {
            return None;
        }
        Some(if unit.huge { start / HUGE_PAGES - self.first / HUGE_PAGES } else { start - self.first })
    }

    /// A unit was marked: it waits for an access.
    pub(crate) fn list(&mut self, unit: Unit) {
        let Some(place) = self.place(unit) else { return };
        let word = &mut self.listed[usize::from(unit.huge)][place as usize / 64];
        if *word >> (place % 64) & 1 == 1 {
            return;
        }
        *word |= 1 << (place % 64);
        let bucket = if unit.huge { self.huge_bucket(place) } else { self.class(unit.page.into()) };
        self.buckets[bucket].units.push(unit.page);
    }

    /// The bucket of a huge page: sign, exponent and two more bits of the probability.
    fn huge_bucket(&mut self, place: u64) -> usize {
        let key = (self.block_weight.get(place as usize).map_or(0, |weight| weight.to_bits()) >> 50) as u16;
        if let Some(&(_, bucket)) = self.huge.iter().find(|(of, _)| *of == key) {
            return bucket;
        }
        let bucket = self.buckets.len();
        self.huge.push((key, bucket));
        self.buckets.push(Bucket { most: f64::from_bits((u64::from(key) + 1) << 50), units: Vec::new() });
        bucket
    }

    /// Units that threads reach with these numbers of accesses.
    pub(crate) fn draw(
        &mut self,
        touches: &[u64],
        mapping: &Mapping,
        random: &Random,
        object: u64,
        hits: &mut Vec<Hit>,
    ) {
        let all: u64 = touches.iter().sum();
        if all == 0 {
            return;
        }
        let of = random.of(object);
        let fraction = |draw: u64| (of.word(draw) >> 11) as f64 / (1u64 << 53) as f64;
        let (classes, first_block) = (self.buckets.len() - self.huge.len(), self.first / HUGE_PAGES);
        let mut back = Vec::new();
        for number in 0..self.buckets.len() {
            let (huge, most) = (number >= classes, self.buckets[number].most);
            let p = at_least_once(most, all);
            let count = binomial(self.buckets[number].units.len() as u64, p, random, object, self.draws);
            self.draws += 2;
            for _ in 0..count {
                let units = &mut self.buckets[number].units;
                let page = units.swap_remove(of.below(self.draws, units.len() as u64) as usize);
                let keep = fraction(self.draws + 1);
                let number = of.below(self.draws + 2, all);
                let when = fraction(self.draws + 3);
                self.draws += 4;
                let unit = Unit { page, huge };
                if mapping.has(unit) {
                    let block = u64::from(page) / HUGE_PAGES - if huge { first_block } else { 0 };
                    let each = if huge { self.block_weight[block as usize] } else { most };
                    let own = if huge { at_least_once(each, all) } else { p };
                    if keep * p >= own {
                        back.push(page);
                        continue;
                    }
                    hits.push(Hit {
                        unit,
                        thread: thread_of(touches, number),
                        when: when_of(when, own, each * all as f64),
                    });
                }
                let place = self.place(unit).unwrap_or(0);
                self.listed[usize::from(huge)][place as usize / 64] &= !(1 << (place % 64));
            }
            self.buckets[number].units.append(&mut back);
        }
    }
}

/// The thread that makes access number `at`.
fn thread_of(touches: &[u64], mut at: u64) -> usize {
    touches
        .iter()
        .position(|&own| {
            let its = at < own;
            at = at.saturating_sub(own);
            its
        })
        .unwrap_or(0)
}

/// Time of the first of `mean` expected accesses, given that there is one, which has probability `p`.
fn when_of(word: f64, p: f64, mean: f64) -> f64 {
    (-libm::log1p(-word * p) / mean).clamp(0.0, 1.0)
}

/// Calls `take` with the marked units that a walk over pages `first..` reaches with its accesses `from..to`, each with
/// the number of the access.
pub(crate) fn walked(
    cursor: &Cursor,
    pages: &Range<u64>,
    mapping: &Mapping,
    (from, to): (u64, u64),
    mut take: impl FnMut(Unit, u64),
) {
    let length = pages.end - pages.start;
    if mapping.marked() == 0 || from >= to {
        return;
    }
    if let Some(begin) = cursor.sequential(from) {
        // At most one round, in two parts.
        let (begin, count) = (pages.start + begin, (to - from).min(length));
        let before = (pages.end - begin).min(count);
        for (first, end, done) in [(begin, begin + before, 0), (pages.start, pages.start + count - before, before)] {
            mapping
                .each_marked(first, end, |unit| take(unit, from + done + u64::from(unit.page).saturating_sub(first)));
        }
        return;
    }
    if to - from <= mapping.marked() {
        let pages = (from..to).map(|count| (pages.start + cursor.page(count), count));
        return pages.for_each(|(page, count)| mapping.marked_at(page).into_iter().for_each(|unit| take(unit, count)));
    }
    mapping.each_marked(pages.start, pages.end, |unit| {
        let start = u64::from(unit.page);
        let own = start.max(pages.start)..(start + unit.pages()).min(pages.end);
        let next = own.map(|page| cursor.next(page - pages.start, from)).min();
        next.filter(|&next| next < to).into_iter().for_each(|next| take(unit, next));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Use;

    #[test]
    fn picks_have_the_probability_of_their_accesses() {
        // 4096 pages in 8 huge pages and base pages behind them, hot and cold.
        let (pages, random) = (6000u64, Random::new(3, Use::HintFault));
        let (classes, permutation) = (Classes::hot_cold(pages, 600, 0.8), Permutation::new(pages, 1, 0));
        let mut seen = [0u64; 3];
        let rounds = 300;
        for round in 0..rounds {
            let mut mapping = Mapping::new(0, 0, pages, 0);
            let mut hints = Hints::new(&classes, &permutation, &(0..pages), true);
            let units = (0..8).map(|block| Unit { page: block * 512, huge: true });
            let units: Vec<Unit> = units.chain((4096..6000).map(|page| Unit { page, huge: false })).collect();
            for &unit in &units {
                mapping.mark(unit);
                hints.list(unit);
            }
            let mut hits = Vec::new();
            hints.draw(&[3, 0, 5], &mapping, &random, round, &mut hits);
            for hit in &hits {
                seen[if hit.unit.huge { 0 } else { 1 + usize::from(hit.thread == 0) }] += 1;
            }
        }
        let each = |page: u64| {
            let rank = (0..pages).find(|&rank| permutation.page(rank) == page).unwrap();
            if rank < 600 { 0.8 / 600.0 } else { 0.2 / 5400.0 }
        };
        let all: Vec<f64> = (0..pages).map(each).collect();
        let touched = |weight: f64| at_least_once(weight, 8);
        let huge: f64 = (0..8).map(|block| touched(all[block * 512..][..512].iter().sum())).sum();
        let base: f64 = all[4096..].iter().map(|&weight| touched(weight)).sum();
        let near = |found: u64, expected: f64| {
            let expected = expected * rounds as f64;
            assert!((found as f64 - expected).abs() < 5.0 * expected.sqrt(), "{found} {expected}");
        };
        near(seen[0], huge);
        near(seen[1], base * 5.0 / 8.0);
        near(seen[2], base * 3.0 / 8.0);
    }

    #[test]
    fn walks_reach_marked_pages_in_order() {
        for (stride, huge) in [(1, true), (1, false), (7, false), (600, true)] {
            let (pages, cursor) = (100..2100u64, Cursor::new(2000, stride, 1900));
            let mut mapping = Mapping::new(0, 0, 2200, 0);
            let units: Vec<Unit> = match huge {
                true => (0..4).map(|block| Unit { page: block * 512, huge }).collect(),
                false => (0..2200).step_by(37).map(|page| Unit { page, huge }).collect(),
            };
            units.iter().for_each(|&unit| assert!(mapping.mark(unit)));
            for (from, to) in [(0, 90), (50, 700), (1000, 3500)] {
                let mut found = std::collections::BTreeMap::new();
                walked(&cursor, &pages, &mapping, (from, to), |unit, at| {
                    let first = found.entry(unit).or_insert(at);
                    *first = at.min(*first);
                });
                let mut expected = std::collections::BTreeMap::new();
                for at in from..to {
                    let unit = mapping.marked_at(100 + cursor.page(at));
                    unit.into_iter().for_each(|unit| _ = expected.entry(unit).or_insert(at));
                }
                assert_eq!(found, expected, "{stride} {huge} {from} {to}");
            }
        }
    }
}

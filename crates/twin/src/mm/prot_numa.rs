//! Marks for hinting faults: which pages of a process's mapping of a region have no access rights until a hinting
//! fault.
//!
//! Stands for `pte_protnone` and `pmd_protnone` of a mapping, every release. A mark is one bit, of a base page or of a
//! huge page as a whole; a word above each 64 words marks those that are not empty, so that the next mark after a page
//! is found in a few steps however sparse they are. Not modelled: remembered writability, because memory that programs
//! write is writable when it is marked (no fork, no KSM here). Checked against a set.

use crate::page_alloc::NodeMask;
use std::ops::Range;

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// Bit i of word j: word 64 j + i is not 0.
    above: Vec<u64>,
    count: u64,
}

impl Bits {
    /// Nothing of 0..len.
    pub(crate) fn new(len: u64) -> Bits {
        let words = len.div_ceil(64);
        Bits { words: vec![0; words as usize], above: vec![0; words.div_ceil(64) as usize], count: 0 }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(crate) fn has(&self, at: u64) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// Adds a number; false if it was there.
    #[inline]
    pub(crate) fn insert(&mut self, at: u64) -> bool {
        let word = &mut self.words[at as usize / 64];
        let new = *word >> (at % 64) & 1 == 0;
        *word |= 1 << (at % 64);
        self.above[at as usize / 4096] |= 1 << (at / 64 % 64);
        self.count += u64::from(new);
        new
    }

    /// Removes a number; false if it was not in the set.
    #[inline]
    pub(crate) fn remove(&mut self, at: u64) -> bool {
        let word = &mut self.words[at as usize / 64];
        let there = *word >> (at % 64) & 1 == 1;
        *word &= !(1 << (at % 64));
        if *word == 0 {
            self.above[at as usize / 4096] &= !(1 << (at / 64 % 64));
        }
        self.count -= u64::from(there);
        there
    }

    /// How many there are in a range.
    pub(crate) fn count_within(&self, range: &Range<u64>) -> u64 {
        let words = range.start / 64..range.end.div_ceil(64);
        let below = |end: u64, at: u64| end.saturating_sub(64 * at).min(64);
        let mask = |bits: u64| if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let of = |at: u64| self.words[at as usize] & mask(below(range.end, at)) & !mask(below(range.start, at));
        words.map(|at| u64::from(of(at).count_ones())).sum()
    }

    /// The least number of a range.
    pub(crate) fn next(&self, of: Range<u64>) -> Option<u64> {
        if self.count == 0 || of.is_empty() {
            return None;
        }
        let at = (of.start / 64) as usize;
        let rest = self.words.get(at)? >> (of.start % 64);
        if rest != 0 {
            return Some(of.start + u64::from(rest.trailing_zeros())).filter(|next| *next < of.end);
        }
        // Words above those of the range are not looked at: it may be a small part of the set.
        let last = (of.end - 1) / 4096;
        let mut high = (at + 1) / 64;
        let mut rest = self.above.get(high)? >> ((at + 1) % 64) << ((at + 1) % 64);
        while rest == 0 {
            high += 1;
            rest = *self.above.get(high).filter(|_| high as u64 <= last)?;
        }
        let word = high * 64 + rest.trailing_zeros() as usize;
        Some(word as u64 * 64 + u64::from(self.words[word].trailing_zeros())).filter(|next| *next < of.end)
    }
}

/// The unit that is marked and faults as one: a base page or a huge page, by the number of its first page in the
/// region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unit {
    pub page: u32,
    pub huge: bool,
}

/// Pages of a huge page.
pub(crate) const HUGE_PAGES: u64 = 512;

impl Unit {
    /// Base pages.
    pub(crate) fn pages(self) -> u64 {
        if self.huge { HUGE_PAGES } else { 1 }
    }
}

/// Permissions of NUMA balancing under a policy: `MPOL_F_MOF`, `MPOL_F_MORON`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    /// Nothing.
    Never,
    /// The implicit policy, which prefers the CPU's node: pages on it are where they belong.
    Anywhere,
    /// `MPOL_BIND` with `MPOL_F_NUMA_BALANCING`: pages move among these nodes, and local ones are checked too.
    Within(NodeMask),
}

/// A region as one process maps it.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    /// Number of the process.
    pub process: usize,
    /// Number of the region among all.
    pub region: usize,
    /// Number of the mapping among those of the region.
    pub mapper: usize,
    /// Address of the first byte.
    pub start: u64,
    /// Permissions of NUMA balancing under its policy.
    pub balance: Balance,
    /// Share of writes among the accesses of the process.
    pub write: f64,
    /// Recent accesses to a page per second; those of the whole mapping divided by its pages.
    pub pace: f64,
    /// Marked base pages.
    base: Bits,
    /// Marked huge pages, by number of the block.
    huge: Bits,
    /// Pools that draw from it.
    pub pools: Vec<usize>,
}

impl Mapping {
    /// A mapping of this many pages, nothing marked.
    pub(crate) fn new(process: usize, region: usize, pages: u64, start: u64) -> Mapping {
        let (base, huge) = (Bits::new(pages), Bits::new(pages.div_ceil(HUGE_PAGES)));
        Mapping {
            process,
            region,
            mapper: 0,
            start,
            balance: Balance::Anywhere,
            write: 1.0,
            pace: 0.0,
            base,
            huge,
            pools: Vec::new(),
        }
    }

    /// Marked pages, huge ones counted once.
    pub(crate) fn marked(&self) -> u64 {
        self.base.count() + self.huge.count()
    }

    /// True if a unit is marked.
    #[inline]
    pub(crate) fn has(&self, unit: Unit) -> bool {
        if unit.huge { self.huge.has(u64::from(unit.page) / HUGE_PAGES) } else { self.base.has(unit.page.into()) }
    }

    /// Marks; false if it was.
    #[inline]
    pub(crate) fn mark(&mut self, unit: Unit) -> bool {
        match unit.huge {
            true => self.huge.insert(u64::from(unit.page) / HUGE_PAGES),
            false => self.base.insert(unit.page.into()),
        }
    }

    /// Clears the mark; false if there was none.
    #[inline]
    pub(crate) fn clear(&mut self, unit: Unit) -> bool {
        match unit.huge {
            true => self.huge.remove(u64::from(unit.page) / HUGE_PAGES),
            false => self.base.remove(unit.page.into()),
        }
    }

    /// The marked unit that a page belongs to.
    #[inline]
    pub(crate) fn marked_at(&self, page: u64) -> Option<Unit> {
        if self.base.has(page) {
            return Some(Unit { page: page as u32, huge: false });
        }
        let block = page / HUGE_PAGES;
        self.huge.has(block).then_some(Unit { page: (block * HUGE_PAGES) as u32, huge: true })
    }

    /// Calls `take` with every marked unit that has a page in `first..end`: base pages, then huge ones, ascending.
    pub(crate) fn each_marked(&self, first: u64, end: u64, mut take: impl FnMut(Unit)) {
        let mut at = first;
        while let Some(page) = self.base.next(at..end) {
            take(Unit { page: page as u32, huge: false });
            at = page + 1;
        }
        let (mut at, end) = (first / HUGE_PAGES, if first < end { end.div_ceil(HUGE_PAGES) } else { 0 });
        while let Some(block) = self.huge.next(at..end) {
            take(Unit { page: (block * HUGE_PAGES) as u32, huge: true });
            at = block + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bits_are_a_set(moves in prop::collection::vec((0u64..9000, any::<bool>()), 0..300), from in 0u64..9100) {
            let (mut bits, mut set) = (Bits::new(9000), BTreeSet::new());
            for (at, insert) in moves {
                if insert {
                    prop_assert_eq!(bits.insert(at), set.insert(at));
                } else {
                    prop_assert_eq!(bits.remove(at), set.remove(&at));
                }
                prop_assert_eq!(bits.has(at), insert);
            }
            prop_assert_eq!(bits.count(), set.len() as u64);
            let range = from.min(9000) / 3..from.min(9000);
            for of in [from..9100, from.min(9000)..9000, range.clone(), 0..from] {
                prop_assert_eq!(bits.next(of.clone()), set.range(of).next().copied());
            }
            prop_assert_eq!(bits.count_within(&range), set.range(range.clone()).count() as u64);
        }
    }

    #[test]
    fn a_page_belongs_to_its_huge_page() {
        let mut mapping = Mapping::new(0, 0, 2000, 0);
        let (huge, base) = (Unit { page: 512, huge: true }, Unit { page: 1100, huge: false });
        assert!(mapping.mark(huge) && mapping.mark(base) && !mapping.mark(huge));
        assert_eq!(
            [511, 512, 1023, 1100].map(|page| mapping.marked_at(page)),
            [None, Some(huge), Some(huge), Some(base)]
        );
        let mut seen = Vec::new();
        mapping.each_marked(700, 1101, |unit| seen.push(unit));
        assert_eq!((seen, mapping.marked()), (vec![base, huge], 2));
        assert!(mapping.clear(huge) && !mapping.clear(huge) && !mapping.has(huge) && mapping.has(base));
    }
}

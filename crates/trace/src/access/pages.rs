//! Numbers of the pages of an access trace, from 0 on without holes.
//!
//! Page numbers are addresses and may lie anywhere; what is kept follows the pages that are accessed, 4 bytes for one whose
//! neighbours are accessed too, some 80 for one that lies alone.

use super::Access;
use rustc_hash::FxHashMap;

/// Neighbouring pages that are looked up together.
const GROUP: u64 = 8;
/// Most groups of a trace: 512 GiB of memory in one piece; all pages alone take 2 GB.
pub const MOST_GROUPS: usize = 1 << 24;
/// A page without a number.
const NONE: u32 = u32::MAX;

/// Gives every page of every task a number.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Where a group of a task is.
    groups: FxHashMap<(i32, u64), u32>,
    /// Numbers of its pages.
    numbers: Vec<[u32; GROUP as usize]>,
    end: u32,
}

/// A trace accesses pages of more than [`MOST_GROUPS`] groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many pages: they are in more than {MOST_GROUPS} groups of {GROUP} adjacent pages")]
pub struct TooManyPages;

impl Pages {
    /// The number of a page; the same page of two tasks are two.
    ///
    /// # Errors
    /// If the trace has too many.
    #[inline]
    pub fn number(&mut self, access: &Access) -> Result<u32, TooManyPages> {
        let next = self.numbers.len();
        let group = *self.groups.entry((access.pid, access.page / GROUP)).or_insert(next as u32) as usize;
        if group == next {
            if next == MOST_GROUPS {
                return Err(TooManyPages);
            }
            self.numbers.push([NONE; GROUP as usize]);
        }
        let number = &mut self.numbers[group][(access.page % GROUP) as usize];
        if *number == NONE {
            *number = self.end;
            self.end += 1;
        }
        Ok(*number)
    }

    /// All numbers are below this one.
    pub fn end(&self) -> u32 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(pid: i32, page: u64) -> Access {
        Access { time: 0, pid, page, write: false }
    }

    #[test]
    fn pages_are_told_apart() {
        let mut pages = Pages::default();
        let touched = [(1, 0), (1, 7), (1, 8), (2, 0), (1, u64::MAX), (1, 7), (1, 1)];
        let numbers = touched.map(|(pid, page)| pages.number(&access(pid, page)).unwrap());
        assert_eq!(numbers, [0, 1, 2, 3, 4, 1, 5]);
        assert_eq!(pages.end(), 6);
    }

    #[test]
    fn pages_far_apart_take_numbers_of_their_own_only() {
        let mut pages = Pages::default();
        for i in 0..100_000u64 {
            assert_eq!(pages.number(&access(1, i.wrapping_mul(0x9e37_79b9_7f4a_7c15))), Ok(i as u32));
        }
        assert_eq!((pages.end(), pages.numbers.len()), (100_000, 100_000));
    }

    #[test]
    fn too_many_pages_are_refused() {
        let mut pages = Pages { numbers: vec![[0; GROUP as usize]; MOST_GROUPS], ..Pages::default() };
        assert_eq!(pages.number(&access(1, 0)), Err(TooManyPages));
    }
}

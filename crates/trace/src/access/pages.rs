//! Numbers of the pages of an access trace, from 0 on without large holes.

use super::Access;
use rustc_hash::FxHashMap;

/// Pages that are numbered together.
const BLOCK: u64 = 512;

/// Gives every page of every task a number.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Number of the first page of a block of a task.
    blocks: FxHashMap<(i32, u64), u32>,
}

impl Pages {
    /// The number of a page; the same page of two tasks are two. `None`: more than 32 bits can count.
    #[inline]
    pub fn number(&mut self, access: &Access) -> Option<u32> {
        let next = self.blocks.len() as u64 * BLOCK;
        let first = *self.blocks.entry((access.pid, access.page / BLOCK)).or_insert(next as u32);
        // The last block is not used, so that the largest number is never reached.
        (next < u64::from(u32::MAX) - BLOCK).then_some(first + (access.page % BLOCK) as u32)
    }

    /// All numbers are below this one.
    pub fn end(&self) -> u32 {
        (self.blocks.len() as u64 * BLOCK).min(u32::MAX.into()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_apart() {
        let mut pages = Pages::default();
        let mut number = |pid, page| pages.number(&Access { time: 0, pid, page, write: false }).unwrap();
        let numbers = [number(1, 0), number(1, 511), number(1, 512), number(2, 0), number(1, u64::MAX), number(1, 511)];
        assert_eq!(numbers, [0, 511, 512, 1024, 2047, 511]);
        assert_eq!(pages.end(), 2048);
    }
}

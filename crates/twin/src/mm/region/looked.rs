//! Accesses between two checks of reclaim: the accessed bits of a region's page tables, and the time of the last check.

use super::{HUGE, Region};
use std::ops::Range;

impl Region {
    /// A page is accessed through a mapping that has it.
    #[inline]
    pub(crate) fn touch(&mut self, mapper: usize, page: u64) {
        if self.anon {
            self.young.insert(page);
        } else {
            self.touch_shared(mapper, page);
        }
    }

    /// Mappings that have accessed some pages since the last call, one bit for each.
    pub(crate) fn test_and_clear_young(&mut self, pages: Range<u64>) -> u64 {
        match self.anon {
            true => u64::from(self.take_young_anon(pages)),
            false => pages.fold(0, |bits, page| bits | self.take_touched(page)),
        }
    }

    fn take_young_anon(&mut self, pages: Range<u64>) -> bool {
        if pages.end - pages.start == 1 {
            return self.young.remove(pages.start);
        }
        let mut any = false;
        while let Some(page) = self.young.next(pages.start).filter(|&page| page < pages.end) {
            any = self.young.remove(page);
        }
        any
    }

    /// Reclaim checks the pages of a block in an epoch; returns the epoch of the check before, if it was the same
    /// frame.
    pub(crate) fn stamp(&mut self, pages: &Range<u64>, epoch: u32) -> Option<u32> {
        let (stamps, length) = match pages.end - pages.start {
            1 => (&mut self.stamps, 1),
            _ => (&mut self.huge_stamps, HUGE),
        };
        if stamps.is_empty() {
            *stamps = vec![0; (self.entries.len() as u64).div_ceil(length) as usize];
        }
        std::mem::replace(&mut stamps[(pages.start / length) as usize], epoch + 1).checked_sub(1)
    }
}

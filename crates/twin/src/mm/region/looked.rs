//! Accesses between two checks of reclaim: the accessed bits of a region's page tables, and the time of the last check.

use super::{HUGE, Region};
use crate::mm::prot_numa::Bits;
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
        while let Some(page) = self.young.next(pages.clone()) {
            any = self.young.remove(page);
        }
        any
    }

    /// A page is written through some mapping.
    #[inline]
    pub(crate) fn note_write(&mut self, page: u64) {
        self.rewritten.iter_mut().for_each(|pages| {
            pages.insert(page);
        });
    }

    /// Writes of pages of which the program has said that it needs their content no more are noted from now on; none of
    /// these was written since.
    pub(crate) fn watch_writes(&mut self, pages: Range<u64>) {
        let all = self.len();
        let rewritten = self.rewritten.get_or_insert_with(|| Bits::new(all));
        pages.for_each(|page| {
            rewritten.remove(page);
        });
    }

    /// True if writes are noted.
    pub(crate) fn watches_writes(&self) -> bool {
        self.rewritten.is_some()
    }

    /// True if some of these pages were written since; then they are forgotten.
    pub(crate) fn take_rewritten(&mut self, pages: Range<u64>) -> bool {
        let Some(rewritten) = &mut self.rewritten else { return false };
        pages.fold(false, |any, page| rewritten.remove(page) | any)
    }

    /// The epoch in which reclaim has last checked the pages of a block, if it was the same frame.
    pub(crate) fn stamped(&self, pages: &Range<u64>) -> Option<u32> {
        let (stamps, length) = match pages.end - pages.start {
            HUGE => (&self.huge_stamps, HUGE),
            _ => (&self.stamps, 1),
        };
        stamps.get((pages.start / length) as usize)?.checked_sub(1)
    }

    /// Reclaim checks the pages of a block in an epoch; returns the epoch of the check before, if it was the same
    /// frame.
    pub(crate) fn stamp(&mut self, pages: &Range<u64>, epoch: u32) -> Option<u32> {
        let (stamps, length) = match pages.end - pages.start {
            HUGE => (&mut self.huge_stamps, HUGE),
            _ => (&mut self.stamps, 1),
        };
        if stamps.is_empty() {
            *stamps = vec![0; (self.entries.len() as u64).div_ceil(length) as usize];
        }
        let first = (pages.start / length) as usize;
        let before = stamps[first];
        // Those of a large folio are looked at together, but it may be split.
        stamps[first..first + ((pages.end - pages.start) / length) as usize].fill(epoch + 1);
        before.checked_sub(1)
    }
}

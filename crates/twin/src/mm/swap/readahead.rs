//! Which pages are read from swap together: `swap_vma_readahead`, `swap_cluster_readahead`, `__swapin_nr_pages` (2.6.36 to
//! 6.12).
//!
//! Since 4.14 anonymous memory is read by address, if no swap space rotates: the pages of the mapping around the fault,
//! ahead of it if the last fault was at the page before. Shared memory, rotating disks and older kernels read the aligned
//! block of slots around the page's own. A window has 2^`vm.page-cluster` pages at most; since 3.14 it grows with the
//! pages of the last windows that were used, and else halves. Not modelled: that the window of a mapping ends at the
//! bounds of its page table where the region does not begin at one. Checked by tests here and against guests
//! (docs/model/swap.md).

use std::ops::Range;

/// Largest `vm.page-cluster` that windows of a mapping follow (`SWAP_RA_ORDER_CEILING`).
const ORDER_CEILING: u32 = 5;
/// Hits before the first fault.
const FIRST_HITS: u64 = 4;
/// Most hits that a mapping remembers (`SWAP_RA_HITS_MAX`).
const MOST_HITS: u64 = 63;
/// Pages of a page table: a window by address does not leave it.
const TABLE: u64 = 512;

/// How a release reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapReadahead {
    /// Always the whole block of slots (before 3.14).
    Block,
    /// As much of the block as hits suggest (3.14 to 4.13).
    Hits,
    /// By address where that is possible, else as [`SwapReadahead::Hits`] (4.14 and later).
    Vma,
}

/// Success of read-ahead so far: of a mapping (`vma->swap_readahead_info`), or of all blocks of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Page, or slot, of the last fault.
    last: Option<u64>,
    /// Pages of the last window.
    size: u64,
    /// Pages since then that were read ahead and are used now.
    hits: u64,
}

impl Default for Window {
    fn default() -> Window {
        Window { last: None, size: 0, hits: FIRST_HITS }
    }
}

impl Window {
    /// Pages of the next window, for a fault at `at` (`__swapin_nr_pages`).
    fn next_size(&self, at: u64, max: u64) -> u64 {
        let beside = self.last.is_some_and(|last| last.abs_diff(at) == 1);
        let wanted = match self.hits + 2 {
            2 if !beside => 1,
            2 => 2,
            pages => pages.next_power_of_two().max(4),
        };
        wanted.min(max).max(self.size / 2)
    }

    /// A fault of a mapping finds its page in the swap cache, read ahead or not.
    pub(crate) fn found(&mut self, page: u64, ahead: bool) {
        self.last = Some(page);
        self.hits = (self.hits + u64::from(ahead)).min(MOST_HITS);
    }

    /// A page of a block is used that was read ahead.
    pub(crate) fn hit(&mut self) {
        self.hits += 1;
    }

    /// Pages to read for a fault of a mapping of `len` pages.
    pub(crate) fn of_mapping(&mut self, page: u64, len: u64, page_cluster: u32) -> Range<u64> {
        let max = 1 << page_cluster.min(ORDER_CEILING);
        if max == 1 {
            return page..page + 1;
        }
        let (last, size) = (self.last, self.next_size(page, max));
        *self = Window { last: Some(page), size, hits: 0 };
        let before = match last {
            Some(last) if page == last + 1 => 0,
            Some(last) if last == page + 1 => size - 1,
            _ => (size - 1) / 2,
        };
        let table = page / TABLE * TABLE;
        let end = (page + size - before).min(table + TABLE).min(len);
        page.saturating_sub(before).max(table)..end
    }

    /// Slots to read for a fault of the page at one of `slots`.
    pub(crate) fn of_block(&mut self, slot: u64, slots: u64, page_cluster: u32, by_hits: bool) -> Range<u64> {
        let max = 1u64 << page_cluster.min(30);
        let size = if by_hits && max > 1 {
            let size = self.next_size(slot, max);
            if self.hits == 0 {
                self.last = Some(slot);
            }
            (self.size, self.hits) = (size, 0);
            size
        } else {
            max
        };
        let first = slot / size * size;
        first..(first + size).min(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_by_address_halves_without_hits() {
        let mut of = Window::default();
        let windows = [1000, 2000, 3000, 4000, 5000].map(|page| of.of_mapping(page, 1 << 20, 3));
        // Six pages are rounded to eight.
        assert_eq!(windows, [997..1005, 1999..2003, 3000..3002, 4000..4001, 5000..5001]);
        // The page behind the last fault makes two.
        assert_eq!(of.of_mapping(5001, 1 << 20, 3), 5001..5003);
        assert_eq!(of.of_mapping(5000, 1 << 20, 3), 4999..5001);
    }

    #[test]
    fn hits_widen_it_again_in_the_direction_of_the_faults() {
        let mut of = Window { last: Some(9), size: 1, hits: 0 };
        assert_eq!(of.of_mapping(10, 1 << 20, 3), 10..12);
        of.found(11, true);
        assert_eq!(of.of_mapping(12, 1 << 20, 3), 12..16);
        (13..16).for_each(|page| of.found(page, true));
        assert_eq!(of.of_mapping(16, 1 << 20, 3), 16..24);
        // A page that was in the cache for another reason is a fault, and no hit.
        of.found(100, false);
        assert_eq!(of.of_mapping(99, 1 << 20, 3), 96..100);
    }

    #[test]
    fn a_window_ends_with_its_page_table_and_its_region() {
        let mut of = Window::default();
        assert_eq!(of.of_mapping(512, 1 << 20, 3), 512..517);
        let mut of = Window::default();
        assert_eq!(of.of_mapping(510, 1 << 20, 3), 507..512);
        let mut of = Window::default();
        assert_eq!(of.of_mapping(8, 10, 3), 5..10);
        assert_eq!(of.of_mapping(8, 10, 0), 8..9);
    }

    #[test]
    fn blocks_are_aligned() {
        let mut of = Window::default();
        assert_eq!(of.of_block(21, 1000, 3, false), 16..24);
        assert_eq!(of.of_block(997, 1000, 3, false), 992..1000);
        assert_eq!(of.of_block(21, 1000, 3, true), 16..24);
        assert_eq!(of.of_block(41, 1000, 3, true), 40..44);
        of.hit();
        // Three pages are rounded to four.
        assert_eq!(of.of_block(41, 1000, 3, true), 40..44);
        assert_eq!(of.of_block(80, 1000, 0, true), 80..81);
    }
}

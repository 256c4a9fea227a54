//! Lists of pages in order of age, for memory that is too large for linked lists.
//!
//! A list that is linked through 50 million frames misses the caches at every step; here pages lie one after another,
//! in segments from the tail to the head, and a frame stores its place. A page that leaves the middle leaves a hole,
//! and when most places are holes the pages move together. The order is that of a doubly linked list. Checked against a
//! deque.

use super::{Frames, NO_PAGE, Pfn};
use std::collections::VecDeque;

/// Where the place of a page is stored.
pub(crate) trait Places {
    /// Place of a page on its ring.
    fn place(&self, page: Pfn) -> u32;
    /// Sets its place.
    fn set_place(&mut self, page: Pfn, place: u32);
}

impl Places for Frames {
    #[inline]
    fn place(&self, page: Pfn) -> u32 {
        Frames::place(self, page)
    }
    #[inline]
    fn set_place(&mut self, page: Pfn, place: u32) {
        Frames::set_place(self, page, place);
    }
}

/// Pages that are nothing else.
impl Places for Vec<u32> {
    #[inline]
    fn place(&self, page: Pfn) -> u32 {
        self[page as usize]
    }
    #[inline]
    fn set_place(&mut self, page: Pfn, place: u32) {
        self[page as usize] = place;
    }
}

/// Places of a segment.
const SEGMENT: u32 = 1024;

/// Pages, the oldest at the tail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    segments: VecDeque<Box<[Pfn]>>,
    /// Place of the first of the first segment. Places wrap; only their differences count.
    start: u32,
    /// Place of the last page, if there is one.
    tail: u32,
    /// The place before the first page.
    head: u32,
    len: u32,
}

impl Ring {
    /// Pages on the list; a block counts as one.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn slot(&mut self, place: u32) -> Option<&mut Pfn> {
        let at = place.wrapping_sub(self.start);
        self.segments.get_mut((at / SEGMENT) as usize)?.get_mut((at % SEGMENT) as usize)
    }

    /// Puts a page that is on no list at the head: it is the youngest.
    pub(crate) fn push_head(&mut self, frames: &mut impl Places, page: Pfn) {
        if self.head.wrapping_sub(self.start) as usize == self.segments.len() * SEGMENT as usize {
            self.close_up(frames);
            self.segments.push_back(vec![NO_PAGE; SEGMENT as usize].into_boxed_slice());
        }
        let place = self.head;
        self.head = place.wrapping_add(1);
        self.set(frames, place, page);
    }

    /// Puts a page that is on no list at the tail: it is the oldest.
    pub(crate) fn push_tail(&mut self, frames: &mut impl Places, page: Pfn) {
        if self.tail == self.start {
            self.segments.push_front(vec![NO_PAGE; SEGMENT as usize].into_boxed_slice());
            self.start = self.start.wrapping_sub(SEGMENT);
        }
        self.tail = self.tail.wrapping_sub(1);
        self.set(frames, self.tail, page);
    }

    #[inline]
    fn set(&mut self, frames: &mut impl Places, place: u32, page: Pfn) {
        self.slot(place).into_iter().for_each(|slot| *slot = page);
        frames.set_place(page, place);
        self.len += 1;
    }

    /// Takes a page off; it must be on this list.
    #[inline]
    pub(crate) fn remove(&mut self, frames: &impl Places, page: Pfn) {
        let place = frames.place(page);
        if let Some(slot) = self.slot(place) {
            debug_assert_eq!(*slot, page, "a page is where its frame says");
            *slot = NO_PAGE;
            self.len -= 1;
        }
    }

    /// Takes the oldest page off.
    pub(crate) fn pop_tail(&mut self) -> Option<Pfn> {
        while self.len > 0 {
            let tail = self.tail;
            let page = self.slot(tail).map_or(NO_PAGE, |slot| std::mem::replace(slot, NO_PAGE));
            self.tail = tail.wrapping_add(1);
            if self.tail.wrapping_sub(self.start) == SEGMENT {
                self.segments.pop_front();
                self.start = self.tail;
            }
            if page != NO_PAGE {
                self.len -= 1;
                return Some(page);
            }
        }
        None
    }

    /// Pages from the tail on.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Pfn> {
        self.segments.iter().flat_map(|segment| segment.iter().copied()).filter(|&page| page != NO_PAGE)
    }

    /// Moves the pages together if most places are holes.
    fn close_up(&mut self, frames: &mut impl Places) {
        let places = self.head.wrapping_sub(self.tail);
        if places < 2 * self.len + SEGMENT {
            return;
        }
        let mut to = self.start;
        for from in 0..places {
            let from = self.tail.wrapping_add(from);
            let page = self.slot(from).map_or(NO_PAGE, |slot| std::mem::replace(slot, NO_PAGE));
            if page != NO_PAGE {
                self.slot(to).into_iter().for_each(|slot| *slot = page);
                frames.set_place(page, to);
                to = to.wrapping_add(1);
            }
        }
        (self.tail, self.head) = (self.start, to);
        self.segments.truncate(self.len.div_ceil(SEGMENT) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ring_is_a_deque(moves in prop::collection::vec((0u32..2500, 0u8..8), 0..4000)) {
            let mut frames = Frames::new(2500);
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (page, what) in moves {
                match (model.iter().position(|&p| p == page), what) {
                    (_, 7) => prop_assert_eq!(ring.pop_tail(), model.pop_back()),
                    (Some(at), _) => {
                        model.remove(at);
                        ring.remove(&frames, page);
                    }
                    (None, 0) => {
                        model.push_back(page);
                        ring.push_tail(&mut frames, page);
                    }
                    (None, _) => {
                        model.push_front(page);
                        ring.push_head(&mut frames, page);
                    }
                }
                prop_assert_eq!(ring.len() as usize, model.len());
            }
            prop_assert_eq!(ring.iter().collect::<Vec<_>>(), model.iter().rev().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn holes_do_not_accumulate() {
        let mut frames = Frames::new(4096);
        let mut ring = Ring::default();
        (0..4096).for_each(|page| ring.push_head(&mut frames, page));
        for round in 0..100_000u32 {
            // Page 0 stays where it is and would keep all segments.
            let page = 1 + round % 4095;
            ring.remove(&frames, page);
            ring.push_head(&mut frames, page);
        }
        assert!(ring.segments.len() <= 4 + 2 * 4 + 1, "{}", ring.segments.len());
        assert_eq!((ring.len(), ring.pop_tail()), (4096, Some(0)));
    }
}

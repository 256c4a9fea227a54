//! Doubly linked lists through the frames, in the order the kernel keeps them.
//!
//! Blocks enter at the head or the tail and leave anywhere; the page of an allocation depends on that order, so it is
//! kept exactly. Checked against a deque.

use super::{Frames, NO_PAGE, Pfn};

/// A list of blocks by their first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    head: Pfn,
    tail: Pfn,
    len: u32,
}

impl Default for List {
    fn default() -> List {
        List { head: NO_PAGE, tail: NO_PAGE, len: 0 }
    }
}

impl List {
    /// Blocks on the list.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True if it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First block.
    #[inline]
    pub fn first(&self) -> Option<Pfn> {
        (self.head != NO_PAGE).then_some(self.head)
    }

    /// Last block.
    #[inline]
    pub fn last(&self) -> Option<Pfn> {
        (self.tail != NO_PAGE).then_some(self.tail)
    }

    #[inline]
    pub(crate) fn push_head(&mut self, frames: &mut Frames, page: Pfn) {
        frames.set_links(page, [NO_PAGE, self.head]);
        frames.set_link(self.head, 0, page);
        if self.tail == NO_PAGE {
            self.tail = page;
        }
        self.head = page;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn push_tail(&mut self, frames: &mut Frames, page: Pfn) {
        frames.set_links(page, [self.tail, NO_PAGE]);
        frames.set_link(self.tail, 1, page);
        if self.head == NO_PAGE {
            self.head = page;
        }
        self.tail = page;
        self.len += 1;
    }

    /// Takes a block off; it must be on this list.
    #[inline]
    pub(crate) fn remove(&mut self, frames: &mut Frames, page: Pfn) {
        let [before, after] = frames.links(page);
        frames.set_link(before, 1, after);
        frames.set_link(after, 0, before);
        if self.head == page {
            self.head = after;
        }
        if self.tail == page {
            self.tail = before;
        }
        self.len -= 1;
    }

    /// Turns the list until a block of it is the head.
    pub(crate) fn rotate_to_head(&mut self, frames: &mut Frames, page: Pfn) {
        if page == self.head {
            return;
        }
        let [before, after] = frames.links(page);
        frames.set_link(self.tail, 1, self.head);
        frames.set_link(self.head, 0, self.tail);
        frames.set_links(page, [NO_PAGE, if page == self.tail { self.head } else { after }]);
        frames.set_link(before, 1, NO_PAGE);
        (self.head, self.tail) = (page, before);
    }

    /// Turns the list until a block of it is the tail.
    pub(crate) fn rotate_to_tail(&mut self, frames: &mut Frames, page: Pfn) {
        let after = frames.links(page)[1];
        if after != NO_PAGE {
            self.rotate_to_head(frames, after);
        }
    }

    /// Blocks from the tail on.
    pub(crate) fn iter_back<'a>(&self, frames: &'a Frames) -> impl Iterator<Item = Pfn> + use<'a> {
        std::iter::successors(self.last(), |&page| Some(frames.links(page)[0]).filter(|&before| before != NO_PAGE))
    }

    /// Blocks from the head on.
    pub fn iter<'a>(&self, frames: &'a Frames) -> impl Iterator<Item = Pfn> + use<'a> {
        std::iter::successors(self.first(), |&page| {
            let after = frames.links(page)[1];
            (after != NO_PAGE).then_some(after)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_list_is_a_deque(moves in prop::collection::vec((0u32..16, any::<bool>(), 0u8..4), 0..200)) {
            let mut frames = Frames::new(16);
            let mut list = List::default();
            let mut model = VecDeque::new();
            for (page, head, turn) in moves {
                if let Some(at) = model.iter().position(|&p| p == page) {
                    if turn > 0 {
                        model.remove(at);
                        list.remove(&mut frames, page);
                    } else if head {
                        model.rotate_left(at);
                        list.rotate_to_head(&mut frames, page);
                    } else {
                        model.rotate_left((at + 1) % model.len());
                        list.rotate_to_tail(&mut frames, page);
                    }
                } else if head {
                    model.push_front(page);
                    list.push_head(&mut frames, page);
                } else {
                    model.push_back(page);
                    list.push_tail(&mut frames, page);
                }
                prop_assert_eq!(list.iter(&frames).collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((list.first(), list.last()), (model.front().copied(), model.back().copied()));
                prop_assert_eq!(list.len() as usize, model.len());
            }
        }
    }
}

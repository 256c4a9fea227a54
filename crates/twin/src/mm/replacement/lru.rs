//! Least recently used: the page with the oldest access is evicted.
//!
//! The list is that of the kernel's pages in reclaim ([`Ring`]).

use super::Policy;
use crate::frame::Ring;
use std::num::NonZeroU32;

/// A cache that is replaced by LRU.
#[derive(Clone, Debug)]
pub struct Lru {
    ring: Ring,
    /// By page: its place on the ring, and whether it is there.
    places: Vec<u32>,
    there: Vec<bool>,
    /// Pages that it can still take without giving one up.
    room: u32,
}

impl Lru {
    /// Holds `size` of the pages 0 to `pages` - 1.
    pub fn new(size: NonZeroU32, pages: u32) -> Lru {
        let (places, there) = (vec![0; pages as usize], vec![false; pages as usize]);
        Lru { ring: Ring::default(), places, there, room: size.get() }
    }
}

impl Policy for Lru {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let hit = std::mem::replace(&mut self.there[page as usize], true);
        if hit {
            self.ring.remove(&self.places, page);
        } else if self.room > 0 {
            self.room -= 1;
        } else if let Some(oldest) = self.ring.pop_tail() {
            self.there[oldest as usize] = false;
        }
        self.ring.push_head(&mut self.places, page);
        hit
    }
}

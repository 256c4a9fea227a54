//! Least recently used: the page that was not touched for longest goes.
//!
//! The list is that of the kernel's pages in reclaim ([`Ring`]).

use super::Policy;
use crate::page::{Flag, Frames, Ring};
use std::num::NonZeroU32;

/// A cache that is replaced by LRU.
#[derive(Clone, Debug)]
pub struct Lru {
    ring: Ring,
    frames: Frames,
    /// Pages that it can still take without giving one up.
    room: u32,
}

impl Lru {
    /// Holds `size` of the pages 0 to `pages` - 1.
    pub fn new(size: NonZeroU32, pages: u32) -> Lru {
        Lru { ring: Ring::default(), frames: Frames::new(pages.into()), room: size.get() }
    }
}

impl Policy for Lru {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let hit = self.frames.set_flag(page, Flag::Lru, true);
        if hit {
            self.ring.remove(&self.frames, page);
        } else if self.room > 0 {
            self.room -= 1;
        } else if let Some(oldest) = self.ring.pop_tail() {
            self.frames.set_flag(oldest, Flag::Lru, false);
        }
        self.ring.push_head(&mut self.frames, page);
        hit
    }
}

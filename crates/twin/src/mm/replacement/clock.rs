//! CLOCK: a hand goes round the pages and evicts the first that was not accessed since it passed last.
//!
//! A page starts as not accessed; a new page takes the place of the evicted one, behind the hand. That is a queue,
//! oldest page first, in which accessed pages move to the end once.

use super::Policy;
use std::num::NonZeroU32;

/// In `places`: the page is not in the cache.
const NOWHERE: u32 = u32::MAX;

/// A cache that is replaced by CLOCK.
#[derive(Clone, Debug)]
pub struct Clock {
    /// By page: its place.
    places: Vec<u32>,
    /// By place: its page, and whether that was accessed.
    pages: Vec<u32>,
    touched: Vec<bool>,
    size: usize,
    hand: usize,
}

impl Clock {
    /// Holds `size` of the pages 0 to `pages` - 1.
    pub fn new(size: NonZeroU32, pages: u32) -> Clock {
        let size = size.get() as usize;
        Clock { places: vec![NOWHERE; pages as usize], pages: Vec::new(), touched: Vec::new(), size, hand: 0 }
    }
}

impl Policy for Clock {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        let place = self.places[page as usize];
        if place != NOWHERE {
            self.touched[place as usize] = true;
            return true;
        }
        if self.pages.len() < self.size {
            self.places[page as usize] = self.pages.len() as u32;
            self.pages.push(page);
            self.touched.push(false);
            return false;
        }
        while std::mem::replace(&mut self.touched[self.hand], false) {
            self.hand = (self.hand + 1) % self.size;
        }
        let gone = std::mem::replace(&mut self.pages[self.hand], page);
        self.places[gone as usize] = NOWHERE;
        self.places[page as usize] = self.hand as u32;
        self.hand = (self.hand + 1) % self.size;
        false
    }
}

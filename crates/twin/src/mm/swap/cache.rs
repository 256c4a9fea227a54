//! Which pages of memory have a swap slot (`PG_swapcache`), and which slot (`folio->swap`).
//!
//! Reclaim asks for each page that it scans, and few have one. So a bit for each frame, which caches hold, is looked at
//! before the table. Not modelled: the address spaces, one for each 64 MiB of swap. Checked by tests here and of [`super`].

use crate::frame::Pfn;
use rustc_hash::FxHashMap;

/// First slots of pages, by frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// A bit for each frame up to the last that was ever here.
    here: Vec<u64>,
    slots: FxHashMap<Pfn, u32>,
}

impl Cache {
    /// First slot of a page; `None` if it has none.
    #[inline]
    pub fn get(&self, page: Pfn) -> Option<u32> {
        let word = self.here.get(page as usize / 64).filter(|word| **word >> (page % 64) & 1 == 1);
        word.and_then(|_| self.slots.get(&page).copied())
    }

    /// A page has entered.
    pub fn insert(&mut self, page: Pfn, slot: u32) {
        let at = page as usize / 64;
        if at >= self.here.len() {
            self.here.resize(at + 1, 0);
        }
        self.here[at] |= 1 << (page % 64);
        self.slots.insert(page, slot);
    }

    /// A page leaves: its first slot, if it was here.
    pub fn remove(&mut self, page: Pfn) -> Option<u32> {
        self.get(page)?;
        self.here[page as usize / 64] &= !(1 << (page % 64));
        self.slots.remove(&page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_enter_and_leave() {
        let mut cache = Cache::default();
        assert_eq!((cache.get(0), cache.remove(99)), (None, None));
        cache.insert(64, 5);
        cache.insert(3, 6);
        assert_eq!([0, 3, 64, 65, 1 << 30].map(|page| cache.get(page)), [None, Some(6), Some(5), None, None]);
        assert_eq!((cache.remove(64), cache.remove(64), cache.get(3)), (Some(5), None, Some(6)));
    }
}

//! Shrinkers: `shrink_slab` (2.6.36 to 3.11), which have no events there.
//!
//! Of a cache as large a part is scanned as of the pages that can be reclaimed. A cache is the whole machine's. Checked by
//! a test of the arithmetic here.

use crate::reclaim::{BATCH, Control, World};

/// Objects that are scanned at once.
const AT_ONCE: u64 = 128;

/// How many objects of so many to scan when of `pages` so many were scanned, with what was left over before.
fn to_scan(freeable: u64, seeks: u64, left: u64, scanned: u64, pages: u64) -> u64 {
    let delta = u128::from(4 * scanned / seeks.max(1)) * u128::from(freeable) / (u128::from(pages) + 1);
    (left + delta as u64).min(2 * freeable)
}

impl World<'_> {
    /// Shrinks all caches after a reclaim has scanned pages of zones with so many to reclaim; the objects that went.
    pub(super) fn shrink_caches(&mut self, control: &Control, pages: u64) -> u64 {
        let scanned = if control.scanned == 0 { BATCH } else { control.scanned };
        let mut freed = 0;
        for number in 0..self.kernel.reclaim.shrinkers.len() {
            let shrinker = &mut self.kernel.reclaim.shrinkers[number];
            let freeable: u64 = shrinker.freeable.iter().sum();
            let left = std::mem::take(&mut shrinker.deferred[0]);
            let total = to_scan(freeable, shrinker.seeks, left, scanned, pages);
            let batches = total / AT_ONCE;
            shrinker.deferred[0] = total % AT_ONCE;
            let mut gone = batches * AT_ONCE;
            for node in &mut shrinker.freeable {
                let of_node = gone.min(*node);
                *node -= of_node;
                gone -= of_node;
                freed += of_node;
            }
            self.kernel.stat.events.reclaim.slabs_scanned += batches * AT_ONCE;
            self.spend(self.memory.costs.scan_object * batches * AT_ONCE);
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::to_scan;

    #[test]
    fn caches_are_scanned_as_pages_are() {
        // 100 of 999 pages, twice as much as that of a cache with two seeks.
        assert_eq!(to_scan(5000, 2, 7, 100, 999), 7 + 2 * 500);
        assert_eq!(to_scan(100, 2, 0, 1 << 40, 10), 200);
    }
}

//! Shrinkers: `shrink_slab` (2.6.36 to 3.11).
//!
//! Of a cache as large a part is scanned as of the pages that can be reclaimed. A cache is the whole machine's. From 3.1 on
//! what was left over is scanned slowly, unless a large part of the cache is due anyway, batches are the shrinker's and
//! there are events. A file system may be entered only with __GFP_FS. Checked by tests of the arithmetic here.

use super::Slabs;
use crate::mm::slab::shrinker::{Counts, SHRINK_BATCH, start_of};
use crate::mm::vmscan::{BATCH, Control, TaskCtx};
use mmtwin_event::vocabulary::{MmShrinkSlabEnd, MmShrinkSlabStart};

/// Due scans of a cache with this many objects, after `scanned` of `pages` were scanned.
fn due(freeable: u64, seeks: u64, scanned: u64, pages: u64) -> u64 {
    let delta = u128::from(4 * scanned / seeks.max(1)) * u128::from(freeable) / (u128::from(pages) + 1);
    delta as u64
}

/// Number of objects to scan, with the deferred scans.
fn to_scan(slabs: Slabs, freeable: u64, left: u64, delta: u64) -> u64 {
    let total = match slabs {
        Slabs::Bounded if delta < freeable / 4 => (left + delta).min(freeable / 2),
        Slabs::Bounded | Slabs::WindUp => left + delta,
    };
    total.min(2 * freeable)
}

impl TaskCtx<'_> {
    /// Shrinks all caches after a reclaim has scanned pages of zones with this many reclaimable ones; returns the
    /// objects freed. Pages that this frees count as reclaimed (`reclaim_state`).
    pub(super) fn shrink_caches(&mut self, control: &mut Control, pages: u64) -> u64 {
        let scanned = if control.scanned == 0 { BATCH } else { control.scanned };
        let caches = 0..self.kernel.reclaim.shrinkers.len();
        self.kernel.reclaim.reclaimed_slab = 0;
        let freed = caches.map(|number| self.shrink_cache(control, number, scanned, pages)).sum();
        control.reclaimed += self.kernel.reclaim.reclaimed_slab;
        freed
    }

    fn shrink_cache(&mut self, control: &Control, number: usize, pages_scanned: u64, pages: u64) -> u64 {
        let slabs = self.decide(|rules| rules.slabs);
        let shrinker = &self.kernel.reclaim.shrinkers[number];
        let at_once = if slabs == Slabs::Bounded { shrinker.batch } else { SHRINK_BATCH };
        let files = shrinker.files;
        let of_files = if files { self.memory.inodes.unused() } else { 0 };
        let pressure = self.kernel.reclaim.rules.vfs_cache_pressure;
        let shrinker = &mut self.kernel.reclaim.shrinkers[number];
        let freeable: u64 = shrinker.freeable.iter().sum::<u64>() + of_files * pressure / 100;
        if freeable == 0 {
            return 0;
        }
        let left = std::mem::take(&mut shrinker.deferred[0]);
        let delta = due(freeable, shrinker.seeks, pages_scanned, pages);
        let total = to_scan(slabs, freeable, left, delta);
        let counts = Counts { left, freeable, delta, total };
        let (start, text) = start_of((number, &shrinker.scan), self.kernel.probe.gfp(control.gfp), counts);
        let (pgs_scanned, lru_pgs) = (Some(pages_scanned as i64), Some(pages as i64));
        let start = MmShrinkSlabStart { pgs_scanned, lru_pgs, ..start };
        // Without `__GFP_FS` all scans are deferred.
        let scanned = if files && !control.fs { 0 } else { total / at_once * at_once };
        shrinker.deferred[0] = total - scanned;
        let mut gone = scanned;
        for node in &mut shrinker.freeable {
            let of_node = gone.min(*node);
            *node -= of_node;
            gone -= of_node;
        }
        let mut freed = scanned - gone;
        if files {
            let batches = 0..scanned / at_once;
            freed += batches.map(|_| self.prune_files(at_once, control.is_kswapd())).sum::<u64>();
        }
        self.kernel.stat.events.reclaim.slabs_scanned += scanned;
        let (cpu, task) = (self.cpu, self.task);
        if slabs == Slabs::Bounded {
            self.kernel.probe.write(self.now(), cpu, task, &start, text.as_bytes());
        }
        self.spend(self.memory.costs.scan_object * scanned);
        if slabs == Slabs::Bounded {
            let end = MmShrinkSlabEnd {
                shr: start.shr,
                shrink: start.shrink,
                unused_scan: left as i64,
                new_scan: (total - scanned) as i64,
                retval: if scanned > 0 { freeable.saturating_sub(freed) as i64 } else { 0 },
                total_scan: (total - scanned) as i64 - left as i64,
                nid: None,
            };
            self.kernel.probe.write(self.now(), cpu, task, &end, text.as_bytes());
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_scanned_as_pages_are() {
        // 100 of 999 pages, twice as much as that of a cache with two seeks.
        assert_eq!(due(5000, 2, 100, 999), 2 * 500);
        assert_eq!(to_scan(Slabs::WindUp, 5000, 7, 1000), 1007);
        assert_eq!(to_scan(Slabs::WindUp, 100, 0, due(100, 2, 1 << 40, 10)), 200);
    }

    #[test]
    fn deferred_scans_no_longer_empty_a_cache() {
        assert_eq!(to_scan(Slabs::WindUp, 1000, 5000, 100), 2000);
        assert_eq!(to_scan(Slabs::Bounded, 1000, 5000, 100), 500);
        // It may if a quarter of the cache is due now.
        assert_eq!(to_scan(Slabs::Bounded, 1000, 5000, 250), 2000);
    }
}

//! Shrinkers: `shrink_slab`, `do_shrink_slab` (4.20 to 6.12).
//!
//! A shrinker is a cache of the kernel of which a number of objects can be freed: those that it had when the run began,
//! of which only the number is known, so that they free no pages, and for the workload's file system the dentries of
//! names that were looked up. Objects that RCU frees later are not counted as reclaimed. Not modelled: shrinkers per
//! cgroup. Checked by tests of the arithmetic here, and by `tests/slab.rs`.

use crate::mm::lru::List;
use crate::mm::vmscan::{Control, TaskCtx};
use mmtwin_event::value::{Bytes, Gfp, Hex, Sym};
use mmtwin_event::vocabulary::{MmShrinkSlabEnd, MmShrinkSlabStart};
use std::borrow::Cow;

/// Objects that are scanned at once unless a shrinker sets another number (`SHRINK_BATCH`).
pub(crate) const SHRINK_BATCH: u64 = 128;

/// The function of a superblock's shrinker.
pub(crate) const SUPERBLOCK: &str = "super_cache_scan";

/// A cache that can be shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shrinker {
    /// Function that scans, as the kernel prints it.
    pub scan: String,
    /// Relative cost of an object; 2 is usual, 0: objects cost nothing to make again.
    pub seeks: u64,
    /// Objects that are scanned at once.
    pub batch: u64,
    /// By node: objects of before the run that can be freed.
    pub freeable: Vec<u64>,
    /// By node: scans that earlier calls left over.
    pub deferred: Vec<u64>,
    /// Dentries of the workload's names are its objects too.
    pub dentries: bool,
    /// So are inodes and dentries of the files that its regions are divided into.
    pub files: bool,
}

impl Shrinker {
    /// A shrinker of nothing yet; a batch of 0 is the usual one.
    pub(crate) fn new(scan: &str, seeks: u64, batch: u64, nodes: usize) -> Shrinker {
        let batch = if batch > 0 { batch } else { SHRINK_BATCH };
        Shrinker {
            scan: scan.into(),
            seeks,
            batch,
            freeable: vec![0; nodes],
            deferred: vec![0; nodes],
            dentries: false,
            files: false,
        }
    }
}

/// Objects to scan of `freeable` at a priority, and the part of them due to the priority alone.
fn to_scan(freeable: u64, seeks: u64, deferred: u64, priority: u32) -> (u64, u64) {
    let delta = ((freeable >> priority) * 4).checked_div(seeks).unwrap_or(freeable / 2);
    (((deferred >> priority) + delta).min(2 * freeable), delta)
}

/// Arguments of a shrinker call: deferred scans, freeable objects, scans due now, and all scans.
pub(crate) struct Counts {
    pub left: u64,
    pub freeable: u64,
    pub delta: u64,
    pub total: u64,
}

/// The event before a call of a shrinker, given by number and function, and its texts. Fields of only some releases are
/// unset.
pub(crate) fn start_of(
    (number, scan): (usize, &str),
    (gfp, gfp_flags): (Cow<'_, str>, Gfp),
    counts: Counts,
) -> (MmShrinkSlabStart, String) {
    let (text, split) = (format!("{gfp}{scan}"), gfp.len() as u32);
    let start = MmShrinkSlabStart {
        shr: Hex(number as u64 + 1),
        shrink: Sym(Bytes { start: split, len: scan.len() as u32 }.to_slot()),
        nr_objects_to_shrink: counts.left as i64,
        gfp_flags,
        cache_items: counts.freeable,
        delta: counts.delta,
        total_scan: counts.total as i64,
        nid: None,
        priority: None,
        pgs_scanned: None,
        lru_pgs: None,
    };
    (start, text)
}

impl TaskCtx<'_> {
    /// Shrinks all caches of a node.
    pub(crate) fn shrink_slab(&mut self, control: &Control, node: usize) {
        for number in 0..self.kernel.reclaim.shrinkers.len() {
            self.spend(self.memory.costs.count_objects);
            self.do_shrink_slab(control, node, number);
        }
    }

    /// Objects of a shrinker that can be freed on a node (`vfs_pressure_ratio`).
    fn freeable(&self, number: usize, node: usize) -> u64 {
        let shrinker = &self.kernel.reclaim.shrinkers[number];
        let all = shrinker.freeable[node] + if shrinker.dentries { self.memory.dentries.unused(node) } else { 0 };
        if shrinker.scan == SUPERBLOCK { all * self.kernel.reclaim.rules.vfs_cache_pressure / 100 } else { all }
    }

    /// Pages on the lists of a node.
    fn evictable(&self, node: usize) -> i64 {
        List::EVICTABLE.iter().map(|&list| self.kernel.stat.pages.node_lru(node, list as usize)).sum::<u64>() as i64
    }

    /// Frees this many objects of a shrinker, the oldest; returns their number.
    fn free_objects(&mut self, number: usize, node: usize, count: u64) -> u64 {
        let shrinker = &mut self.kernel.reclaim.shrinkers[number];
        let known = count.min(shrinker.freeable[node]);
        shrinker.freeable[node] -= known;
        let dentries = shrinker.dentries && known < count;
        known + if dentries { self.memory.dentries.prune(self.kernel, self.cpu, node, count - known) } else { 0 }
    }

    fn do_shrink_slab(&mut self, control: &Control, node: usize, number: usize) {
        let freeable = self.freeable(number, node);
        if freeable == 0 {
            return;
        }
        let shrinker = &mut self.kernel.reclaim.shrinkers[number];
        let deferred = std::mem::take(&mut shrinker.deferred[node]);
        let (mut total, delta) = to_scan(freeable, shrinker.seeks, deferred, control.priority);
        let counts = Counts { left: deferred, freeable, delta, total };
        let (start, text) = start_of((number, &shrinker.scan), self.kernel.probe.gfp(control.gfp), counts);
        let (nid, priority) = (Some(node as i32), Some(control.priority as i32));
        // The share of a node's pages that is scanned at this priority.
        let lru = self.kernel.probe.old_events().then(|| self.evictable(node));
        let (pgs_scanned, lru_pgs) = (lru.map(|pages| pages >> control.priority), lru);
        let start = MmShrinkSlabStart { nid, priority, pgs_scanned, lru_pgs, ..start };
        let (mut scanned, mut freed) = (0, 0);
        let batch = self.kernel.reclaim.shrinkers[number].batch;
        // A file system's objects are not freed for requests that may not call it (`SHRINK_STOP`).
        let stops = !control.fs && self.kernel.reclaim.shrinkers[number].scan == SUPERBLOCK;
        while total >= batch || total >= freeable {
            let n = total.min(batch);
            if n == 0 || stops {
                break;
            }
            freed += self.free_objects(number, node, n);
            total -= n;
            scanned += n;
        }
        let left = (deferred + delta).saturating_sub(scanned).min(2 * freeable);
        self.kernel.reclaim.shrinkers[number].deferred[node] += left;
        self.kernel.stat.events.reclaim.slabs_scanned += scanned;
        let (at, task, cpu) = (self.now(), self.task, self.cpu);
        self.kernel.probe.write(at, cpu, task, &start, text.as_bytes());
        self.spend(self.memory.costs.scan_object * scanned);
        let end = MmShrinkSlabEnd {
            shr: start.shr,
            shrink: start.shrink,
            unused_scan: deferred as i64,
            new_scan: left as i64,
            retval: freed as i64,
            total_scan: total as i64,
            nid: start.nid,
        };
        self.kernel.probe.write(self.now(), cpu, task, &end, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::to_scan;

    #[test]
    fn priorities_divide_the_cache() {
        assert_eq!(to_scan(10_000, 2, 0, 12), (4, 4));
        assert_eq!(to_scan(10_000, 2, 1 << 14, 12), (8, 4));
        assert_eq!(to_scan(100, 0, 0, 12), (50, 50));
        // Never more than twice what there is.
        assert_eq!(to_scan(100, 2, 1000, 0), (200, 200));
    }
}

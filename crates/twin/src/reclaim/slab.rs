//! Shrinkers: `shrink_slab`, `do_shrink_slab` (4.20 to 6.12).
//!
//! A shrinker is a cache of the kernel of which a number of objects can be freed; how many of those that are scanned are
//! freed is a part that stays the same. Left out: what the objects are, the pages that hold them
//! other than by a number of objects per page, shrinkers per cgroup. Checked by tests of the arithmetic here.

use super::{Control, World};
use mmtwin_event::value::{Bytes, Gfp, Hex, Sym};
use mmtwin_event::vocabulary::{MmShrinkSlabEnd, MmShrinkSlabStart};

/// Objects that are scanned at once unless a shrinker says otherwise (`SHRINK_BATCH`).
const BATCH: u64 = 128;

/// A cache that can be shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shrinker {
    /// Function that scans, as the kernel prints it.
    pub scan: String,
    /// Relative cost of an object; 2 is usual, 0: objects cost nothing to make again.
    pub seeks: u64,
    /// Objects that are scanned at once.
    batch: u64,
    /// By node: objects that can be freed.
    pub freeable: Vec<u64>,
    /// By node: scans that earlier calls left over.
    pub deferred: Vec<u64>,
}

impl Shrinker {
    /// A shrinker of nothing yet; a batch of 0 is the usual one.
    pub(crate) fn new(scan: &str, seeks: u64, batch: u64, nodes: usize) -> Shrinker {
        let batch = if batch > 0 { batch } else { BATCH };
        Shrinker { scan: scan.into(), seeks, batch, freeable: vec![0; nodes], deferred: vec![0; nodes] }
    }
}

/// How many objects to scan of so many at a priority, and of these what the priority alone asks for.
fn to_scan(freeable: u64, seeks: u64, deferred: u64, priority: u32) -> (u64, u64) {
    let delta = ((freeable >> priority) * 4).checked_div(seeks).unwrap_or(freeable / 2);
    (((deferred >> priority) + delta).min(2 * freeable), delta)
}

impl World<'_> {
    /// Shrinks all caches of a node.
    pub(super) fn shrink_slab(&mut self, control: &Control, node: usize) {
        for number in 0..self.kernel.reclaim.shrinkers.len() {
            self.do_shrink_slab(control, node, number);
        }
    }

    fn do_shrink_slab(&mut self, control: &Control, node: usize, number: usize) {
        let shrinker = &mut self.kernel.reclaim.shrinkers[number];
        let freeable = shrinker.freeable[node];
        if freeable == 0 {
            return;
        }
        let deferred = std::mem::take(&mut shrinker.deferred[node]);
        let (mut total, delta) = to_scan(freeable, shrinker.seeks, deferred, control.priority);
        let text = format!("{}{}", control.gfp, shrinker.scan);
        let split = control.gfp.len() as u32;
        let start = MmShrinkSlabStart {
            shr: Hex(number as u64 + 1),
            shrink: Sym(Bytes { start: split, len: text.len() as u32 - split }.to_slot()),
            nr_objects_to_shrink: deferred as i64,
            gfp_flags: Gfp(Bytes { start: 0, len: split }.to_slot()),
            cache_items: freeable,
            delta,
            total_scan: total as i64,
            nid: Some(node as i32),
            priority: Some(control.priority as i32),
            pgs_scanned: None,
            lru_pgs: None,
        };
        let (mut scanned, mut freed) = (0, 0);
        let batch = self.kernel.reclaim.shrinkers[number].batch;
        while total >= batch || total >= freeable {
            let n = total.min(batch);
            if n == 0 {
                break;
            }
            let shrinker = &mut self.kernel.reclaim.shrinkers[number];
            let gone = n.min(shrinker.freeable[node]);
            shrinker.freeable[node] -= gone;
            freed += gone;
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

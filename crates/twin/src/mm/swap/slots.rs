//! Swap slots and which of them are free: `scan_swap_map_slots`, `scan_swap_map_try_ssd_cluster` (4.14 to 6.12).
//!
//! Slots are taken one after another from a cluster, then from the cluster that has been free for longest, and singly
//! where no cluster is free: that search passes one slot after another before 6.12, so that it takes long where swap is
//! nearly full. A huge page takes a cluster. Since 6.18 each CPU goes on where it took its last slot, to the end of that
//! cluster, then from the start of the cluster that has had room for longest, and only then in a free one
//! (`cluster_alloc_swap_entry`): slots that are taken one after another are then seldom neighbours, once some were freed.
//! Not modelled: a cluster for each CPU before, and slots that CPUs keep for themselves. Checked by tests here, and beside a
//! guest of 7.3 (docs/model/notebook.md, "Disks that take time").

use crate::frame::Pfn;
use std::collections::VecDeque;

/// Slots of a cluster (`SWAPFILE_CLUSTER`): those of a huge page.
const CLUSTER: u32 = 512;

/// A slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// What the swap cache has: the page, or what reclaim left when that was freed.
    entry: u32,
    is_page: bool,
    /// Number of the cgroup that it is charged to.
    pub cgroup: u8,
    /// Number of the page among those of all regions, or [`FREE`].
    pub content: u32,
}

/// Content of a free slot.
const FREE: u32 = u32::MAX;

impl Slot {
    const EMPTY: Slot = Slot { entry: 0, is_page: false, cgroup: 0, content: FREE };

    /// Page in the swap cache.
    pub fn cached(self) -> Option<Pfn> {
        self.is_page.then_some(self.entry)
    }

    /// A page is in the swap cache.
    pub fn set_cached(&mut self, page: Pfn) {
        (self.entry, self.is_page) = (page, true);
    }

    /// What reclaim left when the page was freed; 0: nothing.
    pub fn shadow(self) -> u32 {
        if self.is_page { 0 } else { self.entry }
    }

    /// The page has left memory.
    pub fn set_shadow(&mut self, shadow: u32) {
        (self.entry, self.is_page) = (shadow, false);
    }

    /// Number of the page that is here; `None`: the slot is free.
    pub fn content(self) -> Option<u32> {
        Some(self.content).filter(|content| *content != FREE)
    }
}

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    size: u32,
    /// Those of clusters that were ever used.
    all: Vec<Slot>,
    /// Slots that are taken, by cluster.
    taken: Vec<u32>,
    /// Clusters that became free, in this order.
    free: VecDeque<u32>,
    /// Where the next slot is looked for, and the cluster up to whose end it is.
    next: u32,
    current: Option<u32>,
    /// Slots that searches without a free cluster have passed, and nobody has asked for.
    passed: u64,
    /// Since 6.18: clusters with room that are not free, in the order in which they came to be so, and by CPU the place
    /// behind the last slot that it took.
    nonfull: Option<Nonfull>,
}

#[derive(Clone, Debug, Default)]
struct Nonfull {
    clusters: VecDeque<u32>,
    next: Vec<Option<u32>>,
}

impl Slots {
    /// So many slots, all free.
    pub fn new(size: u32) -> Slots {
        let (all, taken, free) = Default::default();
        Slots { size, all, taken, free, next: 0, current: None, passed: 0, nonfull: None }
    }

    /// The same where clusters with room are preferred to free ones.
    pub fn nonfull_first(mut self) -> Slots {
        self.nonfull = Some(Nonfull::default());
        self
    }

    /// Slots, free or not.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// A slot.
    pub fn get(&self, slot: u32) -> Slot {
        self.all[slot as usize]
    }

    /// The same, to be changed.
    pub fn at(&mut self, slot: u32) -> &mut Slot {
        &mut self.all[slot as usize]
    }

    /// Slots from one on that were ever used.
    pub fn from(&mut self, first: u32) -> impl Iterator<Item = &mut Slot> {
        self.all[first as usize..].iter_mut()
    }

    /// Slots of clusters that were ever used.
    pub fn used(&self) -> u64 {
        self.all.len() as u64
    }

    /// The first of `count` slots, one or a huge page's, which belong to page 0 until they are assigned; `None`: there are
    /// not so many in one piece. A CPU takes them.
    pub fn take(&mut self, cpu: u32, count: u32) -> Option<u32> {
        if count > 1 {
            let first = self.free_cluster(count)? * CLUSTER;
            self.assign(first, count);
            return Some(first);
        }
        if let Some(mut nonfull) = self.nonfull.take() {
            let slot = self.take_nonfull(&mut nonfull, cpu as usize);
            self.nonfull = Some(nonfull);
            return slot;
        }
        let (from, mut searches) = (self.next, false);
        loop {
            if let Some(slot) = self.in_current() {
                if searches {
                    self.passed += u64::from(if slot < from { slot + self.size - from } else { slot - from });
                }
                self.assign(slot, 1);
                self.next = slot + 1;
                return Some(slot);
            }
            let last = self.current.take();
            let empty = self.free_cluster(1);
            searches |= empty.is_none();
            let cluster = empty.or_else(|| self.with_free_place(last.unwrap_or(0)))?;
            if let Some(last) = last.filter(|last| self.taken[*last as usize] == 0 && *last != cluster) {
                self.free.push_back(last);
            }
            (self.current, self.next) = (Some(cluster), cluster * CLUSTER);
        }
    }

    /// One slot, of a cluster with room if there is one.
    fn take_nonfull(&mut self, of: &mut Nonfull, cpu: usize) -> Option<u32> {
        if of.next.len() <= cpu {
            of.next.resize(cpu + 1, None);
        }
        let own = of.next[cpu].take().and_then(|from| self.free_slot_of(from / CLUSTER, from));
        let slot = own.or_else(|| {
            let with_room = of.clusters.pop_front();
            let cluster = with_room.or_else(|| self.free_cluster(1))?;
            of.clusters.push_back(cluster);
            self.free_slot_of(cluster, cluster * CLUSTER)
        })?;
        self.assign(slot, 1);
        let cluster = slot / CLUSTER;
        // It may have become free since.
        if self.taken[cluster as usize] == 1 && !of.clusters.contains(&cluster) {
            self.free.retain(|free| *free != cluster);
            of.clusters.push_back(cluster);
        }
        if self.taken[cluster as usize] == self.len_of(cluster) {
            of.clusters.retain(|of| *of != cluster);
        }
        of.next[cpu] = Some(slot + 1).filter(|next| next / CLUSTER == cluster && *next < self.size);
        Some(slot)
    }

    /// The first free slot of a cluster from one on.
    fn free_slot_of(&self, cluster: u32, from: u32) -> Option<u32> {
        (from..cluster * CLUSTER + self.len_of(cluster)).find(|&slot| self.get(slot).content().is_none())
    }

    /// Slots that searches have passed since the last call.
    pub fn take_passed(&mut self) -> u64 {
        std::mem::take(&mut self.passed)
    }

    /// A slot is free again.
    pub fn free(&mut self, slot: u32) {
        *self.at(slot) = Slot::EMPTY;
        let cluster = slot / CLUSTER;
        let was_full = self.taken[cluster as usize] == self.len_of(cluster);
        self.taken[cluster as usize] -= 1;
        let is_free = self.taken[cluster as usize] == 0 && self.current != Some(cluster);
        if is_free {
            self.free.push_back(cluster);
        }
        match &mut self.nonfull {
            Some(of) if is_free => of.clusters.retain(|of| *of != cluster),
            Some(of) if was_full => of.clusters.push_back(cluster),
            Some(_) | None => {}
        }
    }

    fn assign(&mut self, first: u32, count: u32) {
        self.from(first).take(count as usize).for_each(|slot| slot.content = 0);
        self.taken[(first / CLUSTER) as usize] += count;
    }

    /// The next free slot of the current cluster.
    fn in_current(&self) -> Option<u32> {
        self.free_slot_of(self.current?, self.next)
    }

    /// The first cluster behind another that is not full.
    fn with_free_place(&self, last: u32) -> Option<u32> {
        let all = self.taken.len() as u32;
        let mut behind = (last + 1..all).chain(0..all.min(last + 1));
        behind.find(|&cluster| self.taken[cluster as usize] < self.len_of(cluster))
    }

    fn len_of(&self, cluster: u32) -> u32 {
        CLUSTER.min(self.size - cluster * CLUSTER)
    }

    /// The cluster that has been free for longest, or one that was never used, of so many slots at least.
    fn free_cluster(&mut self, count: u32) -> Option<u32> {
        let has_room = |&cluster: &u32| self.len_of(cluster) >= count;
        if let Some(at) = self.free.iter().position(has_room) {
            return self.free.remove(at);
        }
        let new = self.taken.len() as u32;
        let new = Some(new).filter(|new| new * CLUSTER < self.size).filter(has_room)?;
        self.all.extend(std::iter::repeat_n(Slot::EMPTY, self.len_of(new) as usize));
        self.taken.push(0);
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_in_order_and_reused_when_no_cluster_is_free() {
        let mut slots = Slots::new(2 * CLUSTER);
        let all = 2 * CLUSTER;
        assert!((0..CLUSTER + 1).all(|slot| slots.take(0, 1) == Some(slot)));
        // The current cluster goes on, although there are free slots before it.
        (0..9).for_each(|slot| slots.free(slot));
        assert!((CLUSTER + 1..all).all(|slot| slots.take(0, 1) == Some(slot)));
        assert!((0..9).all(|slot| slots.take(0, 1) == Some(slot)));
        assert_eq!(slots.take(0, 1), None);
        assert_eq!(slots.take_passed(), 0, "the beginning is behind the end");
        slots.free(700);
        assert_eq!((slots.take(0, 1), slots.take(0, 1)), (Some(700), None));
        assert_eq!(slots.take_passed(), 700 - 9);
        assert_eq!(slots.get(700).content(), Some(0));
    }

    #[test]
    fn since_6_18_clusters_with_room_come_before_free_ones() {
        let mut slots = Slots::new(4 * CLUSTER).nonfull_first();
        assert!((0..CLUSTER).all(|slot| slots.take(0, 1) == Some(slot)));
        assert_eq!(slots.take(0, 1), Some(CLUSTER));
        // Another CPU finds the cluster of the first, which goes on behind its own last slot.
        assert_eq!(
            (slots.take(1, 1), slots.take(0, 1), slots.take(1, 1)),
            (Some(CLUSTER + 1), Some(CLUSTER + 2), Some(CLUSTER + 3))
        );
        [5, 9].iter().for_each(|&slot| slots.free(slot));
        assert!((CLUSTER + 4..2 * CLUSTER).all(|slot| slots.take(0, 1) == Some(slot)));
        assert_eq!([0, 0, 0].map(|cpu| slots.take(cpu, 1)), [Some(5), Some(9), Some(2 * CLUSTER)]);
        (0..CLUSTER).for_each(|slot| slots.free(slot));
        assert_eq!((slots.take(2, 1), slots.take(0, CLUSTER)), (Some(2 * CLUSTER + 1), Some(0)));
    }

    #[test]
    fn a_cluster_is_free_when_all_of_it_is() {
        let mut slots = Slots::new(3 * CLUSTER + 7);
        assert_eq!(
            [slots.take(0, CLUSTER), slots.take(0, CLUSTER), slots.take(0, 1)],
            [Some(0), Some(CLUSTER), Some(2 * CLUSTER)]
        );
        assert_eq!(slots.take(0, CLUSTER), None, "what is left is no whole cluster");
        (0..CLUSTER).for_each(|slot| slots.free(slot));
        assert_eq!((slots.take(0, CLUSTER), slots.used()), (Some(0), 3 * u64::from(CLUSTER)));
    }
}

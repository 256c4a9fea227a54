//! LRU lists: `struct lruvec`, `lruvec_add_folio`, `lruvec_del_folio`, `lru_note_cost`. A node has one lruvec per cgroup
//! with five lists; before 4.8 a zone.
//!
//! New pages enter at the head, reclaim takes from the tail. Sizes count pages, lists count blocks. Checked by a property
//! test of [`super`] and against guests (docs/fidelity.md).

pub(crate) mod folio_batch;

use crate::frame::{Flag, Frames, Pfn, Ring, ZONES, ZoneKind};
use crate::vmstat::{LISTS, Pages};

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum List {
    InactiveAnon = 0,
    ActiveAnon = 1,
    InactiveFile = 2,
    ActiveFile = 3,
    Unevictable = 4,
}

impl List {
    /// The lists that reclaim scans, in its order.
    pub(crate) const EVICTABLE: [List; 4] =
        [List::InactiveAnon, List::ActiveAnon, List::InactiveFile, List::ActiveFile];

    /// The list that a page belongs to by its flags.
    #[inline]
    pub(crate) fn of(frames: &Frames, page: Pfn) -> List {
        if frames.has(page, Flag::Unevictable) {
            return List::Unevictable;
        }
        let file = usize::from(!frames.has(page, Flag::Swapbacked));
        List::EVICTABLE[2 * file + usize::from(frames.has(page, Flag::Active))]
    }

    pub(crate) fn is_active(self) -> bool {
        matches!(self, List::ActiveAnon | List::ActiveFile)
    }

    pub(crate) fn is_file(self) -> bool {
        matches!(self, List::InactiveFile | List::ActiveFile)
    }
}

/// Cost of refaults and writes, charged to the lists: anonymous memory, files.
pub(crate) type PerType = [u64; 2];

/// The lists of a cgroup on a node, and what reclaim remembers of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lruvec {
    pub lists: [Ring; LISTS],
    /// Pages by list and kind of zone.
    size: [[u64; ZONES]; LISTS],
    /// Recent cost of reclaim of each type.
    pub cost: PerType,
    /// All cost ever, where it is sampled, and as much of it as was.
    pub cost_ever: PerType,
    sampled: PerType,
    /// Evictions and activations so far: the clock of refault distances.
    pub nonresident_age: u64,
    /// Refaults that were activated, ever.
    pub activated: PerType,
    /// The same at the last reclaim.
    pub refaults: PerType,
}

impl Lruvec {
    /// Pages of a list in zones up to a kind.
    pub(crate) fn size(&self, list: List, highest: ZoneKind) -> u64 {
        self.size[list as usize][..=highest as usize].iter().sum()
    }

    /// Pages of a list.
    pub(crate) fn pages(&self, list: List) -> u64 {
        self.size[list as usize].iter().sum()
    }
}

/// `inactive_is_low`: fewer inactive pages than keep enough of them in sight.
fn inactive_is_low(inactive: u64, active: u64) -> bool {
    let gigabytes = (inactive + active) >> (30 - crate::hw::PAGE_SHIFT);
    let ratio = if gigabytes > 0 { (10 * gigabytes).isqrt() } else { 1 };
    inactive * ratio < active
}

/// All LRU lists.
#[derive(Clone, Debug)]
pub(crate) struct Lru {
    /// By node or zone, then cgroup.
    vecs: Vec<Lruvec>,
    /// By cgroup: its parent; the root is its own.
    parents: Vec<usize>,
    /// Lists belong to zones.
    per_zone_lru: bool,
    /// Flushed statistics of each lruvec, where they lag the current values.
    flushed: Vec<Shown>,
}

/// Statistics of a lruvec, including those of the cgroups below (`lruvec_page_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Pages by list.
    pages: [u64; LISTS],
    /// Refaults that were activated, ever: anonymous memory, files.
    pub activated: PerType,
    /// Cost, where it is sampled, ever.
    cost_ever: PerType,
}

impl Shown {
    /// Pages of a list.
    pub(crate) fn pages(&self, list: List) -> u64 {
        self.pages[list as usize]
    }

    /// True if too few pages of a type are inactive.
    pub(crate) fn inactive_is_low(&self, file: bool) -> bool {
        let (inactive, active) =
            if file { (List::InactiveFile, List::ActiveFile) } else { (List::InactiveAnon, List::ActiveAnon) };
        inactive_is_low(self.pages(inactive), self.pages(active))
    }
}

impl Lru {
    /// Empty lists; `parents` are those of all cgroups, of which the first is the root.
    pub(crate) fn new(nodes: usize, parents: Vec<usize>, per_zone_lru: bool) -> Lru {
        let places = if per_zone_lru { nodes * ZONES } else { nodes };
        Lru { vecs: vec![Lruvec::default(); places * parents.len()], parents, per_zone_lru, flushed: Vec::new() }
    }

    /// Lruvecs there are.
    pub(crate) fn len(&self) -> usize {
        self.vecs.len()
    }

    /// Nodes or zones with lists.
    pub(crate) fn places(&self) -> usize {
        self.vecs.len() / self.parents.len()
    }

    /// Number of the lruvec of a cgroup on a node, or in a zone.
    pub(crate) fn number(&self, place: usize, cgroup: usize) -> usize {
        place * self.parents.len() + cgroup
    }

    /// A lruvec and those of the cgroups above its own.
    fn and_above(&self, number: usize) -> impl Iterator<Item = usize> + use<'_> {
        let (node, cgroup) = (number / self.parents.len(), number % self.parents.len());
        let up = move |&cgroup: &usize| (cgroup != 0).then(|| self.parents[cgroup]);
        std::iter::successors(Some(cgroup), up).map(move |cgroup| self.number(node, cgroup))
    }

    /// A cgroup and all below it.
    pub(crate) fn below(&self, cgroup: usize) -> Vec<usize> {
        let is_below = |&at: &usize| self.and_above(at).any(|above| above == cgroup);
        (0..self.parents.len()).filter(is_below).collect()
    }

    /// Sum over a lruvec and those of the cgroups below its own, which is what the kernel shows of it.
    pub(crate) fn tree(&self, number: usize, of: impl Fn(&Lruvec) -> u64) -> u64 {
        let (node, cgroup) = (number / self.parents.len(), number % self.parents.len());
        if self.parents.len() == 1 {
            return of(&self.vecs[number]);
        }
        self.below(cgroup).into_iter().map(|cgroup| of(&self.vecs[self.number(node, cgroup)])).sum()
    }

    /// Pages of a list, those of the cgroups below among them.
    pub(crate) fn pages(&self, number: usize, list: List) -> u64 {
        self.tree(number, |vec| vec.pages(list))
    }

    /// Statistics of a lruvec.
    pub(crate) fn shown(&self, number: usize) -> Shown {
        self.flushed.get(number).copied().unwrap_or_else(|| self.summed(number))
    }

    fn summed(&self, number: usize) -> Shown {
        let mut all = Shown::default();
        for list in List::EVICTABLE {
            all.pages[list as usize] = self.pages(number, list);
        }
        all.activated = [0, 1].map(|of| self.tree(number, |vec| vec.activated[of]));
        all.cost_ever = [0, 1].map(|of| self.tree(number, |vec| vec.cost_ever[of]));
        all
    }

    /// From now on statistics equal the current values.
    pub(crate) fn flush(&mut self) {
        self.flushed = (0..self.vecs.len()).map(|number| self.summed(number)).collect();
    }

    /// Notes what reclaiming a type has cost, up to the root; old costs fade as the lists turn over.
    pub(crate) fn note_cost(&mut self, number: usize, file: bool, cost: u64) {
        let all: Vec<usize> = self.and_above(number).collect();
        for at in all {
            let shown = self.shown(at);
            let pages: u64 = List::EVICTABLE.into_iter().map(|list| shown.pages(list)).sum();
            let costs = &mut self.vecs[at].cost;
            costs[usize::from(file)] += cost;
            if costs[0] + costs[1] > pages / 4 {
                costs.iter_mut().for_each(|cost| *cost /= 2);
            }
        }
    }

    /// Adds what reclaim has cost since the last sample; old costs fade.
    pub(crate) fn sample_cost(&mut self, number: usize) {
        let shown = self.shown(number);
        let pages: u64 = List::EVICTABLE.into_iter().map(|list| shown.pages(list)).sum();
        let vec = &mut self.vecs[number];
        for of in [0, 1] {
            vec.cost[of] += shown.cost_ever[of].saturating_sub(vec.sampled[of]);
        }
        vec.sampled = shown.cost_ever;
        while vec.cost[0] + vec.cost[1] > pages / 4 {
            vec.cost.iter_mut().for_each(|cost| *cost /= 2);
        }
    }

    /// Evictions and activations: the clocks up to the root advance.
    pub(crate) fn age(&mut self, number: usize, pages: u64) {
        let (node, mut cgroup) = (number / self.parents.len(), number % self.parents.len());
        loop {
            let at = self.number(node, cgroup);
            self.vecs[at].nonresident_age += pages;
            if cgroup == 0 {
                return;
            }
            cgroup = self.parents[cgroup];
        }
    }

    /// Number of the lruvec that an allocated page belongs to.
    #[inline]
    pub(crate) fn number_of(&self, frames: &Frames, page: Pfn) -> usize {
        let zone = frames.zone(page);
        match self.per_zone_lru {
            // Lists of a zone hold pages of all cgroups; lists of cgroups are not modelled, as their limits are not.
            true => self.number(zone, 0),
            false => self.number(zone / ZONES, frames.cgroup(page)),
        }
    }

    pub(crate) fn vec(&self, number: usize) -> &Lruvec {
        &self.vecs[number]
    }

    pub(crate) fn vec_mut(&mut self, number: usize) -> &mut Lruvec {
        &mut self.vecs[number]
    }

    /// Puts a page on its list: at the head, or at the tail to be reclaimed next.
    #[inline]
    pub(crate) fn add(&mut self, frames: &mut Frames, pages: &mut Pages, page: Pfn, tail: bool) {
        let (number, list) = (self.number_of(frames, page), List::of(frames, page));
        frames.set_flag(page, Flag::Lru, true);
        self.resize(frames, pages, number, list, page, true);
        let ring = &mut self.vecs[number].lists[list as usize];
        if tail { ring.push_tail(frames, page) } else { ring.push_head(frames, page) }
    }

    /// Takes a page off its list, if it is on one.
    #[inline]
    pub(crate) fn remove(&mut self, frames: &mut Frames, pages: &mut Pages, page: Pfn) -> bool {
        if !frames.set_flag(page, Flag::Lru, false) {
            return false;
        }
        let (number, list) = (self.number_of(frames, page), List::of(frames, page));
        self.vecs[number].lists[list as usize].remove(frames, page);
        self.resize(frames, pages, number, list, page, false);
        true
    }

    /// Takes the oldest page off a list; it stays counted there.
    pub(crate) fn take_oldest(&mut self, number: usize, list: List) -> Option<Pfn> {
        self.vecs[number].lists[list as usize].pop_tail()
    }

    /// Counts a page that was added to a list or removed from it.
    #[inline]
    pub(crate) fn resize(
        &mut self,
        frames: &Frames,
        pages: &mut Pages,
        number: usize,
        list: List,
        page: Pfn,
        more: bool,
    ) {
        let (zone, n) = (frames.zone(page), 1u64 << frames.order(page));
        let size = &mut self.vecs[number].size[list as usize][zone % ZONES];
        *size = if more { *size + n } else { *size - n };
        pages.add_lru(zone, list as usize, if more { n as i64 } else { -(n as i64) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_fade_with_the_lists_length_up_to_the_root() {
        let mut lru = Lru::new(1, vec![0, 0, 1], false);
        lru.vecs[2].size[List::InactiveFile as usize][2] = 400;
        lru.vecs[1].size[List::InactiveAnon as usize][2] = 400;
        lru.note_cost(2, true, 100);
        assert_eq!([0, 1, 2].map(|at| lru.vec(at).cost), [[0, 100]; 3]);
        lru.note_cost(2, false, 2);
        assert_eq!([0, 1, 2].map(|at| lru.vec(at).cost), [[2, 100], [2, 100], [1, 50]]);
        assert_eq!([0, 1, 2].map(|at| lru.pages(at, List::InactiveFile)), [400; 3]);
        assert_eq!([0, 1, 2].map(|at| lru.pages(at, List::InactiveAnon)), [400, 400, 0]);
    }

    #[test]
    fn statistics_are_as_old_as_the_last_flush() {
        let mut lru = Lru::new(1, vec![0, 0], false);
        let file = |lru: &Lru| [0, 1].map(|at| lru.shown(at).pages(List::ActiveFile));
        lru.vecs[1].size[List::ActiveFile as usize][2] = 9;
        assert_eq!((file(&lru), lru.shown(0).inactive_is_low(true)), ([9, 9], true));
        lru.flush();
        (lru.vecs[0].size[List::InactiveFile as usize][2], lru.vecs[1].activated) = (20, [3, 4]);
        assert_eq!((lru.shown(0).inactive_is_low(true), lru.shown(0).activated), (true, [0, 0]));
        lru.flush();
        assert_eq!((lru.shown(0).inactive_is_low(true), lru.shown(0).activated), (false, [3, 4]));
    }

    #[test]
    fn large_lists_need_few_inactive_pages() {
        assert!(inactive_is_low(99, 100) && !inactive_is_low(100, 100));
        // 1 GiB: a ratio of 3; 10 GiB: of 10.
        assert!(inactive_is_low(66_000, 200_000) && !inactive_is_low(66_667, 200_000));
        assert!(inactive_is_low(239_000, 2_400_000) && !inactive_is_low(240_000, 2_400_000));
    }
}

//! Page tables of regions that several processes may map: files and shared memory.
//!
//! Stands for the entries of each mapping (`set_pte_range`, `zap_pte_range`, `page_mapcount`; every release). Anonymous memory
//! has one mapping, whose entries are the region's own. Not modelled: page tables of all but the first process as memory.
//! Checked by tests here and through faults and counters in `tests/numa_files.rs`.

use super::{Entry, GONE, HUGE, Region};
use crate::frame::Pfn;
use crate::mm::prot_numa::Bits;
use crate::mm::readahead::Readahead;
use crate::mm::swap::readahead::Window;

/// The pages that each mapping of a region has.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapped {
    by: Vec<Bits>,
    /// How many of them are on each node.
    by_node: Vec<Vec<u64>>,
    /// Of those, the ones that were accessed since the last check of reclaim.
    young: Vec<Bits>,
    /// Pages that some mapping has.
    any: u64,
}

impl Mapped {
    fn has(&self, mapper: usize, page: u64) -> bool {
        self.by.get(mapper).is_some_and(|pages| pages.has(page))
    }

    fn count(&self, page: u64) -> usize {
        self.by.iter().filter(|pages| pages.has(page)).count()
    }
}

impl Region {
    /// One more process maps the region, nothing of it yet; the number of its mapping.
    pub(crate) fn add_mapper(&mut self) -> usize {
        let pages = if self.anon { 0 } else { self.len() };
        self.mapped.by.push(Bits::new(pages));
        self.mapped.by_node.push(vec![0; self.nodes()]);
        self.mapped.young.push(Bits::new(pages));
        self.readahead.push(Readahead::default());
        self.swap_readahead.push(Window::default());
        self.mapped.by.len() - 1
    }

    /// True if a mapping has a page, or would have the page that is there.
    #[inline]
    pub(crate) fn is_mapped_by(&self, mapper: usize, page: u64) -> bool {
        self.anon || self.mapped.has(mapper, page)
    }

    /// True if an access of a page by a mapping is not a fault.
    #[inline]
    pub(crate) fn is_mapped(&self, mapper: usize, page: u64, write: bool) -> bool {
        match self.entry(page) {
            Entry::Present(_) => self.is_mapped_by(mapper, page),
            Entry::Zero => !write,
            Entry::Absent | Entry::Gone(_) => false,
        }
    }

    /// True if a page is in some page table.
    #[inline]
    pub(crate) fn is_mapped_by_any(&self, page: u64) -> bool {
        match self.entry(page) {
            Entry::Present(_) => self.mapcount(page) > 0,
            Entry::Zero => true,
            Entry::Absent | Entry::Gone(_) => false,
        }
    }

    /// Mappings of the region, one if no process maps it.
    pub(crate) fn mappers(&self) -> usize {
        self.mapped.by.len().max(1)
    }

    /// A page of a shared region is accessed through one mapping.
    #[inline]
    pub(super) fn touch_shared(&mut self, mapper: usize, page: u64) {
        if let Some(own) = self.mapped.young.get_mut(mapper).filter(|_| !self.anon) {
            own.insert(page);
        }
    }

    /// Mappings that have accessed a page of a shared region since the last call, one bit for each.
    pub(super) fn take_touched(&mut self, page: u64) -> u64 {
        let own = self.mapped.young.iter_mut().enumerate().filter(|(_, own)| own.count() > 0);
        own.fold(0, |bits, (number, own)| bits | u64::from(own.remove(page)) << number.min(63))
    }

    /// Entry of a mapping at a page: none if the page is in memory and only other mappings have it.
    #[inline]
    pub(crate) fn entry_of(&self, mapper: usize, page: u64) -> Entry {
        match self.entry(page) {
            Entry::Present(_) if !self.is_mapped_by(mapper, page) => Entry::Absent,
            entry => entry,
        }
    }

    /// Mappings that have a page (`page_mapcount`).
    pub(crate) fn mapcount(&self, page: u64) -> usize {
        if self.anon { usize::from(self.entries[page as usize] < GONE) } else { self.mapped.count(page) }
    }

    /// Mappings that have one of a folio's pages.
    pub(crate) fn mappings_of(&self, pages: &std::ops::Range<u64>) -> usize {
        self.mapped.by.iter().filter(|own| own.count() > 0 && pages.clone().any(|page| own.has(page))).count()
    }

    /// Pages of the region in a mapping: its part of the process's resident pages.
    pub(crate) fn resident(&self, mapper: usize) -> u64 {
        if self.anon { self.present() } else { self.mapped.by.get(mapper).map_or(0, Bits::count) }
    }

    /// Entries of page tables for the region in a mapping: one for each page that is mapped, a huge page having one too.
    pub(crate) fn table_entries(&self, mapper: usize, is_huge: impl Fn(Pfn) -> bool) -> u64 {
        let first = |block: u64| matches!(self.entry(block * HUGE), Entry::Present(pfn) if is_huge(pfn));
        let blocks = if self.may_be_huge() { self.len() / HUGE } else { 0 };
        let huge = (0..blocks).filter(|&block| first(block)).count() as u64;
        self.resident(mapper).saturating_sub(huge * (HUGE - 1))
    }

    /// Pages of the region in a mapping by node, as `numa_maps` counts them: page cache that it does not map is not there.
    pub(crate) fn resident_by_node(&self, mapper: usize) -> Vec<u64> {
        match self.mapped.by_node.get(mapper).filter(|_| !self.anon) {
            Some(of_files) => of_files.clone(),
            None if self.anon => self.by_node(),
            None => vec![0; self.nodes()],
        }
    }

    /// Pages of a range that a mapping has not.
    pub(crate) fn unmapped_within(&self, mapper: usize, pages: &std::ops::Range<u64>) -> u64 {
        let Some(own) = self.mapped.by.get(mapper).filter(|own| !self.anon && own.count() < self.len()) else {
            return 0;
        };
        pages.end - pages.start - own.count_within(pages)
    }

    /// Maps a page of a file or of shared memory, which is on a node; true if no mapping had it.
    pub(crate) fn map_shared(&mut self, mapper: usize, page: u64, node: usize) -> bool {
        if self.anon {
            return false;
        }
        let first = self.mapped.count(page) == 0;
        if let Some(own) = self.mapped.by.get_mut(mapper) {
            self.mapped.by_node[mapper][node] += u64::from(own.insert(page));
            self.mapped.any += u64::from(first);
        }
        first
    }

    /// All mappings lose a page, which is on a node; true if one had it.
    pub(crate) fn unmap_everywhere(&mut self, page: u64, node: usize) -> bool {
        let mut any = false;
        let all = self.mapped.by.iter_mut().zip(&mut self.mapped.by_node);
        for (own, by_node) in all.filter(|(own, _)| own.count() > 0) {
            let had = own.remove(page);
            by_node[node] -= u64::from(had);
            any |= had;
        }
        self.take_touched(page);
        self.mapped.any -= u64::from(any);
        any
    }

    /// Unmaps the first page of some; returns the page, whether no other mapping has it, and whether it was
    /// accessed through this one since the last check of reclaim.
    pub(super) fn unmap_next(
        &mut self,
        mapper: usize,
        among: std::ops::Range<u64>,
        node_of: impl Fn(Pfn) -> usize,
    ) -> Option<(u64, bool, bool)> {
        let own = self.mapped.by.get_mut(mapper)?;
        let page = own.next(among)?;
        own.remove(page);
        if let Entry::Present(pfn) = self.entry(page) {
            self.mapped.by_node[mapper][node_of(pfn)] -= 1;
        }
        let young = self.mapped.young[mapper].remove(page);
        let last = self.mapped.count(page) == 0;
        self.mapped.any -= u64::from(last);
        Some((page, last, young))
    }

    /// A page is now on another node; mappings keep it.
    pub(super) fn relocate_mapped(&mut self, page: u64, from: usize, to: usize) {
        let has = |own: &Bits| own.count() > 0 && own.has(page);
        let all = self.mapped.by.iter().zip(&mut self.mapped.by_node);
        all.filter(|(own, _)| has(own)).for_each(|(_, by_node)| {
            by_node[from] -= 1;
            by_node[to] += 1;
        });
    }

    /// Pages of a file that processes map.
    pub(crate) fn mapped_pages(&self) -> u64 {
        self.mapped.any
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use crate::mm::prot_numa::Unit;
    use crate::page_alloc::Policy;

    #[test]
    fn each_process_maps_for_itself() {
        let shape = |anon| Shape {
            pages: 200,
            parts: 1,
            anon,
            file: !anon,
            huge: Vec::new(),
            exec: false,
            locked: false,
            policy: Policy::Default,
        };
        let mut file = Region::new(shape(false), 2, 0);
        let (a, b) = (file.add_mapper(), file.add_mapper());
        file.put(70, 5, 0);
        assert_eq!((file.entry(70), file.entry_of(a, 70)), (Entry::Present(5), Entry::Absent), "in the cache alone");
        assert!(file.map_shared(a, 70, 0) && !file.is_mapped(b, 70, false));
        assert!(!file.map_shared(b, 70, 0) && file.is_mapped(b, 70, false));
        assert_eq!((file.mapcount(70), file.mapped_pages(), file.resident(a)), (2, 1, 1));
        file.relocate(Unit { page: 70, huge: false }, 9, 0, 1);
        assert_eq!([a, b].map(|mapper| file.resident_by_node(mapper)), [[0, 1], [0, 1]]);
        file.relocate(Unit { page: 70, huge: false }, 5, 1, 0);
        assert_eq!((file.unmapped_within(a, &(60..80)), file.unmapped_within(a, &(0..70))), (19, 70));
        file.touch(a, 70);
        assert_eq!(
            (file.unmap_next(a, 0..70, |_| 0), file.unmap_next(a, 0..71, |_| 0)),
            (None, Some((70, false, true)))
        );
        assert_eq!((file.mapcount(70), file.mapped_pages(), file.resident(b)), (1, 1, 1));
        assert_eq!([a, b].map(|mapper| file.resident_by_node(mapper)), [[0, 0], [1, 0]]);
        assert!(file.unmap_everywhere(70, 0) && !file.unmap_everywhere(70, 0));
        assert_eq!((file.mapped_pages(), file.resident(b), file.entry(70)), (0, 0, Entry::Present(5)));
        file.map_shared(a, 70, 0);
        file.map_shared(b, 70, 0);
        [(b, 70), (a, 70), (b, 71)].into_iter().for_each(|(mapper, page)| file.touch(mapper, page));
        assert_eq!([70..71, 70..71, 71..72].map(|pages| file.test_and_clear_young(pages)), [0b11, 0, 0b10]);
        file.touch(b, 70);
        file.unmap_everywhere(70, 0);
        assert_eq!(file.test_and_clear_young(70..71), 0, "what is gone is not young when it comes back");
        let mut heap = Region::new(shape(true), 1, 0);
        let own = heap.add_mapper();
        heap.put(7, 5, 0);
        assert!(!heap.map_shared(own, 7, 0) && !heap.unmap_everywhere(7, 0), "its entries are all there is");
        assert!(heap.is_mapped(own, 7, true) && !heap.is_mapped(own, 8, false));
        assert_eq!((heap.resident(own), heap.mapcount(7), heap.unmapped_within(own, &(0..9))), (1, 1, 0));
    }
}

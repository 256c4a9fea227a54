//! How many pages of a region are where: of the whole, or of each thread's part of a private one.

use super::Region;
use crate::frame::Pfn;
use crate::mm::prot_numa::Unit;
use std::borrow::Cow;
use std::ops::Range;

/// How many pages of a part of a region are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Not accessed yet.
    pub absent: u64,
    /// Only read.
    pub zero: u64,
    /// Of their own, by node.
    pub by_node: Vec<u64>,
}

impl Region {
    /// The part that a page belongs to.
    pub(crate) fn part(&self, page: u64) -> &Part {
        &self.parts[self.part_number(page)]
    }

    /// Pages of a range: of the part that contains it, or of the whole region.
    pub(crate) fn within(&self, pages: &Range<u64>) -> Cow<'_, Part> {
        if self.part_number(pages.start) == self.part_number(pages.end.saturating_sub(1).max(pages.start)) {
            return Cow::Borrowed(self.part(pages.start));
        }
        let sum = |of: fn(&Part) -> u64| self.parts.iter().map(of).sum();
        Cow::Owned(Part { absent: sum(|part| part.absent), zero: sum(|part| part.zero), by_node: self.by_node() })
    }

    /// True if every page of a range has a page of its own.
    pub(crate) fn is_whole(&self, pages: &Range<u64>) -> bool {
        let part = self.within(pages);
        part.absent == 0 && part.zero == 0
    }

    #[inline]
    pub(super) fn part_mut(&mut self, page: u64) -> &mut Part {
        let number = self.part_number(page);
        &mut self.parts[number]
    }

    /// Part i of n of the pages 0..all begins with page all * i / n, rounded down.
    #[inline]
    fn part_number(&self, page: u64) -> usize {
        if self.parts.len() == 1 {
            return 0;
        }
        // Pages of all regions are counted with 32 bits, and there are no more parts than pages.
        let (n, all) = (self.parts.len() as u64, self.entries.len() as u64);
        ((page + 1) * n).saturating_sub(1).checked_div(all).unwrap_or(0) as usize
    }

    /// Nodes of the machine.
    pub(super) fn nodes(&self) -> usize {
        self.parts.first().map_or(0, |part| part.by_node.len())
    }

    /// Pages by node.
    pub(crate) fn by_node(&self) -> Vec<u64> {
        (0..self.nodes()).map(|node| self.parts.iter().map(|part| part.by_node[node]).sum()).collect()
    }

    /// Pages that are there.
    pub(crate) fn present(&self) -> u64 {
        self.parts.iter().flat_map(|part| &part.by_node).sum()
    }

    /// The pages of a unit are now those from `pfn` on, on node `to` instead of `from`.
    pub(crate) fn relocate(&mut self, unit: Unit, pfn: Pfn, from: usize, to: usize) {
        let (start, pages) = (u64::from(unit.page), unit.pages());
        for (entry, pfn) in self.entries[start as usize..][..pages as usize].iter_mut().zip(pfn..) {
            *entry = pfn;
        }
        if !self.anon {
            (start..start + pages).for_each(|page| self.relocate_mapped(page, from, to));
        }
        let mut page = start;
        while page < start + pages {
            // As many as are in the same part, which is nearly always all.
            let number = self.part_number(page);
            let same = |end: &u64| self.part_number(end - 1) == number;
            let end = Some(start + pages).filter(same).unwrap_or(page + 1);
            let by_node = &mut self.parts[number].by_node;
            by_node[from] -= end - page;
            by_node[to] += end - page;
            page = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use crate::page_alloc::Policy;

    fn shape(pages: u64, parts: u64) -> Shape {
        let (exec, locked, policy) = (false, false, Policy::Default);
        Shape { pages, parts, anon: true, file: false, huge: Vec::new(), exec, locked, policy }
    }

    #[test]
    fn parts_are_those_of_the_threads() {
        for (pages, parts) in [(10u64, 3u64), (7, 7), (5, 9), (1000, 13)] {
            let region = Region::new(shape(pages, parts), 2, 0);
            let n = parts.min(pages);
            for i in 0..n {
                let range = pages * i / n..pages * (i + 1) / n;
                assert!(range.clone().all(|page| region.part_number(page) == i as usize), "{pages} {parts} {i}");
                assert_eq!(region.part(range.start).absent, range.end - range.start);
            }
            assert_eq!(region.by_node(), [0, 0]);
        }
    }
}

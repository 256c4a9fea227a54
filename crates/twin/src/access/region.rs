//! Regions of memory as their processes map them: the page table, and what a touch of a missing page does.
//!
//! Models `do_anonymous_page`, `do_huge_pmd_anonymous_page`, `wp_page_copy` of the zero page and `shmem_fault`, 4.13 to
//! 6.18: a read of anonymous memory maps the shared zero page and allocates nothing, a write allocates, with a huge
//! page where one fits and is allowed; shared memory is allocated by either. Page tables are in `tables`. Left out: cgroup
//! charges, the page cache of files, khugepaged. Checked by tests here and through the counters in `tests/run.rs`.

use super::Unit;
use super::tables::Tables;
use crate::alloc::{AllocationFailure, Caller, PAGEBLOCK_ORDER, Policy, Request};
use crate::kernel::{Kernel, KernelError, Ps};
use crate::page::{NO_PAGE, Pfn, State};
use std::borrow::Cow;
use std::ops::Range;

/// Maps the zero page.
const ZERO: Pfn = NO_PAGE - 1;
/// Pages of a huge page.
const HUGE: u64 = 1 << PAGEBLOCK_ORDER;

/// The page of a process, zeroed.
const USER: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE|__GFP_ZERO", ..Request::USER };
/// A huge page that is not worth waiting for.
const HUGE_USER: Request =
    Request { order: PAGEBLOCK_ORDER, may_wait: false, gfp: "GFP_TRANSHUGE_LIGHT", ..Request::USER };

/// What a page-table entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nobody has touched the page.
    Absent,
    /// It was read: the zero page is mapped.
    Zero,
    /// A page of its own.
    Present(Pfn),
}

/// How many pages of a part of a region are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Nobody has touched.
    pub absent: u64,
    /// Only read.
    pub zero: u64,
    /// Of their own, by node.
    pub by_node: Vec<u64>,
}

/// A region; regions of the same file are one.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    entries: Vec<Pfn>,
    /// Its page tables.
    pub tables: Tables,
    /// By thread for a private region, else one.
    parts: Vec<Part>,
    /// Anonymous memory; else shared memory.
    pub anon: bool,
    /// Huge pages are allowed.
    pub huge: bool,
    /// Its policy, or that of its process.
    pub policy: Policy,
    /// Processes that map it and have not ended.
    pub users: u32,
}

/// What faults cost, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultCosts {
    /// A fault without the allocation.
    pub fault: Ps,
    /// To clear a huge page.
    pub clear_huge: Ps,
}

impl Region {
    /// A region of so many pages, divided evenly into parts, on a machine with `nodes` nodes; all absent.
    pub(crate) fn new(pages: u64, parts: u64, nodes: usize, anon: bool, huge: bool, policy: Policy) -> Region {
        let parts = parts.clamp(1, pages.max(1));
        let edge = |i: u64| (u128::from(pages) * u128::from(i) / u128::from(parts)) as u64;
        let part = |i: u64| Part { absent: edge(i + 1) - edge(i), zero: 0, by_node: vec![0; nodes] };
        let parts = (0..parts).map(part).collect();
        let tables = Tables::new(pages);
        let entries = vec![NO_PAGE; pages as usize];
        Region { entries, tables, parts, anon, huge, policy, users: 0 }
    }

    /// The part that a page belongs to.
    pub(crate) fn part(&self, page: u64) -> &Part {
        &self.parts[self.part_number(page)]
    }

    /// What there is of a range: of the part that it lies in, or of the whole region.
    pub(crate) fn within(&self, pages: &Range<u64>) -> Cow<'_, Part> {
        if self.part_number(pages.start) == self.part_number(pages.end.saturating_sub(1).max(pages.start)) {
            return Cow::Borrowed(self.part(pages.start));
        }
        let sum = |of: fn(&Part) -> u64| self.parts.iter().map(of).sum();
        Cow::Owned(Part { absent: sum(|part| part.absent), zero: sum(|part| part.zero), by_node: self.by_node() })
    }

    fn part_mut(&mut self, page: u64) -> &mut Part {
        let number = self.part_number(page);
        &mut self.parts[number]
    }

    /// Part i of n of the pages 0..all begins with page all * i / n, rounded down.
    #[inline]
    fn part_number(&self, page: u64) -> usize {
        if self.parts.len() == 1 {
            return 0;
        }
        let (n, all) = (self.parts.len() as u128, self.entries.len() as u128);
        ((u128::from(page) + 1) * n).saturating_sub(1).checked_div(all).unwrap_or(0) as usize
    }

    /// Pages by node.
    pub(crate) fn by_node(&self) -> Vec<u64> {
        let nodes = self.parts.first().map_or(0, |part| part.by_node.len());
        (0..nodes).map(|node| self.parts.iter().map(|part| part.by_node[node]).sum()).collect()
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

    /// The first page frame of a huge page that maps a block as a whole; blocks are counted in huge pages.
    #[inline]
    pub(crate) fn huge_at(&self, block: u64, kernel: &Kernel) -> Option<Pfn> {
        let pfn = *self.entries.get((block * HUGE) as usize).filter(|_| self.huge)?;
        let frames = &kernel.alloc.frames;
        (pfn < ZERO && frames.state(pfn) == State::Allocated && frames.order(pfn) == PAGEBLOCK_ORDER).then_some(pfn)
    }

    /// Pages, touched or not.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// What is mapped at a page.
    #[inline]
    pub(crate) fn entry(&self, page: u64) -> Entry {
        match self.entries[page as usize] {
            NO_PAGE => Entry::Absent,
            ZERO => Entry::Zero,
            pfn => Entry::Present(pfn),
        }
    }

    /// True if an access of a page is no fault.
    #[inline]
    pub(crate) fn is_mapped(&self, page: u64, write: bool) -> bool {
        let entry = self.entries[page as usize];
        entry < ZERO || entry == ZERO && !write
    }

    /// Handles the fault of an access on the caller's CPU, which spends the time. The page is mapped afterwards; the
    /// failure of its allocation is given back.
    pub(crate) fn fault(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        costs: &FaultCosts,
        page: u64,
        write: bool,
    ) -> Result<(), AllocationFailure> {
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, costs.fault);
        self.tables.reach(kernel, caller, page)?;
        let block = page / HUGE * HUGE;
        let fits = self.huge && block + HUGE <= self.len();
        let whole = fits && (block..block + HUGE).all(|page| self.entries[page as usize] == NO_PAGE);
        if self.anon && !write {
            let pages = if whole { block..block + HUGE } else { page..page + 1 };
            for page in pages {
                self.entries[page as usize] = ZERO;
                let part = self.part_mut(page);
                (part.absent, part.zero) = (part.absent - 1, part.zero + 1);
            }
            return Ok(());
        }
        if whole {
            let mut who = caller.for_page(self.policy, block / HUGE);
            if let Ok(got) = kernel.allocate_unchecked(&mut who, &HUGE_USER) {
                kernel.stat.events.thp_fault_alloc += 1;
                kernel.spend(caller.cpu, costs.clear_huge);
                let node = kernel.alloc.zones[got.zone].node;
                (block..block + HUGE).zip(got.page..).for_each(|(page, pfn)| self.map(page, pfn, node));
                return Ok(());
            }
            kernel.stat.events.thp_fault_fallback += 1;
        }
        let mut who = caller.for_page(self.policy, page);
        let got = kernel.allocate_unchecked(&mut who, &USER)?;
        self.map(page, got.page, kernel.alloc.zones[got.zone].node);
        Ok(())
    }

    fn map(&mut self, page: u64, pfn: Pfn, node: usize) {
        let before = std::mem::replace(&mut self.entries[page as usize], pfn);
        let part = self.part_mut(page);
        if before == ZERO {
            part.zero -= 1
        } else {
            part.absent -= 1
        }
        part.by_node[node] += 1;
    }

    /// Gives all pages back, on a caller's CPU. Nothing is mapped afterwards.
    pub(crate) fn unmap(&mut self, kernel: &mut Kernel, caller: &Caller) -> Result<(), KernelError> {
        for pfn in std::mem::take(&mut self.entries) {
            // The first page of a huge page stands for all of it.
            if pfn < ZERO && kernel.alloc.frames.state(pfn) == State::Allocated {
                kernel.free_unchecked(caller.cpu, caller.task, pfn)?;
            }
        }
        self.tables.free(kernel, caller)?;
        self.parts.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_threads() {
        for (pages, parts) in [(10u64, 3u64), (7, 7), (5, 9), (1000, 13)] {
            let region = Region::new(pages, parts, 2, true, false, Policy::Default);
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

//! Regions of memory as their processes map them: the page table, and what a touch of a missing page does.
//!
//! Models `do_anonymous_page`, `do_huge_pmd_anonymous_page`, `wp_page_copy` of the zero page and `shmem_fault`, 4.13 to
//! 6.18: a read of anonymous memory maps the shared zero page and allocates nothing, a write allocates, with a huge
//! page where one fits and is allowed; shared memory is allocated by either. Page tables are in `tables`, pages of files in
//! `cache`, those that reclaim has taken in `swap`. Left out: khugepaged. Checked by tests here and through the counters in
//! `tests/run.rs`.

use super::Unit;
use super::lock::Lock;
use super::marks::Bits;
use super::tables::Tables;
use crate::alloc::{Allocated, AllocationFailure, Caller, HUGE_ORDER, Policy, Request};
use crate::kernel::{Kernel, KernelError, Ps};
use crate::page::{Flag, NO_PAGE, Pfn, State};
use crate::vmstat::NodeItem;
use std::borrow::Cow;
use std::ops::Range;

/// Maps the zero page.
const ZERO: Pfn = NO_PAGE - 1;
/// Entries from here on are no page frames: all but the last two are what reclaim left, a place in swap or a shadow of 30
/// bits.
const GONE: Pfn = 1 << 31;
/// Pages of a huge page.
const HUGE: u64 = 1 << HUGE_ORDER;

/// The page of a process, zeroed.
const USER: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE|__GFP_ZERO", ..Request::USER };

/// What a page-table entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nobody has touched the page.
    Absent,
    /// It was read: the zero page is mapped.
    Zero,
    /// A page of its own; of a file: in the page cache.
    Present(Pfn),
    /// Reclaim has taken it: anonymous and shared memory is at this place in swap, a file's page has left this shadow.
    Gone(u32),
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
    /// Number of its first page among the pages of all regions, by which frames know what they hold.
    base: u32,
    /// Anonymous memory; else shared memory or a file.
    pub anon: bool,
    /// A file on the disk.
    pub file: bool,
    /// Pages of a file that are mapped.
    mapped: Bits,
    /// Pages of a file that differ from the disk's.
    dirty: Bits,
    /// Who writes to the file by calls.
    pub lock: Lock,
    /// Tick in which a write last changed the file's times.
    pub changed_at: u64,
    /// Where the next writing of the file begins (`writeback_index`).
    pub written_up_to: u64,
    /// By page of a file that was written: block of what the file system remembers of it, or [`NO_PAGE`]; empty before.
    buffers: Vec<Pfn>,
    /// Pages that were touched since reclaim looked.
    young: Bits,
    /// Mapped executable.
    pub exec: bool,
    /// Never reclaimed.
    pub locked: bool,
    /// Its pages cannot be let go, as others hold them: buffers of a file system.
    pub held: bool,
    /// What is asked for a huge page, one request after the other; none where huge pages are not allowed.
    huge: Vec<Request>,
    /// Blocks whose faults are under way and have been refused a huge page, and how often.
    refused: Vec<(u64, usize)>,
    /// Its policy, or that of its process.
    pub policy: Policy,
    /// Processes that map it and have not ended.
    pub users: u32,
    /// A file that is deleted when there are none.
    pub temporary: bool,
    /// A file whose pages are cleared, not read.
    pub sparse: bool,
    /// Files that it is divided into, if their inodes are modelled.
    pub files: Option<u64>,
    /// Pools that draw from it.
    pub pools: Vec<usize>,
    /// CPUs of the threads that map it: none, one, or several.
    pub cpus: Cpus,
    /// Where touches of it are written down.
    pub logs: Vec<usize>,
    /// By page and by huge page: 1 + the epoch in which reclaim looked last; empty before the first look.
    stamps: Vec<u32>,
    huge_stamps: Vec<u32>,
}

/// What faults cost, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaultCosts {
    /// A fault without the allocation.
    pub fault: Ps,
    /// To clear a huge page.
    pub clear_huge: Ps,
    /// A call that reads or writes a page of a file.
    pub file_call: Ps,
    /// To ask the disk for pages.
    pub file_request: Ps,
    /// To look at a page of an LRU list.
    pub scan_page: Ps,
    /// To wait until other CPUs have flushed pages that are taken.
    pub shootdown: Ps,
    /// What they take besides while this CPU leaves the budget to others.
    pub shootdown_wait: Ps,
    /// What that takes of another CPU.
    pub interrupt: Ps,
    /// To ask the page tables about a page, and to take it out of them.
    pub rmap_page: Ps,
    pub unmap_page: Ps,
    /// To free a page in reclaim, and what it takes more if the file system remembers it.
    pub free_page: Ps,
    pub free_buffers: Ps,
    /// To clear a further page of a block that the kernel allocates.
    pub init_page: Ps,
    /// To look at a page frame and to pass over a pageblock in compaction, and to move a page.
    pub compact_scan: Ps,
    pub compact_block: Ps,
    pub migrate_page: Ps,
    /// Of a batch of a list, and of a pass over a cgroup's lists, what is not its pages'.
    pub batch: Ps,
    pub pass: Ps,
    /// To write a page to swap.
    pub swap_write: Ps,
    /// To ask a shrinker how much it has, and to scan an object of it.
    pub count_objects: Ps,
    pub scan_object: Ps,
    /// A call that looks up a name that does not exist.
    pub lookup: Ps,
    /// A call that writes a page of a file that is in memory, and what it takes more if it is not.
    pub file_write: Ps,
    pub file_create: Ps,
    /// To bring a dirty page on its way to the disk, and to end its writing.
    pub write_page: Ps,
    pub write_end: Ps,
}

/// Where the threads of a region's processes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cpus {
    #[default]
    None,
    One(u32),
    Several,
}

impl Cpus {
    /// And on those.
    pub(crate) fn with(self, others: Cpus) -> Cpus {
        match others {
            Cpus::None => self,
            Cpus::One(cpu) => self.and(cpu),
            Cpus::Several => Cpus::Several,
        }
    }

    /// And on one more.
    pub(crate) fn and(self, cpu: u32) -> Cpus {
        match self {
            Cpus::None => Cpus::One(cpu),
            Cpus::One(other) if other == cpu => self,
            Cpus::One(_) | Cpus::Several => Cpus::Several,
        }
    }

    /// True if some run on another CPU.
    pub(crate) fn elsewhere(self, cpu: u32) -> bool {
        !matches!(self, Cpus::None) && self != Cpus::One(cpu)
    }
}

/// What a region is like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Pages, and parts of equal size that they are divided into.
    pub pages: u64,
    pub parts: u64,
    /// Anonymous memory, else a file on the disk or in memory.
    pub anon: bool,
    pub file: bool,
    pub huge: Vec<Request>,
    pub exec: bool,
    pub locked: bool,
    pub policy: Policy,
}

impl Region {
    /// A region on a machine with `nodes` nodes, whose first page has number `base` among those of all regions; all
    /// absent.
    pub(crate) fn new(shape: Shape, nodes: usize, base: u32) -> Region {
        let Shape { pages, parts, anon, file, huge, exec, locked, policy } = shape;
        let parts = parts.clamp(1, pages.max(1));
        let edge = |i: u64| (u128::from(pages) * u128::from(i) / u128::from(parts)) as u64;
        let part = |i: u64| Part { absent: edge(i + 1) - edge(i), zero: 0, by_node: vec![0; nodes] };
        let parts = (0..parts).map(part).collect();
        let tables = Tables::new(pages);
        let entries = vec![NO_PAGE; pages as usize];
        let of_file = || Bits::new(if file { pages } else { 0 });
        let (mapped, dirty, young) = (of_file(), of_file(), Bits::new(pages));
        Region {
            entries,
            tables,
            parts,
            base,
            anon,
            file,
            mapped,
            dirty,
            lock: Lock::default(),
            changed_at: u64::MAX,
            written_up_to: 0,
            buffers: Vec::new(),
            young,
            exec,
            locked,
            held: false,
            huge,
            refused: Vec::new(),
            policy,
            users: 0,
            temporary: false,
            sparse: false,
            files: None,
            pools: Vec::new(),
            cpus: Cpus::None,
            logs: Vec::new(),
            stamps: Vec::new(),
            huge_stamps: Vec::new(),
        }
    }

    /// Number of its first page among the pages of all regions.
    pub(crate) fn base(&self) -> u32 {
        self.base
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

    /// True if every page of a range has a page of its own.
    pub(crate) fn is_whole(&self, pages: &Range<u64>) -> bool {
        let part = self.within(pages);
        part.absent == 0 && part.zero == 0
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
        // Pages of all regions are counted with 32 bits, and there are no more parts than pages.
        let (n, all) = (self.parts.len() as u64, self.entries.len() as u64);
        ((page + 1) * n).saturating_sub(1).checked_div(all).unwrap_or(0) as usize
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
        let pfn = *self.entries.get((block * HUGE) as usize).filter(|_| self.may_be_huge())?;
        let frames = &kernel.alloc.frames;
        (pfn < GONE && frames.state(pfn) == State::Allocated && frames.order(pfn) == HUGE_ORDER).then_some(pfn)
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
            pfn if pfn < GONE => Entry::Present(pfn),
            gone => Entry::Gone(gone & !GONE),
        }
    }

    /// True if an access of a page is no fault.
    #[inline]
    pub(crate) fn is_mapped(&self, page: u64, write: bool) -> bool {
        let entry = self.entries[page as usize];
        entry < GONE && (!self.file || self.mapped.has(page)) || entry == ZERO && !write
    }

    /// A mapped page is touched.
    #[inline]
    pub(crate) fn touch(&mut self, page: u64) {
        self.young.insert(page);
    }

    /// True if one of some pages was touched since this was asked.
    pub(crate) fn take_young(&mut self, pages: Range<u64>) -> bool {
        if pages.end - pages.start == 1 {
            return self.young.remove(pages.start);
        }
        let mut any = false;
        while let Some(page) = self.young.next(pages.start).filter(|&page| page < pages.end) {
            any = self.young.remove(page);
        }
        any
    }

    /// Reclaim looks at pages that are one block in an epoch; when it did before, if it was the same page of memory.
    pub(crate) fn stamp(&mut self, pages: &Range<u64>, epoch: u32) -> Option<u32> {
        let (stamps, length) = match pages.end - pages.start {
            1 => (&mut self.stamps, 1),
            _ => (&mut self.huge_stamps, HUGE),
        };
        if stamps.is_empty() {
            *stamps = vec![0; (self.entries.len() as u64).div_ceil(length) as usize];
        }
        std::mem::replace(&mut stamps[(pages.start / length) as usize], epoch + 1).checked_sub(1)
    }

    /// Maps a page of a file that is in the page cache; false if it was mapped.
    pub(crate) fn map_cached(&mut self, page: u64) -> bool {
        self.young.insert(page);
        self.mapped.insert(page)
    }

    /// Takes a file's page out of all page tables; false if it was in none.
    pub(crate) fn unmap_cached(&mut self, page: u64) -> bool {
        self.mapped.remove(page)
    }

    /// A page of a file differs from the disk's; true if no other does.
    pub(crate) fn set_dirty(&mut self, page: u64) -> bool {
        self.dirty.insert(page);
        self.dirty.count() == 1
    }

    /// A page is going to the disk or away; false if it did not differ.
    pub(crate) fn set_clean(&mut self, page: u64) -> bool {
        self.dirty.remove(page)
    }

    /// The file system remembers a page in a block.
    pub(crate) fn remember(&mut self, page: u64, block: Pfn) {
        if self.buffers.is_empty() {
            self.buffers = vec![NO_PAGE; self.entries.len()];
        }
        self.buffers[page as usize] = block;
    }

    /// The file system forgets a page; the block in which it remembered it.
    pub(crate) fn forget(&mut self, page: u64) -> Option<Pfn> {
        let block = std::mem::replace(self.buffers.get_mut(page as usize)?, NO_PAGE);
        (block != NO_PAGE).then_some(block)
    }

    /// True if the file system remembers a page.
    pub(crate) fn remembers(&self, page: u64) -> bool {
        self.buffers.get(page as usize).is_some_and(|&block| block != NO_PAGE)
    }

    /// Pages that differ from the disk's.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty.count()
    }

    /// The first page from one on that differs from the disk's.
    pub(crate) fn next_dirty(&self, from: u64) -> Option<u64> {
        self.dirty.next(from)
    }

    /// A page has come to a place where there was none.
    pub(crate) fn put(&mut self, page: u64, pfn: Pfn, node: usize) {
        self.map(page, pfn, node);
    }

    /// Reclaim takes a page: its place in swap or its shadow stays.
    pub(crate) fn take(&mut self, page: u64, gone: u32, node: usize) {
        self.entries[page as usize] = GONE | gone;
        let part = self.part_mut(page);
        part.by_node[node] -= 1;
        part.absent += 1;
    }

    /// A page is given back: nobody has touched it.
    pub(crate) fn clear(&mut self, page: u64, pages: u64, node: Option<usize>) {
        let zero = self.entries[page as usize] == ZERO;
        self.entries[page as usize..(page + pages) as usize].fill(NO_PAGE);
        self.young.remove(page);
        let part = self.part_mut(page);
        match node {
            Some(node) => {
                part.by_node[node] -= pages;
                part.absent += pages;
            }
            None if zero => (part.zero, part.absent) = (part.zero - pages, part.absent + pages),
            // Those that reclaim took count as absent.
            None => {}
        }
    }

    /// The number of a page among the pages of all regions.
    pub(crate) fn content(&self, page: u64) -> u32 {
        self.base + page as u32
    }

    /// Huge pages are allowed.
    pub(crate) fn may_be_huge(&self) -> bool {
        !self.huge.is_empty()
    }

    /// Handles the fault of an access on the caller's CPU, which spends the time. The page is mapped afterwards; the
    /// failure of its allocation is given back. `denied`: it was, and waiting did not help.
    pub(crate) fn fault(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        costs: &FaultCosts,
        page: u64,
        (write, denied): (bool, bool),
    ) -> Result<(), AllocationFailure> {
        self.tables.reach(kernel, caller, page)?;
        let block = page / HUGE * HUGE;
        let fits = self.may_be_huge() && block + HUGE <= self.len();
        let whole = fits && (block..block + HUGE).all(|page| self.entries[page as usize] == NO_PAGE);
        if self.anon && !write {
            note_fault(kernel, caller.cpu, costs);
            let pages = if whole { block..block + HUGE } else { page..page + 1 };
            for page in pages {
                self.entries[page as usize] = ZERO;
                let part = self.part_mut(page);
                (part.absent, part.zero) = (part.absent - 1, part.zero + 1);
            }
            return Ok(());
        }
        if whole && let Some(got) = self.ask_huge(kernel, caller, block, denied)? {
            note_fault(kernel, caller.cpu, costs);
            kernel.stat.events.thp_fault_alloc += 1;
            kernel.spend(caller.cpu, costs.clear_huge);
            let node = kernel.alloc.zones[got.zone].node;
            (block..block + HUGE).zip(got.page..).for_each(|(page, pfn)| self.map(page, pfn, node));
            self.adopt(kernel, caller, block, got.page);
            return Ok(());
        }
        let mut who = caller.for_page(self.policy, page);
        let got = kernel.allocate_charged(&mut who, &USER)?;
        note_fault(kernel, caller.cpu, costs);
        self.map(page, got.page, kernel.alloc.zones[got.zone].node);
        self.adopt(kernel, caller, page, got.page);
        self.refused.retain(|(of, _)| *of != block);
        Ok(())
    }

    /// Asks for a huge page for a block; `None`: it is refused, and the fault goes on with a base page.
    fn ask_huge(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        block: u64,
        denied: bool,
    ) -> Result<Option<Allocated>, AllocationFailure> {
        let known = self.refused.iter().position(|(of, _)| *of == block);
        let mut number = known.map_or(0, |at| self.refused.swap_remove(at).1);
        if denied {
            number += 1;
            kernel.stat.events.thp_fault_fallback += u64::from(number == self.huge.len());
        }
        let mut who = caller.for_page(self.policy, block / HUGE);
        while let Some(request) = self.huge.get(number) {
            match kernel.allocate_charged(&mut who, request) {
                Ok(got) => return Ok(Some(got)),
                Err(failure) if request.may_wait => {
                    self.refused.push((block, number));
                    return Err(failure);
                }
                Err(_) => number += 1,
            }
            kernel.stat.events.thp_fault_fallback += u64::from(number == self.huge.len());
        }
        // Its base page may have to wait too; then it is not asked for again.
        self.refused.push((block, number));
        Ok(None)
    }

    /// A block that has been allocated for a page of anonymous or shared memory goes to its list.
    fn adopt(&mut self, kernel: &mut Kernel, caller: &Caller, page: u64, pfn: Pfn) {
        // Before 5.9 new anonymous memory was active; so it still is where zones are reclaimed.
        let active = self.anon && kernel.reclaim.rules.by_zone.is_some();
        let flags: &[Flag] = if active { &[Flag::Swapbacked, Flag::Active] } else { &[Flag::Swapbacked] };
        kernel.adopt(caller, pfn, self.content(page), flags, self.locked);
        self.count(kernel, pfn, 1);
        self.young.insert(page);
    }

    /// Counts a block of the region that has come (1) or goes (-1).
    pub(super) fn count(&self, kernel: &mut Kernel, pfn: Pfn, sign: i64) {
        let (node, pages) = (kernel.node_of_frame(pfn), sign << kernel.alloc.frames.order(pfn));
        self.items().iter().for_each(|&item| kernel.stat.pages.add(node, item, pages));
    }

    /// The counters of its pages: mapped ones, and those of a file whether they are mapped or not.
    pub(crate) fn items(&self) -> &'static [NodeItem] {
        match (self.anon, self.file) {
            (true, _) => &[NodeItem::AnonPages],
            (_, true) => &[NodeItem::FilePages],
            _ => &[NodeItem::FilePages, NodeItem::Shmem, NodeItem::Mapped],
        }
    }

    /// True if a page is in memory.
    pub(crate) fn is_cached(&self, page: u64) -> bool {
        self.entries[page as usize] < GONE
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

    /// Pages of a file that processes map.
    pub(crate) fn mapped_pages(&self) -> u64 {
        self.mapped.count()
    }

    /// Pages that are in swap.
    pub(crate) fn swapped(&self) -> u64 {
        let gone = self.entries.iter().filter(|entry| (GONE..ZERO).contains(entry));
        if self.file { 0 } else { gone.count() as u64 }
    }

    /// Nobody maps a file any more: its pages leave the page tables and stay in the page cache, those that were used since
    /// somebody looked as used (`zap_pte_range`).
    pub(crate) fn unmap_file(&mut self, kernel: &mut Kernel, caller: &Caller) -> Result<(), KernelError> {
        let mut next = 0;
        while let Some(page) = self.mapped.next(next) {
            self.mapped.remove(page);
            let young = self.young.remove(page);
            if let Entry::Present(pfn) = self.entry(page) {
                kernel.stat.pages.add(kernel.node_of_frame(pfn), NodeItem::Mapped, -1);
                if young {
                    kernel.mark_accessed(caller.cpu, pfn);
                }
            }
            next = page + 1;
        }
        self.tables.free(kernel, caller)
    }

    /// Gives all pages of memory without a file back, on a caller's CPU. Nothing is mapped afterwards.
    pub(crate) fn unmap(&mut self, kernel: &mut Kernel, caller: &Caller) -> Result<(), KernelError> {
        for pfn in std::mem::take(&mut self.entries) {
            // The first page of a huge page stands for all of it.
            if pfn < GONE && kernel.alloc.frames.state(pfn) == State::Allocated {
                self.count(kernel, pfn, -1);
                kernel.release(caller, pfn)?;
            }
        }
        self.tables.free(kernel, caller)?;
        self.parts.clear();
        Ok(())
    }
}

/// A fault is handled.
fn note_fault(kernel: &mut Kernel, cpu: u32, costs: &FaultCosts) {
    kernel.stat.events.faults += 1;
    kernel.spend(cpu, costs.fault);
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! The page cache: `filemap_read`, `filemap_fault`, `filemap_map_pages`, `page_cache_ra_unbounded`, `filemap_add_folio`,
//! `ext4_write_begin` (6.1 to 6.12, and 7.3; ext4 with 4 KiB blocks and pages).
//!
//! A read that finds its page missing reads a window of pages ([`crate::mm::readahead`]) and waits for the disk, unless
//! that is memory. File pages are charged to the cgroup of the first reader. A large folio is one block of memory with one
//! place on an LRU list; its pages have entries of their own. Not modelled: large folios that calls of more than a page
//! write, locks, direct I/O, holes, the pages of a file system's own. Checked against guests (docs/fidelity.md).

pub(crate) mod index;
pub(crate) mod inode_lock;

use crate::frame::{Flag, Pfn};
use crate::hw::IoClass;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::readahead::{Limits, Window};
use crate::mm::region::Entry;
use crate::mm::vmscan::Retries;
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::time::{PS_PER_NS, Ps};
use crate::vmstat::NodeItem;
use mmtwin_scenario::kernel::MmapHits;
use rustc_hash::FxHashMap;

/// A single page of a file that a reader waits for. Unlike read-ahead, its allocation may use file systems (`__GFP_FS`).
const PAGE: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE", ..Request::USER };
/// A page for read-ahead: no second attempt.
const AHEAD: Request = Request {
    no_retry: true,
    gfp: "GFP_NOFS|__GFP_HIGHMEM|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP|__GFP_HARDWALL|__GFP_MOVABLE",
    ..Request::USER
};
/// A page of a file that is about to be written by a call.
const WRITTEN: Request = Request { spread_dirty: true, gfp: "GFP_HIGHUSER_MOVABLE|__GFP_WRITE", ..Request::USER };
/// The same in 2010, for read-ahead or not.
const COLD_PAGE: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE|GFP_COLD", ..Request::USER };

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Done,
    /// The page is there from then on.
    Wait(Ps),
    /// A thread was woken meanwhile, which may preempt this one.
    Again,
}

/// A thread that reads a file: windows that it is reading. The state of read-ahead is that of the open file
/// ([`Region::readahead`](crate::mm::region::Region)).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    /// Pages of a window that still have to be read.
    pub(in crate::mm) pending: Option<Window>,
    /// Allocated pages, to be read as one request.
    brought: Vec<Pfn>,
    /// Read-ahead has found no memory for the accessed page, which is then read alone. Without this a task that waits for
    /// that page would read ahead again at each retry, and never reach its limit of retries.
    alone: bool,
    /// Page of the fault that has waited for its read and is tried again (`FAULT_FLAG_TRIED`).
    tried: Option<u64>,
}

impl AccessState {
    /// A call reads or writes a page of a file. On failure the same call continues where it was.
    pub(crate) fn file_call(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        page: u64,
        write: bool,
    ) -> Result<Touched, AllocationFailure> {
        self.use_file(kernel, caller, region, page)?;
        if write {
            return self.write_call(kernel, caller, region, page);
        }
        if !self.finish(kernel, caller, region, reader)? {
            return Ok(Touched::Again);
        }
        let pfn = match self.regions[region].entry(page) {
            Entry::Present(pfn) => pfn,
            _ => {
                if !reader.alone && !self.ahead(kernel, caller, (region, mapper, reader), (page, 1), None)? {
                    return Ok(Touched::Again);
                }
                match self.regions[region].entry(page) {
                    Entry::Present(pfn) => pfn,
                    // Read-ahead has stopped before this page.
                    _ => self.bring_one(kernel, caller, region, page)?,
                }
            }
        };
        reader.alone = false;
        let (first, pfn) = self.regions[region].block(kernel, page, pfn);
        let order = kernel.alloc.frames.order(pfn);
        // A mark and the end of a write are one flag; a page that is read is not being written.
        let marked = kernel.alloc.frames.has(pfn, Flag::Reclaim) && !kernel.alloc.frames.has(pfn, Flag::Writeback);
        if marked {
            kernel.alloc.frames.set_flag(pfn, Flag::Reclaim, false);
            if !self.ahead(kernel, caller, (region, mapper, reader), (first, page - first + 1), Some(order))? {
                return Ok(Touched::Again);
            }
        }
        if let Some(until) = self.read_ends(kernel, caller.cpu, pfn) {
            return Ok(self.sleep_for_read(kernel, caller.cpu, pfn, until));
        }
        kernel.spend(caller.cpu, self.costs.file_call);
        // Several reads of a folio in a row are one use of it.
        if !self.regions[region].readahead[mapper].is_among(&(first..first + (1 << order))) {
            self.mark_accessed(kernel, caller.cpu, pfn);
        }
        self.regions[region].readahead[mapper].note(page);
        Ok(Touched::Done)
    }

    /// A task sleeps until a page has been read; it runs again when its CPU has gone through the end of the request too.
    pub(in crate::mm) fn sleep_for_read(&self, kernel: &mut Kernel, cpu: u32, pfn: Pfn, until: Ps) -> Touched {
        kernel.wait_for_read(pfn);
        kernel.spend(cpu, self.costs.io_schedule);
        Touched::Wait(until + self.costs.io_schedule)
    }

    /// A call has used a page (`folio_mark_accessed`).
    pub(super) fn mark_accessed(&self, kernel: &mut Kernel, cpu: u32, pfn: Pfn) {
        if kernel.mark_accessed(cpu, pfn) {
            kernel.spend(cpu, self.costs.activate);
        }
    }

    /// A call writes a whole page of a file, which need not be read for it.
    fn write_call(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        region: usize,
        page: u64,
    ) -> Result<Touched, AllocationFailure> {
        if let Some(until) = self.wait_to_write(kernel, caller, region) {
            return Ok(Touched::Wait(until));
        }
        self.prepare_write(kernel, caller, region, page)?;
        let pfn = match self.regions[region].entry(page) {
            Entry::Present(pfn) => pfn,
            _ => {
                let pfn = self.bring(kernel, caller, region, page, &WRITTEN)?;
                kernel.spend(caller.cpu, self.costs.file_create);
                pfn
            }
        };
        let (_, pfn) = self.regions[region].block(kernel, page, pfn);
        if let Some(until) = self.read_ends(kernel, caller.cpu, pfn) {
            return Ok(self.sleep_for_read(kernel, caller.cpu, pfn, until));
        }
        kernel.spend(caller.cpu, self.costs.file_write);
        if self.dirty(kernel, caller, region, page) {
            kernel.spend(caller.cpu, self.costs.file_dirty);
        }
        if kernel.reclaim.rules.writes_mark_accessed {
            self.mark_accessed(kernel, caller.cpu, pfn);
        }
        self.regions[region].lock.hold(kernel.clock(caller.cpu));
        Ok(Touched::Done)
    }

    /// A fault on a page of a file that is not mapped.
    pub(crate) fn file_fault(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        page: u64,
        write: bool,
    ) -> Result<Touched, AllocationFailure> {
        let limits = Limits { max: self.readahead_pages, len: self.regions[region].len() };
        let (windows, hits) = (kernel.reclaim.rules.readahead, kernel.reclaim.rules.mmap_hits);
        // In 2012 a mapping that was read in order was read ahead like a call's file.
        let sequential = kernel.reclaim.rules.mmap_sequential;
        self.use_file(kernel, caller, region, page)?;
        let begins = reader.pending.is_none() && reader.brought.is_empty();
        if !self.finish(kernel, caller, region, reader)? {
            return Ok(Touched::Again);
        }
        self.regions[region].tables.reach(kernel, caller, page)?;
        let retries = kernel.reclaim.rules.retries;
        let reads;
        let mut tried = reader.tried.take() == Some(page);
        if begins && !write && hits != MmapHits::Faults && !self.is_mappable(kernel, caller.cpu, region, page) {
            // Its neighbours are mapped before the page is read or read ahead of.
            let found = self.mmap_hits(kernel, caller.cpu, (region, page), hits, tried);
            self.regions[region].readahead[mapper].hit(found);
        }
        let pfn = match self.regions[region].entry(page) {
            Entry::Present(pfn) => {
                // Of a write, only the page itself is mapped: it counts if it did not have to be read for this fault.
                if write && !tried && begins {
                    self.regions[region].readahead[mapper].hit(1);
                }
                let (_, head) = self.regions[region].block(kernel, page, pfn);
                let marked = kernel.alloc.frames.set_flag(head, Flag::Reclaim, false);
                reads = marked;
                kernel.stat.events.faults += u64::from(marked && retries == Retries::Reads);
                if marked {
                    if !write && hits == MmapHits::Faults {
                        self.regions[region].readahead[mapper].hit(1);
                    }
                    let order = Some(kernel.alloc.frames.order(head));
                    if !self.ahead(kernel, caller, (region, mapper, reader), (page, limits.max), order)? {
                        return Ok(Touched::Again);
                    }
                }
                pfn
            }
            // Read-ahead has stopped before this page, and the fault was counted then.
            _ if reader.alone => {
                reads = true;
                tried = true;
                self.bring_one(kernel, caller, region, page)?
            }
            _ => {
                kernel.stat.events.reclaim.pgmajfault += 1;
                kernel.reclaim.note(caller.cgroup, |events| events.pgmajfault += 1);
                reads = true;
                tried = true;
                kernel.stat.events.faults += u64::from(retries == Retries::Reads);
                let all = if sequential && self.regions[region].readahead[mapper].is_next(page) {
                    self.ahead(kernel, caller, (region, mapper, reader), (page, limits.max), None)?
                } else {
                    reader.pending = self.regions[region].readahead[mapper].around(windows, page, limits);
                    self.finish(kernel, caller, region, reader)?
                };
                if !all {
                    return Ok(Touched::Again);
                }
                match self.regions[region].entry(page) {
                    Entry::Present(pfn) => pfn,
                    _ => self.bring_one(kernel, caller, region, page)?,
                }
            }
        };
        reader.alone = false;
        let (_, pfn) = self.regions[region].block(kernel, page, pfn);
        if let Some(until) = self.read_ends(kernel, caller.cpu, pfn) {
            reader.tried = Some(page);
            // The fault that reads has been counted already; others find the page locked.
            let again = retries == Retries::Waits || retries == Retries::Reads && !reads;
            if again {
                kernel.stat.events.faults += 1;
                kernel.spend(caller.cpu, self.costs.fault);
            }
            return Ok(self.sleep_for_read(kernel, caller.cpu, pfn, until));
        }
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, self.costs.fault);
        if sequential {
            self.regions[region].readahead[mapper].note(page);
        }
        if !write {
            let found = self.mmap_hits(kernel, caller.cpu, (region, page), hits, tried);
            self.regions[region].readahead[mapper].hit(found);
        }
        self.map_around(kernel, caller.cpu, (region, mapper), page, write);
        if write {
            kernel.spend(caller.cpu, self.costs.mkwrite);
            self.dirty_mapped(kernel, caller, region, page);
        }
        Ok(Touched::Done)
    }

    /// True if a read fault maps a page of a file without reading: it is in memory, has been read, and is not marked.
    fn is_mappable(&self, kernel: &Kernel, cpu: u32, region: usize, page: u64) -> bool {
        match self.regions[region].entry(page) {
            Entry::Present(pfn) => {
                let (_, pfn) = self.regions[region].block(kernel, page, pfn);
                !kernel.alloc.frames.has(pfn, Flag::Reclaim) && !self.is_being_read(kernel, cpu, pfn)
            }
            _ => false,
        }
    }

    /// What a read fault counts against misses when it maps the pages around its own.
    fn mmap_hits(&self, kernel: &Kernel, cpu: u32, (region, page): (usize, u64), rule: MmapHits, tried: bool) -> u32 {
        let evicted = |page| match self.regions[region].entry(page) {
            Entry::Present(pfn) => {
                let (_, pfn) = self.regions[region].block(kernel, page, pfn);
                kernel.alloc.frames.has(pfn, Flag::Workingset)
            }
            _ => false,
        };
        let first = page / self.fault_around * self.fault_around;
        let around = first..(first + self.fault_around).min(self.regions[region].len());
        let mappable = around.filter(|&at| self.is_mappable(kernel, cpu, region, at));
        match rule {
            MmapHits::Pages => mappable.count() as u32,
            MmapHits::FreshPages => mappable.filter(|&at| !evicted(at)).count() as u32,
            MmapHits::Faults => u32::from(!tried && !evicted(page)),
        }
    }

    /// Maps a page of a file or of shared memory that is in memory. A read fault also maps the neighbours in memory
    /// (`do_fault_around`), except the marked one, which must fault when it is accessed; a write fault does not.
    pub(super) fn map_around(
        &mut self,
        kernel: &mut Kernel,
        cpu: u32,
        (region, mapper): (usize, usize),
        page: u64,
        write: bool,
    ) {
        let around = if write { 1 } else { self.fault_around };
        let (first, now, of) = (page / around * around, kernel.clock(cpu), &mut self.regions[region]);
        let (mut at, end, mut mapped) = (first, (first + around).min(of.len()), 0);
        while at < end {
            let Entry::Present(pfn) = of.entry(at) else {
                at += 1;
                continue;
            };
            // A large folio is mapped as a whole, also beyond these pages.
            let (start, pfn) = of.block(kernel, at, pfn);
            let pages = if of.file { start..start + (1 << kernel.alloc.frames.order(pfn)) } else { at..at + 1 };
            let marked = of.file && kernel.alloc.frames.has(pfn, Flag::Reclaim);
            at = pages.end;
            if read_ends(&mut self.reading, pfn, now).is_some() || marked && !pages.contains(&page) {
                continue;
            }
            let (node, before) = (kernel.node_of_frame(pfn), mapped);
            for at in pages {
                if !of.is_mapped_by(mapper, at) {
                    if of.map_cached(mapper, at, node) && of.file {
                        kernel.stat.pages.add(node, NodeItem::Mapped, 1);
                    }
                    mapped = before + 1;
                }
            }
        }
        // The fault itself has the cost of the page that it is about, and of its folio.
        kernel.spend(cpu, self.costs.map_around * u64::saturating_sub(mapped, 1));
    }

    /// Reads ahead of a reader that has reached a missing page, or one of the marked folio, which has this order; false
    /// as [`Self::finish`].
    fn ahead(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        (page, asked): (u64, u64),
        marked: Option<u32>,
    ) -> Result<bool, AllocationFailure> {
        let of = &self.regions[region];
        let cached = |page| of.is_cached(page);
        let limits = Limits { max: self.readahead_pages, len: of.len() };
        let mut ra = of.readahead[mapper];
        reader.pending = ra.on_demand(kernel.reclaim.rules.readahead, (page, asked, marked), limits, cached);
        if !kernel.reclaim.rules.large_folios {
            reader.pending.iter_mut().for_each(|window| window.order = 0);
        }
        self.regions[region].readahead[mapper] = ra;
        self.finish(kernel, caller, region, reader)
    }

    /// Reads the rest of a window; false: it ends early, because a thread has been woken.
    fn finish(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        region: usize,
        reader: &mut Reader,
    ) -> Result<bool, AllocationFailure> {
        // Where read-ahead allocates cold pages, a window is always completed, and its pages are not denied; a slab of the
        // index may be.
        let insists = kernel.reclaim.rules.cold_pages;
        let mut denied = !insists && std::mem::take(&mut self.denied);
        if let Some(window) = reader.pending.as_mut().filter(|window| denied && window.folio() > 0) {
            window.without_folios();
            denied = false;
        }
        reader.alone |= denied;
        let Some(mut window) = reader.pending.take().filter(|_| !denied) else {
            self.read(kernel, caller.cpu, region, &mut reader.brought);
            return Ok(true);
        };
        while window.start < window.end {
            let (page, order) = (window.start, window.folio());
            if order > 0 && (page..page + (1 << order)).any(|page| self.regions[region].is_cached(page)) {
                window.without_folios();
                continue;
            }
            if self.regions[region].is_cached(page) {
                self.read(kernel, caller.cpu, region, &mut reader.brought);
            } else {
                let brought = self.bring(kernel, caller, region, page, &Request { order, ..AHEAD });
                let pfn = brought.inspect_err(|_| reader.pending = Some(window))?;
                kernel.spend(caller.cpu, self.costs.file_folio);
                reader.brought.push(pfn);
                if window.mark.is_some_and(|mark| mark >> order == page >> order) {
                    kernel.alloc.frames.set_flag(pfn, Flag::Reclaim, true);
                }
            }
            window.start += 1 << order;
            if !insists && window.start < window.end && kernel.has_effects() {
                reader.pending = Some(window);
                return Ok(false);
            }
        }
        self.read(kernel, caller.cpu, region, &mut reader.brought);
        Ok(true)
    }

    /// Reads pages that lie one after another, as one request.
    fn read(&mut self, kernel: &mut Kernel, cpu: u32, region: usize, pages: &mut Vec<Pfn>) {
        let count = pages.iter().map(|&page| 1u64 << kernel.alloc.frames.order(page)).sum();
        if count == 0 {
            return;
        }
        if self.regions[region].sparse {
            // A hole is filled as a page of the program's own is.
            kernel.spend(cpu, self.costs.file_create * count);
            return pages.clear();
        }
        kernel.stat.events.reclaim.pgpgin += 4 * count;
        kernel.spend(cpu, self.costs.file_request);
        if self.disk.synchronous {
            kernel.read_by_cpu(cpu, pages, self.disk.transfer(count));
            return pages.clear();
        }
        let place = kernel.alloc.frames.content(pages[0]).into();
        kernel.spend(cpu, self.disk.copy(count));
        let done = self.disk.submit(kernel.clock(cpu), IoClass::Sync, place, count);
        self.reading.extend(pages.drain(..).map(|page| (page, done)));
    }

    /// Reads a single page that a task waits for.
    fn bring_one(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        region: usize,
        page: u64,
    ) -> Result<Pfn, AllocationFailure> {
        let pfn = self.bring(kernel, caller, region, page, &PAGE)?;
        kernel.spend(caller.cpu, self.costs.file_folio);
        self.read(kernel, caller.cpu, region, &mut vec![pfn]);
        Ok(pfn)
    }

    /// Allocates a page of a file, or a folio of the request's order that begins with it, to be read.
    fn bring(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        region: usize,
        page: u64,
        request: &Request,
    ) -> Result<Pfn, AllocationFailure> {
        self.prepare_index(kernel, (caller.cpu, caller.task), region, page)?;
        let mut page_caller = caller.for_page(self.regions[region].policy, page);
        let request = if kernel.reclaim.rules.cold_pages { &COLD_PAGE } else { request };
        let pfn = kernel.allocate_charged(&mut page_caller, request)?.page;
        let (node, pages) = (kernel.node_of_frame(pfn), page..page + (1 << request.order));
        kernel.prepare(caller, pfn, self.regions[region].content(page), &[]);
        let mut shadow = None;
        for (page, pfn) in pages.clone().zip(pfn..) {
            let gone = self.regions[region].entry(page);
            if let Entry::Gone(of) = gone {
                shadow = Some(of);
            }
            self.regions[region].put(page, pfn, node);
            self.enter_index(region, page, matches!(gone, Entry::Gone(_)));
        }
        // A page that is overwritten as a whole is not a refault of read data.
        if let (Some(shadow), false) = (shadow, request.spread_dirty) {
            kernel.refault(pfn, shadow);
        }
        kernel.add_to_lru(caller.cpu, pfn);
        kernel.stat.pages.add(node, NodeItem::FilePages, (pages.end - pages.start) as i64);
        Ok(pfn)
    }

    /// True if a page is not there yet. The end of a read is noticed when the page is accessed.
    pub(crate) fn is_being_read(&self, kernel: &Kernel, cpu: u32, pfn: Pfn) -> bool {
        self.reading.get(&pfn).is_some_and(|&done| done > kernel.clock(cpu))
    }

    /// When a page that is being read will be there; `None` if it is.
    pub(crate) fn read_ends(&mut self, kernel: &Kernel, cpu: u32, pfn: Pfn) -> Option<Ps> {
        read_ends(&mut self.reading, pfn, kernel.clock(cpu)).map(|done| done.div_ceil(PS_PER_NS) * PS_PER_NS)
    }
}

/// When the read of a page ends; `None` if it has ended, which is then forgotten: pages that nobody waits for would stay
/// in the list for ever.
fn read_ends(reading: &mut FxHashMap<Pfn, Ps>, pfn: Pfn, now: Ps) -> Option<Ps> {
    let done = *reading.get(&pfn)?;
    if done <= now {
        reading.remove(&pfn);
    }
    (done > now).then_some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_has_ended_is_forgotten() {
        let mut reading = FxHashMap::from_iter([(9, 50)]);
        assert_eq!((read_ends(&mut reading, 9, 49), reading.len()), (Some(50), 1));
        assert_eq!((read_ends(&mut reading, 9, 50), reading.len()), (None, 0));
    }
}

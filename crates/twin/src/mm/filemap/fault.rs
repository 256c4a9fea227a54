//! Faults on files: `filemap_fault`, `do_sync_mmap_readahead`, `do_async_mmap_readahead`, `filemap_map_pages`, `finish_fault`
//! (6.1 to 6.12, and 7.3).
//!
//! A fault that reads maps the pages around its own that are in memory, of a large folio all, also beyond them. Hits and
//! misses decide whether pages around the next one are read. Checked against guests (docs/fidelity.md).

use super::{Reader, Touched, read_ends};
use crate::frame::Flag;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::readahead::Limits;
use crate::mm::region::Entry;
use crate::mm::vmscan::Retries;
use crate::page_alloc::{AllocationFailure, Caller};
use crate::vmstat::NodeItem;
use mmtwin_scenario::kernel::MmapHits;

impl AccessState {
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
        if !self.finish(kernel, caller, (region, mapper), reader)? {
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
                if marked {
                    self.made_again(kernel);
                    self.drops_mmap_lock(kernel, caller.cpu, false);
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
                self.made_again(kernel);
                let all = if sequential && self.regions[region].readahead[mapper].is_next(page) {
                    self.ahead(kernel, caller, (region, mapper, reader), (page, limits.max), None)?
                } else {
                    let window = self.regions[region].readahead[mapper].around(windows, page, limits);
                    let alone = window.is_none_or(|window| window.end - window.start == 1);
                    self.drops_mmap_lock(kernel, caller.cpu, alone);
                    reader.pending = window;
                    self.finish(kernel, caller, (region, mapper), reader)?
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
                kernel.spend(caller.cpu, self.costs.cached_fault);
            }
            return Ok(self.sleep_for_read(kernel, pfn, until));
        }
        if write {
            self.prepare_write(kernel, caller, region, page)?;
        }
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, self.costs.cached_fault);
        if sequential {
            self.regions[region].readahead[mapper].note(page);
        }
        if !write {
            let found = self.mmap_hits(kernel, caller.cpu, (region, page), hits, tried);
            self.regions[region].readahead[mapper].hit(found);
        }
        self.map_around(kernel, caller.cpu, (region, mapper), page, write);
        if write {
            let dirtied = self.dirty_mapped(kernel, caller, region, page);
            kernel.spend(caller.cpu, if dirtied { self.costs.mkwrite } else { self.costs.mkwrite_dirty });
        }
        Ok(Touched::Done)
    }

    /// A fault that reads, or reads ahead, is made again, which some kernels count.
    fn made_again(&self, kernel: &mut Kernel) {
        kernel.stat.events.faults += u64::from(kernel.reclaim.rules.retries == Retries::Reads);
    }

    /// What that takes differs in guests where the fault reads its page alone (docs/model/notebook.md, "Faults that read one
    /// page").
    fn drops_mmap_lock(&self, kernel: &mut Kernel, cpu: u32, alone: bool) {
        if kernel.reclaim.rules.retries != Retries::Waits {
            kernel.spend(cpu, if alone { self.costs.retry_alone } else { self.costs.retry });
        }
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
    pub(in crate::mm) fn map_around(
        &mut self,
        kernel: &mut Kernel,
        cpu: u32,
        (region, mapper): (usize, usize),
        page: u64,
        write: bool,
    ) {
        let around = if write { 1 } else { self.fault_around };
        let (first, now, of) = (page / around * around, kernel.clock(cpu), &mut self.regions[region]);
        let (mut at, end, mut mapped, mut entries) = (first, (first + around).min(of.len()), 0, 0);
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
                    entries += 1;
                }
            }
        }
        // The fault itself has the cost of the page that it is about, and of its folio.
        kernel.spend(cpu, self.costs.map_around * u64::saturating_sub(mapped, 1));
        kernel.spend(cpu, self.costs.map_further * (entries - mapped));
    }
}

//! The page cache: `filemap_read`, `ext4_write_begin`, `folio_mark_accessed` (6.1 to 6.12, and 7.3; ext4 with 4 KiB blocks and
//! pages). Faults are in `fault`, reading of windows in `read`.
//!
//! A read that finds its page missing reads a window of pages ([`crate::mm::readahead`]) and waits for the disk, unless
//! that is memory. A large folio is one block of memory with one place on an LRU list; its pages have entries of their
//! own. Not modelled: large folios that calls of more than a page write, locks, direct I/O, holes, the pages of a file
//! system's own. Checked against guests (docs/fidelity.md).

mod fault;
pub(crate) mod index;
pub(crate) mod inode_lock;
mod read;

use crate::frame::{Flag, Pfn};
use crate::mm::kernel::Kernel;
use crate::mm::kernel::spinlock::{Lock, percent};
use crate::mm::memory::AccessState;
use crate::mm::readahead::Window;
use crate::mm::region::Entry;
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::time::{PS_PER_NS, Ps};
use rustc_hash::FxHashMap;

/// A page of a file that is about to be written by a call.
const WRITTEN: Request = Request { spread_dirty: true, gfp: "GFP_HIGHUSER_MOVABLE|__GFP_WRITE", ..Request::USER };

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Done,
    /// The page is there from then on.
    Wait(Ps),
    /// A thread was woken meanwhile, which may preempt this one.
    Again,
    /// Another task has the page locked, and wakes this one when it unlocks it.
    Locked,
}

/// A page that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub until: Ps,
    /// A task sleeps until then.
    pub is_awaited: bool,
}

impl Reading {
    pub(crate) fn until(until: Ps) -> Reading {
        Reading { until, is_awaited: false }
    }
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
        if !self.finish(kernel, caller, (region, mapper), reader)? {
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
            return Ok(self.sleep_for_read(kernel, pfn, until));
        }
        kernel.spend(caller.cpu, self.costs.file_call);
        // Several reads of a folio in a row are one use of it.
        if !self.regions[region].readahead[mapper].is_among(&(first..first + (1 << order))) {
            self.mark_accessed(kernel, caller.cpu, pfn);
        }
        self.regions[region].readahead[mapper].note(page);
        Ok(Touched::Done)
    }

    /// A task sleeps until a page has been read.
    pub(in crate::mm) fn sleep_for_read(&mut self, kernel: &mut Kernel, pfn: Pfn, until: Ps) -> Touched {
        kernel.wait_for_read(pfn);
        self.reading.entry(pfn).and_modify(|read| read.is_awaited = true);
        Touched::Wait(until)
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
        if let Some(later) = self.wait_to_write(kernel, caller, region) {
            return Ok(later);
        }
        self.prepare_write(kernel, caller, region, page)?;
        let pfn = match self.regions[region].entry(page) {
            Entry::Present(pfn) => pfn,
            _ => {
                let pfn = self.bring(kernel, caller, region, page, &WRITTEN)?;
                let (time, pages) = (self.costs.file_create, Lock::Pages(region));
                kernel.spend_partly_locked(caller.cpu, pages, time, percent::FILE_CREATE);
                pfn
            }
        };
        let (_, pfn) = self.regions[region].block(kernel, page, pfn);
        if let Some(until) = self.read_ends(kernel, caller.cpu, pfn) {
            return Ok(self.sleep_for_read(kernel, pfn, until));
        }
        kernel.spend(caller.cpu, self.costs.file_write);
        if self.dirty(kernel, caller, region, page) {
            let (time, pages) = (self.costs.file_dirty, Lock::Pages(region));
            kernel.spend_partly_locked(caller.cpu, pages, time, percent::FILE_DIRTY);
        }
        if kernel.reclaim.rules.writes_mark_accessed {
            self.mark_accessed(kernel, caller.cpu, pfn);
        }
        self.regions[region].lock.ends(kernel.clock(caller.cpu));
        Ok(Touched::Done)
    }

    /// True if a page is not there yet. The end of a read is noticed when the page is accessed.
    pub(crate) fn is_being_read(&self, kernel: &Kernel, cpu: u32, pfn: Pfn) -> bool {
        self.reading.get(&pfn).is_some_and(|read| read.until > kernel.clock(cpu))
    }

    /// When a page that is being read will be there; `None` if it is. A task that has slept until then has been switched to.
    pub(crate) fn read_ends(&mut self, kernel: &mut Kernel, cpu: u32, pfn: Pfn) -> Option<Ps> {
        let is_awaited = self.reading.get(&pfn).is_some_and(|read| read.is_awaited);
        let until = read_ends(&mut self.reading, pfn, kernel.clock(cpu));
        if until.is_none() && is_awaited {
            kernel.spend(cpu, self.costs.io_schedule);
        }
        until.map(|until| until.div_ceil(PS_PER_NS) * PS_PER_NS)
    }
}

/// When the read of a page ends; `None` if it has ended, which is then forgotten: pages that nobody waits for would stay
/// in the list for ever.
fn read_ends(reading: &mut FxHashMap<Pfn, Reading>, pfn: Pfn, now: Ps) -> Option<Ps> {
    let until = reading.get(&pfn)?.until;
    if until <= now {
        reading.remove(&pfn);
    }
    (until > now).then_some(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_has_ended_is_forgotten() {
        let mut reading = FxHashMap::from_iter([(9, Reading::until(50))]);
        assert_eq!((read_ends(&mut reading, 9, 49), reading.len()), (Some(50), 1));
        assert_eq!((read_ends(&mut reading, 9, 50), reading.len()), (None, 0));
    }
}

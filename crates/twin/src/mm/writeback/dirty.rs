//! Pages of files that differ from the disk's: `folio_account_dirtied`, `filemap_dirty_folio`, `folio_clear_dirty_for_io`,
//! `do_wp_page` of shared mappings, `submit_bio` (6.1 to 6.12).
//!
//! A page that is on its way to the disk is mapped for reading only, so that the next write to it is a fault, which
//! makes it dirty again. Not modelled: pages of the file system's own, and what writing takes of them: journals, inodes.
//! Checked by tests of `tests/writeback.rs`.

use super::{Destination, JOURNAL, Pages};
use crate::frame::{Flag, Migratetype};
use crate::hw::IoClass;
use crate::mm::filemap::Touched;
use crate::mm::filemap::inode_lock::Taken;
use crate::mm::kernel::Kernel;
use crate::mm::memcg::kmem::BUFFER_HEAD;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::mm::slab::SlabShape;
use crate::mm::swap::SWAP;
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS, Ps};
use crate::vmstat::NodeItem;

/// Buffer head of ext4: an object of 104 bytes, 39 of which share a page.
pub(crate) const BUFFERS: SlabShape = SlabShape { usual: (BUFFER, 39), small: (BUFFER, 39), kept: 5 };
const BUFFER: Request = Request {
    migratetype: Migratetype::Reclaimable,
    gfp: "GFP_NOFS|__GFP_ACCOUNT|__GFP_RECLAIMABLE",
    ..Request::KERNEL
};

impl AccessState {
    /// Sees to it that the file system can remember a page that is about to be written; a large folio gets the buffers of
    /// all its pages (`create_empty_buffers`).
    pub(crate) fn prepare_write(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        region: usize,
        page: u64,
    ) -> Result<(), AllocationFailure> {
        let of = &self.regions[region];
        let pages = match of.entry(page) {
            Entry::Present(pfn) => {
                let (first, head) = of.block(kernel, page, pfn);
                first..first + (1 << kernel.alloc.frames.order(head))
            }
            _ => page..page + 1,
        };
        // They are made in order, so where the last page has them all have.
        if self.regions[region].remembers(pages.end - 1) {
            return Ok(());
        }
        for page in pages {
            if !self.regions[region].remembers(page) {
                let block = self.buffers.take(kernel, (caller.cpu, caller.task))?;
                self.regions[region].remember(page, block);
                self.charge_object(kernel, caller, region, BUFFER_HEAD);
                kernel.spend(caller.cpu, self.costs.file_buffers);
            }
        }
        Ok(())
    }

    /// The kernel has an object more of a file, for a task.
    pub(crate) fn charge_object(&mut self, kernel: &mut Kernel, caller: &Caller, region: usize, bytes: i64) {
        let of = &mut self.regions[region].objects_of;
        if *of == 0 {
            *of = caller.cgroup;
        }
        kernel.reclaim.charge_object(*of, bytes);
    }

    /// A page of a file leaves memory; true if the file system remembered it.
    pub(crate) fn forget_page(&mut self, kernel: &mut Kernel, by: (u32, Task), region: usize, page: u64) -> bool {
        let block = self.regions[region].forget(page);
        if let Some(block) = block {
            self.buffers.give(kernel, by, block);
            kernel.reclaim.charge_object(self.regions[region].objects_of, -BUFFER_HEAD);
        }
        block.is_some()
    }

    /// A page of a file is written to by a call; true if it was clean.
    pub(crate) fn dirty(&mut self, kernel: &mut Kernel, caller: &mut Caller, region: usize, page: u64) -> bool {
        let Entry::Present(pfn) = self.regions[region].entry(page) else { return false };
        let (_, pfn) = self.regions[region].block(kernel, page, pfn);
        let was_dirty = kernel.alloc.frames.set_flag(pfn, Flag::Dirty, true);
        if was_dirty && self.regions[region].is_dirty(page) {
            return false;
        }
        // Of a large folio the page alone is written, but the whole folio counts.
        let pages = 1u64 << kernel.alloc.frames.order(pfn);
        let first = self.regions[region].set_dirty(page);
        let (now, cgroup) = (kernel.now(caller.cpu), kernel.alloc.frames.cgroup(pfn));
        let wb = self.regions[region].wb;
        kernel.writeback.page_dirtied(caller.cpu, (region, wb), cgroup, first, now);
        if !was_dirty {
            kernel.count_dirty(pfn, 1);
            kernel.stat.pages.add(kernel.node_of_frame(pfn), NodeItem::Dirtied, pages as i64);
            caller.writer.dirtied += pages;
        }
        true
    }

    /// The same through a mapping; it clears `PG_reclaim`.
    pub(crate) fn dirty_mapped(&mut self, kernel: &mut Kernel, caller: &mut Caller, region: usize, page: u64) -> bool {
        let Entry::Present(pfn) = self.regions[region].entry(page) else { return false };
        // A large folio is made writable as a whole (`block_page_mkwrite`).
        let (first, pfn) = self.regions[region].block(kernel, page, pfn);
        let mut dirtied = false;
        for page in first..first + (1 << kernel.alloc.frames.order(pfn)) {
            dirtied |= self.dirty(kernel, caller, region, page);
        }
        if dirtied {
            kernel.alloc.frames.set_flag(pfn, Flag::Reclaim, false);
        }
        dirtied
    }

    /// True if a page of a file is being written.
    pub(crate) fn is_under_writeback(&self, kernel: &Kernel, region: usize, page: u64) -> bool {
        match self.regions[region].entry(page) {
            Entry::Present(pfn) => kernel.alloc.frames.has(kernel.alloc.frames.head(pfn), Flag::Writeback),
            Entry::Absent | Entry::Zero | Entry::Gone(_) => false,
        }
    }

    /// Starts to write pages together, of one file or of swap; true if that is over already.
    pub(crate) fn submit(
        &mut self,
        kernel: &mut Kernel,
        (cpu, task): (u32, Task),
        pages: Pages,
        (file, class): (bool, IoClass),
    ) -> bool {
        let (mut count, mut wb) = (0, None);
        for &pfn in &pages {
            let at = self.of_content(kernel.alloc.frames.content(pfn));
            kernel.alloc.frames.set_flag(pfn, Flag::Dirty, false);
            let pages = 1u64 << kernel.alloc.frames.order(pfn);
            if file {
                kernel.count_dirty(pfn, -1);
                let of = &mut self.regions[at.region];
                let cleaned = (at.page..at.page + pages).filter(|&page| of.set_clean(page)).count() as u64;
                kernel.writeback.pages_cleaned(of.wb, cleaned);
                wb = Some(of.wb);
                // Of a large folio only what differs from the disk's is written.
                count += if pages > 1 { cleaned } else { 1 };
            } else {
                count += pages;
            }
        }
        let device = self.device(file);
        let synchronous = device.synchronous;
        let by_page = !file && synchronous && kernel.reclaim.rules.swap_by_page;
        kernel.stat.events.reclaim.pgpgout += if by_page { 0 } else { count * 4 };
        kernel.stat.events.reclaim.pswpout += if file { 0 } else { count };
        let device = self.device(file);
        if device.synchronous {
            kernel.spend(cpu, device.transfer_written(count));
            for &pfn in &pages {
                let written = 1 << kernel.alloc.frames.order(pfn);
                kernel.stat.pages.add(kernel.node_of_frame(pfn), NodeItem::Written, written);
            }
            if let Some(wb) = wb {
                let now = kernel.now(cpu);
                kernel.writeback.pages_written(wb, count, now);
                kernel.writeback.writes_end(wb, now);
            }
            return true;
        }
        pages.iter().for_each(|&pfn| kernel.begin_writeback(pfn));
        let first = pages.first().copied().unwrap_or_default();
        let place = match self.swap.slot_of(first) {
            Some(slot) if !file => SWAP + u64::from(slot),
            _ => kernel.alloc.frames.content(first).into(),
        };
        let device = self.device(file);
        let submitted = kernel.clock(cpu);
        let done = device.submit(submitted, class, place, count);
        let held_up = Some(device.held_up()).filter(|_| class == IoClass::Async);
        let to = Destination { place, submitted, held_up, on_disk: self.is_on_disk(file) };
        let number = self.requests.begin(kernel, (cpu, task), (to, pages), wb);
        self.ends.push((done, number));
        false
    }

    /// A batch of reclaim that has taken pages from their lists puts them back at this time. A write that has ended by then
    /// found its page on no list, so that it is not moved to the tail (`folio_rotate_reclaimable`). A batch is one step, and
    /// the engine ends its writes after it. Where CPUs share the time of one, the batch takes as many times as long.
    pub(crate) fn ended_while_isolated(&self, kernel: &mut Kernel, now: Ps) {
        let sharers = kernel.sharers() as u64;
        let ended = self.ends.iter().filter(|(done, number)| {
            let submitted = self.requests.submitted(*number);
            submitted + now.saturating_sub(submitted) * sharers >= done + self.costs.write_end
        });
        for &page in ended.flat_map(|(_, number)| self.requests.pages(*number)) {
            kernel.alloc.frames.set_flag(page, Flag::Reclaim, false);
        }
    }

    /// A task's call writes to a file: until when it has to wait for others that do, or for the file's times.
    pub(crate) fn wait_to_write(&mut self, kernel: &mut Kernel, caller: &Caller, region: usize) -> Option<Touched> {
        let (clock, task) = (kernel.clock(caller.cpu), caller.task.pid);
        let of = &mut self.regions[region];
        match of.lock.take(task, clock, caller.cpu, |cpu| kernel.is_busy(cpu)) {
            Taken::Yes => {}
            Taken::HandedOn { to, until } => {
                kernel.writeback.granted.push(to);
                return Some(Touched::Wait(until));
            }
            Taken::Spins { until } => {
                kernel.spin(caller.cpu, until);
                return Some(Touched::Again);
            }
            Taken::No { until } => return Some(Touched::Wait(until)),
        }
        let jiffy = 1_000_000_000 / kernel.writeback.rules.hz;
        let now = kernel.now(caller.cpu);
        if of.changed_at == now / jiffy || self.disk.synchronous {
            return None;
        }
        match kernel.writeback.journal.change(now) {
            Ok(commit_at) => {
                of.changed_at = now / jiffy;
                kernel.writeback.commit_at = kernel.writeback.commit_at.or(commit_at);
                None
            }
            // It holds the file meanwhile.
            Err(()) => {
                let until = (now / jiffy + 1) * jiffy * PS_PER_NS;
                of.lock.hold(until);
                Some(Touched::Wait(until))
            }
        }
    }

    /// Writes what has changed of files' times to the journal.
    pub(crate) fn commit(&mut self, kernel: &mut Kernel, at: Ns) {
        kernel.writeback.journal.commit();
        let blocks = self.requests.limits.journal_blocks;
        kernel.stat.events.reclaim.pgpgout += 4 * blocks;
        // The CPU time of jbd2 is not modelled.
        let submitted = at * PS_PER_NS + self.disk.copy(blocks);
        let done = self.disk.submit(submitted, IoClass::Sync, JOURNAL, blocks);
        self.ends.push((done, self.requests.begin_journal()));
    }

    /// By how much a write that should be done by now is late, because synchronous requests delayed it.
    pub(crate) fn late_by(&mut self, number: u64) -> Ps {
        let Some(on_disk) = self.requests.is_on_disk(number) else { return 0 };
        let held_up = self.device(on_disk).held_up();
        self.requests.late_by(number, held_up)
    }
}

impl TaskCtx<'_> {
    /// Starts to write pages of a file that lie one after another.
    pub(crate) fn write_file(&mut self, region: usize, pages: &[u64]) {
        let (of, frames) = (&self.memory.regions[region], &self.kernel.alloc.frames);
        let pfns = pages.iter().filter_map(|&page| match of.entry(page) {
            // Reclaim may have written it meanwhile.
            Entry::Present(pfn) => {
                Some(frames.head(pfn)).filter(|&pfn| frames.has(pfn, Flag::Dirty) && !frames.has(pfn, Flag::Writeback))
            }
            Entry::Absent | Entry::Zero | Entry::Gone(_) => None,
        });
        let mut pfns: Pages = pfns.collect();
        pfns.dedup();
        if pfns.is_empty() {
            return;
        }
        self.memory.submit(self.kernel, (self.cpu, self.task), pfns, (true, IoClass::Async));
    }
}

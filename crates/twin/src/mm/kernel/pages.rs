//! Pages of processes and files from their allocation to their end: content, LRU list, writeback.

use super::spinlock::Lock;
use super::{Kernel, KernelError};
use crate::frame::{Flag, Pfn, ZONES, ZoneKind};
use crate::page_alloc::{Allocated, AllocationFailure, Caller, NodeMask, Request};
use crate::probe::Task;
use crate::vmstat::{NodeItem, ZoneItem};

impl Kernel {
    /// The node of a page that is allocated.
    #[inline]
    pub(crate) fn node_of_frame(&self, page: Pfn) -> usize {
        self.alloc.frames.zone(page) / ZONES
    }

    /// A block has been allocated for a page of a region.
    #[inline]
    pub(crate) fn prepare(&mut self, caller: &Caller, page: Pfn, content: u32, flags: &[Flag]) {
        let frames = &mut self.alloc.frames;
        frames.set_content(page, content);
        frames.set_cgroup(page, caller.cgroup);
        flags.iter().for_each(|&flag| {
            frames.set_flag(page, flag, true);
        });
    }

    /// Allocates for a page of a process or file, and charges its cgroup for it if that has room.
    #[inline]
    pub(crate) fn allocate_charged(
        &mut self,
        caller: &mut Caller,
        request: &Request,
    ) -> Result<Allocated, AllocationFailure> {
        if caller.cgroup == 0 {
            return self.allocate_unchecked(caller, request);
        }
        if let Err(cgroup) = self.reclaim.try_charge(caller.cpu, caller.cgroup, 1 << request.order) {
            let (from, nodes) = (self.machine.node_of(caller.cpu), NodeMask::ALL);
            let (over_limit, cpu, free, asks) = (Some(cgroup), caller.cpu, 0, None);
            return Err(AllocationFailure { request: *request, over_limit, cpu, from, nodes, free, asks });
        }
        let got = self.allocate_unchecked(caller, request);
        if got.is_err() {
            self.reclaim.charge(caller.cgroup, -(1 << request.order));
        }
        got
    }

    /// A page that is about to be freed belongs to its cgroup no more.
    pub(crate) fn uncharge(&mut self, page: Pfn) {
        let pages = 1i64 << self.alloc.frames.order(page);
        self.reclaim.charge(self.alloc.frames.cgroup(page), -pages);
    }

    /// The same, and it is put on its list at once.
    #[inline]
    pub(crate) fn adopt(&mut self, caller: &Caller, page: Pfn, content: u32, flags: &[Flag], locked: bool) {
        self.prepare(caller, page, content, flags);
        if locked {
            self.alloc.frames.set_flag(page, Flag::Unevictable, true);
        }
        self.add_to_lru(caller.cpu, page);
    }

    /// Puts a page on its list, through the batch of its CPU.
    #[inline]
    pub(crate) fn add_to_lru(&mut self, cpu: u32, page: Pfn) {
        let added = self.reclaim.add_page(&mut self.alloc.frames, &mut self.stat, cpu, page);
        self.spend_adding(cpu, self.alloc.frames.zone(page) / ZONES, added);
    }

    /// The batches of a CPU are drained to the lists (`lru_add_drain`), of which those of its node count as locked.
    pub(crate) fn lru_add_drain(&mut self, cpu: u32) {
        let added = self.reclaim.drain(&mut self.alloc.frames, &mut self.stat, cpu);
        self.spend_adding(cpu, self.machine.node_of(cpu), added);
    }

    fn spend_adding(&mut self, cpu: u32, node: usize, added: u64) {
        if added > 0 {
            self.spend_locked(cpu, Lock::Lruvec(node), added * self.costs.lru_add);
        }
    }

    /// A page with a shadow is faulted in again.
    pub(crate) fn refault(&mut self, page: Pfn, shadow: u32) {
        self.reclaim.refault(&mut self.alloc.frames, &mut self.stat, page, shadow);
    }

    /// A page was used by a system call; true if that activates it.
    #[inline]
    pub(crate) fn mark_accessed(&mut self, cpu: u32, page: Pfn) -> bool {
        self.reclaim.mark_accessed(&mut self.alloc.frames, &mut self.stat, cpu, page)
    }

    /// A page of a process or file is freed.
    pub(crate) fn release(&mut self, caller: &Caller, page: Pfn) -> Result<(), KernelError> {
        self.reclaim.forget(&mut self.alloc.frames, &mut self.stat, caller.cpu, page);
        self.uncharge(page);
        Ok(self.free_unchecked(caller.cpu, caller.task, page)?)
    }

    /// A page takes the place of another in memory, which is freed: it holds the same and is as old.
    pub(crate) fn replace(&mut self, caller: &Caller, old: Pfn, new: Pfn) -> Result<(), KernelError> {
        // This does not wait for writeback.
        self.end_writeback(caller.cpu, old);
        let frames = &mut self.alloc.frames;
        for flag in [Flag::Active, Flag::Unevictable, Flag::Referenced, Flag::Dirty, Flag::Workingset, Flag::Swapbacked]
        {
            let has = frames.has(old, flag);
            frames.set_flag(new, flag, has);
        }
        frames.set_content(new, frames.content(old));
        let (cgroup, pages) = (frames.cgroup(old), 1i64 << frames.order(old));
        frames.set_cgroup(new, cgroup);
        self.reclaim.charge(cgroup, pages);
        self.add_to_lru(caller.cpu, new);
        self.release(caller, old)
    }

    /// Takes a free block for compaction, as single pages; false if the zone would have too little left
    /// (`__isolate_free_page`).
    pub(crate) fn isolate_free(&mut self, (cpu, task): (u32, Task), zone: usize, page: Pfn) -> bool {
        let (of, pages) = (&self.alloc.zones[zone], 1u64 << self.alloc.frames.order(page));
        let free = self.stat.plain(zone, ZoneItem::FreePages);
        if !of.watermark_ok(0, of.marks.min + pages, free, ZoneKind::Dma, Default::default()) {
            return false;
        }
        let (alloc, mut ctx) = self.split(cpu, task);
        alloc.isolate(&mut ctx, zone, page);
        true
    }

    /// A page of a file has become dirty (1) or clean (-1); of a large folio all pages count.
    pub(crate) fn count_dirty(&mut self, page: Pfn, sign: i64) {
        let (zone, pages) = (self.alloc.frames.zone(page), sign << self.alloc.frames.order(page));
        self.stat.pages.add(zone / ZONES, NodeItem::Dirty, pages);
        self.writeback.count_dirty(self.alloc.frames.cgroup(page), pages);
        self.stat.pages.add_write_pending(zone, pages);
    }

    /// The write of a page begins.
    pub(crate) fn begin_writeback(&mut self, page: Pfn) {
        let (zone, pages) = (self.alloc.frames.zone(page), 1i64 << self.alloc.frames.order(page));
        self.alloc.frames.set_flag(page, Flag::Writeback, true);
        self.stat.pages.add(zone / ZONES, NodeItem::Writeback, pages);
        self.writeback.count_under(self.alloc.frames.cgroup(page), pages);
        self.stat.pages.add_write_pending(zone, pages);
    }

    /// The write of a page has ended; one that reclaim waits for is moved to the tail of its list.
    pub(crate) fn end_writeback(&mut self, cpu: u32, page: Pfn) {
        let (zone, pages) = (self.alloc.frames.zone(page), 1u64 << self.alloc.frames.order(page));
        if !self.alloc.frames.set_flag(page, Flag::Writeback, false) {
            return;
        }
        if self.alloc.frames.set_flag(page, Flag::Reclaim, false) {
            self.reclaim.rotate(&mut self.alloc.frames, &mut self.stat, cpu, page);
        }
        self.stat.pages.add(zone / ZONES, NodeItem::Writeback, -(pages as i64));
        self.writeback.count_under(self.alloc.frames.cgroup(page), -(pages as i64));
        self.stat.pages.add(zone / ZONES, NodeItem::Written, pages as i64);
        self.stat.pages.add_write_pending(zone, -(pages as i64));
        self.reclaim.page_written(page);
        self.reclaim.written(&mut self.stat.pages, zone / ZONES, pages);
    }
}

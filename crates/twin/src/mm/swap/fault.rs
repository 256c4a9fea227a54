//! Accesses to pages that are in swap: `do_swap_page`, `swapin_readahead`, `shmem_swapin_folio` (6.1 to 6.12).
//!
//! A page is read into the swap cache, with those of its window ([`super::readahead`]), and mapped when it is there. From
//! memory used as swap the anonymous memory of one process is read without the swap cache, alone, and its slot is free at
//! once. Not modelled: that a fault waits for the write of a page that it finds in the swap cache. Validation:
//! docs/model/swap.md.

use super::readahead::SwapReadahead;
use super::{SWAP, count_cached};
use crate::frame::{Flag, Pfn};
use crate::hw::IoClass;
use crate::mm::filemap::{Reader, Reading, Touched};
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::readahead::Window;
use crate::mm::region::Entry;
use crate::mm::vmscan::Retries;
use crate::page_alloc::{AllocationFailure, Caller, Request};

/// A page that is swapped in.
const PAGE: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE", ..Request::USER };

/// Whose fault it is.
#[derive(Clone, Copy)]
struct Fault {
    region: usize,
    mapper: usize,
    page: u64,
    write: bool,
    /// Where the page is in swap.
    slot: u32,
}

impl AccessState {
    /// An access to a page that is in swap. On failure, and after a wait, the same access is repeated.
    pub(crate) fn swap_in(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        page: u64,
        write: bool,
    ) -> Result<Touched, AllocationFailure> {
        let Entry::Gone(slot) = self.regions[region].entry(page) else { return Ok(Touched::Done) };
        let fault = Fault { region, mapper, page, write, slot };
        let begun = reader.pending.take().filter(|window| window.mark == Some(page));
        match (begun, self.cached(slot)) {
            (Some(window), _) => reader.pending = Some(window),
            (None, Some((cached, _))) => self.found_in_cache(kernel, fault, cached),
            (None, None) => {
                let anon = self.regions[region].anon;
                if anon && self.device(false).synchronous && kernel.reclaim.rules.swap_readahead == SwapReadahead::Vma {
                    return self.swap_in_directly(kernel, caller, fault);
                }
                count_major(kernel, caller);
                reader.pending = Some(self.window(kernel, fault));
            }
        }
        let Some(alone) = self.read_window(kernel, caller, fault, reader)? else { return Ok(Touched::Again) };
        let Some((cached, _)) = self.cached(slot) else { return Ok(Touched::Again) };
        if let Some(until) = self.read_ends(kernel, caller.cpu, cached) {
            // A fault that finds its page locked for the disk is made again; one that reads it alone waits at once
            // (`do_poll`, 4.15 to 6.5).
            if kernel.reclaim.rules.retries != Retries::None && !alone {
                kernel.stat.events.faults += 1;
                kernel.spend(caller.cpu, self.costs.cached_fault);
            }
            return Ok(self.sleep_for_read(kernel, cached, until));
        }
        self.map_from_cache(kernel, caller, fault, cached);
        if !self.regions[region].anon {
            self.map_around(kernel, caller.cpu, (region, mapper), page, write);
        }
        Ok(Touched::Done)
    }

    /// A page is read from memory used as swap, past the swap cache.
    fn swap_in_directly(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        fault: Fault,
    ) -> Result<Touched, AllocationFailure> {
        let Fault { region, mapper, page, slot, .. } = fault;
        let pfn = self.allocate_for(kernel, caller, fault, slot)?;
        count_major(kernel, caller);
        self.count_read(kernel, true);
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, self.costs.cached_fault + self.costs.swap_read);
        let node = kernel.node_of_frame(pfn);
        let of = &mut self.regions[region];
        of.put(page, pfn, node);
        of.map_shared(mapper, page, node);
        of.touch(mapper, page);
        of.items().iter().for_each(|&item| kernel.stat.pages.add(node, item, 1));
        kernel.read_by_cpu(caller.cpu, &[pfn], self.device(false).transfer(1));
        self.free_slot(kernel, (caller.cpu, caller.task), slot);
        Ok(Touched::Done)
    }

    /// A fault finds its page in the swap cache: read-ahead is told if it was right.
    fn found_in_cache(&mut self, kernel: &mut Kernel, fault: Fault, cached: Pfn) {
        if kernel.alloc.frames.order(cached) > 0 {
            return;
        }
        // The mark and the end of a write are one flag, and nobody asks which it is.
        let ahead = kernel.alloc.frames.set_flag(cached, Flag::Reclaim, false);
        kernel.stat.events.reclaim.swap_ra_hit += u64::from(ahead);
        if self.reads_by_address(kernel, fault.region) {
            self.regions[fault.region].swap_readahead[fault.mapper].found(fault.page, ahead);
        } else if ahead {
            self.swap.blocks.hit();
        }
    }

    /// Anonymous memory is read by address if no swap space rotates.
    fn reads_by_address(&self, kernel: &Kernel, region: usize) -> bool {
        let rotates = self.swap.device.as_ref().unwrap_or(&self.disk).seeks();
        kernel.reclaim.rules.swap_readahead == SwapReadahead::Vma && self.regions[region].anon && !rotates
    }

    /// What a fault reads: pages of its region, or slots. The mark is the page of the fault.
    fn window(&mut self, kernel: &Kernel, fault: Fault) -> Window {
        let (rules, by_address) = (&kernel.reclaim.rules, self.reads_by_address(kernel, fault.region));
        let range = if by_address {
            let of = &mut self.regions[fault.region];
            let len = of.len();
            of.swap_readahead[fault.mapper].of_mapping(fault.page, len, rules.page_cluster)
        } else {
            let (slots, by_hits) = (self.swap.slots.used(), rules.swap_readahead != SwapReadahead::Block);
            self.swap.blocks.of_block(fault.slot.into(), slots, rules.page_cluster, by_hits)
        };
        Window { start: range.start, end: range.end, mark: Some(fault.page), order: 0 }
    }

    /// Reads the rest of a window into the swap cache; `None`: it ends early, because a thread has been woken. True: it was
    /// a window by address of one page.
    fn read_window(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        fault: Fault,
        reader: &mut Reader,
    ) -> Result<Option<bool>, AllocationFailure> {
        let by_address = self.reads_by_address(kernel, fault.region);
        let Some(mut window) = reader.pending.take() else { return Ok(Some(false)) };
        let alone = window.end - window.start == 1;
        while window.start < window.end {
            let slot = match by_address {
                false => Some(window.start as u32).filter(|&slot| self.swap.slots.get(slot).content().is_some()),
                true => match self.regions[fault.region].entry(window.start) {
                    Entry::Gone(slot) => Some(slot),
                    Entry::Absent | Entry::Zero | Entry::Present(_) => None,
                },
            };
            if let Some(slot) = slot.filter(|&slot| self.cached(slot).is_none()) {
                let read = self.read_slot(kernel, caller, fault, slot);
                read.inspect_err(|_| reader.pending = Some(window))?;
            }
            window.start += 1;
            if window.start < window.end && kernel.has_effects() {
                reader.pending = Some(window);
                return Ok(None);
            }
        }
        // A page that is to be written must have no other users.
        if !alone || fault.write {
            kernel.lru_add_drain(caller.cpu);
        }
        Ok(Some(alone && by_address))
    }

    /// Reads the page at a slot into the swap cache.
    fn read_slot(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        fault: Fault,
        slot: u32,
    ) -> Result<(), AllocationFailure> {
        let pfn = self.allocate_for(kernel, caller, fault, slot)?;
        let synchronous = self.device(false).synchronous;
        self.count_read(kernel, synchronous);
        if slot != fault.slot {
            kernel.alloc.frames.set_flag(pfn, Flag::Reclaim, true);
            kernel.stat.events.reclaim.swap_ra += 1;
        }
        self.swap.slots.at(slot).set_cached(pfn);
        self.swap.by_frame.insert(pfn, slot);
        count_cached(kernel, kernel.node_of_frame(pfn), 1);
        kernel.spend(caller.cpu, self.costs.swap_read);
        let device = self.device(false);
        if synchronous {
            let time = device.transfer(1);
            kernel.read_by_cpu(caller.cpu, &[pfn], time);
            return Ok(());
        }
        kernel.spend(caller.cpu, device.copy(1));
        let submitted = kernel.clock(caller.cpu);
        let done = self.device(false).submit(submitted, IoClass::Sync, SWAP + u64::from(slot), 1);
        self.reads.push((submitted, done));
        self.reading.insert(pfn, Reading::until(done));
        Ok(())
    }

    /// A page for what is at a slot, charged to the cgroup of that.
    fn allocate_for(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        fault: Fault,
        slot: u32,
    ) -> Result<Pfn, AllocationFailure> {
        let at = self.swap.slots.get(slot);
        let mut page_caller = caller.for_page(self.regions[fault.region].policy, fault.page);
        page_caller.cgroup = at.cgroup.into();
        let pfn = kernel.allocate_charged(&mut page_caller, &PAGE)?.page;
        kernel.prepare(&page_caller, pfn, at.content, &[Flag::Swapbacked]);
        kernel.refault(pfn, at.shadow());
        kernel.add_to_lru(caller.cpu, pfn);
        Ok(pfn)
    }

    fn count_read(&self, kernel: &mut Kernel, synchronous: bool) {
        let by_page = synchronous && kernel.reclaim.rules.swap_by_page;
        let reclaim = &mut kernel.stat.events.reclaim;
        reclaim.pswpin += 1;
        reclaim.pgpgin += if by_page { 0 } else { 4 };
    }

    /// A page that is in the swap cache is mapped again, a huge page as a whole (before 6.11 one of its base pages at a
    /// time). It keeps its slot if it is only read and there is room.
    fn map_from_cache(&mut self, kernel: &mut Kernel, caller: &Caller, fault: Fault, cached: Pfn) {
        kernel.stat.events.faults += 1;
        let around = if fault.write { 0 } else { self.costs.shmem_look_around };
        let more = if self.regions[fault.region].anon { 0 } else { self.costs.shmem_swap_read + around };
        kernel.spend(caller.cpu, self.costs.cached_fault + more);
        let node = kernel.node_of_frame(cached);
        let pages = 1u64 << kernel.alloc.frames.order(cached);
        let region = &mut self.regions[fault.region];
        for (page, pfn) in (fault.page / pages * pages..).zip(cached..cached + pages as Pfn) {
            region.put(page, pfn, node);
            region.map_shared(fault.mapper, page, node);
        }
        region.touch(fault.mapper, fault.page);
        let (anon, items) = (region.anon, region.items());
        items.iter().for_each(|&item| kernel.stat.pages.add(node, item, pages as i64));
        let writing = kernel.alloc.frames.has(cached, Flag::Writeback);
        let full = self.is_swap_full(kernel, kernel.alloc.frames.cgroup(cached));
        if !anon || !writing && (fault.write || full) {
            return self.free_slots(kernel, (caller.cpu, caller.task), cached);
        }
        // It is written again only if it changes.
        if fault.write {
            kernel.alloc.frames.set_flag(cached, Flag::Dirty, true);
        } else {
            let pages = fault.page / pages * pages..fault.page / pages * pages + pages;
            let of = &mut self.regions[fault.region];
            of.stamp(&pages, self.epoch);
            of.watch_writes(pages);
            self.looked = true;
        }
    }
}

/// Counts a fault that has to read.
fn count_major(kernel: &mut Kernel, caller: &Caller) {
    kernel.stat.events.reclaim.pgmajfault += 1;
    kernel.reclaim.note(caller.cgroup, |events| events.pgmajfault += 1);
}

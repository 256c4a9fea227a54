//! Swap: `folio_alloc_swap`, `do_swap_page` (6.1 to 6.12).
//!
//! A page that is reclaimed is assigned a place in swap, is written, and stays in the swap cache until it is freed.
//! Memory used as swap is read without the swap cache, and the place is free at once; a page read from a disk keeps its
//! place until it is written. Not modelled: read-ahead, several devices, clusters, per-CPU slot caches, and that a page
//! which is changed while it is being written is written again.

use crate::frame::{Flag, NO_PAGE, Pfn};
use crate::hw::{Device, IoClass};
use crate::mm::filemap::Touched;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::mm::vmscan::Retries;
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::vmstat::NodeItem;
use std::collections::BTreeMap;

/// A page that is swapped in.
const PAGE: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE", ..Request::USER };

/// Where swap is on a disk: behind all files.
pub(super) const SWAP: u64 = 1 << 32;

/// A place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Page in swap's cache, or [`NO_PAGE`].
    cached: Pfn,
    shadow: u32,
    /// Number of the cgroup that it is charged to.
    cgroup: u8,
}

/// Swap space.
#[derive(Clone, Debug)]
pub(crate) struct Swap {
    /// `None`: it is on the disk that holds files.
    device: Option<Device>,
    size: u32,
    /// Places that were ever used.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Pages of memory that have a place, by frame.
    places: BTreeMap<Pfn, u32>,
}

impl Swap {
    /// Space for this many pages.
    pub(crate) fn new(device: Option<Device>, size: u64) -> Swap {
        let size = size.min(1 << 30) as u32;
        Swap { device, size, slots: Vec::new(), free: Vec::new(), places: BTreeMap::new() }
    }

    /// Pages that fit in.
    pub(crate) fn pages(&self) -> u64 {
        self.size.into()
    }

    /// First place of a page in memory; `None` if it has none.
    pub(crate) fn slot_of(&self, page: Pfn) -> Option<u32> {
        self.places.get(&page).copied()
    }

    /// A page that may have a place has moved.
    pub(crate) fn relocate(&mut self, old: Pfn, new: Pfn) {
        if let Some(slot) = self.places.remove(&old) {
            self.places.insert(new, slot);
            self.slots[slot as usize].cached = new;
        }
    }

    /// So many places one after another, if there are.
    fn take(&mut self, count: u32) -> Option<u32> {
        if count == 1
            && let Some(slot) = self.free.pop()
        {
            return Some(slot);
        }
        let first = self.slots.len() as u32;
        (first + count <= self.size).then(|| {
            self.slots.resize((first + count) as usize, Slot { cached: NO_PAGE, shadow: 0, cgroup: 0 });
            first
        })
    }

    /// A page has left memory; its places stay, with a shadow.
    pub(super) fn leave_cache(&mut self, page: Pfn, shadow: u32) {
        let Some(first) = self.places.remove(&page) else { return };
        let own = self.slots[first as usize..].iter_mut().take_while(|slot| slot.cached == page);
        own.for_each(|slot| (slot.cached, slot.shadow) = (NO_PAGE, shadow));
    }
}

impl AccessState {
    /// The disk that holds files, or the one that swap is on.
    pub(super) fn device(&mut self, file: bool) -> &mut Device {
        match &mut self.swap.device {
            Some(own) if !file => own,
            _ => &mut self.disk,
        }
    }

    /// True if files, or swap, are on the disk that holds files.
    pub(crate) fn is_on_disk(&self, file: bool) -> bool {
        file || self.swap.device.is_none()
    }

    /// True if a page has a place in swap.
    pub(crate) fn has_slot(&self, page: Pfn) -> bool {
        self.swap.slot_of(page).is_some()
    }

    /// Gives a page a place in swap and takes it into swap's cache; false if there is none for it.
    pub(crate) fn take_slots(&mut self, kernel: &mut Kernel, page: Pfn) -> bool {
        let pages = 1u32 << kernel.alloc.frames.order(page);
        let Some(first) = self.swap.take(pages) else { return false };
        let cgroup = kernel.alloc.frames.cgroup(page);
        if !kernel.reclaim.try_charge_swap(cgroup, pages.into()) {
            self.swap.free.extend(first..first + pages);
            return false;
        }
        let own = self.swap.slots[first as usize..][..pages as usize].iter_mut();
        own.for_each(|slot| (slot.cached, slot.cgroup) = (page, cgroup as u8));
        self.swap.places.insert(page, first);
        kernel.reclaim.free_swap = kernel.reclaim.free_swap.map(|free| free.saturating_sub(pages.into()));
        kernel.alloc.frames.set_flag(page, Flag::Dirty, true);
        let node = kernel.node_of_frame(page);
        [NodeItem::FilePages, NodeItem::SwapCached]
            .into_iter()
            .for_each(|item| kernel.stat.pages.add(node, item, pages.into()));
        true
    }

    /// Gives the places of a page in memory back; it leaves swap's cache.
    pub(crate) fn free_slots(&mut self, kernel: &mut Kernel, page: Pfn) {
        let Some(first) = self.swap.slot_of(page) else { return };
        let pages = 1u32 << kernel.alloc.frames.order(page);
        self.swap.leave_cache(page, 0);
        (first..first + pages).for_each(|slot| self.free_slot(kernel, slot));
        let node = kernel.node_of_frame(page);
        [NodeItem::FilePages, NodeItem::SwapCached]
            .into_iter()
            .for_each(|item| kernel.stat.pages.add(node, item, -i64::from(pages)));
    }

    /// Frees a swap slot that no page uses.
    pub(crate) fn free_slot(&mut self, kernel: &mut Kernel, slot: u32) {
        self.swap.free.push(slot);
        kernel.reclaim.charge_swap(self.swap.slots[slot as usize].cgroup.into(), -1);
        kernel.reclaim.free_swap = kernel.reclaim.free_swap.map(|free| free + 1);
    }

    /// The page in swap's cache that has a place, and the first of its places.
    pub(super) fn cached(&self, slot: u32) -> Option<(Pfn, u32)> {
        let cached = Some(self.swap.slots[slot as usize].cached).filter(|cached| *cached != NO_PAGE)?;
        Some((cached, self.swap.slot_of(cached)?))
    }

    /// A page that is in swap's cache is mapped again, a huge page as a whole (`do_swap_page`; before 6.11 one of its base
    /// pages at a time).
    fn map_from_cache(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        (region, mapper): (usize, usize),
        page: u64,
        cached: Pfn,
    ) {
        kernel.stat.events.faults += 1;
        kernel.spend(caller.cpu, self.costs.fault);
        let node = kernel.node_of_frame(cached);
        let pages = 1u64 << kernel.alloc.frames.order(cached);
        let region = &mut self.regions[region];
        for (place, pfn) in (page / pages * pages..).zip(cached..cached + pages as Pfn) {
            region.put(place, pfn, node);
            region.map_shared(mapper, place);
        }
        region.touch(mapper, page);
        let mapped = region.items().last().into_iter();
        mapped.for_each(|&item| kernel.stat.pages.add(node, item, pages as i64));
    }

    /// An access to a page that is in swap.
    pub(crate) fn swap_in(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper): (usize, usize),
        page: u64,
        write: bool,
    ) -> Result<Touched, AllocationFailure> {
        let Entry::Gone(slot) = self.regions[region].entry(page) else { return Ok(Touched::Done) };
        let Slot { cached, shadow, .. } = self.swap.slots[slot as usize];
        if cached != NO_PAGE {
            self.map_from_cache(kernel, caller, (region, mapper), page, cached);
            if write && !kernel.alloc.frames.has(cached, Flag::Writeback) {
                self.free_slots(kernel, cached);
            }
            return Ok(Touched::Done);
        }
        let mut page_caller = caller.for_page(self.regions[region].policy, page);
        let pfn = kernel.allocate_charged(&mut page_caller, &PAGE)?.page;
        kernel.prepare(caller, pfn, self.regions[region].content(page), &[Flag::Swapbacked]);
        kernel.refault(pfn, shadow);
        kernel.add_to_lru(caller.cpu, pfn);
        kernel.reclaim.note(caller.cgroup, |events| events.pgmajfault += 1);
        let reclaim = &mut kernel.stat.events.reclaim;
        reclaim.pgmajfault += 1;
        reclaim.pswpin += 1;
        let synchronous = self.device(false).synchronous;
        reclaim.pgpgin += if synchronous && kernel.reclaim.rules.swap_by_page { 0 } else { 4 };
        // A fault that finds its page locked for the disk is made again.
        let faults = 1 + u64::from(!synchronous && kernel.reclaim.rules.retries != Retries::None);
        kernel.stat.events.faults += faults;
        kernel.spend(caller.cpu, self.costs.fault * faults + self.costs.swap_read);
        let node = kernel.node_of_frame(pfn);
        self.regions[region].put(page, pfn, node);
        self.regions[region].map_shared(mapper, page);
        self.regions[region].touch(mapper, page);
        self.regions[region].items().iter().for_each(|&item| kernel.stat.pages.add(node, item, 1));
        if synchronous {
            kernel.read_by_cpu(caller.cpu, &[pfn], self.device(false).transfer(1));
        }
        if synchronous || write {
            self.free_slot(kernel, slot);
        } else {
            self.swap.slots[slot as usize].cached = pfn;
            self.swap.places.insert(pfn, slot);
            [NodeItem::FilePages, NodeItem::SwapCached]
                .into_iter()
                .for_each(|item| kernel.stat.pages.add(node, item, 1));
        }
        if synchronous {
            return Ok(Touched::Done);
        }
        let device = self.device(false);
        kernel.spend(caller.cpu, device.copy(1));
        let done = device.submit(kernel.clock(caller.cpu), IoClass::Sync, SWAP + u64::from(slot), 1);
        Ok(self.sleep_for_read(kernel, caller.cpu, pfn, done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_moves_takes_its_place_along() {
        let mut swap = Swap::new(Some(Device::new(0, 0, true)), 4);
        let slot = swap.take(1).unwrap();
        swap.slots[slot as usize].cached = 7;
        swap.places.insert(7, slot);
        swap.relocate(7, 9);
        swap.relocate(8, 10);
        assert_eq!([7, 8, 9, 10].map(|page| swap.slot_of(page)), [None, None, Some(slot), None]);
        assert_eq!(swap.slots[slot as usize].cached, 9);
    }
}

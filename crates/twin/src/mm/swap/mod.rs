//! Swap space and the swap cache: `folio_alloc_swap`, `folio_free_swap`, `vm_swap_full` (6.1 to 6.12). Faults on pages that
//! are in swap are in `fault`, windows of read-ahead in `readahead`, requests of several pages in `plug`, free slots in
//! `slots`.
//!
//! A page that is reclaimed is assigned a swap slot, is written, and stays in the swap cache until it is freed. A
//! page read from a disk keeps its slot, and is not written again if it does not change, unless more than half of swap
//! is taken. Shared memory leaves the page cache for swap's and never keeps its slot. Not modelled: several devices,
//! per-CPU slot caches, and that a page which is changed while it is being written is written again. Validation:
//! docs/model/swap.md.

mod fault;
mod plug;
pub(crate) mod readahead;
mod slots;

use crate::frame::{Flag, Pfn};
use crate::hw::Device;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::probe::Task;
use crate::vmstat::NodeItem;
use rustc_hash::FxHashMap;
use slots::Slots;

/// Where swap is on a disk: behind all files.
pub(super) const SWAP: u64 = 1 << 32;

/// Swap space.
#[derive(Clone, Debug)]
pub(crate) struct Swap {
    /// `None`: it is on the disk that holds files.
    device: Option<Device>,
    slots: Slots,
    /// Pages of memory that have a slot, by frame.
    by_frame: FxHashMap<Pfn, u32>,
    /// Success of reading blocks of slots.
    blocks: readahead::Window,
    plug: plug::SwapPlug,
}

impl Swap {
    /// Space for this many pages.
    pub(crate) fn new(device: Option<Device>, size: u64) -> Swap {
        let (slots, blocks) = (Slots::new(size.min(1 << 30) as u32), readahead::Window::default());
        Swap { device, slots, by_frame: FxHashMap::default(), blocks, plug: plug::SwapPlug::default() }
    }

    /// The same where slots are taken in clusters with room before free ones.
    pub(crate) fn nonfull_first(mut self) -> Swap {
        self.slots = self.slots.nonfull_first();
        self
    }

    /// Pages that fit in.
    pub(crate) fn pages(&self) -> u64 {
        self.slots.size().into()
    }

    /// First slot of a page in memory; `None` if it has none.
    pub(crate) fn slot_of(&self, page: Pfn) -> Option<u32> {
        self.by_frame.get(&page).copied()
    }

    /// A page that may have a slot has moved.
    pub(crate) fn relocate(&mut self, old: Pfn, new: Pfn) {
        if let Some(slot) = self.by_frame.remove(&old) {
            self.by_frame.insert(new, slot);
            self.slots.at(slot).set_cached(new);
        }
    }

    /// A page has left memory; its slots stay, with a shadow.
    pub(super) fn leave_cache(&mut self, page: Pfn, shadow: u32) {
        let Some(first) = self.by_frame.remove(&page) else { return };
        let own = self.slots.from(first).take_while(|slot| slot.cached() == Some(page));
        own.for_each(|slot| slot.set_shadow(shadow));
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

    /// True if a page has a swap slot.
    pub(crate) fn has_slot(&self, page: Pfn) -> bool {
        self.swap.slot_of(page).is_some()
    }

    /// Gives a page a swap slot and takes it into the swap cache; false if there is none for it.
    pub(crate) fn take_slots(&mut self, kernel: &mut Kernel, by: (u32, Task), page: Pfn) -> bool {
        let pages = 1u32 << kernel.alloc.frames.order(page);
        let Some(first) = self.swap.slots.take(by.0, pages) else { return false };
        kernel.spend(by.0, self.costs.pass_slot * self.swap.slots.take_passed());
        let cgroup = kernel.alloc.frames.cgroup(page);
        let charged = kernel.reclaim.try_charge_swap(cgroup, pages.into());
        if !charged || !self.enter_swap_index(kernel, by, first..first + pages) {
            if charged {
                kernel.reclaim.charge_swap(cgroup, -i64::from(pages));
            }
            (first..first + pages).for_each(|slot| self.swap.slots.free(slot));
            return false;
        }
        let content = kernel.alloc.frames.content(page);
        for (slot, content) in self.swap.slots.from(first).zip(content..content + pages) {
            slot.set_cached(page);
            (slot.cgroup, slot.content) = (cgroup as u8, content);
        }
        self.swap.by_frame.insert(page, first);
        kernel.reclaim.free_swap = kernel.reclaim.free_swap.map(|free| free.saturating_sub(pages.into()));
        kernel.alloc.frames.set_flag(page, Flag::Dirty, true);
        let (node, pages) = (kernel.node_of_frame(page), i64::from(pages));
        if !self.regions[self.of_content(content).region].anon {
            // It leaves the page cache (`shmem_writepage`).
            [NodeItem::FilePages, NodeItem::Shmem].iter().for_each(|&item| kernel.stat.pages.add(node, item, -pages));
        }
        count_cached(kernel, node, pages);
        true
    }

    /// Frees the slots of a page in memory; it leaves the swap cache.
    pub(crate) fn free_slots(&mut self, kernel: &mut Kernel, by: (u32, Task), page: Pfn) {
        let Some(first) = self.swap.slot_of(page) else { return };
        let pages = 1u32 << kernel.alloc.frames.order(page);
        self.swap.leave_cache(page, 0);
        (first..first + pages).for_each(|slot| self.free_slot(kernel, by, slot));
        count_cached(kernel, kernel.node_of_frame(page), -i64::from(pages));
    }

    /// Frees a swap slot that no page uses.
    pub(crate) fn free_slot(&mut self, kernel: &mut Kernel, by: (u32, Task), slot: u32) {
        self.leave_swap_index(kernel, by, slot);
        kernel.reclaim.charge_swap(self.swap.slots.at(slot).cgroup.into(), -1);
        self.swap.slots.free(slot);
        kernel.reclaim.free_swap = kernel.reclaim.free_swap.map(|free| free + 1);
    }

    /// True if pages are not to keep their slots: more than half of swap is taken, or of what the cgroup or one above may
    /// have (`mem_cgroup_swap_full`).
    fn is_swap_full(&self, kernel: &Kernel, cgroup: usize) -> bool {
        let reclaim = &kernel.reclaim;
        let limited = |at: usize| {
            let of = &reclaim.groups[at];
            of.config.swap_max.is_some_and(|max| 2 * of.swap >= max)
        };
        2 * reclaim.free_swap.unwrap_or(0) < self.swap.pages() || reclaim.and_above(cgroup).any(limited)
    }

    /// Reclaim puts a page back as active: if swap is full, it does not keep its slot.
    pub(crate) fn activated_in_swap_cache(&mut self, kernel: &mut Kernel, by: (u32, Task), page: Pfn) {
        let frames = &kernel.alloc.frames;
        if frames.has(page, Flag::Writeback) || !self.is_swap_full(kernel, frames.cgroup(page)) {
            return;
        }
        let at = self.of_content(frames.content(page));
        // What a page table still needs is not freed.
        if self.regions[at.region].entry(at.page) == Entry::Present(page) {
            self.free_slots(kernel, by, page);
        }
    }

    /// The page in the swap cache that has a slot, and the first of its slots.
    pub(super) fn cached(&self, slot: u32) -> Option<(Pfn, u32)> {
        let cached = self.swap.slots.get(slot).cached();
        cached.and_then(|cached| Some((cached, self.swap.slot_of(cached)?)))
    }
}

/// Pages enter the swap cache or leave it.
fn count_cached(kernel: &mut Kernel, node: usize, pages: i64) {
    [NodeItem::FilePages, NodeItem::SwapCached].iter().for_each(|&item| kernel.stat.pages.add(node, item, pages));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_moves_takes_its_place_along() {
        let mut swap = Swap::new(Some(Device::new(0, 0, true)), 4);
        let slot = swap.slots.take(0, 1).unwrap();
        swap.slots.at(slot).set_cached(7);
        swap.by_frame.insert(7, slot);
        swap.relocate(7, 9);
        swap.relocate(8, 10);
        assert_eq!([7, 8, 9, 10].map(|page| swap.slot_of(page)), [None, None, Some(slot), None]);
        assert_eq!(swap.slots.get(slot).cached(), Some(9));
    }
}

//! Reverse mappings: content of a page frame, and reclaim's work on the mappings of a page: `folio_referenced`,
//! `try_to_unmap`, `__remove_mapping`, `pageout` (6.1 to 6.12).
//!
//! A frame has the number of a page among those of all regions. A page is young if it was accessed since the last check
//! of reclaim, for each mapping separately. A check of a mapping costs the same for each, and so does unmapping.

use crate::frame::{Flag, Pfn};
use crate::hw::IoClass;
use crate::mm::kernel::Kernel;
use crate::mm::kernel::spinlock::{Lock, percent};
use crate::mm::memory::AccessState;
use crate::mm::region::Entry;
use crate::mm::tlb::Cpus;
use crate::mm::writeback::Pages;
use crate::page_alloc::HUGE_ORDER;
use crate::probe::Task;
use crate::vmstat::NodeItem;

/// A page of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub region: usize,
    pub page: u64,
}

impl At {
    /// The lock of the page table that maps the page.
    fn table(self) -> Lock {
        Lock::PageTable(self.region, self.page >> HUGE_ORDER)
    }

    /// The page is locked in memory.
    pub(crate) fn locked(self, state: &AccessState) -> bool {
        state.regions[self.region].locked
    }

    /// Others hold the page.
    pub(crate) fn held(self, state: &AccessState) -> bool {
        state.regions[self.region].held
    }

    /// The page has no file.
    pub(crate) fn anon(self, state: &AccessState) -> bool {
        state.regions[self.region].anon
    }

    /// Only a process maps the page whose end has begun.
    pub(crate) fn exiting(self, state: &AccessState) -> bool {
        state.regions[self.region].exiting
    }

    /// The page is mapped executable.
    pub(crate) fn exec(self, state: &AccessState) -> bool {
        state.regions[self.region].exec
    }
}

impl AccessState {
    /// Content of a frame.
    pub(crate) fn of_content(&self, content: u32) -> At {
        let region = self.regions.partition_point(|region| region.base() <= content) - 1;
        At { region, page: u64::from(content - self.regions[region].base()) }
    }

    /// Number of the next region's first page.
    pub(crate) fn next_base(&self) -> u32 {
        self.regions.last().map_or(0, |region| region.base() + region.len() as u32)
    }

    /// True if a page, or one of a block of pages, is in a page table.
    pub(crate) fn is_mapped(&self, content: u32, order: u32) -> bool {
        let at = self.of_content(content);
        let of = &self.regions[at.region];
        // A huge page is mapped as a whole.
        let pages = if of.file { 1 << order } else { 1 };
        (at.page..at.page + pages).any(|page| of.is_mapped_by_any(page))
    }

    /// CPUs that may have a page in their TLBs.
    pub(crate) fn cpus_of(&self, content: u32) -> Cpus {
        self.regions[self.of_content(content).region].cpus
    }

    /// Number of a page's mappings that were accessed since the last check of reclaim.
    pub(crate) fn test_and_clear_young(&mut self, kernel: &mut Kernel, cpu: u32, page: Pfn, content: u32) -> usize {
        let order = kernel.alloc.frames.order(page);
        if !self.is_mapped(content, order) {
            return 0;
        }
        let at = self.of_content(content);
        let (of, pages) = (&self.regions[at.region], at.page..at.page + (1 << order));
        // Entries of a folio that lie one after another are checked together (`folio_pte_batch`).
        let mappings = if of.file { of.mappings_of(&pages) } else { of.mapcount(at.page) };
        kernel.spend_partly_locked(cpu, at.table(), self.costs.rmap_page * mappings as u64, percent::RMAP);
        self.touched(at.region, pages)
    }

    /// Takes a page out of all page tables; where, if others than this CPU may have it in their TLBs.
    pub(crate) fn unmap(&mut self, kernel: &mut Kernel, cpu: u32, page: Pfn, content: u32) -> Cpus {
        let at = self.of_content(content);
        let node = kernel.node_of_frame(page);
        let pages = 1u64 << kernel.alloc.frames.order(page);
        self.clear_marks(at.region, at.page..at.page + pages);
        let region = &mut self.regions[at.region];
        let elsewhere = region.cpus.without(cpu);
        if region.file {
            let all = at.page..at.page + pages;
            let mappings = region.mappings_of(&all) as u64;
            let mapped = all.filter(|&page| region.unmap_everywhere(page, node)).count();
            let further = mapped.saturating_sub(1) as u64;
            let time = (self.costs.unmap_page + self.costs.unmap_further * further) * mappings;
            kernel.spend_partly_locked(cpu, at.table(), time, percent::UNMAP);
            kernel.stat.pages.add(node, NodeItem::Mapped, -(mapped as i64));
            return if mapped > 0 { elsewhere } else { Cpus::default() };
        }
        // In the swap cache it is found by its swap slot.
        if region.entry(at.page) != Entry::Present(page) {
            return Cpus::default();
        }
        // A huge page's entry is split first, and each of the new ones replaced.
        let time = self.costs.unmap_page * pages * region.mapcount(at.page).max(1) as u64;
        kernel.spend_partly_locked(cpu, at.table(), time, percent::UNMAP);
        let slots = self.swap.slot_of(page).unwrap_or_default();
        if region.take_rewritten(at.page..at.page + pages) {
            kernel.alloc.frames.set_flag(page, Flag::Dirty, true);
        }
        let items: &[NodeItem] = if region.anon { &[NodeItem::AnonPages] } else { &[NodeItem::Mapped] };
        items.iter().for_each(|&item| kernel.stat.pages.add(node, item, -(pages as i64)));
        for i in 0..pages {
            self.regions[at.region].take(at.page + i, slots + i as u32, node);
            self.missing(at.region, at.page + i, node);
        }
        elsewhere
    }

    /// The lock of a page's file, or of swap.
    pub(crate) fn lock_of(&self, kernel: &Kernel, page: Pfn) -> Lock {
        let region = self.of_content(kernel.alloc.frames.content(page)).region;
        if self.regions[region].file { Lock::Pages(region) } else { Lock::SwapCache }
    }

    /// A page that reclaim takes leaves the page cache or the swap cache, and a shadow behind.
    pub(crate) fn detach(&mut self, kernel: &mut Kernel, by: (u32, Task), page: Pfn, content: u32, shadow: u32) {
        let at = self.of_content(content);
        let node = kernel.node_of_frame(page);
        let pages = 1i64 << kernel.alloc.frames.order(page);
        kernel.stat.pages.add(node, NodeItem::FilePages, -pages);
        if self.regions[at.region].file {
            kernel.spend(by.0, self.costs.free_further * (pages as u64 - 1));
            for page in at.page..at.page + pages as u64 {
                self.regions[at.region].take(page, shadow, node);
                self.missing(at.region, page, node);
                if self.forget_page(kernel, by, at.region, page) {
                    kernel.spend(by.0, self.costs.free_buffers);
                }
                if !self.index.keeps_shadows {
                    self.leave_index(kernel, by, at.region, page);
                }
            }
        } else {
            kernel.stat.pages.add(node, NodeItem::SwapCached, -pages);
            self.swap.leave_cache(page, shadow);
        }
    }

    /// A page was unmapped: all pools that draw from it are updated.
    pub(super) fn missing(&mut self, region: usize, page: u64, node: usize) {
        for &number in &self.regions[region].pools {
            self.pools[number].iter_mut().for_each(|pool| pool.missing(page, node));
        }
    }

    /// Starts writeback of a page that reclaim will free afterwards; true if it has ended already.
    pub(crate) fn write_out(&mut self, kernel: &mut Kernel, by: (u32, Task), page: Pfn, class: IoClass) -> bool {
        let of = &self.regions[self.of_content(kernel.alloc.frames.content(page)).region];
        let (file, more) = (of.file, if of.anon { 0 } else { self.costs.shmem_swap_write });
        if !file {
            let synchronous = self.device(false).synchronous;
            let plugs = kernel.reclaim.rules.swap_plug && !synchronous;
            let joins = plugs && self.plug(kernel, by, page);
            let write = match (synchronous, joins) {
                (true, _) => self.costs.swap_write,
                (false, true) => self.costs.swap_write_plugged,
                // A device of its own interrupts the CPU that asked, when it is done.
                (false, false) if self.is_on_disk(false) => self.costs.swap_write_async,
                (false, false) => self.costs.swap_write_async + self.costs.write_end,
            };
            let further = (1u64 << kernel.alloc.frames.order(page)) - 1;
            kernel.spend(by.0, write + self.costs.swap_write_further * further + more);
            if plugs {
                return false;
            }
        }
        let done = self.submit(kernel, by, Pages::from_slice(&[page]), (file, class));
        if !done {
            kernel.alloc.frames.set_flag(page, Flag::Reclaim, true);
        }
        done
    }
}

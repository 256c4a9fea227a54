//! Faults of memory without a file, anonymous and shared: `do_anonymous_page`, `do_huge_pmd_anonymous_page`, `wp_page_copy` of
//! the zero page and `shmem_fault`, 4.13 to 6.18.
//!
//! A read of anonymous memory maps the shared zero page and allocates nothing, a write allocates, with a huge page where one
//! fits and is allowed; shared memory is allocated by either. A machine with less than 512 MiB has no huge zero page
//! (`hugepage_init`), so that reads allocate huge pages there. Not modelled: khugepaged. Checked through the counters in
//! `tests/run.rs`.

use super::{HUGE, Region, ZERO};
use crate::frame::{Flag, NO_PAGE, Pfn};
use crate::mm::costs::FaultCosts;
use crate::mm::kernel::Kernel;
use crate::mm::tlb;
use crate::page_alloc::{Allocated, AllocationFailure, Caller, Request};

/// The page of a process, zeroed.
const USER: Request = Request { gfp: "GFP_HIGHUSER_MOVABLE|__GFP_ZERO", ..Request::USER };

impl Region {
    /// Handles the fault of an access on the caller's CPU, which spends the time. The page is mapped afterwards; the
    /// failure of its allocation is returned. `denied`: it was, and waiting did not help.
    pub(crate) fn fault(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        costs: &FaultCosts,
        page: u64,
        (write, denied): (bool, bool),
    ) -> Result<(), AllocationFailure> {
        self.tables.reach_block(kernel, caller, page)?;
        let block = page / HUGE * HUGE;
        let fits = self.may_be_huge() && block + HUGE <= self.len();
        let was = if fits { self.entries[block as usize] } else { ZERO };
        let replaced = write && kernel.huge_zero_page && kernel.huge_zero_replaced;
        let whole = fits
            && (was == NO_PAGE || was == ZERO && replaced)
            && (block..block + HUGE).all(|page| self.entries[page as usize] == was);
        let reads = self.anon && !write;
        if reads && whole && kernel.huge_zero_page {
            self.tables.reach(kernel, caller, page)?;
            self.map_zero(kernel, caller.cpu, costs, block..block + HUGE);
            return Ok(());
        }
        if whole && let Some(got) = self.get_huge(kernel, caller, block, denied)? {
            note_fault(kernel, caller.cpu, costs);
            kernel.stat.events.thp_fault_alloc += 1;
            kernel.spend(caller.cpu, costs.huge_fault + costs.clear_huge);
            if was == ZERO {
                tlb::flush(kernel, costs, caller.cpu, self.cpus);
            }
            let node = kernel.alloc.zones[got.zone].node;
            (block..block + HUGE).zip(got.page..).for_each(|(page, pfn)| self.map(page, pfn, node));
            self.adopt(kernel, caller, block, got.page);
            return Ok(());
        }
        self.tables.reach(kernel, caller, page)?;
        if reads {
            self.map_zero(kernel, caller.cpu, costs, page..page + 1);
            return Ok(());
        }
        let zero = self.entries[page as usize] == ZERO;
        self.allocate(kernel, caller, page)?;
        if zero {
            kernel.spend(caller.cpu, costs.zero_write);
            tlb::flush(kernel, costs, caller.cpu, self.cpus);
        }
        kernel.stat.events.faults += 1;
        let shared = costs.cached_fault + costs.shmem_create + if write { 0 } else { costs.shmem_look_around };
        let time = if self.anon { costs.fault } else { shared };
        kernel.spend(caller.cpu, time.saturating_sub(self.adding.took(caller.task.pid)));
        self.refused.retain(|(of, _)| *of != block);
        Ok(())
    }

    /// Maps the zero page, or the huge one, for a read.
    fn map_zero(&mut self, kernel: &mut Kernel, cpu: u32, costs: &FaultCosts, pages: std::ops::Range<u64>) {
        kernel.stat.events.faults += 1;
        kernel.spend(cpu, costs.zero_fault);
        for page in pages {
            self.entries[page as usize] = ZERO;
            let part = self.part_mut(page);
            (part.absent, part.zero) = (part.absent - 1, part.zero + 1);
        }
    }

    /// Allocates a base page.
    pub(crate) fn allocate(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        page: u64,
    ) -> Result<Pfn, AllocationFailure> {
        let mut page_caller = caller.for_page(self.policy, page);
        let got = kernel.allocate_charged(&mut page_caller, &USER)?;
        self.map(page, got.page, kernel.alloc.zones[got.zone].node);
        self.adopt(kernel, caller, page, got.page);
        Ok(got.page)
    }

    /// Allocates a huge page for a block and then, if it has none yet, its page table: the huge page is kept while that
    /// waits for memory.
    fn get_huge(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        block: u64,
        denied: bool,
    ) -> Result<Option<Allocated>, AllocationFailure> {
        let got = match self.without_table.iter().position(|(of, _)| *of == block) {
            Some(at) => self.without_table.swap_remove(at).1,
            None => match self.ask_huge(kernel, caller, block, denied)? {
                Some(got) => got,
                None => return Ok(None),
            },
        };
        if let Err(failure) = self.tables.reach(kernel, caller, block) {
            kernel.alloc.frames.set_cgroup(got.page, caller.cgroup);
            self.without_table.push((block, got));
            return Err(failure);
        }
        Ok(Some(got))
    }

    /// Allocates a huge page for a block; `None`: it is refused, and the fault continues with a base page.
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
        let mut page_caller = caller.for_page(self.policy, block / HUGE);
        while let Some(request) = self.huge.get(number) {
            match kernel.allocate_charged(&mut page_caller, request) {
                Ok(got) => return Ok(Some(got)),
                Err(failure) if request.may_wait => {
                    self.refused.push((block, number));
                    return Err(failure);
                }
                Err(_) => number += 1,
            }
            kernel.stat.events.thp_fault_fallback += u64::from(number == self.huge.len());
        }
        // Its base page may have to wait too; then no huge page is requested again.
        self.refused.push((block, number));
        Ok(None)
    }

    /// Puts a block that has been allocated for anonymous or shared memory on its LRU list.
    fn adopt(&mut self, kernel: &mut Kernel, caller: &Caller, page: u64, pfn: Pfn) {
        let active = self.anon && kernel.reclaim.rules.new_anon_active;
        let flags: &[Flag] = if active { &[Flag::Swapbacked, Flag::Active] } else { &[Flag::Swapbacked] };
        kernel.adopt(caller, pfn, self.content(page), flags, self.locked);
        self.count(kernel, pfn, 1);
        if self.anon {
            self.young.insert(page);
        }
    }
}

/// A fault is handled.
fn note_fault(kernel: &mut Kernel, cpu: u32, costs: &FaultCosts) {
    kernel.stat.events.faults += 1;
    kernel.spend(cpu, costs.fault);
}

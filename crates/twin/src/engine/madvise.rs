//! Calls by which a process frees memory: `madvise_dontneed_free`, `do_vmi_munmap` with the `mmap` that follows (4.12 to
//! 6.18).
//!
//! `MADV_DONTNEED` and `munmap` free anonymous memory with its swap slots and unmap pages of files, which stay in the
//! page cache; `munmap` frees page tables of the lowest level that map nothing else. `MADV_FREE` is in
//! [`crate::mm::lazyfree`]. A call is done in parts of 2 MiB, between which other CPUs continue, as they do in the kernel.
//! Not modelled: the lock of the address space, for which faults of other threads wait; that a huge page of which only a
//! part is freed is split (it stays); that tables are freed by `MADV_DONTNEED` too (6.14 and later); that the mapping
//! is a new one for NUMA balancing; flushes of the TLBs. What it takes to unmap a page is in
//! [`Region::zap_time`](crate::mm::region::Region), for `MADV_FREE` also what a page of an LRU list does. Checked by
//! `tests/madvise.rs`; beside a guest with 6.12 pages and faults after each call are equal, and 4,096 pages take
//! `MADV_DONTNEED` 36 ms and 33, 8,192 `munmap` 71 and 65, 16,384 `MADV_FREE` 115 and 104.

use super::RunError;
use super::main_loop::{Engine, Step, Stop};
use super::process::Working;
use crate::mm::prot_numa::HUGE_PAGES;
use crate::mm::region::Entry;
use crate::time::{PS_PER_NS, Ps};
use mmtwin_scenario::program;
use mmtwin_scenario::units::{Share, Time};
use mmtwin_scenario::workload::{Advice, Discard};

/// What is freed: a region by name, the call, and the part of the region.
pub(super) type What<'s> = (&'s str, Discard, [Share; 2]);

impl Engine<'_> {
    /// Continues with this many calls, at this interval, until a time.
    pub(super) fn madvise(
        &mut self,
        thread: usize,
        (region, how, range): What<'_>,
        (count, interval): (u64, Time),
        working: &mut Working,
        until: Ps,
    ) -> Result<Step, Stop> {
        let at = &self.threads[thread];
        let (caller, process) = (at.caller, &self.processes[at.process]);
        let number = (thread - process.threads.start) as u32;
        let of = program::discarded(&self.scenario.processes[at.process], number, region, range);
        let Some((index, pages)) = of.filter(|(_, pages)| !pages.is_empty()) else { return Ok(Step::Ended) };
        let of = (process.regions[index], process.mappers[index]);
        while self.kernel.clock(caller.cpu) < until {
            if working.part.operations >= count {
                return Ok(Step::Ended);
            }
            let clock = self.kernel.clock(caller.cpu);
            let begin = match working.next_page {
                Some(page) => page,
                None => {
                    let due = working.attempt.map(|last| last + interval.0 * PS_PER_NS);
                    if let Some(due) = due.filter(|due| *due > clock) {
                        return Ok(self.nanosleep(caller.cpu, due));
                    }
                    working.attempt = Some(clock);
                    pages.start
                }
            };
            let end = ((begin / HUGE_PAGES + 1) * HUGE_PAGES).min(pages.end);
            self.free_part(thread, of, how, begin..end).map_err(RunError::from)?;
            working.next_page = (end < pages.end).then_some(end);
            if working.next_page.is_none() {
                if how == Discard::Unmap && of.1 == 0 {
                    let tables = &mut self.memory.regions[of.0].tables;
                    tables.free_within(&mut self.kernel, &caller, pages.clone()).map_err(RunError::from)?;
                }
                working.part.operations += 1;
            }
        }
        Ok(Step::On)
    }

    fn free_part(
        &mut self,
        thread: usize,
        of: (usize, usize),
        how: Discard,
        pages: std::ops::Range<u64>,
    ) -> Result<(), crate::mm::kernel::KernelError> {
        let caller = self.threads[thread].caller;
        let (kernel, memory) = (&mut self.kernel, &mut self.memory);
        let region = &memory.regions[of.0];
        let zap = match how {
            Discard::Advice(Advice::Free) => {
                let of_own = |page: &u64| match region.entry_of(of.1, *page) {
                    Entry::Present(pfn) => kernel.alloc.frames.head(pfn) == pfn,
                    _ => false,
                };
                pages.clone().filter(of_own).count() as Ps * (memory.costs.zap_page + memory.costs.scan_page)
            }
            Discard::Advice(Advice::Dontneed) | Discard::Unmap => {
                region.zap_time(kernel, &memory.costs, of.1, pages.clone())
            }
        };
        // A part without pages takes time too, so that a call ends.
        kernel.spend(caller.cpu, zap.max(memory.costs.fault).max(1));
        match how {
            Discard::Advice(Advice::Free) => memory.free_lazily(kernel, &caller, of.0, pages),
            Discard::Advice(Advice::Dontneed) | Discard::Unmap => memory.zap(kernel, &caller, of, pages),
        }
    }
}

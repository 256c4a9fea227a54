//! The end of a process: `exit_mmap`, `unmap_vmas`, `zap_pte_range`, `free_pgtables` (4.12 to 6.18).
//!
//! Its first thread unmaps area after area in parts of 2 MiB, between which other CPUs continue: what they allocate
//! meanwhile lies among what is freed. What it takes to unmap a page is in
//! [`Region::zap_time`](crate::mm::region::Region), as with `MADV_DONTNEED` ([`super::madvise`]). A process that is killed
//! frees all at once, for whose memory others wait. Not modelled: the work of the other threads' exits, the parent,
//! the OOM reaper. Checked by `tests/run.rs`; beside guests by what compaction scans after a process has ended
//! (docs/fidelity.md), and by what an end takes of a process that computes (`tests/lab_time.rs`).

use super::RunError;
use super::main_loop::{Engine, Step};
use super::process::Activity;
use crate::mm::kernel::KernelError;
use crate::mm::memcg::kmem;
use crate::mm::prot_numa::HUGE_PAGES;
use crate::time::{Ns, PS_PER_NS, Ps};

/// What a process that exits has yet to unmap.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    /// Regions and numbers of their mappings, the next one last.
    areas: Vec<(usize, usize)>,
    /// Where the next one continues.
    page: u64,
}

impl Engine<'_> {
    /// A process exits: its threads have stopped, and its first one frees its memory from now on.
    pub(super) fn exit(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        let exit = self.begin_exit(process, at)?;
        let first = self.processes[process].threads.start;
        self.threads[first].activity = Activity::Exiting(exit);
        self.wake(first, at * PS_PER_NS)
    }

    /// A process exits, and all its memory is free now.
    pub(super) fn exit_at_once(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        let mut exit = self.begin_exit(process, at)?;
        let first = self.processes[process].threads.start;
        self.free_areas(first, &mut exit, Ps::MAX)?;
        self.end_exit(first);
        Ok(())
    }

    fn begin_exit(&mut self, process: usize, at: Ns) -> Result<Exit, RunError> {
        let this = &mut self.processes[process];
        (this.phase, this.ended) = (None, true);
        let (kept, threads) = (std::mem::take(&mut this.kept), this.threads.clone());
        let regions = this.regions.iter().copied().zip(this.mappers.iter().copied());
        let image = std::mem::take(&mut this.image).into_iter().map(|region| (region, 0));
        let mut areas: Vec<(usize, usize)> = regions.chain(image).collect();
        areas.reverse();
        for &(number, _) in &areas {
            let region = &mut self.memory.regions[number];
            region.exiting = region.anon && region.users == 1;
        }
        let caller = self.threads[threads.start].caller;
        self.kernel.wait(caller.cpu, at * PS_PER_NS);
        for page in kept {
            self.kernel.free_unchecked(caller.cpu, caller.task, page).map_err(KernelError::from)?;
        }
        for thread in threads {
            self.numa_ended(thread);
        }
        Ok(Exit { areas, page: 0 })
    }

    /// Continues an exit until a time.
    pub(super) fn go_on_exiting(&mut self, thread: usize, until: Ps) -> Result<Step, RunError> {
        let Activity::Exiting(mut exit) = std::mem::take(&mut self.threads[thread].activity) else {
            return Ok(Step::Ended);
        };
        self.free_areas(thread, &mut exit, until)?;
        if exit.areas.is_empty() {
            self.end_exit(thread);
            return Ok(Step::Waiting);
        }
        self.threads[thread].activity = Activity::Exiting(exit);
        Ok(Step::On)
    }

    fn free_areas(&mut self, thread: usize, exit: &mut Exit, until: Ps) -> Result<(), RunError> {
        let caller = self.threads[thread].caller;
        while let Some(&(number, mapper)) = exit.areas.last() {
            if self.kernel.clock(caller.cpu) >= until {
                break;
            }
            let (kernel, memory) = (&mut self.kernel, &mut self.memory);
            let region = &mut memory.regions[number];
            let part = exit.page..(exit.page + HUGE_PAGES).min(region.len());
            kernel.spend(caller.cpu, region.zap_time(kernel, &memory.costs, mapper, part.clone()));
            region.unmap_shared(kernel, &caller, mapper, part.clone());
            if region.users == 1 && region.anon {
                memory.discard(kernel, &caller, number, part.clone())?;
            }
            exit.page = part.end;
            if part.end == self.memory.regions[number].len() {
                self.end_area(thread, number)?;
                exit.areas.pop();
                exit.page = 0;
            }
        }
        Ok(())
    }

    /// All of an area is unmapped; what nobody else maps goes.
    fn end_area(&mut self, thread: usize, number: usize) -> Result<(), RunError> {
        let caller = self.threads[thread].caller;
        let (kernel, memory) = (&mut self.kernel, &mut self.memory);
        let region = &mut memory.regions[number];
        region.users -= 1;
        if region.users > 0 {
            return Ok(());
        }
        region.tables.free(kernel, &caller)?;
        for (_, huge) in std::mem::take(&mut region.without_table) {
            kernel.release(&caller, huge.page)?;
        }
        // Files, on a disk or in memory, stay.
        let (ends, all) = (region.anon || region.temporary, 0..region.len());
        if region.temporary {
            memory.discard(kernel, &caller, number, all)?;
        }
        if ends {
            memory.regions[number].end();
        }
        Ok(())
    }

    fn end_exit(&mut self, first: usize) {
        self.unended -= 1;
        let process = &self.processes[self.threads[first].process];
        let cpu = self.threads[first].caller.cpu;
        let threads = process.threads.len() as u64;
        self.kernel.reclaim.charge(self.threads[first].caller.cgroup, -kmem::stacks(threads));
        self.exited = self.exited.max(self.kernel.clock(cpu).div_ceil(PS_PER_NS));
        for thread in process.threads.clone() {
            self.queues.leave(self.threads[thread].caller.cpu);
        }
    }
}

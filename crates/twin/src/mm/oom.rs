//! Who is killed when memory is out: `out_of_memory`, `mem_cgroup_out_of_memory`, `oom_badness`, `oom_kill_process` (6.1 to
//! 6.12).
//!
//! The process with most pages in memory, in swap and of page tables is killed: of all that may take pages of a node that
//! the request may, or of the cgroup whose limit is met. Of equal ones it is the one that began last. Its threads stop, its
//! memory is freed, and all others go on; whoever asked asks again. Before that it is looked once more for a zone above its
//! high mark, where others may have freed enough (`__alloc_pages_may_oom`). A request that may not use file systems kills
//! like others: in the kernel it goes on until some other task kills. Left out: `oom_score_adj`, `memory.oom.group`, the reaper, that a victim may take of the reserves until it is gone, and pages of the
//! program itself. Kernels before 4.13 have no event of it. Checked by `tests/oom.rs`.

use crate::engine::RunError;
use crate::engine::main_loop::{Engine, Stop};
use crate::hw::PAGE_SHIFT;
use crate::mm::region::Region;
use crate::page_alloc::{AllocationFailure, Caller, Policy, Request};
use crate::time::Ns;
use crate::vmstat::ZoneItem;
use mmtwin_event::results::Ending;
use mmtwin_event::value::{Bytes, Str};
use mmtwin_event::vocabulary::MarkVictim;

/// A process that was killed.
#[derive(Clone, Debug)]
pub(crate) struct Killed {
    pub at: Ns,
    pub pid: i32,
    pub comm: String,
    /// What could not be had.
    pub why: String,
}

/// Pages of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Pages {
    total: u64,
    anon: u64,
    file: u64,
    shmem: u64,
    swapped: u64,
    tables: u64,
}

impl Pages {
    fn add(&mut self, region: &Region) {
        self.total += region.len();
        match (region.anon, region.file) {
            (true, _) => self.anon += region.present(),
            (false, true) => self.file += region.mapped_pages(),
            (false, false) => self.shmem += region.present(),
        }
        self.swapped += region.swapped();
        self.tables += region.tables.len();
    }

    /// `oom_badness`.
    fn badness(&self) -> u64 {
        self.anon + self.file + self.shmem + self.swapped + self.tables
    }
}

impl Engine<'_> {
    /// A thread's allocation has failed for good: a process is killed for it. If there is none, the run ends.
    pub(super) fn kill_for(&mut self, thread: usize, failure: AllocationFailure) -> Result<(), Stop> {
        if failure.over_limit.is_none() && self.has_plenty(&failure) {
            return Ok(());
        }
        failure.over_limit.iter().for_each(|&cgroup| self.kernel.reclaim.note(cgroup, |events| events.oom += 1));
        let alive = (0..self.scenario.processes.len()).filter(|&process| self.processes[process].phase.is_some());
        let of = |process: usize| (self.pages_of(process), process);
        let candidates = alive.filter(|&process| self.may_be_killed(process, &failure)).map(of);
        let Some((pages, victim)) = candidates.max_by_key(|(pages, process)| (pages.badness(), *process)) else {
            return Err(Stop::OutOfMemory(thread, failure));
        };
        let (by, cgroup) = (self.threads[thread].caller, self.first_thread(victim).cgroup);
        let at = self.kernel.now(by.cpu);
        self.kernel.stat.events.reclaim.oom_kill += 1;
        self.kernel.reclaim.note(cgroup, |events| events.oom_kill += 1);
        let (pid, comm) = (self.first_thread(victim).task.pid, self.processes[victim].name.clone());
        let kib = |pages: u64| Some(pages << (PAGE_SHIFT - 10));
        let event = MarkVictim {
            pid,
            comm: Some(Str(Bytes { start: 0, len: comm.len() as u32 }.to_slot())),
            total_vm: kib(pages.total),
            anon_rss: kib(pages.anon),
            file_rss: kib(pages.file),
            shmem_rss: kib(pages.shmem),
            uid: Some(0),
            pgtables: kib(pages.tables),
            oom_score_adj: Some(0),
        };
        self.kernel.probe.write(at, by.cpu, by.task, &event, comm.as_bytes());
        self.killed.push(Killed { at, pid, comm, why: failure.to_string() });
        Ok(self.end_victim(victim, at)?)
    }

    /// Some zone that a request may use is above its high mark, with a block on its lists.
    fn has_plenty(&self, failure: &AllocationFailure) -> bool {
        let Request { order, highest, .. } = failure.request;
        self.zones_for(failure).into_iter().any(|zone| {
            let of = &self.kernel.alloc.zones[zone];
            let free = self.kernel.stat.plain(zone, ZoneItem::FreePages);
            self.kernel.alloc.free_pages_from(zone, order) > 0
                && of.watermark_ok(order, of.marks.high, free, highest, Default::default())
        })
    }

    /// The kernel's choice among tasks (`oom_evaluate_task`): those of the cgroup, or that may have pages of its nodes.
    fn may_be_killed(&self, process: usize, failure: &AllocationFailure) -> bool {
        let first = self.first_thread(process);
        match failure.over_limit {
            Some(cgroup) => self.kernel.reclaim.and_above(first.cgroup).any(|at| at == cgroup),
            None => match first.policy {
                Policy::Bind(nodes) => nodes.0 & failure.nodes.0 != 0,
                Policy::Default | Policy::Preferred(_) | Policy::Interleave(_) => true,
            },
        }
    }

    fn first_thread(&self, process: usize) -> Caller {
        self.threads[self.processes[process].threads.start].caller
    }

    fn pages_of(&self, process: usize) -> Pages {
        let of = &self.processes[process];
        let mut pages = Pages::default();
        of.regions.iter().chain(&of.image).for_each(|&region| pages.add(&self.memory.regions[region]));
        pages
    }

    /// The threads of a process stop, and its memory is given back.
    fn end_victim(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        self.close_phase(process, at)?;
        self.exit(process, at)
    }

    /// How a run ends for want of memory for which nobody could be killed.
    pub(crate) fn nobody_killed(&self, thread: usize, failure: &AllocationFailure, at: Ns) -> Ending {
        let thread = &self.threads[thread];
        let comm = self.processes[thread.process].name.clone();
        Ending::OutOfMemory { at, pid: thread.caller.task.pid, comm, message: failure.to_string() }
    }

    /// How a run ends in which processes were killed: the first of them, and what is to be said of the others.
    pub(crate) fn killed(&mut self, ending: Ending) -> (Ending, Vec<String>) {
        let mut killed = std::mem::take(&mut self.killed).into_iter();
        // That a run was stopped is more than that memory ran out before.
        let stopped = matches!(ending, Ending::Stopped { .. });
        let too = if stopped { "" } else { " too" };
        let said = |of: Killed| {
            format!(
                "out of memory after {:.3} s{too}: {} (pid {}) was killed: {}",
                of.at as f64 / 1e9,
                of.comm,
                of.pid,
                of.why
            )
        };
        if stopped {
            return (ending, killed.map(said).collect());
        }
        let Some(Killed { at, pid, comm, why }) = killed.next() else { return (ending, Vec::new()) };
        (Ending::OutOfMemory { at, pid, comm, message: why }, killed.map(said).collect())
    }
}

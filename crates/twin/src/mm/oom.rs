//! The OOM killer: `out_of_memory`, `mem_cgroup_out_of_memory`, `oom_badness`, `oom_kill_process` (6.1 to 6.12).
//!
//! The process with most pages in memory, in swap and of page tables is killed: of all that may use a node of the
//! request, or of the cgroup at its limit. Of equal ones it is the one that began last. Its threads stop, its memory is
//! freed, and all others continue; the allocation is retried. Before the kill it is tried once more with the high
//! watermark, as other tasks may have freed enough (`__alloc_pages_may_oom`). A request without `__GFP_FS` kills like
//! others: in the kernel it loops until some other task kills. Not modelled: `oom_score_adj`, `memory.oom.group`, the
//! reaper, the victim's access to reserves, and pages of the program itself. Kernels before 4.13 have no event for it.
//! Checked by `tests/oom.rs`.

use super::kernel::Kernel;
use super::region::Region;
use super::slowpath::zones_for;
use crate::hw::PAGE_SHIFT;
use crate::page_alloc::{AllocationFailure, Caller, Policy, Request};
use crate::vmstat::ZoneItem;
use mmtwin_event::value::{Bytes, Str};
use mmtwin_event::vocabulary::MarkVictim;

/// Pages of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pages {
    total: u64,
    anon: u64,
    file: u64,
    shmem: u64,
    swapped: u64,
    tables: u64,
}

impl Pages {
    /// Page tables of a region count too.
    pub(crate) fn add(&mut self, region: &Region) {
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
    pub(crate) fn badness(&self) -> u64 {
        self.anon + self.file + self.shmem + self.swapped + self.tables
    }
}

/// A process that may be killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Its number; of equal ones the last is killed.
    pub process: usize,
    /// Its first thread.
    pub first: Caller,
    pub pages: Pages,
}

/// The victim for a request (`select_bad_process`); `None`: no process is eligible.
pub(crate) fn select(
    kernel: &Kernel,
    failure: &AllocationFailure,
    candidates: impl Iterator<Item = Candidate>,
) -> Option<Candidate> {
    let may_be = candidates.filter(|candidate| may_be_killed(kernel, &candidate.first, failure));
    may_be.max_by_key(|candidate| (candidate.pages.badness(), candidate.process))
}

/// Counts a victim and writes `mark_victim`, on behalf of the task whose request failed.
pub(crate) fn mark_victim(kernel: &mut Kernel, by: &Caller, victim: &Candidate, comm: &str) {
    kernel.stat.events.reclaim.oom_kill += 1;
    kernel.reclaim.note(victim.first.cgroup, |events| events.oom_kill += 1);
    let (kib, pages) = (|pages: u64| Some(pages << (PAGE_SHIFT - 10)), &victim.pages);
    let event = MarkVictim {
        pid: victim.first.task.pid,
        comm: Some(Str(Bytes { start: 0, len: comm.len() as u32 }.to_slot())),
        total_vm: kib(pages.total),
        anon_rss: kib(pages.anon),
        file_rss: kib(pages.file),
        shmem_rss: kib(pages.shmem),
        uid: Some(0),
        pgtables: kib(pages.tables),
        oom_score_adj: Some(0),
    };
    let at = kernel.now(by.cpu);
    kernel.probe.write(at, by.cpu, by.task, &event, comm.as_bytes());
}

/// Some zone that a request may use is above its high mark, with a block on its lists.
pub(crate) fn has_plenty(kernel: &Kernel, failure: &AllocationFailure) -> bool {
    let Request { order, highest, .. } = failure.request;
    zones_for(kernel, failure).into_iter().any(|zone| {
        let of = &kernel.alloc.zones[zone];
        let free = kernel.stat.plain(zone, ZoneItem::FreePages);
        kernel.alloc.free_pages_from(zone, order) > 0
            && of.watermark_ok(order, of.marks.high, free, highest, Default::default())
    })
}

/// The kernel's choice among tasks (`oom_evaluate_task`): those of the cgroup, or that may have pages of its nodes.
fn may_be_killed(kernel: &Kernel, first: &Caller, failure: &AllocationFailure) -> bool {
    match failure.over_limit {
        Some(cgroup) => kernel.reclaim.and_above(first.cgroup).any(|at| at == cgroup),
        None => match first.policy {
            Policy::Bind(nodes) => nodes.0 & failure.nodes.0 != 0,
            Policy::Default | Policy::Preferred(_) | Policy::Interleave(_) => true,
        },
    }
}

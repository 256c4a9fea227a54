//! Faults of several processes on one page of shared memory that is not in memory: `shmem_get_folio_gfp` (6.1 to 7.3).
//!
//! Each allocates a page. The first that comes to add its own to the page cache does so; the page is locked until that
//! fault is over. One that comes later frees its own page and maps the other's, and one that finds the page locked
//! sleeps until it is unlocked (`folio_lock`). So the fault has three steps here, between which others run: until it
//! adds its page, until it unlocks it, and the end.
//!
//! Not modelled: the same for pages that are swapped out, for system calls, and where accesses are drawn in bulk or
//! `cost.shmem_add` is 0. Checked by tests here and by guests with two and three processes that fill one segment
//! (docs/model/notebook.md, "Two processes fill one segment").

use super::filemap::Touched;
use super::kernel::Kernel;
use super::memory::AccessState;
use super::region::Entry;
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::time::Ps;

/// What faults on a region of shared memory are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Adding {
    begun: Vec<Begun>,
    locked: Vec<Locked>,
    /// Tasks that have slept for a page's lock and not gone on.
    slept: Vec<i32>,
}

/// A task has allocated a page and not come to add it.
#[derive(Clone, Debug)]
struct Begun {
    task: i32,
    page: u64,
    /// What that took.
    took: Ps,
}

/// A page that a task has added and not unlocked.
#[derive(Clone, Debug)]
struct Locked {
    task: i32,
    page: u64,
    waiting: Vec<i32>,
}

impl Adding {
    fn begin(&mut self, task: i32, page: u64, took: Ps) {
        self.begun.push(Begun { task, page, took });
    }

    fn has_begun(&self, task: i32, page: u64) -> bool {
        self.begun.iter().any(|of| (of.task, of.page) == (task, page))
    }

    /// True if a task has allocated a page and comes to add it.
    fn comes(&mut self, task: i32) -> bool {
        let at = self.begun.iter().position(|of| of.task == task);
        at.map(|at| self.begun.swap_remove(at)).is_some()
    }

    /// What of a task's fault on a page is done.
    pub(crate) fn took(&self, task: i32) -> Ps {
        self.begun.iter().find(|of| of.task == task).map_or(0, |of| of.took)
    }

    /// A task unlocks its page, if it has one: who waits for that.
    fn unlock(&mut self, task: i32) -> Option<Vec<i32>> {
        let at = self.locked.iter().position(|of| of.task == task)?;
        Some(self.locked.swap_remove(at).waiting)
    }

    /// A task waits for a page if another has it locked.
    fn wait(&mut self, task: i32, page: u64) -> bool {
        let Some(of) = self.locked.iter_mut().find(|of| of.page == page) else { return false };
        of.waiting.push(task);
        self.slept.push(task);
        true
    }

    /// True if a task has slept for a page's lock.
    fn goes_on(&mut self, task: i32) -> bool {
        let at = self.slept.iter().position(|slept| *slept == task);
        at.map(|at| self.slept.swap_remove(at)).is_some()
    }

    /// A task goes on with something else: who waits for its page.
    pub(crate) fn leave(&mut self, task: i32) -> Vec<i32> {
        self.begun.retain(|of| of.task != task);
        self.slept.retain(|slept| *slept != task);
        self.locked.iter_mut().for_each(|of| of.waiting.retain(|waits| *waits != task));
        self.unlock(task).unwrap_or_default()
    }
}

impl AccessState {
    /// The next step of a fault on shared memory that several processes map: `None` if that is its end.
    pub(crate) fn add_shared(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper): (usize, usize),
        page: u64,
        write: bool,
    ) -> Result<Option<Touched>, AllocationFailure> {
        let task = caller.task.pid;
        let of = &mut self.regions[region];
        let entry = of.entry(page);
        if let Some(waiting) = of.adding.unlock(task) {
            kernel.writeback.granted.extend(waiting);
            // Unless it is gone again.
            if let Entry::Present(_) = entry {
                return Ok(Some(Touched::Done));
            }
        }
        match entry {
            Entry::Absent if !of.adding.has_begun(task, page) => {
                of.adding.begin(task, page, self.costs.shmem_add);
                kernel.spend(caller.cpu, self.costs.shmem_add);
                Ok(Some(Touched::Again))
            }
            Entry::Absent => {
                let denied = std::mem::take(&mut self.denied);
                of.fault(kernel, caller, &self.costs, page, (write, denied))?;
                of.adding.comes(task);
                of.adding.locked.push(Locked { task, page, waiting: Vec::new() });
                Ok(Some(Touched::Again))
            }
            Entry::Present(_) => {
                if of.adding.comes(task) {
                    // Another was first.
                    let mut own = caller.for_page(of.policy, page);
                    if let Ok(got) = kernel.allocate_charged(&mut own, &Request::USER) {
                        kernel.alloc.frames.set_cgroup(got.page, caller.cgroup);
                        let freed = kernel.release(caller, got.page);
                        debug_assert!(freed.is_ok());
                    }
                }
                if of.adding.goes_on(task) {
                    // It has slept.
                    kernel.spend(caller.cpu, self.costs.io_schedule);
                }
                let waits = !of.is_mapped_by(mapper, page) && of.adding.wait(task, page);
                Ok(waits.then_some(Touched::Locked))
            }
            Entry::Zero | Entry::Gone(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_known_when_a_page_is_unlocked() {
        let mut of = Adding::default();
        of.begin(1, 7, 20);
        assert_eq!((of.has_begun(1, 7), of.has_begun(1, 8), of.has_begun(2, 7), of.took(1)), (true, false, false, 20));
        assert_eq!((of.comes(1), of.comes(1), of.took(1)), (true, false, 0));
        of.locked.push(Locked { task: 1, page: 7, waiting: Vec::new() });
        assert_eq!((of.wait(2, 8), of.wait(2, 7), of.wait(3, 7)), (false, true, true));
        assert!(of.leave(3).is_empty(), "it has no page");
        assert_eq!((of.unlock(2), of.unlock(1), of.unlock(1)), (None, Some(vec![2]), None));
        assert_eq!((of.goes_on(2), of.goes_on(2), of.goes_on(3)), (true, false, false));
    }
}

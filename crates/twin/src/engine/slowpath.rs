//! The slow path in the engine: threads without memory reclaim ([`slowpath`]), and end if they cannot continue.

use super::main_loop::{Engine, Step, Stop};
use crate::frame::ZONES;
use crate::mm::memcg::high::{self, High};
use crate::mm::slowpath::{self, Outcome, Progress};
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{AllocationFailure, PageAllocator, Zone};
use crate::time::Ps;

/// Shortest and longest turn of a CPU while memory is reclaimed: 50 us and 1 ms. They are steps of the simulation and
/// model no property of a kernel or a machine: longer ones are faster, shorter ones keep CPUs closer to each other's
/// time.
pub(super) const SHORTEST_TURN: Ps = 50_000_000;
const LONGEST_TURN: Ps = 1_000_000_000;
/// Shortest time of a fault, about: 1 us.
const PAGE: Ps = 1_000_000;

/// Shortest turn of a CPU while memory is reclaimed. In it no CPU allocates more than a sixteenth of the pages between
/// the low and the min watermark of the smallest node.
pub(super) fn turn(alloc: &PageAllocator) -> Ps {
    let gap = |node: &[Zone]| node.iter().map(|zone| zone.marks.low - zone.marks.min).sum::<u64>();
    let smallest = alloc.zones.chunks(ZONES).map(gap).filter(|gap| *gap > 0).min().unwrap_or(0);
    (smallest / 16 * PAGE).clamp(SHORTEST_TURN, LONGEST_TURN)
}

impl Engine<'_> {
    /// A thread has found no memory: it does something for it, and tries again; or it is the end.
    pub(super) fn alloc_slowpath(&mut self, thread: usize, failure: AllocationFailure) -> Result<Step, Stop> {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        match slowpath::alloc_slowpath(&mut ctx, (&mut at.slowpath, &mut at.node_reclaim), failure) {
            Outcome::Retry => Ok(Step::On),
            Outcome::Deny => Ok(self.deny(thread)),
            Outcome::Kill(failure) => self.kill_for(thread, failure).map(|()| Step::On),
            Outcome::Fail(failure) => Err(Stop::OutOfMemory(thread, failure)),
        }
    }

    /// A thread's request is denied.
    pub(super) fn deny(&mut self, thread: usize) -> Step {
        self.threads[thread].denied = true;
        Step::On
    }

    /// A thread has its memory.
    pub(super) fn alloc_slowpath_ends(&mut self, thread: usize) {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        slowpath::alloc_slowpath_ends(&mut ctx, at.slowpath.take());
    }

    /// Notes what a thread has charged beyond `memory.high` in its last step.
    pub(super) fn note_high(&mut self, thread: usize) {
        let pages = std::mem::take(&mut self.kernel.reclaim.over_high);
        if pages > 0 {
            let at = &mut self.threads[thread];
            at.high = Some(High::new(pages, at.caller.cgroup));
        }
    }

    /// Runs a thread's slow path before it continues, until a time; `None` if it has none, or it has ended.
    pub(super) fn reclaim(&mut self, thread: usize, until: Ps) -> Option<Step> {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        let progress = high::reclaim(&mut ctx, &mut at.high, at.caller.cgroup, until);
        let progress = progress.or_else(|| slowpath::reclaim_node(&mut ctx, &mut at.node_reclaim, until));
        let progress = progress.or_else(|| at.slowpath.as_mut()?.reclaim(&mut ctx, until));
        progress.map(|progress| match progress {
            Progress::On => Step::On,
            Progress::Asleep(until, why) => {
                at.throttled = why;
                Step::Asleep(until)
            }
            Progress::Still => Step::Still,
            Progress::Waits => Step::Waits,
        })
    }
}

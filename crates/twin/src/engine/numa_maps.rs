//! What reading `numa_maps` needs: its file has private data with a counter for each possible node, 8 KiB with the 1,024
//! of a distribution's kernel and more with the rest, so a block of four pages that the kernel cannot move
//! (`numa_maps_open`; seen in 6.1, 6.12 and 7.3). Where memory is short the recorder reclaims and compacts for it as any
//! task does.
//!
//! Not modelled: that the end of what it waits for in reclaim wakes it early; the pages of its recording. Checked by
//! `tests/lab_time.rs`, and by allocations and direct reclaim in guests (docs/model/notebook.md).

use super::main_loop::{Engine, Step, Stop};
use crate::lab_guest::recorder::PID;
use crate::mm::slowpath::{self, AllocSlowpath, Outcome, Progress};
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{AllocationFailure, Caller, Policy, Request};
use crate::probe::Task;
use crate::time::Ps;

/// Private data of the file.
const PRIVATE: Request = Request { order: 2, gfp: "GFP_KERNEL_ACCOUNT|__GFP_COMP|__GFP_ZERO", ..Request::KERNEL };

/// What became of something that the recorder needs memory for.
pub(super) enum Asked<T> {
    Got(T),
    /// It reclaims, or sleeps, and asks again.
    Later(Step),
    /// It does without.
    Denied,
}

impl Engine<'_> {
    /// The recorder does something that needs memory, for which it reclaims until a time if there is none.
    pub(super) fn ask_as_recorder<T>(
        &mut self,
        cpu: u32,
        until: Ps,
        ask: impl FnOnce(&mut TaskCtx<'_>, &mut Caller) -> Result<T, AllocationFailure>,
    ) -> Result<Asked<T>, Stop> {
        let Some(recorder) = &mut self.recorder else { return Ok(Asked::Denied) };
        let task = Task { pid: PID, tgid: PID };
        let mut caller = Caller::new(cpu, task, Policy::Default);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        let progress = slowpath::reclaim_node(&mut ctx, &mut recorder.node_reclaim, until);
        match progress.or_else(|| recorder.slowpath.as_mut()?.reclaim(&mut ctx, until)) {
            Some(Progress::On) => return Ok(Asked::Later(Step::On)),
            Some(Progress::Asleep(until, _)) => return Ok(Asked::Later(Step::Asleep(until))),
            Some(Progress::Still | Progress::Waits) => {
                recorder.slowpath = None;
                return Ok(Asked::Denied);
            }
            None => {}
        }
        ctx.kernel.awaited = recorder.slowpath.as_ref().map(AllocSlowpath::request);
        let got = ask(&mut ctx, &mut caller);
        ctx.kernel.awaited = None;
        match got {
            Ok(got) => {
                slowpath::alloc_slowpath_ends(&mut ctx, recorder.slowpath.take());
                Ok(Asked::Got(got))
            }
            Err(failure) => {
                let of = (&mut recorder.slowpath, &mut recorder.node_reclaim);
                match slowpath::alloc_slowpath(&mut ctx, of, failure) {
                    Outcome::Retry => Ok(Asked::Later(Step::On)),
                    Outcome::Kill(failure) if self.kill_by(&caller, &failure)? => Ok(Asked::Later(Step::On)),
                    Outcome::Kill(_) | Outcome::Deny | Outcome::Fail(_) => Ok(Asked::Denied),
                }
            }
        }
    }

    /// The recorder opens the next file; it has when the step has ended.
    pub(super) fn open_numa_maps(&mut self, cpu: u32, until: Ps) -> Result<Step, Stop> {
        let open = |ctx: &mut TaskCtx<'_>, caller: &mut Caller| ctx.kernel.allocate_unchecked(caller, &PRIVATE);
        let private = match self.ask_as_recorder(cpu, until, open)? {
            Asked::Got(got) => Some(got.page),
            Asked::Later(step) => return Ok(step),
            Asked::Denied => None,
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.private = private;
            recorder.left = recorder.files.pop().unwrap_or_default();
        }
        Ok(Step::Ended)
    }

    /// The recorder reads what is open until a time, and closes it at its end.
    pub(super) fn read_on(&mut self, cpu: u32, until: Ps) {
        let Some(recorder) = &mut self.recorder else { return };
        let time = until.saturating_sub(self.kernel.clock(cpu)).min(recorder.left);
        recorder.left -= time;
        self.kernel.spend(cpu, time);
        if recorder.left == 0
            && let Some(page) = recorder.private.take()
        {
            let freed = self.kernel.free_unchecked(cpu, Task { pid: PID, tgid: PID }, page);
            debug_assert!(freed.is_ok(), "it was allocated");
        }
    }
}

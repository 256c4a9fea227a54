//! What reading `numa_maps` needs: its file has private data with a counter for each possible node, 8 KiB with the 1,024
//! of a distribution's kernel and more with the rest, so a block of four pages that the kernel cannot move
//! (`numa_maps_open`; seen in 6.1, 6.12 and 7.3). Where memory is short the recorder reclaims and compacts for it as any
//! task does.
//!
//! Not modelled: the pages of its recording. Checked by `tests/lab_time.rs`, and by allocations and direct reclaim in guests (docs/model/notebook.md).

use super::main_loop::{Engine, Step, Stop};
use super::recorder::Asked;
use crate::lab_guest::recorder::PID;
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{Caller, Request};
use crate::probe::Task;
use crate::time::Ps;

/// Private data of the file.
const PRIVATE: Request = Request { order: 2, gfp: "GFP_KERNEL_ACCOUNT|__GFP_COMP|__GFP_ZERO", ..Request::KERNEL };

impl Engine<'_> {
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

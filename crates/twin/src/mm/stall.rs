//! What the running task has waited for, or begins to wait for: `psi_memstall_enter` of reads, `io_schedule` (4.20 to
//! 6.18).
//!
//! A task that needs a page of the working set which is being read stalls on memory as well; reclaim, in which it
//! stalls too, is known to the engine. Read ahead of the task itself is no wait. Validated with the totals that
//! [`crate::sched`] computes of it.

use super::kernel::Kernel;
use crate::frame::{Flag, Pfn};
use crate::time::Ps;

/// Since the engine has looked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stall {
    /// It is about to sleep until a disk is done.
    pub io: bool,
    /// For a page of the working set.
    pub memory: bool,
    /// CPU time of reads of such pages from a device that the CPU reads.
    pub read: Ps,
}

impl Kernel {
    /// The running task is about to wait for a page that is being read.
    pub(crate) fn wait_for_read(&mut self, pfn: Pfn) {
        (self.stall.io, self.stall.memory) = (true, self.alloc.frames.has(pfn, Flag::Workingset));
    }

    /// The running task is about to wait for dirty pages to be written.
    pub(crate) fn wait_for_writeback(&mut self) {
        self.stall.io = true;
    }

    /// The running task's CPU reads pages from a device.
    pub(crate) fn read_by_cpu(&mut self, cpu: u32, pages: &[Pfn], time: Ps) {
        let before = self.clock(cpu);
        self.spend(cpu, time);
        if pages.iter().any(|&page| self.alloc.frames.has(page, Flag::Workingset)) {
            self.stall.read += self.clock(cpu) - before;
        }
    }
}

//! CFS, the fair class before 6.6: `place_entity`, `check_preempt_wakeup`, `check_preempt_tick`.
//!
//! The thread with the least virtual runtime runs next. One that wakes is placed at most half a period before the least
//! of its CPU, and preempts the running one if it is far enough behind. At a tick another thread runs if the running one
//! has used its slice, or is ahead of the first by more than that. Not modelled: weights, groups, the debit of a new
//! thread, buddies. Checked by tests in [`super::fair`].

use super::fair::{MS, factor};

/// Times in picoseconds, which grow with the number of CPUs up to eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cfs {
    /// `sched_latency`: each thread of a CPU is to run once in it.
    latency: i64,
    /// `sched_min_granularity`: least slice.
    min_granularity: i64,
    /// `sched_wakeup_granularity`: how far behind a thread that wakes preempts.
    wakeup_granularity: i64,
}

impl Cfs {
    pub(crate) fn new(cpus: usize) -> Cfs {
        let factor = factor(cpus);
        Cfs { latency: 6 * MS * factor, min_granularity: MS * 3 / 4 * factor, wakeup_granularity: MS * factor }
    }

    /// Virtual runtime of a thread that wakes where the least is `least`.
    pub(super) fn place(&self, vruntime: i64, least: i64) -> i64 {
        vruntime.max(least - self.latency / 2)
    }

    /// True if a thread that wakes preempts the running one.
    pub(super) fn preempts(&self, woken: i64, running: i64) -> bool {
        running - woken > self.wakeup_granularity
    }

    /// True if one of `threads` has run long enough at a tick: `ran` since it was picked, and how far it is ahead of the
    /// first that waits.
    pub(super) fn slice_ends(&self, threads: usize, ran: i64, ahead: i64) -> bool {
        let slice = (self.latency / threads.max(1) as i64).max(self.min_granularity);
        ran >= slice || (ran >= self.min_granularity && ahead > slice)
    }
}

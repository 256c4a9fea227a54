//! Effects of memory management for the engine: threads to wake, and timers.
//!
//! A step of a CPU ends when there are any ([`Kernel::has_effects`]). Its caller takes it ([`Kernel::take_effects`])
//! before another CPU runs.

use super::kernel::Kernel;
use super::kernel::budget::Budget;
use super::vmscan::Reason;
use super::writeback::Wake;
use crate::time::Ns;

/// The effects, in this order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// Ids of the tasks that have been given a file's lock.
    pub lock_granted: Vec<i32>,
    /// When a file system's journal is committed.
    pub commit_at: Option<Ns>,
    /// Flushers that are woken, by number.
    pub flushers: Vec<(usize, Wake)>,
    /// Nodes whose kcompactd is woken.
    pub kcompactd: Vec<usize>,
    /// Tasks that are throttled on a node for a reason are woken.
    pub unthrottled: Vec<(usize, Reason)>,
    /// CPUs on which a worker wakes, so that the scheduler picks a thread.
    pub reschedule: Vec<u32>,
    /// Nodes whose kswapd is woken.
    pub kswapd: Vec<usize>,
}

impl Kernel {
    /// True if something is to be done at once.
    pub(crate) fn has_effects(&self) -> bool {
        self.budget.as_ref().is_some_and(Budget::waits)
            || self.reclaim.has_effects()
            || self.writeback.has_effects()
            || !self.compaction.wakes.is_empty()
    }

    /// Takes the effects.
    pub(crate) fn take_effects(&mut self) -> Effects {
        let (reclaim, writeback) = (&mut self.reclaim, &mut self.writeback);
        Effects {
            lock_granted: std::mem::take(&mut writeback.granted),
            commit_at: writeback.commit_at.take(),
            flushers: std::mem::take(&mut writeback.wake),
            kcompactd: std::mem::take(&mut self.compaction.wakes),
            unthrottled: std::mem::take(&mut reclaim.unthrottled),
            reschedule: std::mem::take(&mut reclaim.workers),
            kswapd: std::mem::take(&mut reclaim.wakes),
        }
    }
}

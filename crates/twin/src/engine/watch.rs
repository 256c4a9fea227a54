//! A run without progress is ended.
//!
//! Virtual time must advance while work is done. Work is counted in steps of CPUs, timers, and steps of reclaim and of
//! kernel threads; wall time is not used, so the same run ends at the same place on every machine. A run also ends when
//! the events waiting exceed the memory meant for them. Both are errors of the twin or of the scenario, not of the
//! modelled kernel: results so far are kept and reported. Checked by `tests/watch.rs`.

use super::main_loop::Engine;
use super::process::Activity;
use crate::time::{Ns, PS_PER_NS, Ps};

/// Bytes of events that wait from which on those that are final are given out early; that may wait at most.
pub(super) const MANY_EVENTS: usize = 64 << 20;
const MOST_EVENTS: usize = 512 << 20;

/// Why a run was ended before its workload or time was over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halted {
    /// Work continued while virtual time did not advance.
    #[error("the run got nowhere: {steps} steps of work within a microsecond at {:.9} s, last {activity} for {comm} (pid {pid}); this is an error of the twin: what was recorded until then is kept", *at as f64 / 1e9)]
    StandsStill {
        /// Virtual time.
        at: Ns,
        /// Steps that were done there.
        steps: u64,
        /// Thread whose turn it was; 0: none.
        pid: i32,
        /// Its process.
        comm: String,
        /// The mechanism at work.
        activity: String,
    },
    /// A task waits for memory that no thread frees.
    #[error("the run got nowhere: at {:.9} s {comm} (pid {pid}) has slept 10,000 times for one request for memory, last {activity}; what was recorded until then is kept", *at as f64 / 1e9)]
    WaitsForEver {
        /// Virtual time.
        at: Ns,
        /// The thread.
        pid: i32,
        /// Its process.
        comm: String,
        /// The mechanism at work.
        activity: String,
    },
    /// More is to be kept than memory is meant for.
    #[error("the run needs too much memory: {bytes} bytes of {what} at {:.9} s, {limit} are allowed, last {activity} for {comm} (pid {pid}); name fewer events, or a shorter epoch", *at as f64 / 1e9)]
    TooLarge {
        /// Virtual time.
        at: Ns,
        /// The quantity that grew.
        what: &'static str,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
        /// Thread whose turn it was; 0: none.
        pid: i32,
        /// Its process.
        comm: String,
        /// The mechanism at work.
        activity: String,
    },
}

impl Engine<'_> {
    /// Checks whether the run may continue at a time, with the thread whose turn it is.
    pub(super) fn check_progress(&mut self, now: Ps, thread: Option<usize>) -> Result<(), Box<Halted>> {
        if !self.watch.goes_on(now) {
            return Err(self.stands_still(thread));
        }
        let bytes = self.kernel.probe.bytes();
        if bytes < self.drain_at {
            return Ok(());
        }
        // As at the end of an epoch: no CPU can be before this time any more.
        self.kernel.probe.drain(now / PS_PER_NS, self.sink);
        let left = self.kernel.probe.bytes();
        self.drain_at = (2 * left).max(MANY_EVENTS);
        if left <= MOST_EVENTS {
            return Ok(());
        }
        let (at, what) = (now / PS_PER_NS, "events that wait for their order");
        let (pid, comm, activity) = self.current_task(thread);
        let (bytes, limit) = (left as u64, MOST_EVENTS as u64);
        Err(Box::new(Halted::TooLarge { at, what, bytes, limit, pid, comm, activity }))
    }

    /// The run has made no progress.
    pub(super) fn stands_still(&self, thread: Option<usize>) -> Box<Halted> {
        let at = self.watch.since() / PS_PER_NS;
        let at = thread.map_or(at, |thread| at.max(self.kernel.now(self.cpu_of(thread))));
        let (pid, comm, activity) = self.current_task(thread);
        Box::new(Halted::StandsStill { at, steps: self.watch.most(), pid, comm, activity })
    }

    /// A thread waits for ever.
    pub(super) fn waits_for_ever(&self, thread: usize) -> Box<Halted> {
        let (pid, comm, activity) = self.current_task(Some(thread));
        Box::new(Halted::WaitsForEver { at: self.kernel.now(self.cpu_of(thread)), pid, comm, activity })
    }

    /// The thread id, the process and the mechanism at work.
    fn current_task(&self, thread: Option<usize>) -> (i32, String, String) {
        let Some((at, thread)) = thread.and_then(|thread| Some((self.threads.get(thread)?, thread))) else {
            return (0, "the kernel".into(), "timers".into());
        };
        (at.caller.task.pid, self.processes[at.process].name.clone(), self.mechanism(thread))
    }

    /// Activity of a thread.
    fn mechanism(&self, thread: usize) -> String {
        let at = &self.threads[thread];
        if let Some(slowpath) = &at.slowpath {
            let request = slowpath.request();
            let what = if slowpath.compact.is_some() { "direct compaction" } else { "direct reclaim" };
            return format!("{what}, order {}, {}", request.order, request.gfp);
        }
        match (&at.node_reclaim, &at.high, &at.activity) {
            (Some(_), ..) => "node reclaim".into(),
            (None, Some(_), _) => "reclaim above memory.high".into(),
            (None, None, activity) => match activity {
                Activity::Nothing => "waiting for its phase to end".into(),
                Activity::Action(number, _) => format!("action number {number}"),
                Activity::Accessing(_) => "accessing memory".into(),
                Activity::Kswapd(_) => "kswapd".into(),
                Activity::Kcompactd(_) => "kcompactd".into(),
                Activity::Flusher(_) => "the flusher".into(),
                Activity::BioEndIo(_) => "ending writes".into(),
                Activity::Reporting(_) => "reading its program's memory".into(),
                Activity::Exiting(_) => "its exit".into(),
            },
        }
    }
}

//! Out of memory: the engine ends the chosen process ([`oom`]), or the run.

use super::RunError;
use super::main_loop::{Engine, Stop};
use crate::mm::oom::{self, Candidate, Pages};
use crate::page_alloc::{AllocationFailure, Caller};
use crate::time::Ns;
use mmtwin_event::results::Ending;

/// A process that was killed.
#[derive(Clone, Debug)]
pub(super) struct Killed {
    pub at: Ns,
    pub pid: i32,
    pub comm: String,
    /// The failed request.
    pub why: String,
}

impl Engine<'_> {
    /// A thread's allocation has failed without another retry: a process is killed for it. If there is none, the run
    /// ends.
    pub(super) fn kill_for(&mut self, thread: usize, failure: AllocationFailure) -> Result<(), Stop> {
        let by = self.threads[thread].caller;
        if self.kill_by(&by, &failure)? { Ok(()) } else { Err(Stop::OutOfMemory(thread, failure)) }
    }

    /// As [`Self::kill_for`] for a task that need not be a thread; false if there is nobody to kill.
    pub(super) fn kill_by(&mut self, by: &Caller, failure: &AllocationFailure) -> Result<bool, Stop> {
        if failure.over_limit.is_none() && oom::has_plenty(&self.kernel, failure) {
            return Ok(true);
        }
        failure.over_limit.iter().for_each(|&cgroup| self.kernel.reclaim.note(cgroup, |events| events.oom += 1));
        let alive = (0..self.scenario.processes.len()).filter(|&process| self.processes[process].lives());
        let candidates = alive.map(|process| self.candidate(process));
        let Some(victim) = oom::select(&self.kernel, failure, candidates) else {
            return Ok(false);
        };
        let at = self.kernel.now(by.cpu);
        let comm = self.processes[victim.process].name.clone();
        oom::mark_victim(&mut self.kernel, by, &victim, &comm);
        self.killed.push(Killed { at, pid: victim.first.task.pid, comm, why: failure.to_string() });
        self.end_victim(victim.process, at)?;
        Ok(true)
    }

    fn candidate(&self, process: usize) -> Candidate {
        let of = &self.processes[process];
        let mut pages = Pages::default();
        of.regions.iter().chain(&of.image).for_each(|&region| pages.add(&self.memory.regions[region]));
        Candidate { process, first: self.threads[of.threads.start].caller, pages }
    }

    /// The threads of a process stop, and its memory is freed.
    fn end_victim(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        match self.processes[process].phase {
            Some(_) => self.close_phase(process, at)?,
            None => self.stop_threads(process, at)?,
        }
        self.exit_at_once(process, at)
    }

    /// How a run ends that is out of memory and has no eligible victim.
    pub(super) fn oom_no_victim(&self, thread: usize, failure: &AllocationFailure, at: Ns) -> Ending {
        let thread = &self.threads[thread];
        let comm = self.processes[thread.process].name.clone();
        Ending::OutOfMemory { at, pid: thread.caller.task.pid, comm, message: failure.to_string() }
    }

    /// Result of a run in which processes were killed: the first of them, and notes on the others.
    pub(super) fn killed(&mut self, ending: Ending) -> (Ending, Vec<String>) {
        let mut killed = std::mem::take(&mut self.killed).into_iter();
        // A stopped run takes precedence over an earlier lack of memory.
        let stopped = matches!(ending, Ending::Stopped { .. });
        let too = if stopped { "" } else { " too" };
        let config = |of: Killed| {
            format!(
                "out of memory after {:.3} s{too}: {} (pid {}) was killed: {}",
                of.at as f64 / 1e9,
                of.comm,
                of.pid,
                of.why
            )
        };
        if stopped {
            return (ending, killed.map(config).collect());
        }
        let Some(Killed { at, pid, comm, why }) = killed.next() else { return (ending, Vec::new()) };
        (Ending::OutOfMemory { at, pid, comm, message: why }, killed.map(config).collect())
    }
}

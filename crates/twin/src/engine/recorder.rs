//! The recorder among the threads of a run ([`Recorder`](crate::lab_guest::recorder::Recorder)).

use super::RunError;
use super::main_loop::Engine;
use crate::time::{Ns, PS_PER_NS, Ps};

impl Engine<'_> {
    /// Number of the recorder's task, behind those of the threads, if it is one.
    pub(crate) fn recorder(&self) -> Option<usize> {
        self.balancing.as_ref().and_then(|of| of.recorder.as_ref()).map(|_| self.threads.len())
    }

    /// The CPU of a thread or of the recorder.
    pub(crate) fn cpu_of(&self, thread: usize) -> u32 {
        match (self.threads.get(thread), &self.balancing) {
            (Some(at), _) => at.caller.cpu,
            (None, Some(of)) => of.numa.tasks[thread].cpu,
            (None, None) => 0,
        }
    }

    /// The recorder begins a sample that takes it a time, if it is a task and others run too. False if not.
    pub(crate) fn wake_recorder(&mut self, time: Ps, at: Ns) -> Result<bool, RunError> {
        let Some(task) = self.recorder() else { return Ok(false) };
        if (0..self.queues.cpus() as u32).all(|cpu| self.queues.len(cpu) == 0) {
            return Ok(false);
        }
        let Some(recorder) = self.balancing.as_mut().and_then(|of| of.recorder.as_mut()) else { return Ok(false) };
        let (asleep, bound) = (recorder.left == 0, recorder.allowed);
        recorder.left += time;
        if asleep {
            let online = |cpu: &u32| self.kernel.stat.is_online(*cpu);
            let cpu = bound.or_else(|| self.wake_up_cpu(task)).filter(online);
            let other = || (0..self.queues.cpus() as u32).rev().find(online);
            let Some(cpu) = cpu.or_else(|| Some(self.cpu_of(task)).filter(online)).or_else(other) else {
                return Ok(false);
            };
            self.set_cpu(task, cpu, at);
            if self.queues.enqueue(cpu, task) {
                self.kernel.wait(cpu, at * PS_PER_NS);
                self.kernel.leave_idle(cpu)?;
            }
            self.not_batchable = true;
            self.make_ready(cpu);
        }
        Ok(true)
    }

    /// The recorder works until a time, or until its sample is done.
    pub(crate) fn record(&mut self, task: usize, until: Ps) -> Result<(), RunError> {
        let (cpu, share) = (self.cpu_of(task), self.kernel.share());
        let time = until.saturating_sub(self.kernel.clock(cpu)).div_ceil(share);
        let Some(recorder) = self.balancing.as_mut().and_then(|of| of.recorder.as_mut()) else { return Ok(()) };
        let time = time.min(recorder.left);
        recorder.left -= time;
        let done = recorder.left == 0;
        self.kernel.spend(cpu, time);
        self.numa_ran(task, time * share);
        self.queues.ran(cpu, task, time * share);
        if done && self.queues.dequeue(cpu, task) {
            self.kernel.enter_idle(cpu)?;
        }
        self.make_ready(cpu);
        Ok(())
    }
}

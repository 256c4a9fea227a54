//! Threads that wake, sleep and leave their CPU's queue.

use super::RunError;
use super::main_loop::{Due, Engine};
use crate::sched::TaskState;
use crate::time::{PS_PER_NS, Ps};

impl Engine<'_> {
    /// Puts a CPU that has something to run among those that are to run next.
    pub(crate) fn make_ready(&mut self, cpu: u32) {
        if self.queues.running(cpu).is_some() {
            self.ready.add(self.kernel.clock(cpu), cpu);
        }
    }

    /// A thread becomes runnable at a time. If threads take turns, one that has slept in reclaim preempts at once,
    /// because its waits are measured, and so does a kernel thread.
    pub(super) fn wake(&mut self, thread: usize, at: Ps) -> Result<(), RunError> {
        let reclaimed = self.threads[thread].throttled.take().is_some();
        if self.stays_awake(thread) {
            return Ok(());
        }
        self.threads[thread].sleeps += 1;
        self.not_batchable = false;
        if !self.queues.is_delayed(thread)
            && let Some(cpu) = self.wake_up_cpu(thread)
        {
            self.move_thread(thread, cpu)?;
        }
        let cpu = self.threads[thread].caller.cpu;
        let first = reclaimed || thread >= self.workload_threads;
        let idle = match first {
            true => self.queues.enqueue_first(cpu, thread),
            false => self.queues.enqueue(cpu, thread),
        };
        if idle {
            self.leave_idle(cpu, at)?;
        }
        self.psi_runnable(thread, at);
        self.make_ready(cpu);
        Ok(())
    }

    /// A thread sleeps until a time; what it waits for meanwhile.
    pub(super) fn sleep(&mut self, thread: usize, until: Ps, waits: TaskState) -> Result<(), RunError> {
        self.stop_running(thread, waits)?;
        self.turns.iter_mut().for_each(|turns| turns.timer_set(until));
        let sleeps = self.threads[thread].sleeps;
        self.due.set(until.div_ceil(PS_PER_NS), self.threads[thread].caller.cpu, Due::Wake(thread, sleeps));
        Ok(())
    }

    /// A thread leaves its CPU's queue, and waits for this.
    pub(super) fn stop_running(&mut self, thread: usize, waits: TaskState) -> Result<(), RunError> {
        self.not_batchable = false;
        self.psi_waits(thread, waits);
        let cpu = self.threads[thread].caller.cpu;
        self.leave_queue(cpu, thread)
    }

    /// An idle CPU has a task to run from a time on.
    pub(super) fn leave_idle(&mut self, cpu: u32, at: Ps) -> Result<(), RunError> {
        self.kernel.wait(cpu, at);
        self.kernel.leave_idle(cpu)?;
        self.turns.iter_mut().for_each(|turns| turns.other_wakes(at));
        Ok(())
    }

    /// A task leaves a CPU's queue; the CPU idles, or switches to the next one. That pays for the switch at the wakeup too, as
    /// who sleeps on a busy CPU in guests wakes no later than on an idle one.
    pub(super) fn leave_queue(&mut self, cpu: u32, task: usize) -> Result<(), RunError> {
        if !self.queues.holds(cpu, task) {
            return Ok(());
        }
        if self.queues.dequeue(cpu, task) {
            self.kernel.enter_idle(cpu)?;
        } else {
            self.kernel.interrupt(cpu, self.scenario.machine.cost.wakeup_preempt.0);
        }
        Ok(())
    }
}

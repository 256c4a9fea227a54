//! The recorder as a task: on a machine whose CPUs share one budget, a sample takes it so long that it is one more busy
//! task among those that are recorded, and the scheduler spreads all of them.
//!
//! It wakes at every sample while the workload runs, works for `machine.cost.sample` of CPU time on a CPU that the
//! workload leaves free, or else like any other thread: it takes turns, is pulled by other CPUs and is a partner in
//! swaps. It has no preferred node and its memory is not scanned. Left out: that it writes its samples late when it had
//! to wait; where it was before the first. Checked by comparison with guests.

use super::RunError;
use super::engine::Engine;
use crate::clock::Ns;
use crate::kernel::{PS_PER_NS, Ps};
use crate::machine::Machine;
use crate::numa::{Mm, Numa, Task};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::Process;
use std::collections::BTreeSet;

/// Before the first process.
const PID: i32 = 999;

/// What the recorder still has to do; its place is that of its task.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    left: Ps,
    /// CPUs it may run on: one that is left free, or all.
    allowed: Option<u32>,
}

impl Recorder {
    /// The recorder of a scenario on a machine whose CPUs share their budget, as the last task; else `None`.
    pub(super) fn of(scenario: &Scenario, machine: &Machine, numa: &mut Numa) -> Option<Recorder> {
        if !scenario.machine.cpu.single_threaded_tcg {
            return None;
        }
        let allowed = free_cpu(scenario, machine);
        let mut task = Task::new(PID, PID, numa.mms.len(), allowed.map(|cpu| vec![cpu]));
        (task.alive, task.cpu) = (true, allowed.unwrap_or(machine.cpus.len() as u32 - 1));
        numa.mms.push(Mm::default());
        numa.tasks.push(task);
        Some(Recorder { left: 0, allowed })
    }
}

/// The last CPU of a node on which no process may run, or else the last on which none may.
fn free_cpu(scenario: &Scenario, machine: &Machine) -> Option<u32> {
    let all = || 0..machine.cpus.len() as u32;
    let of = |process: &Process| process.cpus.as_ref().map_or_else(|| all().collect(), |cpus| cpus.numbers().to_vec());
    let used: BTreeSet<u32> = scenario.processes.iter().flat_map(of).collect();
    let nodes: BTreeSet<usize> = used.iter().map(|&cpu| machine.node_of(cpu)).collect();
    let free = || all().rev().filter(|cpu| !used.contains(cpu));
    free().find(|&cpu| !nodes.contains(&machine.node_of(cpu))).or_else(|| free().next())
}

impl Engine<'_> {
    /// Number of the recorder's task, behind those of the threads, if it is one.
    pub(super) fn recorder(&self) -> Option<usize> {
        self.balancing.as_ref().and_then(|of| of.recorder.as_ref()).map(|_| self.threads.len())
    }

    /// The CPU of a thread or of the recorder.
    pub(super) fn cpu_of(&self, thread: usize) -> u32 {
        match (self.threads.get(thread), &self.balancing) {
            (Some(at), _) => at.caller.cpu,
            (None, Some(of)) => of.numa.tasks[thread].cpu,
            (None, None) => 0,
        }
    }

    /// The recorder begins a sample that takes it a time, if it is a task and others run too. False if not.
    pub(super) fn wake_recorder(&mut self, time: Ps, at: Ns) -> Result<bool, RunError> {
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
            self.apart = true;
            self.make_ready(cpu);
        }
        Ok(true)
    }

    /// The recorder works until a time, or until its sample is done.
    pub(super) fn record(&mut self, task: usize, until: Ps) -> Result<(), RunError> {
        let (cpu, share) = (self.cpu_of(task), self.kernel.share());
        let time = until.saturating_sub(self.kernel.clock(cpu)).div_ceil(share);
        let Some(recorder) = self.balancing.as_mut().and_then(|of| of.recorder.as_mut()) else { return Ok(()) };
        let time = time.min(recorder.left);
        recorder.left -= time;
        let done = recorder.left == 0;
        self.kernel.spend(cpu, time);
        self.numa_ran(task, time * share);
        if done && self.queues.dequeue(cpu, task) {
            self.kernel.enter_idle(cpu)?;
        }
        self.make_ready(cpu);
        Ok(())
    }
}

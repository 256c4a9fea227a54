//! States of threads for pressure stall information ([`crate::sched::Psi`]): where they begin and end to run, to wait
//! and to stall.
//!
//! A thread stalls while it reclaims, compacts, or sleeps above `memory.high`; kswapd does while it works,
//! kcompactd while it does for a request. Not modelled: the recorder among the runnable tasks, waits of the threads of
//! writeback.

use super::main_loop::{Engine, Step};
use super::process::{Activity, Thread};
use crate::build;
use crate::mm::kernel::Kernel;
use crate::sched::{Psi, TaskState};
use crate::time::Ps;
use mmtwin_scenario::Scenario;

/// Pressure of the threads and cgroups of a run; `None`: the kernel does not measure it.
pub(super) fn of(scenario: &Scenario, kernel: &Kernel, threads: &[Thread]) -> Option<Psi> {
    let parents = build::cgroups(scenario).iter().map(|cgroup| cgroup.parent).collect();
    let cgroups = threads.iter().map(|thread| thread.caller.cgroup);
    let hz = scenario.kernel.hz.into();
    scenario.kernel.psi.then(|| Psi::new(kernel.machine.cpus.len(), parents, cgroups, hz))
}

impl Thread {
    /// It stalls on memory while it runs or waits for a CPU.
    fn stalls(&self) -> bool {
        let reclaims = self.slowpath.as_ref().is_some_and(|of| of.direct.is_some() || of.compact.is_some());
        let works = match &self.activity {
            Activity::Kswapd(_) => true,
            Activity::Kcompactd(kcompactd) => kcompactd.is_requested(),
            _ => false,
        };
        reclaims || self.high.is_some() || self.node_reclaim.is_some() || works
    }
}

impl Engine<'_> {
    /// A thread has the CPU that it is on.
    pub(super) fn psi_runs(&mut self, thread: usize) {
        let Some(psi) = &mut self.psi else { return };
        let cpu = self.threads[thread].caller.cpu;
        psi.runs(thread, cpu, self.kernel.clock(cpu));
    }

    /// A thread is runnable from a time on, if its CPU's clock is not beyond that.
    pub(super) fn psi_runnable(&mut self, thread: usize, at: Ps) {
        let Some(psi) = &mut self.psi else { return };
        let Some(of) = self.threads.get(thread) else { return };
        psi.set(thread, of.caller.cpu, TaskState { iowait: false, memstall: of.stalls(), running: true }, at);
    }

    /// A thread is not runnable any more, and waits for something or nothing.
    pub(super) fn psi_waits(&mut self, thread: usize, waits: TaskState) {
        let Some(psi) = &mut self.psi else { return };
        let cpu = self.threads[thread].caller.cpu;
        psi.set(thread, cpu, waits, self.kernel.clock(cpu));
    }

    /// A thread is on another CPU.
    pub(super) fn psi_moved(&mut self, thread: usize, at: Ps) {
        let Some(psi) = &mut self.psi else { return };
        let state = psi.state(thread);
        psi.set(thread, self.threads[thread].caller.cpu, state, at);
    }

    /// After a step of a thread, in reclaim or not: what it waits for if it sleeps now.
    pub(super) fn psi_stepped(&mut self, thread: usize, reclaims: bool, step: Step) -> TaskState {
        let stall = std::mem::take(&mut self.kernel.stall);
        let at = &self.threads[thread];
        let (now, throttled) = (self.kernel.clock(at.caller.cpu), at.throttled.is_some());
        if let Some(psi) = self.psi.as_mut().filter(|_| stall.read > 0) {
            psi.add_stall(thread, stall.read, now);
        }
        match step {
            Step::Asleep(_) => {
                let memstall = reclaims || stall.memory || throttled;
                return TaskState { iowait: stall.io, memstall, running: false };
            }
            Step::On => self.psi_runnable(thread, now),
            Step::Waiting | Step::Ended | Step::Still | Step::Waits => {}
        }
        TaskState::default()
    }
}

//! The recorder among the threads of a run ([`Recorder`](crate::lab_guest::recorder::Recorder)), and where it and the
//! threads that wait for it wake: `wake_affine_idle`, `select_idle_sibling` (4.14 to 6.12).
//!
//! Messages between them wake with `WF_SYNC`: whoever is woken comes to the node of its waker, if that is alone on its
//! CPU, to an idle CPU there or beside the waker. Where a node has one CPU, each is known to wake too many others
//! (`wake_wide`), and it stays where it was. Not modelled: `wake_affine_weight`, `recent_used_cpu`, the limit of the
//! search (`SIS_UTIL`), flips of wakees. Checked by migrations in guests (docs/model/notebook.md).

use super::RunError;
use super::main_loop::Engine;
use super::thread_moves::is_allowed;
use crate::time::{Ns, PS_PER_NS, Ps};

/// Nodes that are farther apart do not wake each other's threads away (`node_reclaim_distance`).
const FAR: u8 = 30;

impl Engine<'_> {
    /// Number of the recorder's task, behind those of the threads, if it is one.
    pub(crate) fn recorder(&self) -> Option<usize> {
        self.recorder.as_ref().map(|_| self.threads.len())
    }

    /// The CPU of a thread or of the recorder.
    pub(crate) fn cpu_of(&self, thread: usize) -> u32 {
        match (self.threads.get(thread), &self.recorder) {
            (Some(at), _) => at.caller.cpu,
            (None, Some(recorder)) => recorder.cpu,
            (None, None) => 0,
        }
    }

    /// True if a thread, or the recorder, may run on a CPU.
    pub(crate) fn may_run_on(&self, thread: usize, cpu: u32) -> bool {
        match (self.threads.get(thread), &self.recorder) {
            (Some(at), _) => is_allowed(at, &self.scenario.processes, cpu),
            (None, Some(recorder)) => recorder.allowed.is_none_or(|own| own == cpu),
            (None, None) => false,
        }
    }

    /// The first thread of a process has sent the recorder a message, and sleeps until that has taken a sample. Whoever asks
    /// before the recorder runs has the same sample, and whoever asks during one the next.
    pub(super) fn ask_for_sample(&mut self, process: usize, at: Ns) -> Result<(), RunError> {
        let Some(recorder) = &mut self.recorder else {
            self.sample_for(&[process], at);
            return self.go_on_after_sample(process, at);
        };
        if recorder.left > 0 {
            let list = if recorder.begun { &mut recorder.asked } else { &mut recorder.waiting };
            list.push(process);
            return Ok(());
        }
        recorder.asked.push(process);
        self.call_recorder(self.processes[process].threads.start);
        self.begin_sample(at)
    }

    /// The recorder begins the sample that it is asked for.
    fn begin_sample(&mut self, at: Ns) -> Result<(), RunError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let waiting = std::mem::take(&mut recorder.asked);
        if waiting.is_empty() {
            return Ok(());
        }
        recorder.waiting.clone_from(&waiting);
        let time = self.sample_for(&waiting, at);
        if self.wake_recorder(time, at)? { Ok(()) } else { self.answer(at) }
    }

    /// The sample is taken: those that have waited for it go on.
    fn answer(&mut self, at: Ns) -> Result<(), RunError> {
        let waiting = self.recorder.as_mut().map(|recorder| std::mem::take(&mut recorder.waiting));
        for process in waiting.into_iter().flatten() {
            // One may have been killed meanwhile.
            if self.processes[process].lives() {
                self.go_on_after_sample(process, at)?;
            }
        }
        self.begin_sample(at)
    }

    /// The first thread of a process has sent the recorder a message, and sleeps: the recorder comes to it.
    fn call_recorder(&mut self, by: usize) {
        let Some(task) = self.recorder() else { return };
        let (waker, prev) = (self.cpu_of(by), self.cpu_of(task));
        let asleep = !self.queues.holds(prev, task);
        if asleep && self.queues.len(waker) == 0 {
            let cpu = self.affine_cpu(task, waker);
            self.recorder.iter_mut().for_each(|recorder| recorder.cpu = cpu);
        }
    }

    /// The recorder answers: the CPU to which the first thread of a process comes.
    pub(super) fn answered(&self, thread: usize) -> Option<u32> {
        let task = self.recorder()?;
        let waker = self.cpu_of(task);
        let alone = self.queues.len(waker) == usize::from(self.queues.holds(waker, task));
        alone.then(|| self.affine_cpu(thread, waker))
    }

    /// Where a thread wakes that is woken from a CPU whose only thread will sleep.
    fn affine_cpu(&self, thread: usize, waker: u32) -> u32 {
        let (machine, prev) = (&self.kernel.machine, self.cpu_of(thread));
        let (here, there) = (machine.node_of(waker), machine.node_of(prev));
        let own = machine.cpus_of(here);
        let idle = |cpu: u32| {
            cpu != waker && self.kernel.stat.is_online(cpu) && self.queues.len(cpu) == 0 && self.may_run_on(thread, cpu)
        };
        if own.len() < 2 || machine.distance[here][there] > FAR || !self.may_run_on(thread, waker) {
            return prev;
        }
        if here == there && idle(prev) {
            return prev;
        }
        let at = own.iter().position(|&cpu| cpu == waker).unwrap_or(0);
        own[at..].iter().chain(&own[..at]).copied().find(|&cpu| idle(cpu)).unwrap_or(waker)
    }

    /// The recorder begins a sample that takes it a time, if it is a task. False if not.
    pub(crate) fn wake_recorder(&mut self, time: Ps, at: Ns) -> Result<bool, RunError> {
        let Some(task) = self.recorder() else { return Ok(false) };
        let Some(recorder) = &mut self.recorder else { return Ok(false) };
        let (asleep, bound) = (recorder.left == 0, recorder.allowed);
        recorder.left += time;
        recorder.begun &= !asleep;
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

    /// The recorder, which has run until `begin`, works until a time, or until its sample is done.
    pub(crate) fn record(&mut self, task: usize, begin: Ps, until: Ps) -> Result<(), RunError> {
        let cpu = self.cpu_of(task);
        let time = until.saturating_sub(self.kernel.clock(cpu));
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let time = time.min(recorder.left);
        (recorder.left, recorder.begun) = (recorder.left - time, true);
        let done = recorder.left == 0;
        self.kernel.spend(cpu, time);
        let ran = self.kernel.clock(cpu) - begin;
        self.numa_ran(task, ran);
        self.queues.ran(cpu, task, ran);
        if done && self.queues.dequeue(cpu, task) {
            self.kernel.enter_idle(cpu)?;
        }
        self.make_ready(cpu);
        if done { self.answer(self.kernel.now(cpu)) } else { Ok(()) }
    }
}

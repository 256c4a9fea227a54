//! The recorder among the threads of a run ([`Recorder`](crate::lab_guest::recorder::Recorder)), and where it and the
//! threads that wait for it wake: `wake_affine_idle`, `select_idle_sibling` (4.14 to 6.12).
//!
//! Messages between them wake with `WF_SYNC`: whoever is woken comes to the node of its waker, if that is alone on its
//! CPU, to an idle CPU there or beside the waker. Where a node has one CPU, each is known to wake too many others
//! (`wake_wide`), and it stays where it was. Not modelled: `wake_affine_weight`, `recent_used_cpu`, the limit of the
//! search (`SIS_UTIL`), flips of wakees; that the end of what it waits for in reclaim wakes it early. Checked by migrations
//! in guests (docs/model/notebook.md).

use super::RunError;
use super::main_loop::{Due, Engine, Step, Stop};
use super::thread_moves::is_allowed;
use crate::lab_guest::recorder::{PID, Work};
use crate::mm::slowpath::{self, AllocSlowpath, Outcome, Progress};
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{AllocationFailure, Caller, Policy};
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS, Ps};

/// Nodes that are farther apart do not wake each other's threads away (`node_reclaim_distance`).
const FAR: u8 = 30;

/// What became of something that the recorder needs memory for.
pub(super) enum Asked<T> {
    Got(T),
    /// It reclaims, or sleeps, and asks again.
    Later(Step),
    /// It does without.
    Denied,
}

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
        if recorder.is_busy() {
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
        let work = self.sample_for(&waiting, at);
        if self.wake_recorder(work, at)? { Ok(()) } else { self.answer(at) }
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

    /// The recorder begins a sample, if it is a task. False if not.
    pub(crate) fn wake_recorder(&mut self, work: Work, at: Ns) -> Result<bool, RunError> {
        let Some(task) = self.recorder() else { return Ok(false) };
        let Some(recorder) = &mut self.recorder else { return Ok(false) };
        let (asleep, bound) = (!recorder.is_busy(), recorder.allowed);
        recorder.add(work);
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

    /// The recorder has slept enough in reclaim.
    pub(super) fn recorder_wakes(&mut self, at: Ps) -> Result<(), RunError> {
        let Some(task) = self.recorder() else { return Ok(()) };
        let online = |cpu: &u32| self.kernel.stat.is_online(*cpu);
        let first = (0..self.queues.cpus() as u32).find(online);
        let cpu = Some(self.cpu_of(task)).filter(online).or(first).unwrap_or_default();
        self.set_cpu(task, cpu, at / PS_PER_NS);
        if self.queues.enqueue_first(cpu, task) {
            self.leave_idle(cpu, at)?;
        }
        self.kernel.woken_by_timer(cpu);
        self.make_ready(cpu);
        Ok(())
    }

    /// The recorder does something that needs memory, for which it reclaims until a time if there is none.
    pub(super) fn ask_as_recorder<T>(
        &mut self,
        cpu: u32,
        until: Ps,
        ask: impl FnOnce(&mut TaskCtx<'_>, &mut Caller) -> Result<T, AllocationFailure>,
    ) -> Result<Asked<T>, Stop> {
        let Some(recorder) = &mut self.recorder else { return Ok(Asked::Denied) };
        let task = Task { pid: PID, tgid: PID };
        let mut caller = Caller::new(cpu, task, Policy::Default);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        let progress = slowpath::reclaim_node(&mut ctx, &mut recorder.node_reclaim, until);
        match progress.or_else(|| recorder.slowpath.as_mut()?.reclaim(&mut ctx, until)) {
            Some(Progress::On) => return Ok(Asked::Later(Step::On)),
            Some(Progress::Asleep(until, _)) => return Ok(Asked::Later(Step::Asleep(until))),
            Some(Progress::Still | Progress::Waits) => {
                recorder.slowpath = None;
                return Ok(Asked::Denied);
            }
            None => {}
        }
        ctx.kernel.awaited = recorder.slowpath.as_ref().map(AllocSlowpath::request);
        let got = ask(&mut ctx, &mut caller);
        ctx.kernel.awaited = None;
        match got {
            Ok(got) => {
                slowpath::alloc_slowpath_ends(&mut ctx, recorder.slowpath.take());
                Ok(Asked::Got(got))
            }
            Err(failure) => {
                let of = (&mut recorder.slowpath, &mut recorder.node_reclaim);
                match slowpath::alloc_slowpath(&mut ctx, of, failure) {
                    Outcome::Retry => Ok(Asked::Later(Step::On)),
                    Outcome::Kill(failure) if self.kill_by(&caller, &failure)? => Ok(Asked::Later(Step::On)),
                    Outcome::Kill(_) | Outcome::Deny | Outcome::Fail(_) => Ok(Asked::Denied),
                }
            }
        }
    }

    /// The recorder, which has run until `begin`, works until a time, or until its sample is done.
    pub(crate) fn record(&mut self, task: usize, begin: Ps, until: Ps) -> Result<(), Stop> {
        let cpu = self.cpu_of(task);
        let mut step = Step::On;
        while self.kernel.clock(cpu) < until {
            let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_busy()) else { break };
            recorder.begun = true;
            step = self.read_recorder(cpu, until)?;
            if step != Step::Ended {
                break;
            }
            let Some(recorder) = &self.recorder else { break };
            if recorder.left == 0 {
                step = self.open_numa_maps(cpu, until)?;
                if step != Step::Ended {
                    break;
                }
            }
            self.read_on(cpu, until);
        }
        let beyond = self.end_turn(cpu).map_or(0, |(ended, _)| ended.beyond);
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.left += beyond;
        let done = !recorder.is_busy();
        let ran = self.kernel.clock(cpu) - begin;
        self.numa_ran(task, ran);
        self.queues.ran(cpu, task, ran);
        let sleeps = if let Step::Asleep(until) = step { Some(until) } else { None };
        if done || sleeps.is_some() {
            self.leave_queue(cpu, task)?;
        }
        if let Some(until) = sleeps {
            self.turns.iter_mut().for_each(|turns| turns.timer_set(until));
            self.due.set(until.div_ceil(PS_PER_NS), cpu, Due::RecorderWakes);
        }
        self.make_ready(cpu);
        if done { Ok(self.answer(self.kernel.now(cpu))?) } else { Ok(()) }
    }
}

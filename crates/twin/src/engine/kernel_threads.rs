//! The kernel's threads in a run: kswapd and kcompactd of each node, the threads of writeback, their wakeups and their
//! CPUs.
//!
//! They follow the workload's threads in the list, and share CPUs with those by the scheduler's rules
//! ([`crate::sched`]), or, where zones are reclaimed, preempt at once and share CPUs by ticks. Each is a state machine
//! that advances by batches.

use super::RunError;
use super::main_loop::{Due, Engine, Step};
use super::process::{Activity, Process, Thread};
use crate::frame::ZONES;
use crate::mm::compaction::{INTERVAL, Kcompactd};
use crate::mm::reclaim::KswapdImpl;
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::page_alloc::{Caller, Policy};
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS, Ps, Watch};

/// Ids of the first kswapd and, behind those of 64 nodes, of the first kcompactd.
const FIRST_KSWAPD: i32 = 60;
const FIRST_KCOMPACTD: i32 = 124;

impl Engine<'_> {
    /// Makes a kswapd and a kcompactd for each node with memory.
    pub(super) fn start_node_threads(&mut self) {
        let managed = |node: usize| (0..ZONES).any(|kind| self.kernel.alloc.zones[node * ZONES + kind].managed > 0);
        let nodes: Vec<usize> = (0..self.kernel.machine.nodes.len()).filter(|&node| managed(node)).collect();
        let caller = |engine: &Self, first: i32, node: usize| {
            let pid = first + node as i32;
            let cpu = engine.kernel.machine.cpus_of(node).first().copied().unwrap_or(0);
            Caller::new(cpu, Task { pid, tgid: pid }, Policy::Default)
        };
        let first = self.threads.len();
        for &node in &nodes {
            let activity = Activity::Kswapd(Box::new(KswapdImpl::new(&self.kernel.reclaim.rules, node)));
            let thread = self.add_kernel_thread(format!("kswapd{node}"), caller(self, FIRST_KSWAPD, node), activity);
            self.kswapds.push((node, thread));
        }
        for &node in &nodes {
            let activity = Activity::Kcompactd(Box::new(Kcompactd::new(node)));
            let thread =
                self.add_kernel_thread(format!("kcompactd{node}"), caller(self, FIRST_KCOMPACTD, node), activity);
            self.kcompactds.push((node, thread));
            if self.kernel.reclaim.rules.proactiveness > 0 {
                self.due.set(INTERVAL, self.threads[thread].caller.cpu, Due::Wake(thread, 0));
            }
        }
        self.queues.count_node_threads(first..self.threads.len());
    }

    /// The timer of a kcompactd runs out, and it has nothing to do: true if it is one and sleeps on.
    pub(super) fn kcompactd_sleeps_on(&mut self, thread: usize, at: Ns) -> bool {
        let Thread { activity: Activity::Kcompactd(kcompactd), caller, sleeps, .. } = &self.threads[thread] else {
            return false;
        };
        let until = kcompactd.sleeps_on(&mut self.kernel, (caller.cpu, caller.task), at);
        until.into_iter().for_each(|until| self.due.set(until, caller.cpu, Due::Wake(thread, *sleeps)));
        until.is_some()
    }

    /// Adds a kernel thread.
    pub(super) fn add_kernel_thread(&mut self, name: String, caller: Caller, activity: Activity) -> usize {
        let thread = self.threads.len();
        self.threads.push(Thread::of_kernel(self.processes.len(), caller, activity));
        self.processes.push(Process::of_kernel(name, thread));
        thread
    }

    /// Kernel threads: kswapds, kcompactds and those that write back.
    pub(super) fn kernel_threads(&self) -> impl Iterator<Item = usize> + use<'_> {
        let of_nodes = self.kswapds.iter().chain(&self.kcompactds).map(|of| of.1);
        let of_files = self.writeback_threads.iter().flat_map(|of| of.flushers.iter().copied().chain([of.end_io]));
        of_nodes.chain(of_files)
    }

    /// A node's memory is reclaimed or compacted: time advances in small steps.
    pub(super) fn reclaims(&self) -> bool {
        self.queues.node_threads_queued() > 0
    }

    /// Runs a kernel thread until a time, or until there are effects for the engine.
    pub(super) fn work_of_kernel(&mut self, thread: usize, until: Ps) -> Step {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        let mut watch = Watch::within(ctx.kernel.clock(cpu));
        while ctx.kernel.clock(cpu) < until && !ctx.kernel.has_effects() {
            if !watch.goes_on(ctx.kernel.clock(cpu)) {
                return Step::Still;
            }
            let came = match &mut at.activity {
                Activity::Kswapd(kswapd) => kswapd.step(&mut ctx),
                Activity::Kcompactd(kcompactd) => kcompactd.step(&mut ctx),
                Activity::Flusher(flusher) => flusher.step(&mut ctx),
                Activity::BioEndIo(end_io) => end_io.step(&mut ctx),
                Activity::Nothing
                | Activity::Action(..)
                | Activity::Accessing(_)
                | Activity::Reporting(_)
                | Activity::Exiting(_) => return Step::Ended,
            };
            match came {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    at.throttled = why;
                    return Step::Asleep(until);
                }
                Poll::Done(()) => return Step::Waiting,
            }
        }
        Step::On
    }

    /// Applies the effects of a step of a CPU, whose clock may be behind `now` if it was idle.
    pub(super) fn process_effects(&mut self, cpu: u32, now: Ps) -> Result<(), RunError> {
        self.requests_begin(cpu, None);
        if !self.kernel.has_effects() {
            return Ok(());
        }
        let at = self.kernel.clock(cpu).max(now);
        let effects = self.kernel.take_effects();
        self.process_writeback(cpu, at, &effects)?;
        for node in effects.kcompactd {
            self.wake_node_thread(node, |engine| &engine.kcompactds, (cpu, at))?;
        }
        for (node, reason) in effects.unthrottled {
            let sleepers = self.threads.iter().enumerate();
            let woken: Vec<usize> =
                sleepers.filter(|(_, thread)| thread.throttled == Some((node, reason))).map(|(i, _)| i).collect();
            for thread in woken {
                self.wake(thread, at)?;
            }
        }
        for cpu in effects.reschedule {
            self.queues.reschedule(cpu);
        }
        for node in effects.kswapd {
            self.wake_node_thread(node, |engine| &engine.kswapds, (cpu, at))?;
        }
        Ok(())
    }

    /// A CPU wakes a thread of a node, one of some.
    fn wake_node_thread(
        &mut self,
        node: usize,
        of: fn(&Self) -> &Vec<(usize, usize)>,
        (by, at): (u32, Ps),
    ) -> Result<(), RunError> {
        let Some(&(_, thread)) = of(self).iter().find(|(of, _)| *of == node) else { return Ok(()) };
        let cpus = self.kernel.machine.cpus_of(node);
        self.wake_kernel_thread(thread, cpus, (Some(by), at))
    }

    /// A CPU, or a timer, wakes a kernel thread that runs on some CPUs or, if they are none, on all. One that has woken by
    /// itself, and has not run since, stays where it is.
    pub(super) fn wake_kernel_thread(
        &mut self,
        thread: usize,
        cpus: Vec<u32>,
        (by, at): (Option<u32>, Ps),
    ) -> Result<(), RunError> {
        if self.stays_awake(thread) || self.queues.holds(self.threads[thread].caller.cpu, thread) {
            return Ok(());
        }
        let before = self.threads[thread].caller.cpu;
        let to = if self.queues.is_delayed(thread) { before } else { self.kernel_thread_cpu(cpus, before, by) };
        if to != before {
            self.set_cpu(thread, to, at / PS_PER_NS);
        }
        self.threads[thread].sleeps += 1;
        self.not_batchable = false;
        let idle = self.queues.enqueue_first(to, thread);
        if idle {
            self.kernel.wait(to, at);
            self.kernel.leave_idle(to)?;
            self.turns.iter_mut().for_each(|turns| turns.other_wakes(at));
        }
        self.psi_runnable(thread, at);
        self.make_ready(to);
        Ok(())
    }

    /// Where a kernel thread runs: where it was if that CPU is idle, else on an idle one, else where it was, or on the CPU
    /// that wakes it if that has no more to do (`wake_affine`).
    fn kernel_thread_cpu(&self, cpus: Vec<u32>, before: u32, by: Option<u32>) -> u32 {
        let all: Vec<u32> = if cpus.is_empty() { self.kernel.stat.online().to_vec() } else { cpus };
        let idle = |cpu: &&u32| self.queues.len(**cpu) == 0 && self.kernel.stat.is_online(**cpu);
        if idle(&&before) && all.contains(&before) {
            return before;
        }
        let may = |cpu: &u32| all.contains(cpu) && self.kernel.stat.is_online(*cpu);
        let known = Some(before).filter(may);
        let by = by.filter(|by| self.queues.is_fair() && may(by));
        let affine = by.filter(|by| known.is_none_or(|before| self.queues.len(*by) <= self.queues.len(before)));
        all.iter().find(idle).copied().or(affine).or(known).or_else(|| all.first().copied()).unwrap_or(0)
    }
}

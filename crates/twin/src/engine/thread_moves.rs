//! Moves of threads between CPUs: by load balancing, by `task_numa_migrate`, and at wakeup.
//!
//! CPUs balance in order of their number at the end of an epoch, within the node and then over the machine
//! (`load_balance`, [`crate::sched`]). A thread that moves keeps its place in the queue. At wakeup a thread is placed
//! on its own CPU or, if that is busy, on an idle one of the same node; a process that begins, on any idle one. Not
//! modelled: the CPU of who wakes it (`wake_affine`), and, without NUMA balancing, the move of a thread that runs.

use super::RunError;
use super::balancing::Balancing;
use super::main_loop::Engine;
use super::process::Thread;
use crate::lab_guest::recorder;
use crate::mm::kernel::Kernel;
use crate::numa::write_period;
use crate::sched::{BalanceRules, BalanceTask, Hooks, Level, Locality};
use crate::time::{Ns, PS_PER_NS, Ps};
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::value::{Bytes, Str};
use mmtwin_event::vocabulary::SchedMigrateTask;
use mmtwin_scenario::workload::Process;

/// Characters of a task's name.
const COMM: usize = 15;
/// `prio` of a task without a nice value.
const DEFAULT_PRIO: i32 = 120;

impl Engine<'_> {
    /// Load balancing at the tick: CPUs pull threads from busier ones.
    pub(super) fn balance_load(&mut self, clock: Ps) -> Result<(), RunError> {
        let none_waits = (0..self.queues.cpus() as u32).all(|cpu| self.queues.len(cpu) < 2);
        let nothing = self.balancing.is_none() && none_waits;
        for cpu in 0..self.queues.cpus() as u32 {
            let pulls = !nothing && self.kernel.stat.is_online(cpu);
            for level in [Level::Node, Level::Machine].into_iter().filter(|_| pulls) {
                for thread in self.pulled((cpu, level), clock / PS_PER_NS) {
                    self.move_thread(thread, cpu)?;
                }
            }
            self.balancer.ticked(cpu, &self.queues);
        }
        Ok(())
    }

    /// The threads that a CPU pulls now.
    fn pulled(&mut self, place: (u32, Level), now: Ns) -> Vec<usize> {
        let Kernel { stat, machine, probe, writeback, .. } = &mut self.kernel;
        let online = |cpu| stat.is_online(cpu);
        if let Some(Balancing { numa, .. }) = &self.balancing {
            return numa.balance(&mut self.balancer, place, &self.queues, online, probe, now);
        }
        let cpus: Vec<Vec<u32>> = (0..machine.nodes.len()).map(|node| machine.cpus_of(node)).collect();
        let (threads, processes) = (&self.threads, &self.scenario.processes);
        let allowed = self.recorder.as_ref().and_then(|recorder| recorder.allowed);
        let node_threads: Vec<(usize, usize)> = [&self.kswapds[..], &self.kcompactds].concat();
        let bound = self.writeback_threads.as_ref().filter(|_| !writeback.rules.ends_anywhere).map(|of| of.end_io);
        let may_run_on = |thread: usize, cpu: u32| match node_threads.iter().find(|of| of.1 == thread) {
            Some((node, _)) => cpus[*node].is_empty() || cpus[*node].contains(&cpu),
            None if thread >= threads.len() => allowed.is_none_or(|own| own == cpu),
            None => bound != Some(thread) && is_allowed(&threads[thread], processes, cpu),
        };
        let task = |thread: usize| {
            let pid = threads.get(thread).map_or(recorder::PID, |thread| thread.caller.task.pid);
            BalanceTask { pid, preferred_nid: None, exec_start: 0 }
        };
        let kernel = &self.scenario.kernel;
        let rules = BalanceRules { hz: kernel.hz.into(), sched: kernel.sched };
        let hooks =
            Hooks { rules, cpus: &cpus, task: &task, may_run_on: &may_run_on, locality: &|_| Locality::Neutral };
        self.balancer.balance(place, &self.queues, &hooks, online, probe, now)
    }

    /// A thread moves to another CPU, with its place in the queue.
    pub(super) fn move_thread(&mut self, thread: usize, to: u32) -> Result<(), RunError> {
        let from = self.cpu_of(thread);
        // A CPU that waits for one of the host's is behind.
        let at = self.kernel.clock(from).max(self.epoch_ended);
        let runs = self.queues.holds(from, thread);
        if thread < self.workload_threads {
            self.queues.replace(from, to);
        }
        self.set_cpu(thread, to, at / PS_PER_NS);
        if runs {
            if self.queues.detach(from, thread) {
                self.kernel.enter_idle(from)?;
            }
            if self.queues.attach(to, thread) {
                self.kernel.wait(to, at);
                self.kernel.leave_idle(to)?;
            }
            self.make_ready(to);
        }
        Ok(())
    }

    /// Sets the CPU of a thread and of its statistics; from `since` on if its CPU is idle, whose clock may be behind.
    pub(crate) fn set_cpu(&mut self, thread: usize, cpu: u32, since: Ns) {
        if self.recorder() == Some(thread) {
            self.recorder.iter_mut().for_each(|recorder| recorder.cpu = cpu);
            self.balancing.iter_mut().for_each(|balancing| balancing.numa.tasks[thread].cpu = cpu);
            return;
        }
        let from = std::mem::replace(&mut self.threads[thread].caller.cpu, cpu);
        let nodes = (self.kernel.machine.node_of(from), self.kernel.machine.node_of(cpu));
        let idle = self.queues.len(from) == 0;
        let at = self.kernel.now(from).max(if idle { since.max(self.kernel.now(cpu)) } else { 0 });
        self.write_migrate_task(thread, from, at);
        self.psi_moved(thread, at * PS_PER_NS);
        if let Some(balancing) = &mut self.balancing {
            let before = balancing.numa.tasks[thread].numa_scan_period;
            balancing.numa.task_moved(&self.memory, thread, cpu, nodes);
            let after = &balancing.numa.tasks[thread];
            if after.numa_scan_period != before {
                write_period(&mut self.kernel.probe, at, before, after, Rule::MovedNode);
            }
        }
    }

    fn write_migrate_task(&mut self, thread: usize, from: u32, at: Ns) {
        if !self.kernel.probe.on(Kind::SchedMigrateTask) {
            return;
        }
        let of = &self.threads[thread];
        let name = self.processes[of.process].name.as_bytes();
        let comm = &name[..name.len().min(COMM)];
        let event = SchedMigrateTask {
            comm: Str(Bytes { start: 0, len: comm.len() as u32 }.to_slot()),
            pid: of.caller.task.pid,
            prio: DEFAULT_PRIO,
            orig_cpu: from as i32,
            dest_cpu: of.caller.cpu as i32,
        };
        self.kernel.probe.write(at, from, of.caller.task, &event, comm);
    }

    /// A CPU for a thread that wakes: its own if that is idle, else an idle one of its node.
    pub(crate) fn wake_up_cpu(&self, thread: usize) -> Option<u32> {
        let machine = &self.kernel.machine;
        let node = machine.node_of(self.cpu_of(thread));
        self.idle_cpu(thread, |cpu| machine.node_of(cpu) == node)
    }

    /// A CPU for a thread of a process that begins: who wakes it sleeps then, wherever that is. One that is to begin on a node
    /// is bound to that meanwhile.
    pub(super) fn begin_cpu(&self, thread: usize) -> Option<u32> {
        let bound = self.scenario.processes[self.threads[thread].process].start_node.is_some();
        self.wake_up_cpu(thread).or_else(|| self.idle_cpu(thread, |_| !bound))
    }

    /// An idle CPU of some, if a thread's own is not idle.
    fn idle_cpu(&self, thread: usize, of: impl Fn(u32) -> bool) -> Option<u32> {
        if self.queues.len(self.cpu_of(thread)) == 0 {
            return None;
        }
        let may_run_on = |cpu: u32| match &self.balancing {
            Some(Balancing { numa, .. }) => numa.tasks[thread].may_run_on(cpu),
            None => self.may_run_on(thread, cpu),
        };
        let online = self.kernel.stat.online().iter().copied();
        online.filter(|&cpu| of(cpu) && self.queues.len(cpu) == 0).find(|&cpu| may_run_on(cpu))
    }
}

/// A thread's process may run on a CPU, and so may the thread.
pub(super) fn is_allowed(thread: &Thread, processes: &[Process], cpu: u32) -> bool {
    let allowed = processes.get(thread.process).and_then(|of| of.cpus.as_ref());
    thread.pinned.map_or_else(|| allowed.is_none_or(|cpus| cpus.numbers().contains(&cpu)), |own| own == cpu)
}

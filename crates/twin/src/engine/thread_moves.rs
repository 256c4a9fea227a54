//! Moves of threads between CPUs, with NUMA balancing on: by load balancing, by `task_numa_migrate`, and at wakeup.
//!
//! CPUs balance in order of their number at the end of an epoch, within the node and then over the machine
//! (`load_balance`, [`crate::sched`]). A thread that moves keeps its place in the queue. At wakeup a thread is placed
//! on its own CPU or, if that is busy, on an idle one of the same node.

use super::RunError;
use super::balancing::Balancing;
use super::main_loop::Engine;
use crate::numa::write_period;
use crate::sched::Level;
use crate::time::{Ns, PS_PER_NS, Ps};
use mmtwin_event::Kind;
use mmtwin_event::rules::Rule;
use mmtwin_event::value::{Bytes, Str};
use mmtwin_event::vocabulary::SchedMigrateTask;

/// Characters of a task's name.
const COMM: usize = 15;
/// `prio` of a task without a nice value.
const DEFAULT_PRIO: i32 = 120;

impl Engine<'_> {
    /// Load balancing at the tick: CPUs pull threads from busier ones.
    pub(super) fn numa_balance(&mut self, clock: Ps) -> Result<(), RunError> {
        for cpu in 0..self.queues.cpus() as u32 {
            for level in [Level::Node, Level::Machine] {
                let Some(Balancing { numa, balancer, .. }) = &mut self.balancing else { return Ok(()) };
                let stat = &self.kernel.stat;
                if !stat.is_online(cpu) {
                    continue;
                }
                let (online, now) = (|cpu| stat.is_online(cpu), clock / PS_PER_NS);
                let place = (cpu, level);
                for thread in numa.balance(balancer, place, &self.queues, online, &mut self.kernel.probe, now) {
                    self.move_thread(thread, cpu)?;
                }
            }
            if let Some(Balancing { balancer, .. }) = &mut self.balancing {
                balancer.ticked(cpu, &self.queues);
            }
        }
        Ok(())
    }

    /// A thread moves to another CPU, with its place in the queue.
    pub(super) fn move_thread(&mut self, thread: usize, to: u32) -> Result<(), RunError> {
        let from = self.cpu_of(thread);
        let (at, runs) = (self.kernel.clock(from), self.queues.holds(from, thread));
        if thread < self.workload_threads {
            self.queues.replace(from, to);
        }
        self.set_cpu(thread, to, at / PS_PER_NS);
        if runs {
            if self.queues.dequeue(from, thread) {
                self.kernel.enter_idle(from)?;
            }
            if self.queues.enqueue(to, thread) {
                self.kernel.wait(to, at);
                self.kernel.leave_idle(to)?;
            }
            self.make_ready(to);
        }
        Ok(())
    }

    /// Sets the CPU of a thread and of its statistics; from `since` on if its CPU is idle, whose clock may be behind.
    pub(crate) fn set_cpu(&mut self, thread: usize, cpu: u32, since: Ns) {
        if let (Some(recorder), Some(balancing)) = (self.recorder(), &mut self.balancing)
            && recorder == thread
        {
            balancing.numa.tasks[recorder].cpu = cpu;
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
        let Balancing { numa, .. } = self.balancing.as_ref()?;
        let own = self.cpu_of(thread);
        if self.queues.len(own) == 0 {
            return None;
        }
        let cpus = &numa.topology.cpus[self.kernel.machine.node_of(own)];
        let idle = |&&cpu: &&u32| self.queues.len(cpu) == 0 && self.kernel.stat.is_online(cpu);
        cpus.iter().filter(idle).copied().find(|&cpu| numa.tasks[thread].may_run_on(cpu))
    }
}

//! CPUs that idle, stop and start, and what timers do on them: the periodic work of the counters, which costs no time.

use super::budget::Budget;
use super::{Kernel, KernelError};
use crate::hw::Machine;
use crate::page_alloc::Context;
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS};
use crate::vmstat::{VmStat, Work};

impl Kernel {
    /// A CPU has something to run, or nothing any more; CPUs of its core feel it, and those that share its budget.
    fn set_busy(&mut self, cpu: u32, busy: bool) {
        if std::mem::replace(&mut self.busy[cpu as usize], busy) != busy {
            for &sibling in &self.siblings[cpu as usize] {
                let neighbours = &mut self.neighbours[sibling as usize];
                *neighbours = if busy { *neighbours + 1 } else { *neighbours - 1 };
            }
            if busy {
                let idle_ticks = self.ticks.begin(cpu, self.clocks[cpu as usize], self.tick);
                self.spend_beside(idle_ticks);
            }
        }
    }

    /// Runs the timers up to a time. CPUs that are behind are taken there.
    pub fn advance(&mut self, until: Ns) {
        self.run_timers(until);
        self.clocks.iter_mut().for_each(|clock| *clock = (*clock).max(until.saturating_mul(PS_PER_NS)));
    }

    /// Runs the timers up to a time.
    pub(crate) fn run_timers(&mut self, until: Ns) {
        self.run_flushes(until);
        while let Some((at, cpu, work)) = self.refresh.take(until) {
            match work {
                Work::Update => self.update(at, cpu),
                Work::Shepherd => {
                    for cpu in 0..self.stat.cpus() {
                        let stopped = self.stat.is_online(cpu) && !self.refresh.pending(cpu);
                        if self.refresh.wake(cpu) || stopped && self.stat.needs_update(cpu) {
                            self.update(at, cpu);
                        }
                    }
                }
            }
        }
    }

    /// The periodic work of every running CPU is queued, as it is after a while of work.
    pub(crate) fn queue_updates(&mut self, at: Ns) {
        self.stat.online().iter().for_each(|&cpu| self.refresh.queued(at, cpu));
    }

    /// The periodic work of a CPU.
    fn update(&mut self, at: Ns, cpu: u32) {
        if !self.stat.is_online(cpu) {
            return self.refresh.folded(at, cpu, false);
        }
        let mut ctx = Context { probe: &mut self.probe, stat: &mut self.stat, at, cpu, task: Task::default() };
        let decayed = self.alloc.decay_pagesets(&mut ctx, cpu);
        let folded = self.stat.fold(cpu);
        self.refresh.folded(at, cpu, folded || decayed);
    }

    /// A CPU begins to run a task.
    pub fn leave_idle(&mut self, cpu: u32) -> Result<(), KernelError> {
        self.check_cpu(cpu)?;
        self.set_busy(cpu, true);
        self.budget.iter_mut().for_each(|budget| budget.leave_idle(cpu));
        if self.refresh.leave_idle(cpu) {
            self.update(self.now(cpu), cpu);
        }
        Ok(())
    }

    /// A CPU has nothing to run. With its periodic work pending it folds at once (`quiet_vmstat`).
    pub fn enter_idle(&mut self, cpu: u32) -> Result<(), KernelError> {
        self.check_cpu(cpu)?;
        self.set_busy(cpu, false);
        self.budget.iter_mut().for_each(Budget::enter_idle);
        self.refresh.enter_idle(cpu);
        if self.refresh.pending(cpu) && self.stat.needs_update(cpu) {
            self.stat.fold(cpu);
        }
        Ok(())
    }

    /// A CPU goes offline: its lists are drained and its differentials folded; thresholds and list sizes are updated.
    pub fn set_offline(&mut self, cpu: u32) -> Result<(), KernelError> {
        self.check_cpu(cpu)?;
        if self.stat.online().len() == 1 {
            return Err(KernelError::LastCpu);
        }
        self.set_busy(cpu, false);
        self.refresh.enter_idle(cpu);
        let (alloc, mut ctx) = self.split(cpu, Task::default());
        alloc.drain_pages(&mut ctx, cpu);
        self.stat.set_offline(cpu, &self.alloc.zone_sizes());
        self.alloc.set_pageset_sizes(&running_nodes(&self.machine, &self.stat));
        Ok(())
    }

    /// A CPU starts again.
    pub fn set_online(&mut self, cpu: u32) -> Result<(), KernelError> {
        let last = self.stat.cpus() - 1;
        if cpu > last {
            return Err(KernelError::NoCpu { cpu, last });
        }
        if !self.stat.is_online(cpu) {
            self.stat.set_online(cpu, &self.alloc.zone_sizes());
            self.alloc.set_pageset_sizes(&running_nodes(&self.machine, &self.stat));
        }
        Ok(())
    }

    pub(crate) fn check_cpu(&self, cpu: u32) -> Result<(), KernelError> {
        if self.stat.is_online(cpu) { Ok(()) } else { Err(KernelError::NoCpu { cpu, last: self.stat.cpus() - 1 }) }
    }
}

/// Nodes of the running CPUs.
pub(super) fn running_nodes(machine: &Machine, stat: &VmStat) -> Vec<usize> {
    stat.online().iter().map(|&cpu| machine.node_of(cpu)).collect()
}

//! Tight loops of one allocation and its free on several CPUs, as page_bench03 runs them.
//!
//! CPUs begin together and run in order of (time, CPU). One at a time is the plain way ([`Kernel::run_loops_singly`]);
//! [`Kernel::run_loops`] takes many loops at once where it can ([`crate::workload::alloc_loop_batched`]) and gives the same counters, lists
//! and times.

use crate::mm::kernel::{Kernel, KernelError};
use crate::page_alloc::{Caller, PerCpuPages, Policy, Request};
use crate::probe::Task;
use crate::time::{PS_PER_NS, Ps};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Work of every CPU.
#[derive(Clone, Debug)]
pub struct AllocLoop {
    /// CPUs, each with a task of its own.
    pub cpus: Vec<u32>,
    /// Loops of each.
    pub loops: u64,
    /// The request.
    pub request: Request,
    /// Policy of every task.
    pub policy: Policy,
}

/// Results of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoops {
    /// The CPU.
    pub cpu: u32,
    /// Loops.
    pub loops: u64,
    /// Time from the common begin to its end.
    pub time: Ps,
}

/// Results of all CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopResult {
    /// By CPU, in the order of [`AllocLoop::cpus`].
    pub cpus: Vec<CpuLoops>,
    /// Loops that were taken many at once.
    pub batched: u64,
    clock_khz: u64,
}

impl AllocLoopTask {
    /// A task on its CPU with this many loops to do.
    pub fn new(caller: Caller, left: u64) -> AllocLoopTask {
        AllocLoopTask { cpu: caller.cpu, caller, left, list: None, steady: None }
    }

    /// The task, for its policy's state.
    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// Something else may have changed its list.
    fn unsettle(&mut self) {
        (self.list, self.steady) = (None, None);
    }
}

impl LoopResult {
    /// Cycles per loop, the mean of all CPUs.
    pub fn cycles(&self) -> f64 {
        let cycles = |at: &CpuLoops| at.time as f64 / at.loops.max(1) as f64 * self.clock_khz as f64 / 1e9;
        self.cpus.iter().map(cycles).sum::<f64>() / self.cpus.len().max(1) as f64
    }

    /// Loops per second of all CPUs together.
    pub fn throughput(&self) -> f64 {
        self.cpus.iter().filter(|at| at.time > 0).map(|at| at.loops as f64 / at.time as f64 * 1e12).sum()
    }
}

/// A CPU in its loops.
#[derive(Clone, Debug)]
pub struct AllocLoopTask {
    pub(super) cpu: u32,
    pub(super) caller: Caller,
    /// Loops still to do.
    pub left: u64,
    /// Zone and list after its last loop.
    list: Option<(usize, PerCpuPages)>,
    /// Effects of its last loop, if that changed only counters.
    pub(super) steady: Option<Steady>,
}

/// A loop that leaves everything but counters as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    pub zone: usize,
    /// Node of the zone is the CPU's.
    pub local: bool,
}

impl Kernel {
    /// Runs loops, many at once where nothing but counters changes.
    pub fn run_loops(&mut self, work: &AllocLoop) -> Result<LoopResult, KernelError> {
        self.run(work, true)
    }

    /// Runs loops one by one.
    pub fn run_loops_singly(&mut self, work: &AllocLoop) -> Result<LoopResult, KernelError> {
        self.run(work, false)
    }

    fn run(&mut self, work: &AllocLoop, batched: bool) -> Result<LoopResult, KernelError> {
        self.check_order(work.request.order)?;
        let mut seen = vec![false; self.stat.cpus() as usize];
        for &cpu in &work.cpus {
            self.check_cpu(cpu)?;
            if std::mem::replace(&mut seen[cpu as usize], true) {
                return Err(KernelError::CpuTwice(cpu));
            }
        }
        let begin = self.clocks.iter().copied().max().unwrap_or(0);
        self.run_timers(begin / PS_PER_NS);
        self.clocks.fill(begin);
        for &cpu in &work.cpus {
            self.leave_idle(cpu)?;
        }
        let mut loop_tasks: Vec<AllocLoopTask> = (1..)
            .zip(&work.cpus)
            .map(|(pid, &cpu)| AllocLoopTask::new(Caller::new(cpu, Task { pid, tgid: pid }, work.policy), work.loops))
            .collect();
        let mut many = 0;
        let outcome = self.run_loop_tasks(&mut loop_tasks, &work.request, Ps::MAX, batched, &mut many);
        for &cpu in &work.cpus {
            self.enter_idle(cpu)?;
        }
        outcome?;
        let of_cpu = |&cpu: &u32| CpuLoops { cpu, loops: work.loops, time: self.clocks[cpu as usize] - begin };
        Ok(LoopResult { cpus: work.cpus.iter().map(of_cpu).collect(), batched: many, clock_khz: self.costs.clock_khz })
    }

    /// Runs the loops that begin before `until`, timer by timer; how many were taken at once is added to `many`.
    pub(crate) fn run_loop_tasks(
        &mut self,
        loop_tasks: &mut [AllocLoopTask],
        request: &Request,
        until: Ps,
        batched: bool,
        many: &mut u64,
    ) -> Result<(), KernelError> {
        let batched = batched && self.can_batch(loop_tasks);
        let waiting = |this: &Self, loop_tasks: &[AllocLoopTask]| {
            let clocks = loop_tasks.iter().filter(|at| at.left > 0).map(|at| this.clocks[at.cpu as usize]);
            clocks.min().filter(|&first| first < until)
        };
        while let Some(first) = waiting(self, loop_tasks) {
            self.run_timers(first / PS_PER_NS);
            // Timers fire at whole nanoseconds, before the loops that begin then or later.
            let timer = self.refresh.next_at().map_or(Ps::MAX, |at| at.saturating_mul(PS_PER_NS));
            let end = timer.min(until);
            loop_tasks.iter_mut().for_each(AllocLoopTask::unsettle);
            self.run_singly(loop_tasks, request, end, batched)?;
            if batched && loop_tasks.iter().all(|at| at.left == 0 || at.steady.is_some()) {
                *many += self.run_many(loop_tasks, request.order, end);
            }
        }
        Ok(())
    }

    /// Runs loops that begin before a time, in order; with `until_steady`, only until every CPU's loop is steady.
    fn run_singly(
        &mut self,
        loop_tasks: &mut [AllocLoopTask],
        request: &Request,
        end: Ps,
        until_steady: bool,
    ) -> Result<(), KernelError> {
        let waiting = loop_tasks.iter().enumerate().filter(|(_, loop_task)| loop_task.left > 0);
        let mut next: BinaryHeap<_> =
            waiting.map(|(at, loop_task)| Reverse((self.clocks[loop_task.cpu as usize], loop_task.cpu, at))).collect();
        let mut unsteady = next.len();
        while let Some(Reverse((clock, cpu, at))) = next.pop() {
            if clock >= end || until_steady && unsteady == 0 {
                break;
            }
            let locked = self.alloc.lock_count();
            let steady = self.run_one(&mut loop_tasks[at], request, until_steady)?;
            if until_steady {
                loop_tasks[at].steady = steady;
                if self.alloc.lock_count() != locked {
                    // Free pages have changed: no CPU's last loop predicts its next one.
                    loop_tasks.iter_mut().for_each(AllocLoopTask::unsettle);
                }
                unsteady = loop_tasks.iter().filter(|at| at.left > 0 && at.steady.is_none()).count();
            }
            if loop_tasks[at].left > 0 {
                next.push(Reverse((self.clocks[cpu as usize], cpu, at)));
            }
        }
        Ok(())
    }

    /// One loop of a CPU; with `compare`, its effects if it changed only counters.
    #[inline]
    fn run_one(
        &mut self,
        loop_task: &mut AllocLoopTask,
        request: &Request,
        compare: bool,
    ) -> Result<Option<Steady>, KernelError> {
        let got = self.allocate_unchecked(&mut loop_task.caller, request)?;
        self.free_unchecked(loop_task.cpu, loop_task.caller.task, got.page)?;
        loop_task.left -= 1;
        if !compare {
            return Ok(None);
        }
        // The list after the loop before is the list before this loop.
        let after = self.alloc.pageset(got.zone, loop_task.cpu).map(|set| (got.zone, *set));
        let same = after.is_some() && std::mem::replace(&mut loop_task.list, after) == after;
        Ok((same && got.looked_at == 1).then(|| Steady {
            zone: got.zone,
            local: self.alloc.zones[got.zone].node == self.machine.node_of(loop_task.cpu),
        }))
    }
}

//! Page loops of all running threads, taken many at once.
//!
//! Where every thread that runs allocates a page and frees it, the kernel takes their loops in bulk
//! ([`Kernel::run_loop_tasks`](crate::mm::kernel::Kernel)) with the same counters and times as one by one.

use super::RunError;
use super::actions::page_work;
use super::main_loop::{Engine, Stop};
use super::process::{Activity, Working};
use crate::page_alloc::Request;
use crate::time::Ps;
use crate::workload::alloc_loop::AllocLoopTask;

impl Engine<'_> {
    /// Runs all threads until a time if each of them, alone on its CPU, is in the same page loop. False if not: then
    /// nothing has been done.
    pub(super) fn run_loops_together(&mut self, until: Ps) -> Result<bool, Stop> {
        if self.not_batchable {
            return Ok(false);
        }
        // Threads that may have to reclaim a node advance page by page.
        let together = if self.kernel.reclaim.node_reclaim_history.is_empty() { self.same_loops() } else { None };
        let Some((request, mut loops)) = together else {
            self.not_batchable = true;
            return Ok(false);
        };
        for (thread, loop_task) in &loops {
            let begun = self.kernel.clock(loop_task.caller().cpu);
            if let Activity::Action(_, working @ None) = &mut self.threads[*thread].activity {
                *working = Some(Working { begun, ..Working::default() });
            }
        }
        let lefts: Vec<u64> = loops.iter().map(|(_, loop_task)| loop_task.left).collect();
        let mut loop_tasks: Vec<AllocLoopTask> = loops.iter().map(|(_, loop_task)| loop_task.clone()).collect();
        self.kernel.run_loop_tasks(&mut loop_tasks, &request, until, true, &mut 0).map_err(RunError::from)?;
        for (((thread, _), loop_task), left) in loops.drain(..).zip(&loop_tasks).zip(lefts) {
            let cpu = loop_task.caller().cpu;
            if let Activity::Action(number, Some(working)) = &mut self.threads[thread].activity {
                let number = *number;
                working.part.operations += left - loop_task.left;
                if loop_task.left == 0 {
                    let working = std::mem::take(working);
                    self.threads[thread].activity = Activity::Action(number, None);
                    self.end_action(thread, number, working);
                    self.go_on(thread)?;
                }
            }
            self.make_ready(cpu);
        }
        Ok(true)
    }

    /// The request that all running threads loop on, and each with its loops; `None` if they differ.
    fn same_loops(&self) -> Option<(Request, Vec<(usize, AllocLoopTask)>)> {
        let mut loops = Vec::new();
        let mut same = None;
        for cpu in (0..self.queues.cpus() as u32).filter(|&cpu| self.queues.len(cpu) > 0) {
            let thread = self.queues.running(cpu).filter(|_| self.queues.len(cpu) == 1)?;
            let (request, loop_task) = self.plain_loop(thread)?;
            if *same.get_or_insert(request) != request {
                return None;
            }
            loops.push((thread, loop_task));
        }
        Some((same?, loops))
    }

    /// The page loop that a thread is in, if it holds one page at most and has no rate.
    fn plain_loop(&self, thread: usize) -> Option<(Request, AllocLoopTask)> {
        // The recorder is none of them.
        let at = self.threads.get(thread)?;
        let Activity::Action(number, working) = &at.activity else { return None };
        let phase = self.processes[at.process].phase?;
        let (work, caller) = page_work(&at.phases[phase].actions[*number].kind, &at.caller, &self.scenario.machine)?;
        let idle = working.as_ref().is_none_or(|working| working.held.is_empty() && !working.freeing);
        let done = working.as_ref().map_or(0, |working| working.part.operations);
        let left = work.count.map_or(u64::MAX, |count| count.saturating_sub(done));
        (work.hold == Some(1) && work.rate.is_none() && idle && left > 0)
            .then(|| (work.request, AllocLoopTask::new(caller, left)))
    }
}

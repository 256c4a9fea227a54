//! A thread that writes to a file of a cgroup while the workload runs.

use super::main_loop::{Engine, Step, Stop};
use super::process::Working;
use crate::build;
use crate::mm::memcg::write::{Progress, Target, Write};
use crate::mm::vmscan::TaskCtx;
use crate::page_alloc::{AllocationFailure, NodeMask, Request};
use crate::time::Ps;
use mmtwin_scenario::units::Bytes;
use mmtwin_scenario::workload::{ActionKind, Limit};

impl Engine<'_> {
    /// Begins a write or continues with it until a time.
    pub(super) fn write_cgroup(
        &mut self,
        thread: usize,
        action: &ActionKind,
        working: &mut Working,
        until: Ps,
    ) -> Result<Step, Stop> {
        if working.write.is_none() {
            match self.begin_write(action) {
                Some(write) => working.write = Some(Box::new(write)),
                None => {
                    working.part.operations = 1;
                    return Ok(Step::Ended);
                }
            }
        }
        let Some(write) = &mut working.write else { return Ok(Step::Ended) };
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut ctx = TaskCtx { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        match write.run(&mut ctx, until) {
            Progress::On => Ok(Step::On),
            Progress::Asleep(until, why) => {
                at.throttled = why;
                Ok(Step::Asleep(until))
            }
            Progress::Done(all) => {
                (working.part.operations, working.part.failures) = (u64::from(all), u64::from(!all));
                working.write = None;
                Ok(Step::Ended)
            }
            Progress::Kill => {
                working.kills = true;
                Ok(Step::On)
            }
            Progress::Still => Ok(Step::Still),
        }
    }

    /// Sets a limit; the reclaim that follows, if one may.
    fn begin_write(&mut self, action: &ActionKind) -> Option<Write> {
        let pages = |size: &Bytes| size.pages();
        match action {
            ActionKind::CgroupLimit { cgroup, limit, size } => {
                let number = build::cgroup_number(self.scenario, cgroup);
                let config = &mut self.kernel.reclaim.groups[number].config;
                let size = size.as_ref().map(pages);
                let target = match limit {
                    Limit::Max => {
                        config.max = size;
                        Target::Max(size?)
                    }
                    Limit::High => {
                        config.high = size;
                        Target::High(size?)
                    }
                    Limit::Low => {
                        config.low = size.unwrap_or(0);
                        return None;
                    }
                    Limit::Min => {
                        config.min = size.unwrap_or(0);
                        return None;
                    }
                    Limit::SwapMax => {
                        config.swap_max = size;
                        return None;
                    }
                };
                Some(Write::new(number, target))
            }
            ActionKind::MemoryReclaim { cgroup, size } => {
                Some(Write::new(build::cgroup_number(self.scenario, cgroup), Target::Reclaim(size.pages())))
            }
            _ => None,
        }
    }

    /// A write to `memory.max` kills a process of the cgroup, if there is one, or ends.
    pub(super) fn kill_for_limit(&mut self, thread: usize, action: &ActionKind) -> Result<Step, Stop> {
        let ActionKind::CgroupLimit { cgroup, .. } = action else { return Ok(Step::On) };
        let over_limit = Some(build::cgroup_number(self.scenario, cgroup));
        let cpu = self.threads[thread].caller.cpu;
        let (request, from) = (Request::KERNEL, self.kernel.machine.node_of(cpu));
        let (nodes, free, asks) = (NodeMask::ALL, 0, None);
        let failure = AllocationFailure { request, over_limit, cpu, from, nodes, free, asks };
        match self.kill_for(thread, failure) {
            Err(Stop::OutOfMemory(..)) => Ok(Step::Ended),
            killed => killed.map(|()| Step::On),
        }
    }
}

//! The recorder as a task: on a machine whose CPUs share one budget, a sample takes long enough to make it one more
//! busy task for the scheduler.
//!
//! It wakes at every sample while the workload runs and uses `machine.cost.sample` of CPU time on a CPU that the
//! workload leaves free, or else like any other thread: it takes turns, is pulled by other CPUs and is a partner in
//! swaps. It has no preferred node and its memory is not scanned. At the end of a phase, and before the first if that begins
//! amid the run, the process's first thread wakes it, and it wakes that thread when it has its sample; how that moves both
//! is in `engine/recorder.rs`, and what it allocates in `engine/numa_maps.rs`; what
//! it reads of its own memory is in [`super::program`]. Not modelled: that what it reads is read over
//! the time of a sample. Its CPU at the beginning is guessed from where the first thread began. Checked by comparison with
//! guests.

use super::program::Reading;
use crate::frame::Pfn;
use crate::hw::Machine;
use crate::mm::slowpath::AllocSlowpath;
use crate::mm::vmscan::NodeReclaim;
use crate::numa::{Mm, Numa, Task};
use crate::time::Ps;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::Process;
use std::collections::BTreeSet;

/// Before the first process.
pub(crate) const PID: i32 = 999;

/// The work of a sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// With the kernel's files.
    pub kernel: Ps,
    /// With the `numa_maps` of each process.
    pub processes: Vec<Ps>,
}

impl Work {
    /// All of it.
    pub(crate) fn total(&self) -> Ps {
        self.kernel + self.processes.iter().sum::<Ps>()
    }
}

/// The recorder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    /// Its remaining work with what it reads.
    pub left: Ps,
    /// Its work with each `numa_maps` that it has yet to open, the next one last.
    pub files: Vec<Ps>,
    /// What the kernel has allocated for the one that is open, and the slow path of that allocation.
    pub private: Option<Pfn>,
    pub slowpath: Option<AllocSlowpath>,
    pub node_reclaim: Option<NodeReclaim>,
    /// What it reads of its own memory for a sample, where a guest's state has that.
    pub program: Option<Reading>,
    /// It has begun with the sample.
    pub begun: bool,
    /// CPUs it may run on: one that is left free, or all.
    pub allowed: Option<u32>,
    /// The CPU that it runs on, or ran on last.
    pub cpu: u32,
    /// Processes that wait for the sample under way.
    pub waiting: Vec<usize>,
    /// Those that wait for the next one.
    pub asked: Vec<usize>,
}

impl Recorder {
    /// The recorder of a scenario on a machine whose CPUs share their budget; else `None`. `began` is where the first
    /// thread of the workload began, if that is known: the recorder had woken it there.
    pub(crate) fn of(scenario: &Scenario, machine: &Machine, began: Option<u32>) -> Option<Recorder> {
        if !scenario.machine.cpu.single_threaded_tcg {
            return None;
        }
        let allowed = free_cpu(scenario, machine);
        let last = machine.cpus.len() as u32 - 1;
        let beside = began.filter(|&cpu| cpu <= last).and_then(|cpu| {
            let own = machine.cpus_of(machine.node_of(cpu));
            own.into_iter().rev().find(|&other| other != cpu)
        });
        let cpu = allowed.or(beside).unwrap_or(last);
        Some(Recorder { allowed, cpu, ..Recorder::default() })
    }

    /// A sample is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.left > 0 || !self.files.is_empty()
    }

    /// Work after that under way.
    pub(crate) fn add(&mut self, work: Work) {
        self.left += work.kernel;
        self.program.iter_mut().for_each(|reading| reading.page = 0);
        self.files.splice(0..0, work.processes.into_iter().rev());
    }

    /// Its task, behind those of the threads.
    pub(crate) fn join(&self, numa: &mut Numa) {
        let mut task = Task::new(PID, PID, numa.mms.len(), self.allowed.map(|cpu| vec![cpu]));
        (task.alive, task.cpu) = (true, self.cpu);
        numa.mms.push(Mm::default());
        numa.tasks.push(task);
    }
}

/// The last CPU of a node on which no process may run, or else the last on which none may.
fn free_cpu(scenario: &Scenario, machine: &Machine) -> Option<u32> {
    let all = || 0..machine.cpus.len() as u32;
    let of = |process: &Process| process.cpus.as_ref().map_or_else(|| all().collect(), |cpus| cpus.numbers().to_vec());
    let used: BTreeSet<u32> = scenario.processes.iter().flat_map(of).collect();
    let nodes: BTreeSet<usize> = used.iter().map(|&cpu| machine.node_of(cpu)).collect();
    let free = || all().rev().filter(|cpu| !used.contains(cpu));
    free().find(|&cpu| !nodes.contains(&machine.node_of(cpu))).or_else(|| free().next())
}

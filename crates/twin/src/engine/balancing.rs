//! NUMA balancing in a run: its state, ticks and scans, and its cost and notes for the results.
//!
//! At the end of each epoch every running thread has its tick (`task_tick_numa`); threads whose scan is due scan
//! (`task_numa_work`). Hinting faults are drawn and handled in [`super::hinting_faults`], moves of threads in
//! [`super::thread_moves`]. Not modelled: ticks more frequent than epochs. With `run.epoch` above the kernel's tick a
//! scan may begin that much later.

use super::RunError;
use super::hinting_faults::Pending;
use super::main_loop::Engine;
use crate::build;
use crate::hw::PAGE_SIZE;
use crate::mm::prot_numa::{Balance, Unit};
use crate::numa::{Mm, Numa, Spent, Task, write_group, write_period};
use crate::time::{Ns, PS_PER_NS, Ps};
use mmtwin_event::Kind;
use mmtwin_event::results::BalancingTime;
use mmtwin_event::rules::Rule;
use mmtwin_event::value::{Bytes, Hex, Str};
use mmtwin_event::vocabulary::NumaMapping;
use std::collections::{BTreeMap, VecDeque};

/// Half-life of a thread's runtime average, in picoseconds: 32 ms.
const HALF_LIFE: f64 = 32e9;

/// NUMA balancing of a run.
#[derive(Clone, Debug)]
pub(crate) struct Balancing {
    /// The recorder's task, if there is one, is behind those of the threads.
    pub numa: Numa,
    /// By thread, in order of time.
    pub(super) pending: Vec<VecDeque<Pending>>,
    /// The last tick.
    ticked: Ps,
    /// By thread: CPU time at the last tick.
    before: Vec<Ps>,
    /// By process: cost of the phases that have ended.
    told: Vec<BalancingTime>,
    /// By thread: pages of its process's image that it accesses all the time.
    pub(super) image: Vec<Vec<(usize, Unit)>>,
}

impl Balancing {
    fn new(numa: Numa, image: Vec<Vec<(usize, Unit)>>) -> Balancing {
        let threads = numa.tasks.len();
        let (pending, before) = (vec![VecDeque::new(); threads], vec![0; threads]);
        let told = vec![BalancingTime::default(); numa.mms.len()];
        Balancing { numa, pending, ticked: 0, before, told, image }
    }
}

impl Engine<'_> {
    /// Writes the addresses of the regions of each process as events.
    pub(super) fn numa_mappings(&mut self, at: Ns) {
        if !self.kernel.probe.on(Kind::NumaMapping) {
            return;
        }
        for mapping in &self.memory.mappings {
            let process = &self.processes[mapping.process];
            let place = |list: &[usize]| list.iter().position(|&region| region == mapping.region);
            let name = match (place(&process.regions), place(&process.image)) {
                (Some(number), _) => process.region_names[number].clone(),
                (None, number) => format!("image{}", number.unwrap_or(0)),
            };
            let name = format!("{}/{name}", process.name);
            let task = self.threads[process.threads.start].caller.task;
            let event = NumaMapping {
                tgid: task.tgid,
                vm_start: Hex(mapping.start),
                vm_end: Hex(mapping.start + self.memory.regions[mapping.region].len() * PAGE_SIZE),
                region_id: mapping.region as u32,
                region: Str(Bytes { start: 0, len: name.len() as u32 }.to_slot()),
            };
            self.kernel.probe.write(at, 0, task, &event, name.as_bytes());
        }
    }

    /// A thread starts on a CPU.
    pub(super) fn numa_started(&mut self, thread: usize, at: Ns) {
        let Some(balancing) = &mut self.balancing else { return };
        let numa = &mut balancing.numa;
        let first = self.processes[self.threads[thread].process].threads.start;
        let rss = numa.rss(&self.memory, numa.tasks[thread].mm);
        let parent = (thread != first).then_some(first);
        numa.init_numa_balancing(thread, self.threads[thread].caller.cpu, parent, rss, at);
    }

    /// A phase of a process begins: while it populates regions by a policy, its threads have that.
    pub(super) fn numa_phase(&mut self, process: usize, populates: bool) {
        let Some(Balancing { numa, .. }) = &mut self.balancing else { return };
        let policies = self.scenario.processes[process].regions.iter().filter_map(|of| of.populate_policy.as_ref());
        let machine = &self.scenario.machine;
        let first = self.processes[process].threads.start;
        let mm = numa.tasks[first].mm;
        numa.mms[mm].by_policy =
            populates && policies.map(|policy| build::balance(policy, machine)).any(|of| of == Balance::Never);
    }

    /// A thread ends.
    pub(super) fn numa_ended(&mut self, thread: usize) {
        if let Some(balancing) = &mut self.balancing {
            let task = &balancing.numa.tasks[thread];
            if task.numa_group.is_some() {
                let at = self.kernel.now(task.cpu).max(self.exited);
                write_group(&mut self.kernel.probe, at, &balancing.numa.groups, task, None, Rule::Left);
            }
            balancing.numa.exit(thread);
        }
    }

    /// Cost of NUMA balancing for a process since the last call.
    pub(super) fn numa_time(&mut self, process: usize) -> Option<BalancingTime> {
        let Balancing { numa, told, .. } = self.balancing.as_mut()?;
        let spent = self.processes[process].threads.clone().map(|thread| numa.tasks[thread].spent);
        let sum = spent.fold(Spent::default(), |sum, of| Spent {
            scan: sum.scan + of.scan,
            fault: sum.fault + of.fault,
            migrate: sum.migrate + of.migrate,
        });
        let scan = sum.scan / PS_PER_NS;
        let fault = (sum.fault - sum.migrate) / PS_PER_NS;
        let all = BalancingTime { scan, fault, migrate: sum.migrate / PS_PER_NS };
        let before = std::mem::replace(&mut told[process], all);
        let (scan, fault) = (all.scan - before.scan, all.fault - before.fault);
        Some(BalancingTime { scan, fault, migrate: all.migrate - before.migrate })
    }

    /// Active nodes of the group that most threads of a process are in, the first of several that are as large.
    pub(super) fn numa_active_nodes(&self, process: usize) -> Option<u64> {
        let numa = &self.balancing.as_ref()?.numa;
        let tasks = || self.processes[process].threads.clone().map(|thread| &numa.tasks[thread]);
        let mut members: BTreeMap<usize, usize> = BTreeMap::new();
        tasks().filter_map(|task| task.numa_group).for_each(|group| *members.entry(group).or_default() += 1);
        let (&largest, _) = members.iter().max_by_key(|&(group, &tasks)| (tasks, std::cmp::Reverse(*group)))?;
        let member = tasks().find(|task| task.numa_group == Some(largest))?;
        numa.groups.of(member).map(|group| group.active_nodes)
    }

    /// A CPU has spent a thread's time.
    pub(crate) fn numa_ran(&mut self, thread: usize, time: Ps) {
        let task = self.balancing.as_mut().and_then(|balancing| balancing.numa.tasks.get_mut(thread));
        task.into_iter().for_each(|task| task.exec += time);
    }

    /// The tick of all CPUs at the end of an epoch; threads whose scan is due scan.
    pub(super) fn numa_tick(&mut self, clock: Ps) {
        let workload = self.workload_threads;
        let Some(Balancing { numa, ticked, before, .. }) = &mut self.balancing else { return };
        let time = (clock - *ticked) as f64;
        if time <= 0.0 {
            return;
        }
        let decay = libm::exp2(-time / HALF_LIFE);
        let now = clock / PS_PER_NS;
        for (thread, before) in before.iter_mut().enumerate() {
            if !numa.tasks[thread].alive {
                continue;
            }
            let exec = numa.tasks[thread].exec;
            numa.update_curr(thread, now, ((exec - *before) as f64 / time).min(1.0), decay);
            *before = exec;
        }
        *ticked = clock;
        let mut scanned = Vec::new();
        for cpu in 0..self.queues.cpus() as u32 {
            let Some(thread) = self.queues.running(cpu).filter(|&thread| thread < workload) else { continue };
            let before = numa.tasks[thread].numa_scan_period;
            let is_due = numa.task_tick_numa(thread, &self.memory, now);
            if numa.tasks[thread].numa_scan_period != before {
                write_period(&mut self.kernel.probe, now, before, &numa.tasks[thread], Rule::ScanStart);
            }
            if is_due {
                scanned.push((thread, self.kernel.clock(cpu)));
                if self.turns.is_some() {
                    // It has waited for its turn until now.
                    self.kernel.wait(cpu, clock);
                }
                numa.task_numa_work(thread, &mut self.memory, &mut self.kernel, now);
            }
        }
        scanned.into_iter().for_each(|(thread, ran_until)| self.defer(thread, ran_until, clock));
    }

    /// Ids of the living threads, and the text of `/proc/PID/sched` of each.
    pub(super) fn numa_tasks(&self, of: std::ops::Range<usize>) -> Vec<(i32, String)> {
        let Some(Balancing { numa, .. }) = &self.balancing else { return Vec::new() };
        let living = numa.tasks.iter().take(self.workload_threads).enumerate();
        let living = living.filter(|(number, task)| task.alive && of.contains(number));
        let text = |(number, task): (usize, &crate::numa::Task)| {
            (task.pid, numa.sched_text(number, self.kernel.machine.node_of(task.cpu)))
        };
        living.map(text).collect()
    }

    /// Notes of NUMA balancing for the results.
    pub(super) fn numa_notes(&self) -> Vec<String> {
        let divided = self.balancing.as_ref().map_or(0, |of| of.numa.divided_by_zero);
        let note = format!(
            "{divided} placements divided by zero, as this kernel's weighting of CPU faults does where no time has \
             passed: a real one would have stopped there"
        );
        (divided > 0).then_some(note).into_iter().collect()
    }
}

/// NUMA balancing of a scenario's workload; `None` if there is none.
pub(super) fn of(engine: &mut Engine<'_>) -> Result<Option<Balancing>, RunError> {
    let scenario = engine.scenario;
    if !build::balances(scenario) {
        return Ok(None);
    }
    let own = |of: &super::process::Process| of.regions.iter().copied().zip(of.mappers.iter().copied()).collect();
    let processes: Vec<Vec<(usize, usize)>> = engine.processes.iter().map(own).collect();
    engine.memory.mappings = build::mappings(scenario, &processes, &engine.memory.regions);
    let image = super::image::load(engine)?;
    let thread = |at: &super::process::Thread| (at.caller.task.pid, at.caller.task.tgid, at.process, at.pinned);
    let threads: Vec<_> = engine.threads[..engine.workload_threads].iter().map(thread).collect();
    let mut numa = build::numa(scenario, &engine.memory.mappings, &threads);
    engine.kernel.stat.events.numa.on = true;
    for thread in engine.kernel_threads() {
        let node = engine.kswapds.iter().find(|kswapd| kswapd.1 == thread).map(|kswapd| kswapd.0);
        let (pid, mm) = (engine.threads[thread].caller.task.pid, numa.mms.len());
        numa.mms.push(Mm::default());
        let mut task = Task::new(pid, pid, mm, node.map(|node| engine.kernel.machine.cpus_of(node)));
        task.cpu = engine.threads[thread].caller.cpu;
        numa.tasks.push(task);
    }
    engine.recorder.iter().for_each(|recorder| recorder.join(&mut numa));
    Ok(Some(Balancing::new(numa, image)))
}

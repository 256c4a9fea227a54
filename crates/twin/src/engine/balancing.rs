//! NUMA balancing in a run: ticks, scans, the draw of hinting faults, their handling, and threads that move.
//!
//! Once per epoch every running thread has its tick; those that are due scan. Then the first touches of marked pages
//! in the coming epoch are drawn, for all threads at once, so that who is first does not depend on the order in which
//! CPUs are simulated; each thread comes to its own with the touches that they were drawn for, to those of its program's
//! image at their times, to an eighth of an epoch. Ticks are not more
//! frequent than epochs: with `run.epoch` above the kernel's tick a scan may begin that much later.

use super::RunError;
use super::main_loop::{Engine, Step, Stop};
use super::process::Activity;
use crate::build;
use crate::hw::PAGE_SIZE;
use crate::lab_guest::recorder::Recorder;
use crate::mm::accessed::hints::Hit;
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;
use crate::numa::task_migrate::Move;
use crate::numa::{Mm, Numa, NumaCtx, Spent, Task, write_group, write_period};
use crate::sched::{Balancer, Level};
use crate::time::{Ns, PS_PER_NS, Ps};
use crate::workload::accessor::{AccessProgress, Accessor};
use mmtwin_event::Kind;
use mmtwin_event::results::BalancingTime;
use mmtwin_event::rules::Rule;
use mmtwin_event::value::{Bytes, Hex, Str};
use mmtwin_event::vocabulary::{NumaMapping, SchedMigrateTask};
use std::collections::{BTreeMap, VecDeque};

/// Parts of an epoch whose faults a thread comes to at once.
const SLICES: Ps = 8;
/// Characters of a task's name.
const COMM: usize = 15;
/// `prio` of a task without a nice value.
const DEFAULT_PRIO: i32 = 120;
/// Random numbers for images of processes: objects apart from those of pools.
const IMAGE: u64 = 1 << 63;
/// Picoseconds in which what the scheduler knows of a thread's past counts half: 32 ms.
const HALF_LIFE: f64 = 32e9;

/// A first touch that is to come.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Ps,
    mapping: usize,
    unit: Unit,
}

/// The touches that an access of a thread is to make: thread, place in its list, touches.
type Share = ((usize, usize), u64);

/// NUMA balancing of a run.
#[derive(Clone, Debug)]
pub(crate) struct Balancing {
    /// The recorder's task, if there is one, is behind those of the threads.
    pub numa: Numa,
    pub recorder: Option<Recorder>,
    balancer: Balancer,
    /// By thread, in order of time.
    pending: Vec<VecDeque<Pending>>,
    /// The last tick.
    ticked: Ps,
    /// By thread: CPU time at the last tick.
    before: Vec<Ps>,
    /// By process: what the phases that have ended have cost.
    told: Vec<BalancingTime>,
    /// By thread: what it touches of its process's image all the time.
    image: Vec<Vec<(usize, Unit)>>,
}

impl Balancing {
    fn new(numa: Numa, recorder: Option<Recorder>, cpus: usize, image: Vec<Vec<(usize, Unit)>>) -> Balancing {
        let threads = numa.tasks.len();
        let (pending, before) = (vec![VecDeque::new(); threads], vec![0; threads]);
        let told = vec![BalancingTime::default(); numa.mms.len()];
        Balancing { numa, recorder, balancer: Balancer::new(cpus), pending, ticked: 0, before, told, image }
    }
}

impl Engine<'_> {
    /// Says where each process has its regions.
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

    /// A thread does something else: what it was to touch waits for others again.
    pub(super) fn numa_forget(&mut self, thread: usize) {
        let Some(balancing) = &mut self.balancing else { return };
        let of = &mut self.threads[thread];
        let accessor =
            if let Activity::Touching(accessor) = &mut of.activity { Some(accessor) } else { of.touched.as_mut() };
        forget_ahead(accessor, &mut self.memory);
        for Pending { mapping, unit, .. } in balancing.pending[thread].drain(..) {
            if self.memory.mappings[mapping].has(unit) {
                self.memory.list(mapping, unit);
            }
        }
    }

    /// What NUMA balancing has cost a process since this was last asked.
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

    /// The tick of all CPUs at the end of an epoch; who is due scans.
    pub(super) fn numa_tick(&mut self, clock: Ps) {
        let workload = self.workload_threads();
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
        for cpu in 0..self.queues.cpus() as u32 {
            let Some(thread) = self.queues.running(cpu).filter(|&thread| thread < workload) else { continue };
            let before = numa.tasks[thread].numa_scan_period;
            let is_due = numa.task_tick_numa(thread, &self.memory, now);
            if numa.tasks[thread].numa_scan_period != before {
                write_period(&mut self.kernel.probe, now, before, &numa.tasks[thread], Rule::ScanStart);
            }
            if is_due {
                numa.task_numa_work(thread, &mut self.memory, &mut self.kernel, now);
            }
        }
    }

    /// The tick goes on: CPUs pull threads from those that have more.
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

    /// An epoch begins: what will be touched is drawn.
    pub(super) fn numa_begin_epoch(&mut self, clock: Ps, end: Ps) {
        if self.balancing.is_none() {
            return;
        }
        for thread in &mut self.threads {
            if let Activity::Touching(accessor) = &mut thread.activity {
                forget_ahead(Some(accessor), &mut self.memory);
            }
        }
        if self.memory.mappings.iter().any(|mapping| mapping.marked() > 0) {
            self.draw(clock, end);
        }
    }

    /// Draws the first touches of marked pages of the time from `clock` to `end`.
    fn draw(&mut self, clock: Ps, end: Ps) {
        let Some(Balancing { pending, image, .. }) = &mut self.balancing else { return };
        // What will be touched of programs' images, when and by whom.
        let mut found: Vec<(usize, Unit, Ps, usize)> = Vec::new();
        let mut paces = vec![0; self.memory.mappings.len()];
        let mut by_pool: BTreeMap<usize, (usize, Vec<Share>)> = BTreeMap::new();
        for (thread, at) in self.threads.iter_mut().enumerate() {
            let Activity::Touching(accessor) = &mut at.activity else { continue };
            let runs = self.queues.running(at.caller.cpu) == Some(thread);
            let from = if runs { self.kernel.clock(at.caller.cpu).max(clock) } else { clock };
            if runs {
                // Every turn touches all of it, so the first of those who share a page is any of them.
                let random = self.memory.hint_random.of(IMAGE | thread as u64);
                for (number, &(mapping, unit)) in (0..).zip(&image[thread]) {
                    if self.memory.mappings[mapping].has(unit) {
                        let at = from + random.below(clock.wrapping_add(number), accessor.pace as u64);
                        found.push((mapping, unit, at, thread));
                    }
                }
            }
            let sleeps = accessor.list.iter().any(|access| access.touching.sleep > 0);
            // Who sleeps between touches wakes within the time.
            let wakes = sleeps && !self.queues.holds(at.caller.cpu, thread);
            if accessor.explicit || accessor.pace <= 0.0 || !(runs || wakes) {
                continue;
            }
            let time = end.saturating_sub(from);
            let turns = (time as f64 / accessor.pace) as u64 + 1;
            for (number, access) in accessor.list.iter().enumerate() {
                let Some(mapping) = access.mapping.filter(|_| access.active()) else { continue };
                let touches = turns.min(access.left().unwrap_or(u64::MAX));
                paces[mapping] += touches;
                if let Some(pool) = access.pool {
                    by_pool.entry(pool).or_insert_with(|| (mapping, Vec::new())).1.push(((thread, number), touches));
                }
            }
        }
        let seconds = (end - clock) as f64 / PS_PER_NS as f64 / 1e9;
        for (mapping, touches) in self.memory.mappings.iter_mut().zip(paces).filter(|(_, touches)| *touches > 0) {
            mapping.pace = touches as f64 / seconds / self.memory.regions[mapping.region].len() as f64;
        }
        let mut hits: Vec<Hit> = Vec::new();
        for (number, (mapping, threads)) in by_pool {
            let of = &self.memory.mappings[mapping];
            let Some(pool) = self.memory.pools[number].as_mut().filter(|_| of.marked() > 0) else { continue };
            let Some(hints) = &mut pool.hints else { continue };
            let touches: Vec<u64> = threads.iter().map(|(_, touches)| *touches).collect();
            hints.draw(&touches, of, &self.memory.hint_random, pool.number, &mut hits);
            let mut by_thread = vec![Vec::new(); threads.len()];
            for hit in hits.drain(..) {
                by_thread[hit.who].push(hit);
            }
            for (&((thread, number), touches), hits) in threads.iter().zip(by_thread) {
                let Activity::Touching(accessor) = &mut self.threads[thread].activity else { continue };
                let access = &mut accessor.list[number];
                let count = access.touching.stream.count;
                let hits = hits.iter().map(|hit| (hit.touch(count, touches), hit.unit)).collect();
                access.ahead.drawn(hits, count + touches);
            }
        }
        // The first one has the fault.
        found.sort_unstable();
        found.dedup_by_key(|found| (found.0, found.1));
        found.sort_unstable_by_key(|&(mapping, unit, at, thread)| (thread, at, mapping, unit));
        for (mapping, unit, at, thread) in found {
            pending[thread].push_back(Pending { at, mapping, unit });
        }
    }

    /// Runs a thread's touches of memory with its hinting faults.
    pub(super) fn touch(&mut self, thread: usize, until: Ps) -> Result<Step, Stop> {
        let slice = self.scenario.run.epoch.0 * PS_PER_NS / SLICES;
        loop {
            let cpu = self.threads[thread].caller.cpu;
            let next = self.balancing.as_ref().and_then(|of| of.pending[thread].front().copied());
            let Some(next) = next.filter(|next| next.at < until) else { break };
            let clock = self.kernel.clock(cpu);
            if clock >= until {
                return Ok(Step::On);
            }
            if next.at > clock + slice {
                let step = self.touch_unmarked(thread, next.at)?;
                if step != Step::On || self.threads[thread].caller.cpu != cpu {
                    return Ok(step);
                }
            }
            let Some(balancing) = &mut self.balancing else { break };
            balancing.pending[thread].pop_front();
            if self.hint_fault(thread, next.mapping, next.unit)? {
                return Ok(Step::On);
            }
        }
        self.touch_unmarked(thread, until)
    }

    /// The same up to the next drawn fault; explicit touches have their faults here.
    fn touch_unmarked(&mut self, thread: usize, until: Ps) -> Result<Step, Stop> {
        loop {
            let at = &mut self.threads[thread];
            let Activity::Touching(accessor) = &mut at.activity else { return Ok(Step::Ended) };
            match accessor.run(&mut self.memory, &mut self.kernel, &mut at.caller, until) {
                Ok(AccessProgress::On) => return Ok(Step::On),
                Ok(AccessProgress::Asleep(until)) => return Ok(Step::Asleep(until)),
                Ok(AccessProgress::Done) => return Ok(Step::Ended),
                Ok(AccessProgress::Marked(mapping, unit)) => {
                    if self.hint_fault(thread, mapping, unit)? {
                        return Ok(Step::On);
                    }
                }
                Err(failure) => return Err(Stop::OutOfMemory(thread, failure)),
            }
        }
    }

    /// A thread touches a marked page; true if it is on another CPU afterwards.
    fn hint_fault(&mut self, thread: usize, mapping: usize, unit: Unit) -> Result<bool, RunError> {
        let Some(Balancing { numa, .. }) = &mut self.balancing else { return Ok(false) };
        if !self.memory.mappings[mapping].has(unit) {
            return Ok(false);
        }
        let mut ctx = NumaCtx { kernel: &mut self.kernel, memory: &mut self.memory, queues: &self.queues };
        let before = ctx.kernel.stat.events.faults;
        let asks = numa.do_numa_page(&mut ctx, thread, mapping, unit);
        if let Activity::Touching(accessor) = &mut self.threads[thread].activity {
            accessor.note_hints(mapping, unit, ctx.kernel.stat.events.faults - before);
        }
        if !asks {
            return Ok(false);
        }
        match numa.numa_migrate_preferred(&mut ctx, thread) {
            None => return Ok(false),
            Some(Move::To(cpu)) => self.move_thread(thread, cpu)?,
            Some(Move::Swap(cpu, with)) => {
                let own = self.threads[thread].caller.cpu;
                self.queues.swap(own, cpu);
                let now = self.kernel.now(own);
                self.set_cpu(thread, cpu, now);
                self.set_cpu(with, own, now);
                self.make_ready(cpu);
            }
        }
        self.not_batchable = false;
        Ok(true)
    }

    /// A thread goes to another CPU, with its place in the queue.
    pub(super) fn move_thread(&mut self, thread: usize, to: u32) -> Result<(), RunError> {
        let from = self.cpu_of(thread);
        let (at, runs) = (self.kernel.clock(from), self.queues.holds(from, thread));
        if thread < self.workload_threads() {
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

    /// What a thread and its statistics know of its CPU, from a time on if its CPU is idle, whose clock may be behind.
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

    /// Ids of the living threads, and what `/proc/PID/sched` says of each.
    pub(super) fn numa_tasks(&self, of: std::ops::Range<usize>) -> Vec<(i32, String)> {
        let Some(Balancing { numa, .. }) = &self.balancing else { return Vec::new() };
        let living = numa.tasks.iter().take(self.workload_threads()).enumerate();
        let living = living.filter(|(number, task)| task.alive && of.contains(number));
        let text = |(number, task): (usize, &crate::numa::Task)| {
            (task.pid, numa.sched_text(number, self.kernel.machine.node_of(task.cpu)))
        };
        living.map(text).collect()
    }

    /// What NUMA balancing leaves for the results.
    pub(super) fn numa_notes(&self) -> Vec<String> {
        let divided = self.balancing.as_ref().map_or(0, |of| of.numa.divided_by_zero);
        let note = format!(
            "{divided} placements divided by zero, as this kernel's weighting of CPU faults does where no time has \
             passed: a real one would have stopped there"
        );
        (divided > 0).then_some(note).into_iter().collect()
    }
}

/// Units that a thread has not come to wait for others again.
fn forget_ahead(accessor: Option<&mut Accessor>, memory: &mut AccessState) {
    let Some(accessor) = accessor else { return };
    accessor.forget_ahead(|mapping, unit| {
        if memory.mappings[mapping].has(unit) {
            memory.list(mapping, unit);
        }
    });
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
    let threads: Vec<_> = engine.threads[..engine.workload_threads()].iter().map(thread).collect();
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
    let recorder = Recorder::of(scenario, &engine.kernel.machine, &mut numa);
    Ok(Some(Balancing::new(numa, recorder, engine.queues.cpus(), image)))
}

//! Virtual time: choice of the next CPU, timers, start and end of phases.
//!
//! CPUs with runnable threads wait in order of (clock, CPU). The first of them runs its thread until the next is behind
//! it, until something is due, or until the epoch ends; kernel timers run before that. CPUs that share the time of one
//! take turns ([`super::turns`]). A CPU with several threads
//! switches between them by the scheduler's rules ([`crate::sched`]). Times within one step of a CPU are exact; shared
//! lists may include changes of other CPUs' steps, at most an epoch ahead.

use super::balancing::Balancing;
use super::oom::Killed;
use super::process::{Process, Thread};
use super::sample::Sampler;
use super::slowpath::turn;
use super::watch::MANY_EVENTS;
use super::writeback::WritebackThreads;
use super::{Halted, Options, Ran, RunError, balancing, process, psi};
use crate::build;
use crate::build::BuildError;
use crate::hw::load::Load;
use crate::lab_guest::host::Host;
use crate::lab_guest::program::{OF_SAMPLE, Reading};
use crate::lab_guest::recorder::Recorder;
use crate::lab_guest::turns::Turns;
use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::slab::dentry::Dentries;
use crate::mm::writeback::Requests;
use crate::page_alloc::AllocationFailure;
use crate::probe::Probe;
use crate::sched::{Balancer, Psi, RunQueues};
use crate::time::{Ns, PS_PER_NS, Ps, Ready, Timers, Watch};
use crate::workload::trace::Replayed;
use mmtwin_event::results::{Ending, PhaseResult, Results};
use mmtwin_event::{Sink, Times};
use mmtwin_scenario::Scenario;
use std::collections::BTreeSet;

/// Longest run: half of the time that picoseconds can count, so that no step overflows.
pub(super) const HORIZON: Ns = 100 * 86_400_000_000_000;

/// Work of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A process starts.
    Start(usize),
    /// A phase of a process has lasted its duration.
    PhaseEnd(usize, usize),
    /// A process has reported the end of a phase, or its own.
    Reported(usize, bool),
    /// A thread has slept enough; the number of the sleep.
    Wake(usize, u64),
    /// The recorder has slept enough in reclaim.
    RecorderWakes,
    /// The disk is done with a request to write.
    Written(u64),
    /// The disk is done with a request to read.
    ReadEnds,
    /// A flusher wakes by itself.
    Flush(usize),
    /// A file system's journal is written.
    Commit,
    /// Counters are recorded.
    Sample,
    /// The run ends.
    Stop,
}

/// How a thread's step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its time is over; it continues.
    On,
    /// It sleeps until then.
    Asleep(Ps),
    /// It waits for other threads.
    Waiting,
    /// Its activity has ended.
    Ended,
    /// It has worked and worked while its clock stood still.
    Still,
    /// It waits again and again for memory that no thread frees.
    Waits,
}

/// Why a run stops early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It cannot continue.
    Failed(RunError),
    /// A thread found no memory.
    OutOfMemory(usize, AllocationFailure),
    /// It makes no progress.
    Halted(Box<Halted>),
}

impl From<Box<Halted>> for Stop {
    fn from(halted: Box<Halted>) -> Stop {
        Stop::Halted(halted)
    }
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Stop {
        Stop::Failed(error)
    }
}

/// A run under way.
pub(crate) struct Engine<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) options: Options<'a>,
    pub(super) sink: &'a mut dyn Sink,
    pub(crate) kernel: Kernel,
    /// The host of the machine, if it has fewer CPUs.
    pub(crate) host: Option<Host>,
    pub(crate) memory: AccessState,
    pub(crate) queues: RunQueues,
    pub(crate) threads: Vec<Thread>,
    /// How many of them are the workload's; kernel threads follow.
    pub(crate) workload_threads: usize,
    pub(crate) processes: Vec<Process>,
    pub(super) due: Timers<Due>,
    /// Times of timers that no CPU may run past: neither wakeups nor the ends of writes.
    pub(super) fixed: BTreeSet<Ns>,
    /// CPUs with something to run.
    pub(super) ready: Ready,
    /// Turns of CPUs that share the time of one.
    pub(super) turns: Option<Turns>,
    /// The threads that run are known not to be in one and the same page loop.
    pub(crate) not_batchable: bool,
    pub(super) epoch_end: Ps,
    /// When the last one was ended.
    pub(super) epoch_ended: Ps,
    /// When the memory of the last process that has ended was freed.
    pub(super) exited: Ns,
    pub(super) sampler: Sampler,
    pub(super) results: Vec<(usize, PhaseResult)>,
    /// NUMA balancing, if it is on.
    pub(crate) balancing: Option<Balancing>,
    /// The recorder, where it is a task.
    pub(crate) recorder: Option<Recorder>,
    /// Shortest turn of a CPU while memory is reclaimed.
    pub(super) turn: Ps,
    /// Nodes and the threads of their kswapds.
    pub(super) kswapds: Vec<(usize, usize)>,
    /// Nodes and the threads of their kcompactds.
    pub(super) kcompactds: Vec<(usize, usize)>,
    /// What CPUs know of their attempts to balance load.
    pub(super) balancer: Balancer,
    /// The threads that write back, if there are files.
    pub(super) writeback_threads: Option<WritebackThreads>,
    /// Replayed part of a trace.
    pub(super) replayed: Replayed,
    /// Processes that the OOM killer has killed.
    pub(crate) killed: Vec<Killed>,
    /// Processes of the workload that have not ended.
    pub(super) unended: usize,
    /// Watches that virtual time advances.
    pub(super) watch: Watch,
    /// Bytes of events that wait from which on those that are final are written early.
    pub(super) drain_at: usize,
    /// Pressure stall information, if the kernel has it.
    pub(super) psi: Option<Psi>,
}

impl<'a> Engine<'a> {
    /// Everything as it is before the first process starts.
    pub(super) fn new(
        scenario: &'a Scenario,
        mut options: Options<'a>,
        sink: &'a mut dyn Sink,
    ) -> Result<Engine<'a>, RunError> {
        options.explicit |= options.trace.is_some();
        options.state.at = options.state.at.min(HORIZON);
        let machine = build::with_zones(&scenario.machine, &options.state.zones);
        let mut kernel =
            build::kernel_of(scenario, (&machine, &options.state.iomem), Probe::new(options.events.iter().copied()))?;
        let process::Workload { processes, threads, regions } = process::workload(scenario, options.trace.as_ref())?;
        let costs = build::fault_costs(scenario);
        let load = Load::new(build::memory(&scenario.machine).map_err(BuildError::from)?);
        let (swap, disk) = build::disks(scenario);
        let disk = build::behind_dm_delay(disk, scenario);
        kernel.set_cgroups(build::cgroups(scenario));
        kernel.reclaim.free_swap = Some(swap.pages()).filter(|pages| *pages > 0);
        let mut memory = AccessState::new(load, costs, scenario.run.seed);
        (memory.regions, memory.swap, memory.disk) = (regions, swap, disk);
        let (nodes, cpus) = (kernel.machine.nodes.len(), kernel.machine.cpus.len());
        memory.index = build::index(&scenario.kernel, nodes, cpus);
        memory.fault_around = scenario.kernel.filemap.fault_around_pages.into();
        let grace = scenario.machine.cost.rcu_grace_ticks.get().into();
        memory.dentries = Dentries::new(nodes, cpus, grace);
        for (number, region) in memory.regions.iter().enumerate() {
            if let Some(files) = region.files {
                memory.inodes.divide(number, region.len(), files);
            }
        }
        memory.requests = Requests::new(build::request_limits(&scenario.machine));
        let mut engine = Engine {
            scenario,
            options,
            sink,
            queues: RunQueues::new(&kernel.machine),
            host: scenario.machine.cpu.physical_cpus.and_then(|host| Host::new(host.get(), cpus)),
            memory,
            workload_threads: threads.len(),
            threads,
            processes,
            due: Timers::default(),
            fixed: BTreeSet::new(),
            ready: Ready::new(cpus),
            turns: scenario.machine.cpu.single_threaded_tcg.then(|| Turns::new(cpus, scenario.run.seed)),
            not_batchable: false,
            epoch_end: 0,
            epoch_ended: 0,
            exited: 0,
            sampler: Sampler::new(&scenario.run.counters),
            results: Vec::new(),
            balancing: None,
            recorder: None,
            turn: turn(&kernel.alloc),
            kswapds: Vec::new(),
            kcompactds: Vec::new(),
            balancer: Balancer::new(cpus),
            writeback_threads: None,
            replayed: Replayed::default(),
            killed: Vec::new(),
            unended: scenario.processes.len(),
            watch: Watch::new(cpus, 0),
            drain_at: MANY_EVENTS,
            psi: None,
            kernel,
        };
        let lru = engine.options.state.lru.take();
        let program = lru.map(|lru| engine.restore_lru(&lru)).transpose()?;
        let shrinkers = std::mem::take(&mut engine.options.state.shrinkers);
        engine.restore_shrinkers(&shrinkers);
        let state = &engine.options.state;
        state.zones.iter().try_for_each(|zone| engine.kernel.restore_zone(zone))?;
        engine.start_node_threads();
        engine.start_writeback();
        if let Some(rules) = build::fair_rules(&scenario.kernel, cpus) {
            engine.queues.share_fairly(rules, engine.threads.len());
        }
        engine.watch = Watch::new(cpus, engine.threads.len());
        engine.psi = psi::of(scenario, &engine.kernel, &engine.threads);
        let began = engine.options.state.began.first().and_then(|threads| threads.first()).copied();
        engine.recorder = Recorder::of(scenario, &engine.kernel.machine, began);
        let program = program.map(|region| Reading::new(region, OF_SAMPLE, &engine.memory));
        engine.recorder.iter_mut().for_each(|recorder| recorder.program = program.clone());
        engine.balancing = balancing::of(&mut engine)?;
        Ok(engine)
    }

    /// Runs to the end. `notes` are added to the results.
    pub(super) fn run(mut self, mut notes: Vec<String>) -> Result<Ran, RunError> {
        for thread in &self.threads {
            let comm = self.processes[thread.process].name.as_bytes();
            let (pid, tgid) = (thread.caller.task.pid, thread.caller.task.tgid);
            let cgroup = self.scenario.processes.get(thread.process).and_then(|process| process.cgroup.as_deref());
            self.sink.task(&mmtwin_event::Task { pid, tgid, comm, cgroup });
        }
        let begin = self.options.state.at;
        self.kernel.advance(begin);
        self.numa_mappings(begin);
        self.kernel.begin_node_reclaim();
        if !self.options.state.zones.is_empty() {
            self.kernel.queue_updates(begin);
        }
        // A state is read when the first sample has been taken, so that no thread has to wait for that.
        let first = self.sample_work(0..0).total();
        let waits = self.recorder.is_some() && self.options.state.zones.is_empty();
        let sampling = if waits { first.div_ceil(PS_PER_NS) } else { 0 };
        self.fix(begin, Due::Sample);
        for (number, process) in self.scenario.processes.iter().enumerate() {
            self.fix(begin + sampling + process.start.0, Due::Start(number));
        }
        // Without processes there is nothing to wait for.
        let last = if self.scenario.processes.is_empty() { 0 } else { HORIZON };
        let duration = self.scenario.run.duration.map_or(last, |duration| duration.0.min(HORIZON));
        self.fix(begin + duration, Due::Stop);
        let (mut now, mut halted) = (begin, None);
        let ending = loop {
            match self.next(&mut now) {
                Ok(true) => {}
                Ok(false) => break Ending::Completed,
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::OutOfMemory(thread, failure)) => {
                    now = now.max(self.kernel.now(self.threads[thread].caller.cpu));
                    break self.oom_no_victim(thread, &failure, now);
                }
                Err(Stop::Halted(why)) => {
                    halted = Some(*why.clone());
                    let (Halted::StandsStill { at, pid, comm, .. }
                    | Halted::WaitsForEver { at, pid, comm, .. }
                    | Halted::TooLarge { at, pid, comm, .. }) = *why.clone();
                    now = now.max(at);
                    break Ending::Stopped { at, pid, comm, message: why.to_string() };
                }
            }
            if self.unended == 0 && !self.scenario.processes.is_empty() {
                break Ending::Completed;
            }
        };
        let ending = match ending {
            Ending::Completed if self.processes.iter().any(|process| !process.ended) => Ending::TimeUp,
            ending => ending,
        };
        let (ending, killed) = self.killed(ending);
        // Threads that still run are stopped here.
        for process in 0..self.processes.len() {
            if self.processes[process].phase.is_some() {
                self.close_phase(process, now)?;
            } else if self.processes[process].lives() {
                self.stop_threads(process, now)?;
            }
        }
        debug_assert!(self.kernel.reclaim.no_task_sleeps(), "a task that is gone still sleeps in reclaim");
        // A process may be at its exit yet when time is up.
        now = now.max(self.exited.min(begin + duration));
        self.kernel.run_timers(now);
        self.sample(now)?;
        self.kernel.probe.drain(Ns::MAX, self.sink);
        let more = self.numa_notes();
        self.results.sort_by_key(|(process, _)| *process);
        let phases = self.results.into_iter().map(|(_, result)| result).collect();
        notes.extend(killed.into_iter().chain(more));
        notes.extend(self.options.trace.as_ref().map(|trace| self.replayed.note(trace)));
        let results = Results { ending, phases, notes, ..Results::default() };
        let threads = &self.threads;
        let ran = |of: &process::Process| threads[of.threads.clone()].iter().map(|thread| thread.ran).sum::<Ps>();
        let cpu_time = self.processes.iter().map(|of| (of.name.clone(), ran(of) / PS_PER_NS)).collect();
        let workload =
            || self.processes[..self.scenario.processes.len()].iter().flat_map(|of| &threads[of.threads.clone()]);
        let seconds = |sum: Ps| (sum / PS_PER_NS) as f64 / 1e9;
        let (ran, user): (Ps, Ps) = workload().fold((0, 0), |(ran, user), of| (ran + of.ran, user + of.user));
        let elapsed = (now - begin) as f64 / 1e9;
        let times = Times { user: seconds(user), system: seconds(ran - user), elapsed };
        Ok(Ran { results, end: now, kernel: self.kernel, cpu_time, times, halted })
    }

    /// Runs the next timer or CPU; false at the end of the run.
    fn next(&mut self, now: &mut Ns) -> Result<bool, Stop> {
        self.share_host();
        let ready = self.next_cpu();
        let due = self.due.next_at();
        let is_due = match (ready, due) {
            (Some((clock, _)), Some(at)) => at.saturating_mul(PS_PER_NS) <= clock,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return Ok(false),
        };
        if !is_due {
            if let Some((clock, cpu)) = ready {
                self.ready.remove(cpu);
                self.check_progress(clock, self.queues.running(cpu))?;
                *now = (*now).max(clock / PS_PER_NS);
                self.step(cpu, clock)?;
            }
            return Ok(true);
        }
        let Some(timer) = self.due.take(Ns::MAX) else { return Ok(false) };
        *now = (*now).max(timer.at);
        self.turns.iter_mut().for_each(Turns::timer_ran);
        self.check_progress(timer.at.saturating_mul(PS_PER_NS), None)?;
        while self.fixed.first().is_some_and(|&at| at <= timer.at) {
            self.fixed.pop_first();
        }
        self.run_kernel_timers(timer.at);
        match timer.what {
            Due::Stop => return Ok(false),
            Due::Start(process) => self.start(process, timer.at)?,
            Due::PhaseEnd(process, phase) if self.processes[process].phase == Some(phase) => {
                self.end_phase(process, timer.at)?;
            }
            Due::Wake(thread, sleep) if self.threads[thread].sleeps == sleep => {
                if !self.kcompactd_sleeps_on(thread, timer.at) {
                    self.wake(thread, timer.at * PS_PER_NS)?;
                    self.kernel.woken_by_timer(self.threads[thread].caller.cpu);
                }
            }
            Due::Reported(process, exits) if self.processes[process].lives() => {
                self.reported(process, exits, timer.at)?;
            }
            Due::PhaseEnd(..) | Due::Reported(..) | Due::Wake(..) => {}
            Due::RecorderWakes => self.recorder_wakes(timer.at * PS_PER_NS)?,
            Due::Written(request) => {
                self.transferred(timer.cpu, request, timer.at)?;
                self.process_effects(timer.cpu, timer.at * PS_PER_NS)?;
            }
            Due::ReadEnds => self.read_ends(timer.cpu, timer.at * PS_PER_NS),
            Due::Flush(number) => self.flusher_is_due(number, timer.at)?,
            Due::Commit => {
                self.memory.commit(&mut self.kernel, timer.at);
                self.process_effects(timer.cpu, timer.at * PS_PER_NS)?;
            }
            Due::Sample => {
                self.sample(timer.at)?;
                let interval = self.scenario.run.sample.0;
                if interval > 0 {
                    self.fix(timer.at + interval, Due::Sample);
                }
            }
        }
        Ok(true)
    }

    /// Does what timers of the kernel do until a time.
    pub(super) fn run_kernel_timers(&mut self, until: Ns) {
        self.kernel.run_timers(until);
        self.memory.dentries.end_grace_periods(&mut self.kernel, until);
    }

    /// Adds a timer that no CPU may run past.
    pub(super) fn fix(&mut self, at: Ns, what: Due) {
        self.due.set(at, 0, what);
        self.fixed.insert(at);
    }
}

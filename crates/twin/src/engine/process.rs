//! Processes and threads while they run.

use super::action_stats::{ActionStats, Part};
use super::exit::Exit;
use super::report::Report;
use super::turns::Overrun;
use crate::build;
use crate::build::BuildError;
use crate::frame::Pfn;
use crate::mm::compaction::Kcompactd;
use crate::mm::memcg::high::High;
use crate::mm::memcg::write::Write;
use crate::mm::reclaim::KswapdImpl;
use crate::mm::region::{Region, Shape};
use crate::mm::slowpath::{AllocSlowpath, Throttled};
use crate::mm::vmscan::NodeReclaim;
use crate::mm::writeback::{BioEndIo, Flusher};
use crate::page_alloc::{Caller, Policy};
use crate::probe::Task;
use crate::time::{Ns, Ps};
use crate::workload::accessor::Accessor;
use crate::workload::trace::FIRST_PID;
use crate::workload::trace::Trace;
use mmtwin_event::durations::Durations;
use mmtwin_event::results::{AccessResult, PhaseResult, Placement};
use mmtwin_scenario::program::{self, Cursor, Pattern, Stream};
use mmtwin_scenario::program::{AccessPlan, ThreadPhase};
use mmtwin_scenario::workload::{Phase, RegionKind, Sharing, Via};
use mmtwin_scenario::{Scenario, workload as spec};
use std::collections::BTreeMap;

/// Name of the part before the first phase.
const POPULATE: &str = "populate";
/// Name of the phase in which a trace is replayed.
const TRACE: &str = "trace";

/// A thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// Its process.
    pub process: usize,
    /// Its activities by phase.
    pub phases: Vec<ThreadPhase>,
    /// By phase: numbers of its actions among the phase's.
    pub places: Vec<Vec<usize>>,
    /// CPU it must stay on.
    pub pinned: Option<u32>,
    /// Task, CPU and policy.
    pub caller: Caller,
    /// Its current activity.
    pub activity: Activity,
    /// Its CPU time.
    pub ran: Ps,
    /// The program's own part of it, in phases that have ended.
    pub user: Ps,
    /// Counts its sleeps, so that a wake-up meant for an earlier one is known.
    pub sleeps: u64,
    /// Its accesses in this phase.
    pub touched: Option<Accessor>,
    /// An allocation that it has to reclaim for.
    pub slowpath: Option<AllocSlowpath>,
    /// A node that it reclaims before it takes memory of another.
    pub node_reclaim: Option<NodeReclaim>,
    /// Pages beyond `memory.high` that it has to reclaim for.
    pub high: Option<High>,
    /// Its allocation has failed without another retry (`Engine::deny`). Its next step handles that
    /// (`Engine::step_on`).
    pub denied: bool,
    /// Why it sleeps, if that is in reclaim.
    pub throttled: Throttled,
    /// What is left of its last step, where CPUs take turns.
    pub overrun: Option<Overrun>,
    /// How far its last step was to go, and when its CPU left it there; `None`: it sleeps.
    pub left_off: Option<(Ps, Ps)>,
}

/// Activity of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) enum Activity {
    /// Nothing until the phase ends.
    #[default]
    Nothing,
    /// An action, by its number among the thread's, once it has begun.
    Action(usize, Option<Working>),
    /// Accessing memory.
    Accessing(Accessor),
    /// Keeping memory of a node free.
    Kswapd(Box<KswapdImpl>),
    /// Making blocks of a node's memory.
    Kcompactd(Box<Kcompactd>),
    /// Writing dirty files.
    Flusher(Flusher),
    /// Ending writes.
    BioEndIo(BioEndIo),
    /// Reading the memory of its program.
    Reporting(Box<Report>),
    /// Freeing the memory of its process, which has ended.
    Exiting(Exit),
}

/// An action under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Working {
    /// When it began.
    pub begun: Ps,
    /// Its progress.
    pub part: Part,
    /// Pages to be freed.
    pub held: Vec<Pfn>,
    /// Start of the current or last attempt to allocate a block.
    pub attempt: Option<Ps>,
    pub trying: bool,
    /// Page with which a call that frees memory continues.
    pub next_page: Option<u64>,
    /// Write to a file of a cgroup, and whether it kills a process.
    pub write: Option<Box<Write>>,
    pub kills: bool,
    /// It is freeing.
    pub freeing: bool,
    /// Since when it pauses, and how long all pauses before were.
    pub pausing: Option<Ps>,
    pub paused: Ps,
}

impl Working {
    /// A pause, if there is one, is over.
    pub(super) fn resume(&mut self, now: Ps) {
        self.paused += self.pausing.take().map_or(0, |since| now.saturating_sub(since));
    }
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// As in the scenario.
    pub name: String,
    /// Its threads.
    pub threads: std::ops::Range<usize>,
    /// Numbers of its regions among all, in the scenario's order.
    pub regions: Vec<usize>,
    /// By region: number of its mapping among those of the region.
    pub mappers: Vec<usize>,
    /// Numbers of its other areas among all regions; none if they are not modelled.
    pub image: Vec<usize>,
    /// Among these, memory of its program that the state of a guest has.
    pub program: Option<usize>,
    /// Names of its regions.
    pub region_names: Vec<String>,
    /// Its phases; the first may be that which populates.
    pub phases: Vec<ProcessPhase>,
    /// The phase that runs; `None`: before the first, after the last, or between two.
    pub phase: Option<usize>,
    /// The phase that is next.
    pub next: usize,
    /// When that began.
    pub begun: Ns,
    /// Threads that are not done with it.
    pub working: usize,
    /// When the last of the others was.
    pub reached: Ns,
    /// Threads that wait for others in a collective action.
    pub gathered: Vec<usize>,
    /// Sums of the threads' actions, by action of the phase.
    pub action_stats: Vec<ActionStats>,
    /// Pages kept until it ends.
    pub kept: Vec<Pfn>,
    /// It has started: its threads have CPUs.
    pub started: bool,
    /// It has ended.
    pub ended: bool,
}

/// A phase of a process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessPhase {
    /// Name in results.
    pub name: String,
    /// How long it lasts.
    pub duration: Option<Ns>,
    /// Activities of its threads.
    pub what: What,
}

/// Activities of the threads of a process in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// They access the regions that are populated.
    Populate,
    /// A phase of the scenario, by its number.
    OfScenario(usize),
    /// They replay a trace.
    Replay,
}

impl What {
    /// The number of a phase of the scenario.
    pub(super) fn number(self) -> Option<usize> {
        match self {
            What::OfScenario(number) => Some(number),
            What::Populate | What::Replay => None,
        }
    }
}

/// All processes with their threads and regions.
#[derive(Debug)]
pub(crate) struct Workload {
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub regions: Vec<Region>,
}

/// The workload as it is before the run.
pub(super) fn workload(scenario: &Scenario, trace: Option<&Trace>) -> Result<Workload, BuildError> {
    let (mut processes, mut threads, mut regions) = (Vec::new(), Vec::new(), Vec::new());
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, config) in scenario.processes.iter().enumerate() {
        let first = threads.len();
        let policy = build::policy(&config.policy, &scenario.machine)?;
        let tgid = FIRST_PID + first as i32;
        let populates = config.regions.iter().any(|region| region.populate);
        let replays = trace.is_some_and(|trace| trace.concerns(first..first + config.threads as usize));
        let cpus = scenario.machine.cpus.len() as u32;
        for (thread, pid) in program::threads(config, index as u32, cpus, scenario.run.seed).into_iter().zip(tgid..) {
            let mut phases = thread.phases;
            let mut places: Vec<Vec<usize>> =
                config.phases.iter().map(|phase| places(config, phase, thread.number)).collect();
            if populates {
                phases.insert(0, populate(config, &thread.parts, scenario.run.seed));
                places.insert(0, Vec::new());
            }
            if replays {
                phases.push(replay(config, scenario.run.seed));
                places.push(Vec::new());
            }
            let cgroup = build::cgroup_number(scenario, config.cgroup.as_deref().unwrap_or(""));
            let caller = Caller { cgroup, ..Caller::new(0, Task { pid, tgid }, policy) };
            threads.push(Thread { pinned: thread.pinned, ..Thread::new(index, phases, places, caller) });
        }
        let (mut of, mut mappers) = (Vec::new(), Vec::new());
        for (number, region_config) in config.regions.iter().enumerate() {
            let first = region_config.populate_policy.as_ref();
            let policy = first.unwrap_or_else(|| program::policy(config, number));
            let policy = build::policy(policy, &scenario.machine)?;
            let key = region_config.file.as_deref();
            let at = key.and_then(|file| files.get(file).copied()).unwrap_or_else(|| {
                let base = regions.last().map_or(0, |region: &Region| region.base() + region.len() as u32);
                regions.push(region(region_config, config.threads, scenario, policy, base));
                regions.len() - 1
            });
            key.map(|file| files.insert(file, at));
            regions[at].users += 1;
            mappers.push(regions[at].add_mapper());
            regions[at].temporary |= region_config.temporary;
            regions[at].sparse |= region_config.sparse;
            regions[at].files = regions[at].files.or(region_config.files);
            if number == 0 {
                regions[at].tables.set_first();
            }
            of.push(at);
        }
        let phase = |(number, phase): (usize, &Phase)| ProcessPhase {
            name: phase.name.clone().unwrap_or_else(|| number.to_string()),
            duration: phase.duration.map(|time| time.0),
            what: What::OfScenario(number),
        };
        let own = |name: &str, what| ProcessPhase { name: name.into(), duration: None, what };
        let first_phase = populates.then(|| own(POPULATE, What::Populate));
        let last_phase = replays.then(|| own(TRACE, What::Replay));
        processes.push(Process {
            name: config.name.clone(),
            threads: first..threads.len(),
            regions: of,
            mappers,
            image: Vec::new(),
            program: None,
            region_names: config.regions.iter().map(|region| region.name.clone()).collect(),
            phases: first_phase
                .into_iter()
                .chain(config.phases.iter().enumerate().map(phase))
                .chain(last_phase)
                .collect(),
            phase: None,
            next: 0,
            begun: 0,
            working: 0,
            reached: 0,
            gathered: Vec::new(),
            action_stats: Vec::new(),
            kept: Vec::new(),
            started: false,
            ended: false,
        });
    }
    Ok(Workload { processes, threads, regions })
}

/// Numbers of a thread's actions among its phase's.
fn places(process: &spec::Process, phase: &Phase, thread: u32) -> Vec<usize> {
    let takes_part = |action: &spec::Action| action.threads.numbers(process.threads).contains(&thread);
    phase.actions.iter().enumerate().filter(|(_, action)| takes_part(action)).map(|(place, _)| place).collect()
}

fn region(config: &spec::Region, threads: u32, scenario: &Scenario, policy: Policy, base: u32) -> Region {
    let anon = config.kind == RegionKind::Anon;
    let huge = if anon { build::huge_requests(&scenario.kernel, config.huge, policy) } else { Vec::new() };
    let parts = if config.sharing == Sharing::Private { u64::from(threads) } else { 1 };
    let (pages, file, exec, locked) =
        (config.size.pages(), config.kind == RegionKind::File, config.exec, config.locked);
    let shape = Shape { pages, parts, anon, file, huge, exec, locked, policy };
    Region::new(shape, scenario.machine.nodes.len(), base)
}

/// The phase in which a thread accesses every page of its parts once, in order: memory is written, files are read.
fn populate(process: &spec::Process, parts: &[std::ops::Range<u64>], seed: u64) -> ThreadPhase {
    let wanted =
        process.regions.iter().zip(parts).enumerate().filter(|(_, (region, part))| region.populate && !part.is_empty());
    let plans = wanted.map(|(number, (_, part))| {
        let count = Some(part.end - part.start);
        let writes = if process.regions[number].kind == RegionKind::File { 0.0 } else { 1.0 };
        AccessPlan { count, ..walk(number, part.clone(), writes, seed) }
    });
    ThreadPhase { name: POPULATE.into(), duration: None, actions: Vec::new(), accesses: plans.collect() }
}

/// The phase in which a thread replays a trace over all regions.
fn replay(process: &spec::Process, seed: u64) -> ThreadPhase {
    let regions = process.regions.iter().enumerate();
    let accesses = regions.map(|(number, region)| walk(number, 0..region.size.pages(), 1.0, seed)).collect();
    ThreadPhase { name: TRACE.into(), duration: None, actions: Vec::new(), accesses }
}

/// Writing or reading pages of a region in order.
fn walk(region: usize, pages: std::ops::Range<u64>, writes: f64, seed: u64) -> AccessPlan {
    // It always writes or never, so the stream's random numbers are not used.
    let stream = Stream::new(Pattern::Walk(Cursor::new(pages.end - pages.start, 1, 0)), writes, seed, 0);
    let (number, count, via) = (region, None, Via::Mmap);
    let (think, sleep, lines, shared, recycle, arrivals) = (0, 0, 1, false, false, None);
    AccessPlan { number, region, pages, stream, think, sleep, count, via, lines, shared, recycle, arrivals }
}

impl Thread {
    /// A kernel thread.
    pub(super) fn of_kernel(process: usize, caller: Caller, activity: Activity) -> Thread {
        Thread { activity, ..Thread::new(process, Vec::new(), Vec::new(), caller) }
    }

    /// A thread that has not begun.
    fn new(process: usize, phases: Vec<ThreadPhase>, places: Vec<Vec<usize>>, caller: Caller) -> Thread {
        Thread {
            process,
            phases,
            places,
            pinned: None,
            caller,
            activity: Activity::Nothing,
            ran: 0,
            user: 0,
            sleeps: 0,
            touched: None,
            slowpath: None,
            node_reclaim: None,
            high: None,
            denied: false,
            throttled: None,
            overrun: None,
            left_off: None,
        }
    }
}

impl Process {
    /// True from its start to its end.
    pub(super) fn lives(&self) -> bool {
        self.started && !self.ended
    }

    /// A kernel thread has a process of its own, which has no phases.
    pub(super) fn of_kernel(name: String, thread: usize) -> Process {
        Process {
            name,
            threads: thread..thread + 1,
            regions: Vec::new(),
            mappers: Vec::new(),
            image: Vec::new(),
            program: None,
            region_names: Vec::new(),
            phases: Vec::new(),
            phase: None,
            next: 0,
            begun: 0,
            working: 0,
            reached: 0,
            gathered: Vec::new(),
            action_stats: Vec::new(),
            kept: Vec::new(),
            started: true,
            ended: true,
        }
    }

    /// Results of the current phase, which ends at a time. `placement`: pages of its regions.
    pub(super) fn result(
        &self,
        config: &spec::Process,
        threads: &[Thread],
        placement: Vec<Placement>,
        end: Ns,
    ) -> PhaseResult {
        let Some(phase) = self.phase.map(|at| &self.phases[at]) else { return PhaseResult::default() };
        let phase_config = phase.what.number().map(|number| &config.phases[number]);
        let names = match phase_config {
            Some(config) => config.accesses.iter().map(|a| (a.region.clone(), pattern(&a.pattern))).collect(),
            None => {
                let how = if phase.what == What::Replay { TRACE.into() } else { pattern(&spec::Pattern::Sequential) };
                self.region_names.iter().map(|name| (name.clone(), how.clone())).collect()
            }
        };
        let names: Vec<(String, String)> = names;
        let mut accesses: Vec<AccessResult> = names
            .into_iter()
            .map(|(region, pattern)| AccessResult { region, pattern, ..AccessResult::default() })
            .collect();
        let mut latencies = vec![Durations::default(); accesses.len()];
        for accessor in threads[self.threads.clone()].iter().filter_map(|thread| thread.touched.as_ref()) {
            for access in &accessor.list {
                let result = &mut accesses[access.plan.number];
                result.threads += 1;
                result.touches += access.plan.stream.count;
                result.faults += access.faults;
                result.cpu_time += accessor.cpu_time(access) / crate::time::PS_PER_NS;
                latencies[access.plan.number].merge(&access.latencies.durations());
            }
        }
        for (result, latencies) in accesses.iter_mut().zip(&latencies) {
            result.latency = latencies.latency();
        }
        accesses.retain(|access| phase_config.is_some() || access.threads > 0);
        let actions = phase_config.map_or(&[][..], |config| &config.actions);
        let actions = actions.iter().zip(&self.action_stats).map(|(action, stats)| {
            let (kind, detail) = super::actions::named(&action.kind);
            stats.result(kind, detail)
        });
        PhaseResult {
            process: self.name.clone(),
            phase: phase.name.clone(),
            start: self.begun,
            end,
            accesses,
            actions: actions.collect(),
            placement,
            balancing: None,
            active_nodes: None,
        }
    }
}

fn pattern(pattern: &spec::Pattern) -> String {
    match pattern {
        spec::Pattern::Sequential => spec::PatternName::Sequential,
        spec::Pattern::Strided { .. } => spec::PatternName::Strided,
        spec::Pattern::Uniform => spec::PatternName::Uniform,
        spec::Pattern::Zipf { .. } => spec::PatternName::Zipf,
        spec::Pattern::HotCold { .. } => spec::PatternName::HotCold,
    }
    .to_string()
}

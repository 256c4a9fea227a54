//! Processes and threads while they run.

use super::high::High;
use super::stall::{Stall, Throttled};
use super::tally::{Part, Tally};
use super::trace::Trace;
use crate::access::{Accessor, Region, Shape};
use crate::alloc::{Caller, Policy};
use crate::build::{self, BuildError};
use crate::clock::Ns;
use crate::compaction::Kcompactd;
use crate::kernel::Ps;
use crate::page::Pfn;
use crate::probe::Task;
use crate::reclaim::{NodeReclaim, NodeThread};
use crate::writeback::{Ender, Flusher};
use mmtwin_event::results::{AccessResult, PhaseResult, Placement};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::workload::{self as say, Phase, RegionKind, Sharing, Via};
use mmtwin_workload::program::{self, ThreadPhase, Touching};
use mmtwin_workload::{Cursor, Pattern, Stream};
use std::collections::BTreeMap;

/// Id of the first process; threads and later processes follow.
pub(super) const FIRST_PID: i32 = 1000;
/// Name of what comes before the first phase.
const POPULATE: &str = "populate";
/// Name of the phase in which a trace is replayed.
const TRACE: &str = "trace";

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Its process.
    pub process: usize,
    /// What it does in each phase.
    pub phases: Vec<ThreadPhase>,
    /// By phase: numbers of its actions among the phase's.
    pub places: Vec<Vec<usize>>,
    /// CPU it must stay on.
    pub pinned: Option<u32>,
    /// Task, CPU and policy.
    pub caller: Caller,
    /// What it does now.
    pub doing: Doing,
    /// CPU time that it has had.
    pub ran: Ps,
    /// What of it the program itself has had, in phases that are over.
    pub user: Ps,
    /// Counts its sleeps, so that a wake-up meant for an earlier one is known.
    pub sleeps: u64,
    /// What it has touched in this phase.
    pub touched: Option<Accessor>,
    /// An allocation that it has to reclaim for.
    pub stall: Option<Stall>,
    /// A node that it reclaims before it takes memory of another.
    pub node_reclaim: Option<NodeReclaim>,
    /// Pages beyond `memory.high` that it has to reclaim for.
    pub high: Option<High>,
    /// Its allocation has failed for good.
    pub denied: bool,
    /// Why it sleeps, if that is in reclaim.
    pub throttled: Throttled,
}

/// What a thread does.
#[derive(Clone, Debug, Default)]
pub(super) enum Doing {
    /// Nothing until the phase ends.
    #[default]
    Nothing,
    /// An action, by its number among the thread's, once it has begun.
    Action(usize, Option<Working>),
    /// Touching memory.
    Touching(Accessor),
    /// Keeping memory of a node free.
    Kswapd(Box<NodeThread>),
    /// Making blocks of a node's memory.
    Kcompactd(Box<Kcompactd>),
    /// Writing dirty files.
    Flusher(Flusher),
    /// Ending writes.
    Ender(Ender),
}

/// An action under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Working {
    /// When it began.
    pub begun: Ps,
    /// What it has done.
    pub part: Part,
    /// Pages to be freed.
    pub held: Vec<Pfn>,
    /// When the attempt to get a block began that is under way, or the last.
    pub attempt: Option<Ps>,
    pub trying: bool,
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
pub(super) struct Process {
    /// As the scenario says it.
    pub name: String,
    /// Its threads.
    pub threads: std::ops::Range<usize>,
    /// Numbers of its regions among all, in the scenario's order.
    pub regions: Vec<usize>,
    /// By region: number of its mapping among those of the region.
    pub mappers: Vec<usize>,
    /// Numbers of its other areas among all regions; none if nobody looks at them.
    pub image: Vec<usize>,
    /// Names of its regions.
    pub region_names: Vec<String>,
    /// Its phases; the first may be that which populates.
    pub phases: Vec<ProcessPhase>,
    /// The phase that runs; `None`: before the first or after the last.
    pub phase: Option<usize>,
    /// When that began.
    pub begun: Ns,
    /// Threads that are not done with it.
    pub working: usize,
    /// When the last of the others was.
    pub reached: Ns,
    /// Threads that wait for others in a collective action.
    pub gathered: Vec<usize>,
    /// What threads reported, by action of the phase.
    pub tallies: Vec<Tally>,
    /// Pages kept until it ends.
    pub kept: Vec<Pfn>,
    /// It has ended.
    pub ended: bool,
}

/// A phase of a process.
#[derive(Clone, Debug)]
pub(super) struct ProcessPhase {
    /// Name in results.
    pub name: String,
    /// How long it lasts.
    pub duration: Option<Ns>,
    /// What its threads do.
    pub what: What,
}

/// What the threads of a process do in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// They touch the regions that are populated.
    Populate,
    /// What the scenario says, by the number of the phase.
    Said(usize),
    /// They replay a trace.
    Replay,
}

impl What {
    /// The number of a phase of the scenario.
    pub(super) fn said(self) -> Option<usize> {
        match self {
            What::Said(number) => Some(number),
            What::Populate | What::Replay => None,
        }
    }
}

/// All processes with their threads and regions.
#[derive(Debug)]
pub(super) struct Workload {
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub regions: Vec<Region>,
}

/// The workload as it is before the run.
pub(super) fn workload(scenario: &Scenario, trace: Option<&Trace>) -> Result<Workload, BuildError> {
    let (mut processes, mut threads, mut regions) = (Vec::new(), Vec::new(), Vec::new());
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, said) in scenario.processes.iter().enumerate() {
        let first = threads.len();
        let policy = build::policy(&said.policy, &scenario.machine)?;
        let tgid = FIRST_PID + first as i32;
        let populates = said.regions.iter().any(|region| region.populate);
        let replays = trace.is_some_and(|trace| trace.concerns(first..first + said.threads as usize));
        let cpus = scenario.machine.cpus.len() as u32;
        for (thread, pid) in program::threads(said, index as u32, cpus, scenario.run.seed).into_iter().zip(tgid..) {
            let mut phases = thread.phases;
            let mut places: Vec<Vec<usize>> =
                said.phases.iter().map(|phase| places(said, phase, thread.number)).collect();
            if populates {
                phases.insert(0, populate(said, &thread.parts, scenario.run.seed));
                places.insert(0, Vec::new());
            }
            if replays {
                phases.push(replay(said, scenario.run.seed));
                places.push(Vec::new());
            }
            let cgroup = build::cgroup_number(scenario, said.cgroup.as_deref().unwrap_or(""));
            let caller = Caller { cgroup, ..Caller::new(0, Task { pid, tgid }, policy) };
            threads.push(Thread { pinned: thread.pinned, ..Thread::new(index, phases, places, caller) });
        }
        let (mut of, mut mappers) = (Vec::new(), Vec::new());
        for (number, said_region) in said.regions.iter().enumerate() {
            let first = said_region.populate_policy.as_ref();
            let policy = first.unwrap_or_else(|| program::policy(said, number));
            let policy = build::policy(policy, &scenario.machine)?;
            let key = said_region.file.as_deref();
            let at = key.and_then(|file| files.get(file).copied()).unwrap_or_else(|| {
                let base = regions.last().map_or(0, |region: &Region| region.base() + region.len() as u32);
                regions.push(region(said_region, said.threads, scenario, policy, base));
                regions.len() - 1
            });
            key.map(|file| files.insert(file, at));
            regions[at].users += 1;
            mappers.push(regions[at].add_mapper());
            regions[at].temporary |= said_region.temporary;
            regions[at].sparse |= said_region.sparse;
            regions[at].files = regions[at].files.or(said_region.files);
            if number == 0 {
                regions[at].tables.set_first();
            }
            of.push(at);
        }
        let phase = |(number, phase): (usize, &Phase)| ProcessPhase {
            name: phase.name.clone().unwrap_or_else(|| number.to_string()),
            duration: phase.duration.map(|time| time.0),
            what: What::Said(number),
        };
        let own = |name: &str, what| ProcessPhase { name: name.into(), duration: None, what };
        let first_phase = populates.then(|| own(POPULATE, What::Populate));
        let last_phase = replays.then(|| own(TRACE, What::Replay));
        processes.push(Process {
            name: said.name.clone(),
            threads: first..threads.len(),
            regions: of,
            mappers,
            image: Vec::new(),
            region_names: said.regions.iter().map(|region| region.name.clone()).collect(),
            phases: first_phase
                .into_iter()
                .chain(said.phases.iter().enumerate().map(phase))
                .chain(last_phase)
                .collect(),
            phase: None,
            begun: 0,
            working: 0,
            reached: 0,
            gathered: Vec::new(),
            tallies: Vec::new(),
            kept: Vec::new(),
            ended: false,
        });
    }
    Ok(Workload { processes, threads, regions })
}

/// Numbers of a thread's actions among its phase's.
fn places(process: &say::Process, phase: &Phase, thread: u32) -> Vec<usize> {
    let takes_part = |action: &say::Action| action.threads.numbers(process.threads).contains(&thread);
    phase.actions.iter().enumerate().filter(|(_, action)| takes_part(action)).map(|(place, _)| place).collect()
}

fn region(said: &say::Region, threads: u32, scenario: &Scenario, policy: Policy, base: u32) -> Region {
    let anon = said.kind == RegionKind::Anon;
    let huge = if anon { build::huge_requests(&scenario.kernel, said.huge, policy) } else { Vec::new() };
    let parts = if said.sharing == Sharing::Private { u64::from(threads) } else { 1 };
    let (pages, file, exec, locked) = (said.size.pages(), said.kind == RegionKind::File, said.exec, said.locked);
    let shape = Shape { pages, parts, anon, file, huge, exec, locked, policy };
    Region::new(shape, scenario.machine.nodes.len(), base)
}

/// The phase in which a thread writes every page of its parts once, in order.
fn populate(process: &say::Process, parts: &[std::ops::Range<u64>], seed: u64) -> ThreadPhase {
    let wanted =
        process.regions.iter().zip(parts).enumerate().filter(|(_, (region, part))| region.populate && !part.is_empty());
    let touching = wanted.map(|(number, (_, part))| {
        let count = Some(part.end - part.start);
        Touching { count, ..walk(number, part.clone(), seed) }
    });
    ThreadPhase { name: POPULATE.into(), duration: None, actions: Vec::new(), accesses: touching.collect() }
}

/// The phase in which a thread may touch all regions, as a trace says.
fn replay(process: &say::Process, seed: u64) -> ThreadPhase {
    let regions = process.regions.iter().enumerate();
    let accesses = regions.map(|(number, region)| walk(number, 0..region.size.pages(), seed)).collect();
    ThreadPhase { name: TRACE.into(), duration: None, actions: Vec::new(), accesses }
}

/// Writing pages of a region in order.
fn walk(region: usize, pages: std::ops::Range<u64>, seed: u64) -> Touching {
    // It always writes, so the stream's random numbers are not asked for.
    let stream = Stream::new(Pattern::Walk(Cursor::new(pages.end - pages.start, 1, 0)), 1.0, seed, 0);
    let (number, count, via) = (region, None, Via::Mmap);
    let (think, sleep, lines, shared, recycle) = (0, 0, 1, false, false);
    Touching { number, region, pages, stream, think, sleep, count, via, lines, shared, recycle }
}

impl Thread {
    /// A thread of the kernel.
    pub(super) fn of_kernel(process: usize, caller: Caller, doing: Doing) -> Thread {
        Thread { doing, ..Thread::new(process, Vec::new(), Vec::new(), caller) }
    }

    /// A thread that has not begun.
    fn new(process: usize, phases: Vec<ThreadPhase>, places: Vec<Vec<usize>>, caller: Caller) -> Thread {
        Thread {
            process,
            phases,
            places,
            pinned: None,
            caller,
            doing: Doing::Nothing,
            ran: 0,
            user: 0,
            sleeps: 0,
            touched: None,
            stall: None,
            node_reclaim: None,
            high: None,
            denied: false,
            throttled: None,
        }
    }
}

impl Process {
    /// A thread of the kernel has a process of its own, which has no phases.
    pub(super) fn of_kernel(name: String, thread: usize) -> Process {
        Process {
            name,
            threads: thread..thread + 1,
            regions: Vec::new(),
            mappers: Vec::new(),
            image: Vec::new(),
            region_names: Vec::new(),
            phases: Vec::new(),
            phase: None,
            begun: 0,
            working: 0,
            reached: 0,
            gathered: Vec::new(),
            tallies: Vec::new(),
            kept: Vec::new(),
            ended: true,
        }
    }

    /// What the phase that runs has achieved, as it ends at a time.
    pub(super) fn result(&self, said: &say::Process, threads: &[Thread], regions: &[Region], end: Ns) -> PhaseResult {
        let Some(phase) = self.phase.map(|at| &self.phases[at]) else { return PhaseResult::default() };
        let said_phase = phase.what.said().map(|number| &said.phases[number]);
        let names = match said_phase {
            Some(said) => said.accesses.iter().map(|a| (a.region.clone(), pattern(&a.pattern))).collect(),
            None => {
                let how = if phase.what == What::Replay { TRACE.into() } else { pattern(&say::Pattern::Sequential) };
                self.region_names.iter().map(|name| (name.clone(), how.clone())).collect()
            }
        };
        let names: Vec<(String, String)> = names;
        let mut accesses: Vec<AccessResult> = names
            .into_iter()
            .map(|(region, pattern)| AccessResult { region, pattern, ..AccessResult::default() })
            .collect();
        for accessor in threads[self.threads.clone()].iter().filter_map(|thread| thread.touched.as_ref()) {
            for access in &accessor.list {
                let result = &mut accesses[access.touching.number];
                result.threads += 1;
                result.touches += access.touching.stream.count;
                result.faults += access.faults;
                result.cpu_time += accessor.cpu_time(access) / crate::kernel::PS_PER_NS;
            }
        }
        accesses.retain(|access| said_phase.is_some() || access.threads > 0);
        let actions = said_phase.map_or(&[][..], |said| &said.actions);
        let actions = actions.iter().zip(&self.tallies).map(|(action, tally)| {
            let (kind, detail) = super::actions::named(&action.kind);
            tally.result(kind, detail)
        });
        let placement = self.regions.iter().zip(&self.region_names);
        let placement = placement.map(|(&at, name)| Placement { region: name.clone(), nodes: regions[at].by_node() });
        PhaseResult {
            process: self.name.clone(),
            phase: phase.name.clone(),
            start: self.begun,
            end,
            accesses,
            actions: actions.collect(),
            placement: placement.collect(),
            balancing: None,
            active_nodes: None,
        }
    }
}

fn pattern(pattern: &say::Pattern) -> String {
    match pattern {
        say::Pattern::Sequential => say::PatternName::Sequential,
        say::Pattern::Strided { .. } => say::PatternName::Strided,
        say::Pattern::Uniform => say::PatternName::Uniform,
        say::Pattern::Zipf { .. } => say::PatternName::Zipf,
        say::Pattern::HotCold { .. } => say::PatternName::HotCold,
    }
    .to_string()
}

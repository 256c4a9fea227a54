//! A process of a scenario as a process of this machine.
//!
//! It is a program of its own, so that it has nothing of the recorder's memory: the recorder starts its own executable
//! again with [`WORKER`], and its standard input is the line to the recorder. The first thread of the process is the
//! first of the scenario's, so that a process of one thread is one; between phases it talks to the recorder while the
//! others sleep. All threads stand still until the boundary between two phases is recorded.

mod action;
mod cycle;
mod lookup;
mod madvise;
mod module;
mod purges;
mod region;
mod touch;

pub(super) use action::{cpu_online, files, name, sysctl};
pub(super) use cycle::find;
pub(super) use module::{DEVICE, access, needed};
pub(crate) use purges::{BUFFER as PURGE_BUFFER, FUNCTIONS as PURGES, buffer_size};
pub(super) use region::{HUGE, length};

use super::message::{FromWorker, Line, Plan, ToWorker};
use super::policy::MemPolicy;
use crate::{Error, clock};
use mmtwin_event::results::{AccessResult, ActionResult, PhaseResult};
use mmtwin_scenario::program::{AccessPlan, Thread, ThreadPhase, threads};
use mmtwin_scenario::program::{Cursor, Pattern, Stream};
use mmtwin_scenario::workload::{Pattern as Say, PatternName, Policy, Process, RegionKind, Via};
use mmtwin_scenario::{Machine, Scenario};
use region::Mapped;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity, set_name};
use std::ffi::CString;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use touch::{Achieved, Scratch, Target, Toucher};

/// First argument of an executable that is to be a worker: it calls [`worker`] and ends with its result.
pub const WORKER: &str = "workload-worker";

/// Name of the phase in which regions are populated.
const POPULATE: &str = "populate";

/// Stack of a thread.
const STACK: usize = 256 << 10;

/// Is a process of a scenario until it has ended. Returns the exit status.
pub fn worker() -> i32 {
    // A thread that panicked would leave the others waiting for it.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::abort();
    }));
    // SAFETY: the recorder has made it a socket; nothing else here uses standard input.
    let mut line = Line::new(unsafe { UnixStream::from_raw_fd(0) });
    match run(&mut line) {
        Ok(()) => 0,
        Err(error) => {
            // If the recorder is gone there is nobody to tell.
            let _ = line.send(&FromWorker::Failed(error.to_string()));
            1
        }
    }
}

fn run(line: &mut Line) -> Result<(), Error> {
    // The recorder's end is the end of its workers.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|e| Error::io("death signal", e))?;
    let gone = || Error::io("the recorder", io::Error::from(io::ErrorKind::BrokenPipe));
    let plan: Plan = line.wait()?.ok_or_else(gone)?;
    let scenario = mmtwin_scenario::from_json(&plan.scenario)
        .map_err(|faults| Error::io("the scenario", io::Error::other(faults.to_string())))?;
    let process = usize::try_from(plan.process).ok().and_then(|index| scenario.processes.get(index));
    let process = process.ok_or_else(|| Error::io("the process", io::Error::from(io::ErrorKind::NotFound)))?;
    let allowed = settle(process, &scenario.machine, &plan)?;
    let crew = Crew::muster(process, &scenario, &plan, allowed)?;
    let ranges = crew.regions.iter().map(|r| (r.base as u64, r.length as u64)).collect();
    let crew = &crew;
    std::thread::scope(|scope| {
        for number in 1..crew.programs.len() {
            let thread = std::thread::Builder::new().name(process.name.clone()).stack_size(STACK);
            let started = thread.spawn_scoped(scope, move || crew.follow(number));
            if let Err(e) = started {
                // Those that were started wait for one that never comes: only the end of the process ends them.
                let _ = line.send(&FromWorker::Failed(format!("starting thread {number}: {e}")));
                std::process::exit(1);
            }
        }
        crew.lead(line, ranges, &scenario)
    })
}

/// Name, cgroup, CPUs and memory policy of the process. Returns the CPUs it may run on.
fn settle(process: &Process, machine: &Machine, plan: &Plan) -> Result<Vec<u32>, Error> {
    let name = CString::new(process.name.as_str()).map_err(|e| Error::io("name", e))?;
    set_name(&name).map_err(|e| Error::io("name", e))?;
    // The recorder protects itself from the out-of-memory killer; a workload is to be killed as any other.
    let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    if let Some(procs) = &plan.cgroup {
        std::fs::write(procs, std::process::id().to_string()).map_err(|e| Error::io(procs.display().to_string(), e))?;
    }
    // SAFETY: sets a number in the allocator; there is one thread yet. One arena for all threads: they hardly use it.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    let allowed =
        process.cpus.as_ref().map_or_else(|| (0..machine.cpus.len() as u32).collect(), |c| c.numbers().to_vec());
    run_on(&allowed)?;
    MemPolicy::of(&process.policy, machine).set_for_thread().map_err(|e| Error::io("memory policy", e))?;
    Ok(allowed)
}

/// Moves this thread to one of these CPUs, where it stays.
fn run_on(cpus: &[u32]) -> Result<(), Error> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu as usize));
    sched_setaffinity(None, &set).map_err(|e| Error::io("CPUs to run on", e))
}

/// Phases with the one that populates; it has no number.
pub(super) fn stages(process: &Process) -> impl Iterator<Item = Option<usize>> {
    let populate = process.regions.iter().any(|region| region.populate);
    populate.then_some(None).into_iter().chain((0..process.phases.len()).map(Some))
}

/// Name of a stage in results.
pub(super) fn stage_name(process: &Process, stage: Option<usize>) -> String {
    let Some(phase) = stage else { return POPULATE.into() };
    process.phases[phase].name.clone().unwrap_or_else(|| phase.to_string())
}

/// What a thread did in a phase.
#[derive(Debug, Default)]
struct Report {
    achieved: Vec<Achieved>,
    /// By index in the scenario's phase.
    actions: Vec<(usize, ActionResult)>,
    failure: Option<String>,
}

/// The threads of the process and what they share.
struct Crew<'a> {
    process: &'a Process,
    machine: &'a Machine,
    programs: Vec<Thread>,
    regions: Vec<Mapped>,
    /// Where files of regions are made.
    directory: PathBuf,
    /// Names and directories of the scenario's cgroups.
    cgroups: Vec<(String, PathBuf)>,
    allowed: Vec<u32>,
    toucher: Toucher,
    /// By phase and access of the scenario: nanoseconds of an access beside itself.
    overhead: Vec<Vec<f64>>,
    /// By thread.
    reports: Vec<Mutex<Report>>,
    /// By thread: the CPU on which it began its first phase.
    began: Vec<OnceLock<u32>>,
    barrier: Barrier,
    start: AtomicU64,
    stop: AtomicBool,
    end_of_run: AtomicU64,
}

/// A time that never comes.
const NEVER: u64 = u64::MAX;

impl<'a> Crew<'a> {
    fn muster(process: &'a Process, scenario: &'a Scenario, plan: &Plan, allowed: Vec<u32>) -> Result<Crew<'a>, Error> {
        let machine = &scenario.machine;
        let programs = threads(process, plan.process, machine.cpus.len() as u32, scenario.run.seed);
        let (scratch, fault) = Scratch::new()?;
        let toucher = Toucher { pace: plan.pace, may_fault: fault / 2 };
        let overhead = overheads(process, &programs, &toucher, &scratch)?;
        let files = plan.files.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        let regions = process.regions.iter().zip(files).map(|(region, file)| region::map(region, file, machine));
        Ok(Crew {
            process,
            machine,
            directory: plan.directory.clone(),
            cgroups: plan.cgroups.clone(),
            regions: regions.collect::<Result<_, _>>()?,
            allowed,
            toucher,
            overhead,
            reports: programs.iter().map(|_| Mutex::default()).collect(),
            began: programs.iter().map(|_| OnceLock::new()).collect(),
            barrier: Barrier::new(programs.len()),
            programs,
            start: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            end_of_run: AtomicU64::new(NEVER),
        })
    }

    /// What the first thread does.
    fn lead(&self, line: &mut Line, ranges: Vec<(u64, u64)>, scenario: &Scenario) -> Result<(), Error> {
        self.take_place(0);
        // The first look at the clock reads a file of `/proc` before 6.4, whose dentry is to be part of the state.
        clock::now();
        line.send(&FromWorker::Ready(ranges))?;
        let result = self.lead_on(line, scenario);
        // The others wait for the next phase, and end if there is none.
        self.stop.store(true, Ordering::Relaxed);
        self.barrier.wait();
        let began = self.began.iter().map(OnceLock::get).map(|cpu| cpu.copied()).collect::<Option<_>>();
        line.send(&FromWorker::Done { cut: result?, began: began.unwrap_or_default() })
    }

    fn lead_on(&self, line: &mut Line, scenario: &Scenario) -> Result<bool, Error> {
        let gone = || Error::io("the recorder", io::Error::from(io::ErrorKind::BrokenPipe));
        let Some(ToWorker::Go { start }) = line.wait()? else { return Err(gone()) };
        let end_of_run = scenario.run.duration.map_or(NEVER, |duration| start.saturating_add(duration.0));
        self.end_of_run.store(end_of_run, Ordering::Relaxed);
        let begin = start.saturating_add(self.process.start.0);
        std::thread::sleep(Duration::from_nanos(begin.min(end_of_run).saturating_sub(clock::now())));
        let mut boundary = |result| {
            line.send(&FromWorker::Boundary(result))?;
            line.wait::<ToWorker>()?.map(|_| ()).ok_or_else(gone)
        };
        // At the beginning of the run the recorder has just taken a sample.
        if self.process.start.0 > 0 {
            boundary(None)?;
        }
        for stage in stages(self.process) {
            let start = clock::now();
            if start >= end_of_run {
                return Ok(true);
            }
            self.start.store(start, Ordering::Relaxed);
            self.barrier.wait();
            self.work(0, stage);
            self.barrier.wait();
            let end = clock::now();
            boundary(Some(self.collect(stage, start, end)?))?;
            // A phase that would have lasted longer than the run.
            let over = stage.and_then(|phase| self.deadline(phase, start)).is_none_or(|own| own > end_of_run);
            if end >= end_of_run && over {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the other threads do.
    fn follow(&self, number: usize) {
        self.take_place(number);
        for stage in stages(self.process) {
            self.barrier.wait();
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            self.work(number, stage);
            self.barrier.wait();
        }
        self.barrier.wait();
    }

    /// Goes to where a thread starts. What fails is reported with the first phase.
    fn take_place(&self, number: usize) {
        let start = self.process.start_node.map(|node| &self.machine.nodes[node as usize].cpus);
        let start = start.map(|cpus| cpus.iter().copied().filter(|cpu| self.allowed.contains(cpu)).collect::<Vec<_>>());
        let placed = match (self.programs[number].pinned, start) {
            (Some(cpu), _) => run_on(&[cpu]),
            // Once there, it may be moved again.
            (None, Some(cpus)) => run_on(&cpus).and_then(|()| run_on(&self.allowed)),
            (None, None) => Ok(()),
        };
        self.report(number).failure = placed.err().map(|e| e.to_string());
    }

    fn report(&self, number: usize) -> std::sync::MutexGuard<'_, Report> {
        self.reports[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a phase ends by itself; `None`: with its counts.
    fn deadline(&self, phase: usize, start: u64) -> Option<u64> {
        self.process.phases[phase].duration.map(|duration| start.saturating_add(duration.0))
    }

    /// A thread's part of a phase.
    fn work(&self, number: usize, stage: Option<usize>) {
        self.began[number].get_or_init(|| sched_getcpu() as u32);
        let mut report = self.report(number);
        if report.failure.is_none() {
            let result = match stage {
                Some(phase) => self.phase(number, phase, &mut report),
                None => self.populate(number, &mut report),
            };
            report.failure = result.err().map(|e| e.to_string());
        }
    }

    fn phase(&self, number: usize, phase: usize, report: &mut Report) -> Result<(), Error> {
        let own = self.deadline(phase, self.start.load(Ordering::Relaxed));
        let deadline = own.unwrap_or(NEVER).min(self.end_of_run.load(Ordering::Relaxed));
        for (i, action) in self.process.phases[phase].actions.iter().enumerate() {
            let threads = action.threads.numbers(self.process.threads);
            if threads.contains(&(number as u32)) && clock::now() < deadline {
                let first = threads.first() == Some(&(number as u32));
                let (process, machine) = (self.process, self.machine);
                let (directory, number, threads) = (&self.directory, number as u32, threads.len() as u32);
                let (regions, cgroups) = (&self.regions[..], &self.cgroups[..]);
                let doer = action::Doer { process, machine, directory, regions, cgroups, number, threads, first };
                report.actions.push((i, action::perform(&action.kind, &doer, deadline)?));
            }
        }
        let program = &self.programs[number].phases[phase];
        let targets: Vec<Target<'_>> = self.regions.iter().map(Target::region).collect();
        let overhead: Vec<f64> = program.accesses.iter().map(|access| self.overhead[phase][access.number]).collect();
        report.achieved = self.toucher.run(program, &targets, &overhead, deadline)?;
        if own.is_some() {
            std::thread::sleep(Duration::from_nanos(deadline.saturating_sub(clock::now())));
        }
        Ok(())
    }

    /// Accesses the thread's part of every region that is populated: memory is written, files are read.
    fn populate(&self, number: usize, report: &mut Report) -> Result<(), Error> {
        let targets: Vec<Target<'_>> = self.regions.iter().map(Target::region).collect();
        let populated = self.process.regions.iter().enumerate().filter(|(_, region)| region.populate);
        for (at, (region, said)) in populated.enumerate() {
            let pages = self.programs[number].parts[region].clone();
            if pages.is_empty() {
                continue;
            }
            let length = pages.end - pages.start;
            let writes = if said.kind == RegionKind::File { 0.0 } else { 1.0 };
            let stream = Stream::new(Pattern::Walk(Cursor::new(length, 1, 0)), writes, 0, 0);
            let (think, sleep, count, via) = (0, 0, Some(length), Via::Mmap);
            let (lines, shared, recycle, arrivals) = (1, false, false, None);
            let access = AccessPlan {
                number: at,
                region,
                pages,
                stream,
                think,
                sleep,
                count,
                via,
                lines,
                shared,
                recycle,
                arrivals,
            };
            let (name, duration, actions) = (String::new(), None, Vec::new());
            let phase = ThreadPhase { name, duration, actions, accesses: vec![access] };
            let end_of_run = self.end_of_run.load(Ordering::Relaxed);
            let follow = |policy: &Policy| {
                let set = MemPolicy::of(policy, self.machine).set_for_thread();
                set.map_err(|e| Error::io("memory policy", e))
            };
            said.populate_policy.as_ref().map(&follow).transpose()?;
            report.achieved.extend(self.toucher.run(&phase, &targets, &[0.0], end_of_run)?);
            said.populate_policy.as_ref().map(|_| follow(&self.process.policy)).transpose()?;
        }
        Ok(())
    }

    /// What all threads did in a phase.
    fn collect(&self, stage: Option<usize>, start: u64, end: u64) -> Result<PhaseResult, Error> {
        let accesses: Vec<(&str, PatternName)> = match stage {
            Some(phase) => {
                let said = &self.process.phases[phase].accesses;
                said.iter().map(|access| (access.region.as_str(), pattern_name(access.pattern))).collect()
            }
            None => {
                let populated = self.process.regions.iter().filter(|region| region.populate);
                populated.map(|region| (region.name.as_str(), PatternName::Sequential)).collect()
            }
        };
        let actions = stage.map_or(0, |phase| self.process.phases[phase].actions.len());
        let mut achieved: Vec<(u32, Achieved)> = (0..accesses.len()).map(|i| (0, Achieved::nothing(i))).collect();
        let mut done: Vec<Vec<ActionResult>> = vec![Vec::new(); actions];
        for number in 0..self.programs.len() {
            let report = std::mem::take(&mut *self.report(number));
            if let Some(failure) = report.failure {
                return Err(Error::io(format!("thread {number}"), io::Error::other(failure)));
            }
            for of in &report.achieved {
                let (threads, sum) = &mut achieved[of.number];
                *threads += 1;
                sum.add(of);
            }
            report.actions.into_iter().for_each(|(i, result)| done[i].push(result));
        }
        let accesses = accesses.into_iter().zip(achieved).map(|((region, pattern), (threads, of))| AccessResult {
            region: region.into(),
            pattern: pattern.to_string(),
            threads,
            touches: of.touches,
            faults: of.faults,
            cpu_time: of.cpu_time,
            latency: of.latencies.latency(),
        });
        Ok(PhaseResult {
            balancing: None,
            active_nodes: None,
            process: self.process.name.clone(),
            phase: stage_name(self.process, stage),
            start,
            end,
            accesses: accesses.collect(),
            actions: done.into_iter().filter_map(together).collect(),
            placement: Vec::new(),
        })
    }
}

/// What several threads did in an action; `None`: there were none. A latency is measured by one of them.
fn together(results: Vec<ActionResult>) -> Option<ActionResult> {
    let means: Vec<f64> = results.iter().filter_map(|result| result.mean).collect();
    let mut results = results.into_iter();
    let mut sum = results.next()?;
    for result in results {
        sum.threads += result.threads;
        sum.operations += result.operations;
        sum.failures += result.failures;
        sum.time += result.time;
        sum.latency = sum.latency.or(result.latency);
        result.more.into_iter().for_each(|(name, value)| *sum.more.entry(name).or_default() += value);
    }
    sum.mean = (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64);
    Some(sum)
}

/// Measures every access of every phase once, as the first thread that takes part does it.
fn overheads(
    process: &Process,
    programs: &[Thread],
    toucher: &Toucher,
    scratch: &Scratch,
) -> Result<Vec<Vec<f64>>, Error> {
    let phases = process.phases.iter().enumerate();
    let measured = phases.map(|(at, phase)| {
        let mut overhead = vec![None; phase.accesses.len()];
        for program in programs.iter().map(|program| &program.phases[at]) {
            let new: Vec<AccessPlan> =
                program.accesses.iter().filter(|access| overhead[access.number].is_none()).cloned().collect();
            let numbers: Vec<usize> = new.iter().map(|access| access.number).collect();
            let of = toucher.overhead(&ThreadPhase { accesses: new, ..program.clone() }, scratch)?;
            numbers.into_iter().zip(of).for_each(|(number, nanoseconds)| overhead[number] = Some(nanoseconds));
        }
        Ok(overhead.into_iter().map(Option::unwrap_or_default).collect())
    });
    measured.collect()
}

fn pattern_name(pattern: Say) -> PatternName {
    match pattern {
        Say::Sequential => PatternName::Sequential,
        Say::Strided { .. } => PatternName::Strided,
        Say::Uniform => PatternName::Uniform,
        Say::Zipf { .. } => PatternName::Zipf,
        Say::HotCold { .. } => PatternName::HotCold,
    }
}

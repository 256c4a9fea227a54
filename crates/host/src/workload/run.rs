//! The recorder's side of a run.

use super::backing::Backing;
use super::message::{FromWorker, Plan, ToWorker};
use super::oom::{Kill, Watch};
use super::pace::Pace;
use super::refusal::{Refusal, Refusals};
use super::refuse::refusals;
use super::settings::{self, Settings};
use super::team::Member;
use super::{Arm, aside, placement, refuse, state, worker};
use crate::record::{self, Samples, Session, Signals, Ways, times_of};
use crate::sample::Sampler;
use crate::{Error, clock, evidence, tracefs};
use mmtwin_event::Times;
use mmtwin_event::manifest::{End, Manifest, Sampling};
use mmtwin_event::results::{Ending, PhaseResult, Placement, Results};
use mmtwin_scenario::Scenario;
use mmtwin_trace::recording::Writer;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use signal_hook::consts::SIGKILL;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a scenario is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directory of the recording.
    pub output: PathBuf,
    /// What this machine is to the scenario.
    pub arm: Arm,
    /// Directory for files behind regions, on a disk; `None`: where the recording will be.
    pub files: Option<PathBuf>,
    /// Ring buffer per CPU in bytes; `None`: by the machine's memory.
    pub buffer: Option<u64>,
    /// Replace an existing recording.
    pub force: bool,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The recording.
    pub recorded: record::Outcome,
    /// What was written to `results.json`.
    pub results: Results,
}

/// Runs a scenario. The executable that calls this has to call [`super::worker`] when its first argument is
/// [`super::WORKER`]. `say` takes messages for the user, one line each.
///
/// # Errors
/// [`Error::Refused`] before anything starts; [`Error::Workload`] if a process cannot do what it should. That memory
/// ran out is no error but an [`Ending`].
pub fn run(scenario: &Scenario, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Outcome, Error> {
    let parent = options.output.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = options.files.as_deref().unwrap_or(parent);
    let mut refused = refusals(scenario, options.arm, &evidence::collect(), directory);
    refused.extend(settings::refusals(scenario));
    let plan = match (scenario.run.events.as_slice(), tracefs::open()) {
        ([], _) => Err("the scenario has no events".to_string()),
        (patterns, Ok(tracefs)) => {
            let plan = record::plan(tracefs, patterns)?;
            if plan.is_empty() { Err("the scenario has no events of this kernel".to_string()) } else { Ok(plan) }
        }
        (_, Err(tracefs::Obstacle { what, fix, .. })) => {
            refused.push(Refusal::Tracing { what: what.clone(), fix });
            Err(what)
        }
    };
    if !refused.is_empty() {
        return Err(Error::Refused(Refusals(refused)));
    }
    let mut settings = Settings::make(scenario, options.arm)?;
    let mut sampler = Sampler::new();
    sampler.keep(&scenario.run.counters);
    settings.cgroups().iter().for_each(|(name, directory)| sampler.add_cgroup(name, directory));
    let backing = Backing::create(scenario, directory, &mut |path| settings.temporary(path))?;
    let manifest = Manifest {
        arm: options.arm.name().into(),
        counters: Sampling {
            interval: Some(scenario.run.sample.0).filter(|interval| *interval > 0),
            cgroups: settings.cgroups().iter().map(|(name, _)| name.clone()).collect(),
            ..Sampling::default()
        },
        scenario: Some(scenario.to_json()),
        scenario_hash: Some(scenario.hash()),
        ..Manifest::default()
    };
    let writer = Writer::create(&options.output, options.force)?;
    let buffer = options.buffer.or(scenario.run.buffer.map(|buffer| buffer.0));
    let session = Session::create(writer, plan, buffer, sampler, Ways::default(), manifest);
    let result = session.and_then(|session| {
        session.notes.iter().for_each(|note| say(note));
        with(session, scenario, &mut settings, &backing, directory)
    });
    settings.put_back().iter().for_each(|left| say(left));
    result
}

/// A run under way.
struct Run<'a> {
    scenario: &'a Scenario,
    session: Session,
    /// By process.
    team: Vec<Member>,
    /// By process.
    phases: Vec<Vec<PhaseResult>>,
    /// By process and thread: where its first phase began, once the process has ended.
    began: Vec<Vec<u32>>,
    /// When each process was told to continue.
    told: Vec<u64>,
    nodes: usize,
    watch: Watch,
    killed: Vec<Killed>,
    ending: Ending,
}

/// A process that was killed because memory ran out.
struct Killed {
    pid: i32,
    comm: String,
    kill: Kill,
}

/// What is left to do with a worker after the next sample.
struct Waiting {
    process: usize,
    result: Option<PhaseResult>,
}

fn with(
    session: Session,
    scenario: &Scenario,
    settings: &mut Settings,
    backing: &Backing,
    directory: &Path,
) -> Result<Outcome, Error> {
    let mut signals = Signals::take()?;
    let balances = scenario.kernel.sysctl.kernel_numa_balancing.is_some_and(|mode| mode != 0);
    aside::step(scenario, balances);
    let pace = Pace::measure();
    let notes = notes(scenario, pace);
    let mut team = Vec::new();
    for (index, process) in scenario.processes.iter().enumerate() {
        let plan = Plan {
            scenario: scenario.to_json(),
            process: index as u32,
            pace,
            files: backing.of(index, process.regions.len()),
            directory: directory.to_path_buf(),
            cgroup: settings.procs(process.cgroup.as_deref()),
            cgroups: settings.cgroups().to_vec(),
        };
        let mut member = Member::start(process, &plan, balances)?;
        settings.started(member.pid())?;
        // One after another: each measures what its accesses cost beside themselves, and CPUs of mode exact share one budget.
        member.ready(process)?;
        team.push(member);
    }
    let nodes = evidence::nodes(Path::new("/sys/devices/system/node")).last().map_or(1, |node| node.id as usize + 1);
    let phases = scenario.processes.iter().map(|_| Vec::new()).collect();
    let (watch, killed, ending) = (Watch::begin(), Vec::new(), Ending::Completed);
    let (told, began) = (vec![0; scenario.processes.len()], vec![Vec::new(); scenario.processes.len()]);
    let mut run = Run { scenario, session, team, phases, began, told, nodes, watch, killed, ending };
    run.team.iter().flat_map(Member::tids).for_each(|tid| run.session.saw(tid));
    run.session.begin()?;
    run.session.gather()?;
    run.session.leave_buffers_alone();
    run.place(Vec::new())?;
    let mut state = state::read(&run.team);
    let before = cpu_times(&run.team);
    let start = clock::now();
    run.told = scenario.processes.iter().map(|process| start.saturating_add(process.start.0)).collect();
    run.team.iter_mut().for_each(|member| member.tell(&ToWorker::Go { start }));
    run.follow(&mut signals)?;
    for member in &mut run.team {
        member.end(false)?;
    }
    let elapsed = clock::now().saturating_sub(start) as f64 / 1e9;
    let times = before.zip(cpu_times(&run.team)).map(|(before, after)| Times {
        user: after.0 - before.0,
        system: after.1 - before.1,
        elapsed,
    });
    run.session.stop()?;
    let (ending, others) = ending_of(run.ending, run.killed, start);
    let mut results = Results { ending, notes, ..Results::default() };
    results.notes.extend(others);
    results.phases = run.phases.into_iter().flatten().collect();
    state.began = run.began;
    run.session.state(&state)?;
    run.session.results(&results)?;
    let recorded = run.session.finish(End { times, ..End::default() })?;
    Ok(Outcome { recorded, results })
}

/// User and system seconds of all workers, which have not been waited for; `None` if one cannot be read.
fn cpu_times(team: &[Member]) -> Option<(f64, f64)> {
    let mut times = team.iter().map(|member| times_of(member.pid()));
    times.try_fold((0.0, 0.0), |sum, of| of.map(|of| (sum.0 + of.0, sum.1 + of.1)))
}

impl Run<'_> {
    /// Records until all workers are done or were killed because memory ran out: all others continue, as on the twin.
    fn follow(&mut self, signals: &mut Signals) -> Result<(), Error> {
        let interval = Some(self.scenario.run.sample.0).filter(|interval| *interval > 0);
        let mut samples = Samples::every(interval.map(Duration::from_nanos));
        while self.team.iter().any(|member| member.runs) {
            let mut wake = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
            let running = self.team.iter().filter(|member| member.runs);
            wake.extend(running.map(|member| PollFd::new(member.line.stream(), PollFlags::IN)));
            wake.extend(self.watch.fd().map(|log| PollFd::from_borrowed_fd(log, PollFlags::IN)));
            let full = self.session.poll(&wake, samples.next())?;
            if let Some(signal) = signals.pending().first().copied() {
                return Err(Error::Interrupted { signal });
            }
            self.watch.read();
            let mut waiting = Vec::new();
            for process in 0..self.team.len() {
                if self.team[process].runs {
                    self.listen(process, &mut waiting)?;
                }
            }
            if samples.due() || !waiting.is_empty() {
                self.session.sample()?;
                self.place(waiting)?;
            }
            if full {
                self.session.gather()?;
            }
        }
        Ok(())
    }

    /// Takes what a worker has said, or that it was killed because memory ran out.
    fn listen(&mut self, process: usize, waiting: &mut Vec<Waiting>) -> Result<(), Error> {
        let member = &mut self.team[process];
        let mut ready = [PollFd::new(member.line.stream(), PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut ready, Some(&at_once)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(Error::io("waiting for processes", e)),
        }
        let open = member.line.read()?;
        while let Some(message) = member.line.next()? {
            match message {
                FromWorker::Boundary(result) => waiting.push(Waiting { process, result }),
                FromWorker::Done { cut, began } => {
                    member.runs = false;
                    self.began[process] = began;
                    if cut && self.ending == Ending::Completed {
                        self.ending = Ending::TimeUp;
                    }
                }
                FromWorker::Failed(message) => {
                    return Err(Error::Workload { process: member.name.clone(), message });
                }
                FromWorker::Ready(_) => {}
            }
        }
        if open || !member.runs {
            return Ok(());
        }
        let kill = match member.end(false)? {
            Some(SIGKILL) => self.watch.kill(member.pid()),
            _ => None,
        };
        let Some(kill) = kill else { return Err(member.broken()) };
        let (pid, comm) = (member.pid() as i32, member.name.clone());
        let broken_off = self.broken_off(process, waiting, kill.at);
        self.phases[process].extend(broken_off);
        self.killed.push(Killed { pid, comm, kill });
        Ok(())
    }

    /// The phase in which a process was killed. What was done in it it is not known.
    fn broken_off(&self, process: usize, waiting: &[Waiting], at: u64) -> Option<PhaseResult> {
        // It had done one that is yet to be put down.
        if waiting.iter().any(|waiting| waiting.process == process) {
            return None;
        }
        let of = &self.scenario.processes[process];
        let (start, stage) = (self.told[process], worker::stages(of).nth(self.phases[process].len())?);
        let phase = worker::stage_name(of, stage);
        (start <= at).then(|| PhaseResult { process: of.name.clone(), phase, start, end: at, ..PhaseResult::default() })
    }

    /// Adds the placement of all regions to the sample just taken, and lets those continue that waited for it.
    fn place(&mut self, waiting: Vec<Waiting>) -> Result<(), Error> {
        let placed: Vec<_> = self
            .team
            .iter()
            .map(|member| match member.runs && !member.regions.is_empty() {
                true => placement::of(member.pid(), &member.regions, self.nodes),
                false => None,
            })
            .collect();
        let rows: Vec<_> = self
            .team
            .iter()
            .zip(&placed)
            .flat_map(|(member, placed)| {
                placement::rows(&member.name, member.regions.iter().zip(placed.iter().flatten()))
            })
            .collect();
        self.session.add("numa_maps", &rows)?;
        for Waiting { process, result } in waiting {
            if let Some(mut result) = result {
                let regions = self.team[process].regions.iter().zip(placed[process].iter().flatten());
                let placement = regions.map(|(r, nodes)| Placement { region: r.region.clone(), nodes: nodes.clone() });
                result.placement = placement.collect();
                self.phases[process].push(result);
            }
            self.told[process] = clock::now();
            self.team[process].tell(&ToWorker::On);
        }
        Ok(())
    }
}

/// The ending of a run in which processes were killed: the first of them, and notes on the others.
fn ending_of(ending: Ending, killed: Vec<Killed>, start: u64) -> (Ending, Vec<String>) {
    let mut killed = killed.into_iter();
    let Some(Killed { pid, comm, kill: Kill { at, message } }) = killed.next() else { return (ending, Vec::new()) };
    let said = |Killed { pid, comm, kill }: Killed| {
        let after = kill.at.saturating_sub(start) as f64 / 1e9;
        format!("out of memory also after {after:.3} s: {comm} (pid {pid}) was killed: {}", kill.message)
    };
    (Ending::OutOfMemory { at, pid, comm, message }, killed.map(said).collect())
}

/// Notes on a run.
fn notes(scenario: &Scenario, pace: Pace) -> Vec<String> {
    let mut notes = vec![format!(
        "think time is computation, {:.3} rounds per ns of CPU time; accesses are timed in TSC ticks, {:.3} per ns",
        pace.rounds, pace.ticks
    )];
    let differing = refuse::sysctls(scenario);
    if !differing.is_empty() {
        let each = differing.iter().map(|(name, wanted, given)| format!("{name} is {given}, not {wanted}"));
        notes.push(format!("sysctls of this kernel differ from the scenario: {}", each.collect::<Vec<_>>().join("; ")));
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let series = |version: &str| version.split('.').take(2).map(String::from).collect::<Vec<_>>();
    if series(&release) != series(&scenario.kernel.version) {
        notes.push(format!("this kernel is {release}, the scenario has {}", scenario.kernel.version));
    }
    notes
}

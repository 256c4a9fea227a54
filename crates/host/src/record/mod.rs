//! Recording this machine: kernel events and counters into a directory.
//!
//! One thread does everything. It sleeps until a ring buffer is a quarter full, a sample of the counters is due or a
//! signal comes; then it moves whole sub-buffers to their files. Counters are read immediately before the command
//! starts and after it ends. `tracing` sets up an own instance, `drain` moves pages, `tasks` finds the names of the
//! tasks in them, `command` runs the command and takes signals.

mod command;
mod drain;
mod tasks;
mod tracing;

use crate::sample::{Sampler, fold_per_cpu_counters};
use crate::tracefs::{self, Obstacle};
use crate::{Error, TOOL, cgroup, clock, evidence};
pub use tracing::buffer_size;

use command::{Child, Signals};
use drain::Drain;
use mmtwin_event::Times;
use mmtwin_event::manifest::{Cost, End, Exit, Losses, Manifest, Run, SCHEMA_VERSION, Sampling};
use mmtwin_trace::recording::{Recording, Writer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tasks::Tasks;
use tracing::Tracer;

/// What to record, and where to.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directory to write.
    pub output: PathBuf,
    /// Events as `system:event` with `*` and `?`; empty: [`crate::events::DEFAULT`].
    pub events: Vec<String>,
    /// Time between samples of the counters; `None`: only at start and end.
    pub interval: Option<Duration>,
    /// Cgroups to sample: paths below the mount, or directories.
    pub cgroups: Vec<String>,
    /// Ring buffer per CPU in bytes; `None`: by the machine's memory.
    pub buffer: Option<u64>,
    /// Replace an existing recording.
    pub force: bool,
    /// Command and its arguments; empty: record until SIGINT or SIGTERM.
    pub command: Vec<OsString>,
}

/// How a recording went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was written to `end.json`.
    pub end: End,
    /// Number of enabled events; `None`: counters only.
    pub events: Option<usize>,
}

impl Outcome {
    /// Exit status to end with: the command's, 128+n if signal n ended it; without a command 0.
    pub fn status(&self) -> i32 {
        match self.end.exit {
            Some(Exit::Code(code)) => code,
            Some(Exit::Signal(signal)) => 128 + signal,
            None => 0,
        }
    }
    /// Events lost on all CPUs.
    pub fn lost(&self) -> u64 {
        self.end.losses.iter().fold(0, |sum, l| sum.saturating_add(l.total()))
    }
}

/// Ring buffers are emptied at least this often, so that a killed recorder loses little.
const TICK: Duration = Duration::from_secs(1);
/// The first time is sooner, and then half as often each time: tasks of a short command are found while they live.
const FIRST_TICK: Duration = Duration::from_millis(8);

/// Records. `say` takes messages for the user, one line each: what is missing, with the cure.
pub fn record(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Outcome, Error> {
    let mounts = cgroup::mounts();
    let mut sampler = Sampler::new();
    let mut cgroups = Vec::new();
    for path in &options.cgroups {
        let (key, directory) = cgroup::find(path, &mounts)?;
        sampler.add_cgroup(&key, &directory);
        cgroups.push(key);
    }
    let plan = match tracefs::find() {
        Ok(tracefs) => Ok(tracing::plan(&tracefs, &options.events)?),
        Err(obstacle) => {
            say(&format!("{}; recording counters only. Cure: {}", obstacle.what, obstacle.cure));
            Err(obstacle)
        }
    };
    let writer = Writer::create(&options.output, options.force)?;
    let result = run(options, plan, writer, sampler, cgroups, say);
    let unstarted = matches!(result, Err(Error::Command { .. })) || !Recording::is_one(&options.output);
    if result.is_err() && unstarted {
        // Nothing was recorded, and the next attempt should find its name free.
        let _ = std::fs::remove_dir_all(&options.output);
    }
    result
}

/// A recording that runs.
struct Session {
    writer: Writer,
    sampler: Sampler,
    /// Before `tracer`: an instance cannot be removed while its files are open, whichever way this ends.
    drain: Option<Drain>,
    tracer: Option<Tracer>,
    tasks: Tasks,
}

fn run(
    options: &Options,
    plan: Result<tracing::Plan, Obstacle>,
    mut writer: Writer,
    sampler: Sampler,
    cgroups: Vec<String>,
    say: &mut dyn FnMut(&str),
) -> Result<Outcome, Error> {
    let evidence = evidence::collect();
    let mut tracer = None;
    let mut no_tracing = None;
    match plan {
        Err(obstacle) => no_tracing = Some(obstacle.what),
        Ok(plan) => {
            let size = tracing::buffer_size(options.buffer, evidence.memory, evidence.cpus.len());
            let made = Tracer::create(plan, size, &mut writer)?;
            made.notes.iter().for_each(|n| say(n));
            tracer = Some(made);
        }
    }
    let drain = match &tracer {
        Some(tracer) => Some(Drain::open(tracer, &writer)?),
        None => None,
    };
    let command = options.command.iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let start = clock::now();
    writer.manifest(&Manifest {
        schema_version: SCHEMA_VERSION,
        arm: "host".into(),
        tool: TOOL.into(),
        clock: clock::TRACE_CLOCK.into(),
        start,
        tracing: tracer.as_ref().map(|t| t.manifest.clone()),
        no_tracing,
        counters: Sampling { interval: options.interval.map(|i| i.as_nanos() as u64), cgroups },
        command: (!command.is_empty()).then_some(command),
        evidence,
        scenario: None,
        scenario_hash: None,
    })?;
    writer.run(&Run {
        schema_version: SCHEMA_VERSION,
        started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        tool: TOOL.into(),
    })?;
    let tasks = Tasks::new(tracer.as_ref().map(|t| t.tracefs.join("saved_cmdlines")));
    let notes = tracer.as_ref().map(|t| t.notes.clone()).unwrap_or_default();
    Session { writer, sampler, drain, tracer, tasks }.run(options, notes)
}

impl Session {
    fn run(mut self, options: &Options, mut notes: Vec<String>) -> Result<Outcome, Error> {
        let mut signals = Signals::take()?;
        let cpu_before = clock::own_cpu_time();
        if let Some(tracer) = &self.tracer {
            tracer.instance.set("tracing_on", "1")?;
        }
        fold_per_cpu_counters();
        self.sample()?;
        let started = clock::now();
        let mut child = if options.command.is_empty() { None } else { Some(Child::start(&options.command)?) };
        self.wait(options.interval, &mut signals, child.as_mut())?;
        let stopped = clock::now();
        fold_per_cpu_counters();
        self.sample()?;
        let mut end = End { schema_version: SCHEMA_VERSION, end: clock::now(), ..End::default() };
        if let Some(tracer) = &self.tracer {
            tracer.instance.set("tracing_on", "0")?;
        }
        let mut cost = Cost::default();
        if let Some(drain) = &mut self.drain {
            drain.flush(&mut self.tasks)?;
            cost.page_bytes = drain.bytes();
        }
        let lines = self.tasks.finish(clock::now());
        self.writer.tasks(&lines)?;
        if let Some(child) = child {
            let (exit, user, system) = child.take()?;
            end.exit = Some(exit);
            end.times = Some(Times { user, system, elapsed: stopped.saturating_sub(started) as f64 / 1e9 });
        }
        let events = self.tracer.as_ref().map(|t| t.manifest.events.len());
        if let Some(tracer) = self.tracer.take() {
            end.losses = tracer.losses()?;
            // Its files are closed, or it could not be removed.
            drop(self.drain.take());
            if let Err(error) = tracer.instance.remove() {
                notes.push(error.to_string());
            }
        }
        cost.cpu_time = clock::own_cpu_time();
        cost.cpu_time_recording = cost.cpu_time - cpu_before;
        let end = self.writer.finish(End { cost, notes, ..end })?;
        Ok(Outcome { end, events })
    }

    /// Samples and drains until the command or a signal ends the recording.
    fn wait(
        &mut self,
        interval: Option<Duration>,
        signals: &mut Signals,
        mut child: Option<&mut Child>,
    ) -> Result<(), Error> {
        let mut next_sample = interval.map(|i| clock::now() + i.as_nanos() as u64);
        let mut tick = FIRST_TICK;
        let mut next_tick = clock::now() + tick.as_nanos() as u64;
        let mut signalled = false;
        loop {
            self.poll(signals, next_tick.min(next_sample.unwrap_or(u64::MAX)))?;
            if let Some(child) = &child
                && child.has_ended()?
            {
                return Ok(());
            }
            for signal in signals.pending() {
                match &mut child {
                    None if [SIGINT, SIGTERM].contains(&signal) => return Ok(()),
                    Some(child) if signalled && signal == SIGINT => {
                        child.kill();
                        return Err(Error::Interrupted { signal });
                    }
                    Some(child) if [SIGINT, SIGTERM].contains(&signal) => {
                        signalled = true;
                        child.pass_on(signal);
                    }
                    _ => {}
                }
            }
            let now = clock::now();
            if let (Some(at), Some(interval)) = (next_sample, interval)
                && now >= at
            {
                self.sample()?;
                // After a delay the missed samples are not made up for.
                next_sample = Some((at + interval.as_nanos() as u64).max(now));
            }
            if let Some(drain) = &mut self.drain {
                drain.move_whole(&mut self.tasks)?;
            }
            let lines = self.tasks.look_up(now);
            self.writer.tasks(&lines)?;
            if now >= next_tick {
                tick = (tick * 2).min(TICK);
                next_tick = now + tick.as_nanos() as u64;
            }
        }
    }

    /// Sleeps until `until`, a signal, or a ring buffer that is to be emptied.
    fn poll(&self, signals: &Signals, until: u64) -> Result<(), Error> {
        let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        fds.extend(self.drain.iter().flat_map(Drain::poll_fds));
        let left = Duration::from_nanos(until.saturating_sub(clock::now()));
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::io("waiting for events", e)),
        }
    }

    fn sample(&mut self) -> Result<(), Error> {
        let at = clock::now();
        let counters = &mut self.writer.counters;
        let mut result = Ok(());
        self.sampler.sample(|source, rows| {
            if result.is_ok() {
                result = counters.add(source, at, &rows);
            }
        });
        Ok(result?)
    }
}

/// Losses of a CPU from the text of `per_cpu/cpuN/stats`.
fn parse_losses(cpu: u32, stats: &str) -> Losses {
    let number = |name: &str| {
        let line = stats.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|v| v.trim().parse().ok()).unwrap_or(0)
    };
    let (overrun, commit_overrun, dropped) = (number("overrun"), number("commit overrun"), number("dropped events"));
    Losses { cpu, overrun, commit_overrun, dropped }
}

/// A file's name for messages.
fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_read_from_the_kernels_own_count() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 2\nbytes: 300\noldest event ts:     0.000000\n\
                     now ts:  4435.028086\ndropped events: 1\nread events: 9\n";
        let losses = parse_losses(3, stats);
        assert_eq!(losses, Losses { cpu: 3, overrun: 7, commit_overrun: 2, dropped: 1 });
        assert_eq!(losses.total(), 10);
    }

    #[test]
    fn status_is_the_commands() {
        let status = |exit| Outcome { end: End { exit, ..End::default() }, events: None }.status();
        assert_eq!(status(Some(Exit::Code(7))), 7);
        assert_eq!(status(Some(Exit::Signal(9))), 137);
        assert_eq!(status(None), 0);
    }
}

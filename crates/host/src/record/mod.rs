//! Recording this machine: kernel events and counters into a directory.
//!
//! One thread does everything. It sleeps until a ring buffer is a quarter full, a sample of the counters is due or a
//! signal comes; then it moves whole sub-buffers to their files. Counters are read immediately before the command
//! starts and after it ends. `session` is the recording itself, whatever is recorded; `tracing` sets up an own
//! instance, `drain` moves pages, `tasks` finds the names of the tasks in them, `command` runs the command and takes
//! signals.

mod command;
mod drain;
mod session;
mod tasks;
mod tracing;

use crate::sample::Sampler;
use crate::{Error, cgroup, clock, tracefs};
pub(crate) use command::Signals;
pub(crate) use session::{Samples, Session};
pub use tracing::buffer_size;
pub(crate) use tracing::plan;

use command::Child;
use mmtwin_event::Times;
use mmtwin_event::manifest::{End, Exit, Losses, Manifest, Sampling};
use mmtwin_trace::recording::{Recording, Writer};
use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        Ok(tracefs) => match (tracing::plan(&tracefs, &options.events)?, options.events.first()) {
            (plan, Some(pattern)) if plan.is_empty() => {
                return Err(Error::Event { pattern: pattern.clone(), nearest: None });
            }
            (plan, _) => Ok(plan),
        },
        Err(obstacle) => {
            say(&format!("{}; recording counters only. Cure: {}", obstacle.what, obstacle.cure));
            Err(obstacle.what)
        }
    };
    let command = options.command.iter().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let manifest = Manifest {
        arm: "host".into(),
        counters: Sampling { interval: options.interval.map(|i| i.as_nanos() as u64), cgroups },
        command: (!command.is_empty()).then_some(command),
        ..Manifest::default()
    };
    let writer = Writer::create(&options.output, options.force)?;
    let session = Session::create(writer, plan, options.buffer, sampler, manifest);
    let result = session.and_then(|session| {
        session.notes.iter().for_each(|n| say(n));
        run(session, options)
    });
    let unstarted = matches!(result, Err(Error::Command { .. })) || !Recording::is_one(&options.output);
    if result.is_err() && unstarted {
        // Nothing was recorded, and the next attempt should find its name free.
        let _ = std::fs::remove_dir_all(&options.output);
    }
    result
}

fn run(mut session: Session, options: &Options) -> Result<Outcome, Error> {
    let mut signals = Signals::take()?;
    session.begin()?;
    let started = clock::now();
    let mut child = if options.command.is_empty() { None } else { Some(Child::start(&options.command)?) };
    wait(&mut session, options.interval, &mut signals, child.as_mut())?;
    let stopped = clock::now();
    session.stop()?;
    let mut end = End::default();
    if let Some(child) = child {
        let (exit, user, system) = child.take()?;
        end.exit = Some(exit);
        end.times = Some(Times { user, system, elapsed: stopped.saturating_sub(started) as f64 / 1e9 });
    }
    session.finish(end)
}

/// Samples and drains until the command or a signal ends the recording.
fn wait(
    session: &mut Session,
    interval: Option<Duration>,
    signals: &mut Signals,
    mut child: Option<&mut Child>,
) -> Result<(), Error> {
    let mut samples = Samples::every(interval);
    let mut signalled = false;
    loop {
        let wake = [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        session.poll(&wake, samples.next())?;
        if let Some(child) = &child
            && child.has_ended()?
        {
            return Ok(());
        }
        for signal in signals.pending() {
            match &mut child {
                None if [SIGINT, SIGTERM, SIGHUP].contains(&signal) => return Ok(()),
                Some(child) if signalled && signal == SIGINT => {
                    child.kill();
                    return Err(Error::Interrupted { signal });
                }
                Some(child) if [SIGINT, SIGTERM, SIGHUP].contains(&signal) => {
                    signalled = true;
                    child.pass_on(signal);
                }
                _ => {}
            }
        }
        if samples.due() {
            session.sample()?;
        }
        session.gather()?;
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

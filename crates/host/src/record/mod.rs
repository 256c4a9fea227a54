//! Recording this machine: kernel events and counters into a directory.
//!
//! One thread does everything. It sleeps until a ring buffer is a quarter full, a sample of the counters is due or a
//! signal comes; then it moves whole sub-buffers to their files. Counters are read immediately before the command
//! starts and after it ends. `session` is the recording itself, whatever is recorded; `tracing` sets up an own
//! instance, `buffers` takes pages, `drain` writes them, `descriptors` sees to open files, `tasks` finds the names of the
//! tasks in them, `command` runs the command and takes signals, `cgroups` finds those that matter, `numbered` chooses a
//! name where the user did not, `addresses` says which symbols are needed, `stacks` asks for the kernel's stacks, `delays`
//! and `taskstats` take the kernel's delay accounting.
//!
//! The recording gets its name when the command has started: whatever fails before leaves nothing, and what was to be
//! replaced as it was. What fails later ends the recording; tracing is released at once, and the command is waited for.

pub(crate) mod addresses;
pub(crate) mod buffers;
pub(crate) mod cgroups;
mod command;
mod delays;
pub(crate) mod descriptors;
mod drain;
pub(crate) mod numbered;
mod samples;
mod session;
pub mod stacks;
pub(crate) mod tasks;
mod taskstats;
pub(crate) mod tracing;

use crate::cgroup::{self, Mount};
use crate::sample::Sampler;
use crate::{Error, clock, containers, tracefs};
pub use command::Signals;
pub use command::ignored;
pub(crate) use samples::Samples;
pub(crate) use session::{Session, Ways, described};
pub use tracing::buffer_size;
pub(crate) use tracing::plan;

use command::Child;
pub(crate) use command::times_of;
use mmtwin_event::Times;
use mmtwin_event::manifest::{End, Exit, Losses, Manifest, Sampling};
use mmtwin_trace::private::Names;
use mmtwin_trace::recording::Writer;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGINT;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::Plan;

/// What to record, and where to.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directory to write.
    pub output: PathBuf,
    /// Where `output` is taken, go on with numbers: `NAME-2.mmt` and so on.
    pub numbered: bool,
    /// Events as `system:event` with `*` and `?`; empty: [`crate::events::DEFAULT`].
    pub events: Vec<String>,
    /// Time between samples of the counters; `None`: only at start and end.
    pub interval: Option<Duration>,
    /// Cgroups to sample: paths below the mount, or directories, with wildcards.
    pub cgroups: Vec<String>,
    /// Ring buffer per CPU in bytes; `None`: by the machine's memory.
    pub buffer: Option<u64>,
    /// Largest recording in bytes; `None`: as large as it gets.
    pub max_size: Option<u64>,
    /// Longest recording; `None`: as long as it takes.
    pub max_time: Option<Duration>,
    /// Record the kernel's stack with the events of [`stacks::EVENTS`].
    pub stacks: bool,
    /// Switch the kernel's delay accounting on while it records. It is recorded without this where it is on.
    pub delays: bool,
    /// Compress the pages of events, with this level of zstd.
    pub compress: Option<i32>,
    /// Replace an existing recording.
    pub force: bool,
    /// Keep the command's arguments, which may hold secrets, in the manifest.
    pub arguments: bool,
    /// Replace names by pseudonyms.
    pub private: bool,
    /// Command and its arguments; empty: record until SIGINT, SIGTERM or SIGHUP.
    pub command: Vec<OsString>,
    /// Is told what is recorded, before the command starts.
    pub begun: Option<fn(&Begun<'_>)>,
}

/// What a recording that begins records, and where to.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// Directory that is written.
    pub output: &'a Path,
    /// Enabled events as `system:event`; `None`: counters only.
    pub events: Option<&'a [String]>,
    /// How many of them are recorded with the kernel's stack.
    pub stacks: usize,
    /// Time between samples of the counters; `None`: only at start and end.
    pub interval: Option<Duration>,
    /// Keys of the cgroups that are sampled.
    pub cgroups: &'a [String],
    /// Recording until a signal, not until a command ends.
    pub until_signal: bool,
    /// tracefs is not mounted on this machine, and is for this recording alone.
    pub own_tracefs: bool,
}

/// How a recording went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Directory that was written.
    pub output: PathBuf,
    /// What was written to `end.json`.
    pub end: End,
    /// Number of enabled events; `None`: counters only.
    pub events: Option<usize>,
    /// Events that were written.
    pub written: u64,
    /// Nanoseconds from the first sample to the last.
    pub elapsed: u64,
    /// The signal that ended the recording itself, rather than its command.
    pub signal: Option<i32>,
    /// The recording ended because it was as large as it may be.
    pub full: bool,
}

impl Outcome {
    /// Exit status to end with: the command's, 128+n if signal n ended it or the recording itself.
    pub fn status(&self) -> i32 {
        match (self.signal, self.end.exit) {
            (Some(signal), _) | (None, Some(Exit::Signal(signal))) => 128 + signal,
            (None, Some(Exit::Code(code))) => code,
            (None, None) => 0,
        }
    }
    /// Events lost on all CPUs.
    pub fn lost(&self) -> u64 {
        self.end.losses.iter().fold(0, |sum, l| sum.saturating_add(l.total()))
    }
}

/// Records. `say` takes messages for the user, one line each: what is missing, with the fix.
///
/// # Errors
/// [`Error::Stopped`] if the recording had to be cut short; its command has ended then. All others leave nothing.
pub fn record(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Outcome, Error> {
    // Before there is anything that would be left behind.
    let mut signals = Signals::take()?;
    let output = if options.numbered { numbered::next(&options.output) } else { options.output.clone() };
    Writer::check(&output, options.force)?;
    let mounts = cgroup::mounts();
    let (sampler, cgroups, directories) = chosen_cgroups(&options.cgroups, &mounts)?;
    let plan = chosen_events(&options.events, say)?;
    let command = said_of(&options.command, options.arguments);
    let mut names = containers::Names::new();
    cgroups.iter().for_each(|key| names.look_up(key));
    let containers = names.known().clone();
    let manifest = Manifest {
        arm: "host".into(),
        counters: Sampling { interval: options.interval.map(|i| i.as_nanos() as u64), cgroups, containers },
        command: (!command.is_empty()).then_some(command),
        ..Manifest::default()
    };
    let mut writer = Writer::create(&output, options.force)?;
    if options.private {
        writer.hide_names(Names::default(), cfg!(target_endian = "big"), size_of::<usize>() as u8);
    }
    let symbols_last = options.max_size.is_some();
    let ways = Ways { stacks: options.stacks, compress: options.compress, symbols_last };
    let mut session = Session::create(writer, plan, options.buffer, sampler, ways, manifest)?;
    session.notes.iter().for_each(|n| say(n));
    let mut found = cgroups::Cgroups::new(&mounts, &directories);
    if !options.command.is_empty() {
        // The command begins where its parent is.
        found.iter_mut().for_each(|found| found.command(std::process::id()));
    }
    session.find_cgroups(found);
    session.account_delays(options.delays)?;
    session.begin()?;
    if let Some(bytes) = options.max_size {
        session.limit_size(bytes)?;
    }
    if let Some(&signal) = signals.pending().first() {
        return Err(Error::Interrupted { signal });
    }
    if let Some(begun) = options.begun {
        let (events, cgroups) = (session.enabled(), session.cgroups());
        let until_signal = options.command.is_empty();
        let (interval, own_tracefs, stacks) = (options.interval, session.has_own_tracefs(), session.stacks());
        begun(&Begun { output: &output, events, stacks, interval, cgroups, until_signal, own_tracefs });
    }
    run(session, options, output, &mut signals, say)
}

/// A sampler with the cgroups that the user chose, and their keys and directories.
pub(crate) fn chosen_cgroups(
    paths: &[String],
    mounts: &[Mount],
) -> Result<(Sampler, Vec<String>, Vec<PathBuf>), Error> {
    let mut sampler = Sampler::new();
    let (mut cgroups, mut directories) = (Vec::new(), Vec::new());
    for path in paths {
        for (key, directory) in cgroup::find(path, mounts)? {
            if !cgroups.contains(&key) {
                sampler.add_cgroup(&key, &directory);
                cgroups.push(key);
                directories.push(directory);
            }
        }
    }
    Ok((sampler, cgroups, directories))
}

/// The events that the user chose, or why none can be traced, which is said.
pub(crate) fn chosen_events(patterns: &[String], say: &mut dyn FnMut(&str)) -> Result<Result<Plan, String>, Error> {
    match tracefs::open() {
        Ok(tracefs) => match (tracing::plan(tracefs, patterns)?, patterns.first()) {
            (plan, Some(pattern)) if plan.is_empty() => Err(Error::Event { pattern: pattern.clone(), nearest: None }),
            (plan, _) => Ok(Ok(plan)),
        },
        Err(obstacle) => {
            say(&format!("{}; recording counters only. Suggested fix: {}", obstacle.what, obstacle.fix));
            Ok(Err(obstacle.what))
        }
    }
}

/// Why a recording ends.
enum Why {
    /// Its command has ended.
    Ended,
    /// This signal was for the recording.
    Signal(i32),
    /// It is as large as it may be.
    Full,
    /// It took as long as it may.
    Time(Duration),
    /// It cannot continue.
    Failed(Error),
}

fn run(
    mut session: Session,
    options: &Options,
    mut output: PathBuf,
    signals: &mut Signals,
    say: &mut dyn FnMut(&str),
) -> Result<Outcome, Error> {
    let started = clock::now();
    let mut child = match options.command.as_slice() {
        [] => None,
        command => Some(Child::start(command, session.files())?),
    };
    child.iter().for_each(|child| session.command_runs(child.id()));
    let begun = session.notes.len();
    let mut published = session.publish();
    // Another recording may have taken the name meanwhile.
    while published.is_err() && options.numbered && output.exists() {
        output = numbered::next(&options.output);
        published = session.publish_as(&output);
        session.notes.push(format!("the name was taken meanwhile: recording to {}", output.display()));
    }
    if let Err(error) = published {
        if let Some(mut child) = child {
            child.kill();
            child.take()?;
        }
        return Err(error);
    }
    session.notes[begun..].iter().for_each(|n| say(n));
    let mut why = wait(&mut session, options, signals, child.as_mut()).unwrap_or_else(Why::Failed);
    let stopped = clock::now();
    if let (Err(error), false) = (session.stop(), matches!(why, Why::Failed(_))) {
        why = Why::Failed(error);
    }
    if matches!(why, Why::Ended) && session.is_full() {
        why = Why::Full;
    }
    let cut = match &why {
        Why::Full => Some(format!("it reached --max-size ({} bytes)", options.max_size.unwrap_or(0))),
        // Without a command that is when it was to end.
        Why::Time(longest) if child.is_some() => Some(format!("it reached --max-time ({longest:?})")),
        Why::Failed(error) => Some(error.to_string()),
        Why::Ended | Why::Signal(_) | Why::Time(_) => None,
    };
    let mut end = End { stopped: cut, ..End::default() };
    if end.stopped.is_some() {
        // What can be said now is said now: the command may run for long.
        let _ = session.cut(end.clone());
    }
    if let Some(mut child) = child {
        let runs_on = end.stopped.as_deref().filter(|_| child.has_ended().is_ok_and(|ended| !ended));
        if let Some(reason) = runs_on {
            say(&format!("recording stopped: {reason}; waiting for the command, which continues"));
            follow(&mut child, signals)?;
        }
        let elapsed = if runs_on.is_some() { clock::now() } else { stopped }.saturating_sub(started);
        let (exit, user, system) = child.take()?;
        end.exit = Some(exit);
        end.times = Some(Times { user, system, elapsed: elapsed as f64 / 1e9 });
    }
    match why {
        Why::Ended | Why::Time(_) => Ok(Outcome { output, ..session.finish(end)? }),
        Why::Signal(signal) => Ok(Outcome { output, signal: Some(signal), ..session.finish(end)? }),
        Why::Full => Ok(Outcome { output, full: true, ..session.finish(end)? }),
        Why::Failed(cause) => {
            let exit = end.exit;
            // Where even this cannot be written, what was written before says that it was cut.
            let _ = session.cut(end);
            Err(Error::Stopped { cause: Box::new(cause), exit })
        }
    }
}

/// Samples and drains until the command or a signal ends the recording, or it can take no more.
fn wait(
    session: &mut Session,
    options: &Options,
    signals: &mut Signals,
    mut child: Option<&mut Child>,
) -> Result<Why, Error> {
    let mut samples = Samples::every(options.interval);
    let mut signalled = false;
    let started = clock::now();
    let last = options.max_time.map_or(u64::MAX, |time| started.saturating_add(time.as_nanos() as u64));
    loop {
        let wake = [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        session.poll(&wake, samples.next().min(last))?;
        if let Some(child) = &child
            && child.has_ended()?
        {
            return Ok(Why::Ended);
        }
        for signal in signals.pending() {
            match &mut child {
                None => return Ok(Why::Signal(signal)),
                // A second Ctrl-C: now.
                Some(child) if signalled && signal == SIGINT => {
                    child.kill();
                    return Ok(Why::Signal(signal));
                }
                Some(child) => {
                    signalled = true;
                    child.pass_on(signal);
                }
            }
        }
        if samples.due() {
            session.sample()?;
        }
        session.gather()?;
        if session.is_full() {
            return Ok(Why::Full);
        }
        if let Some(longest) = options.max_time
            && clock::now() >= last
        {
            return Ok(Why::Time(longest));
        }
    }
}

/// What the manifest says of a command: its program's name, or all of it.
fn said_of(command: &[OsString], arguments: bool) -> Vec<String> {
    let name = |program: &OsString| Path::new(program).file_name().unwrap_or(program).to_os_string();
    let said = if arguments { command.to_vec() } else { command.first().map(name).into_iter().collect() };
    said.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Waits for a command that is no longer recorded.
fn follow(child: &mut Child, signals: &mut Signals) -> Result<(), Error> {
    let mut signalled = false;
    while !child.has_ended()? {
        let mut wake = [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        match poll(&mut wake, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(Error::io("waiting for the command", e)),
        }
        for signal in signals.pending() {
            match signalled && signal == SIGINT {
                true => child.kill(),
                false => child.pass_on(signal),
            }
            signalled = true;
        }
    }
    Ok(())
}

/// Losses of a CPU from the text of `per_cpu/cpuN/stats`.
fn parse_losses(cpu: u32, stats: &str) -> Losses {
    let number = |name: &str| {
        let line = stats.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|v| v.trim().parse().ok()).unwrap_or(0)
    };
    let (overrun, commit_overrun, dropped) = (number("overrun"), number("commit overrun"), number("dropped events"));
    Losses { cpu, overrun, commit_overrun, dropped, unwritten: 0 }
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
        assert_eq!(losses, Losses { cpu: 3, overrun: 7, commit_overrun: 2, dropped: 1, unwritten: 0 });
        assert_eq!(losses.total(), 10);
    }

    #[test]
    fn arguments_are_kept_on_demand_only() {
        let command: Vec<OsString> = ["/opt/bin/load", "--password", "x"].map(OsString::from).into();
        assert_eq!(said_of(&command, false), ["load"]);
        assert_eq!(said_of(&command, true), ["/opt/bin/load", "--password", "x"]);
        assert_eq!(said_of(&[], false), [""; 0]);
    }

    #[test]
    fn status_is_the_commands() {
        let status =
            |exit, signal| Outcome { end: End { exit, ..End::default() }, signal, ..Outcome::default() }.status();
        assert_eq!(status(Some(Exit::Code(7)), None), 7);
        assert_eq!(status(Some(Exit::Signal(9)), None), 137);
        assert_eq!(status(None, None), 0);
        assert_eq!(status(None, Some(1)), 129);
        assert_eq!(status(Some(Exit::Signal(9)), Some(2)), 130);
    }
}

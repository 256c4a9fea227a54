//! A recording that runs: ring buffers that are emptied, counters that are sampled, tasks that are named.

use super::Outcome;
use super::drain::Drain;
use super::tasks::Tasks;
use super::tracing::{self, Plan, Tracer};
use crate::sample::{Sampler, fold_per_cpu_counters};
use crate::{Error, TOOL, clock, evidence};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{Cost, End, Manifest, Run, SCHEMA_VERSION, State};
use mmtwin_event::results::Results;
use mmtwin_trace::recording::Writer;
use rustix::event::{PollFd, Timespec, poll};
use std::time::{Duration, SystemTime};

/// Ring buffers are emptied at least this often, so that a killed recorder loses little, unless they are left alone.
const TICK: Duration = Duration::from_secs(1);
/// The first time is sooner, and then half as often each time: tasks of a short command are found while they live.
const FIRST_TICK: Duration = Duration::from_millis(8);

/// A recording that runs.
pub(crate) struct Session {
    /// What the user may want to know; it goes into the end of the recording too.
    pub notes: Vec<String>,
    writer: Writer,
    sampler: Sampler,
    /// Before `tracer`: an instance cannot be removed while its files are open, whichever way this ends.
    drain: Option<Drain>,
    tracer: Option<Tracer>,
    tasks: Tasks,
    /// Buffers are emptied now and then, not only when they have to be.
    ticks: bool,
    tick: Duration,
    next_tick: u64,
    cpu_before: u64,
    /// Time of the last sample of the counters.
    sampled: u64,
    /// Time of the end, once it is reached.
    stopped: u64,
}

impl Session {
    /// Sets tracing up, if there is a plan (otherwise why not), and writes the manifest, of which `said` has what the
    /// caller knows: arm, sampling, command, scenario. `buffer` is the size of a ring buffer.
    pub fn create(
        mut writer: Writer,
        plan: Result<Plan, String>,
        buffer: Option<u64>,
        sampler: Sampler,
        said: Manifest,
    ) -> Result<Session, Error> {
        let evidence = evidence::collect();
        let (plan, no_tracing) = match plan {
            Ok(plan) => (Some(plan), None),
            Err(why) => (None, Some(why)),
        };
        let size = tracing::buffer_size(buffer, evidence.memory, evidence.cpus.len());
        let tracer = plan.map(|plan| Tracer::create(plan, size, &mut writer)).transpose()?;
        let drain = tracer.as_ref().map(|tracer| Drain::open(tracer, &writer)).transpose()?;
        writer.manifest(&Manifest {
            schema_version: SCHEMA_VERSION,
            tool: TOOL.into(),
            clock: clock::TRACE_CLOCK.into(),
            start: clock::now(),
            tracing: tracer.as_ref().map(|t| t.manifest.clone()),
            no_tracing,
            evidence,
            ..said
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
        let (ticks, tick, [next_tick, cpu_before, sampled, stopped]) = (true, FIRST_TICK, [0; 4]);
        let session = Session {
            notes,
            writer,
            sampler,
            drain,
            tracer,
            tasks,
            ticks,
            tick,
            next_tick,
            cpu_before,
            sampled,
            stopped,
        };
        Ok(session)
    }

    /// From now on a ring buffer is emptied only when a part of it is full: to empty it takes pages of its CPU's node,
    /// which are not to be missing there. Where the kernel does not say when a part is full, nothing changes.
    pub fn leave_buffers_alone(&mut self) {
        self.ticks = self.drain.as_ref().is_some_and(|drain| !drain.polls());
    }

    /// Switches tracing on and takes the first sample, counters folded.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.cpu_before = clock::own_cpu_time();
        if let Some(tracer) = &self.tracer {
            tracer.instance.set("tracing_on", "1")?;
        }
        self.next_tick = clock::now() + self.tick.as_nanos() as u64;
        fold_per_cpu_counters();
        self.sample()
    }

    /// Takes a sample of the counters.
    pub fn sample(&mut self) -> Result<(), Error> {
        self.sampled = clock::now();
        let (at, writer) = (self.sampled, &mut self.writer);
        let mut result = Ok(());
        self.sampler.sample(|source, rows| {
            if result.is_ok() {
                result = writer.counters(source, at, &rows);
            }
        });
        Ok(result?)
    }

    /// Adds rows of a source of the caller's to the sample taken last.
    pub fn add(&mut self, source: &str, rows: &[Row]) -> Result<(), Error> {
        Ok(self.writer.counters(source, self.sampled, rows)?)
    }

    /// Sleeps until one of `others` is ready, a ring buffer is to be emptied, or it is `until` (0: at once). True: a
    /// buffer is to be emptied.
    pub fn poll(&self, others: &[PollFd<'_>], until: u64) -> Result<bool, Error> {
        let mut fds = others.to_vec();
        fds.extend(self.drain.iter().flat_map(Drain::poll_fds));
        let tick = if self.ticks { self.next_tick } else { u64::MAX };
        let left = Duration::from_nanos(until.min(tick).saturating_sub(clock::now()));
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(fds[others.len()..].iter().any(|fd| !fd.revents().is_empty()) || clock::now() >= tick),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(Error::io("waiting for events", e)),
        }
    }

    /// Empties ring buffers and looks tasks up.
    pub fn gather(&mut self) -> Result<(), Error> {
        if let Some(drain) = &mut self.drain {
            drain.move_whole(&mut self.tasks, &mut self.writer)?;
        }
        let now = clock::now();
        let lines = self.tasks.look_up(now);
        self.writer.tasks(&lines)?;
        if now >= self.next_tick {
            self.tick = (self.tick * 2).min(TICK);
            self.next_tick = now + self.tick.as_nanos() as u64;
        }
        Ok(())
    }

    /// Notes a task that is to be named, whether events come from it or not.
    pub fn saw(&mut self, pid: i32) {
        self.tasks.saw(pid);
    }

    /// Takes the last sample, counters folded, switches tracing off and moves what is left. Tasks can be named until
    /// then.
    pub fn stop(&mut self) -> Result<(), Error> {
        fold_per_cpu_counters();
        self.sample()?;
        self.stopped = clock::now();
        if let Some(tracer) = &self.tracer {
            tracer.instance.set("tracing_on", "0")?;
        }
        if let Some(drain) = &mut self.drain {
            drain.flush(&mut self.tasks, &mut self.writer)?;
        }
        let lines = self.tasks.finish(clock::now());
        Ok(self.writer.tasks(&lines)?)
    }

    /// Writes what the machine held when a workload began.
    pub fn state(&mut self, state: &State) -> Result<(), Error> {
        Ok(self.writer.state(state)?)
    }

    /// Writes what a workload achieved.
    pub fn results(&mut self, results: &Results) -> Result<(), Error> {
        Ok(self.writer.results(results)?)
    }

    /// Writes the end, of which `said` has what the caller knows: exit and times.
    pub fn finish(mut self, said: End) -> Result<Outcome, Error> {
        let page_bytes = self.drain.as_ref().map_or(0, Drain::bytes);
        let events = self.tracer.as_ref().map(|t| t.manifest.events.len());
        let mut losses = Vec::new();
        if let Some(tracer) = self.tracer.take() {
            losses = tracer.losses()?;
            // Its files are closed, or it could not be removed.
            drop(self.drain.take());
            if let Err(error) = tracer.instance.remove() {
                self.notes.push(error.to_string());
            }
        }
        let cpu_time = clock::own_cpu_time();
        let cost = Cost { cpu_time, cpu_time_recording: cpu_time - self.cpu_before, page_bytes, ..Cost::default() };
        let (end, notes) = (self.stopped, self.notes);
        let end = self.writer.finish(End { schema_version: SCHEMA_VERSION, end, losses, cost, notes, ..said })?;
        Ok(Outcome { end, events })
    }
}

/// When samples are due.
pub(crate) struct Samples {
    interval: Option<u64>,
    next: u64,
}

impl Samples {
    /// From now on, every so often; `None`: never.
    pub fn every(interval: Option<Duration>) -> Samples {
        let interval = interval.map(|i| i.as_nanos() as u64);
        Samples { interval, next: interval.map_or(u64::MAX, |i| clock::now().saturating_add(i)) }
    }

    /// When the next one is due.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// One is due now; the next one is a time from then, and after a delay those missed are not made up for.
    pub fn due(&mut self) -> bool {
        let now = clock::now();
        let due = now >= self.next;
        if due && let Some(interval) = self.interval {
            self.next = self.next.saturating_add(interval).max(now);
        }
        due
    }
}

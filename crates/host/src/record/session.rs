//! A recording that runs: ring buffers that are emptied, counters that are sampled, tasks that are named.

use super::Outcome;
use super::cgroups::{Cgroups, Found};
use super::delays::{self, DelayAccounting};
use super::descriptors;
use super::drain::Drain;
use super::tasks::Tasks;
use super::tracing::{self, Plan, Tracer};
use crate::containers::Names;
use crate::sample::{Sampler, fold_per_cpu_counters};
use crate::{Error, TOOL, clock, evidence};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{Cost, End, Losses, Manifest, Run, SCHEMA_VERSION, State, TaskLine};
use mmtwin_event::results::Results;
use mmtwin_trace::recording::Writer;
use rustix::event::{PollFd, Timespec, poll};
use rustix::process::Rlimit;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Ring buffers are emptied at least this often, so that a killed recorder loses little, unless they are left alone.
const TICK: Duration = Duration::from_secs(1);
/// The first time is sooner, and then half as often each time: tasks of a short command are found while they live.
const FIRST_TICK: Duration = Duration::from_millis(8);

/// Bytes for the symbols of one address, generously: its own and the next one.
const SYMBOL_BYTES: u64 = 256;

/// Least bytes of events that a recording of limited size must have room for.
const LEAST_ROOM: u64 = 64 << 10;

/// Names of containers that a recording of limited size has room for.
const CONTAINERS: usize = 16;

/// Tasks whose delay accounting a recording of limited size has room for, and bytes of both rows of one.
const DELAYED: usize = 32;
const DELAY_BYTES: u64 = 512;

/// How events are recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    /// With the kernel's stack, where an event should have one.
    pub stacks: bool,
    /// Pages compressed, with this level of zstd.
    pub compress: Option<i32>,
    /// Symbols are written at the end only: all that a kernel has would take the room of events.
    pub symbols_last: bool,
}

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
    containers: Names,
    /// Finds cgroups that are sampled unasked.
    finder: Option<Cgroups>,
    /// The kernel's delay accounting, where it is on.
    delays: Option<DelayAccounting>,
    /// Buffers are emptied now and then, not only when they have to be.
    ticks: bool,
    tick: Duration,
    next_tick: u64,
    cpu_before: u64,
    /// CPU time when all events were written; what describes them comes after that.
    cpu_after: Option<u64>,
    /// Largest recording in bytes.
    max_size: u64,
    /// Bytes of the largest sample so far.
    largest_sample: u64,
    /// CPUs of the manifest, for the size of its end.
    cpus: u64,
    /// Keys of the cgroups that are sampled.
    cgroups: Vec<String>,
    /// Limit of open files before it was raised.
    files: Option<Rlimit>,
    /// What was written and lost, once tracing is over.
    page_bytes: u64,
    written: u64,
    events: Option<usize>,
    losses: Vec<Losses>,
    /// Time of the first sample of the counters.
    begun: u64,
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
        ways: Ways,
        said: Manifest,
    ) -> Result<Session, Error> {
        let evidence = evidence::collect();
        let (plan, no_tracing) = match plan {
            Ok(plan) => (Some(plan), None),
            Err(why) => (None, Some(why)),
        };
        let files = descriptors::raise();
        let cgroups = said.counters.cgroups.clone();
        let cpus = evidence.cpus.len() as u64;
        let size = tracing::buffer_size(buffer, evidence.memory, evidence.cpus.len());
        let mut tracer = plan.map(|plan| Tracer::create(plan, size, ways, &mut writer)).transpose()?;
        let drain = tracer.as_mut().map(|tracer| Drain::open(tracer, &writer, ways.compress)).transpose()?;
        described(&mut writer, tracer.as_ref(), Manifest { no_tracing, evidence, ..said })?;
        let tasks = Tasks::new(tracer.as_ref().map(|t| t.tracefs.path().join("saved_cmdlines")));
        let notes = tracer.as_ref().map(|t| t.notes.clone()).unwrap_or_default();
        let (ticks, tick, [next_tick, cpu_before, begun, sampled, stopped]) = (true, FIRST_TICK, [0; 5]);
        let session = Session {
            notes,
            writer,
            sampler,
            drain,
            tracer,
            tasks,
            containers: Names::new(),
            finder: None,
            delays: None,
            ticks,
            tick,
            next_tick,
            cpu_before,
            cpu_after: None,
            max_size: u64::MAX,
            largest_sample: 0,
            cpus,
            cgroups,
            files,
            page_bytes: 0,
            written: 0,
            events: None,
            losses: Vec::new(),
            begun,
            sampled,
            stopped,
        };
        Ok(session)
    }

    /// Enabled events; `None`: counters only.
    pub fn enabled(&self) -> Option<&[String]> {
        self.tracer.as_ref().map(|tracer| &tracer.manifest.events[..])
    }

    /// Events that are recorded with the kernel's stack.
    pub fn stacks(&self) -> usize {
        self.tracer.as_ref().map_or(0, |tracer| tracer.manifest.stacks.len())
    }

    /// tracefs is mounted for this recording alone.
    pub fn has_own_tracefs(&self) -> bool {
        self.tracer.as_ref().is_some_and(|tracer| tracer.tracefs.is_private())
    }

    /// Keys of the cgroups that are sampled.
    pub fn cgroups(&self) -> &[String] {
        &self.cgroups
    }

    /// From now on cgroups that matter are sampled too.
    pub fn find_cgroups(&mut self, finder: Option<Cgroups>) {
        self.finder = finder;
    }

    /// From now on tasks' delay accounting is recorded too, where the kernel has it on; `wanted`: it is switched on.
    ///
    /// # Errors
    /// If it is wanted, and cannot be had.
    pub fn account_delays(&mut self, wanted: bool) -> Result<(), Error> {
        self.delays = DelayAccounting::begin(wanted, evidence::online().trim())?;
        Ok(())
    }

    /// Writes what tasks waited by the kernel's delay accounting.
    fn write_delays(&mut self) -> Result<(), Error> {
        let Some(delays) = self.delays.take() else { return Ok(()) };
        let most = if self.max_size == u64::MAX { usize::MAX } else { DELAYED };
        let finished = delays.finish(most);
        self.notes.extend(finished.notes);
        self.writer.counters(delays::SOURCE, self.begun, &finished.first)?;
        self.writer.counters(delays::SOURCE, self.sampled, &finished.last)?;
        let unknown = finished.names.into_iter().filter(|line| !self.tasks.knows(line.pid)).collect();
        self.name_tasks(unknown)
    }

    /// The command runs as this process.
    pub fn command_runs(&mut self, pid: u32) {
        if let Some(finder) = &mut self.finder {
            finder.command(pid);
        }
    }

    /// Samples cgroups that were found from now on, and writes what they counted when the recording began, unless that
    /// is now.
    fn add_cgroups(&mut self, found: Vec<Found>, begins: bool) -> Result<(), Error> {
        let at = self.finder.as_ref().map_or(self.sampled, Cgroups::started);
        for Found { key, directory, first } in found {
            self.sampler.add_cgroup(&key, &directory);
            self.containers.look_up(&key);
            if !begins && !first.names.is_empty() {
                self.writer.counters("cgroup", at, &[first])?;
            }
        }
        Ok(())
    }

    /// From now on the recording gets no larger than this many bytes.
    ///
    /// # Errors
    /// If what there is of it leaves no room for events.
    pub fn limit_size(&mut self, bytes: u64) -> Result<(), Error> {
        let least = self.bytes() + self.last_bytes() + LEAST_ROOM;
        if bytes < least {
            return Err(Error::Size { asked: bytes, least });
        }
        self.max_size = bytes;
        Ok(())
    }

    /// The recording is as large as it may be.
    pub fn is_full(&self) -> bool {
        self.drain.as_ref().is_some_and(Drain::is_closed) || self.room() == 0
    }

    /// Bytes that pages and samples may still take.
    fn room(&self) -> u64 {
        self.max_size.saturating_sub(self.bytes() + self.last_bytes())
    }

    fn bytes(&self) -> u64 {
        self.writer.bytes() + self.drain.as_ref().map_or(self.page_bytes, Drain::bytes)
    }

    /// Bytes that the end takes: the last sample, the ends of the streams of counters, symbols, and `end.json`.
    fn last_bytes(&self) -> u64 {
        let addresses = self.drain.as_ref().map_or(0, Drain::address_count) as u64;
        let delays = if self.delays.is_some() { DELAYED as u64 * DELAY_BYTES } else { 0 };
        2 * self.largest_sample + delays + 4096 + addresses * SYMBOL_BYTES + self.end_bytes()
    }

    /// Bytes of `end.json`, generously.
    fn end_bytes(&self) -> u64 {
        8192 + 256 * self.cpus
    }

    /// Limit of open files that started programs should have, if this process has another.
    pub fn files(&self) -> Option<Rlimit> {
        self.files
    }

    /// Gives the recording its name, in the place of one that is replaced.
    ///
    /// # Errors
    /// If it cannot have the name.
    pub fn publish(&mut self) -> Result<(), Error> {
        self.notes.extend(self.writer.publish()?);
        Ok(())
    }

    /// The same under another name, where the one that was asked for is taken.
    ///
    /// # Errors
    /// If it cannot have the name.
    pub fn publish_as(&mut self, name: &Path) -> Result<(), Error> {
        self.writer.rename(name)?;
        self.publish()
    }

    /// From now on a ring buffer is emptied only when a part of it is full: to empty it takes pages of its CPU's node,
    /// which are not to be missing there. Where the kernel does not say when a part is full, nothing changes.
    pub fn leave_buffers_alone(&mut self) {
        self.ticks = self.drain.as_ref().is_some_and(|drain| !drain.polls());
    }

    /// Switches tracing on and takes the first sample, counters folded.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.cpu_before = clock::own_cpu_time();
        self.writer.reserve_end(self.end_bytes());
        if let Some(tracer) = &self.tracer {
            tracer.instance.set("tracing_on", "1")?;
        }
        self.next_tick = clock::now() + self.tick.as_nanos() as u64;
        fold_per_cpu_counters();
        self.begun = clock::now();
        self.sample()
    }

    /// Takes a sample of the counters.
    pub fn sample(&mut self) -> Result<(), Error> {
        self.sampled = clock::now();
        let found = self.finder.as_mut().map_or_else(Vec::new, |cgroups| cgroups.look(self.sampled));
        let begins = self.finder.as_ref().is_none_or(|cgroups| cgroups.started() == self.sampled);
        self.add_cgroups(found, begins)?;
        let (at, writer) = (self.sampled, &mut self.writer);
        let before = writer.bytes();
        let mut result = Ok(());
        self.sampler.sample(|source, rows| {
            if result.is_ok() {
                result = writer.counters(source, at, &rows);
            }
        });
        self.largest_sample = self.largest_sample.max(self.writer.bytes() - before);
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
        let room = self.room();
        if let Some(drain) = &mut self.drain {
            drain.set_room(room);
            drain.move_whole(&mut self.tasks, &mut self.writer)?;
        }
        let now = clock::now();
        let lines = self.tasks.look_up(now);
        self.name_tasks(lines)?;
        self.delays.iter_mut().for_each(DelayAccounting::gather);
        if now >= self.next_tick {
            let found = self.finder.as_mut().and_then(Cgroups::of_command);
            self.add_cgroups(found.into_iter().collect(), false)?;
            self.tick = (self.tick * 2).min(TICK);
            self.next_tick = now + self.tick.as_nanos() as u64;
        }
        Ok(())
    }

    /// Notes a task that is to be named, whether events come from it or not.
    pub fn saw(&mut self, pid: i32) {
        self.tasks.saw(pid);
    }

    /// Writes what is known of tasks, as far as there is room: a name is worth less than the end of the recording.
    fn name_tasks(&mut self, mut lines: Vec<TaskLine>) -> Result<(), Error> {
        lines.iter().filter_map(|line| line.cgroup.as_deref()).for_each(|cgroup| self.containers.look_up(cgroup));
        if self.max_size != u64::MAX {
            let each = |line: &TaskLine| 128 + line.comm.len() * 6 + line.cgroup.as_ref().map_or(0, String::len) * 6;
            let mut room = self.room();
            lines.retain(|line| {
                let fits = each(line) as u64 <= room;
                room -= if fits { each(line) as u64 } else { 0 };
                fits
            });
        }
        Ok(self.writer.tasks(&lines)?)
    }

    /// Takes the last sample, counters folded, switches tracing off and moves what is left. Tasks can be named until
    /// then.
    ///
    /// # Errors
    /// The first of these that failed; the others were done nevertheless.
    pub fn stop(&mut self) -> Result<(), Error> {
        fold_per_cpu_counters();
        let sampled = self.sample();
        self.stopped = clock::now();
        let off = self.tracer.as_ref().map_or(Ok(()), |tracer| tracer.instance.set("tracing_on", "0"));
        let room = self.room();
        let flushed = self.drain.as_mut().map_or(Ok(()), |drain| {
            drain.set_room(room);
            drain.flush(&mut self.tasks, &mut self.writer)
        });
        // Before the names of those that events came from, which know cgroups too.
        let delays = self.write_delays();
        let lines = self.tasks.finish(clock::now());
        let named = self.name_tasks(lines);
        self.cpu_after = Some(clock::own_cpu_time());
        sampled.and(off).and(flushed).and(delays).and(named)
    }

    /// Writes what the machine held when a workload began.
    pub fn state(&mut self, state: &State) -> Result<(), Error> {
        Ok(self.writer.state(state)?)
    }

    /// Writes what a workload achieved.
    pub fn results(&mut self, results: &Results) -> Result<(), Error> {
        Ok(self.writer.results(results)?)
    }

    /// Gives tracing back to the machine: what was lost is known then, and the instance is gone.
    fn release(&mut self) -> Result<(), Error> {
        let Some(tracer) = self.tracer.take() else { return Ok(()) };
        self.events = Some(tracer.manifest.events.len());
        let losses = tracer.losses();
        let addresses = self.drain.as_ref().and_then(Drain::addresses);
        let narrowed = addresses.map_or(Ok(()), |addresses| {
            let newer = tracer.newer_functions();
            let most = self.max_size.saturating_sub(self.bytes() + self.end_bytes());
            self.writer.narrow_symbols(newer.as_ref().map(|text| text.as_bytes()), &addresses, most)
        });
        // All symbols are as good, only larger; without any, addresses are shown.
        self.notes.extend(narrowed.err().map(|error| error.to_string()));
        // Its files are closed, or it could not be removed.
        let drain = self.drain.take();
        self.page_bytes = drain.as_ref().map_or(0, Drain::bytes);
        self.written = drain.as_ref().map_or(0, Drain::events);
        if let Ok(losses) = &losses {
            let unwritten = |cpu| drain.as_ref().map_or(0, |drain| drain.unwritten(cpu));
            self.losses = losses.iter().map(|l| Losses { unwritten: unwritten(l.cpu), ..*l }).collect();
        }
        drop(drain);
        if let Err(error) = tracer.instance.remove() {
            self.notes.push(error.to_string());
        }
        losses.map(|_| ())
    }

    /// What is known of the end, of which `said` has what the caller knows.
    fn described(&self, said: End) -> End {
        let cpu_time = clock::own_cpu_time();
        let page_bytes = self.page_bytes;
        let cpu_time_recording = self.cpu_after.unwrap_or(cpu_time).saturating_sub(self.cpu_before);
        let cost = Cost { cpu_time, cpu_time_recording, page_bytes, ..Cost::default() };
        let (losses, mut notes) = (self.losses.clone(), self.notes.clone());
        notes.extend(self.finder.as_ref().map(Cgroups::omitted).filter(|n| *n > 0).map(|n| {
            format!("{n} more cgroups hit their limits or stalled; --cgroup records the counters of one of them")
        }));
        let mut containers = self.containers.known().clone();
        if self.max_size != u64::MAX {
            containers.0 = containers.0.into_iter().take(CONTAINERS).collect();
        }
        End { schema_version: SCHEMA_VERSION, end: self.stopped, losses, containers, cost, notes, ..said }
    }

    /// Ends a recording that cannot continue or is as large as it may be: tracing is released, and `end.json` says
    /// why. More can be said with another call, when the command has ended.
    ///
    /// # Errors
    /// The first thing that failed; the others were done nevertheless.
    pub fn cut(&mut self, said: End) -> Result<Outcome, Error> {
        let released = self.release();
        let end = self.writer.end(self.described(said))?;
        released.map(|()| self.outcome(end))
    }

    fn outcome(&self, end: End) -> Outcome {
        let elapsed = self.stopped.saturating_sub(self.begun);
        Outcome { end, events: self.events, written: self.written, elapsed, ..Outcome::default() }
    }

    /// Writes the end, of which `said` has what the caller knows: exit and times.
    pub fn finish(mut self, said: End) -> Result<Outcome, Error> {
        self.release()?;
        let (end, outcome) = (self.described(said), self.outcome(End::default()));
        Ok(Outcome { end: self.writer.finish(end)?, ..outcome })
    }
}

/// Writes what is known at the start: `run.json`, and the manifest, of which `said` has what the caller knows.
pub(crate) fn described(writer: &mut Writer, tracer: Option<&Tracer>, said: Manifest) -> Result<(), Error> {
    writer.run(&Run {
        schema_version: SCHEMA_VERSION,
        started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        tool: TOOL.into(),
    })?;
    Ok(writer.manifest(&Manifest {
        schema_version: SCHEMA_VERSION,
        tool: TOOL.into(),
        clock: clock::TRACE_CLOCK.into(),
        start: clock::now(),
        tracing: tracer.map(|t| t.manifest.clone()),
        ..said
    })?)
}

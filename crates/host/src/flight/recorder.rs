//! The loop of the flight recorder.

use super::capture::Capture;
use super::control::Control;
use super::directory::Directory;
use super::events::Events;
use super::head::{self, BOOT_ID};
use super::orders::{Order, Orders};
use super::ring::Ring;
use super::store::Store;
use super::watch::Watches;
use super::writing::Writing;
use super::{LEAST, Options};
use crate::record::cgroups::Cgroups;
use crate::record::tasks::Tasks;
use crate::record::tracing::{self, Tracer};
use crate::record::{Samples, Signals, Ways, chosen_cgroups, chosen_events, described, descriptors};
use crate::{Error, cgroup, clock, evidence};
use mmtwin_event::manifest::{Manifest, Sampling};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::SIGUSR1;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All events are taken out of the ring buffers at least this often, in nanoseconds: a recorder that is killed loses no
/// more.
const TICK: u64 = 1_000_000_000;

/// What a flight recorder that begins keeps.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// Its directory.
    pub directory: &'a Path,
    /// Size of the ring in bytes.
    pub size: u64,
    /// Enabled events as `system:event`; `None`: counters only.
    pub events: Option<&'a [String]>,
    /// How many of them are recorded with the kernel's stack.
    pub stacks: usize,
    /// Keys of the cgroups that are sampled.
    pub cgroups: &'a [String],
    /// Time between samples of the counters.
    pub interval: Duration,
    /// tracefs is not mounted on this machine, and is for this recorder alone.
    pub own_tracefs: bool,
}

/// How a flight went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Signal that ended it; `None`: its time was over.
    pub signal: Option<i32>,
    /// Recordings that were written out.
    pub dumps: usize,
    /// Bytes of the ring.
    pub bytes: u64,
    /// Nanoseconds that the ring reaches back.
    pub kept: u64,
    /// Events that were kept at some time; `None`: counters only.
    pub events: Option<u64>,
    /// Events lost.
    pub lost: u64,
    /// Nanoseconds from start to end.
    pub elapsed: u64,
    /// CPU time of the recorder in nanoseconds, user and system.
    pub cpu_time: u64,
}

struct Recorder<'a> {
    options: &'a Options,
    directory: Directory,
    capture: Capture,
    orders: Orders,
    writing: Option<Writing>,
    /// Recordings that were written.
    written: usize,
}

/// Records until a signal. `say` takes messages for the user, one line each.
///
/// # Errors
/// If it cannot begin. What goes wrong later is said, and it goes on.
pub fn fly(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Outcome, Error> {
    if options.size < LEAST {
        return Err(Error::Ring { asked: options.size, least: LEAST });
    }
    let mut signals = Signals::take_with(&[SIGUSR1])?;
    let directory = Directory::create(&options.directory)?;
    let mounts = cgroup::mounts();
    let watches = Watches::new(&options.when, Path::new("/proc"), &mounts)?;
    let (sampler, cgroups, directories) = chosen_cgroups(&options.cgroups, &mounts)?;
    let plan = chosen_events(&options.events, say)?;
    let fail = |e| Error::io(directory.segments().to_string_lossy(), e);
    let (ring, repaired) = Ring::open(&directory.segments(), options.size).map_err(fail)?;
    repaired.iter().for_each(|note| say(note));
    descriptors::raise();
    let (plan, no_tracing) = plan.map_or_else(|why| (None, Some(why)), |plan| (Some(plan), None));
    let interval = Some(options.interval.as_nanos() as u64);
    let mut said = Manifest {
        arm: "host".into(),
        counters: Sampling { interval, cgroups: cgroups.clone(), ..Sampling::default() },
        no_tracing,
        evidence: evidence::collect(),
        ..Manifest::default()
    };
    let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
    said.evidence.files.insert(BOOT_ID.into(), boot.trim_end().into());
    let size = tracing::buffer_size(options.buffer, said.evidence.memory, said.evidence.cpus.len());
    let (mut writer, number) = head::begin(&directory)?;
    // Symbols go to the recordings that are written out.
    let ways = Ways { stacks: options.stacks, compress: None, symbols_last: true };
    let tracer = plan.map(|plan| Tracer::create(plan, size, ways, &mut writer)).transpose()?;
    tracer.iter().flat_map(|tracer| &tracer.notes).for_each(|note| say(note));
    described(&mut writer, tracer.as_ref(), said)?;
    let head = head::end(&directory, writer, number)?;
    let used = ring.heads();
    head::remove_unused(&directory, |one| one == head || used.contains(&one))?;
    let saved = tracer.as_ref().map(|tracer| tracer.tracefs.path().join("saved_cmdlines"));
    let events = tracer.map(|tracer| Events::open(tracer, watches.stall())).transpose()?;
    if watches.stall().is_some() && !events.as_ref().is_some_and(Events::sees_stalls) {
        say("no stall will be seen: no events of reclaim or compaction are recorded");
    }
    let control = Control::listen(directory.path())?;
    let sources = (sampler, Cgroups::new(&mounts, &directories));
    let store = Store::new(ring, head, clock::now());
    let capture = Capture::new(events, store, watches, sources, Tasks::new(saved));
    let orders = Orders::new(options);
    let mut recorder = Recorder { options, directory, capture, orders, writing: None, written: 0 };
    let started = clock::now();
    recorder.capture.begin()?;
    if let Some(begun) = options.begun {
        let tracer = recorder.capture.events.as_ref().map(Events::tracer);
        begun(&Begun {
            directory: &options.directory,
            size: options.size,
            events: tracer.map(|tracer| &tracer.manifest.events[..]),
            stacks: tracer.map_or(0, |tracer| tracer.manifest.stacks.len()),
            cgroups: &cgroups,
            interval: options.interval,
            own_tracefs: tracer.is_some_and(|tracer| tracer.tracefs.is_private()),
        });
    }
    let signal = recorder.run(&mut signals, &control, started, say)?;
    Ok(Outcome { signal, elapsed: clock::now() - started, ..recorder.end(say) })
}

impl Recorder<'_> {
    /// Returns the signal that ended the flight; `None`: its time is over.
    fn run(
        &mut self,
        signals: &mut Signals,
        control: &Control,
        started: u64,
        say: &mut dyn FnMut(&str),
    ) -> Result<Option<i32>, Error> {
        let mut samples = Samples::every(Some(self.options.interval));
        let last = self.options.max_time.map_or(u64::MAX, |time| started.saturating_add(time.as_nanos() as u64));
        let mut tick = started + TICK;
        loop {
            let others = [signals.fd(), control.fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // One after the other: what waits for the one that is written has no time of its own.
            let due = if self.writing.is_some() { u64::MAX } else { self.orders.due() };
            self.wait(&others, due.min(samples.next()).min(tick).min(last))?;
            let signal = signals.pending();
            if let Some(end) = signal.iter().find(|signal| **signal != SIGUSR1) {
                return Ok(Some(*end));
            }
            let (requests, now) = (control.requests(), clock::now());
            if !requests.is_empty() {
                self.orders.ask("snap", "mmtwin snap", requests, now);
            }
            if !signal.is_empty() {
                self.orders.ask("signal", "SIGUSR1", Vec::new(), now);
            }
            let mut causes = if samples.due() { self.capture.sample() } else { Vec::new() };
            let all = clock::now() >= tick;
            if all {
                tick = clock::now() + TICK;
            }
            causes.extend(self.capture.gather(all, say));
            let now = clock::now();
            causes.into_iter().filter_map(|cause| self.orders.held(cause, now)).for_each(|message| say(&message));
            self.orders.untold(now).iter().for_each(|message| say(message));
            self.write_out(say);
            self.capture.end_full_segment(self.options.size, &self.directory, say);
            let now = clock::now();
            self.capture.store.troubles(now).iter().for_each(|trouble| say(trouble));
            if now >= last {
                return Ok(None);
            }
        }
    }

    /// Sleeps until one of `others` is ready, a ring buffer is to be emptied, a recording is written, or it is `until`.
    fn wait(&mut self, others: &[PollFd<'_>], until: u64) -> Result<(), Error> {
        let mut fds = others.to_vec();
        fds.extend(self.writing.as_ref().map(Writing::poll_fd));
        let others = fds.len();
        fds.extend(self.capture.poll_fds());
        let left = Duration::from_nanos(until.saturating_sub(clock::now()));
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {
                let woken = fds[others..].iter().any(|fd| !fd.revents().is_empty());
                self.capture.woken(woken);
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::io("waiting for events", e)),
        }
    }

    /// Ends a recording that is written, and begins the next one that is due.
    fn write_out(&mut self, say: &mut dyn FnMut(&str)) {
        if let Some(writing) = self.writing.take_if(|writing| writing.is_over()) {
            let (order, result) = writing.finish();
            self.answer(order, result, say);
        }
        self.capture.store.ring.held = self.writing.as_ref().map(Writing::needs);
        let began = clock::now();
        if self.writing.is_some() {
            return;
        }
        let Some(order) = self.orders.next(began) else { return };
        let mut causes = self.capture.sample();
        causes.extend(self.capture.gather(true, say));
        causes.into_iter().filter_map(|cause| self.orders.held(cause, began)).for_each(|message| say(&message));
        self.capture.end_segment(&self.directory, say);
        let (directory, notes) = ((&self.directory, self.options), self.capture.notes.clone());
        match Writing::begin(order, directory, &self.capture.store, notes, began) {
            Ok(writing) => {
                self.capture.store.ring.held = Some(writing.needs());
                self.writing = Some(writing);
            }
            Err((order, message)) => self.answer(order, Err(message), say),
        }
    }

    /// Says how a recording went to everybody who wants to know.
    fn answer(&mut self, order: Order, result: Result<(PathBuf, Duration), String>, say: &mut dyn FnMut(&str)) {
        match &result {
            Ok((output, took)) => {
                self.written += 1;
                say(&format!("{}: wrote {} in {took:?}", order.cause.text, output.display()));
            }
            Err(message) => say(&format!("{}: no recording is written: {message}", order.cause.text)),
        }
        self.orders.written(&order, clock::now());
        // Who asks may be in another directory.
        let result = result.map(|(output, _)| fs::canonicalize(&output).unwrap_or(output));
        order.requests.into_iter().flatten().for_each(|request| request.answer(&result));
    }

    /// Writes what is asked for, completes the ring and gives tracing back.
    fn end(mut self, say: &mut dyn FnMut(&str)) -> Outcome {
        self.orders.hurry();
        while self.writing.is_some() || self.orders.due() == 0 {
            // The ring goes on: what happens until the end is kept.
            if let Some(writing) = &self.writing {
                let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                // Whatever ends the wait, a look follows.
                let _ = poll(&mut [writing.poll_fd()], Some(&timeout));
            }
            self.capture.gather(false, say);
            self.write_out(say);
        }
        self.capture.stop(&self.directory, say);
        let (ring, head) = (&self.capture.store.ring, self.capture.store.head());
        let mut of_head = ring.segments().filter(|stored| stored.head == head);
        let first = of_head.next();
        let last = of_head.next_back().or(first);
        let kept = first.zip(last).map_or(0, |(first, last)| last.to.saturating_sub(first.from));
        let counts = self.capture.counts();
        Outcome {
            dumps: self.written,
            bytes: ring.bytes(),
            kept,
            events: counts.map(|(events, _)| events),
            lost: counts.map_or(0, |(_, lost)| lost),
            cpu_time: clock::own_cpu_time(),
            ..Outcome::default()
        }
    }
}

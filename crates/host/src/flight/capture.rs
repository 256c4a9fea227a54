//! What the recorder takes in: events, samples of the counters and names of tasks, on their way to the ring.

use super::directory::Directory;
use super::events::{Events, Listening};
use super::head;
use super::samples::{Sample, Samples as Encoder};
use super::segment::{Kind, pack};
use super::store::Store;
use super::watch::{Cause, Watches};
use crate::record::cgroups::{Cgroups, Found};
use crate::record::tasks::Tasks;
use crate::sample::{Sampler, fold_per_cpu_counters};
use crate::{Error, clock};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{Losses, TaskLine};
use rustix::event::PollFd;
use std::io;

const SECOND: u64 = 1_000_000_000;
/// A segment is complete after this time, in nanoseconds, or with this part of the ring, between these bytes.
const SEGMENT_TIME: u64 = 60 * SECOND;
const SEGMENT_PART: u64 = 32;
const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(4 << 20);

/// Everything that is recorded, and where it goes.
pub struct Capture {
    /// `None`: without, or they cannot be read any more.
    pub events: Option<Events>,
    /// The ring.
    pub store: Store,
    /// What went wrong with events, for the recordings that are written out.
    pub notes: Vec<String>,
    listening: Listening,
    sampler: Sampler,
    encoder: Encoder,
    finder: Option<Cgroups>,
    tasks: Tasks,
    watches: Watches,
    /// Time of the last sample.
    sampled: u64,
    /// Events and losses of a source that ended.
    ended: Option<(u64, u64)>,
}

impl Capture {
    /// Nothing is recorded yet.
    pub fn new(
        events: Option<Events>,
        store: Store,
        watches: Watches,
        (sampler, finder): (Sampler, Option<Cgroups>),
        tasks: Tasks,
    ) -> Capture {
        let (listening, encoder, notes) = Default::default();
        let (sampled, ended) = (0, None);
        Capture { events, store, notes, listening, sampler, encoder, finder, tasks, watches, sampled, ended }
    }

    /// Switches tracing on and takes the first sample.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn begin(&mut self) -> Result<(), Error> {
        if let Some(events) = &mut self.events {
            events.begin()?;
        }
        fold_per_cpu_counters();
        self.sample();
        Ok(())
    }

    /// What to wait on.
    pub fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.events.iter().filter(|_| self.listening.listens()).flat_map(Events::poll_fds)
    }

    /// Whether one of these ended the wait.
    pub fn woken(&mut self, woken: bool) {
        self.listening.woken(woken);
    }

    /// Takes a sample of the counters. Returns the conditions that hold by it.
    pub fn sample(&mut self) -> Vec<Cause> {
        let at = clock::now();
        let before = std::mem::replace(&mut self.sampled, at);
        let found = self.finder.as_mut().map_or_else(Vec::new, |finder| finder.look(at));
        let mut first: Sample = Vec::new();
        for Found { key, directory, first: row } in found {
            self.sampler.add_cgroup(&key, &directory);
            if before > 0 && !row.names.is_empty() {
                first.push(("cgroup".into(), row));
            }
        }
        if !first.is_empty() {
            // What it counted until now was counted before it was found, which the sample before did not show.
            self.put_sample(before, first);
        }
        let mut sample: Sample = Vec::new();
        self.sampler
            .sample(|source, rows: Vec<Row>| sample.extend(rows.into_iter().map(|row| (source.to_owned(), row))));
        let causes = self.watches.sampled(at, &sample);
        self.put_sample(at, sample);
        causes
    }

    fn put_sample(&mut self, at: u64, sample: Sample) {
        let written = self.encoder.encode(sample).is_ok_and(|(kind, payload)| self.store.put(kind, 0, at, &payload));
        if !written {
            // The next one must not be told from this.
            self.encoder = Encoder::default();
        }
    }

    /// Empties ring buffers and names tasks. Returns the conditions that hold by the events.
    pub fn gather(&mut self, all: bool, say: &mut dyn FnMut(&str)) -> Vec<Cause> {
        let Capture { events, listening, store, tasks, watches, .. } = self;
        let (mut causes, mut failed) = (Vec::new(), None);
        if let Some(events) = events {
            let before = events.taken();
            failed = events.gather(all, tasks, store).err();
            listening.emptied(all || events.taken() > before);
            causes.extend(events.told().into_iter().filter_map(|told| watches.told(told)));
        }
        if let Some(error) = failed {
            self.lose_events(&error, say);
        }
        let lines = self.tasks.look_up(clock::now());
        self.put_tasks(&lines);
        causes
    }

    fn put_tasks(&mut self, lines: &[TaskLine]) {
        if !lines.is_empty()
            && let Ok(payload) = serde_json::to_vec(lines).map_err(io::Error::from).and_then(|text| pack(&text))
        {
            self.store.put(Kind::Tasks, 0, clock::now(), &payload);
        }
    }

    /// Events cannot be read any more: counters go on.
    fn lose_events(&mut self, error: &Error, say: &mut dyn FnMut(&str)) {
        let note = format!("events cannot be read any more, only counters are recorded from now on: {error}");
        say(&note);
        self.notes.push(format!("{note} (at {} ns of the trace clock)", clock::now()));
        if let Some(events) = self.events.take() {
            self.ended = Some((events.count(), total(events.known_lost())));
        }
    }

    /// Completes a segment; the next one stands for itself.
    pub fn end_segment(&mut self, directory: &Directory, say: &mut dyn FnMut(&str)) {
        let Capture { events, store, .. } = self;
        if let Some(Err(error)) = events.as_mut().map(|events| events.end_segment(store)) {
            self.lose_events(&error, say);
        }
        self.store.close(clock::now());
        self.encoder = Encoder::default();
        self.tasks.renew();
        self.sampler.forget_removed();
        if let Some(finder) = &mut self.finder {
            finder.forget_removed();
        }
        let (used, head) = (self.store.ring.heads(), self.store.head());
        // One that stays is removed another time.
        let _ = head::remove_unused(directory, |one| one == head || used.contains(&one));
    }

    /// Completes the segment that is written if it is large or old enough, for a ring of so many bytes.
    pub fn end_full_segment(&mut self, size: u64, directory: &Directory, say: &mut dyn FnMut(&str)) {
        let limit = (size / SEGMENT_PART).clamp(*SEGMENT_BYTES.start(), *SEGMENT_BYTES.end());
        let now = clock::now();
        if self.store.open().is_some_and(|(bytes, from)| bytes >= limit || now.saturating_sub(from) >= SEGMENT_TIME) {
            self.end_segment(directory, say);
        }
    }

    /// Takes the last sample, switches tracing off, and completes the ring.
    pub fn stop(&mut self, directory: &Directory, say: &mut dyn FnMut(&str)) {
        fold_per_cpu_counters();
        self.sample();
        let Capture { events, store, tasks, .. } = self;
        if let Some(Err(error)) = events.as_mut().map(|events| events.stop(tasks, store)) {
            say(&error.to_string());
        }
        let lines = self.tasks.finish(clock::now());
        self.put_tasks(&lines);
        self.end_segment(directory, say);
        self.store.troubles(u64::MAX).iter().for_each(|trouble| say(trouble));
    }

    /// Events that were kept at some time, and events that were lost. `None`: counters only.
    pub fn counts(&self) -> Option<(u64, u64)> {
        let counts = |events: &Events| {
            let lost = events.lost().map_or_else(|_| total(events.known_lost()), |lost| total(&lost));
            (events.count(), lost)
        };
        self.events.as_ref().map(counts).or(self.ended)
    }
}

fn total(lost: &[Losses]) -> u64 {
    lost.iter().map(Losses::total).sum()
}

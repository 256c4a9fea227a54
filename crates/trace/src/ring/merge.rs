//! All CPUs of a recording as one stream, handed to a sink.
//!
//! Instead of a heap over CPUs, the entries of a short span of time are gathered CPU by CPU (sequential reads) and
//! sorted by time (a few counting passes over 8 bytes per entry). The span adapts so that it holds some thousand
//! entries: they and their records stay in the second-level cache. So the cost per event hardly depends on the number
//! of CPUs. A span is not even sorted if the sink needs only order within tasks and no task changed its CPU in it:
//! then CPU after CPU is handed over as it was read, which is most spans of most recordings.
//!
//! A recording that is not small is read by two threads: one decompresses, gathers and sorts, the caller's hands over. If
//! the sink has halves, a third hands over to the second of them. Each sees the same calls in the same order as with one
//! thread.

use super::moves::Moves;
use super::page::{Cursor, Entry, Position, Reading};
use super::span::{OfHalf, Span, Taker, Undivided};
use super::{CpuStream, PageLayout, TimeMap};
use crate::format::Formats;
use crate::{Error, Outcome};
use mmtwin_event::{Kind, Sink};
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{available_parallelism, scope};

/// Entries aimed at per span: 32 bytes each and some 40 of record fill a quarter of a megabyte.
const TARGET: usize = 4 << 10;
/// A span with more is gathered again, narrower, so that memory is bounded whatever the burst.
const LIMIT: usize = 16 * TARGET;
/// More threads start behind so many events: before, they would cost more than they save. Few in tests, whose recordings
/// are small.
const SMALL: u64 = if cfg!(test) { 1 << 6 } else { 1 << 16 };
/// Groups of spans that wait for a thread.
const AHEAD: usize = 4;
/// Entries and spans of a group at least, but for the last: to wake a thread costs as much as some hundred entries.
const GROUP: usize = 2 * TARGET;
const SPANS: usize = 16;

/// Delivers all events of `streams` to `sink` in the order it asks for, by (time, CPU, sequence) where it does not say.
/// `progress` is told the number of events so far, now and then.
pub fn deliver(
    streams: Vec<CpuStream<'_>>,
    layout: &PageLayout,
    formats: &Formats,
    time: &TimeMap,
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let reading = Reading { layout: *layout, common: formats.common(), time: *time };
    let mut spans = Spans::new(streams, reading, formats, Moves::new(formats, sink));
    let mut span = Span::default();
    let small = outcome.events.saturating_add(SMALL);
    let mut alone = false;
    while alone || outcome.events < small {
        if !spans.next(&mut span)? {
            return Ok(());
        }
        span.tell(outcome);
        span.give(formats, &mut Undivided(sink));
        progress(outcome.events);
        // Asked once, where it matters: the answer is in files.
        alone = alone || outcome.events >= small && available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    }
    let Some([first, second]) = sink.halves() else {
        return spans.ahead(&mut Undivided(sink), None, outcome, progress);
    };
    let [mut first, mut second] = [first, second].map(|half| OfHalf::new(half, formats));
    let read = spans.ahead(&mut first, Some(&mut second), outcome, progress);
    drop((first, second));
    sink.join();
    read
}

/// Spans that follow one another.
#[derive(Default)]
struct Group<'a> {
    list: Vec<Span<'a>>,
    /// Of the list; the rest is memory for others.
    filled: usize,
}

impl<'a> Group<'a> {
    fn spans(&self) -> impl Iterator<Item = &Span<'a>> {
        self.list[..self.filled].iter()
    }
}

/// Cuts streams into spans.
struct Spans<'a, 'f> {
    cursors: Vec<Cursor<'a>>,
    reading: Reading,
    formats: &'f Formats,
    moves: Moves,
    /// Width of the next span in nanoseconds, less one, and start of the current one.
    width: u64,
    start: u64,
    before: Vec<Position>,
    keys: Vec<(u32, u32)>,
    scratch: Vec<(u32, u32)>,
}

impl<'a, 'f> Spans<'a, 'f> {
    fn new(mut streams: Vec<CpuStream<'a>>, reading: Reading, formats: &'f Formats, moves: Moves) -> Self {
        streams.sort_by_key(|s| s.cpu);
        let cursors: Vec<_> = streams.into_iter().map(Cursor::new).collect();
        let (before, keys, scratch) = Default::default();
        Spans { cursors, reading, formats, moves, width: 1 << 17, start: 0, before, keys, scratch }
    }

    /// Gives the rest away: another thread gathers, this one hands over to `first`, and a third to `second`.
    fn ahead(
        mut self,
        first: &mut impl Taker,
        second: Option<&mut OfHalf<'_>>,
        outcome: &mut Outcome,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let formats = self.formats;
        scope(|scope| {
            let (gathered, waiting) = sync_channel(AHEAD);
            let (done, used) = channel::<Arc<Group<'a>>>();
            let shared = second.map(|second| {
                let (shared, waiting) = sync_channel::<Arc<Group<'a>>>(AHEAD);
                let done = done.clone();
                scope.spawn(move || {
                    for group in waiting {
                        group.spans().for_each(|span| span.give(formats, second));
                        // The gathering thread may have read everything and be gone.
                        let _ = done.send(group);
                    }
                });
                shared
            });
            scope.spawn(move || {
                loop {
                    // The last who was done with a group leaves its memory.
                    let mut group: Group<'a> = used.try_iter().find_map(Arc::into_inner).unwrap_or_default();
                    let read = self.fill(&mut group);
                    let group = Arc::new(group);
                    if let Some(shared) = &shared
                        && shared.send(group.clone()).is_err()
                    {
                        return;
                    }
                    let ended = !matches!(read, Ok(true));
                    if gathered.send((group, read)).is_err() || ended {
                        return;
                    }
                }
            });
            for (group, read) in waiting {
                for span in group.spans() {
                    span.tell(outcome);
                    span.give(formats, first);
                    progress(outcome.events);
                }
                let _ = done.send(group);
                read?;
            }
            Ok(())
        })
    }

    /// Gathers a group; false at the end. It has what is before an error.
    fn fill(&mut self, group: &mut Group<'a>) -> Result<bool, Error> {
        group.filled = 0;
        let mut entries = 0;
        while entries < GROUP && group.filled < SPANS {
            if group.list.len() == group.filled {
                group.list.push(Span::default());
            }
            let span = &mut group.list[group.filled];
            if !self.next(span)? {
                return Ok(false);
            }
            entries += span.entries.len();
            group.filled += 1;
        }
        Ok(true)
    }

    /// Gathers the next span; false at the end.
    fn next(&mut self, span: &mut Span<'a>) -> Result<bool, Error> {
        // A fresh cursor has `next == 0`: the first span of each stream starts there and finds its true time.
        let Some(start) = self.cursors.iter().filter(|c| !c.position.done).map(|c| c.position.next).min() else {
            return Ok(false);
        };
        self.start = start;
        self.cursors.iter_mut().for_each(Cursor::release);
        self.before.clear();
        self.before.extend(self.cursors.iter().map(|c| c.position));
        loop {
            span.clear();
            let to = start.saturating_add(self.width);
            let mut overfull = false;
            for (i, cursor) in self.cursors.iter_mut().enumerate() {
                if cursor.position.done || cursor.position.next > to {
                    continue;
                }
                cursor.gather(i as u32, to, &self.reading, &mut span.entries, &mut span.warnings)?;
                overfull = span.entries.len() > LIMIT && self.width > 0;
                if overfull {
                    break;
                }
            }
            if !overfull {
                break;
            }
            self.width /= 8;
            for (cursor, before) in self.cursors.iter_mut().zip(&self.before) {
                cursor.position = *before;
            }
        }
        if span.entries.len() < TARGET / 2 {
            self.width = (self.width * 2 + 1).min(u64::from(u32::MAX));
        } else if span.entries.len() > 2 * TARGET {
            self.width /= 2;
        }
        self.note(span);
        if !self.moves.within_tasks(&span.entries) {
            self.sort(&span.entries, &mut span.sorted);
        }
        Ok(true)
    }

    /// Takes note of the bytes that entries point into, of what they are, and of records that no format fits.
    fn note(&self, span: &mut Span<'a>) {
        span.streams.resize(self.cursors.len(), (0, 0));
        let mut stream = u32::MAX;
        for entry in &span.entries {
            let cursor = &self.cursors[entry.stream as usize];
            if entry.stream != stream {
                stream = entry.stream;
                span.streams[stream as usize] = (cursor.cpu, span.chunks.len() as u32);
                span.chunks.extend_from_slice(&cursor.chunks);
            }
            if entry.len == Entry::LOST {
                span.lost.push((cursor.cpu, entry.lost()));
                continue;
            }
            span.events += 1;
            match self.formats.get(entry.common.id) {
                Some(f) if f.kind != Kind::Other && (entry.len as usize) < f.size => {
                    span.untyped += 1;
                    let message = "a record is too short for the fields of its event, which stays untyped";
                    span.warnings.add(|| cursor.place(entry), message);
                }
                Some(f) if f.kind != Kind::Other => {}
                Some(f) if f.is_stack() => {
                    span.events -= 1;
                    span.stacks += 1;
                }
                Some(_) => span.untyped += 1,
                None => {
                    span.untyped += 1;
                    let message = "events of a type whose format is not in the recording";
                    span.warnings.add(|| cursor.place(entry), message);
                }
            }
        }
    }

    /// Indices of entries by time; entries of one time stay in order of CPU and sequence.
    fn sort(&mut self, entries: &[Entry], sorted: &mut Vec<u32>) {
        let n = entries.len();
        if entries.is_sorted_by_key(|e| e.ts) {
            sorted.extend(0..n as u32);
            return;
        }
        self.keys.clear();
        self.keys.extend(entries.iter().zip(0..).map(|(e, i)| ((e.ts - self.start) as u32, i)));
        if n < 256 {
            self.keys.sort_by_key(|k| k.0);
        } else {
            let highest = self.keys.iter().map(|k| k.0).max().unwrap_or(0);
            self.scratch.resize(n, (0, 0));
            for shift in (0..32 - highest.leading_zeros()).step_by(11) {
                let mut starts = [0u32; 1 << 11];
                for k in &self.keys {
                    starts[(k.0 >> shift) as usize & 2047] += 1;
                }
                let mut sum = 0;
                for s in &mut starts {
                    (*s, sum) = (sum, sum + *s);
                }
                for k in &self.keys {
                    let slot = &mut starts[(k.0 >> shift) as usize & 2047];
                    self.scratch[*slot as usize] = *k;
                    *slot += 1;
                }
                std::mem::swap(&mut self.keys, &mut self.scratch);
            }
            self.keys.truncate(n);
        }
        sorted.extend(self.keys.iter().map(|k| k.1));
    }
}

//! All CPUs of a recording as one stream, handed to a sink.
//!
//! Instead of a heap over CPUs, the entries of a short span of time are gathered CPU by CPU (sequential reads) and
//! sorted by time (a few counting passes over 8 bytes per entry). The span adapts so that it holds some thousand
//! entries: they and their records stay in the second-level cache. So the cost per event hardly depends on the number
//! of CPUs. A span is not even sorted if the sink needs only order within tasks and no task changed its CPU in it:
//! then CPU after CPU is handed over as it was read, which is most spans of most recordings.
//!
//! A recording that is not small is read by two threads: one decompresses, gathers and sorts, the caller's hands over. The
//! sink sees the same calls in the same order.

use super::moves::Moves;
use super::page::{Chunk, Cursor, Entry, Position, Reading};
use super::{CpuStream, PageLayout, TimeMap};
use crate::format::Formats;
use crate::{Error, Outcome, Warnings};
use mmtwin_event::{Event, Fields, Kind, Sink};
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{available_parallelism, scope};

/// Entries aimed at per span: 32 bytes each and some 40 of record fill a quarter of a megabyte.
const TARGET: usize = 4 << 10;
/// A span with more is gathered again, narrower, so that memory is bounded whatever the burst.
const LIMIT: usize = 16 * TARGET;
/// A second thread starts behind so many events: before, it would cost more than it saves. Few in tests, whose recordings
/// are small.
const SMALL: u64 = if cfg!(test) { 1 << 6 } else { 1 << 16 };
/// Spans that wait for the sink.
const AHEAD: usize = 4;

/// Delivers all events of `streams` to `sink` in the order it asks for, by (time, CPU, sequence) where it does not say.
pub fn deliver(
    streams: Vec<CpuStream<'_>>,
    layout: &PageLayout,
    formats: &Formats,
    time: &TimeMap,
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let reading = Reading { layout: *layout, common: formats.common(), time: *time };
    let mut spans = Spans::new(streams, reading, formats, Moves::new(formats, sink));
    let mut span = Span::default();
    let alone = available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    let small = outcome.events.saturating_add(SMALL);
    while alone || outcome.events < small {
        if !spans.next(&mut span)? {
            return Ok(());
        }
        span.hand_over(formats, sink, outcome);
    }
    scope(|scope| {
        let (gathered, waiting) = sync_channel(AHEAD);
        let (done, used) = channel();
        scope.spawn(move || {
            loop {
                let mut span: Span<'_> = used.try_recv().unwrap_or_default();
                let next = match spans.next(&mut span) {
                    Ok(false) => return,
                    Ok(true) => Ok(span),
                    Err(error) => Err(error),
                };
                // The receiver is gone where an error ended the reading.
                if gathered.send(next).is_err() {
                    return;
                }
            }
        });
        for span in waiting {
            let mut span = span?;
            span.hand_over(formats, sink, outcome);
            // The other thread may have read everything and be gone.
            let _ = done.send(span);
        }
        Ok(())
    })
}

/// The entries of a span of time, with the bytes they point into.
#[derive(Default)]
struct Span<'a> {
    /// CPU by CPU.
    entries: Vec<Entry>,
    /// Indices of `entries` by time; empty if the sink takes them as they are.
    sorted: Vec<u32>,
    /// CPU and place among `chunks` of the first of each stream that has entries here.
    streams: Vec<(u32, u32)>,
    chunks: Vec<Chunk<'a>>,
    warnings: Warnings,
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
            span.warnings = Warnings::default();
            span.entries.clear();
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
        span.sorted.clear();
        if !self.moves.within_tasks(&span.entries) {
            self.sort(&span.entries, &mut span.sorted);
        }
        Ok(true)
    }

    /// Takes note of the bytes that entries point into, and of records that no format fits.
    fn note(&self, span: &mut Span<'a>) {
        span.chunks.clear();
        span.streams.clear();
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
                continue;
            }
            match self.formats.get(entry.common.id) {
                Some(f) if f.kind != Kind::Other && (entry.len as usize) < f.size => {
                    let message = "a record is too short for the fields of its event, which stays untyped";
                    span.warnings.add(|| cursor.place(entry), message);
                }
                Some(_) => {}
                None => {
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

impl Span<'_> {
    /// Gives the entries to the sink, in order of time where they were sorted.
    fn hand_over(&mut self, formats: &Formats, sink: &mut dyn Sink, outcome: &mut Outcome) {
        outcome.warnings.append(std::mem::take(&mut self.warnings));
        if self.sorted.is_empty() {
            self.give(self.entries.iter(), formats, sink, outcome);
        } else {
            self.give(self.sorted.iter().map(|&index| &self.entries[index as usize]), formats, sink, outcome);
        }
    }

    #[inline]
    fn give<'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry>,
        formats: &Formats,
        sink: &mut dyn Sink,
        outcome: &mut Outcome,
    ) {
        // CPU and bytes of the entry before: mostly those of the next too.
        let (mut stream, mut chunk, mut cpu, mut bytes): (_, _, _, &[u8]) = (u32::MAX, 0, 0, &[]);
        for entry in entries {
            if entry.len == Entry::LOST {
                let (cpu, _) = self.streams[entry.stream as usize];
                let count = (entry.offset != 0).then_some(u64::from(entry.offset));
                outcome.add_lost(cpu, count);
                sink.lost(cpu, count, entry.ts);
                continue;
            }
            if (entry.stream, entry.chunk) != (stream, chunk) {
                (stream, chunk) = (entry.stream, entry.chunk);
                let first;
                (cpu, first) = self.streams[stream as usize];
                bytes = &self.chunks[(first + chunk) as usize];
            }
            let ahead = &bytes[entry.offset as usize..];
            let raw = &ahead[..entry.len as usize];
            let common = entry.common;
            let (mut kind, mut name, mut fields) = (Kind::Other, "unknown", Fields::Untyped);
            let mut is_stack = false;
            if let Some(f) = formats.get(common.id) {
                name = &f.name;
                is_stack = f.is_stack();
                if f.kind != Kind::Other && raw.len() >= f.size {
                    kind = f.kind;
                    fields = Fields::Record(&f.layout, ahead);
                }
            }
            outcome.stacks += u64::from(is_stack);
            outcome.events += u64::from(!is_stack);
            outcome.untyped += u64::from(kind == Kind::Other && !is_stack);
            sink.event(&Event {
                ts: entry.ts,
                cpu,
                pid: common.pid,
                tgid: 0,
                flags: common.flags,
                preempt_count: common.preempt_count,
                kind,
                id: common.id.into(),
                comm: b"",
                name,
                raw,
                fields,
            });
        }
    }
}

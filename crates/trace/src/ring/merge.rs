//! All CPUs of a recording as one stream, handed to a sink.
//!
//! Instead of a heap over CPUs, the entries of a short span of time are gathered CPU by CPU (sequential reads) and
//! sorted by time (a few counting passes over 8 bytes per entry). The span adapts so that it holds some thousand
//! entries: they and their records stay in the second-level cache. So the cost per event hardly depends on the number
//! of CPUs. A span is not even sorted if the sink needs only order within tasks and no task changed its CPU in it:
//! then CPU after CPU is handed over as it was read, which is most spans of most recordings.

use super::moves::Moves;
use super::page::{Cursor, Entry, Position, Reading};
use super::{CpuStream, PageLayout, TimeMap};
use crate::format::Formats;
use crate::{Error, Outcome, Warnings};
use mmtwin_event::{Event, Fields, Kind, Sink};

/// Entries aimed at per span: 32 bytes each and some 40 of record fill a quarter of a megabyte.
const TARGET: usize = 4 << 10;
/// A span with more is gathered again, narrower, so that memory is bounded whatever the burst.
const LIMIT: usize = 16 * TARGET;

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
    let mut spans = Spans::new(streams, reading);
    let mut moves = Moves::new(formats, sink);
    while spans.next(&mut outcome.warnings)? {
        if moves.within_tasks(&spans.entries) {
            hand_over(spans.entries.iter(), &spans.cursors, formats, sink, outcome);
        } else {
            spans.sort();
            let in_order = spans.sorted.iter().map(|&index| &spans.entries[index as usize]);
            hand_over(in_order, &spans.cursors, formats, sink, outcome);
        }
    }
    Ok(())
}

/// Cuts streams into spans.
struct Spans<'a> {
    cursors: Vec<Cursor<'a>>,
    reading: Reading,
    /// Entries of the current span, CPU by CPU.
    entries: Vec<Entry>,
    /// Indices of `entries` by time, if they were sorted.
    sorted: Vec<u32>,
    /// First nanosecond of the current span, and width of the next, less one.
    start: u64,
    width: u64,
    before: Vec<Position>,
    keys: Vec<(u32, u32)>,
    scratch: Vec<(u32, u32)>,
}

impl<'a> Spans<'a> {
    fn new(mut streams: Vec<CpuStream<'a>>, reading: Reading) -> Self {
        streams.sort_by_key(|s| s.cpu);
        let cursors: Vec<_> = streams.into_iter().map(Cursor::new).collect();
        let (before, entries, sorted, keys, scratch) = Default::default();
        Spans { cursors, reading, entries, sorted, start: 0, width: 1 << 17, before, keys, scratch }
    }

    /// Gathers the next span; false at the end.
    fn next(&mut self, warnings: &mut Warnings) -> Result<bool, Error> {
        // A fresh cursor has `next == 0`: the first span of each stream starts there and finds its true time.
        let Some(start) = self.cursors.iter().filter(|c| !c.position.done).map(|c| c.position.next).min() else {
            return Ok(false);
        };
        self.start = start;
        self.cursors.iter_mut().for_each(Cursor::release);
        self.before.clear();
        self.before.extend(self.cursors.iter().map(|c| c.position));
        loop {
            let mut found = Warnings::default();
            self.entries.clear();
            let to = start.saturating_add(self.width);
            let mut overfull = false;
            for (i, cursor) in self.cursors.iter_mut().enumerate() {
                if cursor.position.done || cursor.position.next > to {
                    continue;
                }
                cursor.gather(i as u32, to, &self.reading, &mut self.entries, &mut found)?;
                overfull = self.entries.len() > LIMIT && self.width > 0;
                if overfull {
                    break;
                }
            }
            if !overfull {
                warnings.append(found);
                break;
            }
            self.width /= 8;
            for (cursor, before) in self.cursors.iter_mut().zip(&self.before) {
                cursor.position = *before;
            }
        }
        if self.entries.len() < TARGET / 2 {
            self.width = (self.width * 2 + 1).min(u64::from(u32::MAX));
        } else if self.entries.len() > 2 * TARGET {
            self.width /= 2;
        }
        Ok(true)
    }

    /// Fills `sorted` with the order by time; entries of one time stay in order of CPU and sequence.
    fn sort(&mut self) {
        let n = self.entries.len();
        self.sorted.clear();
        if self.entries.is_sorted_by_key(|e| e.ts) {
            self.sorted.extend(0..n as u32);
            return;
        }
        self.keys.clear();
        self.keys.extend(self.entries.iter().zip(0..).map(|(e, i)| ((e.ts - self.start) as u32, i)));
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
        self.sorted.extend(self.keys.iter().map(|k| k.1));
    }
}

/// Gives entries to the sink.
#[inline]
fn hand_over<'e>(
    entries: impl Iterator<Item = &'e Entry>,
    cursors: &[Cursor<'_>],
    formats: &Formats,
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
) {
    // CPU and bytes of the entry before: mostly those of the next too.
    let (mut stream, mut chunk, mut cpu, mut bytes): (_, _, _, &[u8]) = (u32::MAX, 0, 0, &[]);
    for entry in entries {
        let cursor = &cursors[entry.stream as usize];
        if entry.len == Entry::LOST {
            let count = (entry.offset != 0).then_some(u64::from(entry.offset));
            outcome.add_lost(cursor.cpu, count);
            sink.lost(cursor.cpu, count, entry.ts);
            continue;
        }
        if (entry.stream, entry.chunk) != (stream, chunk) {
            (stream, chunk, cpu, bytes) = (entry.stream, entry.chunk, cursor.cpu, &cursor.chunks[entry.chunk as usize]);
        }
        let ahead = &bytes[entry.offset as usize..];
        let raw = &ahead[..entry.len as usize];
        let common = entry.common;
        let (mut kind, mut name, mut fields) = (Kind::Other, "unknown", Fields::Untyped);
        let mut is_stack = false;
        match formats.get(common.id) {
            Some(f) => {
                name = &f.name;
                is_stack = f.is_stack();
                if f.kind != Kind::Other && raw.len() >= f.size {
                    kind = f.kind;
                    fields = Fields::Record(&f.layout, ahead);
                } else if f.kind != Kind::Other {
                    let message = "a record is too short for the fields of its event, which stays untyped";
                    outcome.warnings.add(|| cursor.place(entry), message);
                }
            }
            None => {
                let message = "events of a type whose format is not in the recording";
                outcome.warnings.add(|| cursor.place(entry), message);
            }
        }
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

//! All CPUs of a recording in one time order, handed to a sink.
//!
//! Instead of a heap over CPUs, the entries of a short span of time are gathered CPU by CPU (sequential reads) and
//! sorted by time (a few counting passes over 8 bytes per entry). The span adapts so that it holds some thousand
//! entries: they and their records stay in the second-level cache. The cost per event hardly depends on the number of
//! CPUs, and every analysis gets global order, (time, CPU, sequence), without asking for it.

use super::page::{Cursor, Entry, Position};
use super::{CpuStream, PageLayout, TimeMap};
use crate::format::Formats;
use crate::{Error, Outcome, Warnings};
use mmtwin_event::{Event, Fields, Kind, Sink};

/// Entries aimed at per span: 24 bytes each and some 40 of record fill half a megabyte.
const TARGET: usize = 8 << 10;
/// A span with more is gathered again, narrower, so that memory is bounded whatever the burst.
const LIMIT: usize = 16 * TARGET;

/// Delivers all events of `streams` to `sink` in order of (time, CPU, sequence).
pub fn deliver(
    streams: Vec<CpuStream<'_>>,
    layout: &PageLayout,
    formats: &Formats,
    time: &TimeMap,
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let mut spans = Spans::new(streams, layout, time)?;
    while let Some(order) = spans.next(&mut outcome.warnings)? {
        for &index in order.indices {
            hand_over(&order.entries[index as usize], order.cursors, formats, sink, outcome);
        }
    }
    Ok(())
}

/// The entries of one span, sorted.
struct Span<'s, 'a> {
    indices: &'s [u32],
    entries: &'s [Entry],
    cursors: &'s [Cursor<'a>],
}

/// Cuts streams into spans.
struct Spans<'a, 'l> {
    cursors: Vec<Cursor<'a>>,
    before: Vec<Position>,
    layout: &'l PageLayout,
    time: &'l TimeMap,
    /// Width of the next span in nanoseconds, less one.
    width: u64,
    entries: Vec<Entry>,
    keys: Vec<(u32, u32)>,
    scratch: Vec<(u32, u32)>,
    indices: Vec<u32>,
}

impl<'a, 'l> Spans<'a, 'l> {
    fn new(mut streams: Vec<CpuStream<'a>>, layout: &'l PageLayout, time: &'l TimeMap) -> Result<Self, Error> {
        streams.sort_by_key(|s| s.cpu);
        let cursors: Vec<_> = streams.into_iter().map(Cursor::new).collect();
        let before = cursors.iter().map(|c| c.position).collect();
        let (entries, keys, scratch, indices) = Default::default();
        Ok(Spans { cursors, before, layout, time, width: 1 << 17, entries, keys, scratch, indices })
    }

    fn next(&mut self, warnings: &mut Warnings) -> Result<Option<Span<'_, 'a>>, Error> {
        // A fresh cursor has `next == 0`: the first span of each stream starts there and finds its true time.
        let Some(start) = self.cursors.iter().filter(|c| !c.position.done).map(|c| c.position.next).min() else {
            return Ok(None);
        };
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
                cursor.gather(i as u32, to, self.layout, self.time, &mut self.entries, &mut found)?;
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
        self.sort(start);
        if self.entries.len() < TARGET / 2 {
            self.width = (self.width * 2 + 1).min(u64::from(u32::MAX));
        } else if self.entries.len() > 2 * TARGET {
            self.width /= 2;
        }
        Ok(Some(Span { indices: &self.indices, entries: &self.entries, cursors: &self.cursors }))
    }

    /// Fills `indices` with the order by time; entries of one time stay in order of CPU and sequence.
    fn sort(&mut self, start: u64) {
        let n = self.entries.len();
        self.indices.clear();
        if self.entries.is_sorted_by_key(|e| e.ts) {
            self.indices.extend(0..n as u32);
            return;
        }
        self.keys.clear();
        self.keys.extend(self.entries.iter().zip(0..).map(|(e, i)| ((e.ts - start) as u32, i)));
        if n < 256 {
            self.keys.sort_by_key(|k| k.0);
        } else {
            let bits = 64 - self.entries.iter().map(|e| e.ts - start).max().unwrap_or(0).leading_zeros();
            self.scratch.resize(n, (0, 0));
            for shift in (0..bits).step_by(11) {
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
        self.indices.extend(self.keys.iter().map(|k| k.1));
    }
}

#[inline]
fn hand_over(entry: &Entry, cursors: &[Cursor<'_>], formats: &Formats, sink: &mut dyn Sink, outcome: &mut Outcome) {
    let cursor = &cursors[entry.stream as usize];
    if entry.len == Entry::LOST {
        let count = (entry.offset != 0).then_some(u64::from(entry.offset));
        outcome.add_lost(cursor.cpu, count);
        return sink.lost(cursor.cpu, count, entry.ts);
    }
    let start = entry.offset as usize;
    let raw = &cursor.chunks[entry.chunk as usize][start..start + entry.len as usize];
    let Some(common) = formats.common().read(raw) else {
        let message = "a record is too short for its common fields";
        return outcome.warnings.add(|| cursor.place(entry), message);
    };
    let event = Event {
        ts: entry.ts,
        cpu: cursor.cpu,
        pid: common.pid,
        tgid: 0,
        flags: common.flags,
        preempt_count: common.preempt_count,
        kind: Kind::Other,
        id: common.id.into(),
        comm: b"",
        name: "",
        raw,
        fields: Fields::Untyped,
    };
    outcome.events += 1;
    match formats.get(common.id) {
        Some(f) if f.kind == Kind::Other => {
            outcome.untyped += 1;
            sink.event(&Event { name: &f.name, ..event });
        }
        Some(f) => sink.event(&Event { name: &f.name, kind: f.kind, fields: Fields::Record(&f.layout), ..event }),
        None => {
            outcome.untyped += 1;
            outcome.warnings.add(|| cursor.place(entry), "events of a type whose format is not in the recording");
            sink.event(&Event { name: "unknown", ..event });
        }
    }
}

//! Decoding of one CPU's sub-buffers into records.
//!
//! Models the ring buffer of Linux 2.6.36 to 6.18 as `events/header_page` and `events/header_event` describe it:
//! base time, commit word with its missed-event bits, and records of type length and time delta. Left out:
//! nothing that a reader meets. Validated record for record against `trace-cmd report` on kernels 6.1 and 6.18.

use super::{CpuStream, PageLayout, TimeMap};
use crate::{Error, Place, Warnings};
use std::borrow::Cow;

/// A record found in a page, or a loss before a page.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Nanoseconds; never less than that of the entry before on this CPU.
    pub ts: u64,
    /// Index of the CPU stream.
    pub stream: u32,
    /// Index of the chunk within the stream's kept chunks.
    pub chunk: u32,
    /// Offset of the payload in the chunk; for a loss, the number of lost events, 0 if unknown.
    pub offset: u32,
    /// Length of the payload, or [`Entry::LOST`].
    pub len: u32,
}

impl Entry {
    /// `len` of an entry that stands for lost events.
    pub const LOST: u32 = u32::MAX;
}

const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const COMMIT_MASK: u64 = (1 << 27) - 1;
const DELTA_MASK: u32 = (1 << 27) - 1;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;

/// Where decoding stands in a stream. Putting an old one back rewinds within the chunks that are still kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    chunk: usize,
    /// Start of the page after the current one, in the chunk.
    next_page: usize,
    /// Next record, and end of the records of the current page.
    at: usize,
    end: usize,
    /// Recorded (unmapped) time of the record before.
    raw_time: u64,
    /// Mapped time of the entry before.
    last: u64,
    /// Time of the next entry; meaningless when `done`.
    pub next: u64,
    /// There are no entries left.
    pub done: bool,
}

/// One CPU's records.
pub struct Cursor<'a> {
    /// Logical CPU number.
    pub cpu: u32,
    /// Chunks that entries handed out since the last [`Cursor::release`] may point into.
    pub chunks: Vec<Cow<'a, [u8]>>,
    /// Where decoding stands.
    pub position: Position,
    stream: CpuStream<'a>,
    exhausted: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first record.
    pub fn new(stream: CpuStream<'a>) -> Cursor<'a> {
        Cursor { cpu: stream.cpu, chunks: Vec::new(), position: Position::default(), stream, exhausted: false }
    }

    /// Forgets the chunks that lie wholly before the position.
    pub fn release(&mut self) {
        self.chunks.drain(..self.position.chunk.min(self.chunks.len()));
        self.position.chunk = 0;
    }

    /// Appends all entries with a time up to and including `to`, as stream number `index`.
    pub fn gather(
        &mut self,
        index: u32,
        to: u64,
        layout: &PageLayout,
        time: &TimeMap,
        out: &mut Vec<Entry>,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        if layout.big_endian {
            self.gather_as::<true>(index, to, layout, time, out, warnings)
        } else {
            self.gather_as::<false>(index, to, layout, time, out, warnings)
        }
    }

    fn gather_as<const BE: bool>(
        &mut self,
        index: u32,
        to: u64,
        layout: &PageLayout,
        time: &TimeMap,
        out: &mut Vec<Entry>,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let mut p = self.position;
        while !p.done {
            if p.chunk >= self.chunks.len() {
                let next = if self.exhausted { None } else { self.stream.pages.next_chunk()? };
                match next {
                    Some(chunk) => self.chunks.push(chunk),
                    None => {
                        self.exhausted = true;
                        p.done = true;
                    }
                }
                continue;
            }
            let chunk: &[u8] = &self.chunks[p.chunk];
            // The records of the current page.
            while p.at < p.end {
                let (Some(word), second) = (word::<BE>(chunk, p.at), word::<BE>(chunk, p.at + 4)) else { break };
                let (kind, delta) = if BE { (word >> 27, word & DELTA_MASK) } else { (word & 31, word >> 5) };
                let stamp = p.raw_time.wrapping_add(u64::from(delta));
                let second = second.unwrap_or(0) as usize;
                let (skip, len) = match kind {
                    0 => (8, second.wrapping_sub(4)),
                    1..PADDING => (4, kind as usize * 4),
                    PADDING if delta == 0 => {
                        p.at = p.end;
                        break;
                    }
                    PADDING => {
                        p.raw_time = stamp;
                        p.at += 4 + second;
                        continue;
                    }
                    TIME_EXTEND => {
                        p.raw_time = stamp.wrapping_add((second as u64) << 27);
                        p.at += 8;
                        continue;
                    }
                    _ => {
                        p.raw_time = ((second as u64) << 27 | u64::from(delta)) | p.raw_time & (31 << 59);
                        p.at += 8;
                        continue;
                    }
                };
                if len > p.end || p.at + skip + len > p.end {
                    let place = || place_of(&self.stream, chunk.len(), p.at);
                    warnings.add(place, "a record reaches beyond its page; the rest of the page is skipped");
                    p.at = p.end;
                    break;
                }
                let mut ts = time.ns(stamp);
                if ts < p.last {
                    let place = || place_of(&self.stream, chunk.len(), p.at);
                    warnings.add(place, BACKWARDS);
                    ts = p.last;
                }
                if ts > to {
                    p.next = ts;
                    self.position = p;
                    return Ok(());
                }
                let offset = (p.at + skip) as u32;
                out.push(Entry { ts, stream: index, chunk: p.chunk as u32, offset, len: len as u32 });
                p.raw_time = stamp;
                p.last = ts;
                p.at += skip + (len + 3) / 4 * 4;
            }
            // The next page.
            let page = p.next_page;
            if page + layout.page_size > chunk.len() {
                if page < chunk.len() {
                    let place = || place_of(&self.stream, chunk.len(), page);
                    warnings.add(place, "a partial last page is ignored");
                }
                p.chunk += 1;
                (p.next_page, p.at, p.end) = (0, 0, 0);
                continue;
            }
            let base = long::<BE>(chunk, page + layout.timestamp, 8);
            let mut ts = time.ns(base);
            if ts < p.last {
                let place = || place_of(&self.stream, chunk.len(), page);
                warnings.add(place, BACKWARDS);
                ts = p.last;
            }
            if ts > to {
                p.next = ts;
                self.position = p;
                return Ok(());
            }
            let commit = long::<BE>(chunk, page + layout.commit, layout.commit_size);
            let room = layout.page_size - layout.data;
            let mut used = (commit & COMMIT_MASK) as usize;
            if used > room {
                let place = || place_of(&self.stream, chunk.len(), page + layout.commit);
                warnings.add(place, "a page claims more data than it has room for");
                used = room;
            }
            let data = page + layout.data;
            if commit & MISSED != 0 {
                let stored = commit & MISSED_STORED != 0 && used + layout.commit_size <= room;
                let count = if stored { long::<BE>(chunk, data + used, layout.commit_size) } else { 0 };
                let offset = count.min(u64::from(u32::MAX)) as u32;
                out.push(Entry { ts, stream: index, chunk: 0, offset, len: Entry::LOST });
            }
            p.raw_time = base;
            p.at = data;
            p.end = data + used;
            p.next_page = page + layout.page_size;
        }
        self.position = p;
        Ok(())
    }
}

const BACKWARDS: &str = "time goes backwards on a CPU; such events are given the time of the event before";

/// Place of byte `at` of the chunk that `stream` gave last.
fn place_of(stream: &CpuStream<'_>, chunk_len: usize, at: usize) -> Place {
    let mut place = stream.pages.place();
    if let crate::At::Offset(end) = &mut place.at {
        *end = end.saturating_sub(chunk_len as u64) + at as u64;
    }
    place
}

#[inline]
fn word<const BE: bool>(bytes: &[u8], at: usize) -> Option<u32> {
    let b = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if BE { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
}

/// A number of 4 or 8 bytes that the caller knows to lie inside `bytes`.
fn long<const BE: bool>(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().enumerate().fold(0, |sum, (i, &b)| {
        let shift = if BE { size - 1 - i } else { i } * 8;
        sum | u64::from(b) << shift
    })
}

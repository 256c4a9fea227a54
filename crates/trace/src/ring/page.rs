//! Decoding of one CPU's sub-buffers into records.
//!
//! Models the ring buffer of Linux 2.6.36 to 6.18 as `events/header_page` and `events/header_event` describe it:
//! base time, commit word with its missed-event bits, and records of type length and time delta. Not supported:
//! nothing that a reader meets. Validated record for record against `trace-cmd report` on kernels 6.1 and 6.18.

use super::{CpuStream, PageLayout, TimeMap};
use crate::format::{Common, CommonFields};
use crate::{Error, Place, Warnings};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// A run of sub-buffers that entries point into; a copy shares its bytes.
#[derive(Clone, Debug)]
pub enum Chunk<'a> {
    /// A part of a mapped file.
    Plain(&'a [u8]),
    /// Decompressed.
    Unpacked(Arc<Vec<u8>>),
}

impl Deref for Chunk<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Chunk::Plain(bytes) => bytes,
            Chunk::Unpacked(bytes) => bytes,
        }
    }
}

impl<'a> From<Cow<'a, [u8]>> for Chunk<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Chunk<'a> {
        match bytes {
            Cow::Borrowed(bytes) => Chunk::Plain(bytes),
            Cow::Owned(bytes) => Chunk::Unpacked(Arc::new(bytes)),
        }
    }
}

/// A record found in a page, or a loss before a page.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Nanoseconds; never less than that of the entry before on this CPU.
    pub ts: u64,
    /// The fields that every record begins with; zeros for a loss.
    pub common: CommonFields,
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

    /// Of a loss: how many events; `None` if that is unknown.
    pub fn lost(&self) -> Option<u64> {
        (self.offset != 0).then_some(self.offset.into())
    }
}

const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// The bits of a commit word that count bytes; those above are flags.
pub(crate) const COMMIT_MASK: u64 = (1 << 27) - 1;
const DELTA_MASK: u32 = (1 << 27) - 1;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;

/// How the pages of a recording are read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Layout of a page.
    pub layout: PageLayout,
    /// Layout of the first fields of a record.
    pub common: Common,
    /// From recorded times to nanoseconds.
    pub time: TimeMap,
}

#[cfg(test)]
impl Reading {
    /// The usual first fields, times in nanoseconds.
    pub fn plain(layout: PageLayout) -> Reading {
        Reading { layout, common: Common::usual(layout.big_endian), time: TimeMap::default() }
    }
}

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
    /// Mapped time that the current page cannot reach beyond: the next page begins there.
    ceiling: u64,
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
    pub chunks: Vec<Chunk<'a>>,
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

    /// Place of an entry's payload.
    pub fn place(&self, entry: &Entry) -> Place {
        let chunks = &self.chunks[entry.chunk as usize..];
        place_of(
            &self.stream,
            matches!(chunks[0], Chunk::Plain(_)),
            chunks.iter().map(|c| c.len()).sum(),
            entry.offset as usize,
        )
    }

    /// Appends all entries with a time up to and including `to`, as stream number `index`.
    pub fn gather(
        &mut self,
        index: u32,
        to: u64,
        reading: &Reading,
        out: &mut Vec<Entry>,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        if reading.layout.big_endian {
            self.gather_as::<true>(index, to, reading, out, warnings)
        } else {
            self.gather_as::<false>(index, to, reading, out, warnings)
        }
    }

    fn gather_as<const BE: bool>(
        &mut self,
        index: u32,
        to: u64,
        Reading { layout, common, time }: &Reading,
        out: &mut Vec<Entry>,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let mut p = self.position;
        while !p.done {
            if p.chunk >= self.chunks.len() {
                let next = if self.exhausted { Ok(None) } else { self.stream.pages.next_chunk() };
                match next {
                    Ok(Some(chunk)) => self.chunks.push(chunk.into()),
                    // A damaged run is stepped over; the provider continues behind it or ends.
                    Err(Error::Malformed { place, message }) => warnings.cut(|| place, &message),
                    Err(error) => return Err(error),
                    Ok(None) => {
                        self.exhausted = true;
                        p.done = true;
                    }
                }
                continue;
            }
            let plain = matches!(self.chunks[p.chunk], Chunk::Plain(_));
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
                    let place = || place_of(&self.stream, plain, chunk.len(), p.at);
                    warnings.cut(place, "a record reaches beyond its page; the rest of the page is skipped");
                    p.at = p.end;
                    break;
                }
                let mut ts = time.ns(stamp);
                if ts < p.last || ts > p.ceiling {
                    let place = || place_of(&self.stream, plain, chunk.len(), p.at);
                    warnings.add(place, BACKWARDS);
                    ts = if ts < p.last { p.last } else { p.ceiling };
                }
                if ts > to {
                    p.next = ts;
                    self.position = p;
                    return Ok(());
                }
                let start = p.at + skip;
                // A record that is too short for them has id 0, which no event has: it is kept as unknown.
                let common = common.read(&chunk[start..start + len]).unwrap_or_default();
                let (chunk, offset, len32) = (p.chunk as u32, start as u32, len as u32);
                out.push(Entry { ts, common, stream: index, chunk, offset, len: len32 });
                p.raw_time = stamp;
                p.last = ts;
                p.at = start + len.div_ceil(4) * 4;
            }
            // The next page.
            let page = p.next_page;
            if page + layout.page_size > chunk.len() {
                if page < chunk.len() {
                    let place = || place_of(&self.stream, plain, chunk.len(), page);
                    warnings.cut(place, "a partial last page is ignored: the pages are truncated");
                }
                p.chunk += 1;
                (p.next_page, p.at, p.end) = (0, 0, 0);
                continue;
            }
            let mut base = long::<BE>(chunk, page + layout.timestamp, 8);
            let mut ts = time.ns(base);
            let of_later = |n: usize| {
                let at = page + n * layout.page_size;
                (at + layout.page_size <= chunk.len()).then(|| long::<BE>(chunk, at + layout.timestamp, 8))
            };
            let (mut ceiling, mut ahead) = (u64::MAX, false);
            if let Some(next_base) = of_later(1).filter(|&next| time.ns(next) >= p.last) {
                let next = time.ns(next_base);
                if ts <= next {
                    ceiling = next;
                } else if of_later(2).map(|after| time.ns(after)).is_some_and(|after| next <= after && after < ts) {
                    // The two pages behind agree with what was before: the time of this one is wrong, not theirs.
                    (ahead, ceiling) = (true, next);
                    (base, ts) = if p.last > 0 { (p.raw_time, p.last) } else { (next_base, next) };
                }
            }
            if ts < p.last {
                let place = || place_of(&self.stream, plain, chunk.len(), page);
                warnings.add(place, BACKWARDS);
                ts = p.last;
            }
            if ts > to {
                p.next = ts;
                self.position = p;
                return Ok(());
            }
            if ahead {
                warnings.add(|| place_of(&self.stream, plain, chunk.len(), page), AHEAD);
            }
            let commit = long::<BE>(chunk, page + layout.commit, layout.commit_size);
            let room = layout.page_size - layout.data;
            let mut used = (commit & COMMIT_MASK) as usize;
            if used > room {
                let place = || place_of(&self.stream, plain, chunk.len(), page + layout.commit);
                warnings.cut(place, "a page claims more data than it has room for");
                used = room;
            }
            let data = page + layout.data;
            if commit == 0 && base == 0 && p.last > 0 {
                // No kernel gives an empty page away: here was one, and the file has a hole.
                let place = || place_of(&self.stream, plain, chunk.len(), page);
                warnings.cut(place, "a page of zeros: its events are lost");
                let common = CommonFields::default();
                out.push(Entry { ts, common, stream: index, chunk: 0, offset: 0, len: Entry::LOST });
            }
            if commit & MISSED != 0 {
                let stored = commit & MISSED_STORED != 0 && used + layout.commit_size <= room;
                let count = if stored { long::<BE>(chunk, data + used, layout.commit_size) } else { 0 };
                let offset = count.min(u64::from(u32::MAX)) as u32;
                let common = CommonFields::default();
                out.push(Entry { ts, common, stream: index, chunk: 0, offset, len: Entry::LOST });
            }
            p.raw_time = base;
            p.last = ts;
            p.ceiling = ceiling;
            p.at = data;
            p.end = data + used;
            p.next_page = page + layout.page_size;
        }
        self.position = p;
        Ok(())
    }
}

const BACKWARDS: &str = "time goes backwards on a CPU; such events get the time of the previous event";

const AHEAD: &str = "a page has a time beyond that of the following pages; its events are kept in page order";

/// Place of byte `at` of a run; `kept` counts from its start to the end of what `stream` gave last. Bytes that are
/// not `plain` have no place of their own, only that of their compressed run.
fn place_of(stream: &CpuStream<'_>, plain: bool, kept: usize, at: usize) -> Place {
    let mut place = stream.pages.place();
    if let (true, crate::At::Offset(end)) = (plain, &mut place.at) {
        *end = end.saturating_sub(kept as u64) + at as u64;
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

#[cfg(test)]
mod tests {
    use super::super::SlicePages;
    use super::*;

    const SIZE: usize = 4096;

    /// A page of given base time and flags in the commit word, holding `words`.
    fn page(base: u64, flags: u64, words: &[u32], be: bool) -> Vec<u8> {
        let put = |x: u64| if be { x.to_be_bytes() } else { x.to_le_bytes() };
        let mut page = [put(base), put(flags | (words.len() * 4) as u64)].concat();
        page.extend(words.iter().flat_map(|w| if be { w.to_be_bytes() } else { w.to_le_bytes() }));
        page.resize(SIZE, 0);
        page
    }

    fn header(kind: u32, delta: u32, be: bool) -> u32 {
        if be { kind << 27 | delta } else { delta << 5 | kind }
    }

    fn read(bytes: &[u8], be: bool) -> (Vec<(u64, Vec<u8>)>, Warnings) {
        let layout = PageLayout { big_endian: be, ..PageLayout::little_endian_64(SIZE) };
        let pages = SlicePages::new("cpu0", 0, bytes, SIZE);
        let mut cursor = Cursor::new(CpuStream { cpu: 0, pages: Box::new(pages) });
        let (mut out, mut warnings) = (Vec::new(), Warnings::default());
        cursor.gather(0, u64::MAX, &Reading::plain(layout), &mut out, &mut warnings).unwrap();
        assert!(cursor.position.done);
        let payload = |e: &Entry| match e.len {
            Entry::LOST => format!("lost {}", e.offset).into_bytes(),
            len => cursor.chunks[e.chunk as usize][e.offset as usize..][..len as usize].to_vec(),
        };
        (out.iter().map(|e| (e.ts, payload(e))).collect(), warnings)
    }

    #[test]
    fn deltas_extends_and_absolute_stamps_add_up() {
        for be in [false, true] {
            let w = |x: [u8; 4]| if be { u32::from_be_bytes(x) } else { u32::from_le_bytes(x) };
            let words = [
                header(1, 5, be),
                w(*b"abcd"),
                header(TIME_EXTEND, 3, be),
                2,
                header(1, 1, be),
                w(*b"efgh"),
                header(31, 7, be),
                4,
                header(0, 0, be),
                4 + 6,
                w(*b"ijkl"),
                w(*b"mn\0\0"),
            ];
            let (events, warnings) = read(&page(1000, 0, &words, be), be);
            let second = 1005 + 3 + (2 << 27) + 1;
            let third = (4 << 27) + 7;
            assert_eq!(events, [(1005, b"abcd".into()), (second, b"efgh".into()), (third, b"ijklmn".into())]);
            assert!(warnings.list().is_empty());
        }
    }

    #[test]
    fn discarded_events_take_time_and_padding_ends_a_page() {
        let le = false;
        let words = [header(PADDING, 9, le), 4, header(1, 1, le), 7, header(PADDING, 0, le), 1, header(1, 1, le), 7];
        let (events, _) = read(&page(100, 0, &words, le), le);
        assert_eq!(events, [(110, vec![7, 0, 0, 0])]);
    }

    #[test]
    fn missed_events_are_counted_where_the_kernel_stored_the_number() {
        let le = false;
        let mut counted = page(50, MISSED | MISSED_STORED, &[header(1, 0, le), 1], le);
        counted[16 + 8] = 77;
        // On 64-bit kernels the flag is added as a signed int: the upper half of the word is all ones.
        let uncounted = page(60, 0xffff_ffff_8000_0000, &[header(1, 0, le), 2], le);
        let (events, _) = read(&[counted, uncounted].concat(), le);
        let expected: [(u64, &[u8]); 4] = [(50, b"lost 77"), (50, &[1, 0, 0, 0]), (60, b"lost 0"), (60, &[2, 0, 0, 0])];
        assert_eq!(events, expected.map(|(t, p)| (t, p.to_vec())));
    }

    #[test]
    fn damage_is_stepped_over_with_its_place() {
        let le = false;
        let reaching = page(10, 0, &[header(28, 1, le), 0], le);
        let backwards = page(5, 0, &[header(1, 0, le), 3], le);
        let (events, warnings) = read(&[&reaching[..], &backwards, &[0; 100]].concat(), le);
        assert_eq!(events, [(10, vec![3, 0, 0, 0])]);
        let found: Vec<_> = warnings.list().iter().map(|w| w.place.to_string()).collect();
        assert_eq!(found, ["cpu0: offset 0x10", "cpu0: offset 0x1000", "cpu0: offset 0x2000"]);
    }

    #[test]
    fn a_bad_time_of_a_page_is_its_own() {
        let le = false;
        let at = |base| page(base, 0, &[header(1, 0, le), 1, header(1, 2, le), 1], le);
        let times = |pages: &[Vec<u8>]| {
            let (events, warnings) = read(&pages.concat(), le);
            (events.iter().map(|e| e.0).collect::<Vec<_>>(), warnings.list().len())
        };
        assert_eq!(times(&[at(10), at(20), at(30), at(40)]), (vec![10, 12, 20, 22, 30, 32, 40, 42], 0));
        // Far ahead: those behind keep their times. In the first page too.
        assert_eq!(times(&[at(10), at(1 << 60), at(30), at(40)]), (vec![10, 12, 12, 14, 30, 32, 40, 42], 1));
        assert_eq!(times(&[at(1 << 60), at(20), at(30)]), (vec![20, 20, 20, 22, 30, 32], 2));
        // Far behind.
        assert_eq!(times(&[at(10), at(3), at(30), at(40)]), (vec![10, 12, 12, 12, 30, 32, 40, 42], 1));
        // A time extend within a page that leads far ahead ends with the page.
        let far = page(20, 0, &[header(TIME_EXTEND, 3, le), 1 << 20, header(1, 0, le), 1], le);
        assert_eq!(times(&[at(10), far, at(30), at(40)]), (vec![10, 12, 30, 30, 32, 40, 42], 1));
    }

    #[test]
    fn a_page_of_zeros_is_a_hole() {
        let le = false;
        let at = |base| page(base, 0, &[header(1, 0, le), 1], le);
        let (events, warnings) = read(&[at(10), vec![0; SIZE], at(30)].concat(), le);
        let times: Vec<_> = events.iter().map(|(at, payload)| (*at, payload.starts_with(b"lost"))).collect();
        assert_eq!(times, [(10, false), (10, true), (30, false)]);
        assert_eq!(warnings.cuts().count(), 1);
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        use proptest::prelude::*;
        proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..3 * SIZE), be: bool, lengths: bool)| {
            let mut bytes = bytes;
            if lengths && bytes.len() > 16 {
                bytes[8..16].copy_from_slice(&if be { 4000u64.to_be_bytes() } else { 4000u64.to_le_bytes() });
            }
            let (events, _) = read(&bytes, be);
            prop_assert!(events.is_sorted_by_key(|e| e.0));
        });
    }
}

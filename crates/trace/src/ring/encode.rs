//! Packing of events into ring-buffer pages, as the kernel lays them out.
//!
//! Models `ring_buffer.c` of Linux 2.6.36 to 6.18: a page begins with its base time and the commit word; a record
//! has a 27-bit time delta and a 5-bit type length; longer deltas are time extends, payloads over 28 words (and
//! those whose length is no multiple of 4, which the kernel would pad) have a length word. A clock that goes back
//! is an absolute stamp. A loss marks the page behind it, with the number if there is room. Not supported: discarded
//! events, which nobody needs to write, and the padding record at the end of a full page, which readers do not
//! need because the commit word says where the data end.
//! Validated by decoding with [`super::page`] and by `trace-cmd report` on files made from these pages.

use super::PageLayout;

const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
const DELTA_MASK: u64 = (1 << DELTA_BITS) - 1;
/// Bits of a time that an extend or a stamp can hold.
const STAMP_BITS: u32 = 59;
const MAX_WORDS: usize = 28;
const LOST: u64 = 1 << 31;
const LOST_STORED: u64 = 1 << 30;

/// Packs the events of one CPU into pages.
#[derive(Clone, Debug)]
pub struct PageWriter {
    layout: PageLayout,
    /// The page that is being filled.
    page: Vec<u8>,
    /// The page handed out last.
    done: Vec<u8>,
    /// Bytes of data in `page`; `None`: not begun.
    used: Option<usize>,
    last: u64,
    /// A loss that the page being filled carries.
    carried: Option<Loss>,
    /// A loss behind the page being filled.
    pending: Option<Loss>,
}

/// Lost events; `None`: it is not known how many.
type Loss = Option<u64>;

/// An event that is too long for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of {length} bytes does not fit into a page, which has room for {room}")]
pub struct TooLong {
    /// Bytes of the payload.
    pub length: usize,
    /// Most bytes a payload may have.
    pub room: usize,
}

impl PageWriter {
    /// A writer of pages of this layout.
    pub fn new(layout: PageLayout) -> PageWriter {
        let page = vec![0; layout.page_size];
        PageWriter { layout, done: page.clone(), page, used: None, last: 0, carried: None, pending: None }
    }

    /// Most bytes that a payload may have.
    pub fn room(&self) -> usize {
        (self.layout.page_size - self.layout.data).saturating_sub(8) / 4 * 4
    }

    /// Adds an event: its time and its record from `common_type` on. If the page being filled has no room for it,
    /// that page is complete and returned.
    pub fn push(&mut self, ts: u64, payload: &[u8]) -> Result<Option<&[u8]>, TooLong> {
        if payload.len() > self.room() {
            return Err(TooLong { length: payload.len(), room: self.room() });
        }
        let completed = self.used.is_some_and(|used| self.pending.is_some() || !self.fits(used, ts, payload));
        if completed {
            self.close();
        }
        let used = match self.used {
            Some(used) => used,
            None => self.begin(ts),
        };
        let at = self.put_record(self.layout.data + used, ts, payload);
        self.used = Some(at - self.layout.data);
        self.last = ts;
        Ok(completed.then_some(&self.done[..]))
    }

    /// Notes that events were lost behind the last one; `None`: it is not known how many.
    pub fn lost(&mut self, events: Option<u64>) {
        self.pending = Some(match self.pending {
            None => events,
            Some(before) => before.zip(events).map(|(a, b)| a.saturating_add(b)),
        });
    }

    /// The page being filled, though it is not full; a loss behind it is given as an empty page by the next call.
    /// `None` when there is nothing left.
    pub fn flush(&mut self) -> Option<&[u8]> {
        if self.used.is_none() {
            self.pending?;
            self.begin(self.last);
        }
        self.close();
        Some(&self.done)
    }

    /// Starts a page; gives the bytes used in it.
    fn begin(&mut self, ts: u64) -> usize {
        self.page.fill(0);
        self.put(self.layout.timestamp, ts, 8);
        self.last = ts;
        self.carried = self.pending.take();
        self.used = Some(0);
        0
    }

    /// Completes the page being filled.
    fn close(&mut self) {
        let used = self.used.take().unwrap_or(0);
        let mut commit = used as u64;
        if let Some(events) = self.carried.take() {
            commit |= LOST;
            let at = self.layout.data + used;
            if let Some(events) = events.filter(|_| at + self.layout.commit_size <= self.layout.page_size) {
                commit |= LOST_STORED;
                self.put(at, events, self.layout.commit_size);
            }
        }
        self.put(self.layout.commit, commit, self.layout.commit_size);
        std::mem::swap(&mut self.page, &mut self.done);
    }

    /// True if the event can follow in a page with `used` bytes.
    fn fits(&self, used: usize, ts: u64, payload: &[u8]) -> bool {
        let stamp = match ts.checked_sub(self.last) {
            Some(delta) if delta <= DELTA_MASK => 0,
            Some(delta) if delta >> STAMP_BITS == 0 => 8,
            None if ts >> STAMP_BITS == self.last >> STAMP_BITS => 8,
            _ => return false,
        };
        let length = payload.len().next_multiple_of(4) + if in_words(payload) { 4 } else { 8 };
        // A number of lost events needs its place too.
        let spare = if matches!(self.carried, Some(Some(_))) { self.layout.commit_size } else { 0 };
        self.layout.data + used + stamp + length + spare <= self.layout.page_size
    }

    /// Writes the event at byte `at`; gives the end.
    fn put_record(&mut self, mut at: usize, ts: u64, payload: &[u8]) -> usize {
        let mut delta = ts.wrapping_sub(self.last);
        if ts < self.last {
            self.put_head(at, TIME_STAMP, ts & DELTA_MASK);
            self.put(at + 4, ts << (64 - STAMP_BITS) >> (64 - STAMP_BITS + DELTA_BITS), 4);
            (at, delta) = (at + 8, 0);
        } else if delta > DELTA_MASK {
            self.put_head(at, TIME_EXTEND, delta & DELTA_MASK);
            self.put(at + 4, delta >> DELTA_BITS, 4);
            (at, delta) = (at + 8, 0);
        }
        if in_words(payload) {
            self.put_head(at, payload.len() as u32 / 4, delta);
            at += 4;
        } else {
            self.put_head(at, 0, delta);
            self.put(at + 4, payload.len() as u64 + 4, 4);
            at += 8;
        }
        self.page[at..at + payload.len()].copy_from_slice(payload);
        at + payload.len().next_multiple_of(4)
    }

    fn put_head(&mut self, at: usize, kind: u32, delta: u64) {
        let delta = delta as u32;
        let word = if self.layout.big_endian { kind << DELTA_BITS | delta } else { delta << 5 | kind };
        self.put(at, word.into(), 4);
    }

    fn put(&mut self, at: usize, value: u64, size: usize) {
        let bytes = value.to_le_bytes();
        let place = &mut self.page[at..at + size];
        place.copy_from_slice(&bytes[..size]);
        if self.layout.big_endian {
            place.reverse();
        }
    }
}

/// True if the type length can say how long the payload is.
fn in_words(payload: &[u8]) -> bool {
    !payload.is_empty() && payload.len().is_multiple_of(4) && payload.len() <= MAX_WORDS * 4
}

#[cfg(test)]
mod tests {
    use super::super::page::{Cursor, Entry, Reading};
    use super::super::{CpuStream, SlicePages};
    use super::*;
    use crate::Warnings;
    use proptest::prelude::*;

    fn layout(page_size: usize, big_endian: bool, long: usize) -> PageLayout {
        PageLayout { page_size, timestamp: 0, commit: 8, commit_size: long, data: 8 + long, big_endian }
    }

    #[derive(Clone, Debug, PartialEq)]
    enum Item {
        Event(u64, Vec<u8>),
        Lost(u64),
    }

    fn encode(layout: PageLayout, items: &[Item]) -> Vec<u8> {
        let mut writer = PageWriter::new(layout);
        let mut pages = Vec::new();
        for item in items {
            match item {
                Item::Event(ts, payload) => {
                    pages.extend_from_slice(writer.push(*ts, payload).unwrap().unwrap_or_default())
                }
                Item::Lost(n) => writer.lost((*n != 0).then_some(*n)),
            }
        }
        while let Some(page) = writer.flush() {
            pages.extend_from_slice(page);
        }
        assert_eq!(pages.len() % layout.page_size, 0);
        pages
    }

    fn decode(layout: PageLayout, pages: &[u8]) -> (Vec<Item>, Warnings) {
        let stream = SlicePages::new("cpu0", 0, pages, layout.page_size);
        let mut cursor = Cursor::new(CpuStream { cpu: 0, pages: Box::new(stream) });
        let (mut out, mut warnings) = (Vec::new(), Warnings::default());
        let reading = Reading::plain(layout);
        cursor.gather(0, u64::MAX, &reading, &mut out, &mut warnings).unwrap();
        let item = |e: &Entry| match e.len {
            Entry::LOST => Item::Lost(e.offset.into()),
            len => Item::Event(e.ts, cursor.chunks[e.chunk as usize][e.offset as usize..][..len as usize].to_vec()),
        };
        (out.iter().map(item).collect(), warnings)
    }

    /// Times that need no extend, an extend, or a page of their own, with losses between them.
    fn items() -> impl Strategy<Value = Vec<Item>> {
        let delta = prop_oneof![8 => 0u64..5000, 2 => (1u64 << 26)..(1 << 29), 1 => (1u64 << 57)..(1 << 60)];
        let event = (delta, 0usize..600, any::<u8>());
        let item = prop_oneof![12 => event.prop_map(Ok), 1 => (0u64..1000).prop_map(Err)];
        proptest::collection::vec(item, 0..150).prop_map(|items| {
            let mut ts = 7u64;
            let make = |item| match item {
                Ok((delta, len, fill)) => {
                    ts = ts.saturating_add(delta);
                    Item::Event(ts, vec![fill; len])
                }
                Err(lost) => Item::Lost(lost),
            };
            items.into_iter().map(make).collect()
        })
    }

    /// Adds up losses that nothing separates, as a page can carry only one.
    fn joined(items: &[Item]) -> Vec<Item> {
        let mut out: Vec<Item> = Vec::new();
        for item in items {
            match (out.last_mut(), item) {
                (Some(Item::Lost(sum)), Item::Lost(n)) => *sum = if *sum == 0 || *n == 0 { 0 } else { *sum + n },
                _ => out.push(item.clone()),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(items in items(), be: bool, long in prop_oneof![Just(4usize), Just(8)]) {
            let layout = layout(4096, be, long);
            let (decoded, warnings) = decode(layout, &encode(layout, &items));
            prop_assert_eq!(decoded, joined(&items));
            prop_assert!(warnings.list().is_empty());
        }
    }

    #[test]
    fn a_clock_that_goes_back_keeps_its_times_in_the_page() {
        for be in [false, true] {
            let layout = layout(4096, be, 8);
            let back = 5u64 << 59 | 1 << 40;
            let items =
                [Item::Event(back + 9, vec![1; 4]), Item::Event(back, vec![2; 4]), Item::Event(back + 10, vec![3; 4])];
            let (decoded, warnings) = decode(layout, &encode(layout, &items));
            // The reader lifts the earlier time to the one before it, but continues from the true one.
            let lifted = [items[0].clone(), Item::Event(back + 9, vec![2; 4]), items[2].clone()];
            assert_eq!(decoded, lifted);
            assert_eq!(warnings.list().len(), 1);
        }
    }

    #[test]
    fn a_page_is_filled_to_its_end_and_no_further() {
        let layout = layout(4096, false, 8);
        let mut writer = PageWriter::new(layout);
        // 85 records of 48 bytes are the 4080 bytes of a page.
        for i in 0..85 {
            assert_eq!(writer.push(i, &[7; 44]).unwrap(), None);
        }
        let page = writer.push(85, &[8; 44]).unwrap().unwrap();
        assert_eq!(page[8..16], 4080u64.to_le_bytes());
        assert_eq!(writer.room(), 4072);
        assert_eq!(writer.push(86, &[0; 4073]), Err(TooLong { length: 4073, room: 4072 }));
        assert!(writer.push(86, &[0; 4072]).unwrap().is_some());
    }
}

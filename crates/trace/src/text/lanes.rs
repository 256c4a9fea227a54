//! A long text in blocks that several threads read.
//!
//! Whoever is free takes the next block. What a lane learned of earlier lines makes it faster and changes nothing, so what
//! comes out is what one thread reads. The caller's thread gives events away in the order of the file; while the block
//! that is next is not read yet, it reads another. Lines that are not of events are left to it, as they mean something
//! only behind the lines before them.

use super::kinds::Values;
use super::lane::{Lane, Line};
use super::line::Context;
use super::{Error, Reader};
use mmtwin_event::Slots;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, scope};

/// Bytes of a block: some thousand lines. Few in tests, whose texts are short.
const BLOCK: usize = if cfg!(test) { 1 << 9 } else { 1 << 18 };
/// Threads cost more than they save before so many blocks.
const FEW: usize = 8;
/// Blocks of each thread that are read and wait for those before them.
const AHEAD: usize = 4;
/// Most threads beside the caller's: more read faster than it gives events away.
const BESIDE: usize = 2;
/// The number of a name that has none yet.
const UNNUMBERED: usize = usize::MAX;

/// True if a text is read faster so on this machine.
pub(super) fn are_for(text: &[u8]) -> bool {
    text.len() > FEW * BLOCK && available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

/// The block that begins at `from`.
fn block(text: &[u8], from: usize) -> Range<usize> {
    let least = from.saturating_add(BLOCK);
    let end = text.get(least..).and_then(|behind| memchr::memchr(b'\n', behind));
    from..end.map_or(text.len(), |end| least + end + 1)
}

/// The names of a lane as the reader numbers them.
#[derive(Default)]
struct Numbers {
    labels: Vec<Box<[u8]>>,
    ids: Vec<usize>,
}

impl Numbers {
    /// The number of a name, given when its first event is.
    #[inline(always)]
    fn of(&mut self, index: usize, reader: &mut Reader<'_>) -> usize {
        match self.ids.get(index) {
            Some(&id) if id != UNNUMBERED => id,
            _ => self.number(index, reader),
        }
    }

    #[cold]
    fn number(&mut self, index: usize, reader: &mut Reader<'_>) -> usize {
        self.ids.resize(self.labels.len(), UNNUMBERED);
        self.ids[index] = reader.lane.names.named(&self.labels[index]);
        self.ids[index]
    }

    /// Takes note of the names that a lane has met since.
    fn add(&mut self, labels: impl Iterator<Item = Box<[u8]>>) {
        self.labels.extend(labels);
    }
}

/// A line as a lane read it: an event without its values, or another line.
struct Item {
    ts: u64,
    comm: Range<u32>,
    payload: Range<u32>,
    pid: i32,
    tgid: i32,
    cpu: u32,
    /// Bits of the fields that it has.
    present: u32,
    /// Bytes without the line end; 0: no line of an event.
    len: u32,
    index: u16,
    flags: u8,
    preempt_count: u8,
    /// Values that it has in the batch; `None`: it has no type.
    fields: Option<u8>,
}

impl Item {
    const OTHER: Item = Item {
        ts: 0,
        comm: 0..0,
        payload: 0..0,
        pid: 0,
        tgid: 0,
        cpu: 0,
        present: 0,
        len: 0,
        index: 0,
        flags: 0,
        preempt_count: 0,
        fields: None,
    };

    /// A line is far shorter than 4 GiB, and there are fewer names than 65,536.
    fn of(Line { context, index, payload, len }: Line, typed: Option<(u32, u8)>) -> Item {
        let range = |range: Range<usize>| range.start as u32..range.end as u32;
        Item {
            ts: context.ts,
            comm: range(context.comm),
            payload: range(payload),
            pid: context.pid,
            tgid: context.tgid,
            cpu: context.cpu,
            present: typed.map_or(0, |(present, _)| present),
            len: len as u32,
            index: index as u16,
            flags: context.flags,
            preempt_count: context.preempt_count,
            fields: typed.map(|(_, fields)| fields),
        }
    }

    fn context(&self) -> Context {
        Context {
            comm: self.comm.start as usize..self.comm.end as usize,
            pid: self.pid,
            tgid: self.tgid,
            cpu: self.cpu,
            flags: self.flags,
            preempt_count: self.preempt_count,
            ts: self.ts,
            ..Context::default()
        }
    }
}

/// A lane, and how many of its names the reader was told.
#[derive(Default)]
struct Named {
    lane: Lane,
    known: usize,
}

/// A block and what a lane read in it.
#[derive(Default)]
struct Batch {
    block: Range<usize>,
    items: Vec<Item>,
    /// Of the events that have a type, as many as these have fields.
    values: Vec<u64>,
    /// Of names that the lane had not met before.
    labels: Vec<Box<[u8]>>,
}

impl Batch {
    /// Reads the block.
    fn fill(&mut self, Named { lane, known }: &mut Named, text: &[u8]) {
        self.items.clear();
        self.values.clear();
        let mut at = self.block.start;
        while at < self.block.end {
            let rest = &text[at..];
            let Some(line) = lane.usual(rest).or_else(|| lane.any(&text[at..self.block.end])) else {
                self.items.push(Item::OTHER);
                at += memchr::memchr(b'\n', rest).map_or(rest.len(), |len| len + 1);
                continue;
            };
            let name = lane.names.get(line.index);
            let typed = match name.values() {
                Values::Typed(slots) => {
                    self.values.extend_from_slice(&slots.values[..usize::from(name.fields)]);
                    Some((slots.present, name.fields))
                }
                Values::Untyped => None,
            };
            at += line.len + 1;
            self.items.push(Item::of(line, typed));
        }
        self.labels = lane.names.labels(*known).collect();
        *known += self.labels.len();
    }

    /// Gives its events away, and the reader the other lines.
    fn give(&mut self, reader: &mut Reader<'_>, numbers: &mut Numbers, text: &[u8]) -> Result<(), Error> {
        numbers.add(self.labels.drain(..));
        let (mut at, mut values, mut slots) = (self.block.start, &self.values[..], Slots::default());
        for item in &self.items {
            if reader.given_up {
                break;
            }
            let rest = &text[at..];
            reader.delivery.line += 1;
            if item.len == 0 {
                at += reader.any_line(rest)? + 1;
                continue;
            }
            let typed = match item.fields {
                None => Values::Untyped,
                Some(fields) => {
                    let (own, behind) = values.split_at(fields.into());
                    slots.values[..own.len()].copy_from_slice(own);
                    slots.present = item.present;
                    values = behind;
                    Values::Typed(&slots)
                }
            };
            let id = numbers.of(item.index.into(), reader);
            let payload = item.payload.start as usize..item.payload.end as usize;
            reader.given(&item.context(), rest, id, payload, typed);
            at += item.len as usize + 1;
        }
        Ok(())
    }
}

/// What is left of a text.
struct Rest<'t> {
    text: &'t [u8],
    /// Where the next block begins.
    at: usize,
    /// Who took the blocks that are not given away yet, in order.
    takers: VecDeque<usize>,
    /// Batches of each lane, to be filled again: what a lane wrote before is in the cache of its CPU.
    spare: Vec<Vec<Batch>>,
}

impl Rest<'_> {
    /// The next block, for a lane to read.
    fn take(&mut self, lane: usize) -> Option<Batch> {
        if self.at >= self.text.len() {
            return None;
        }
        let mut batch = self.spare[lane].pop().unwrap_or_default();
        batch.block = block(self.text, self.at);
        self.at = batch.block.end;
        self.takers.push_back(lane);
        Some(batch)
    }

    /// Who took the first block that is not given away yet. If nobody did, `lane` takes it.
    fn first(&mut self, lane: usize) -> Option<(usize, Option<Batch>)> {
        match self.takers.front() {
            Some(taker) => Some((*taker, None)),
            None => self.take(lane).map(|batch| (lane, Some(batch))),
        }
    }

    /// The first block was given away.
    fn given(&mut self, batch: Batch) {
        if let Some(lane) = self.takers.pop_front() {
            self.spare[lane].push(batch);
        }
    }
}

/// Locks what is shared; a thread that panicked left it whole.
fn lock<'m, 't>(rest: &'m Mutex<Rest<'t>>) -> MutexGuard<'m, Rest<'t>> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a text.
pub(super) fn read(reader: &mut Reader<'_>, text: &[u8]) -> Result<(), Error> {
    let beside = available_parallelism().map_or(1, |cpus| (cpus.get() - 1).clamp(1, BESIDE));
    let spare = (0..=beside).map(|_| Vec::new()).collect();
    let rest = Mutex::new(Rest { text, at: 0, takers: VecDeque::new(), spare });
    scope(|scope| {
        let beside = (0..beside).map(|number| {
            let ((done, read), rest) = (sync_channel(AHEAD), &rest);
            scope.spawn(move || {
                let mut lane = Named::default();
                loop {
                    let taken = lock(rest).take(number);
                    let Some(mut batch) = taken else { return };
                    batch.fill(&mut lane, text);
                    // The reader is gone where it gave up.
                    if done.send(batch).is_err() {
                        return;
                    }
                }
            });
            read
        });
        in_order(reader, text, &rest, &beside.collect::<Vec<_>>())
    })
}

/// Gives the blocks away in order. Whose turn it is may be reading still; then this thread reads the next block too.
fn in_order(
    reader: &mut Reader<'_>,
    text: &[u8],
    rest: &Mutex<Rest<'_>>,
    beside: &[Receiver<Batch>],
) -> Result<(), Error> {
    let (mut own, mut ready, own_number) = (Named::default(), VecDeque::new(), beside.len());
    let mut numbers: Vec<Numbers> = (0..=own_number).map(|_| Numbers::default()).collect();
    while !reader.given_up {
        let first = lock(rest).first(own_number);
        let taker = match first {
            None => break,
            Some((taker, None)) => taker,
            Some((_, Some(batch))) => {
                reader.lines(&text[batch.block.clone()])?;
                lock(rest).given(batch);
                continue;
            }
        };
        let mut batch = match beside.get(taker) {
            None => ready.pop_front(),
            Some(read) => read.try_recv().ok(),
        };
        if batch.is_none() {
            let another = if ready.len() < AHEAD { lock(rest).take(own_number) } else { None };
            if let Some(mut another) = another {
                another.fill(&mut own, text);
                ready.push_back(another);
                continue;
            }
            batch = beside.get(taker).and_then(|read| read.recv().ok());
        }
        // Without one its thread has panicked.
        let Some(mut batch) = batch else { break };
        batch.give(reader, &mut numbers[taker], text)?;
        lock(rest).given(batch);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::text::delivery::Delivery;
    use mmtwin_event::{Call, Event, Fields, Sink};

    /// All that a sink is told.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl Sink for Told {
        fn event(&mut self, event: &Event<'_>) {
            let fields = event.kind.schema().map_or(0, |schema| schema.fields.len());
            let values: Vec<_> = (0..fields).map(|slot| event.has(slot).then(|| event.slot(slot))).collect();
            self.0.push(format!("{:?} {values:?}", Event { fields: Fields::Untyped, ..*event }));
        }
        fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
            self.0.push(format!("lost {cpu} {events:?} {at}"));
        }
        fn call(&mut self, call: &Call<'_>) {
            self.0.push(format!("{call:?}"));
        }
    }

    type How = fn(&mut Reader<'_>, &[u8]) -> Result<(), Error>;

    fn whole(reader: &mut Reader<'_>, text: &[u8]) -> Result<(), Error> {
        reader.lines(text)
    }

    fn told(text: &[u8], how: How) -> (Vec<String>, String) {
        let (mut told, mut outcome) = (Told::default(), Outcome::default());
        let mut silent = |_| {};
        let mut reader = Reader::new(Delivery::new("t", &mut told, &mut outcome, &mut silent));
        let result = how(&mut reader, text).and_then(|()| reader.end());
        (told.0, format!("{result:?} {outcome:?}"))
    }

    /// Events whose shape changes, names that come late, stacks, functions, losses, a bare event and damage.
    fn lines() -> String {
        let line = |i: u32| {
            let columns = format!("{:>16}-{:<7} [{:03}] ..... {:>5}.{:06}:", "task", i % 5, i % 3, i / 900, i % 900);
            match i % 11 {
                0 => format!("CPU:{} [LOST {i} EVENTS]", i % 2),
                1 => format!("{columns} mm_vmscan_kswapd_wake: nid={} order={i}", i % 2),
                2 => format!("{columns} mm_vmscan_kswapd_wake: nid={} zid=2 order={i}", i % 2),
                3 => format!("{columns} name{}: value={i}", i / 60),
                4 => format!("{columns} <stack trace>\n => one+0x1/0x2"),
                5 => format!("{columns} shrink_node <-balance_pgdat"),
                6 => "what is this".into(),
                7 => format!("{columns} mm_vmscan_kswapd_wake: nid=one order={i}\r"),
                8 => format!("mm_vmscan_kswapd_sleep: nid={i}"),
                9 => format!("{columns} kernel_stack: <stack trace>"),
                _ => format!(
                    "{columns} mm_vmscan_wakeup_kswapd: nid=0 order={i} gfp_flags=GFP_{}",
                    "X".repeat(i as usize % 700)
                ),
            }
        };
        (0..2000).map(|i| line(i) + "\n").collect()
    }

    #[test]
    fn threads_and_blocks_change_nothing() {
        let lines = lines();
        for text in [&lines[..], &lines[..lines.len() - 30], &lines[..20 * BLOCK]] {
            let whole = told(text.as_bytes(), whole);
            assert!(!whole.0.is_empty());
            let (told, end) = told(text.as_bytes(), read);
            let differ = whole.0.iter().zip(&told).find(|(a, b)| a != b);
            assert_eq!((differ, told.len(), &end), (None, whole.0.len(), &whole.1));
        }
    }

    #[test]
    fn names_beyond_the_list_are_those_that_one_thread_finds() {
        let line = |i: u32| format!("           task-1       [000] .....     1.000000: name{}: x\n", i * 7 % 17_000);
        let text: String = (0..20_000).map(line).collect();
        let whole = told(text.as_bytes(), whole);
        assert!(whole.1.contains("more event names"), "{}", whole.1);
        assert!(told(text.as_bytes(), read) == whole);
    }

    #[test]
    fn nobody_reads_on_behind_the_end() {
        let mut text = b"           task-1       [000] .....     1.000000: name: x\n".to_vec();
        text.extend(vec![b'\n'; (1 << 20) + 2]);
        text.extend_from_slice(b"           task-1       [000] .....     1.000000: name: x\n");
        for how in [whole as How, read] {
            assert_eq!(told(&text, how).0.len(), 1);
        }
    }

    #[test]
    fn blocks_end_with_lines() {
        let text = format!("{}\nshort\n{}", "x".repeat(3 * BLOCK), "y".repeat(BLOCK / 2));
        let first = block(text.as_bytes(), 0);
        assert_eq!(first, 0..3 * BLOCK + 1);
        assert_eq!(block(text.as_bytes(), first.end), first.end..text.len());
    }
}

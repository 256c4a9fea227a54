//! The entries of a span of time, and how they are handed to a sink or to one of its halves.

use super::page::{Chunk, Entry};
use crate::format::Formats;
use crate::{Outcome, Warnings};
use mmtwin_event::{Event, Fields, Half, Kind, Share, Sink};

/// The entries of a span of time, with the bytes they point into.
#[derive(Default)]
pub(super) struct Span<'a> {
    /// CPU by CPU.
    pub entries: Vec<Entry>,
    /// Indices of `entries` by time; empty if the sink takes them as they are.
    pub sorted: Vec<u32>,
    /// CPU and place among `chunks` of the first of each stream that has entries here.
    pub streams: Vec<(u32, u32)>,
    /// The bytes.
    pub chunks: Vec<Chunk<'a>>,
    /// Of the entries: events, those without a type, and stacks.
    pub events: u64,
    pub untyped: u64,
    pub stacks: u64,
    /// Losses among the entries: CPU and number.
    pub lost: Vec<(u32, Option<u64>)>,
    /// What was wrong with them.
    pub warnings: Warnings,
}

/// Who takes entries.
pub(super) trait Taker {
    /// What of an entry that is no loss.
    fn share(&self, entry: &Entry) -> Share;
    /// As of [`Half`].
    fn event(&mut self, event: &Event<'_>);
    /// As of [`Half`].
    fn ran(&mut self, cpu: u32, pid: i32) -> bool;
    /// As of [`Half`].
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64);
}

/// A sink that is not divided.
pub(super) struct Undivided<'s>(pub &'s mut dyn Sink);

impl Taker for Undivided<'_> {
    #[inline(always)]
    fn share(&self, _: &Entry) -> Share {
        Share::Events
    }
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        self.0.event(event);
    }
    fn ran(&mut self, _: u32, _: i32) -> bool {
        true
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.0.lost(cpu, events, at);
    }
}

/// A half of a sink.
pub(super) struct OfHalf<'s> {
    half: Box<dyn Half + 's>,
    /// By format id: what it takes, and of which size records at least are.
    shares: Vec<(Share, u32)>,
    /// What it takes of records without a type.
    untyped: Share,
}

impl<'s> OfHalf<'s> {
    pub fn new(half: Box<dyn Half + 's>, formats: &Formats) -> OfHalf<'s> {
        let untyped = half.share(Kind::Other);
        let mut shares = vec![(untyped, 0); 1 << 16];
        for format in formats.iter() {
            shares[usize::from(format.id)] = (half.share(format.kind), format.size.min(u32::MAX as usize) as u32);
        }
        OfHalf { half, shares, untyped }
    }
}

impl Taker for OfHalf<'_> {
    #[inline(always)]
    fn share(&self, entry: &Entry) -> Share {
        let (share, size) = self.shares[usize::from(entry.common.id)];
        if entry.len < size { self.untyped } else { share }
    }
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        self.half.event(event);
    }
    fn ran(&mut self, cpu: u32, pid: i32) -> bool {
        self.half.ran(cpu, pid)
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.half.lost(cpu, events, at);
    }
}

impl Span<'_> {
    /// Makes room for the next span.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.sorted.clear();
        self.streams.clear();
        self.chunks.clear();
        self.lost.clear();
        (self.events, self.untyped, self.stacks) = (0, 0, 0);
        self.warnings = Warnings::default();
    }

    /// Adds what is in it to an outcome.
    pub fn tell(&self, outcome: &mut Outcome) {
        outcome.events += self.events;
        outcome.untyped += self.untyped;
        outcome.stacks += self.stacks;
        self.lost.iter().for_each(|(cpu, events)| outcome.add_lost(*cpu, *events));
        outcome.warnings.append(self.warnings.clone());
    }

    /// Gives the entries away, in order of time where they were sorted.
    pub fn give(&self, formats: &Formats, taker: &mut impl Taker) {
        if self.sorted.is_empty() {
            self.give_each(self.entries.iter(), formats, taker);
        } else {
            self.give_each(self.sorted.iter().map(|&index| &self.entries[index as usize]), formats, taker);
        }
    }

    #[inline]
    fn give_each<'e>(&self, entries: impl Iterator<Item = &'e Entry>, formats: &Formats, taker: &mut impl Taker) {
        // CPU and bytes of the entry before: mostly those of the next too.
        let (mut stream, mut chunk, mut cpu, mut bytes): (_, _, _, &[u8]) = (u32::MAX, 0, 0, &[]);
        // The task that need not be told of again.
        let mut told = (u32::MAX, 0);
        for entry in entries {
            if entry.len == Entry::LOST {
                let (cpu, _) = self.streams[entry.stream as usize];
                taker.lost(cpu, entry.lost(), entry.ts);
                continue;
            }
            let common = entry.common;
            match taker.share(entry) {
                Share::Events => {}
                Share::Nothing => continue,
                Share::Task => {
                    let task = (entry.stream, common.pid);
                    if task != told && taker.ran(self.streams[entry.stream as usize].0, common.pid) {
                        told = task;
                    }
                    continue;
                }
            }
            if (entry.stream, entry.chunk) != (stream, chunk) {
                (stream, chunk) = (entry.stream, entry.chunk);
                let first;
                (cpu, first) = self.streams[stream as usize];
                bytes = &self.chunks[(first + chunk) as usize];
            }
            let ahead = &bytes[entry.offset as usize..];
            let raw = &ahead[..entry.len as usize];
            let (mut kind, mut name, mut fields) = (Kind::Other, "unknown", Fields::Untyped);
            if let Some(f) = formats.get(common.id) {
                name = &f.name;
                if f.kind != Kind::Other && raw.len() >= f.size {
                    kind = f.kind;
                    fields = Fields::Record(&f.layout, ahead);
                }
            }
            taker.event(&Event {
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

//! The packets of a trace: one message each, numbers in place of names that repeat.
//!
//! Numbers of fields are those of `protos/perfetto/trace` in Perfetto 59; they never change.

use super::proto::Message;
use crate::Error;
use rustc_hash::FxHashMap;
use std::io::Write;

/// Bytes that are handed on at once.
const CHUNK: usize = 1 << 16;
/// Most words of flags that are kept.
const WORDS: usize = 4096;
/// The writer of all packets.
const SEQUENCE: u64 = 1;

/// Kinds of a `TrackEvent`.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// Writes packets.
pub(super) struct Packets<W: Write> {
    to: W,
    /// In messages.
    name: String,
    out: Message,
    begun: bool,
    /// Names of events and of their fields that have numbers.
    events: FxHashMap<&'static str, u64>,
    fields: FxHashMap<&'static str, u64>,
    /// `InternedData` that the next packet brings.
    fresh: Message,
    packet: Message,
    /// The message of the last event, empty, to be used again.
    spare: Message,
    /// Words of flags by event, field and value.
    words: FxHashMap<(u32, usize, u64), Vec<u8>>,
    error: Option<Error>,
}

impl<W: Write> Packets<W> {
    pub fn new(to: W, name: &str) -> Packets<W> {
        let (out, events, fields, fresh, packet, spare, words) = Default::default();
        Packets { to, name: name.into(), out, begun: false, events, fields, fresh, packet, spare, words, error: None }
    }

    /// Number of the name of an event.
    pub fn event_name(&mut self, name: &'static str) -> u64 {
        number(name, &mut self.events, &mut self.fresh, 2)
    }

    /// Number of the name of a field.
    pub fn field_name(&mut self, name: &'static str) -> u64 {
        number(name, &mut self.fields, &mut self.fresh, 3)
    }

    /// Writes a `TrackDescriptor`.
    pub fn track(&mut self, descriptor: &mut Message) {
        self.packet.message(60, descriptor);
        self.end();
    }

    /// An empty message for [`Packets::event`].
    pub fn message(&mut self) -> Message {
        std::mem::take(&mut self.spare)
    }

    /// Writes a `TrackEvent` at a time in nanoseconds.
    pub fn event(&mut self, at: u64, mut event: Message) {
        self.packet.number(8, at).message(11, &mut event);
        self.spare = event;
        self.end();
    }

    /// Words that take long to make, which are made once.
    pub fn words(&mut self, of: (u32, usize, u64), make: impl FnOnce() -> Vec<u8>) -> &[u8] {
        if self.words.len() >= WORDS {
            self.words.clear();
        }
        self.words.entry(of).or_insert_with(make)
    }

    /// Hands on what is left. The first error of any write comes out here.
    pub fn close(mut self) -> Result<W, Error> {
        self.hand_on();
        if self.error.is_none() {
            self.error = self.to.flush().err().map(|e| Error::io(&self.name, e));
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.to),
        }
    }

    fn end(&mut self) {
        if !self.fresh.is_empty() {
            self.packet.message(12, &mut self.fresh);
        }
        // The first packet says that numbers start again, all others that they need those before them.
        self.packet.number(10, SEQUENCE).number(13, if self.begun { 2 } else { 1 });
        self.begun = true;
        self.out.message(1, &mut self.packet);
        if self.out.bytes().len() >= CHUNK {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        if self.error.is_none() {
            self.error = self.to.write_all(self.out.bytes()).err().map(|e| Error::io(&self.name, e));
        }
        self.out.clear();
    }
}

fn number(name: &'static str, known: &mut FxHashMap<&'static str, u64>, fresh: &mut Message, field: u32) -> u64 {
    let next = known.len() as u64 + 1;
    *known.entry(name).or_insert_with(|| {
        let mut entry = Message::default();
        entry.number(1, next).text(2, name.as_bytes());
        fresh.message(field, &mut entry);
        next
    })
}

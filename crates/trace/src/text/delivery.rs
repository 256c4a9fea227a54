//! What is given to a sink: events in the order of the file, with the losses that lie before them.

use super::kinds::{EventName, Values};
use super::line::Context;
use crate::{Outcome, Place};
use mmtwin_event::{Event, Fields, Kind, Sink};

/// Events between two calls of a progress callback.
const STEP: u64 = 1 << 16;

/// Who takes the events, and what was given so far.
pub(super) struct Delivery<'a> {
    /// Of the input, for places.
    pub name: &'a str,
    pub sink: &'a mut dyn Sink,
    pub outcome: &'a mut Outcome,
    pub progress: &'a mut dyn FnMut(u64),
    /// Number of the current line.
    pub line: u64,
    /// Losses that wait for the event behind them, which has their time.
    pub losses: Vec<(u32, Option<u64>)>,
    last_ts: u64,
}

impl<'a> Delivery<'a> {
    pub fn new(
        name: &'a str,
        sink: &'a mut dyn Sink,
        outcome: &'a mut Outcome,
        progress: &'a mut dyn FnMut(u64),
    ) -> Delivery<'a> {
        Delivery { name, sink, outcome, progress, line: 0, losses: Vec::new(), last_ts: 0 }
    }

    /// The place of the current line.
    pub fn place(&self) -> Place {
        Place::line(self.name, self.line)
    }

    #[cold]
    pub fn warn(&mut self, message: &str) {
        let (name, line) = (self.name, self.line);
        self.outcome.warnings.add(|| Place::line(name, line), message);
    }

    /// Gives an event.
    #[inline(always)]
    pub fn event(
        &mut self,
        context: &Context,
        comm: &[u8],
        id: usize,
        name: &EventName,
        payload: &[u8],
        values: Values<'_>,
    ) {
        if context.ts < self.last_ts {
            self.warn("time goes backwards: events stay in the order of the file");
        }
        self.last_ts = context.ts;
        if !self.losses.is_empty() {
            self.losses_before(context.ts);
        }
        let (kind, fields) = match values {
            Values::Typed(slots) => (name.kind, Fields::Text(slots)),
            Values::Untyped => (Kind::Other, Fields::Untyped),
        };
        self.outcome.events += 1;
        if self.outcome.events.is_multiple_of(STEP) {
            (self.progress)(self.outcome.events);
        }
        if kind == Kind::Other {
            self.outcome.untyped += 1;
            if name.kind != Kind::Other {
                let message =
                    format!("{}: fields are missing or unreadable; the event is kept without its type", name.name);
                self.outcome.warnings.add(|| Place::line(self.name, self.line), &message);
            }
        }
        self.sink.event(&Event {
            ts: context.ts,
            cpu: context.cpu,
            pid: context.pid,
            tgid: context.tgid,
            flags: context.flags,
            preempt_count: context.preempt_count,
            kind,
            id: id as u32,
            comm,
            name: &name.name,
            raw: payload,
            fields,
        });
    }

    /// Gives the losses that no event came behind.
    pub fn finish(&mut self) {
        self.losses_before(self.last_ts);
    }

    #[cold]
    fn losses_before(&mut self, at: u64) {
        for (cpu, events) in self.losses.drain(..) {
            self.sink.lost(cpu, events, at);
        }
    }
}

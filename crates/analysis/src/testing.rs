//! Events made by hand, for tests: typed values in the slots of a text event.

use crate::tasks::{Context, Task};
use mmtwin_event::{Event, Fields, Kind, Slots};

/// An event in the making.
pub struct EventBuilder {
    event: Event<'static>,
    slots: Slots,
    raw: Vec<u8>,
}

impl EventBuilder {
    /// An event of a kind, at time 0 on CPU 0 by the idle task.
    pub fn new(kind: Kind) -> EventBuilder {
        let event = Event {
            ts: 0,
            cpu: 0,
            pid: 0,
            tgid: 0,
            flags: 0,
            preempt_count: 0,
            kind,
            id: 0,
            comm: b"",
            name: kind.schema().map_or("", |s| s.name),
            raw: b"",
            fields: Fields::Untyped,
        };
        EventBuilder { event, slots: Slots::default(), raw: Vec::new() }
    }

    /// Sets the time in nanoseconds.
    pub fn at(mut self, ts: u64) -> EventBuilder {
        self.event.ts = ts;
        self
    }

    /// Sets the CPU.
    pub fn cpu(mut self, cpu: u32) -> EventBuilder {
        self.event.cpu = cpu;
        self
    }

    /// Sets the thread id.
    pub fn pid(mut self, pid: i32) -> EventBuilder {
        self.event.pid = pid;
        self
    }

    /// Sets the name of the task.
    pub fn comm(mut self, comm: &'static [u8]) -> EventBuilder {
        self.event.comm = comm;
        self
    }

    /// Sets a field by its name.
    pub fn set(mut self, field: &str, value: i64) -> EventBuilder {
        let schema = self.event.kind.schema().expect("a typed event");
        let slot = schema.slot(field.as_bytes()).unwrap_or_else(|| panic!("{} has no {field}", schema.name));
        self.slots.set(slot, value as u64);
        self
    }

    /// Sets a field of characters by its name.
    pub fn text(mut self, field: &str, value: &str) -> EventBuilder {
        let bytes = mmtwin_event::value::Bytes { start: self.raw.len() as u32, len: value.len() as u32 };
        self.raw.extend_from_slice(value.as_bytes());
        self.set(field, bytes.to_slot() as i64)
    }

    /// The event.
    pub fn event(&self) -> Event<'_> {
        Event { raw: &self.raw, fields: Fields::Text(&self.slots), ..self.event }
    }
}

/// A task in a context.
pub fn task(pid: i32, context: Context) -> Task {
    let mut task = Task::default();
    (task.pid, task.context, task.kswapd) = (pid, context, context == Context::Kswapd);
    task
}

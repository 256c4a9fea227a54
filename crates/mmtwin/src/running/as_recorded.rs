//! The twin's events as a recording has them, so that `run` and `report` of what it wrote say the same.
//!
//! The twin fills every field that it knows. Kernels of an era have some of the events, and of these some of the fields:
//! what they lack is not known to who reads a recording, and must not be known to who watches the run.

use mmtwin_event::era::{self, Era};
use mmtwin_event::event::Slots;
use mmtwin_event::vocabulary::SCHEMAS;
use mmtwin_event::{CounterRow, Event, Fields, Kind, Order, Sink, Source, Task};

/// Hands on what an era has.
pub(super) struct AsRecorded<'s> {
    inner: &'s mut dyn Sink,
    /// By kind: bits of the slots of its fields; `None`: there is no such event.
    kept: Vec<Option<u32>>,
}

impl<'s> AsRecorded<'s> {
    pub fn new(era: Era, inner: &'s mut dyn Sink) -> AsRecorded<'s> {
        let slots = |kind: Kind| {
            let fields = era::of_kind(era, kind)?.fields.iter().filter_map(|field| field.slot);
            Some(fields.fold(0, |bits, slot| bits | 1 << slot))
        };
        // `Other` comes before all kinds with a schema.
        let kept = std::iter::once(None).chain(SCHEMAS.iter().map(|schema| slots(schema.kind))).collect();
        AsRecorded { inner, kept }
    }
}

impl Sink for AsRecorded<'_> {
    fn start(&mut self, source: &Source) {
        self.inner.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.inner.task(task);
    }
    fn order(&self, kind: Kind) -> Order {
        self.inner.order(kind)
    }
    fn event(&mut self, event: &Event<'_>) {
        let Some(kept) = self.kept[event.kind as usize] else { return };
        match event.fields {
            Fields::Text(slots) if slots.present & !kept != 0 => {
                let mut known = Slots::default();
                let has = (0..slots.values.len()).filter(|slot| slots.present & kept & 1 << slot != 0);
                has.for_each(|slot| known.set(slot, slots.values[slot]));
                self.inner.event(&Event { fields: Fields::Text(&known), ..*event });
            }
            _ => self.inner.event(event),
        }
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.inner.lost(cpu, events, at);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        self.inner.counters(row);
    }
    fn finish(&mut self) {
        self.inner.finish();
    }
}

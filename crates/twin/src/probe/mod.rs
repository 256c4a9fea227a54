//! The tracepoints: the one place where events leave the simulated kernel.
//!
//! A mechanism calls [`Probe::on`] before it builds an event, so a disabled event costs one test. Events wait in a
//! buffer until the end of an epoch, when [`Probe::drain`] gives them to a sink in order of (time, CPU, sequence).
//! Values are stored as the slots of the vocabulary; characters they refer to are stored behind them.

use crate::time::Ns;
use mmtwin_event::era::{Era, gfp_then};
use mmtwin_event::value::{Bytes, Gfp};
use mmtwin_event::vocabulary::SCHEMAS;
use mmtwin_event::{Event, Fields, Kind, Sink, Slots, Typed};
use std::borrow::Cow;

/// The task that runs when an event is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Thread id; 0 is the idle task.
    pub pid: i32,
    /// Thread group id.
    pub tgid: i32,
}

/// Which events are on, and those that wait.
#[derive(Clone, Debug)]
pub struct Probe {
    enabled: [bool; Kind::COUNT],
    waiting: Vec<Waiting>,
    /// Values of all waiting events, one after another.
    values: Vec<u64>,
    /// Characters of all waiting events.
    text: Vec<u8>,
    /// Events already drained whose values and characters are still stored.
    gone: usize,
    written: u64,
    /// Events whose time has not been spent yet.
    unpaid: u64,
    origin: Ns,
    era: Era,
    /// Events before this time have been given out.
    drained: Ns,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Ns,
    cpu: u32,
    task: Task,
    kind: Kind,
    present: u32,
    values: u32,
    text: (u32, u32),
}

impl Probe {
    /// A probe that writes the events of these kinds.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Probe {
        let mut enabled = [false; Kind::COUNT];
        kinds.into_iter().for_each(|kind| enabled[kind as usize] = true);
        enabled[Kind::Other as usize] = false;
        let (waiting, values, text) = (Vec::new(), Vec::new(), Vec::new());
        Probe { enabled, waiting, values, text, gone: 0, written: 0, unpaid: 0, origin: 0, era: Era::V6_18, drained: 0 }
    }

    /// A probe that writes nothing.
    pub fn off() -> Probe {
        Probe::new([])
    }

    /// Times written from now on count from here.
    pub(crate) fn set_origin(&mut self, origin: Ns) {
        self.origin = origin;
    }

    /// Events are those of an era's kernels.
    pub(crate) fn set_era(&mut self, era: Era) {
        self.era = era;
    }

    /// Events are those of a kernel that reclaims zones, without the fields of later ones. Kernels 3.6 to 4.19 reclaim
    /// by node here and write events of 3.5, so events of a zone's reclaim name the highest zone from which pages may
    /// be reclaimed.
    pub(crate) fn old_events(&self) -> bool {
        self.era <= Era::V3_5
    }

    /// The flags of a request as the kernel prints them, and the field that stands for all of that text.
    pub(crate) fn gfp(&self, flags: &'static str) -> (Cow<'static, str>, Gfp) {
        let text = gfp_then(self.era, flags);
        let field = Gfp(Bytes { start: 0, len: text.len() as u32 }.to_slot());
        (text, field)
    }

    /// True if events of this kind are enabled.
    #[inline(always)]
    pub fn on(&self, kind: Kind) -> bool {
        self.enabled[kind as usize]
    }

    /// Writes an event, if its kind is on. Fields that are characters are ranges of `text`.
    pub fn write<T: Typed>(&mut self, at: Ns, cpu: u32, task: Task, event: &T, text: &[u8]) {
        if !self.on(T::KIND) {
            return;
        }
        let mut slots = Slots::default();
        event.write(&mut slots);
        let count = T::KIND.schema().map_or(0, |schema| schema.fields.len());
        let (values, start) = (self.values.len() as u32, self.text.len() as u32);
        self.values.extend_from_slice(&slots.values[..count]);
        self.text.extend_from_slice(text);
        let text = (start, self.text.len() as u32);
        let at = at + self.origin;
        debug_assert!(at >= self.drained, "CPU {cpu} writes at {at}, but events before {} are given out", self.drained);
        self.waiting.push(Waiting { at, cpu, task, kind: T::KIND, present: slots.present, values, text });
        self.written += 1;
        self.unpaid += 1;
    }

    /// Events written since the last call; the CPU that wrote them spends their time.
    #[inline]
    pub(crate) fn take_unpaid(&mut self) -> u64 {
        std::mem::take(&mut self.unpaid)
    }

    /// Events written so far, those that were drained included.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Memory that waiting events take.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.len() * size_of::<Waiting>() + self.values.len() * size_of::<u64>() + self.text.len()
    }

    /// Gives the waiting events before a time to a sink; [`Ns::MAX`]: all.
    pub fn drain(&mut self, before: Ns, sink: &mut dyn Sink) {
        if before != Ns::MAX {
            self.drained = before;
        }
        // Stable, so events of one time and CPU stay in the order in which they were written.
        self.waiting.sort_by_key(|event| (event.at, event.cpu));
        let due = self.waiting.partition_point(|event| event.at < before);
        let mut slots = Slots::default();
        for event in self.waiting.drain(..due) {
            let Some(schema) = event.kind.schema() else { continue };
            let values = &self.values[event.values as usize..][..schema.fields.len()];
            slots.values[..values.len()].copy_from_slice(values);
            slots.present = event.present;
            sink.event(&Event {
                ts: event.at,
                cpu: event.cpu,
                pid: event.task.pid,
                tgid: event.task.tgid,
                flags: 0,
                preempt_count: 0,
                kind: event.kind,
                id: event.kind as u32,
                comm: b"",
                name: SCHEMAS[event.kind as usize - 1].name,
                raw: &self.text[event.text.0 as usize..event.text.1 as usize],
                fields: Fields::Text(&slots),
            });
        }
        // The rest moves to the front once more events are drained than wait: the buffer stays small even if it is
        // never empty, and moving costs no more than draining.
        self.gone += due;
        if self.gone >= self.waiting.len() {
            self.gone = 0;
            self.close_up();
        }
    }

    /// Drops the values and characters of drained events.
    fn close_up(&mut self) {
        let (mut values, mut text) = (Vec::new(), Vec::new());
        for event in &mut self.waiting {
            let count = event.kind.schema().map_or(0, |schema| schema.fields.len());
            let kept = (values.len() as u32, text.len() as u32);
            values.extend_from_slice(&self.values[event.values as usize..][..count]);
            text.extend_from_slice(&self.text[event.text.0 as usize..event.text.1 as usize]);
            (event.values, event.text) = (kept.0, (kept.1, text.len() as u32));
        }
        // Copied, so that the memory of the larger buffers is used again.
        self.values.clear();
        self.values.extend_from_slice(&values);
        self.text.clear();
        self.text.extend_from_slice(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::vocabulary::{MmVmscanKswapdSleep, PurgeVmapAreaLazy};

    #[derive(Default)]
    struct Seen(Vec<(u64, u32, i32)>);
    impl Sink for Seen {
        fn event(&mut self, event: &Event<'_>) {
            self.0.push((event.ts, event.cpu, event.typed::<MmVmscanKswapdSleep>().nid));
        }
    }

    #[test]
    fn events_leave_in_order_and_only_when_due() {
        let mut probe = Probe::new([Kind::MmVmscanKswapdSleep]);
        for (at, cpu, nid) in [(7, 1, 0), (5, 2, 1), (5, 0, 2), (5, 2, 3), (9, 0, 4)] {
            probe.write(at, cpu, Task::default(), &MmVmscanKswapdSleep { nid }, b"");
        }
        let mut seen = Seen::default();
        probe.drain(8, &mut seen);
        assert_eq!(seen.0, [(5, 0, 2), (5, 2, 1), (5, 2, 3), (7, 1, 0)]);
        probe.drain(10, &mut seen);
        assert_eq!((seen.0.last(), probe.written()), (Some(&(9, 0, 4)), 5));
    }

    #[test]
    fn a_buffer_in_which_something_always_waits_stays_small() {
        let mut probe = Probe::new([Kind::MmVmscanKswapdSleep]);
        let mut seen = Seen::default();
        for at in 0..10_000 {
            probe.write(at, 0, Task::default(), &MmVmscanKswapdSleep { nid: at as i32 }, b"abc");
            probe.write(at + 3, 0, Task::default(), &MmVmscanKswapdSleep { nid: at as i32 }, b"");
            probe.drain(at, &mut seen);
        }
        assert!(probe.bytes() < 2000, "{} bytes", probe.bytes());
        probe.drain(u64::MAX, &mut seen);
        assert!(
            seen.0.len() == 20_000 && seen.0.iter().all(|&(at, _, nid)| at as i32 - nid == 0 || at as i32 - nid == 3)
        );
    }

    #[test]
    fn disabled_events_are_not_written() {
        let mut probe = Probe::off();
        assert!(!probe.on(Kind::PurgeVmapAreaLazy));
        probe.write(1, 0, Task::default(), &PurgeVmapAreaLazy { start: 0, end: 0, num_purged: 0 }, b"");
        assert_eq!(probe.written(), 0);
    }
}

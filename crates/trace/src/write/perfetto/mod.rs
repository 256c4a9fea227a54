//! A stream as a trace of Perfetto: `TracePacket`s with tracks, slices, moments, counters and flows.
//!
//! Packets are written as events come; nothing is kept but the tracks, what has begun on them, and the last value of
//! each counter. Begins without end and ends without begin occur wherever a recording starts, stops or loses events: an
//! end without begin is a moment, a begin without end has no end, and a second begin of the same ends the first.

mod annotate;
mod packets;
mod proto;
mod slices;
mod tracks;

use crate::format::Formats;
use crate::{Error, Outcome};
use mmtwin_event::vocabulary as v;
use mmtwin_event::{CounterRow, Event, Kind, Sink, Source, Task};
use packets::Packets;
use proto::Message;
use rustc_hash::FxHashMap;
use slices::{Edge, Open};
use std::io::Write;
use std::sync::Arc;
use tracks::{Known, Tracks};

/// Wakes of one kswapd that wait for it to begin; more have no arrow.
const PENDING: usize = 64;

/// Writes a stream as a trace of Perfetto.
pub struct PerfettoWriter<W: Write> {
    packets: Packets<W>,
    tracks: Tracks,
    formats: Option<Arc<Formats>>,
    source: Source,
    /// By thread id.
    open: FxHashMap<i32, (u64, Open)>,
    /// Flows from those who woke a kernel thread of a node, by its kind.
    wakes: FxHashMap<(Woken, i32), Vec<u64>>,
    flows: u64,
}

/// Kernel threads that others wake.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Woken {
    Kswapd,
    Kcompactd,
}

/// A wake, or the begin of the work that was asked for, and the node.
enum Flow {
    From(Woken, i32),
    To(Woken, i32),
}

impl<W: Write> PerfettoWriter<W> {
    /// A writer to `to`, which messages call `name`. `formats` are those of the source, if it is binary.
    pub fn new(to: W, name: &str, formats: Option<Arc<Formats>>) -> PerfettoWriter<W> {
        let (tracks, source, open, wakes) = Default::default();
        PerfettoWriter { packets: Packets::new(to, name), tracks, formats, source, open, wakes, flows: 0 }
    }

    /// Hands on what is left. The first error of any write comes out here.
    ///
    /// # Errors
    /// Those of the output.
    pub fn close(self) -> Result<W, Error> {
        self.packets.close()
    }

    /// A moment on the track of the event's CPU.
    fn on_cpu(&mut self, event: &Event<'_>) {
        let track = self.tracks.cpu(event.cpu, &self.source, &mut self.packets);
        let mut message = self.named(packets::Kind::Instant, track, event);
        annotate::number(&mut message, "task", 4, event.pid as u64, &mut self.packets);
        self.annotate(&mut message, event);
        self.packets.event(event.ts, message);
    }

    /// An event on the track of its task.
    fn on_thread(&mut self, event: &Event<'_>, edge: Edge) {
        let track = self.tracks.thread(event.pid, event.tgid, event.comm, &mut self.packets);
        let (_, mut open) = self.open.remove(&event.pid).unwrap_or((track, Open::default()));
        self.end_due(track, &mut open, event.ts);
        // The clock of a CPU may be behind that of the one where the task ran before; what is on a track is in order.
        let at = event.ts.max(open.last);
        match edge {
            Edge::Begin(name) => {
                // One that still runs has ended, and its end was lost.
                let lost = open.depth(name).unwrap_or(0);
                self.end(track, &mut open, lost, at, None);
                let mut message = self.begin(track, name, &mut open);
                if let Some(cgroup) = self.tracks.known(event.pid).and_then(|known| known.cgroup.as_deref()) {
                    annotate::text(&mut message, "cgroup", cgroup.as_bytes(), &mut self.packets);
                }
                self.flow(&mut message, event);
                self.annotate(&mut message, event);
                self.packets.event(at, message);
            }
            Edge::End(name) => match open.depth(name) {
                Some(depth) => self.end(track, &mut open, depth, at, Some(event)),
                None => self.moment(track, at, event),
            },
            Edge::Took(name, ns) => {
                let begin = event.ts.saturating_sub(ns).max(open.last);
                let mut message = self.begin(track, name, &mut open);
                self.annotate(&mut message, event);
                self.packets.event(begin, message);
                self.end(track, &mut open, 1, at, None);
            }
            Edge::Takes(name, ns) => {
                let mut message = self.begin(track, name, &mut open);
                self.annotate(&mut message, event);
                self.packets.event(at, message);
                open.until = Some(at.saturating_add(ns));
            }
            Edge::Moment | Edge::OfCpu => self.moment(track, at, event),
        }
        open.last = at;
        self.open.insert(event.pid, (track, open));
    }

    fn moment(&mut self, track: u64, at: u64, event: &Event<'_>) {
        let mut message = self.named(packets::Kind::Instant, track, event);
        self.flow(&mut message, event);
        self.annotate(&mut message, event);
        self.packets.event(at, message);
    }

    fn begin(&mut self, track: u64, name: &'static str, open: &mut Open) -> Message {
        open.push(name);
        let mut message = self.packets.message();
        message.number(9, packets::Kind::Begin as u64).number(11, track).number(10, self.packets.event_name(name));
        message
    }

    /// Ends the innermost of a track; the last of them with the fields of the event that ends it.
    fn end(&mut self, track: u64, open: &mut Open, how_many: usize, at: u64, by: Option<&Event<'_>>) {
        for left in (0..how_many).rev() {
            let mut message = self.packets.message();
            message.number(9, packets::Kind::End as u64).number(11, track);
            if let Some(event) = by.filter(|_| left == 0) {
                self.annotate(&mut message, event);
            }
            self.packets.event(at, message);
            open.pop();
        }
        open.until = open.until.filter(|_| how_many == 0);
    }

    /// Ends a pause whose end is known, or which has ended before it.
    fn end_due(&mut self, track: u64, open: &mut Open, now: u64) {
        if let Some(until) = open.until {
            let at = until.min(now).max(open.last);
            self.end(track, open, 1, at, None);
            open.last = at;
        }
    }

    /// A message with the name of the event.
    fn named(&mut self, kind: packets::Kind, track: u64, event: &Event<'_>) -> Message {
        let mut message = self.packets.message();
        message.number(9, kind as u64).number(11, track);
        let formats = self.formats.as_deref().filter(|_| event.comm.is_empty());
        match event.kind.schema() {
            Some(schema) => message.number(10, self.packets.event_name(schema.name)),
            // Names of a trace are as many as somebody likes: they have no numbers.
            None => match formats.and_then(|formats| formats.get(u16::try_from(event.id).ok()?)) {
                Some(format) => message.text(23, format.name.as_bytes()),
                None => message.text(23, event.name.as_bytes()),
            },
        };
        message
    }

    fn annotate(&mut self, message: &mut Message, event: &Event<'_>) {
        annotate::fields(message, event, &self.source, self.formats.as_deref(), &mut self.packets);
    }

    /// An arrow from who wakes a kernel thread to its work.
    fn flow(&mut self, message: &mut Message, event: &Event<'_>) {
        match flow(event) {
            Some(Flow::From(woken, node)) => {
                let waiting = self.wakes.entry((woken, node)).or_default();
                if waiting.len() < PENDING {
                    self.flows += 1;
                    waiting.push(self.flows);
                    message.fixed(47, self.flows);
                }
            }
            Some(Flow::To(woken, node)) => {
                for flow in self.wakes.remove(&(woken, node)).unwrap_or_default() {
                    message.fixed(48, flow);
                }
            }
            None => {}
        }
    }
}

fn flow(event: &Event<'_>) -> Option<Flow> {
    Some(match event.kind {
        Kind::MmVmscanWakeupKswapd => Flow::From(Woken::Kswapd, event.typed::<v::MmVmscanWakeupKswapd>().nid),
        Kind::MmVmscanKswapdWake => Flow::To(Woken::Kswapd, event.typed::<v::MmVmscanKswapdWake>().nid),
        Kind::MmCompactionWakeupKcompactd => {
            Flow::From(Woken::Kcompactd, event.typed::<v::MmCompactionWakeupKcompactd>().nid)
        }
        Kind::MmCompactionKcompactdWake => {
            Flow::To(Woken::Kcompactd, event.typed::<v::MmCompactionKcompactdWake>().nid)
        }
        _ => return None,
    })
}

impl<W: Write> Sink for PerfettoWriter<W> {
    fn start(&mut self, source: &Source) {
        self.source = source.clone();
    }

    fn task(&mut self, task: &Task<'_>) {
        let cgroup = task.cgroup.map(str::to_string);
        self.tracks.task(task.pid, Known { tgid: task.tgid, comm: task.comm.to_vec(), cgroup });
    }

    fn event(&mut self, event: &Event<'_>) {
        match slices::edge(event) {
            Edge::OfCpu => self.on_cpu(event),
            // The idle task of each CPU has the same id.
            _ if event.pid == 0 => self.on_cpu(event),
            edge => self.on_thread(event, edge),
        }
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        let track = match cpu {
            Outcome::SOME_CPU => self.tracks.cpus(&mut self.packets),
            cpu => self.tracks.cpu(cpu, &self.source, &mut self.packets),
        };
        let mut message = self.packets.message();
        let name = self.packets.event_name("events lost");
        message.number(9, packets::Kind::Instant as u64).number(11, track).number(10, name);
        if let Some(events) = events {
            annotate::number(&mut message, "events", 3, events, &mut self.packets);
        }
        self.packets.event(at, message);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        for (track, value) in self.tracks.changed(row, &mut self.packets) {
            let mut message = self.packets.message();
            message.number(9, packets::Kind::Counter as u64).number(11, track).signed(30, value as i64);
            self.packets.event(row.at, message);
        }
    }

    fn finish(&mut self) {
        // Pauses that were to end later than the last event of their task.
        let mut open: Vec<_> = self.open.drain().filter(|(_, (_, open))| open.until.is_some()).collect();
        open.sort_unstable_by_key(|(pid, _)| *pid);
        for (_, (track, mut open)) in open {
            self.end_due(track, &mut open, u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests;

//! Whether a span of entries may be handed over CPU by CPU.
//!
//! It may if the sink needs no more than order within tasks for every event in it, and every task stayed on its CPU.
//! Tasks are remembered in a small table that is never cleared: entries of earlier spans are recognised by their
//! stamp. Where it cannot tell (too many tasks in one span), it says no, and the span is sorted.

use super::page::Entry;
use crate::format::Formats;
use mmtwin_event::{Kind, Order, Sink};

/// Slots of the table; a span has some thousand entries of some tens of tasks.
const SLOTS: usize = 4096;
/// Slots looked at for one task.
const PROBES: usize = 16;

/// Looks for tasks that changed their CPU.
pub(super) struct Moves {
    /// By format id: the sink needs these events in order of time.
    in_time: Vec<bool>,
    /// The sink needs all events in order of time.
    always: bool,
    span: u32,
    seen: Vec<Seen>,
}

/// A task and where it was seen last.
#[derive(Clone, Copy, Default)]
struct Seen {
    pid: i32,
    stream: u32,
    /// Number of the span; 0 = never.
    span: u32,
}

impl Moves {
    pub fn new(formats: &Formats, sink: &dyn Sink) -> Moves {
        let mut in_time = vec![sink.order(Kind::Other) == Order::Time; 1 << 16];
        let mut always = true;
        for format in formats.iter() {
            let needed = sink.order(format.kind) == Order::Time;
            in_time[usize::from(format.id)] = needed;
            always &= needed;
        }
        Moves { in_time, always, span: 0, seen: vec![Seen::default(); SLOTS] }
    }

    /// True if the entries, which stand CPU by CPU, are in an order that the sink can take.
    pub fn within_tasks(&mut self, entries: &[Entry]) -> bool {
        if self.always {
            return false;
        }
        self.span = self.span.wrapping_add(1).max(1);
        let mut last = (u32::MAX, 0);
        for entry in entries.iter().filter(|e| e.len != Entry::LOST) {
            let common = entry.common;
            if self.in_time[usize::from(common.id)] {
                return false;
            }
            // The idle task of every CPU has pid 0 and stays there.
            if (entry.stream, common.pid) == last || common.pid == 0 {
                continue;
            }
            last = (entry.stream, common.pid);
            if !self.stays(common.pid, entry.stream) {
                return false;
            }
        }
        true
    }

    /// Notes that a task ran on a CPU; false if it ran on another in this span, or if that cannot be told.
    fn stays(&mut self, pid: i32, stream: u32) -> bool {
        let hash = (pid as u32).wrapping_mul(0x9e37_79b1) as usize >> 16;
        for probe in 0..PROBES {
            let seen = &mut self.seen[(hash + probe) % SLOTS];
            if seen.span != self.span {
                *seen = Seen { pid, stream, span: self.span };
                return true;
            }
            if seen.pid == pid {
                return seen.stream == stream;
            }
        }
        false
    }
}

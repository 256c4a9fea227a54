//! Reading and writing of kernel traces.
//!
//! Every reader ends in the same place: it calls a [`Sink`](mmtwin_event::Sink). `format` compiles the format
//! texts of a recording into layouts and print programs; [`ring`] walks ring-buffer pages and merges CPUs;
//! `text` reads ftrace lines; `dat` reads and writes `trace.dat`; `recording` is mmtwin's own directory.
//! [`input`] tells which of them a file needs; [`output`] opens what is written; [`private`] replaces names in a
//! recording. [`access`] reads another kind of trace: accesses of pages, to be replayed.

pub mod access;
pub mod dat;
pub mod error;
mod files;
pub mod format;
mod functions;
pub mod input;
pub mod map;
pub mod output;
pub mod private;
pub mod recording;
pub mod ring;
pub mod text;
pub mod write;

pub use error::{At, Error, Place, Warning, Warnings};

use std::collections::BTreeMap;

/// What a reader has to say after the last event.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Events delivered.
    pub events: u64,
    /// Of those, events that the vocabulary has no type for.
    pub untyped: u64,
    /// Stack traces: they belong to the events before them and are no events. Those of a text are omitted.
    pub stacks: u64,
    /// What was wrong and stepped over.
    pub warnings: Warnings,
    /// Losses by CPU: (events known to be lost, gaps of unknown size). Absent CPUs lost nothing that was marked.
    pub lost: BTreeMap<u32, (u64, u64)>,
}

impl Outcome {
    /// Stands for the CPU of a loss where the source knows only the sum.
    pub const SOME_CPU: u32 = u32::MAX;

    /// Notes a loss on a CPU; `None`: of unknown size.
    pub fn add_lost(&mut self, cpu: u32, events: Option<u64>) {
        let (known, gaps) = self.lost.entry(cpu).or_default();
        match events {
            Some(n) => *known = known.saturating_add(n),
            None => *gaps += 1,
        }
    }
    /// Sum over CPUs: (events known to be lost, gaps of unknown size). What the input itself lacks is not among them.
    pub fn lost_total(&self) -> (u64, u64) {
        self.lost.values().fold((0, 0), |(e, g): (u64, u64), (events, gaps)| (e.saturating_add(*events), g + gaps))
    }
    /// Events that were lost; `None` where a gap has no known size, or where the input itself is cut.
    pub fn lost_events(&self) -> Option<u64> {
        let (known, gaps) = self.lost_total();
        (gaps == 0 && self.warnings.cuts().next().is_none()).then_some(known)
    }
    /// What the input lacks, in words, each with its place.
    pub fn cuts(&self) -> Vec<String> {
        self.warnings.cuts().map(|cut| format!("{}: {}", cut.place, cut.message)).collect()
    }
}

//! A part of an input: some tasks, cgroups or nodes, or a stretch of its time.
//!
//! A filter stands between a reader and whoever takes the stream, so that every verb has it. `who` knows the tasks,
//! `part` lets events and counters through, `there` says what an input has when nothing matched.

mod part;
mod there;
mod who;

use crate::Error;
use mmtwin_event::Sink;
use mmtwin_trace::input::{Input, InputFile};
use mmtwin_trace::{Outcome, Place};
use part::Part;
pub(crate) use part::Seen;

/// What of an input is read. Of several cgroups, processes or nodes any is enough; of the criteria all must hold.
///
/// An event belongs to the task that wrote it, and to the node that it names, or else to that of its CPU. Counters of the
/// whole machine belong to no task, cgroup or node: they are n/a under such a filter. Counters of a stretch of time are
/// those of the samples in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Cgroups, with those below them: paths as recorded or names as of [`mmtwin_event::container::short`], with `*` and
    /// `?`.
    pub cgroups: Vec<String>,
    /// Processes: process or thread ids, or names with `*` and `?`, with all threads of a process.
    pub processes: Vec<String>,
    /// Nodes by number.
    pub nodes: Vec<u32>,
    /// Nanoseconds after the start of the recording, or after the first event of another trace.
    pub from: Option<u64>,
    /// See `from`; what happens at that time is read too.
    pub to: Option<u64>,
}

/// Begin and end of a recording in nanoseconds of the trace clock, where they are known before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Begin.
    pub start: Option<u64>,
    /// End.
    pub end: Option<u64>,
}

impl Extent {
    /// That of an input that was opened.
    pub fn of(file: &InputFile) -> Extent {
        let recording = file.recording();
        Extent {
            start: recording.map(|recording| recording.manifest.start),
            end: recording.and_then(|recording| Some(recording.end.as_ref()?.end)),
        }
    }
}

impl Filter {
    /// True if it lets everything through.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// True if it is about time only.
    fn is_time(&self) -> bool {
        self.cgroups.is_empty() && self.processes.is_empty() && self.nodes.is_empty()
    }

    /// `cgroup /web, process redis*, from 2 s to 4 s`.
    pub fn words(&self) -> String {
        let list = |what: &str, items: &[String]| (!items.is_empty()).then(|| format!("{what} {}", items.join(" or ")));
        let nodes: Vec<String> = self.nodes.iter().map(u32::to_string).collect();
        let time = match (self.from, self.to) {
            (None, None) => None,
            (Some(from), None) => Some(format!("from {}", time(from))),
            (None, Some(to)) => Some(format!("up to {}", time(to))),
            (Some(from), Some(to)) => Some(format!("from {} to {}", time(from), time(to))),
        };
        let parts = [list("cgroup", &self.cgroups), list("process", &self.processes), list("node", &nodes), time];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What of an input it leaves, and what is not known of that, in one sentence.
    pub(crate) fn note(&self) -> String {
        let counters = match self.is_time() {
            true => "counters are those of the samples in it",
            false => "counters of the whole machine are n/a",
        };
        format!("only {}; {counters}", self.words())
    }

    /// Gives what it lets through of an input to a sink. `progress` is told how many events were read, now and then.
    ///
    /// # Errors
    /// Those of the input, and [`Error::NothingMatches`].
    pub fn read(
        &self,
        input: Input<'_>,
        extent: Extent,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Outcome, Error> {
        if self.is_empty() {
            return Ok(input.read_showing(sink, progress)?);
        }
        Ok(self.read_part(input, extent, sink, progress)?.0)
    }

    /// The same, with what was seen of the whole.
    pub(crate) fn read_part(
        &self,
        input: Input<'_>,
        extent: Extent,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Outcome, Seen), Error> {
        let name = input.source.name.clone();
        let mut part = Part::new(self, extent, sink);
        let mut outcome = input.read_showing(&mut part, progress)?;
        let (seen, there) = part.seen();
        if seen.events == 0 && seen.rows == 0 {
            return Err(Error::NothingMatches { input: name, filter: self.words(), there: there.words() });
        }
        (outcome.events, outcome.untyped) = (seen.events, seen.untyped);
        if seen.unattributed > 0 {
            let events = seen.unattributed;
            let message = format!("{events} events of tasks whose cgroup is not recorded are in no cgroup");
            outcome.warnings.add(|| Place::file(&name), &message);
        }
        Ok((outcome, seen))
    }
}

/// Nanoseconds in the largest unit of which it is at least one: `2 s`, `1.5 ms`.
fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let (size, unit) = units.into_iter().find(|(size, _)| ns >= *size).unwrap_or((1, if ns == 0 { "s" } else { "ns" }));
    let text = format!("{:.3}", ns as f64 / size as f64);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests;

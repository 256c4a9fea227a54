//! Small recordings made by hand, for the tests of rules.

use crate::Analysis;
use crate::testing::EventBuilder;
use mmtwin_event::{CounterRow, Kind, Sink};

/// An analysis that is being fed.
#[derive(Default)]
pub struct Recording {
    pub analysis: Analysis,
}

impl Recording {
    /// Feeds one event of task 1.
    pub fn event(&mut self, kind: Kind, at: u64, fields: &[(&str, i64)]) {
        self.by(1, b"task", kind, at, fields);
    }

    /// Feeds one event of a named task.
    pub fn by(&mut self, pid: i32, comm: &'static [u8], kind: Kind, at: u64, fields: &[(&str, i64)]) {
        let made = EventBuilder::new(kind).at(at).pid(pid).comm(comm);
        self.analysis.event(&fields.iter().fold(made, |made, (name, value)| made.set(name, *value)).event());
    }

    /// Feeds two rows of counters, ten seconds apart: (name, before, after).
    pub fn counters(&mut self, source: &str, key: &str, values: &[(&str, u64, u64)]) {
        let names: Vec<String> = values.iter().map(|(name, ..)| name.to_string()).collect();
        for (at, pick) in [(0, 0), (10_000_000_000, 1)] {
            let values: Vec<_> = values.iter().map(|(_, before, after)| Some([*before, *after][pick])).collect();
            self.analysis.counters(&CounterRow { source, key, at, names: &names, values: &values });
        }
    }

    /// Feeds vmstat counters.
    pub fn vmstat(&mut self, values: &[(&str, u64, u64)]) {
        self.counters("vmstat", "", values);
    }
}

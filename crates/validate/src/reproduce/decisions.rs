//! What the kernel of a run decided, as counts: trace events by kind and counters. Two runs that are the same in all of
//! them, and in their results, are one run: the patch between their kernels has changed nothing there.

use super::Found;
use mmtwin_event::vocabulary::SCHEMAS;
use mmtwin_event::{CounterRow, Event, Kind, Sink};
use std::collections::BTreeMap;

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Trace events by name, of those that the scenario enables.
    pub events: BTreeMap<&'static str, u64>,
    /// Last values of the counters.
    pub counters: BTreeMap<String, u64>,
}

/// Counts what passes.
pub(super) struct Count {
    kinds: [u64; Kind::COUNT],
    counters: BTreeMap<String, u64>,
}

impl Default for Count {
    fn default() -> Count {
        Count { kinds: [0; Kind::COUNT], counters: BTreeMap::new() }
    }
}

impl Sink for Count {
    fn event(&mut self, event: &Event<'_>) {
        self.kinds[event.kind as usize] += 1;
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        if row.source == "vmstat" {
            for (name, value) in row.names.iter().zip(row.values) {
                let Some(value) = value else { continue };
                match self.counters.get_mut(name) {
                    Some(known) => *known = *value,
                    None => {
                        self.counters.insert(name.clone(), *value);
                    }
                }
            }
        }
    }
}

impl Count {
    /// What was counted.
    pub(super) fn decisions(self) -> Decisions {
        let counts = SCHEMAS.iter().map(|schema| (schema.name, self.kinds[schema.kind as usize]));
        Decisions { events: counts.filter(|(_, count)| *count > 0).collect(), counters: self.counters }
    }
}

/// How two runs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Sum over kinds of events of what one has more of than the other.
    pub events: u64,
    /// Kinds of events whose counts differ.
    pub kinds: usize,
    /// Counters that both have and that differ.
    pub counters: usize,
    /// Runs that are equal in all of this and in their results.
    pub identical: usize,
    /// Pairs of runs.
    pub of: usize,
    /// Pairs of which a run was ended early: these are not compared.
    pub halted: usize,
}

impl Difference {
    /// Between runs with the same seeds, added up over the seeds.
    pub(super) fn between(before: &[&Found], after: &[&Found]) -> Difference {
        let mut all = Difference::default();
        for (a, b) in before.iter().zip(after) {
            if a.halted.is_some() || b.halted.is_some() {
                all.halted += 1;
                continue;
            }
            let one = of_runs(&a.decisions, &b.decisions);
            all.events += one.events;
            all.kinds = all.kinds.max(one.kinds);
            all.counters = all.counters.max(one.counters);
            let same = one.events == 0 && one.counters == 0 && a.values == b.values;
            all.identical += usize::from(same);
            all.of += 1;
        }
        all
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        if self.of == 0 {
            return if self.halted > 0 { "n/a: a run was ended early".into() } else { "n/a".into() };
        }
        if self.identical == self.of {
            return "changes nothing here".into();
        }
        let some = match self.identical {
            0 => String::new(),
            identical => format!(", {identical} of {} runs identical", self.of),
        };
        match (self.events, self.counters) {
            (0, 0) => format!("results only{some}"),
            (0, counters) => format!("{counters} counters{some}"),
            (events, counters) => {
                let per_run = events / self.of as u64;
                format!("{per_run} events of {} kinds, {counters} counters{some}", self.kinds)
            }
        }
    }
}

fn of_runs(a: &Decisions, b: &Decisions) -> Difference {
    let mut difference = Difference::default();
    let only = |x: &Decisions, y: &Decisions| -> Vec<u64> {
        x.events.iter().filter(|(name, _)| !y.events.contains_key(*name)).map(|(_, count)| *count).collect()
    };
    let shared = a.events.iter().filter_map(|(name, n)| Some(n.abs_diff(*b.events.get(name)?)));
    for gap in shared.chain(only(a, b)).chain(only(b, a)).filter(|gap| *gap > 0) {
        difference.events += gap;
        difference.kinds += 1;
    }
    let counters = a.counters.iter().filter(|(name, value)| b.counters.get(*name).is_some_and(|other| other != *value));
    difference.counters = counters.count();
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(events: &[(&'static str, u64)], counter: u64, value: f64) -> Found {
        let decisions = Decisions {
            events: events.iter().copied().collect(),
            counters: BTreeMap::from([("pgsteal".to_string(), counter)]),
        };
        Found { decisions, values: BTreeMap::from([("elapsed", value)]), ..Found::default() }
    }

    #[test]
    fn runs_that_differ_in_nothing_are_named() {
        let base = found(&[("isolate", 7), ("wait", 2)], 5, 1.0);
        let same = Difference::between(&[&base, &base], &[&base, &base]);
        assert_eq!(same.text(), "changes nothing here");
        let other = found(&[("isolate", 4), ("write", 1)], 6, 1.0);
        let one = Difference::between(&[&base, &base], &[&base, &other]);
        assert_eq!((one.events, one.kinds, one.counters, one.identical), (3 + 2 + 1, 3, 1, 1));
        assert_eq!(one.text(), "3 events of 3 kinds, 1 counters, 1 of 2 runs identical");
        let results = found(&[("isolate", 7), ("wait", 2)], 5, 2.0);
        assert_eq!(Difference::between(&[&base], &[&results]).text(), "results only");
        assert_eq!(Difference::between(&[], &[]).text(), "n/a");
        let halted = Found { halted: Some("got nowhere".into()), ..Found::default() };
        assert_eq!(Difference::between(&[&base], &[&halted]).text(), "n/a: a run was ended early");
    }
}

//! Sums of the actions of threads, for the results.

use crate::time::{PS_PER_NS, Ps};
use mmtwin_event::results::{ActionResult, Attempt, Latency};
use std::collections::BTreeMap;

/// One thread's part in an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// Its successes.
    pub operations: u64,
    /// Failures.
    pub failures: u64,
    /// From its first operation to its last, without pauses.
    pub time: Ps,
    /// Other figures, to be added up.
    pub more: BTreeMap<&'static str, f64>,
    /// Latencies of the whole action, with one thread only.
    pub latency: Option<Latency>,
    /// Attempts to allocate a block.
    pub attempts: Vec<Attempt>,
}

/// An action of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionStats {
    threads: u32,
    operations: u64,
    failures: u64,
    time: Ps,
    /// Sum of the threads' picoseconds per operation, and how many have any.
    means: (f64, u32),
    /// Operations per second, all threads together.
    rate: f64,
    more: BTreeMap<&'static str, f64>,
    latency: Option<Latency>,
    attempts: Vec<Attempt>,
}

impl ActionStats {
    /// A thread has ended its part.
    pub(super) fn add(&mut self, part: &Part) {
        self.threads += 1;
        self.operations += part.operations;
        self.failures += part.failures;
        self.time += part.time;
        if part.operations > 0 {
            self.means = (self.means.0 + part.time as f64 / part.operations as f64, self.means.1 + 1);
        }
        if part.time > 0 {
            self.rate += part.operations as f64 / part.time as f64 * 1e12;
        }
        if part.latency.is_some() {
            self.latency.clone_from(&part.latency);
        }
        self.attempts.extend_from_slice(&part.attempts);
        for (key, value) in &part.more {
            *self.more.entry(key).or_default() += value;
        }
    }

    /// The result of all threads.
    pub(super) fn result(&self, kind: String, detail: String) -> ActionResult {
        let mut more: BTreeMap<String, f64> = self.more.iter().map(|(key, value)| (key.to_string(), *value)).collect();
        if self.rate > 0.0 && self.operations > 0 {
            more.insert("operations_per_second".into(), self.rate);
        }
        ActionResult {
            kind,
            detail,
            threads: self.threads,
            operations: self.operations,
            failures: self.failures,
            time: self.time / PS_PER_NS,
            mean: (self.means.1 > 0).then(|| self.means.0 / f64::from(self.means.1) / PS_PER_NS as f64),
            latency: self.latency.clone(),
            attempts: self.attempts.clone(),
            more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let mut stats = ActionStats::default();
        let more = BTreeMap::from([("cache_lines", 2.0)]);
        stats.add(&Part { operations: 10, failures: 1, time: 20_000, more: more.clone(), ..Part::default() });
        stats.add(&Part { operations: 10, failures: 0, time: 40_000, more, ..Part::default() });
        stats.add(&Part::default());
        let result = stats.result("read".into(), "numastat".into());
        assert_eq!((result.threads, result.operations, result.failures, result.time), (3, 20, 1, 60));
        assert_eq!((result.mean, result.more["cache_lines"]), (Some(3.0), 4.0));
        assert!((result.more["operations_per_second"] - 7.5e8).abs() < 1.0);
        assert_eq!(ActionStats::default().result(String::new(), String::new()).mean, None);
    }
}

//! The part of a recording in which most of a counter's growth happened.
//!
//! Sums over a recording dilute what lasted for a part of it: memory that is written for the first time goes out to swap
//! once and costs no more than that, however much it is, and what comes back afterwards is little beside it.

use crate::Analysis;

/// What happened before and behind the part, each, as one of so many parts of all.
const REST: u64 = 20;
/// Nanoseconds; less is a moment, in which a program starts or something is loaded.
const MIN_LENGTH: u64 = 1_000_000_000;

/// A stretch of the trace clock in nanoseconds, from one sample to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    from: u64,
    to: u64,
}

impl Part {
    /// That of a counter's growth since its first sample: (nanoseconds, growth). `None` if it did not grow, or all at once.
    pub fn of(grown: &[(u64, u64)]) -> Option<Part> {
        let rest = grown.last()?.1 / REST;
        let most = grown.last()?.1 - rest;
        let from = grown.iter().rev().find(|(_, n)| *n <= rest)?.0;
        let to = grown.iter().find(|(_, n)| *n >= most.max(1))?.0;
        (to.saturating_sub(from) >= MIN_LENGTH).then_some(Part { from, to })
    }

    /// Its length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.to - self.from
    }

    /// Growth of a counter in it. Another source is sampled at other times: between two samples a counter grows evenly.
    /// `None`: it is not known over time.
    pub fn grew(&self, a: &Analysis, source: &str, name: &str) -> Option<u64> {
        let series = a.counters.series(source, "", name);
        let points: Vec<(u64, u64)> = series.into_iter().filter_map(|(at, value)| Some((at, value?))).collect();
        level(&points, self.to)?.checked_sub(level(&points, self.from)?)
    }
}

/// Value of a counter at a time.
fn level(points: &[(u64, u64)], at: u64) -> Option<u64> {
    let behind = points.partition_point(|(time, _)| *time < at);
    let (Some(&(to, more)), Some(&(from, less))) = (points.get(behind), points.get(behind.saturating_sub(1))) else {
        return points.last().map(|(_, value)| *value);
    };
    let passed = if to > from { at.saturating_sub(from) as f64 / (to - from) as f64 } else { 1.0 };
    Some(less + (more.saturating_sub(less) as f64 * passed) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::{CounterRow, Sink};

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn most_happens_between_the_first_and_the_last_twentieth() {
        let grown = [0, 0, 4, 50, 97, 99, 100].iter().zip(0..).map(|(n, i)| (i * SECOND, *n)).collect::<Vec<_>>();
        let part = Part::of(&grown).unwrap();
        assert_eq!((part, part.length()), (Part { from: 2 * SECOND, to: 4 * SECOND }, 2 * SECOND));
        assert_eq!(Part::of(&[(0, 0), (SECOND / 2, 90), (SECOND, 90)]), None, "at once");
        assert_eq!((Part::of(&[(0, 0), (SECOND, 0)]), Part::of(&[])), (None, None));
    }

    #[test]
    fn counters_of_other_times_grow_evenly() {
        let mut a = Analysis::default();
        let names = ["io_some_total".to_string()];
        for (at, total) in [(SECOND, 100), (3 * SECOND, 300), (4 * SECOND, 900)] {
            a.counters(&CounterRow { source: "psi", key: "", at, names: &names, values: &[Some(total)] });
        }
        let grew = |from, to| Part { from, to }.grew(&a, "psi", "io_some_total");
        assert_eq!(grew(2 * SECOND, 4 * SECOND), Some(700));
        assert_eq!(grew(0, 9 * SECOND), Some(800), "as far as it is known");
        assert_eq!(Part { from: 0, to: SECOND }.grew(&a, "psi", "none"), None);
    }
}

//! What is kept of a run of the kernel: everything that the twin is judged by, and nothing else.

use super::pages::{Placed, placed};
use super::steps;
use crate::Error;
use mmtwin::Analysed;
use mmtwin_event::Kind;
use mmtwin_report::fidelity::curves::Growth;
use mmtwin_report::fidelity::in_order::Steps;
use mmtwin_report::fidelity::{self, Observed};
use mmtwin_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What is kept of a run.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// Group, name and value of [`Observed::values`].
    values: Vec<(u8, String, f64)>,
    growth: Vec<Grown>,
    /// Where the workload's pages were, of a scenario that records allocations.
    pub pages: Option<Placed>,
    /// The first events of reclaim, of machines with one CPU whose scenario records them.
    pub steps: Option<Steps>,
}

/// Counters that were sampled at the same times.
#[derive(Serialize, Deserialize)]
struct Grown {
    /// The first time, then the times from one sample to the next.
    at: Vec<i64>,
    /// By counter, likewise.
    counters: BTreeMap<String, Vec<i64>>,
}

impl Kept {
    /// What is kept of a recording that was analysed.
    pub fn of(recording: &Path, analysed: &Analysed, scenario: &Scenario) -> Result<Kept, Error> {
        let recorded = &analysed.analysis.recorded;
        let by_event = recorded.has(Kind::MmVmscanLruIsolate) && scenario.machine.cpus.len() == 1;
        let observed = fidelity::observe(&analysed.analysis, analysed.results.as_ref());
        let mut growth: BTreeMap<Vec<i64>, BTreeMap<String, Vec<i64>>> = BTreeMap::new();
        for (name, samples) in observed.growth {
            let at = steps_of(samples.iter().map(|(at, _)| *at));
            growth.entry(at).or_default().insert(name, steps_of(samples.iter().map(|(_, value)| *value)));
        }
        Ok(Kept {
            values: observed.values.into_iter().map(|((group, name), value)| (group, name, value)).collect(),
            growth: growth.into_iter().map(|(at, counters)| Grown { at, counters }).collect(),
            pages: recorded.has(Kind::MmPageAlloc).then(|| placed(scenario, recording)).transpose()?,
            steps: by_event.then(|| steps(recording)).transpose()?,
        })
    }

    /// What the run showed.
    pub fn observed(&self) -> Observed {
        let values = self.values.iter().map(|(group, name, value)| ((*group, name.clone()), *value));
        let growth = |of: &Grown| -> Vec<(String, Growth)> {
            let one = |(name, values): (&String, &Vec<i64>)| (name.clone(), sums(&of.at).zip(sums(values)).collect());
            of.counters.iter().map(one).collect()
        };
        Observed { values: values.collect(), growth: self.growth.iter().flat_map(growth).collect() }
    }
}

/// The first number, then the differences from one to the next.
fn steps_of(numbers: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = 0u64;
    numbers.map(|number| number.wrapping_sub(std::mem::replace(&mut before, number)) as i64).collect()
}

/// The numbers again.
fn sums(steps: &[i64]) -> impl Iterator<Item = u64> {
    steps.iter().scan(0u64, |sum, step| {
        *sum = sum.wrapping_add(*step as u64);
        Some(*sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for numbers in [vec![], vec![7], vec![5, 5, 3, u64::MAX, 0, 1 << 63]] {
            assert_eq!(sums(&steps_of(numbers.iter().copied())).collect::<Vec<_>>(), numbers);
        }
        assert_eq!(steps_of([10, 12, 11].into_iter()), [10, 2, -1]);
    }
}

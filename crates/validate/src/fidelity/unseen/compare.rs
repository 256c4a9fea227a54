//! Runs of the kernel and of the twin of one scenario, quantity by quantity.
//!
//! An error is the distance of the twin's median from the kernel's, in percent of the kernel's, or of the floor from
//! which a quantity is judged where the kernel has less. What an idle guest counts is taken off the kernel's counters.

use super::figures::{Figures, Group, Phase, Tail, group};
use crate::fidelity::generate::LONGEST_S;
use mmtwin_report::fidelity::MAX_ERROR_PERCENT;
use mmtwin_report::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

/// Accesses per second from which throughput is judged.
const RATE_FLOOR: f64 = 100.0;

/// A quantity that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// What it is.
    pub name: String,
    /// Its group.
    pub group: Group,
    /// Median of the kernel's runs, without what an idle guest counts.
    pub kernel: f64,
    /// Median of the twin's runs.
    pub twin: f64,
    /// How far the twin is above the kernel, in percent.
    pub error: f64,
    /// The twin is outside the range of the kernel's runs.
    pub outside: bool,
    /// How far the kernel's runs are from each other, in percent; `None`: there is only one.
    pub own: Option<f64>,
}

impl Quantity {
    /// Judges values of both arms; `None`: both are below the floor, or an arm has none.
    fn new(name: &str, group: Group, floor: f64, kernel: &[f64], twin: &[f64], idle: f64) -> Option<Quantity> {
        let sorted = |values: &[f64], less: f64| {
            let mut values: Vec<f64> = values.iter().map(|value| value - less).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let (kernel, twin) = (sorted(kernel, idle), sorted(twin, 0.0));
        let (least, most) = (*kernel.first()?, *kernel.last()?);
        let (middle, of_twin) = (median(&kernel)?, median(&twin)?);
        if middle.max(of_twin) < floor {
            return None;
        }
        let whole = middle.max(floor);
        Some(Quantity {
            name: name.into(),
            group,
            kernel: middle,
            twin: of_twin,
            error: 100.0 * (of_twin - middle.max(0.0)) / whole,
            outside: !(least..=most).contains(&of_twin),
            own: (kernel.len() > 1).then(|| 100.0 * (most - least) / whole),
        })
    }

    /// More than 30 % off, and outside the kernel's range.
    pub fn is_beyond(&self) -> bool {
        self.error.abs() > MAX_ERROR_PERCENT && self.outside
    }
}

/// All quantities of runs that ended by themselves or at the end of time. `idle` is what a guest without a workload
/// counts.
pub fn compare(kernel: &[&Figures], twin: &[&Figures], idle: &BTreeMap<String, f64>) -> Vec<Quantity> {
    let mut found = counters(kernel, twin, idle);
    found.extend(workload(kernel, twin));
    found
}

fn counters(kernel: &[&Figures], twin: &[&Figures], idle: &BTreeMap<String, f64>) -> Vec<Quantity> {
    let names: BTreeSet<&String> = kernel.iter().chain(twin).flat_map(|run| run.counters.keys()).collect();
    // A counter that is not kept is 0.
    let values = |runs: &[&Figures], name: &str| -> Vec<f64> {
        runs.iter().map(|run| run.counters.get(name).copied().unwrap_or(0.0)).collect()
    };
    let one = |name: &&String| {
        let (group, idle) = (group(name), idle.get(*name).copied().unwrap_or(0.0));
        Quantity::new(name, group, group.floor(), &values(kernel, name), &values(twin, name), idle)
    };
    names.iter().filter_map(one).collect()
}

fn workload(kernel: &[&Figures], twin: &[&Figures]) -> Vec<Quantity> {
    let mut found = Vec::new();
    let all = || kernel.iter().chain(twin);
    let Some(first) = kernel.first() else { return found };
    for name in first.phases.keys().filter(|name| all().all(|run| run.phases.contains_key(*name))) {
        let values = |runs: &[&Figures], of: &dyn Fn(&Phase) -> f64| -> Vec<f64> {
            runs.iter().map(|run| of(&run.phases[name])).collect()
        };
        for number in 0..first.phases[name].latencies.len() {
            let tails = |runs: &[&Figures]| -> Option<Vec<Tail>> {
                runs.iter().map(|run| *run.phases[name].latencies.get(number)?).collect()
            };
            let Some((kernel, twin)) = tails(kernel).zip(tails(twin)) else { continue };
            // The slowest of mere touches are those that the emulator's other CPUs interrupt.
            if ![&kernel, &twin].iter().any(|runs| runs.iter().all(|tail| tail.in_kernel)) {
                continue;
            }
            let [kernel, twin] = [kernel, twin].map(|runs| runs.iter().map(|tail| tail.p99).collect::<Vec<f64>>());
            let label = format!("p99 of {name}, {number}, us");
            found.extend(Quantity::new(&label, Group::Latency, Group::Latency.floor(), &kernel, &twin, 0.0));
        }
        let cut = |phase: &Phase| phase.end >= LONGEST_S as f64 - 0.5;
        let timed = first.phases[name].timed || all().all(|run| cut(&run.phases[name]));
        if !timed {
            let lasted = |phase: &Phase| phase.end - phase.start;
            let (kernel, twin) = (values(kernel, &lasted), values(twin, &lasted));
            let floor = Group::Workload.floor();
            found.extend(Quantity::new(&format!("seconds of {name}"), Group::Workload, floor, &kernel, &twin, 0.0));
            continue;
        }
        let accesses = all().map(|run| run.phases[name].rates.len()).min().unwrap_or(0);
        for number in 0..accesses {
            let rate = |phase: &Phase| phase.rates[number];
            let (kernel, twin) = (values(kernel, &rate), values(twin, &rate));
            let label = format!("accesses/s of {name}, {number}");
            found.extend(Quantity::new(&label, Group::Workload, RATE_FLOOR, &kernel, &twin, 0.0));
        }
    }
    // Where all phases have a duration, or the time was up, it says nothing.
    let counted = |run: &&Figures| run.phases.iter().any(|(name, phase)| !phase.timed && !name.ends_with("/populate"));
    if all().all(counted) && all().all(|run| end(run) < LONGEST_S as f64 - 0.5) {
        let ends = |runs: &[&Figures]| -> Vec<f64> { runs.iter().map(|run| end(run)).collect() };
        let floor = Group::Makespan.floor();
        found.extend(Quantity::new("seconds of all", Group::Makespan, floor, &ends(kernel), &ends(twin), 0.0));
    }
    found
}

/// When the last phase ended.
fn end(run: &Figures) -> f64 {
    run.phases.values().map(|phase| phase.end).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::figures::End;
    use super::*;

    fn run(counters: &[(&str, f64)], phases: &[(&str, bool, f64, &[f64])]) -> Figures {
        let counters = counters.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let phase = |(name, timed, end, rates): &(&str, bool, f64, &[f64])| {
            (
                name.to_string(),
                Phase { timed: *timed, start: 0.0, end: *end, rates: rates.to_vec(), ..Phase::default() },
            )
        };
        Figures { end: End::Completed, counters, phases: phases.iter().map(phase).collect() }
    }

    #[test]
    fn counters_are_judged_from_a_floor_on() {
        let kernel =
            [run(&[("pgscan_anon", 2000.0), ("allocstall_normal", 90.0)], &[]), run(&[("pgscan_anon", 3000.0)], &[])];
        let twin = run(&[("pgscan_anon", 3600.0), ("pgsteal_file", 1500.0), ("pageoutrun", 40.0)], &[]);
        let kernel: Vec<&Figures> = kernel.iter().collect();
        let idle = BTreeMap::from([("pgscan_anon".to_string(), 100.0)]);
        let [scanned, reclaimed] = &compare(&kernel, &[&twin], &idle)[..] else { panic!("two of them") };
        assert_eq!((scanned.kernel, scanned.error, scanned.is_beyond()), (2400.0, 50.0, true));
        assert_eq!(scanned.own.map(f64::round), Some(42.0));
        // The kernel has none of it.
        assert_eq!((reclaimed.kernel, reclaimed.error, reclaimed.is_beyond()), (0.0, 150.0, true));
    }

    #[test]
    fn phases_are_judged_by_what_the_scenario_leaves_open() {
        let kernel = run(&[], &[("a/0", false, 2.0, &[50.0]), ("a/1", true, 4.0, &[1000.0])]);
        let twin = run(&[], &[("a/0", false, 1.0, &[100.0]), ("a/1", true, 4.0, &[1100.0])]);
        let found = compare(&[&kernel], &[&twin], &BTreeMap::new());
        let named: Vec<(&str, f64, Option<f64>)> =
            found.iter().map(|of| (of.name.as_str(), of.error.round(), of.own)).collect();
        assert_eq!(
            named,
            [("seconds of a/0", -50.0, None), ("accesses/s of a/1, 0", 10.0, None), ("seconds of all", 0.0, None)]
        );
        let cut = run(&[], &[("a/0", false, 40.0, &[500.0])]);
        let slower = run(&[], &[("a/0", false, 40.0, &[400.0])]);
        let found = compare(&[&cut], &[&slower], &BTreeMap::new());
        assert_eq!((found.len(), found[0].name.as_str(), found[0].error), (1, "accesses/s of a/0, 0", -20.0));
    }
}

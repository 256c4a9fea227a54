//! How far counters grew when: the same growth can come early or late.
//!
//! A counter's curve is the share of its growth over the workload that had come by some share of the workload's time,
//! both from 0 to 1, straight between samples. The distance of two curves is their greatest vertical distance, that of
//! Kolmogorov and Smirnov for two distributions: how much of the growth came at another time. Speed and totals do not
//! count, which are other rows. Beside it stands how far the kernel's own runs are from their median.

use mmtwin_analysis::Analysis;
use mmtwin_analysis::counters::is_gauge;
use mmtwin_event::results::Results;
use std::collections::BTreeMap;

/// Fewest samples while the workload runs, both ends included: three between them.
const MIN_SAMPLES: usize = 5;
/// Least growth: a curve of fewer steps is known to some percent only.
const LEAST: f64 = 100.0;
/// Parts of the time at whose ends curves are compared.
const PARTS: usize = 200;

/// What a counter's curve follows from: its samples from the start of the workload to its end, as (time, value).
pub type Growth = Vec<(u64, u64)>;

/// A curve at the ends of equal parts of the time.
type Curve = Vec<f64>;

/// A counter's curves on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveRow {
    /// The counter.
    pub name: String,
    /// Distance of the medians of both sides; `None`: the twin has too few samples or too little growth.
    pub distance: Option<f64>,
    /// Greatest distance of a run of the kernel from their median.
    pub spread: f64,
}

/// The growth of all counters of a run that have a curve.
pub fn growth(analysis: &Analysis, results: Option<&Results>) -> BTreeMap<String, Growth> {
    let phases = || results.iter().flat_map(|results| &results.phases);
    let start = phases().map(|phase| phase.start).min().unwrap_or(0);
    let end = phases().map(|phase| phase.end).max().unwrap_or(u64::MAX);
    let mut found = BTreeMap::new();
    for source in ["vmstat", "numastat"] {
        for key in analysis.counters.keys(source) {
            let names = analysis.counters.sampled(source, key).map(|of| of.names.clone()).unwrap_or_default();
            for name in names.into_iter().filter(|name| !is_gauge(source, name)) {
                let points = analysis.counters.series(source, key, &name);
                let label = super::label(key, &name);
                found.extend(between(&points, start, end).map(|growth| (label, growth)));
            }
        }
    }
    found
}

/// The samples between two times; `None` where there are too few, one is missing, or the counter grew too little.
fn between(points: &[(u64, Option<u64>)], start: u64, end: u64) -> Option<Growth> {
    // The last sample before the workload and the first after it are its begin and end.
    let first = points.iter().rposition(|(at, _)| *at <= start).unwrap_or(0);
    let last = points.iter().position(|(at, _)| *at >= end).unwrap_or(points.len().saturating_sub(1));
    let points = points.get(first..=last).filter(|points| points.len() >= MIN_SAMPLES)?;
    let growth: Growth = points.iter().map(|(at, value)| Some((*at, (*value)?))).collect::<Option<_>>()?;
    let ((begin, from), (end, to)) = (growth[0], growth[growth.len() - 1]);
    (end > begin && to as f64 - from as f64 >= LEAST).then_some(growth)
}

/// The curve of a counter's growth.
fn curve(growth: &Growth) -> Curve {
    let values: Vec<(f64, f64)> = growth.iter().map(|(at, value)| (*at as f64, *value as f64)).collect();
    let ((begin, from), (end, to)) = (values[0], values[values.len() - 1]);
    let mut at = 0;
    let value = |part: usize| {
        let time = begin + (end - begin) * part as f64 / PARTS as f64;
        while at + 2 < values.len() && values[at + 1].0 < time {
            at += 1;
        }
        let ((t0, v0), (t1, v1)) = (values[at], values[at + 1]);
        let share = if t1 > t0 { ((time - t0) / (t1 - t0)).clamp(0.0, 1.0) } else { 1.0 };
        (v0 + (v1 - v0) * share - from) / (to - from)
    };
    (0..=PARTS).map(value).collect()
}

/// Puts the curves of both sides side by side, where all runs of the kernel have one.
pub fn compare(kernel: &[BTreeMap<String, Growth>], twin: &[BTreeMap<String, Growth>]) -> Vec<CurveRow> {
    let all = |runs: &[BTreeMap<String, Growth>], name: &String| -> Option<Vec<Curve>> {
        runs.iter().map(|run| run.get(name).map(curve)).collect::<Option<Vec<_>>>().filter(|curves| !curves.is_empty())
    };
    let names = kernel.first().into_iter().flat_map(BTreeMap::keys);
    let row = |name: &String| {
        let of_kernel = all(kernel, name)?;
        let median = middle(&of_kernel);
        let spread = of_kernel.iter().map(|curve| distance(curve, &median)).fold(0.0, f64::max);
        let of_twin = all(twin, name).map(|curves| distance(&middle(&curves), &median));
        Some(CurveRow { name: name.clone(), distance: of_twin, spread })
    };
    names.filter_map(row).collect()
}

/// The median of some curves at every place.
fn middle(curves: &[Curve]) -> Curve {
    let at = |part: usize| {
        let mut values: Vec<f64> = curves.iter().map(|curve| curve[part]).collect();
        values.sort_by(f64::total_cmp);
        super::median(&values)
    };
    (0..=PARTS).map(at).collect()
}

fn distance(a: &Curve, b: &Curve) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(values: &[u64]) -> Vec<(u64, Option<u64>)> {
        (0..).map(|i| 1000 + 10 * i).zip(values.iter().map(|value| Some(*value))).collect()
    }

    fn one(growth: Growth) -> Vec<BTreeMap<String, Growth>> {
        vec![BTreeMap::from([("pgfault".to_string(), growth)])]
    }

    #[test]
    fn growth_at_another_time_is_a_distance() {
        let even = between(&samples(&[0, 100, 200, 300, 400]), 0, u64::MAX).unwrap();
        let early = between(&samples(&[5, 405, 405, 405, 405]), 0, u64::MAX).unwrap();
        let shape = curve(&even);
        assert_eq!((shape[0], shape[PARTS / 2], shape[PARTS]), (0.0, 0.5, 1.0));
        let rows = compare(&one(even.clone()), &one(early.clone()));
        assert_eq!((rows[0].distance, rows[0].spread), (Some(0.75), 0.0));
        // The same at twice the speed and ten times the growth is the same.
        let fast: Vec<_> = samples(&[0, 1000, 2000, 3000, 4000]).into_iter().map(|(at, v)| (at / 2, v)).collect();
        assert_eq!(distance(&shape, &curve(&between(&fast, 0, u64::MAX).unwrap())), 0.0);
        let both = [one(even), one(early)].concat();
        assert_eq!(compare(&both, &[])[0], CurveRow { name: "pgfault".into(), distance: None, spread: 0.375 });
    }

    #[test]
    fn what_says_too_little_has_no_curve() {
        assert_eq!(between(&samples(&[0, 100, 200, 300]), 0, u64::MAX), None, "four samples");
        assert_eq!(between(&samples(&[0, 1, 2, 3, 99]), 0, u64::MAX), None, "little growth");
        assert_eq!(between(&samples(&[500, 400, 300, 200, 100]), 0, u64::MAX), None, "no growth");
        let mut missing = samples(&[0, 100, 200, 300, 400]);
        missing[2].1 = None;
        assert_eq!(between(&missing, 0, u64::MAX), None);
        // Only what the workload did counts.
        let around = samples(&[0, 9, 9, 109, 209, 309, 409, 999]);
        let within = curve(&between(&around, 1025, 1060).unwrap());
        assert_eq!((within[0], within[PARTS / 2], within[PARTS]), (0.0, 0.5, 1.0));
    }

    proptest! {
        #[test]
        fn distances_are_those_of_distributions(steps in prop::collection::vec((0u64..500, 0u64..500), 5..40)) {
            let grown = |of: fn(&(u64, u64)) -> u64| {
                let mut sum = 0;
                let values: Vec<u64> = steps.iter().map(|step| { sum += of(step); sum }).collect();
                between(&samples(&values), 0, u64::MAX).map(|growth| curve(&growth))
            };
            if let (Some(a), Some(b)) = (grown(|step| step.0), grown(|step| step.1)) {
                prop_assert!(a.windows(2).all(|pair| pair[0] <= pair[1]));
                prop_assert!((a[0], a[PARTS]) == (0.0, 1.0));
                prop_assert!((0.0..=1.0).contains(&distance(&a, &b)) && distance(&a, &b) == distance(&b, &a));
            }
        }
    }
}

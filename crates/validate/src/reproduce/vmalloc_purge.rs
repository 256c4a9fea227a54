//! Latency of `purge_vmap_node` before and after the batched accounting of 2024: test_vmalloc.

use super::{Decisions, Found, Latencies, More};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::Histogram;
use mmtwin_twin::build;
use mmtwin_twin::vmalloc::histogram::Distance;
use mmtwin_twin::vmalloc::{Outcome, stress_over_rates};
use std::collections::BTreeMap;

/// The published means are of three runs.
const RUNS: u64 = 3;

/// Runs the stress test three times; what is no mean is of the first.
pub(super) fn run(scenario: &Scenario, published: Option<&Histogram>, _: &[&Scenario]) -> Result<Found, String> {
    let params = build::vmalloc(scenario).map_err(|error| error.to_string())?;
    let run = |seed| stress_over_rates(&params, seed).map_err(|error| error.to_string());
    let seed = scenario.run.seed;
    let runs = (0..RUNS).map(|i| run(seed.wrapping_add(i))).collect::<Result<Vec<Outcome>, String>>()?;
    let first = &runs[0];
    let average = runs.iter().map(|run| run.calls.mean_us()).sum::<f64>() / RUNS as f64;
    let values = BTreeMap::from([("average", average)]);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let purged = first.nr_purged.iter().copied().filter(|&purged| purged > 0);
    let range = [purged.clone().min(), purged.max()].map(|purged| purged.unwrap_or(0) as f64);
    let mut more = vec![
        More { key: "calls", label: "calls of purge_vmap_node", unit: "", values: vec![first.calls.calls() as f64] },
        More { key: "passes", label: "passes", unit: "", values: vec![first.passes as f64] },
        More { key: "per_area", label: "time per area", unit: "us", values: first.us_per_area().into_iter().collect() },
        More {
            key: "top_three_share",
            label: "time in the top three slots",
            unit: "%",
            values: vec![100.0 * first.calls.top_three_share()],
        },
        More { key: "nr_purged", label: "nr_purged of the nodes", unit: "areas", values: range.to_vec() },
        More { key: "longest", label: "longest call", unit: "s", values: vec![seconds(first.calls.longest_ns())] },
        More { key: "run", label: "whole run", unit: "s", values: vec![seconds(first.ran_ns)] },
    ];
    more.extend(published.into_iter().flat_map(|published| distances(first, published)));
    let slots = first.calls.slots().iter().enumerate();
    let slots = slots.map(|(i, slot)| (if i == 0 { 0 } else { 1 << i }, (2u64 << i) - 1, slot.calls)).collect();
    let remark = first.trips_watchdog().then(|| {
        let longest = seconds(first.calls.longest_ns());
        format!("a purge takes up to {longest:.1} s, which the soft-lockup watchdog (20 s) reports")
    });
    let latencies = Latencies { slots, mean: first.calls.mean_us(), total: first.calls.total_ns() / 1000 };
    let counts = [
        ("calls of purge_vmap_node", first.calls.calls()),
        ("passes", first.passes),
        ("areas purged", first.purged),
        ("subtractions from vmap_lazy_nr", first.subtractions(params.rules.purge_accounting)),
    ];
    let decisions = Decisions {
        events: BTreeMap::new(),
        counters: counts.map(|(name, count)| (name.to_string(), count)).into_iter().collect(),
    };
    Ok(Found { values, latencies, more, remark, decisions, ..Found::default() })
}

/// How far the calls of a run are from published ones.
fn distances(run: &Outcome, published: &Histogram) -> Vec<More> {
    let mut counts = vec![0; 64];
    for &[low, calls] in &published.slots {
        counts[low.max(1).ilog2() as usize] += calls;
    }
    let Some(Distance { calls, time, slots }) = run.calls.distance(&counts) else { return Vec::new() };
    let distance = |key, label, unit, value| More { key, label, unit, values: vec![value] };
    vec![
        distance("ks_calls", "Kolmogorov-Smirnov distance of calls to the published", "", calls),
        distance("ks_time", "the same, of the time in calls", "", time),
        distance("emd_calls", "mean distance of a call to the published", "powers of two", slots),
    ]
}

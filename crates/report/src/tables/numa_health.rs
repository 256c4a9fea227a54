//! `numa-health`: whether NUMA balancing does what it should, as Mel Gorman asked of the 2014 series.
//!
//! Groups: how many nodes they actively use. Only kernels of that series tell, by events; where all groups use as many,
//! and one of them need not fill the machine, the sets have collapsed. Tasks: on how many nodes they fault, and how much
//! of it on one. Kernels do not tell the node of a fault that moves nothing, so this is of the pages that tasks migrated
//! in their own faults. Machine-wide workloads: how evenly pages are on the other nodes. Migration: how much of it is
//! late, which a workload that converges has little of.

use super::{metrics, numa_placement, row};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_event::Kind;

/// The table.
pub fn table(a: &Analysis) -> Table {
    let weights: Vec<u32> = a.numa.groups.weights().map(|(_, weight)| weight).collect();
    let reported = |value: Option<u64>| match a.recorded.has(Kind::UpdateNumaActiveNodesMask) {
        true => Cell::recorded(value),
        false => Cell::Na(Na::NotRecorded),
    };
    let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let all = weights.len() as f64 * f64::from(a.source.nodes);
    let share = (all > 0.0).then(|| 100.0 * sum as f64 / all);
    let edge = |weight: Option<&u32>| reported(weight.map(|weight| u64::from(*weight)));
    let tasks = tasks(a);
    let balance =
        weighted(numa_placement::regions(a).iter().filter_map(|at| Some((at.remaining_balance()?, at.pages()))));
    let percent = |value| Cell::float(value);
    let rows = vec![
        row("groups", "Groups", "", Neutral, None, reported(Some(weights.len() as u64))),
        row("active_nodes_percent", "Active nodes per group, of all nodes", "%", Neutral, Some(1), percent(share)),
        row("active_nodes_min", "Active nodes per group, min", "", Neutral, None, edge(weights.iter().min())),
        row("active_nodes_max", "Active nodes per group, max", "", Neutral, None, edge(weights.iter().max())),
        row("task_nodes", "Target nodes per task", "", Lower, Some(2), percent(tasks.0)),
        row(
            "task_main_percent",
            "Pages migrated to the task's main target node",
            "%",
            Higher,
            Some(1),
            percent(tasks.1),
        ),
        row("remaining_balance", "Balance of remaining nodes", "%", Neutral, Some(1), percent(balance)),
        row(
            "migrated_last_quarter_percent",
            "Pages migrated in the last quarter of the run",
            "%",
            Lower,
            Some(1),
            percent(late(a)),
        ),
    ];
    metrics(
        "numa-health",
        "NUMA balancing health",
        "Averages over tasks and regions are weighted by their pages.",
        rows,
    )
}

/// Nodes to which tasks migrate, and percent to the main one of them, weighted by pages.
fn tasks(a: &Analysis) -> (Option<f64>, Option<f64>) {
    let tasks = a.numa.top_tasks().into_iter().map(|task| a.numa.pages_of_task(task.pid, &a.source.cpu_nodes));
    let tasks: Vec<_> = tasks.filter(|pages| pages.values().any(|n| *n > 0)).collect();
    let of = |value: fn(&std::collections::BTreeMap<u32, u64>, u64) -> f64| {
        weighted(tasks.iter().map(|pages| {
            let sum = pages.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
            (value(pages, sum), sum)
        }))
    };
    let nodes = of(|pages, _| pages.values().filter(|n| **n > 0).count() as f64);
    let main = of(|pages, sum| 100.0 * pages.values().copied().max().unwrap_or(0) as f64 / sum as f64);
    (nodes, main)
}

/// Percent of all pages migrated by NUMA balancing that were migrated in the last quarter of the samples' time.
fn late(a: &Analysis) -> Option<f64> {
    let series = a.counters.series("vmstat", "", "numa_pages_migrated");
    let ((first, before), (last, after)) = (series.first()?, series.last()?);
    let from = first + (last - first) / 4 * 3;
    let quarter = series.iter().find(|(at, _)| *at >= from)?.1?;
    let (all, late) = ((*after)?.checked_sub((*before)?)?, (*after)?.checked_sub(quarter)?);
    (all > 0).then(|| 100.0 * late as f64 / all as f64)
}

fn weighted(values: impl Iterator<Item = (f64, u64)>) -> Option<f64> {
    let (sum, weight) =
        values.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight as f64, all + weight as f64));
    (weight > 0.0).then(|| sum / weight)
}

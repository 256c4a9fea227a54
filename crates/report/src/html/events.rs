//! Events that are no waits: those that a chart sums up, the largest of every part of the time.

use super::marks::killed;
use super::number::seconds;
use mmtwin_analysis::Analysis;
use mmtwin_analysis::series::{Moment, Series, What};
use serde::Serialize;

/// Events of a run.
#[derive(Debug, Serialize)]
pub(super) struct Events {
    /// All events of these kinds, also those that are not listed.
    count: u64,
    /// Seconds, length in seconds if it is known, what, and more of it.
    rows: Vec<(f64, Option<f64>, &'static str, String)>,
}

/// The events kept, in the order of their beginnings.
pub(super) fn of(analysis: &Analysis, series: &Series, start: u64) -> Events {
    let since = |at: u64| seconds(at.saturating_sub(start));
    let name = |pid: i32| match analysis.tasks.get(pid) {
        Some(task) => format!("{}-{pid}", task.name()),
        None => format!("<...>-{pid}"),
    };
    let victims = &analysis.oom.victims;
    let mut rows: Vec<_> = victims.iter().map(|victim| (since(victim.at), None, "OOM kill", killed(victim))).collect();
    rows.extend(series.moments.kept().into_iter().map(|moment| {
        let length = Some(moment.until - moment.from).filter(|length| *length > 0).map(|ns| ns as f64 / 1e9);
        let (what, more) = words(moment, name);
        (since(moment.from), length, what, more)
    }));
    rows.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    Events { count: victims.len() as u64 + series.moments.count(), rows }
}

fn words(moment: &Moment, name: impl Fn(i32) -> String) -> (&'static str, String) {
    match moment.what {
        What::Kswapd { node } => ("kswapd awake", format!("node {node}")),
        What::Purge { areas } => ("vmalloc purge", format!("areas: {areas}, by {}", name(moment.pid))),
        What::Migration { succeeded, failed } => {
            ("page migration", format!("pages: {succeeded}, failed: {failed}, by {}", name(moment.pid)))
        }
        What::Move { task, from, to } => ("task moved", format!("{} from node {from} to node {to}", name(task))),
        What::Swap { tasks: [one, other], nodes: [from, to] } => {
            ("tasks exchanged", format!("{} of node {from}, {} of node {to}", name(one), name(other)))
        }
    }
}

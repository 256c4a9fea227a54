//! Mean values: the purge latencies from two rates that compete for one line.
//!
//! Forms (a) and (b) of the cost model. In [`equal_lists`] the lists are given. In [`feedback`] they grow: while a pass
//! purges, threads free more, at a rate that the same line limits. All nodes have equal lists, threads one mean size
//! and local time, and helpers work before the drain worker's own nodes. Kept as a check on the richer forms, and for
//! machines with only CPUs and a line time known. Validated: the documented results of the form
//! (tests/vmalloc_purge.rs).

use super::histogram::Histogram;
use super::params::{PurgeAccounting, Rules};
use super::{Outcome, pass};
use crate::hw::line::{Customers, response};

/// Form (a): microseconds of one call that purges `areas`, where `customers` CPUs keep a line of `line_ns` busy and an
/// area takes `local_us` besides.
pub fn equal_lists(accounting: PurgeAccounting, areas: f64, customers: f64, line_ns: f64, local_us: f64) -> f64 {
    let response = customers * line_ns / 1e3;
    match accounting {
        PurgeAccounting::PerArea => areas * (local_us + response),
        PurgeAccounting::Batched => areas * local_us + response,
    }
}

/// Parameters of form (b).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// CPUs, a thread on each.
    pub cpus: u32,
    /// Service time of the line in nanoseconds.
    pub line_ns: f64,
    /// Microseconds per purged area without the line.
    pub purge_local_us: f64,
    /// Share of its CPU for a purge worker.
    pub worker_share: f64,
    /// Pages per area, guard included.
    pub pages_per_area: f64,
    /// Operations on the line per allocation and free.
    pub operations: f64,
    /// Microseconds per allocation and free besides.
    pub pair_us: f64,
    /// Microseconds per pass for waking up and the TLB flush.
    pub pass_us: f64,
    /// Areas freed in the whole run.
    pub areas: f64,
}

/// Form (b): the run, until all areas are freed and the last pass has ended.
pub fn feedback(rules: &Rules, m: &Means) -> Outcome {
    let nodes = f64::from(rules.nodes(m.cpus));
    let lazy_max = rules.lazy_max(m.cpus) as f64;
    let per_area = rules.purge_accounting == PurgeAccounting::PerArea;
    let (local, share) = (1e3 * m.purge_local_us, m.worker_share);
    // Response of the line in nanoseconds and areas freed per nanosecond, with this many purgers.
    let contend = |purgers: f64| -> (f64, f64) {
        let threads = (f64::from(m.cpus) - share * purgers).max(0.0);
        let pair = Customers { count: threads, operations: m.operations, elsewhere_ns: 1e3 * m.pair_us };
        let count = if per_area { share * purgers } else { 0.0 };
        let purger = Customers { count, operations: 1.0, elsewhere_ns: local };
        let response = response(m.line_ns, &[pair, purger]);
        (response, threads / (m.operations * response + 1e3 * m.pair_us))
    };
    let call = |areas: f64, response: f64| {
        if per_area { areas * (local + response) / share } else { areas * local / share + response }
    };
    let mut outcome = Outcome { calls: Histogram::default(), ..Outcome::default() };
    let (mut lazy, mut freed, mut now) = (0.0, 0.0f64, 0.0);
    let (_, idle_rate) = contend(0.0);
    loop {
        let wait = ((lazy_max / m.pages_per_area - lazy) / idle_rate).max(0.0) + 1e3 * m.pass_us;
        let come = |freed: &mut f64, rate: f64, ns: f64| {
            let areas = (rate * ns).min(m.areas - *freed).max(0.0);
            *freed += areas;
            areas
        };
        lazy += come(&mut freed, idle_rate, wait);
        now += wait;
        let counted = lazy * m.pages_per_area;
        outcome.most_lazy_pages = outcome.most_lazy_pages.max(counted as u64);
        let parallel = 1.0 + pass::helpers(counted as u64, lazy_max as u64, nodes as u64) as f64;
        let list = lazy / nodes;
        outcome.purged += lazy as u64;
        outcome.passes += 1;
        lazy = 0.0;
        let inline = nodes - parallel;
        for (purgers, calls, one_by_one) in [(parallel, parallel, 1.0), (1.0, inline, inline)] {
            let (response, rate) = contend(purgers);
            let ns = call(list, response);
            if ns > outcome.calls.longest_ns() as f64 {
                outcome.nr_purged = vec![list as u64; nodes as usize];
            }
            (0..calls as u64).for_each(|_| outcome.calls.add(ns as u64));
            lazy += come(&mut freed, rate, ns * one_by_one);
            now += ns * one_by_one;
        }
        if freed >= m.areas && lazy * m.pages_per_area <= lazy_max {
            outcome.freed = freed as u64;
            outcome.ran_ns = now as u64;
            return outcome;
        }
    }
}

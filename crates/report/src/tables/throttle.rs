//! `throttle`: tasks that were throttled, why, and for how long.

use super::reclaim::label;
use super::{column, list, text};
use crate::model::{Cell, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::throttle::Throttled;

/// `throttle`, by reason and reclaimer; writers last.
pub fn table(a: &Analysis) -> Table {
    let row = |reason: &str, who: &str, t: &Throttled| {
        let ms = |usecs: Option<f64>| Cell::float(usecs.map(|us| us / 1e3));
        vec![
            text(reason),
            text(who),
            Cell::int(t.usecs.count()),
            Cell::int(t.full),
            Cell::Float(t.usecs.sum as f64 / 1e3),
            ms(t.usecs.mean()),
            ms(t.usecs.quantile(0.5).map(|us| us as f64)),
            ms(t.usecs.quantile(0.99).map(|us| us as f64)),
            ms(t.usecs.max().map(|us| us as f64)),
        ]
    };
    let reclaimers = a.throttle.reclaimers.iter().map(|((reason, context), t)| row(reason.word(), label(*context), t));
    let mut rows: Vec<_> = reclaimers.collect();
    if a.throttle.writers.usecs.count() > 0 {
        rows.push(row("balance_dirty_pages", "writer", &a.throttle.writers));
    }
    let columns = vec![
        column("reason", "reason", ""),
        column("reclaimer", "reclaimer", ""),
        column("waits", "waits", ""),
        column("timed_out", "timed out", ""),
        column("time", "time", "ms"),
        column("mean", "mean", "ms"),
        column("p50", "p50", "ms"),
        column("p99", "p99", "ms"),
        column("max", "max", "ms"),
    ];
    let note = "Timed out: the wait lasted its whole timeout. Times are whole jiffies. Kernels before 5.16: see congestion-wait.";
    list("throttle", "Throttling by reason", note, columns, rows)
}

//! `latency` and `latency-...`: how long tasks were in reclaim, by order of the request, and as histograms.

use super::reclaim::{bounds, contexts, label};
use super::{column, list, ms, seconds, text};
use crate::model::{Body, Cell, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::tasks::Context;

/// Contexts in which a task waits for its memory, and whose start and end were recorded.
fn stalls(analysis: &Analysis) -> impl Iterator<Item = (Context, &mmtwin_analysis::reclaim::Totals)> {
    contexts(analysis).filter(|(context, _)| {
        *context != Context::Kswapd
            && bounds(*context).is_some_and(|bounds| bounds.iter().all(|&kind| analysis.recorded.has(kind)))
    })
}

/// `latency`: number, mean, quantiles and longest by reclaimer and order.
pub fn by_order(analysis: &Analysis) -> Table {
    let mut rows = Vec::new();
    for (context, totals) in stalls(analysis) {
        for (order, latency) in totals.by_order() {
            rows.push(vec![
                text(label(context)),
                order.map_or(text("unknown"), |order| Cell::Int(order as i128)),
                Cell::int(latency.count()),
                Cell::float(latency.mean().map(|ns| ns / 1e6)),
                ms(latency.quantile(0.5)),
                ms(latency.quantile(0.9)),
                ms(latency.quantile(0.99)),
                ms(latency.max()),
                seconds(latency.sum),
            ]);
        }
    }
    let columns = vec![
        column("reclaimer", "reclaimer", ""),
        column("order", "order", ""),
        column("count", "count", ""),
        column("mean", "mean", "ms"),
        column("p50", "p50", "ms"),
        column("p90", "p90", "ms"),
        column("p99", "p99", "ms"),
        column("max", "max", "ms"),
        column("total", "total", "s"),
    ];
    list("latency", "Reclaim latency by order", "Quantiles are accurate to 1 %.", columns, rows)
}

/// `latency-direct`, `latency-cgroup`, ...: one histogram per reclaimer that has durations.
pub fn histograms(analysis: &Analysis) -> Vec<Table> {
    let tables = stalls(analysis).filter_map(|(context, totals)| {
        let durations = totals.durations();
        let total = u64::try_from(durations.sum).ok()?;
        let body = Body::Histogram { unit: "ns", slots: durations.powers_of_two(), mean: durations.mean(), total };
        let name = format!("latency-{}", context.key().replace('_', "-"));
        let title = format!("Reclaim latency: {}", label(context));
        (durations.count() > 0).then_some(Table { name, title, note: String::new(), body })
    });
    tables.collect()
}

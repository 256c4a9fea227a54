//! `slab`: shrinkers by the time they took.

use super::reclaim::label;
use super::{column, list, ms, seconds, text};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::tasks::Context;
use mmtwin_event::Kind::MmShrinkSlabEnd;

/// `slab`, most time first.
pub fn table(a: &Analysis) -> Table {
    let ended = a.recorded.has(MmShrinkSlabEnd);
    let contexts: Vec<Context> = Context::ALL.into_iter().filter(|&c| a.slab.nanoseconds(c) > 0).collect();
    let rows = a.slab.by_time(&a.source).into_iter().map(|(name, s)| {
        let reported = |value: Option<u64>| match value {
            Some(value) => Cell::int(value),
            None => Cell::Na(if ended { Na::NotInKernel } else { Na::NotRecorded }),
        };
        let time = |ns: u128| if ended { seconds(ns) } else { Cell::Na(Na::NotRecorded) };
        let mut row = vec![
            text(name),
            Cell::int(s.calls),
            Cell::int(s.to_scan),
            reported(s.scanned),
            reported(s.freed),
            time(s.times.sum),
            ms(s.times.quantile(0.5)),
            ms(s.times.quantile(0.99)),
            ms(s.times.max()),
        ];
        row.extend(contexts.iter().map(|&c| time(s.by_context[c as usize])));
        row
    });
    let mut columns = vec![
        column("shrinker", "shrinker", ""),
        column("calls", "calls", ""),
        column("to_scan", "to scan", "objects"),
        column("scanned", "scanned", "objects"),
        column("freed", "freed", "objects"),
        column("time", "time", "s"),
        column("p50", "p50", "ms"),
        column("p99", "p99", "ms"),
        column("max", "max", "ms"),
    ];
    let in_context =
        |&context: &Context| column(&format!("time_{}", context.key()), &format!("in {}", label(context)), "s");
    columns.extend(contexts.iter().map(in_context));
    list("slab", "Slab shrinkers", "Sorted by time.", columns, rows.collect())
}

//! `stacks`: from where tasks began to reclaim, to compact or to wait.

use super::{column, list, ms, text};
use crate::model::{Cell, Table};
use mmtwin_analysis::Analysis;

/// Between the functions of a stack.
pub(crate) const BETWEEN: &str = ";";

/// `stacks`, most time waited first.
pub fn table(a: &Analysis) -> Table {
    let rows = a.stacks.by_time(&a.source).into_iter().map(|mut stack| {
        stack.functions.reverse();
        let mean = (stack.timed > 0).then(|| stack.waited / stack.timed);
        vec![
            text(stack.event_name()),
            text(&stack.task),
            Cell::int(stack.count),
            ms((stack.timed > 0).then_some(stack.waited)),
            ms(mean),
            text(stack.functions.join(BETWEEN)),
        ]
    });
    let columns = vec![
        column("event", "event", ""),
        column("task", "task", ""),
        column("count", "count", ""),
        column("waited", "waited", "ms"),
        column("mean", "mean", "ms"),
        column("stack", "stack", ""),
    ];
    list("stacks", "Kernel stacks", "Sorted by time waited; the outermost function first.", columns, rows.collect())
}

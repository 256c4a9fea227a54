//! `lost-events`: events the kernel lost, per CPU.

use super::{column, list};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;

/// `lost-events`; no row means that no event was lost.
pub fn table(a: &Analysis) -> Table {
    let rows = a.losses.cpus.iter().map(|(cpu, lost)| {
        let counted = lost.unknown_gaps < lost.gaps;
        vec![
            Cell::int((*cpu).into()),
            Cell::int(lost.gaps),
            Cell::int(lost.unknown_gaps),
            if counted { Cell::int(lost.events) } else { Cell::Na(Na::Lost) },
        ]
    });
    let columns = vec![
        column("cpu", "CPU", ""),
        column("gaps", "gaps", ""),
        column("unknown_gaps", "of unknown size", ""),
        column("events", "events lost", ""),
    ];
    let note = "Gaps of unknown size are not included in events lost.";
    list("lost-events", "Lost events by CPU", note, columns, rows.collect())
}

//! `delays`: what each task waited, by events and by the kernel's delay accounting.

use super::{column, list, text};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::delays::Delays;
use mmtwin_analysis::tasks::{Context, is_kernel_daemon};
use mmtwin_event::Kind::{MmVmscanDirectReclaimBegin, MmVmscanMemcgReclaimBegin};
use std::collections::BTreeMap;

/// What is known of a task.
#[derive(Default)]
struct Row {
    name: String,
    cgroup: Option<String>,
    /// Nanoseconds in reclaim, by events; 0: none was seen.
    events: u64,
    kernel: Option<Delays>,
}

/// Tasks that waited by either, those that waited longest first. Empty where delay accounting was not recorded.
pub fn table(analysis: &Analysis) -> Table {
    let mut tasks: BTreeMap<i32, Row> = BTreeMap::new();
    if Delays::are_recorded(analysis) {
        for (task, process) in analysis.reclaimers().filter(|(task, _)| !is_kernel_daemon(task)) {
            let waited = [Context::Direct, Context::Memcg].map(|context| process.waited(context));
            let row = tasks.entry(task.pid).or_default();
            row.events = row.events.saturating_add(waited[0].saturating_add(waited[1]));
            (row.name, row.cgroup) = (task.name(), analysis.tasks.cgroup(task).map(str::to_string));
        }
        for (task, delays) in Delays::all(analysis) {
            let row = tasks.entry(task.pid).or_default();
            row.kernel = Some(delays);
            (row.name, row.cgroup) = (task.name(), analysis.tasks.cgroup(&task).map(str::to_string));
        }
    }
    let mut rows: Vec<(i32, Row)> =
        tasks.into_iter().filter(|(_, row)| row.events > 0 || row.kernel.is_some()).collect();
    let longest = |row: &Row| {
        row.kernel.map_or(row.events, |d| row.events.max(d.freepages.unwrap_or(0)).saturating_add(d.blkio.unwrap_or(0)))
    };
    rows.sort_by_key(|(pid, row)| (std::cmp::Reverse(longest(row)), *pid));
    let both = [MmVmscanDirectReclaimBegin, MmVmscanMemcgReclaimBegin];
    let of_events = |ns| both.iter().find_map(|kind| analysis.recorded.value(&[*kind], ns));
    let cells = rows.into_iter().map(|(pid, row)| {
        let of_kernel = |part: fn(&Delays) -> Option<u64>| row.kernel.as_ref().and_then(part);
        let difference = match (of_events(row.events), of_kernel(|d| d.freepages)) {
            (Some(events), Some(kernel)) if kernel > 0 => Cell::Float((events as f64 / kernel as f64 - 1.0) * 100.0),
            _ => Cell::Na(Na::NotRecorded),
        };
        let cgroup = row.cgroup.clone().map_or(Cell::Na(Na::NotRecorded), text);
        let mut cells = vec![text(row.name.clone()), Cell::Int(pid.into()), cgroup];
        cells.extend([super::ms(of_events(row.events)), super::ms(of_kernel(|d| d.freepages)), difference]);
        let parts: [fn(&Delays) -> Option<u64>; 4] = [|d| d.compact, |d| d.blkio, |d| d.swapin, |d| d.thrashing];
        cells.extend(parts.map(|part| super::ms(of_kernel(part))));
        cells
    });
    let columns = vec![
        column("comm", "process", ""),
        column("pid", "pid", ""),
        column("cgroup", "cgroup", ""),
        column("reclaim", "reclaim by events", "ms"),
        column("freepages", "reclaim by kernel", "ms"),
        column("difference", "difference", "%"),
        column("compact", "compaction", "ms"),
        column("blkio", "disk", "ms"),
        column("swapin", "swap-in", "ms"),
        column("thrashing", "thrashing", "ms"),
    ];
    let note = "Sums of each task; the table pressure has shares of time, in which tasks that wait at once count once. \
                All but the first are the kernel's delay accounting of the task; n/a: it has none of it, as of a task \
                that ran before it was switched on, or more than the recording took. Waits for swap and for pages that come back are in those for a disk too.";
    list("delays", "Time waited by task", note, columns, cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;
    use mmtwin_event::{CounterRow, Sink};

    #[test]
    fn a_task_without_events_has_its_accounting() {
        let mut analysis = Analysis::default();
        let Body::List { rows, .. } = table(&analysis).body else { panic!("a list") };
        assert!(rows.is_empty());
        let names = ["blkio_ns", "swapin_ns", "freepages_ns", "thrashing_ns", "compact_ns"].map(String::from);
        for (at, ns) in [(0, 0), (10_000_000_000, 3_000_000)] {
            let values = [Some(ns), Some(0), Some(0), Some(0), Some(0)];
            analysis.counters(&CounterRow { source: "delays", key: "7", at, names: &names, values: &values });
        }
        let Body::List { rows, .. } = table(&analysis).body else { panic!("a list") };
        assert_eq!((rows.len(), &rows[0][1], &rows[0][7]), (1, &Cell::Int(7), &Cell::Float(3.0)));
        assert_eq!(rows[0][3], Cell::Na(Na::NotRecorded), "reclaim was not recorded");
    }
}

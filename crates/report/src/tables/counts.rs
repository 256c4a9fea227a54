//! The kernel's counters: what changed between the first and the last sample.

use super::{column, list, text};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::counters::{Counters, is_gauge};

/// What is shown of a zone in `zoneinfo`, in pages; keys without a zone are of nodes.
const ZONE: &[(&str, &str)] = &[
    ("free", "free"),
    ("min", "min"),
    ("low", "low"),
    ("high", "high"),
    ("managed", "managed"),
    ("present", "present"),
];

/// `vmstat`, `node-vmstat`, `numastat`, `zoneinfo`, `meminfo`, `pressure`, `psi` and `cgroup`.
pub fn tables(a: &Analysis) -> Vec<Table> {
    let c = &a.counters;
    vec![
        changes(c, "vmstat", "vmstat", "Changed counters of /proc/vmstat"),
        per_node(c, "node_vmstat", "node-vmstat", "Changed counters per node", false),
        per_node(c, "numastat", "numastat", "NUMA allocation counters per node", true),
        zones(c),
        changes(c, "meminfo", "meminfo", "Changed values of /proc/meminfo"),
        super::pressure::table(c),
        changes(c, "psi", "psi", "Pressure stall information (PSI)"),
        changes(c, "cgroup", "cgroup", "Changed cgroup counters"),
    ]
}

/// Increase of a counter; not known if it accumulates and went backwards.
fn growth(c: &Counters, source: &str, key: &str, name: &str) -> Cell {
    let grown = c.change(source, key, name).filter(|n| *n >= 0 || is_gauge(source, name));
    grown.map_or(Cell::Na(Na::NotRecorded), Cell::Int)
}

/// Every counter of every key that changed: before, after, difference, per second where the time is known.
fn changes(c: &Counters, source: &str, name: &str, title: &str) -> Table {
    let keys = c.keys(source);
    let keyed = keys.iter().any(|key| !key.is_empty());
    let mut rows = Vec::new();
    for key in keys {
        let Some(s) = c.sampled(source, key) else { continue };
        let seconds = c.seconds(source, key);
        for ((counter, first), last) in s.names.iter().zip(&s.first).zip(&s.last).filter(|((_, a), b)| a != b) {
            let grown = growth(c, source, key, counter);
            let rate = match is_gauge(source, counter) {
                true => Cell::Na(Na::Undefined),
                false => Cell::float(grown.number().zip(seconds).map(|(n, seconds)| n / seconds)),
            };
            let mut row = if keyed { vec![text(key)] } else { Vec::new() };
            row.extend([text(&**counter), Cell::recorded(*first), Cell::recorded(*last), grown, rate]);
            rows.push(row);
        }
    }
    let mut columns = if keyed { vec![column("key", "key", "")] } else { Vec::new() };
    columns.extend([
        column("counter", "counter", ""),
        column("before", "before", ""),
        column("after", "after", ""),
        column("delta", "difference", ""),
        column("per_second", "per second", "/s"),
    ]);
    let levels = rows.iter().flatten().any(|cell| *cell == Cell::Na(Na::Undefined));
    let levels = if levels { " Gauges have no rate." } else { "" };
    let note = format!("The difference of a counter that was reset (went backwards) is n/a.{levels}");
    list(name, title, &note, columns, rows)
}

/// One row per counter, one column per node; all counters or those that changed anywhere.
fn per_node(c: &Counters, source: &str, name: &str, title: &str, all: bool) -> Table {
    let nodes = c.keys(source);
    let mut names: Vec<&str> = Vec::new();
    for sampled in nodes.iter().filter_map(|node| c.sampled(source, node)) {
        for counter in &sampled.names {
            if !names.contains(&counter.as_str()) {
                names.push(counter);
            }
        }
    }
    let rows =
        names.into_iter().filter(|n| all || nodes.iter().any(|node| c.change(source, node, n).is_some_and(|d| d != 0)));
    let rows = rows.map(|n| {
        let cells = nodes.iter().map(|node| growth(c, source, node, n));
        [text(n)].into_iter().chain(cells).collect()
    });
    let mut columns = vec![column("counter", "counter", "")];
    columns.extend(nodes.iter().map(|node| column(&format!("n{node}"), &format!("N{node}"), "")));
    let rows = rows.collect();
    list(name, title, "Differences between the first and the last sample.", columns, rows)
}

/// `zoneinfo`: free pages and watermarks per zone, at the last sample.
fn zones(c: &Counters) -> Table {
    let rows = c.keys("zoneinfo").into_iter().filter(|key| key.contains('/')).map(|zone| {
        let cells = ZONE.iter().map(|(name, _)| Cell::recorded(c.last("zoneinfo", zone, name)));
        [text(zone)].into_iter().chain(cells).collect()
    });
    let mut columns = vec![column("zone", "zone", "")];
    columns.extend(ZONE.iter().map(|(key, label)| column(key, label, "pages")));
    list("zoneinfo", "Zones and watermarks", "At the last sample.", columns, rows.collect())
}

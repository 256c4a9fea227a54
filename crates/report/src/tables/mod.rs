//! The named tables of a report, made from an analysis; one file per group.

use crate::model::{Better, Body, Cell, Column, Gain, Metric, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::reclaim::{Pages, Process};
use mmtwin_event::Kind;

pub mod alloc;
pub mod calls;
mod cgroups;
pub mod compaction;
pub mod counts;
pub mod cross_check;
mod delays;
pub mod derived;
pub mod duration;
pub mod historic;
pub mod invariants;
pub mod latency;
pub mod losses;
pub mod mmtests;
pub mod numa;
mod numa_health;
mod numa_placement;
pub mod postprocess;
mod pressure;
pub mod process;
pub mod reclaim;
pub mod slab;
pub mod stacks;
pub mod throttle;
pub mod vmalloc;
pub mod vmscan;
pub mod vmstat_gain;
pub mod waits;
pub mod workload;

/// The tables of reclaim, in the order of the report.
pub fn reclaim_tables(analysis: &Analysis) -> Vec<Table> {
    let mut tables = vec![cgroups::table(analysis), reclaim::side_by_side(analysis)];
    tables.extend([reclaim::nodes(analysis), reclaim::places(analysis)]);
    tables.extend([reclaim::lists(analysis), latency::by_order(analysis)]);
    tables.extend(latency::histograms(analysis));
    tables.extend([process::processes(analysis), delays::table(analysis), process::kswapds(analysis)]);
    tables.extend([vmscan::table(analysis), waits::congestion(analysis), waits::writepage(analysis)]);
    tables.extend(duration::Generation::ALL.map(|generation| duration::table(&analysis.source, generation)));
    tables.extend([mmtests::of_2012(analysis), mmtests::current(analysis)]);
    tables.extend([mmtests::numa_2018(analysis), mmtests::numa_current(analysis)]);
    tables.extend([vmstat_gain::table(analysis, Gain::Percent), vmstat_gain::table(analysis, Gain::RelativeToNew)]);
    tables.extend(postprocess::tables(analysis));
    tables
}

/// The tables of everything but reclaim, in the order of the report.
pub fn subject_tables(analysis: &Analysis) -> Vec<Table> {
    let mut tables = vec![throttle::table(analysis), slab::table(analysis), stacks::table(analysis)];
    tables.extend(compaction::tables(analysis));
    tables.extend(numa::tables(analysis));
    tables.extend(alloc::tables(analysis));
    tables.extend(vmalloc::tables(analysis));
    tables.extend(calls::tables(analysis));
    tables.extend(counts::tables(analysis));
    tables.extend([losses::table(analysis), invariants::table(analysis)]);
    tables
}

/// Which events tell how many pages were scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scans {
    /// Isolations, whose list is known: they also show what was scanned without success.
    Isolations,
    /// Shrink events.
    Shrinks,
}

/// Which events tell it here; `None` if none that can were recorded.
fn scans(analysis: &Analysis) -> Option<Scans> {
    let recorded = |kind| analysis.recorded.has(kind);
    if recorded(Kind::MmVmscanLruIsolate) && analysis.reclaim.lists_are_reported() {
        Some(Scans::Isolations)
    } else if recorded(Kind::MmVmscanLruShrinkInactive) {
        Some(Scans::Shrinks)
    } else {
        None
    }
}

/// Pages that a process scanned.
fn scanned(scans: Scans, process: &Process) -> Pages {
    match scans {
        Scans::Isolations => process.isolated,
        Scans::Shrinks => process.scanned,
    }
}

/// Growth of the counters among `names` that this kernel has, summed.
fn counters(analysis: &Analysis, names: &[&str]) -> Cell {
    match analysis.counters.vmstat_sum(names) {
        Some(sum) => Cell::int(sum),
        // The twin records the counters that it keeps, whatever its kernel has.
        None if analysis.counters.has_change("vmstat", "") && analysis.source.arm != "twin" => {
            Cell::Na(Na::NotInKernel)
        }
        None => Cell::Na(Na::NotRecorded),
    }
}

/// Sum of values that are all known. Damaged input can hold any number, so sums stop at the largest.
fn total(values: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    values.into_iter().try_fold(0u64, |sum, value| Some(sum.saturating_add(value?)))
}

/// A row without a rule of gain.
fn row(key: &str, label: &str, unit: &'static str, better: Better, decimals: Option<u8>, value: Cell) -> Metric {
    Metric {
        key: key.into(),
        label: label.into(),
        unit: unit.into(),
        better,
        gain: Gain::None,
        decimals,
        value,
        published: None,
    }
}

pub(crate) fn column(key: &str, label: &str, unit: &'static str) -> Column {
    Column { key: key.into(), label: label.into(), unit }
}

fn metrics(name: &str, title: &str, note: &str, rows: Vec<Metric>) -> Table {
    Table { name: name.into(), title: title.into(), note: note.into(), body: Body::Metric(rows) }
}

fn list(name: &str, title: &str, note: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
    Table { name: name.into(), title: title.into(), note: note.into(), body: Body::List { columns, rows } }
}

fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

/// Nanoseconds in milliseconds.
fn ms(ns: Option<u64>) -> Cell {
    Cell::float(ns.map(|ns| ns as f64 / 1e6))
}

/// Nanoseconds in seconds.
fn seconds(ns: u128) -> Cell {
    Cell::Float(ns as f64 / 1e9)
}

/// `reclaimed * 100 / scanned`; not known without scans.
fn efficiency(reclaimed: u64, scanned: u64) -> Cell {
    Cell::float((scanned > 0).then(|| derived::percent(reclaimed as f64, scanned as f64)))
}

#[cfg(test)]
mod reclaim_tests;
#[cfg(test)]
mod subject_tests;
#[cfg(test)]
mod tests;

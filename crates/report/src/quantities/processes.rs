//! `process`: reclaim by the name of who reclaimed. Thread ids differ between two recordings, names do not.

use super::part;
use crate::model::Better::{Lower, Neutral};
use crate::model::{Better, Body, Cell, Gain, Metric, Table};
use mmtwin_analysis::Analysis;
use mmtwin_event::Kind;
use std::collections::BTreeMap;

/// Sums over the tasks of one name.
#[derive(Default)]
struct Sums {
    reclaims: u64,
    stalled: u128,
    longest: u64,
    scanned: u64,
    reclaimed: u64,
}

/// One row for each figure of each name.
pub(super) fn table(analysis: &Analysis, of: &Table) -> Table {
    let mut names: BTreeMap<String, Sums> = BTreeMap::new();
    for (task, process) in analysis.reclaimers().filter(|(_, process)| process.begins.iter().any(|n| *n > 0)) {
        let sums = names.entry(task.name()).or_default();
        sums.reclaims += process.begins.iter().sum::<u64>();
        sums.stalled += process.stalls.sum;
        sums.longest = sums.longest.max(process.stalls.max().unwrap_or(0));
        sums.scanned = sums.scanned.saturating_add(process.scanned.all);
        sums.reclaimed = sums.reclaimed.saturating_add(process.reclaimed.all);
    }
    let pages = |n: u64| Cell::recorded(analysis.recorded.value(&[Kind::MmVmscanLruShrinkInactive], n));
    let mut rows = Vec::new();
    for (name, sums) in names {
        let mut add = |key: &str, label: &str, unit: &'static str, better: Better, value: Cell| {
            rows.push(Metric {
                key: format!("{}.{key}", part(&name)),
                label: format!("{name}: {label}"),
                unit: unit.into(),
                better,
                gain: Gain::None,
                decimals: None,
                value,
                published: None,
            });
        };
        add("stalled", "stalled in reclaim", "s", Lower, Cell::Float(sums.stalled as f64 / 1e9));
        add("max", "longest reclaim", "ms", Lower, Cell::Float(sums.longest as f64 / 1e6));
        add("reclaims", "reclaims", "", Lower, Cell::int(sums.reclaims));
        add("scanned", "scanned", "pages", Neutral, pages(sums.scanned));
        add("reclaimed", "reclaimed", "pages", Neutral, pages(sums.reclaimed));
    }
    let note = "Tasks of one name are one.";
    Table { name: of.name.clone(), title: of.title.clone(), note: note.into(), body: Body::Metric(rows) }
}

//! `reclaim` and its parts: who reclaimed, from which node, at which priority, from which list.
//!
//! Direct, kswapd, cgroup, soft-limit, node and other reclaim are kept separate. A figure whose events were not recorded
//! is n/a. What happened outside any known reclaim is "other" and has no count or time.

use super::{Scans, column, efficiency, list, metrics, ms, row, scans, seconds, text};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Cell, Metric, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::reclaim::{ActiveBatches, Detail, Isolated, List, Totals};
use mmtwin_analysis::tasks::Context;
use mmtwin_event::Kind::{self, *};
use mmtwin_event::names::RECLAIM_FLAGS;
use std::collections::BTreeMap;

/// Heading of a context.
pub(super) fn label(context: Context) -> &'static str {
    match context {
        Context::Direct => "direct",
        Context::Kswapd => "kswapd",
        Context::Memcg => "cgroup",
        Context::MemcgSoftlimit => "cgroup soft limit",
        Context::Node => "node",
        Context::Other => "other",
    }
}

/// Events that begin and end reclaim in a context.
pub(super) fn bounds(context: Context) -> Option<[Kind; 2]> {
    match context {
        Context::Direct => Some([MmVmscanDirectReclaimBegin, MmVmscanDirectReclaimEnd]),
        Context::Kswapd => Some([MmVmscanKswapdWake, MmVmscanKswapdSleep]),
        Context::Memcg => Some([MmVmscanMemcgReclaimBegin, MmVmscanMemcgReclaimEnd]),
        Context::MemcgSoftlimit => Some([MmVmscanMemcgSoftlimitReclaimBegin, MmVmscanMemcgSoftlimitReclaimEnd]),
        Context::Node => Some([MmVmscanNodeReclaimBegin, MmVmscanNodeReclaimEnd]),
        Context::Other => None,
    }
}

/// Contexts that were recorded or in which something happened.
pub(super) fn contexts(analysis: &Analysis) -> impl Iterator<Item = (Context, &Totals)> {
    let all = Context::ALL.into_iter().map(|context| (context, analysis.reclaim.context(context)));
    all.filter(|(context, totals)| {
        !totals.is_idle() || bounds(*context).is_some_and(|bounds| analysis.recorded.has(bounds[0]))
    })
}

/// Pages scanned and reclaimed in a context, where known.
pub(super) fn pages(analysis: &Analysis, totals: &Totals) -> (Option<u64>, Option<u64>) {
    let scanned = scans(analysis).map(|scans| match scans {
        Scans::Isolations => totals.isolated_inactive().scanned,
        Scans::Shrinks => totals.inactive.scanned.all,
    });
    (scanned, analysis.recorded.value(&[MmVmscanLruShrinkInactive], totals.inactive.reclaimed.all))
}

/// The figures of one context.
fn figures(analysis: &Analysis, context: Context, totals: &Totals) -> Vec<Metric> {
    let known = |kinds: &[Kind], value: u64| Cell::recorded(analysis.recorded.value(kinds, value));
    let shrunk = |value: u64| known(&[MmVmscanLruShrinkInactive], value);
    let bound = |at: usize, value: u64| match bounds(context) {
        Some(bounds) => known(&bounds[at..=at], value),
        None => Cell::Na(Na::NotRecorded),
    };
    let durations = bounds(context)
        .filter(|bounds| bounds.iter().all(|&kind| analysis.recorded.has(kind)))
        .map(|_| totals.durations());
    let quantile = |q: f64| ms(durations.as_ref().and_then(|d| d.quantile(q)));
    let (scanned, reclaimed) = pages(analysis, totals);
    let share = match (scanned, reclaimed) {
        (Some(scanned), Some(reclaimed)) => efficiency(reclaimed, scanned),
        _ => Cell::Na(Na::NotRecorded),
    };
    let isolated = totals.isolated_inactive();
    let taken = |value: u64| match scans(analysis) {
        Some(Scans::Isolations) => Cell::int(value),
        _ => Cell::Na(Na::NotRecorded),
    };
    let batches = &totals.inactive;
    let reported = |detail: Detail, value: u64| match analysis.reclaim.reported.has(detail) {
        true => shrunk(value),
        false => Cell::Na(Na::NotInKernel),
    };
    let active = |of: fn(&ActiveBatches) -> u64| {
        known(&[MmVmscanLruShrinkActive], of(&totals.active_anon).saturating_add(of(&totals.active_file)))
    };
    let pages = |key: &str, label: &str, better, value| row(key, label, "pages", better, None, value);
    let time = |key: &str, label: &str, value| row(key, label, "ms", Lower, None, value);
    let ended = match context {
        Context::Kswapd => Cell::Na(Na::NotInKernel),
        _ => bound(1, totals.reclaimed_by_end),
    };
    let begins = if context == Context::Kswapd { "Wakes" } else { "Reclaims" };
    vec![
        row("count", begins, "", Lower, None, bound(0, totals.begins)),
        row(
            "unpaired",
            "Unpaired (no begin or no end)",
            "",
            Lower,
            None,
            bound(1, analysis.reclaim.without_duration(context)),
        ),
        pages("scanned", "Pages scanned", Lower, Cell::recorded(scanned)),
        pages(
            "skipped",
            "Pages skipped (ineligible zone)",
            Lower,
            match analysis.reclaim.reported.has(Detail::Skipped) {
                true => taken(isolated.skipped),
                false => Cell::Na(Na::NotInKernel),
            },
        ),
        pages("isolated", "Pages isolated", Neutral, taken(isolated.taken)),
        pages("reclaimed", "Pages reclaimed", Higher, Cell::recorded(reclaimed)),
        pages("nr_reclaimed_end", "nr_reclaimed (from end event)", Higher, ended),
        row("efficiency", "Efficiency", "%", Higher, Some(2), share),
        pages("written", "Pages written", Lower, known(&[MmVmscanWriteFolio], totals.writes.total())),
        pages("dirty", "Dirty", Lower, reported(Detail::Dirty, batches.dirty)),
        pages("writeback", "Under writeback", Lower, reported(Detail::Writeback, batches.writeback)),
        pages("congested", "Congested", Lower, reported(Detail::Congested, batches.congested)),
        pages("immediate", "Immediate (PG_reclaim)", Lower, reported(Detail::Immediate, batches.immediate)),
        pages("activated_anon", "Activated: anon", Lower, reported(Detail::ActivatedAnon, batches.activated_anon)),
        pages("activated_file", "Activated: file", Lower, reported(Detail::ActivatedFile, batches.activated_file)),
        pages("ref_keep", "Kept: referenced (ref_keep)", Lower, reported(Detail::Kept, batches.kept)),
        pages("unmap_failed", "Unmap failed", Lower, reported(Detail::UnmapFailed, batches.unmap_failed)),
        pages("active_isolated", "Active pages isolated", Neutral, active(|a| a.taken)),
        pages("deactivated", "Active pages deactivated", Neutral, active(|a| a.deactivated)),
        row(
            "time",
            "Time",
            "s",
            Lower,
            Some(3),
            durations.as_ref().map_or(Cell::Na(Na::NotRecorded), |d| seconds(d.sum)),
        ),
        time("time_p50", "Time p50", quantile(0.5)),
        time("time_p99", "Time p99", quantile(0.99)),
        time("time_max", "Time max", ms(durations.as_ref().and_then(|d| d.max()))),
    ]
}

/// `reclaim`: all contexts side by side.
pub fn side_by_side(analysis: &Analysis) -> Table {
    let all: Vec<_> =
        contexts(analysis).map(|(context, totals)| (context, figures(analysis, context, totals))).collect();
    let mut columns = vec![column("quantity", "", ""), column("unit", "unit", "")];
    columns.extend(all.iter().map(|(context, _)| column(context.key(), label(*context), "")));
    let quantities = all.first().map_or(0, |(_, figures)| figures.len());
    let rows = (0..quantities).map(|i| {
        let (first, values) = (&all[0].1[i], all.iter().map(|(_, figures)| figures[i].value.clone()));
        let name = if first.key == "count" { "Reclaims (kswapd: wakes)" } else { first.label.as_str() };
        [text(name), text(first.unit.clone())].into_iter().chain(values).collect()
    });
    list(
        "reclaim",
        "Page reclaim",
        "One column per reclaimer. The time of kswapd is the time it was awake.",
        columns,
        rows.collect(),
    )
}

/// `reclaim-direct`, `reclaim-kswapd`, ...: one context each, for comparison. Node reclaim is `reclaim-node-reclaim`.
pub fn per_context(analysis: &Analysis) -> Vec<Table> {
    let tables = contexts(analysis).map(|(context, totals)| {
        let name = match context {
            Context::Node => "reclaim-node-reclaim".into(),
            _ => format!("reclaim-{}", context.key().replace('_', "-")),
        };
        metrics(&name, &format!("Page reclaim: {}", label(context)), "", figures(analysis, context, totals))
    });
    tables.collect()
}

/// `reclaim-by-node`: by node and reclaimer.
pub fn nodes(analysis: &Analysis) -> Table {
    let mut sums: BTreeMap<(i32, usize), [u64; 5]> = BTreeMap::new();
    for visit in analysis.reclaim.places.sorted() {
        let context = Context::ALL.iter().position(|&context| context == visit.place.context).unwrap_or_default();
        let parts = [visit.batches, visit.scanned, visit.reclaimed, visit.active_isolated, visit.deactivated];
        for (sum, part) in sums.entry((visit.place.nid, context)).or_default().iter_mut().zip(parts) {
            *sum = sum.saturating_add(part);
        }
    }
    let rows = sums.into_iter().map(|((nid, context), [batches, scanned, reclaimed, taken, deactivated])| {
        let mut cells = vec![Cell::Int(nid.into()), text(label(Context::ALL[context]))];
        cells.extend(outcome(analysis, batches, scanned, reclaimed, taken, deactivated));
        cells
    });
    let mut columns = vec![column("node", "node", ""), column("reclaimer", "reclaimer", "")];
    columns.extend(outcome_columns());
    list("reclaim-by-node", "Page reclaim by node", "", columns, rows.collect())
}

fn outcome_columns() -> [crate::model::Column; 6] {
    [
        column("batches", "batches", ""),
        column("scanned", "scanned", "pages"),
        column("reclaimed", "reclaimed", "pages"),
        column("efficiency", "efficiency", "%"),
        column("active_isolated", "active isolated", "pages"),
        column("deactivated", "deactivated", "pages"),
    ]
}

fn outcome(analysis: &Analysis, batches: u64, scanned: u64, reclaimed: u64, taken: u64, deactivated: u64) -> [Cell; 6] {
    let known = |kind, value| Cell::recorded(analysis.recorded.value(&[kind], value));
    [
        known(MmVmscanLruShrinkInactive, batches),
        known(MmVmscanLruShrinkInactive, scanned),
        known(MmVmscanLruShrinkInactive, reclaimed),
        efficiency(reclaimed, scanned),
        known(MmVmscanLruShrinkActive, taken),
        known(MmVmscanLruShrinkActive, deactivated),
    ]
}

/// `reclaim-by-priority`: by node, zone, reclaimer, priority and flags, most scanned first.
pub fn places(analysis: &Analysis) -> Table {
    let mut visits = analysis.reclaim.places.sorted();
    visits.sort_by_key(|visit| std::cmp::Reverse((visit.scanned, visit.active_isolated)));
    let zones = visits.iter().any(|visit| visit.place.zid.is_some());
    let mut columns = vec![column("node", "node", ""), column("zone", "zone", "")];
    columns.truncate(if zones { 2 } else { 1 });
    columns.extend([
        column("reclaimer", "reclaimer", ""),
        column("priority", "priority", ""),
        column("flags", "flags", ""),
    ]);
    columns.extend(outcome_columns());
    let rows = visits.iter().map(|visit| {
        let place = visit.place;
        let mut cells = vec![Cell::Int(place.nid.into())];
        if zones {
            cells.push(place.zid.map_or(Cell::Na(Na::NotInKernel), |zid| Cell::Int(zid.into())));
        }
        cells.extend([
            text(label(place.context)),
            Cell::Int(place.priority.into()),
            text(RECLAIM_FLAGS.flags_text(place.flags.0.into())),
        ]);
        let (batches, scanned, reclaimed) = (visit.batches, visit.scanned, visit.reclaimed);
        cells.extend(outcome(analysis, batches, scanned, reclaimed, visit.active_isolated, visit.deactivated));
        cells
    });
    let note = "Reclaim starts at priority 12 (DEF_PRIORITY) and ends at 0.";
    list("reclaim-by-priority", "Reclaim by node, zone and priority", note, columns, rows.collect())
}

/// `lru`: by list.
pub fn lists(analysis: &Analysis) -> Table {
    let mut rows = Vec::new();
    for (i, list) in List::ALL.into_iter().enumerate() {
        let (mut isolated, mut active) = (Isolated::default(), ActiveBatches::default());
        for context in Context::ALL {
            let totals = analysis.reclaim.context(context);
            isolated.merge(&totals.isolated[i]);
            match list {
                List::ActiveAnon => active.merge(&totals.active_anon),
                List::ActiveFile => active.merge(&totals.active_file),
                _ => {}
            }
        }
        if isolated.batches == 0 && active.count == 0 {
            continue;
        }
        let known = analysis.recorded.has_any(&[MmVmscanLruIsolate, MmVmscanMemcgIsolate]);
        let isolation = |value| Cell::recorded(known.then_some(value));
        let of_active = |value| match list {
            List::ActiveAnon | List::ActiveFile => {
                Cell::recorded(analysis.recorded.value(&[MmVmscanLruShrinkActive], value))
            }
            _ => Cell::Na(Na::NotInKernel),
        };
        rows.push(vec![
            text(list.name()),
            isolation(isolated.batches),
            isolation(isolated.requested),
            isolation(isolated.scanned),
            match analysis.reclaim.reported.has(Detail::Skipped) {
                true => isolation(isolated.skipped),
                false => Cell::Na(Na::NotInKernel),
            },
            isolation(isolated.taken),
            of_active(active.active),
            of_active(active.deactivated),
            of_active(active.referenced),
        ]);
    }
    let columns = vec![
        column("list", "list", ""),
        column("batches", "batches", ""),
        column("requested", "requested", "pages"),
        column("scanned", "scanned", "pages"),
        column("skipped", "skipped", "pages"),
        column("isolated", "isolated", "pages"),
        column("kept_active", "kept active", "pages"),
        column("deactivated", "deactivated", "pages"),
        column("referenced", "referenced", "pages"),
    ];
    super::list("lru", "Pages isolated by LRU list", "", columns, rows)
}

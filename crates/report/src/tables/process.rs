//! `process` and `kswapd`: reclaim by process, the longest stalled first, and the kswapd of each node.

use super::reclaim::bounds;
use super::{column, efficiency, list, ms, scanned, scans, seconds, text};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::reclaim::{Kswapd, MAX_PROCESSES};
use mmtwin_analysis::tasks::{Context, OTHERS};
use mmtwin_event::Kind::*;
use std::cmp::Reverse;

/// `process`: every process that reclaimed.
pub fn processes(analysis: &Analysis) -> Table {
    let known = |context: Context, value: u64| match bounds(context) {
        Some([begin, _]) => Cell::recorded(analysis.recorded.value(&[begin], value)),
        None => Cell::Na(Na::NotRecorded),
    };
    let scans = scans(analysis);
    let mut reclaimers: Vec<_> = analysis
        .reclaimers()
        .filter(|(_, p)| {
            p.begins.iter().any(|&n| n > 0) || (p.isolated.all, p.scanned.all) != (0, 0) || p.kswapd.is_some()
        })
        .collect();
    reclaimers.sort_by_cached_key(|(task, p)| (Reverse((p.stalls.sum, p.scanned.all)), task.name(), task.pid));
    let rows = reclaimers.into_iter().map(|(task, p)| {
        let pages = scans.map(|scans| scanned(scans, p).all);
        let reclaimed = analysis.recorded.value(&[MmVmscanLruShrinkInactive], p.reclaimed.all);
        let share = match (pages, reclaimed) {
            (Some(scanned), Some(reclaimed)) => efficiency(reclaimed, scanned),
            _ => Cell::Na(Na::NotRecorded),
        };
        let stalled = (p.stalls.count() > 0).then(|| seconds(p.stalls.sum));
        vec![
            text(task.name()),
            Cell::Int(task.pid.into()),
            known(Context::Direct, p.begun(Context::Direct)),
            known(Context::Memcg, p.begun(Context::Memcg) + p.begun(Context::MemcgSoftlimit)),
            known(Context::Node, p.begun(Context::Node)),
            Cell::recorded(analysis.recorded.value(&[MmVmscanWakeupKswapd], p.wakeups)),
            Cell::recorded(pages),
            Cell::recorded(reclaimed),
            share,
            Cell::recorded(analysis.recorded.value(&[MmVmscanWriteFolio], p.writes.total())),
            stalled.unwrap_or(Cell::Na(Na::NotRecorded)),
            ms(p.stalls.quantile(0.5)),
            ms(p.stalls.quantile(0.99)),
            ms(p.stalls.max()),
        ]
    });
    let columns = vec![
        column("comm", "process", ""),
        column("pid", "pid", ""),
        column("direct", "direct", ""),
        column("cgroup", "cgroup", ""),
        column("node_reclaims", "node", ""),
        column("wakeups", "woke kswapd", ""),
        column("scanned", "scanned", "pages"),
        column("reclaimed", "reclaimed", "pages"),
        column("efficiency", "efficiency", "%"),
        column("written", "written", "pages"),
        column("stalled", "stalled", "s"),
        column("p50", "p50", "ms"),
        column("p99", "p99", "ms"),
        column("max", "max", "ms"),
    ];
    list("process", "Reclaim by process", &note(analysis), columns, rows.collect())
}

/// What must be known of the list.
fn note(analysis: &Analysis) -> String {
    let mut note = "Sorted by time stalled; kswapd does not stall.".to_string();
    if analysis.reclaim.together() > 0 {
        let (together, apart) = (analysis.reclaim.together(), MAX_PROCESSES);
        note += &format!(" {together} processes beyond the first {apart} are merged into {OTHERS}.");
    }
    if analysis.tasks.beyond() > 0 {
        let beyond = analysis.tasks.beyond();
        note += &format!(
            " {beyond} events are of threads beyond the first 1048576, whose reclaim contexts are not separated."
        );
    }
    note
}

/// `kswapd`: by node.
pub fn kswapds(analysis: &Analysis) -> Table {
    let mut kswapds: Vec<(i32, String, Option<&Kswapd>)> = Vec::new();
    for (task, process) in analysis.reclaimers() {
        if let Some(kswapd) = process.kswapd.as_deref() {
            kswapds.push((kswapd.nid, task.name(), Some(kswapd)));
        }
    }
    let nodes = analysis.reclaim.nodes();
    for node in &nodes {
        if kswapds.iter().all(|(nid, _, _)| *nid != node.nid) {
            kswapds.push((node.nid, format!("kswapd{}", node.nid), None));
        }
    }
    kswapds.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let known = |kind, value: u64| Cell::recorded(analysis.recorded.value(&[kind], value));
    let rows = kswapds.into_iter().map(|(nid, name, kswapd)| {
        let none = Kswapd::default();
        let k = kswapd.unwrap_or(&none);
        let recorded = [MmVmscanKswapdWake, MmVmscanKswapdSleep].iter().all(|&kind| analysis.recorded.has(kind));
        let ns = recorded.then(|| k.awake_within(analysis.span));
        let share = ns.zip(analysis.span.length().filter(|&ns| ns > 0)).map(|(ns, all)| ns as f64 * 100.0 / all as f64);
        let requests = nodes.iter().find(|node| node.nid == nid).map_or(0, |node| node.requests);
        vec![
            Cell::Int(nid.into()),
            text(name),
            known(MmVmscanWakeupKswapd, requests),
            known(MmVmscanKswapdWake, k.wakes),
            known(MmVmscanKswapdWake, k.rewakes),
            known(MmVmscanKswapdSleep, k.sleeps),
            ns.map_or(Cell::Na(Na::NotRecorded), seconds),
            Cell::float(share),
            ms(k.awake.quantile(0.5)),
            ms(k.awake.max()),
        ]
    });
    let columns = vec![
        column("node", "node", ""),
        column("comm", "thread", ""),
        column("requests", "requests", ""),
        column("wakes", "wakes", ""),
        column("rewakes", "order re-wakeups", ""),
        column("sleeps", "sleeps", ""),
        column("awake", "awake", "s"),
        column("awake_percent", "awake", "%"),
        column("phase_p50", "phase p50", "ms"),
        column("phase_max", "phase max", "ms"),
    ];
    let note = "Time awake includes phases that began before the trace or had not ended; p50 and max are over complete phases.";
    list("kswapd", "kswapd by node", note, columns, rows.collect())
}

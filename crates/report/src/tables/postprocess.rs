//! `process-direct`, `process-kswapd` and `postprocess-summary`: what the kernel's own post-processing script prints of a trace.
//!
//! Rules of that script (Documentation/trace/postprocess, releases to 6.18): processes are distinguished by name and
//! thread id; direct reclaimers are those with a direct_reclaim_begin, kswapds those with a kswapd_wake out of sleep,
//! and all events of a process count for its part. [`print()`] prints them in its layout, sorted. Its defects are
//! not reproduced: columns shifted since file and anon pages are counted apart, writes never counted from 6.1 on, names cut
//! at characters other than letters, digits and `-`, durations that begin before the trace, totals left empty.

use super::vmscan::{per_process, qualified};
use super::{column, list, metrics, row, text};
use crate::model::Better::{Lower, Neutral};
use crate::model::{Cell, Metric, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::reclaim::{Orders, Process, Writes};
use mmtwin_analysis::tasks::{Context, Task};
use mmtwin_event::Kind::{self, *};
use std::fmt::Write;

/// Processes that take part, by name and thread id.
fn processes(analysis: &Analysis) -> Vec<(String, &Task, &Process)> {
    let mut all: Vec<(String, &Task, &Process)> =
        analysis.reclaimers().map(|(task, process)| (format!("{}-{}", task.name(), task.pid), task, process)).collect();
    all.sort_by_cached_key(|(_, task, _)| (task.name(), task.pid));
    all
}

fn is_direct(process: &Process) -> bool {
    process.begun(Context::Direct) > 0
}

fn is_kswapd(process: &Process) -> bool {
    process.kswapd.as_ref().is_some_and(|kswapd| kswapd.wakes > 0)
}

/// The three tables.
pub fn tables(analysis: &Analysis) -> [Table; 3] {
    let known = |kind, value: u64| Cell::recorded(analysis.recorded.value(&[kind], value));
    let pages = |p: &Process| -> Vec<Cell> {
        let scanned = super::scans(analysis).map(|scans| super::scanned(scans, p).all);
        let (sync, not) = by_sync(&p.writes);
        vec![
            Cell::recorded(scanned),
            known(MmVmscanLruShrinkInactive, p.reclaimed.all),
            known(MmVmscanWriteFolio, sync),
            known(MmVmscanWriteFolio, not),
        ]
    };
    let (mut direct, mut kswapd) = (Vec::new(), Vec::new());
    for (_, task, p) in processes(analysis) {
        let name = [text(task.name()), Cell::Int(task.pid.into())];
        if is_direct(p) {
            let mut cells = name.to_vec();
            cells.extend([Cell::int(p.begun(Context::Direct)), known(MmVmscanWakeupKswapd, p.wakeups)]);
            cells.extend(pages(p));
            let stalled = analysis.recorded.value(&[MmVmscanDirectReclaimEnd], p.direct_us as f64 / 1e6);
            cells.extend([
                Cell::float(stalled),
                text(orders("", &p.direct_orders)),
                text(orders("", &p.wakeup_orders)),
            ]);
            direct.push(cells);
        }
        if let Some(k) = p.kswapd.as_deref().filter(|k| k.wakes > 0) {
            let mut cells = name.to_vec();
            cells.extend([Cell::int(k.wakes), Cell::int(k.rewakes)]);
            cells.extend(pages(p));
            cells.extend([text(orders("", &k.wake_orders)), text(orders("", &k.rewake_orders))]);
            kswapd.push(cells);
        }
    }
    let head = [column("comm", "process", ""), column("pid", "pid", "")];
    let middle = [
        column("scanned", "scanned", "pages"),
        column("reclaimed", "reclaimed", "pages"),
        column("written_sync", "written sync", "pages"),
        column("written_async", "written async", "pages"),
    ];
    let mut direct_columns = head.to_vec();
    direct_columns.extend([column("direct_reclaims", "direct reclaims", ""), column("wakeups", "woke kswapd", "")]);
    direct_columns.extend(middle.clone());
    direct_columns.extend([
        column("stalled", "stalled", "s"),
        column("direct_orders", "reclaims by order", ""),
        column("wakeup_orders", "wakes by order", ""),
    ]);
    let mut kswapd_columns = head.to_vec();
    kswapd_columns.extend([column("wakes", "wakes", ""), column("rewakes", "order re-wakeups", "")]);
    kswapd_columns.extend(middle);
    kswapd_columns
        .extend([column("wake_orders", "wakes by order", ""), column("rewake_orders", "re-wakeups by order", "")]);
    [
        list("process-direct", "Direct reclaim by process", "", direct_columns, direct),
        list("process-kswapd", "kswapd by process", "", kswapd_columns, kswapd),
        metrics(
            "postprocess-summary",
            "Reclaim summary",
            "Counted as in the kernel's trace-vmscan-postprocess.pl.",
            summary(analysis),
        ),
    ]
}

fn by_sync(writes: &Writes) -> (u64, u64) {
    (writes.of(true, true) + writes.of(false, true), writes.of(true, false) + writes.of(false, false))
}

/// `PREFIX-ORDER=COUNT ` per order, orders below 20 as the script has them, all others under `odd`.
fn orders(prefix: &str, orders: &Orders) -> String {
    let mut out = String::new();
    let dash = if prefix.is_empty() { "" } else { "-" };
    for (order, count) in orders.iter() {
        let _ = write!(out, "{prefix}{dash}{order}={count} ");
    }
    if orders.odd > 0 {
        let _ = write!(out, "{prefix}{dash}odd={} ", orders.odd);
    }
    if prefix.is_empty() {
        out.truncate(out.trim_end().len());
    }
    out
}

/// The rows of the summary.
fn summary(analysis: &Analysis) -> Vec<Metric> {
    let all = per_process(analysis);
    let (direct, kswapd) = qualified(all.iter().map(|(_, sums)| sums));
    let scans = super::scans(analysis);
    let known = |kinds: &[Kind], value: u64| Cell::recorded(analysis.recorded.value(kinds, value));
    let seconds = |kinds: &[Kind], us: u64| Cell::float(analysis.recorded.value(kinds, us as f64 / 1e6));
    let mut rows = Vec::new();
    for (who, key, sums, kind) in [
        ("Direct reclaim", "direct", &direct, MmVmscanDirectReclaimBegin),
        ("Kswapd", "kswapd", &kswapd, MmVmscanKswapdWake),
    ] {
        match kind {
            MmVmscanKswapdWake => {
                rows.push(row("kswapd_wakeups", "Kswapd wakeups", "", Neutral, None, known(&[kind], sums.wakes)));
            }
            _ => rows.push(row("direct_reclaims", "Direct reclaims", "", Lower, None, known(&[kind], sums.begins))),
        }
        let scanned = |value| Cell::recorded(scans.and_then(|_| analysis.recorded.value(&[kind], value)));
        let reclaimed = |value| known(&[kind, MmVmscanLruShrinkInactive], value);
        let parts = [
            ("pages_scanned", "pages scanned", scanned(sums.scanned.all)),
            ("file_scanned", "file pages scanned", scanned(sums.scanned.file)),
            ("anon_scanned", "anon pages scanned", scanned(sums.scanned.anon)),
            ("pages_reclaimed", "pages reclaimed", reclaimed(sums.reclaimed.all)),
            ("file_reclaimed", "file pages reclaimed", reclaimed(sums.reclaimed.file)),
            ("anon_reclaimed", "anon pages reclaimed", reclaimed(sums.reclaimed.anon)),
        ];
        for (part, label, value) in parts {
            rows.push(row(&format!("{key}_{part}"), &format!("{who} {label}"), "pages", Lower, None, value));
        }
        for (part, label, file, sync) in [
            ("file_sync", "file sync", true, true),
            ("anon_sync", "anon sync", false, true),
            ("file_async", "file async", true, false),
            ("anon_async", "anon async", false, false),
        ] {
            let value = known(&[kind, MmVmscanWriteFolio], sums.writes.of(file, sync));
            let who = if kind == MmVmscanKswapdWake { "Kswapd reclaim" } else { who };
            rows.push(row(
                &format!("{key}_write_{part}"),
                &format!("{who} write {label} I/O"),
                "pages",
                Lower,
                None,
                value,
            ));
        }
        match kind {
            MmVmscanKswapdWake => {
                let awake = seconds(&[kind, MmVmscanKswapdSleep], sums.awake_us);
                rows.push(row("awake_seconds", "Time kswapd awake", "s", Lower, Some(2), awake));
            }
            _ => {
                let requests = known(&[kind, MmVmscanWakeupKswapd], sums.requests);
                rows.push(row("wake_kswapd_requests", "Wake kswapd requests", "", Lower, None, requests));
                let stalled = seconds(&[kind, MmVmscanDirectReclaimEnd], sums.direct_us);
                rows.push(row("stalled_seconds", "Time stalled direct reclaim", "s", Lower, Some(2), stalled));
            }
        }
    }
    rows
}

/// The tables in the layout of the script.
pub fn print(analysis: &Analysis) -> String {
    let all = processes(analysis);
    let width = all.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0) + 2;
    let scanned = |p: &Process| super::scans(analysis).map_or(0, |scans| super::scanned(scans, p).all);
    let mut out = String::from("\nReclaim latencies expressed as order-latency_in_ms\n");
    for (name, task, _) in &all {
        let mut durations = analysis.reclaim.listed(task).peekable();
        if durations.peek().is_some() {
            let _ = write!(out, "{name:<width$} ");
            for one in durations {
                let _ = write!(out, "{}-{} ", one.order, one.us as f64 / 1000.0);
            }
            out.push('\n');
        }
    }
    if analysis.reclaim.unlisted > 0 {
        let _ = writeln!(out, "{} more durations are not listed", analysis.reclaim.unlisted);
    }
    for titles in [
        ["Process", "Direct", "Wokeup", "Pages", "Pages", "Pages", "Pages", "Time"],
        ["details", "Rclms", "Kswapd", "Scanned", "Rclmed", "Sync-IO", "ASync-IO", "Stalled"],
    ] {
        let [name, reclaims, woke, pages, reclaimed, sync, not, time] = titles;
        let gap = if name == "Process" { "\n" } else { "" };
        let _ = writeln!(
            out,
            "{gap}{name:<width$} {reclaims:>8} {woke:>10}   {pages:>8} {reclaimed:>8}  {sync:>8} {not:>8} {time:>8}"
        );
    }
    for (name, _, p) in all.iter().filter(|(_, _, p)| is_direct(p)) {
        let (sync, not) = by_sync(&p.writes);
        let _ = write!(
            out,
            "{name:<width$} {:>8} {:>10}   {:>8} {:>8}  {sync:>8} {not:>8} {:>8.3}",
            p.begun(Context::Direct),
            p.wakeups,
            scanned(p),
            p.reclaimed.all,
            p.direct_us as f64 / 1e6
        );
        let _ = write!(out, "      {}", orders("direct", &p.direct_orders));
        if p.wakeups > 0 {
            let _ = write!(out, "      {}", orders("wakeup", &p.wakeup_orders));
        }
        out.push('\n');
    }
    for titles in [
        ["Kswapd", "Kswapd", "Order", "Pages", "Pages", "Pages", "Pages"],
        ["Instance", "Wakeups", "Re-wakeup", "Scanned", "Rclmed", "Sync-IO", "ASync-IO"],
    ] {
        let [name, wakes, rewakes, pages, reclaimed, sync, not] = titles;
        let gap = if name == "Kswapd" { "\n" } else { "" };
        let _ = writeln!(
            out,
            "{gap}{name:<width$} {wakes:>8} {rewakes:>10}   {pages:>8}   {reclaimed:>8} {sync:>8} {not:>8}"
        );
    }
    for (name, _, p) in all.iter().filter(|(_, _, p)| is_kswapd(p)) {
        let Some(k) = p.kswapd.as_deref() else { continue };
        let (sync, not) = by_sync(&p.writes);
        let _ = write!(
            out,
            "{name:<width$} {:>8} {:>10}   {:>8} {:>8}  {sync:>8} {not:>8}      {}",
            k.wakes,
            k.rewakes,
            scanned(p),
            p.reclaimed.all,
            orders("wake", &k.wake_orders)
        );
        if k.rewakes > 0 {
            let _ = write!(out, "      {}", orders("rewake", &k.rewake_orders));
        }
        out.push('\n');
    }
    out.push_str("\nSummary\n");
    for row in summary(analysis) {
        if row.key == "kswapd_wakeups" {
            out.push('\n');
        }
        let _ = writeln!(out, "{}:{}{}", row.label, tabs(&row.label), figure(&row));
    }
    out
}

/// What stands between a label and its number: up to column 40, with blanks before the tabs in two places.
fn tabs(label: &str) -> String {
    let (blanks, tabs) = match label {
        "Direct reclaims" => ("     ", 3),
        "Time stalled direct reclaim" => (" ", 2),
        _ => ("", 5 - (label.len() + 1) / 8),
    };
    blanks.to_string() + &"\t".repeat(tabs)
}

fn figure(row: &Metric) -> String {
    match &row.value {
        Cell::Float(seconds) => format!("{seconds:.2} seconds"),
        Cell::Int(count) => count.to_string(),
        _ => "n/a".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_analysis::testing::EventBuilder;
    use mmtwin_event::Sink;

    fn made(kind: Kind, pid: i32, comm: &'static [u8], us: u64) -> EventBuilder {
        EventBuilder::new(kind).pid(pid).comm(comm).at(us * 1000)
    }

    #[test]
    fn prints_in_the_layout_of_the_script() {
        let mut analysis = Analysis::default();
        let shrink = |pid, comm, scanned, reclaimed| {
            let made = made(MmVmscanLruShrinkInactive, pid, comm, 20).set("flags", 10);
            made.set("nr_scanned", scanned).set("nr_reclaimed", reclaimed)
        };
        let isolate =
            |pid, comm, scanned| made(MmVmscanLruIsolate, pid, comm, 20).set("lru", 2).set("nr_scanned", scanned);
        for made in [
            made(MmVmscanDirectReclaimBegin, 7, b"kworker/0:1", 10).set("order", 3),
            made(MmVmscanWakeupKswapd, 7, b"kworker/0:1", 11).set("order", 3),
            isolate(7, b"kworker/0:1", 32),
            shrink(7, b"kworker/0:1", 32, 30),
            made(MmVmscanWriteFolio, 7, b"kworker/0:1", 25).set("flags", 9),
            made(MmVmscanDirectReclaimEnd, 7, b"kworker/0:1", 2510),
            made(MmVmscanKswapdWake, 3, b"kswapd0", 30).set("order", 0),
            made(MmVmscanKswapdWake, 3, b"kswapd0", 40).set("order", 3),
            isolate(3, b"kswapd0", 64),
            shrink(3, b"kswapd0", 64, 50),
            made(MmVmscanKswapdSleep, 3, b"kswapd0", 1_000_030),
        ] {
            analysis.event(&made.event());
        }
        let expected = "
Reclaim latencies expressed as order-latency_in_ms
kswapd0-3       3-1000 
kworker/0:1-7   3-2.5 

Process           Direct     Wokeup      Pages    Pages     Pages    Pages     Time
details            Rclms     Kswapd    Scanned   Rclmed   Sync-IO ASync-IO  Stalled
kworker/0:1-7          1          1         32       30         0        1    0.003      direct-3=1       wakeup-3=1 

Kswapd            Kswapd      Order      Pages      Pages    Pages    Pages
Instance         Wakeups  Re-wakeup    Scanned     Rclmed  Sync-IO ASync-IO
kswapd0-3              1          1         64       50         0        0      wake-0=1       rewake-3=1 

Summary
Direct reclaims:     \t\t\t1
Direct reclaim pages scanned:\t\t32
Direct reclaim file pages scanned:\t32
Direct reclaim anon pages scanned:\t0
Direct reclaim pages reclaimed:\t\t30
Direct reclaim file pages reclaimed:\t30
Direct reclaim anon pages reclaimed:\t0
Direct reclaim write file sync I/O:\t0
Direct reclaim write anon sync I/O:\t0
Direct reclaim write file async I/O:\t0
Direct reclaim write anon async I/O:\t1
Wake kswapd requests:\t\t\t1
Time stalled direct reclaim: \t\t0.00 seconds

Kswapd wakeups:\t\t\t\t1
Kswapd pages scanned:\t\t\t64
Kswapd file pages scanned:\t\t64
Kswapd anon pages scanned:\t\t0
Kswapd pages reclaimed:\t\t\t50
Kswapd file pages reclaimed:\t\t50
Kswapd anon pages reclaimed:\t\t0
Kswapd reclaim write file sync I/O:\t0
Kswapd reclaim write anon sync I/O:\t0
Kswapd reclaim write file async I/O:\t0
Kswapd reclaim write anon async I/O:\t0
Time kswapd awake:\t\t\t1.00 seconds
";
        assert_eq!(print(&analysis), expected);
    }

    #[test]
    fn nothing_recorded_is_not_zero() {
        let text = print(&Analysis::default());
        assert!(text.contains("Direct reclaims:     \t\t\tn/a\n"), "{text}");
        assert!(text.contains("Time kswapd awake:\t\t\tn/a\n"), "{text}");
    }
}

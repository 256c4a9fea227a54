//! The page allocator by order, its fallbacks, huge pages, and processes killed for memory.

use super::{column, list, metrics, row, text};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::alloc::ORDERS;
use mmtwin_event::Kind::{self, *};
use mmtwin_event::names::KHUGEPAGED;

/// `alloc`, `alloc-fallback`, `thp`, `oom` and `oom-victims`.
pub fn tables(a: &Analysis) -> Vec<Table> {
    vec![by_order(a), fallbacks(a), thp(a), oom(a), victims(a)]
}

fn by_order(a: &Analysis) -> Table {
    let p = &a.alloc;
    let known = |kind: Kind, value: u64| Cell::recorded(a.recorded.value(&[kind], value));
    let all = [&p.allocated, &p.freed, &p.zone_locked, &p.drained];
    let used = (0..ORDERS).filter(|&order| all.iter().any(|counts| counts[order] > 0));
    let rows = used.map(|order| {
        vec![
            if order + 1 < ORDERS { Cell::Int(order as i128) } else { text(format!("{order} or more")) },
            known(MmPageAlloc, p.allocated[order]),
            known(MmPageAlloc, p.failed[order]),
            known(MmPageFree, p.freed[order]),
            known(MmPageAllocZoneLocked, p.zone_locked[order]),
            known(MmPagePcpuDrain, p.drained[order]),
        ]
    });
    let columns = vec![
        column("order", "order", ""),
        column("allocated", "allocated", ""),
        column("failed", "failed", ""),
        column("freed", "freed", ""),
        column("zone_locked", "zone-lock refill", ""),
        column("drained", "pcp drained", ""),
    ];
    let note = match a.recorded.has(MmPageFreeBatched) {
        true => {
            format!("In addition, {} pages of order 0 were freed in batches (mm_page_free_batched).", p.freed_batched)
        }
        false => String::new(),
    };
    list("alloc", "Page allocator events by order", &note, columns, rows.collect())
}

fn fallbacks(a: &Analysis) -> Table {
    let rows = a.alloc.fallbacks.iter();
    let rows =
        rows.map(|((wanted, taken), n)| vec![Cell::Int((*wanted).into()), Cell::Int((*taken).into()), Cell::int(*n)]);
    let columns = vec![
        column("order", "order", ""),
        column("fallback_order", "fallback order", ""),
        column("count", "count", ""),
    ];
    let note = a
        .alloc
        .stolen
        .map_or_else(String::new, |stolen| format!("{stolen} of them changed the migratetype of the pageblock."));
    list("alloc-fallback", "Migratetype fallbacks (mm_page_alloc_extfrag)", &note, columns, rows.collect())
}

fn thp(a: &Analysis) -> Table {
    let rows = a.thp.results.iter().map(|((kind, result), n)| {
        let name = kind.schema().map_or("", |schema| schema.name);
        vec![text(name), text(KHUGEPAGED.word((*result).into())), Cell::int(*n)]
    });
    let columns = vec![column("event", "event", ""), column("result", "result", ""), column("count", "count", "")];
    let note = match a.thp.dropped {
        0 => String::new(),
        n => format!("{n} events with further results are not listed."),
    };
    list("thp", "khugepaged results", &note, columns, rows.collect())
}

fn oom(a: &Analysis) -> Table {
    let o = &a.oom;
    let known = |kind: Kind, value: u64| Cell::recorded(a.recorded.value(&[kind], value));
    let loops = o.no_progress.map_or(Cell::Na(Na::NotRecorded), |n| Cell::Int(n.into()));
    let rows = vec![
        row("oom_kill", "Processes killed (mark_victim)", "", Lower, None, known(MarkVictim, o.killed)),
        row("reaped", "Victims reaped (finish_task_reaping)", "", Neutral, None, known(FinishTaskReaping, o.reaped)),
        row(
            "reap_skipped",
            "Victims not reaped (skip_task_reaping)",
            "",
            Neutral,
            None,
            known(SkipTaskReaping, o.skipped),
        ),
        row(
            "retry_checks",
            "Zones checked (reclaim_retry_zone)",
            "",
            Lower,
            None,
            known(ReclaimRetryZone, o.retry_checks),
        ),
        row(
            "retry_passed",
            "Zones that allowed a retry (wmark_check)",
            "",
            Higher,
            None,
            known(ReclaimRetryZone, o.retry_passed),
        ),
        row("no_progress_loops_max", "Max no_progress_loops", "", Lower, None, loops),
    ];
    metrics("oom", "Out of memory", "", rows)
}

fn victims(a: &Analysis) -> Table {
    let start = a.span.first.unwrap_or(0);
    let rows = a.oom.victims.iter().map(|v| {
        let name = v.comm.clone().or_else(|| a.tasks.get(v.pid).map(|task| task.name()));
        vec![
            Cell::Float(v.at.saturating_sub(start) as f64 / 1e9),
            text(name.unwrap_or_else(|| "<...>".into())),
            Cell::Int(v.pid.into()),
            v.anon_rss.map_or(Cell::Na(Na::NotInKernel), Cell::int),
        ]
    });
    let columns = vec![
        column("time", "time", "s"),
        column("comm", "process", ""),
        column("pid", "pid", ""),
        column("anon_rss", "anon-rss", "KiB"),
    ];
    let note = match a.oom.killed as usize - a.oom.victims.len() {
        0 => String::new(),
        more => format!("The first victims; {more} more were killed."),
    };
    list("oom-victims", "OOM victims", &note, columns, rows.collect())
}

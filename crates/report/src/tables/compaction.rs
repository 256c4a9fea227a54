//! Compaction: totals, results by node, zone and order, and kcompactd.

use super::{column, list, metrics, ms, row, seconds, text};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::compaction::{CompactionCheck, Scanned};
use mmtwin_event::Kind::{self, *};
use mmtwin_event::names::{COMPACT_RESULT, ZONE};

/// The tables of compaction.
pub fn tables(a: &Analysis) -> Vec<Table> {
    vec![totals(a), runs(a), results(a), deferrals(a), daemons(a)]
}

fn totals(a: &Analysis) -> Table {
    let c = &a.compaction;
    let known = |kind: Kind, value: u64| Cell::recorded(a.recorded.value(&[kind], value));
    let scanner = |kind: Kind, key: &str, label: &str, s: &Scanned| {
        [
            row(
                &format!("{key}_scanned"),
                &format!("Pages scanned by the {label}"),
                "pages",
                Lower,
                None,
                known(kind, s.scanned),
            ),
            row(
                &format!("{key}_isolated"),
                &format!("Pages isolated by the {label}"),
                "pages",
                Neutral,
                None,
                known(kind, s.taken),
            ),
        ]
    };
    let mut rows = vec![
        row(
            "direct",
            "Direct compactions",
            "",
            Lower,
            None,
            known(MmCompactionTryToCompactPages, c.direct.values().sum()),
        ),
        row("runs", "Zones compacted", "", Neutral, None, known(MmCompactionEnd, c.ended_runs())),
    ];
    rows.extend(scanner(MmCompactionIsolateMigratepages, "migrate", "migration scanner", &c.migrate_scanner));
    rows.extend(scanner(MmCompactionIsolateFreepages, "free", "free scanner", &c.free_scanner));
    rows.extend(scanner(MmCompactionFastIsolateFreepages, "fast_free", "fast free scanner", &c.fast_free_scanner));
    rows.push(row("migrated", "Pages migrated", "pages", Neutral, None, known(MmCompactionMigratepages, c.migrated)));
    rows.push(row("failed", "Page migrations failed", "pages", Lower, None, known(MmCompactionMigratepages, c.failed)));
    let tried = c.migrated as f64 + c.failed as f64;
    let success = Cell::float((tried > 0.0).then(|| c.migrated as f64 * 100.0 / tried));
    rows.push(row("success_percent", "Page migration success rate", "%", Higher, Some(2), success));
    metrics("compaction", "Compaction", "", rows)
}

/// `compaction-runs`: durations by mode and result.
fn runs(a: &Analysis) -> Table {
    let rows = a.compaction.runs.iter().map(|((sync, result), d)| {
        vec![
            text(if *sync { "sync" } else { "async" }),
            text(COMPACT_RESULT.word((*result).into())),
            Cell::int(d.count()),
            seconds(d.sum),
            ms(d.quantile(0.5)),
            ms(d.quantile(0.99)),
            ms(d.max()),
        ]
    });
    let columns = vec![
        column("mode", "mode", ""),
        column("result", "result", ""),
        column("runs", "runs", ""),
        column("time", "time", "s"),
        column("p50", "p50", "ms"),
        column("p99", "p99", "ms"),
        column("max", "max", "ms"),
    ];
    list("compaction-runs", "Compaction by mode and result", "", columns, rows.collect())
}

/// `compaction-results`: results of compaction_suitable and compact_finished per node, zone and order.
fn results(a: &Analysis) -> Table {
    let rows = a.compaction.answers.iter().map(|((question, spot, result), n)| {
        vec![
            text(match question {
                CompactionCheck::Finished => "compact_finished",
                CompactionCheck::Suitable => "compaction_suitable",
            }),
            Cell::Int(spot.node.into()),
            text(ZONE.word(spot.zone.into())),
            Cell::Int(spot.order.into()),
            text(COMPACT_RESULT.word((*result).into())),
            Cell::int(*n),
        ]
    });
    let columns = vec![
        column("check", "check", ""),
        column("node", "node", ""),
        column("zone", "zone", ""),
        column("order", "order", ""),
        column("result", "result", ""),
        column("count", "count", ""),
    ];
    let mut note = "Results of mm_compaction_suitable and mm_compaction_finished.".to_string();
    if a.compaction.dropped > 0 {
        note += &format!(" {} events of further nodes, zones and orders are not counted.", a.compaction.dropped);
    }
    list("compaction-results", "Compaction checks by node, zone and order", &note, columns, rows.collect())
}

/// `compaction-deferred`: compactions deferred after earlier failures.
fn deferrals(a: &Analysis) -> Table {
    let known = |kind: Kind, value: u64| Cell::recorded(a.recorded.value(&[kind], value));
    let rows = a.compaction.deferrals.iter().map(|(spot, d)| {
        vec![
            Cell::Int(spot.node.into()),
            text(ZONE.word(spot.zone.into())),
            Cell::Int(spot.order.into()),
            known(MmCompactionDeferred, d.deferred),
            known(MmCompactionDeferCompaction, d.extended),
            known(MmCompactionDeferReset, d.reset),
        ]
    });
    let columns = vec![
        column("node", "node", ""),
        column("zone", "zone", ""),
        column("order", "order", ""),
        column("deferred", "deferred", ""),
        column("defer_compaction", "defer extended", ""),
        column("defer_reset", "defer reset", ""),
    ];
    list("compaction-deferred", "Compaction deferred", "", columns, rows.collect())
}

/// `kcompactd`: by node.
fn daemons(a: &Analysis) -> Table {
    let known = |kind: Kind, value: u64| Cell::recorded(a.recorded.value(&[kind], value));
    let both = a.recorded.has(MmCompactionKcompactdWake) && a.recorded.has(MmCompactionKcompactdSleep);
    let rows = a.compaction.kcompactd.iter().map(|(nid, k)| {
        vec![
            Cell::Int((*nid).into()),
            known(MmCompactionWakeupKcompactd, k.requests),
            known(MmCompactionKcompactdWake, k.wakes),
            if both { seconds(k.awake) } else { Cell::Na(Na::NotRecorded) },
        ]
    });
    let columns = vec![
        column("node", "node", ""),
        column("requests", "requests", ""),
        column("wakes", "wakes", ""),
        column("awake", "awake", "s"),
    ];
    list(
        "kcompactd",
        "kcompactd by node",
        "Time awake: from wake to sleep, where both were recorded.",
        columns,
        rows.collect(),
    )
}

//! NUMA balancing: tasks from node to node, pages by reason, hinting faults and their locality over time.

use super::{column, counters, list, metrics, numa_health, numa_placement, row, text};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Body, Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::numa::{NO_NODE, NodeMatrix, Numa};
use mmtwin_event::Kind;
use mmtwin_event::names::NUMA_SKIP;
use std::collections::BTreeMap;

/// Pages of a huge page.
const HUGE: u64 = 512;
/// Tasks printed by `numa-tasks`.
const TASKS: usize = 50;

/// The tables of NUMA balancing.
pub fn tables(analysis: &Analysis) -> Vec<Table> {
    let numa = &analysis.numa;
    let swaps = "Pairs of tasks: one moved each way.";
    let sticks = "sched_stick_numa; the target is '-' if no CPU was found.";
    vec![
        activity(analysis),
        numa_health::table(analysis),
        faults_over_time(analysis),
        matrix(analysis, "numa-moves", "NUMA task moves (sched_move_numa)", "", Kind::SchedMoveNuma, &numa.moves),
        matrix(analysis, "numa-swaps", "NUMA task swaps (sched_swap_numa)", swaps, Kind::SchedSwapNuma, &numa.swaps),
        matrix(
            analysis,
            "numa-sticks",
            "NUMA task moves rejected (sched_stick_numa)",
            sticks,
            Kind::SchedStickNuma,
            &numa.sticks,
        ),
        migrations(analysis),
        targets(analysis),
        numa_placement::table(analysis),
        groups(analysis),
        tasks(analysis),
        skips(analysis),
    ]
}

fn matrix(a: &Analysis, name: &str, title: &str, note: &str, kind: Kind, counts: &NodeMatrix) -> Table {
    let label = |nid: &i32| if *nid == NO_NODE { "-".to_string() } else { format!("N{nid}") };
    let known = if a.recorded.has(kind) { a.source.nodes } else { 0 };
    let mut nodes: Vec<i32> = (0..known as i32).chain(counts.keys().flat_map(|(from, to)| [*from, *to])).collect();
    nodes.sort_by_key(|nid| (*nid == NO_NODE, *nid));
    nodes.dedup();
    let from: Vec<i32> = nodes.iter().copied().filter(|&n| n != NO_NODE || counts.keys().any(|k| k.0 == n)).collect();
    let cell = |from: i32, to: i32| Cell::int(counts.get(&(from, to)).copied().unwrap_or(0));
    let values = from.iter().map(|&from| nodes.iter().map(|&to| cell(from, to)).collect()).collect();
    let (rows, columns) = (from.iter().map(label).collect(), nodes.iter().map(label).collect());
    let body = Body::Matrix { rows, columns, axes: ("from node".into(), "to node".into()), unit: "tasks", values };
    let missing = kind.schema().filter(|_| !a.recorded.has(kind)).map(|s| format!("{} was not recorded.", s.name));
    Table { name: name.into(), title: title.into(), note: missing.unwrap_or_else(|| note.into()), body }
}

/// `numa`: what the scanner, the hinting faults and the scheduler did.
fn activity(a: &Analysis) -> Table {
    let count = |name: &str| counters(a, &[name]);
    let migrated = |pages: fn(&mmtwin_analysis::numa::Migrated) -> u64| {
        let pages = a.numa.reason(mmtwin_analysis::numa::NUMA_MISPLACED).as_ref().map_or(0, pages);
        Cell::recorded(a.recorded.value(&[Kind::MmMigratePages], pages))
    };
    let local = match (a.counters.vmstat("numa_hint_faults"), a.counters.vmstat("numa_hint_faults_local")) {
        (Some(0), _) => Cell::Na(Na::NotRecorded),
        (Some(all), Some(local)) => Cell::Float(local as f64 * 100.0 / all as f64),
        _ => count("numa_hint_faults_local"),
    };
    let sum = |nodes: &NodeMatrix, kind| Cell::recorded(a.recorded.value(&[kind], nodes.values().sum()));
    let number = |name: &str| a.counters.vmstat(name);
    let seconds = a.counters.seconds("vmstat", "");
    let rate = number("numa_pte_updates").zip(seconds).map(|(pages, seconds)| pages as f64 / seconds);
    // A huge page counts as all its pages when it is marked, and faults once.
    let huge = number("numa_huge_pte_updates").unwrap_or(0).saturating_mul(HUGE - 1);
    let marks = number("numa_pte_updates").and_then(|pages| pages.checked_sub(huge)).filter(|marks| *marks > 0);
    let per_mark = number("numa_hint_faults").zip(marks).map(|(faults, marks)| faults as f64 / marks as f64);
    // Others move pages too: without balancing's own counters these say nothing of it.
    let any_reason = |name: &str| match number("numa_pages_migrated") {
        Some(_) => count(name),
        None => Cell::Na(Na::NotRecorded),
    };
    let rows = vec![
        row("numa_pte_updates", "PTE updates", "pages", Neutral, None, count("numa_pte_updates")),
        row("numa_huge_pte_updates", "Huge PMD updates", "", Neutral, None, count("numa_huge_pte_updates")),
        row("numa_scan_rate", "PTE updates per second", "pages/s", Neutral, Some(1), Cell::float(rate)),
        row("numa_hint_faults", "Hinting faults", "", Lower, None, count("numa_hint_faults")),
        row(
            "numa_hint_faults_per_pte_update",
            "Hinting faults per PTE update",
            "",
            Neutral,
            Some(3),
            Cell::float(per_mark),
        ),
        row("numa_hint_faults_local", "Local hinting faults", "", Neutral, None, count("numa_hint_faults_local")),
        row("numa_hint_faults_local_percent", "Local share of hinting faults", "%", Higher, Some(2), local),
        row("numa_pages_migrated", "Pages migrated", "pages", Lower, None, count("numa_pages_migrated")),
        row(
            "numa_misplaced_succeeded",
            "Pages migrated (mm_migrate_pages)",
            "pages",
            Lower,
            None,
            migrated(|m| m.succeeded),
        ),
        row(
            "numa_misplaced_failed",
            "Page migrations failed (mm_migrate_pages)",
            "pages",
            Lower,
            None,
            migrated(|m| m.failed),
        ),
        row(
            "pgmigrate_success",
            "Pages migrated, all reasons",
            "pages",
            Neutral,
            None,
            any_reason("pgmigrate_success"),
        ),
        row(
            "pgmigrate_fail",
            "Page migrations failed, all reasons",
            "pages",
            Lower,
            None,
            any_reason("pgmigrate_fail"),
        ),
        row("sched_move_numa", "Tasks moved", "", Neutral, None, sum(&a.numa.moves, Kind::SchedMoveNuma)),
        row("sched_swap_numa", "Task pairs swapped", "", Neutral, None, sum(&a.numa.swaps, Kind::SchedSwapNuma)),
        row("sched_stick_numa", "Failed task migrations", "", Lower, None, sum(&a.numa.sticks, Kind::SchedStickNuma)),
    ];
    metrics("numa", "NUMA balancing", "", rows)
}

/// `numa-locality`: the same over time, one row per counter sample.
fn faults_over_time(a: &Analysis) -> Table {
    let series = |name: &str| a.counters.series("vmstat", "", name);
    let (faults, local) = (series("numa_hint_faults"), series("numa_hint_faults_local"));
    let (ptes, pages) = (series("numa_pte_updates"), series("numa_pages_migrated"));
    let start = faults.first().map_or(0, |(at, _)| *at);
    let timed = a.counters.seconds("vmstat", "").is_some();
    let rows = (1..faults.len()).map(|i| {
        let grown = |series: &[(u64, Option<u64>)]| series.get(i)?.1?.checked_sub(series.get(i - 1)?.1?);
        let percent = match (grown(&faults), grown(&local)) {
            (Some(all), Some(local)) if all > 0 => Some(local as f64 * 100.0 / all as f64),
            _ => None,
        };
        vec![
            Cell::float(timed.then(|| faults[i].0.saturating_sub(start) as f64 / 1e9)),
            Cell::recorded(grown(&ptes)),
            Cell::recorded(grown(&faults)),
            Cell::recorded(grown(&local)),
            Cell::float(percent),
            Cell::recorded(grown(&pages)),
        ]
    });
    let columns = vec![
        column("time", "time", "s"),
        column("numa_pte_updates", "PTE updates", "pages"),
        column("numa_hint_faults", "hint faults", ""),
        column("numa_hint_faults_local", "local", ""),
        column("local_percent", "local", "%"),
        column("numa_pages_migrated", "migrated", "pages"),
    ];
    let body = Body::Series { columns, rows: rows.collect() };
    let note = "Increase since the previous row; without faults the local share is n/a.".into();
    Table { name: "numa-locality".into(), title: "NUMA hinting faults over time".into(), note, body }
}

/// `migrate`: page migrations by reason and mode.
fn migrations(a: &Analysis) -> Table {
    let rows = a.numa.migrations.iter().map(|(kind, m)| {
        let (reason, mode) = Numa::words(*kind);
        let thp = |pages: Option<u64>| pages.map_or(Cell::Na(Na::NotInKernel), Cell::int);
        vec![
            text(reason),
            text(mode),
            Cell::int(m.calls),
            Cell::int(m.succeeded),
            Cell::int(m.failed),
            Cell::float(m.failed_percent()),
            thp(m.thp_succeeded),
            thp(m.thp_failed),
            thp(m.thp_split),
        ]
    });
    let columns = vec![
        column("reason", "reason", ""),
        column("mode", "mode", ""),
        column("calls", "calls", ""),
        column("succeeded", "succeeded", "pages"),
        column("failed", "failed", "pages"),
        column("failed_percent", "failed", "%"),
        column("thp_succeeded", "THP succeeded", ""),
        column("thp_failed", "THP failed", ""),
        column("thp_split", "THP split", ""),
    ];
    list("migrate", "Page migrations by reason and mode", "", columns, rows.collect())
}

/// `numa-targets`: target nodes of pages that hinting faults migrated. The target is the node of the faulting CPU, unless
/// a memory policy names another.
fn targets(a: &Analysis) -> Table {
    let mut pages = BTreeMap::new();
    for (cpu, n) in &a.numa.migrated_by_cpu {
        if let Some(node) = a.source.cpu_nodes.get(*cpu as usize) {
            *pages.entry(*node).or_insert(0u64) += n;
        }
    }
    let rows = pages.into_iter().map(|(node, pages)| vec![Cell::Int(node.into()), Cell::int(pages)]).collect();
    let columns = vec![column("nid", "to node", ""), column("pages", "migrated", "pages")];
    list("numa-targets", "Pages migrated by NUMA balancing, by target node", "", columns, rows)
}

/// `numa-groups`: the active nodes of NUMA groups, over time.
fn groups(a: &Analysis) -> Table {
    let start = a.span.first.unwrap_or(0);
    let rows = a.numa.groups.changes.iter().map(|change| {
        vec![
            Cell::Float(change.at.saturating_sub(start) as f64 / 1e9),
            Cell::Int(change.gid.into()),
            Cell::Int(change.nid.into()),
            text(if change.set { "active" } else { "inactive" }),
            Cell::Int(change.active.into()),
            Cell::Int(change.faults.into()),
            Cell::Int(change.max_faults.into()),
        ]
    });
    let columns = vec![
        column("time", "time", "s"),
        column("gid", "group", ""),
        column("nid", "node", ""),
        column("change", "change", ""),
        column("active_nodes", "active nodes", ""),
        column("faults", "CPU faults", "pages"),
        column("max_faults", "most on a node", "pages"),
    ];
    let note = match a.numa.groups.dropped {
        0 => "From update_numa_active_nodes_mask; it does not report the node of a group's first fault.".into(),
        more => format!("{more} more changes are not listed."),
    };
    let body = Body::Series { columns, rows: rows.collect() };
    Table { name: "numa-groups".into(), title: "Active nodes of NUMA groups".into(), note, body }
}

/// `numa-tasks`: who was moved, and who migrated pages in its faults.
fn tasks(a: &Analysis) -> Table {
    let nodes = |pid| match a.numa.pages_of_task(pid, &a.source.cpu_nodes).len() as u64 {
        0 => Cell::Na(Na::NotRecorded),
        nodes => Cell::int(nodes),
    };
    let rows = a.numa.top_tasks().into_iter().take(TASKS).map(|t| {
        let known = |kind, value| Cell::recorded(a.recorded.value(&[kind], value));
        vec![
            text(a.tasks.get(t.pid).map_or("<...>".into(), |task| task.name())),
            Cell::Int(t.pid.into()),
            known(Kind::SchedMoveNuma, t.moves),
            known(Kind::SchedSwapNuma, t.swaps),
            known(Kind::SchedStickNuma, t.sticks),
            known(Kind::MmMigratePages, t.pages),
            nodes(t.pid),
        ]
    });
    let columns = vec![
        column("comm", "task", ""),
        column("pid", "pid", ""),
        column("moves", "moves", ""),
        column("swaps", "swaps", ""),
        column("sticks", "rejected", ""),
        column("pages", "migrated", "pages"),
        column("nodes", "to nodes", ""),
    ];
    let note =
        format!("Most moves first, at most {TASKS} tasks. Pages are those migrated in the task's own hinting faults.");
    list("numa-tasks", "NUMA balancing by task", &note, columns, rows.collect())
}

/// `numa-skips`: why the scanner skipped VMAs.
fn skips(a: &Analysis) -> Table {
    let rows = a.numa.skips.iter().map(|(reason, n)| vec![text(NUMA_SKIP.word((*reason).into())), Cell::int(*n)]);
    let columns = vec![column("reason", "reason", ""), column("vmas", "VMAs", "")];
    list("numa-skips", "VMAs skipped by the NUMA scanner (sched_skip_vma_numa)", "", columns, rows.collect())
}

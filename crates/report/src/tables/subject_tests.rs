//! Tables of everything but reclaim, on input made by hand.

use super::{cross_check, subject_tables};
use crate::model::{Body, Cell, Na, Table};
use mmtwin_analysis::Analysis;
use mmtwin_event::{Call, CounterRow, Event, Fields, Kind, Sink, Slots, Source};

fn event(a: &mut Analysis, kind: Kind, ts: u64, fields: &[(&str, i64)]) {
    let schema = kind.schema().unwrap();
    let mut slots = Slots::default();
    fields.iter().for_each(|(name, value)| slots.set(schema.slot(name.as_bytes()).unwrap(), *value as u64));
    let fields = Fields::Text(&slots);
    a.event(&Event {
        ts,
        cpu: 0,
        pid: 7,
        tgid: 0,
        flags: 0,
        preempt_count: 0,
        kind,
        id: 0,
        comm: b"wl0",
        name: schema.name,
        raw: b"",
        fields,
    });
}

fn counters(a: &mut Analysis, source: &str, key: &str, values: &[(&str, u64, u64)]) {
    let names: Vec<String> = values.iter().map(|(name, ..)| name.to_string()).collect();
    for (at, after) in [(0, false), (2_000_000_000, true)] {
        let values: Vec<_> = values.iter().map(|v| Some(if after { v.2 } else { v.1 })).collect();
        a.counters(&CounterRow { source, key, at, names: &names, values: &values });
    }
}

fn table(a: &Analysis, name: &str) -> Table {
    subject_tables(a).into_iter().find(|t| t.name == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn metric(a: &Analysis, name: &str, key: &str) -> Cell {
    let Body::Metric(rows) = table(a, name).body else { panic!("{name} is no metric table") };
    rows.into_iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no row {key}")).value
}

fn rows(a: &Analysis, name: &str) -> Vec<Vec<Cell>> {
    match table(a, name).body {
        Body::List { rows, columns } | Body::Series { rows, columns } => {
            assert!(rows.iter().all(|row| row.len() == columns.len()), "{name}");
            rows
        }
        _ => panic!("{name} is no list"),
    }
}

fn text(word: &str) -> Cell {
    Cell::Text(word.into())
}

#[test]
fn nothing_recorded_is_nowhere_a_zero() {
    for table in subject_tables(&Analysis::default()) {
        match table.body {
            Body::Metric(rows) => assert!(rows.iter().all(|r| r.value == Cell::Na(Na::NotRecorded)), "{}", table.name),
            Body::List { rows, .. } | Body::Series { rows, .. } => assert!(rows.is_empty(), "{}", table.name),
            Body::Matrix { values, .. } => assert!(values.is_empty() && table.note.contains("not recorded")),
            Body::Histogram { .. } => panic!("{} has no values", table.name),
        }
    }
    assert!(cross_check::subjects(&Analysis::default()).is_empty());
}

#[test]
fn matrix_has_all_nodes_of_the_machine_and_none_for_no_node() {
    let mut a = Analysis::default();
    a.source.nodes = 2;
    event(&mut a, Kind::SchedStickNuma, 1, &[("src_nid", 1), ("dst_nid", -1)]);
    event(&mut a, Kind::SchedStickNuma, 2, &[("src_nid", 3), ("dst_nid", 0)]);
    let Body::Matrix { rows, columns, values, .. } = table(&a, "numa-sticks").body else { panic!() };
    assert_eq!((rows.join(" "), columns.join(" ")), ("N0 N1 N3".into(), "N0 N1 N3 -".into()));
    assert_eq!(values[1], [0, 0, 0, 1].map(Cell::Int));
    assert_eq!(values[2], [1, 0, 0, 0].map(Cell::Int));
}

/// Pages of a region on three nodes at some seconds.
fn placed(a: &mut Analysis, key: &str, samples: &[(u64, [u64; 3])]) {
    let names = ["N0", "N1", "N2"].map(String::from);
    for (second, pages) in samples {
        let (values, at) = (pages.map(Some), second * 1_000_000_000);
        a.counters(&CounterRow { source: "numa_maps", key, at, names: &names, values: &values });
    }
}

#[test]
fn regions_settle_and_are_more_or_less_even() {
    let mut a = Analysis::default();
    placed(
        &mut a,
        "p/heap",
        &[(1, [100, 0, 0]), (2, [40, 40, 20]), (3, [12, 60, 28]), (4, [10, 60, 30]), (5, [10, 60, 30])],
    );
    placed(&mut a, "p/own", &[(1, [0, 0, 7]), (5, [0, 0, 7])]);
    placed(&mut a, "p/none", &[(1, [0, 0, 0]), (5, [0, 0, 0])]);
    let (heap, own) = match rows(&a, "numa-placement").as_slice() {
        [heap, own] => (heap.clone(), own.clone()),
        other => panic!("{other:?}"),
    };
    let expected = [Cell::Int(100), Cell::Int(1), Cell::Float(60.0), Cell::Int(2)];
    assert_eq!(heap[1..5], expected);
    assert_eq!((heap[5].number(), heap[6].number()), (Some(100.0 * 20.0 / 30.0), Some(2.0)));
    assert_eq!((own[2].clone(), own[6].clone()), (Cell::Int(2), Cell::Float(0.0)));
    assert!(own[5].na().is_some(), "there are no others");
    let balance = metric(&a, "numa-health", "remaining_balance").number().unwrap();
    assert!((balance - 200.0 / 3.0).abs() < 1e-9, "{balance}");
}

#[test]
fn active_nodes_of_groups_are_known_where_events_tell_them() {
    let mut a = Analysis::default();
    for key in ["groups", "active_nodes_percent", "active_nodes_max", "task_nodes", "migrated_last_quarter_percent"] {
        assert_eq!(metric(&a, "numa-health", key).na(), Some(Na::NotRecorded), "{key}");
    }
    a.source.nodes = 4;
    for (ts, gid, nid, set) in [(1, 7, 0, 1), (2, 7, 1, 1), (3, 9, 2, 1), (4, 7, 2, 1), (5, 7, 0, 0)] {
        event(&mut a, Kind::UpdateNumaActiveNodesMask, ts, &[("gid", gid), ("nid", nid), ("set", set), ("faults", 5)]);
    }
    let health = |key: &str| metric(&a, "numa-health", key);
    assert_eq!((health("groups"), health("active_nodes_percent")), (Cell::Int(2), Cell::Float(37.5)));
    assert_eq!((health("active_nodes_min"), health("active_nodes_max")), (Cell::Int(1), Cell::Int(2)));
    let changes = rows(&a, "numa-groups");
    assert_eq!(changes.len(), 5);
    assert_eq!(changes[4][1..5], [Cell::Int(7), Cell::Int(0), text("inactive"), Cell::Int(2)]);
}

#[test]
fn pages_go_to_the_node_of_the_cpu_that_faults() {
    let mut a = Analysis::default();
    a.source.cpu_nodes = vec![3];
    event(&mut a, Kind::MmMigratePages, 1, &[("reason", 5), ("nr_succeeded", 3)]);
    event(&mut a, Kind::MmMigratePages, 2, &[("reason", 0), ("nr_succeeded", 9)]);
    assert_eq!(rows(&a, "numa-targets"), [[Cell::Int(3), Cell::Int(3)]]);
    assert_eq!(metric(&a, "numa-health", "task_nodes"), Cell::Float(1.0));
    assert_eq!(metric(&a, "numa-health", "task_main_percent"), Cell::Float(100.0));
}

#[test]
fn late_migrations_and_faults_per_mark() {
    let mut a = Analysis::default();
    let names =
        ["numa_pages_migrated", "numa_pte_updates", "numa_huge_pte_updates", "numa_hint_faults"].map(String::from);
    for (second, migrated) in [(0, 0), (1, 60), (2, 70), (3, 80), (4, 100)] {
        let values = [migrated, migrated * 10, migrated / 100, migrated * 5].map(Some);
        a.counters(&CounterRow {
            source: "vmstat",
            key: "",
            at: second * 1_000_000_000,
            names: &names,
            values: &values,
        });
    }
    assert_eq!(metric(&a, "numa-health", "migrated_last_quarter_percent"), Cell::Float(20.0));
    assert_eq!(metric(&a, "numa", "numa_scan_rate"), Cell::Float(250.0));
    assert_eq!(metric(&a, "numa", "numa_hint_faults_per_pte_update"), Cell::Float(500.0 / (1000.0 - 511.0)));
}

#[test]
fn migrations_agree_with_their_counters() {
    let mut a = Analysis::default();
    for reason in [5, 5, 0] {
        event(&mut a, Kind::MmMigratePages, 1, &[("reason", reason), ("nr_succeeded", 3), ("nr_failed", 1)]);
    }
    counters(
        &mut a,
        "vmstat",
        "",
        &[("numa_pages_migrated", 10, 16), ("pgmigrate_success", 0, 9), ("pgmigrate_fail", 0, 4)],
    );
    let mut lines = cross_check::reclaim(&a);
    lines.extend(cross_check::subjects(&a));
    let lines: Vec<_> = lines.iter().map(|l| (l.key.as_str(), l.events.clone(), l.counters.clone())).collect();
    let line = |key, events, counters| (key, Cell::Int(events), Cell::Int(counters));
    assert_eq!(
        lines,
        [line("numa_pages_migrated", 6, 6), line("pgmigrate_success", 9, 9), line("pgmigrate_fail", 3, 4)]
    );
    let numa = &rows(&a, "migrate")[1];
    assert_eq!(
        numa[..6],
        [text("numa_misplaced"), text("MIGRATE_ASYNC"), Cell::Int(2), Cell::Int(6), Cell::Int(2), Cell::Float(25.0)]
    );
    assert_eq!(rows(&a, "numa-tasks")[0][..2], [text("wl0"), Cell::Int(7)]);
    assert_eq!(rows(&a, "numa-tasks")[0][2], Cell::Na(Na::NotRecorded), "no sched_move_numa");
}

#[test]
fn locality_is_known_where_there_were_faults() {
    let mut a = Analysis::default();
    let values = [("numa_hint_faults", 100, 300), ("numa_hint_faults_local", 50, 200), ("numa_pte_updates", 0, 0)];
    counters(&mut a, "vmstat", "", &values);
    assert_eq!(metric(&a, "numa", "numa_hint_faults_local_percent"), Cell::Float(75.0));
    assert_eq!(metric(&a, "numa", "numa_pages_migrated"), Cell::Na(Na::NotInKernel));
    let [row] = &rows(&a, "numa-locality")[..] else { panic!() };
    assert_eq!(row[..5], [Cell::Float(2.0), Cell::Int(0), Cell::Int(200), Cell::Int(150), Cell::Float(75.0)]);
}

#[test]
fn only_changed_counters_are_listed_and_resets_are_not_known() {
    let mut a = Analysis::default();
    counters(&mut a, "vmstat", "", &[("pgfault", 5, 9), ("pgfree", 4, 4), ("nr_free_pages", 8, 2), ("numa_hit", 9, 1)]);
    let expected = [
        vec![text("pgfault"), Cell::Int(5), Cell::Int(9), Cell::Int(4), Cell::Float(2.0)],
        vec![text("nr_free_pages"), Cell::Int(8), Cell::Int(2), Cell::Int(-6), Cell::Na(Na::Undefined)],
        vec![text("numa_hit"), Cell::Int(9), Cell::Int(1), Cell::Na(Na::NotRecorded), Cell::Na(Na::NotRecorded)],
    ];
    assert_eq!(rows(&a, "vmstat"), expected);
    counters(&mut a, "numastat", "0", &[("numa_hit", 0, 7), ("numa_miss", 0, 0)]);
    counters(&mut a, "numastat", "1", &[("numa_hit", 1, 2)]);
    let expected = [
        vec![text("numa_hit"), Cell::Int(7), Cell::Int(1)],
        vec![text("numa_miss"), Cell::Int(0), Cell::Na(Na::NotRecorded)],
    ];
    assert_eq!(rows(&a, "numastat"), expected);
    counters(&mut a, "zoneinfo", "0/DMA", &[("low", 3, 3), ("free", 9, 8)]);
    counters(&mut a, "zoneinfo", "0", &[("nr_mapped", 3, 3)]);
    assert_eq!(rows(&a, "zoneinfo").len(), 1, "a node is no zone");
    assert_eq!(rows(&a, "zoneinfo")[0][..4], [text("0/DMA"), Cell::Int(8), Cell::Na(Na::NotRecorded), Cell::Int(3)]);
}

#[test]
fn purges_have_their_histograms() {
    let mut a = Analysis::default();
    event(&mut a, Kind::FreeVmapAreaNoflush, 10, &[("nr_lazy", 104), ("nr_lazy_max", 100)]);
    event(&mut a, Kind::PurgeVmapAreaLazy, 2_000_010, &[("num_purged", 50)]);
    a.call(&Call { function: "purge_vmap_node", cpu: 0, nanoseconds: 2_500 });
    assert_eq!(metric(&a, "vmalloc", "purge_latency_max"), Cell::Float(2.0));
    assert_eq!(metric(&a, "vmalloc", "allocations"), Cell::Na(Na::NotRecorded));
    let Body::Histogram { slots, mean, total, .. } = table(&a, "calls-purge_vmap_node").body else { panic!() };
    assert_eq!((slots.last(), mean, total), (Some(&(2, 3, 1)), Some(2.5), 2));
}

#[test]
fn every_list_row_fits_its_columns() {
    let mut a = Analysis::default();
    event(&mut a, Kind::MmVmscanThrottled, 1, &[("usec_delayed", 4000), ("usec_timeout", 4000)]);
    event(&mut a, Kind::MmShrinkSlabStart, 1, &[("total_scan", 9)]);
    event(&mut a, Kind::MmShrinkSlabEnd, 5, &[("nid", 0)]);
    event(&mut a, Kind::MmCompactionBegin, 1, &[]);
    event(&mut a, Kind::MmCompactionEnd, 3, &[]);
    event(&mut a, Kind::MmCompactionFinished, 3, &[]);
    event(&mut a, Kind::MmCompactionDeferred, 3, &[]);
    event(&mut a, Kind::MmCompactionKcompactdWake, 3, &[]);
    event(&mut a, Kind::MmPageAlloc, 3, &[("pfn", 5)]);
    event(&mut a, Kind::MmPageAllocExtfrag, 3, &[]);
    event(&mut a, Kind::MarkVictim, 3, &[]);
    event(&mut a, Kind::MmCollapseHugePage, 3, &[]);
    event(&mut a, Kind::SchedSkipVmaNuma, 3, &[]);
    a.lost(1, None, 4);
    for name in "throttle slab compaction-runs compaction-results compaction-deferred kcompactd alloc alloc-fallback \
                 oom-victims thp numa-skips lost-events"
        .split_whitespace()
    {
        assert_eq!(rows(&a, name).len(), 1, "{name}");
    }
}

#[test]
fn levels_and_what_has_no_time_have_no_rate() {
    let mut a = Analysis::default();
    let values = [("nr_free_pages", 900, 200), ("pgfault", 10, 30)];
    counters(&mut a, "vmstat", "", &values);
    counters(&mut a, "psi", "memory", &[("some_avg10", 322, 0), ("some_total", 10, 20)]);
    let rate = |a: &Analysis, name: &str, at: usize| rows(a, name)[at].last().cloned().unwrap();
    assert_eq!((rate(&a, "vmstat", 0), rate(&a, "vmstat", 1)), (Cell::Na(Na::Undefined), Cell::Float(10.0)));
    assert_eq!(rate(&a, "psi", 0), Cell::Na(Na::Undefined));
    // Saved files come in an order, at no time.
    let mut a = Analysis::default();
    let names = values.map(|(name, ..)| name.to_string());
    for at in [0, 1] {
        let values: Vec<_> = values.iter().map(|v| Some(if at == 1 { v.2 } else { v.1 })).collect();
        a.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
    }
    assert_eq!(rows(&a, "vmstat")[0][3], Cell::Int(-700), "the difference is known");
    let rates = [rate(&a, "vmstat", 0), rate(&a, "vmstat", 1)];
    assert_eq!(rates, [Cell::Na(Na::Undefined), Cell::Na(Na::NotRecorded)]);
    assert_eq!(metric(&a, "numa", "numa_scan_rate"), Cell::Na(Na::NotRecorded));
}

#[test]
fn compaction_isolates_by_scanning_and_from_free_lists() {
    let isolated = |kernel: &str, fast: bool| {
        let mut a = Analysis::default();
        a.start(&Source { kernel: Some(kernel.into()), ..Source::default() });
        event(&mut a, Kind::MmCompactionIsolateMigratepages, 1, &[("nr_scanned", 90), ("nr_taken", 60)]);
        event(&mut a, Kind::MmCompactionIsolateFreepages, 2, &[("nr_scanned", 90), ("nr_taken", 12)]);
        if fast {
            event(&mut a, Kind::MmCompactionFastIsolateFreepages, 3, &[("nr_scanned", 30), ("nr_taken", 28)]);
        }
        counters(&mut a, "vmstat", "", &[("compact_isolated", 0, 100)]);
        let lines = cross_check::subjects(&a);
        lines.into_iter().find(|line| line.key == "compact_isolated").expect("a line").events
    };
    assert_eq!(isolated("7.3.0-rc1", true), Cell::Int(100));
    // Without the event: before 6.3 there is none, before 5.1 nothing to tell.
    assert_eq!(isolated("6.12.1", false), Cell::Na(Na::NotRecorded));
    assert_eq!(isolated("6.1.0-13-amd64", false), Cell::Na(Na::NotRecorded));
    assert_eq!(isolated("4.19.0", false), Cell::Int(72));
}

#[test]
fn names_of_tables_are_unique() {
    let mut a = Analysis::default();
    event(&mut a, Kind::MmVmscanNodeReclaimBegin, 1, &[]);
    let per_context = super::reclaim::per_context(&a);
    assert_eq!(per_context[0].name, "reclaim-node-reclaim");
    let tables = super::reclaim_tables(&a).into_iter().chain(subject_tables(&a)).chain(per_context);
    let mut names: Vec<_> = tables.map(|t| t.name).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

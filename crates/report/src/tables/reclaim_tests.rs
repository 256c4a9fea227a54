//! The tables of today, from events made by hand.

use super::*;
use crate::model::CrossCheck;
use mmtwin_analysis::testing::EventBuilder;
use mmtwin_event::Kind::*;
use mmtwin_event::{CounterRow, Sink, Source};
use proptest::prelude::*;

fn made(kind: Kind, pid: i32, comm: &'static [u8], us: u64) -> EventBuilder {
    EventBuilder::new(kind).pid(pid).comm(comm).at(us * 1000)
}

fn shrink(pid: i32, comm: &'static [u8], nid: i64, scanned: i64, reclaimed: i64) -> EventBuilder {
    let made = made(MmVmscanLruShrinkInactive, pid, comm, 20).set("flags", 10).set("priority", 12).set("nid", nid);
    made.set("nr_scanned", scanned).set("nr_reclaimed", reclaimed).set("nr_activate_file", 3)
}

/// Direct reclaim by dd, cgroup reclaim by cp, and a kswapd on node 1 that is awake from 30 us to the end.
fn analysis() -> Analysis {
    let mut analysis = Analysis::default();
    let enabled = ["mm_vmscan_lru_shrink_active", "mm_vmscan_kswapd_sleep"].map(String::from).to_vec();
    analysis.start(&Source { enabled: Some(enabled), ..Source::default() });
    for made in [
        made(MmVmscanDirectReclaimBegin, 7, b"dd", 10).set("order", 2),
        shrink(7, b"dd", 0, 100, 25),
        made(MmVmscanDirectReclaimEnd, 7, b"dd", 2_010).set("nr_reclaimed", 40),
        made(MmVmscanMemcgReclaimBegin, 8, b"cp", 2_020).set("order", 0),
        shrink(8, b"cp", 0, 10, 10),
        made(MmVmscanMemcgReclaimEnd, 8, b"cp", 2_021).set("nr_reclaimed", 10),
        made(MmVmscanWakeupKswapd, 7, b"dd", 25).set("nid", 1),
        made(MmVmscanKswapdWake, 3, b"kswapd1", 2_030).set("nid", 1),
        shrink(3, b"kswapd1", 1, 1000, 900),
        made(MmVmscanWriteFolio, 3, b"kswapd1", 4_010).set("flags", 9),
    ] {
        analysis.event(&made.event());
    }
    analysis
}

/// Cells of the rows of a list, by key of the column, for the rows whose first cell is `first`.
fn cells(table: &Table, first: &Cell, key: &str) -> Vec<Cell> {
    let Body::List { columns, rows } = &table.body else { panic!("a list") };
    let at = columns.iter().position(|column| column.key == key).unwrap();
    rows.iter().filter(|row| row[0] == *first).map(|row| row[at].clone()).collect()
}

#[test]
fn reclaimers_stand_side_by_side() {
    let table = reclaim::side_by_side(&analysis());
    let get = |quantity: &str, context: &str| cells(&table, &text(quantity), context)[0].clone();
    assert_eq!(get("Pages scanned", "direct"), Cell::Int(100));
    assert_eq!(get("Pages scanned", "kswapd"), Cell::Int(1000));
    assert_eq!(get("Pages scanned", "cgroup"), Cell::Int(10));
    assert_eq!(get("Efficiency", "direct"), Cell::Float(25.0));
    assert_eq!(get("nr_reclaimed (from end event)", "direct"), Cell::Int(40));
    assert_eq!(get("Time max", "direct"), Cell::Float(2.0));
    assert_eq!(get("Pages written", "kswapd"), Cell::Int(1));
    assert_eq!(get("Activated: file", "cgroup"), Cell::Int(3));
    assert_eq!(get("Active pages isolated", "direct"), Cell::Int(0), "enabled and not seen is 0");
    assert_eq!(get("Pages isolated", "direct").na(), Some(Na::NotRecorded));
    let Body::List { columns, .. } = &table.body else { panic!("a list") };
    assert_eq!(columns.len(), 5, "contexts that neither were recorded nor occurred have no column");
}

#[test]
fn what_no_event_tells_is_not_in_this_kernel() {
    // The events above have `nr_activate_file` and nothing else that only some kernels have.
    let table = reclaim::side_by_side(&analysis());
    let get = |quantity: &str| cells(&table, &text(quantity), "direct")[0].clone();
    assert_eq!(get("Activated: file"), Cell::Int(3));
    let unreported = ["Dirty", "Under writeback", "Congested", "Immediate (PG_reclaim)", "Activated: anon"];
    for quantity in unreported.into_iter().chain(["Kept: referenced (ref_keep)", "Unmap failed"]) {
        assert_eq!(get(quantity), Cell::Na(Na::NotInKernel), "{quantity}");
    }
    let mut isolating = analysis();
    isolating.event(&made(MmVmscanLruIsolate, 7, b"dd", 15).set("lru", 2).set("nr_scanned", 9).event());
    assert_eq!(cells(&reclaim::lists(&isolating), &text("inactive_file"), "skipped"), [Cell::Na(Na::NotInKernel)]);
    isolating.event(&made(MmVmscanLruIsolate, 7, b"dd", 16).set("lru", 2).set("nr_skipped", 0).event());
    assert_eq!(cells(&reclaim::lists(&isolating), &text("inactive_file"), "skipped"), [Cell::Int(0)]);
}

#[test]
fn one_table_per_reclaimer_for_comparison() {
    let names: Vec<String> = reclaim::per_context(&analysis()).into_iter().map(|table| table.name).collect();
    assert_eq!(names, ["reclaim-direct", "reclaim-kswapd", "reclaim-cgroup"]);
}

#[test]
fn pages_come_from_nodes_and_priorities() {
    let nodes = reclaim::nodes(&analysis());
    assert_eq!(cells(&nodes, &Cell::Int(0), "scanned"), [Cell::Int(100), Cell::Int(10)]);
    assert_eq!(cells(&nodes, &Cell::Int(1), "reclaimed"), [Cell::Int(900)]);
    let places = reclaim::places(&analysis());
    assert_eq!(cells(&places, &Cell::Int(0), "priority"), [Cell::Int(12), Cell::Int(12)]);
    assert_eq!(cells(&places, &Cell::Int(1), "flags"), [text("RECLAIM_WB_FILE|RECLAIM_WB_ASYNC")]);
}

#[test]
fn the_longest_stalled_process_is_first() {
    let table = process::processes(&analysis());
    let Body::List { rows, .. } = &table.body else { panic!("a list") };
    let names: Vec<&Cell> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(names, [&text("dd"), &text("cp"), &text("kswapd1")]);
    assert_eq!(cells(&table, &text("dd"), "stalled"), [Cell::Float(0.002)]);
    assert_eq!(cells(&table, &text("cp"), "cgroup"), [Cell::Int(1)]);
    assert!(cells(&table, &text("kswapd1"), "stalled")[0].na().is_some());
}

#[test]
fn a_phase_that_has_not_ended_counts_as_awake() {
    let table = process::kswapds(&analysis());
    let one = |key: &str| cells(&table, &Cell::Int(1), key)[0].clone();
    assert_eq!((one("requests"), one("wakes"), one("sleeps")), (Cell::Int(1), Cell::Int(1), Cell::Int(0)));
    assert_eq!(one("awake"), Cell::Float(0.00198));
    assert_eq!(one("awake_percent"), Cell::Float(49.5));
    assert!(one("phase_max").na().is_some(), "no whole phase was seen");
}

#[test]
fn latencies_are_by_order() {
    let table = latency::by_order(&analysis());
    assert_eq!(cells(&table, &text("direct"), "order"), [Cell::Int(2)]);
    assert_eq!(cells(&table, &text("direct"), "total"), [Cell::Float(0.002)]);
    assert_eq!(cells(&table, &text("cgroup"), "count"), [Cell::Int(1)]);
    let names: Vec<String> = latency::histograms(&analysis()).into_iter().map(|table| table.name).collect();
    assert_eq!(names, ["latency-direct", "latency-cgroup"]);
}

#[test]
fn events_are_held_against_counters() {
    let mut analysis = analysis();
    assert!(cross_check::reclaim(&analysis).is_empty(), "without counters there is nothing to compare");
    let names =
        ["pgscan_kswapd", "pgscan_direct", "pgscan_anon", "pgscan_file", "allocstall_normal", "nr_vmscan_write"];
    let names = names.map(String::from);
    for (at, values) in [(0, [0, 0, 0, 0, 0, 0]), (9, [1000, 101, 0, 1110, 1, 512])] {
        let values = values.map(Some);
        analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
    }
    let lines: Vec<(String, Cell, Cell)> = cross_check::reclaim(&analysis)
        .into_iter()
        .map(|CrossCheck { key, events, counters, .. }| (key, events, counters))
        .collect();
    let expected = [
        ("pgscan_kswapd", 1000, 1000),
        ("pgscan_direct", 100, 101),
        ("memcg_scanned", 10, 9),
        ("pgscan", 1110, 1110),
        ("allocstall", 1, 1),
        ("nr_vmscan_write", 1, 512),
    ];
    let expected = expected.map(|(key, events, counters)| (key.to_string(), Cell::Int(events), Cell::Int(counters)));
    assert_eq!(lines, expected);
}

proptest! {
    /// Damaged input has any values in any order: no panic, and every table still has a cell for each column.
    #[test]
    fn any_events_give_tables(events in prop::collection::vec(
        (0..mmtwin_event::vocabulary::SCHEMAS.len(), any::<u64>(), -1i32..4, any::<u32>(), prop::collection::vec(
            prop_oneof![any::<u64>(), 0u64..12, Just(u64::MAX)], mmtwin_event::MAX_SLOTS), any::<u32>()), 1..60)
    ) {
        let mut analysis = Analysis::default();
        for (schema, ts, pid, cpu, values, present) in &events {
            let made = EventBuilder::new(mmtwin_event::vocabulary::SCHEMAS[*schema].kind).at(*ts).pid(*pid).cpu(*cpu);
            let slots = mmtwin_event::Slots { values: std::array::from_fn(|i| values[i]), present: *present };
            analysis.event(&mmtwin_event::Event { fields: mmtwin_event::Fields::Text(&slots), ..made.event() });
            if *ts % 7 == 0 {
                analysis.lost(*cpu, Some(values[0]), values[1]);
            }
        }
        analysis.finish();
        let tables = reclaim_tables(&analysis);
        for table in tables.iter().chain(&subject_tables(&analysis)).chain(&reclaim::per_context(&analysis)) {
            if let Body::List { columns, rows } = &table.body {
                prop_assert!(rows.iter().all(|row| row.len() == columns.len()), "{}", table.name);
            }
            if historic::has(&table.name) {
                prop_assert!(historic::print(&[("a", table)]).is_some());
            }
        }
        postprocess::print(&analysis);
        cross_check::reclaim(&analysis);
    }
}

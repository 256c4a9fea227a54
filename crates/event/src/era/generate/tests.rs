use super::*;
use crate::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of published tables, by their labels.
const MICRO_2010: &str = "\
Direct reclaims	443
Direct reclaim pages scanned	305968
Direct reclaim pages reclaimed	43503
Wake kswapd requests	187649
Kswapd wakeups	3
Kswapd pages scanned	4599269
Kswapd pages reclaimed	2295947
Kswapd reclaim write file async I/O	1
Kswapd reclaim write anon async I/O	59
Time stalled direct reclaim (seconds)	4.34
Time kswapd awake (seconds)	11.15
Direct number congest waited	87
Direct time congest waited	4604ms
Direct full congest waited	72
KSwapd number congest waited	20
KSwapd time congest waited	1264ms
KSwapd full congest waited	10";
/// The same kinds of rows, all of them, in small.
const SMALL: &str = "\
Direct reclaims	87
Direct reclaim pages scanned	10101
Direct reclaim pages reclaimed	4667
Direct reclaim write file async I/O	28
Direct reclaim write anon async I/O	1346
Direct reclaim write file sync I/O	3
Direct reclaim write anon sync I/O	56
Wake kswapd requests	892
Kswapd wakeups	78
Kswapd pages scanned	137034
Kswapd pages reclaimed	31871
Kswapd reclaim write file async I/O	29
Kswapd reclaim write anon async I/O	849
Time stalled direct reclaim (seconds)	254.07
Time kswapd awake (seconds)	117.82
Direct number congest waited	4
Direct time congest waited	200ms
Direct full congest waited	2
Direct number conditional waited	186
Direct time conditional waited	2504ms
Direct full conditional waited	25
KSwapd number congest waited	282
KSwapd time congest waited	18380ms
KSwapd full congest waited	176
KSwapd number conditional waited	318
KSwapd time conditional waited	4ms
KSwapd full conditional waited	0";

fn column(rows: &str) -> Totals {
    let mut totals = Totals::default();
    for row in rows.lines() {
        let (label, value) = row.split_once('\t').unwrap();
        assert!(totals.set(label, value), "{row}");
    }
    totals
}

/// Sums of one process, by the rules of the tables.
#[derive(Default)]
struct Process {
    begins: u64,
    wakeups: u64,
    wakes: u64,
    pages: Pages,
    direct_us: u64,
    awake_us: u64,
    begun: Option<u64>,
    awake: Option<u64>,
}

/// The totals of printed lines, counted per process name as the tables were.
fn count(era: Era, events: impl Iterator<Item = Made>) -> Totals {
    let mut processes: BTreeMap<(&str, i32), Process> = BTreeMap::new();
    let mut totals = Totals::default();
    for made in events {
        let line = String::from_utf8(made.payload).unwrap();
        let text = |key: &str| {
            let values = line.split(' ').filter_map(|word| word.split_once('='));
            values.filter(|(k, _)| *k == key).map(|(_, value)| value.to_string()).next()
        };
        let number = |key: &str| text(key).unwrap().parse::<u64>().unwrap();
        let us = made.ts / 1000;
        let p = processes.entry((made.comm, made.common.pid)).or_default();
        match made.event {
            "mm_vmscan_direct_reclaim_begin" => {
                p.begins += 1;
                p.begun = Some(us);
            }
            "mm_vmscan_direct_reclaim_end" => p.direct_us += us - p.begun.take().unwrap(),
            "mm_vmscan_wakeup_kswapd" => p.wakeups += 1,
            "mm_vmscan_kswapd_wake" if p.awake.is_none() => {
                p.wakes += 1;
                p.awake = Some(us);
            }
            "mm_vmscan_kswapd_sleep" => p.awake_us += us - p.awake.take().unwrap(),
            "mm_vmscan_lru_isolate" => {
                let active = match era {
                    Era::V2_6_36 => number("isolate_mode") == 1,
                    Era::V3_3 => number("isolate_mode") == 2,
                    Era::V3_5 => false,
                    _ => text("lru").unwrap().starts_with("active"),
                };
                p.pages.scanned += if active { 0 } else { number("nr_scanned") };
                assert!(number("nr_taken") <= number("nr_scanned"));
            }
            "mm_vmscan_lru_shrink_inactive" => {
                assert!(number("nr_reclaimed") <= number("nr_scanned"));
                p.pages.reclaimed += number("nr_reclaimed");
            }
            "mm_vmscan_writepage" | "mm_vmscan_write_folio" => {
                let flags = text("flags").unwrap();
                let sum = match (flags.contains("FILE"), flags.contains("RECLAIM_WB_SYNC")) {
                    (true, false) => &mut p.pages.file_async,
                    (false, false) => &mut p.pages.anon_async,
                    (true, true) => &mut p.pages.file_sync,
                    (false, true) => &mut p.pages.anon_sync,
                };
                *sum += 1;
            }
            "writeback_congestion_wait" | "writeback_wait_iff_congested" | "mm_vmscan_throttled" => {
                let conditional = made.event == "writeback_wait_iff_congested" || line.contains("CONGESTED");
                let wait = match (made.comm.starts_with("kswapd"), conditional) {
                    (false, false) => &mut totals.direct_congest,
                    (false, true) => &mut totals.direct_conditional,
                    (true, false) => &mut totals.kswapd_congest,
                    (true, true) => &mut totals.kswapd_conditional,
                };
                let delayed = number(if era >= Era::V6_1 { "usect_delayed" } else { "usec_delayed" });
                wait.number += 1;
                wait.ms += delayed;
                wait.full += u64::from(delayed >= number("usec_timeout"));
            }
            _ => {}
        }
    }
    for wait in [
        &mut totals.direct_congest,
        &mut totals.direct_conditional,
        &mut totals.kswapd_congest,
        &mut totals.kswapd_conditional,
    ] {
        wait.ms /= 1000;
    }
    for p in processes.values() {
        let side = match (p.begins > 0, p.wakes > 0) {
            (true, false) => &mut totals.direct,
            (false, true) => &mut totals.kswapd,
            (false, false) => continue,
            (true, true) => panic!("a kswapd in direct reclaim"),
        };
        side.scanned += p.pages.scanned;
        side.reclaimed += p.pages.reclaimed;
        side.file_async += p.pages.file_async;
        side.anon_async += p.pages.anon_async;
        side.file_sync += p.pages.file_sync;
        side.anon_sync += p.pages.anon_sync;
        totals.direct_reclaims += p.begins;
        totals.wake_requests += p.wakeups;
        totals.kswapd_wakeups += p.wakes;
        totals.stalled_us += p.direct_us;
        totals.awake_us += p.awake_us;
    }
    totals
}

#[test]
fn every_era_adds_up() {
    let totals = column(SMALL);
    for era in Era::ALL {
        assert_eq!(count(era, Recording::new(era, &totals).unwrap().events()), totals, "{era:?}");
    }
}

#[test]
fn a_published_column_adds_up() {
    let totals = column(MICRO_2010);
    assert_eq!(count(Era::V2_6_36, Recording::new(Era::V2_6_36, &totals).unwrap().events()), totals);
}

#[test]
fn small_and_empty_totals_add_up() {
    let one = Totals {
        direct_reclaims: 1,
        direct: Pages { scanned: 1, reclaimed: 1, ..Pages::default() },
        kswapd_wakeups: 1,
        awake_us: 1,
        ..Totals::default()
    };
    for totals in [Totals::default(), one] {
        for era in Era::ALL {
            assert_eq!(count(era, Recording::new(era, &totals).unwrap().events()), totals, "{era:?}");
        }
    }
}

#[test]
fn impossible_totals_are_refused() {
    let refused = |totals: Totals| Recording::new(Era::V2_6_36, &totals).unwrap_err().to_string();
    let pages = Pages { scanned: 1, reclaimed: 2, ..Pages::default() };
    assert!(
        refused(Totals { direct_reclaims: 1, direct: pages, ..Totals::default() }).contains("reclaimed than scanned")
    );
    assert!(refused(Totals { stalled_us: 1, ..Totals::default() }).contains("without a direct reclaim"));
    assert!(refused(Totals { awake_us: 1, ..Totals::default() }).contains("without a wakeup"));
    let wait = Wait { number: 1, ms: 0, full: 1 };
    assert!(refused(Totals { kswapd_congest: wait, ..Totals::default() }).contains("full waits"));
}

#[test]
fn recordings_are_deterministic_and_ordered() {
    let totals = column(SMALL);
    let made = || Recording::new(Era::V6_18, &totals).unwrap().events().collect::<Vec<_>>();
    let events = made();
    assert_eq!(events, made());
    assert!(events.windows(2).all(|pair| pair[0].ts <= pair[1].ts));
}

#[test]
fn everything_that_makes_counting_hard_is_there() {
    for era in Era::ALL {
        let recording = Recording::new(era, &column(SMALL)).unwrap();
        let events: Vec<Made> = recording.events().collect();
        let by = |name: &str| events.iter().filter(|e| e.event == name).collect::<Vec<_>>();
        let pids = |name: &str| by(name).iter().map(|e| e.common.pid).collect::<BTreeSet<i32>>();
        assert!(pids("mm_vmscan_direct_reclaim_begin").len() > 4);
        assert!(pids("mm_vmscan_kswapd_wake").len() == 2);
        assert!(!pids("mm_vmscan_wakeup_kswapd").is_subset(&pids("mm_vmscan_direct_reclaim_begin")));
        assert!(pids("mm_vmscan_memcg_reclaim_begin").is_disjoint(&pids("mm_vmscan_direct_reclaim_begin")));
        assert!(!by("mm_vmscan_memcg_reclaim_end").is_empty());
        assert_eq!(by("mm_vmscan_direct_reclaim_begin").len(), by("mm_vmscan_direct_reclaim_end").len() + 2);
        assert!(by("mm_vmscan_kswapd_wake").len() > 78);
        assert_eq!(by("mm_vmscan_kswapd_sleep").len(), 77);
        let (mut moved, mut ended_elsewhere, mut nested) = (0, 0, 0);
        let mut open: BTreeMap<i32, (u32, bool)> = BTreeMap::new();
        for e in &events {
            match e.event {
                "mm_vmscan_direct_reclaim_begin" => {
                    nested += u32::from(open.insert(e.common.pid, (e.cpu, false)).is_some())
                }
                "mm_vmscan_direct_reclaim_end" => {
                    let (cpu, away) = open.remove(&e.common.pid).unwrap();
                    ended_elsewhere += u32::from(cpu != e.cpu);
                    moved += u32::from(away && cpu == e.cpu);
                }
                _ => {
                    if let Some((cpu, away)) = open.get_mut(&e.common.pid) {
                        *away |= *cpu != e.cpu;
                    }
                }
            }
        }
        assert!(moved > 0 && ended_elsewhere > 10 && nested == 1, "{era:?}");
        assert_eq!(open.len(), 1);
        let waiters = events.iter().filter(|e| e.event.contains("wait") || e.event.contains("throttled"));
        assert!(waiters.clone().any(|e| e.comm == "mkfs") && waiters.clone().any(|e| e.comm != "mkfs"));
        let empty = by("mm_vmscan_lru_isolate").iter().any(|e| e.payload.windows(11).any(|w| w == b"nr_taken=0 "));
        assert_eq!(empty, era != Era::V3_5);
    }
}

#[test]
fn records_and_lines_have_the_same_fields() {
    for era in Era::ALL {
        let recording = Recording::new(era, &column(SMALL)).unwrap();
        let formats: BTreeMap<u16, &Definition> = recording.formats().collect();
        let mut seen = BTreeSet::new();
        for made in recording.events() {
            let id = u16::from_le_bytes([made.record[0], made.record[1]]);
            let definition = formats[&id];
            assert_eq!(definition.name, made.event);
            assert_eq!(made.record[4..8], made.common.pid.to_le_bytes());
            seen.insert(definition.kind);
            if made.event != "mm_vmscan_lru_shrink_inactive" {
                continue;
            }
            let field = definition.fields.iter().find(|f| f.name == "nr_reclaimed").unwrap();
            let at = usize::from(field.offset);
            let reclaimed = u64::from_le_bytes(made.record[at..at + 8].try_into().unwrap());
            assert!(String::from_utf8(made.payload).unwrap().contains(&format!(" nr_reclaimed={reclaimed} ")));
        }
        assert!(seen.contains(&Kind::MmVmscanWriteFolio) && seen.contains(&Kind::MmVmscanLruIsolate));
        assert!(recording.tasks().any(|(pid, comm)| (pid, comm) == (40, "kswapd0")));
    }
}

//! `vmscan`: the "FTrace Reclaim Statistics: vmscan" block of the published reports.
//!
//! Rules of the scripts that made it: events are grouped by process name. A name counts as direct reclaim if it has a
//! direct_reclaim_begin, as kswapd if it has a kswapd_wake out of sleep; all its events count then, those of others
//! do not. So requests to wake kswapd are those of direct reclaimers only, and cgroup reclaim is not in it (see
//! `reclaim`). Pages reclaimed come from the shrink events; on 2.6.36, which has none, from counters.

use super::{Scans, derived, metrics, row, scanned, scans, total};
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Cell, Metric, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::reclaim::{Pages, Writes};
use mmtwin_analysis::tasks::Context;
use mmtwin_event::Kind::*;
use std::collections::BTreeMap;

/// Sums over processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Direct reclaims begun.
    pub begins: u64,
    /// Wakes of a kswapd out of sleep.
    pub wakes: u64,
    /// Requests to wake a kswapd.
    pub requests: u64,
    /// Pages scanned.
    pub scanned: Pages,
    /// Pages reclaimed.
    pub reclaimed: Pages,
    /// Pages written.
    pub writes: Writes,
    /// Microseconds in direct reclaim.
    pub direct_us: u64,
    /// Microseconds a kswapd was awake.
    pub awake_us: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.begins += other.begins;
        self.wakes += other.wakes;
        self.requests += other.requests;
        self.scanned.merge(other.scanned);
        self.reclaimed.merge(other.reclaimed);
        self.writes.merge(&other.writes);
        self.direct_us = self.direct_us.saturating_add(other.direct_us);
        self.awake_us = self.awake_us.saturating_add(other.awake_us);
    }
}

/// What every process did, with its name and thread id.
pub(super) fn per_process(analysis: &Analysis) -> Vec<((String, i32), Sums)> {
    let scans = scans(analysis).unwrap_or(Scans::Shrinks);
    let sums = analysis.reclaimers().map(|(task, process)| {
        let kswapd = process.kswapd.as_deref();
        let sums = Sums {
            begins: process.begun(Context::Direct),
            wakes: kswapd.map_or(0, |k| k.wakes),
            requests: process.wakeups,
            scanned: scanned(scans, process),
            reclaimed: process.reclaimed,
            writes: process.writes.clone(),
            direct_us: process.direct_us,
            awake_us: kswapd.map_or(0, |k| k.awake_us),
        };
        ((task.name(), task.pid), sums)
    });
    sums.collect()
}

/// Sums over those that count as direct reclaimers and over those that count as kswapd.
pub(super) fn qualified<'a>(all: impl Iterator<Item = &'a Sums>) -> (Sums, Sums) {
    let (mut direct, mut kswapd) = (Sums::default(), Sums::default());
    for sums in all {
        if sums.begins > 0 {
            direct.add(sums);
        }
        if sums.wakes > 0 {
            kswapd.add(sums);
        }
    }
    (direct, kswapd)
}

/// The first 17 rows, from which the others are derived; `None`: not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw {
    /// Direct reclaims begun.
    pub reclaims: Option<u64>,
    /// Pages scanned by direct reclaim and by kswapd.
    pub scanned: [Option<u64>; 2],
    /// Pages reclaimed by direct reclaim and by kswapd.
    pub reclaimed: [Option<u64>; 2],
    /// Pages written by direct reclaim and by kswapd: file async, anon async, file sync, anon sync.
    pub written: [[Option<u64>; 4]; 2],
    /// Requests to wake kswapd.
    pub requests: Option<u64>,
    /// Wakes of kswapd.
    pub wakes: Option<u64>,
    /// Seconds stalled in direct reclaim.
    pub stalled: Option<f64>,
    /// Seconds kswapd was awake.
    pub awake: Option<f64>,
    /// User and system seconds of the test together.
    pub cpu: Option<f64>,
    /// Elapsed seconds of the test.
    pub elapsed: Option<f64>,
}

impl Raw {
    /// The raw rows of an analysis.
    pub fn of(analysis: &Analysis) -> Raw {
        let mut by_name: BTreeMap<String, Sums> = BTreeMap::new();
        for ((name, _), sums) in per_process(analysis) {
            by_name.entry(name).or_default().add(&sums);
        }
        let (direct, kswapd) = qualified(by_name.values());
        let known = |kinds: &[mmtwin_event::Kind], value: u64| analysis.recorded.value(kinds, value);
        let qualifying = [MmVmscanDirectReclaimBegin, MmVmscanKswapdWake];
        let both = [(&direct, qualifying[0]), (&kswapd, qualifying[1])];
        let scanned = scans(analysis);
        let micros = |us: Option<u64>| us.map(|us| us as f64 / 1e6);
        Raw {
            reclaims: known(&qualifying[..1], direct.begins),
            scanned: both.map(|(sums, kind)| scanned.and_then(|_| known(&[kind], sums.scanned.all))),
            reclaimed: match analysis.recorded.has(MmVmscanLruShrinkInactive) {
                true => both.map(|(sums, kind)| known(&[kind], sums.reclaimed.all)),
                false => reclaimed_by_counters(analysis),
            },
            written: both.map(|(sums, kind)| {
                let kinds = [kind, MmVmscanWriteFolio];
                [(true, false), (false, false), (true, true), (false, true)]
                    .map(|(file, sync)| known(&kinds, sums.writes.of(file, sync)))
            }),
            requests: known(&[MmVmscanDirectReclaimBegin, MmVmscanWakeupKswapd], direct.requests),
            wakes: known(&qualifying[1..], kswapd.wakes),
            stalled: micros(known(&[MmVmscanDirectReclaimBegin, MmVmscanDirectReclaimEnd], direct.direct_us)),
            awake: micros(known(&[MmVmscanKswapdWake, MmVmscanKswapdSleep], kswapd.awake_us)),
            cpu: analysis.source.times.map(|times| times.user + times.system),
            elapsed: analysis.source.times.map(|times| times.elapsed),
        }
    }

    /// All 24 rows.
    pub fn rows(&self) -> Vec<Metric> {
        let pages = |key: &str, label: &str, value| row(key, label, "pages", Lower, None, Cell::recorded(value));
        let count = |key: &str, label: &str, value| row(key, label, "", Lower, None, Cell::recorded(value));
        let time = |key: &str, label: &str, value| row(key, label, "s", Lower, Some(2), Cell::float(value));
        let share = |key: &str, label: &str, better, value| row(key, label, "%", better, Some(2), Cell::float(value));
        let [direct, kswapd] = self.written;
        let sum = |values: &[Option<u64>]| total(values.iter().copied());
        let scanned = sum(&self.scanned);
        let reclaimed = sum(&self.reclaimed);
        // kswapd never writes synchronously; the scripts leave these rows out of both sums.
        let written_file = sum(&[direct[0], direct[2], kswapd[0]]);
        let written = sum(&[written_file, direct[1], direct[3], kswapd[1]]);
        // The scripts print 0 for the first share if nothing was scanned; of the others it is not known then.
        let of_scanned = |part: Option<u64>| Some(derived::percent(part? as f64, scanned? as f64));
        let of_some = |part: Option<u64>| of_scanned(part).filter(|_| scanned != Some(0));
        let stalled_share = || Some(derived::stalled_share(self.stalled?, self.cpu?));
        let awake_share = || Some(derived::percent(self.awake?, self.elapsed.filter(|&elapsed| elapsed > 0.0)?));
        vec![
            count("direct_reclaims", "Direct reclaims", self.reclaims),
            pages("direct_pages_scanned", "Direct reclaim pages scanned", self.scanned[0]),
            pages("direct_pages_reclaimed", "Direct reclaim pages reclaimed", self.reclaimed[0]),
            pages("direct_write_file_async", "Direct reclaim write file async I/O", direct[0]),
            pages("direct_write_anon_async", "Direct reclaim write anon async I/O", direct[1]),
            pages("direct_write_file_sync", "Direct reclaim write file sync I/O", direct[2]),
            pages("direct_write_anon_sync", "Direct reclaim write anon sync I/O", direct[3]),
            count("wake_kswapd_requests", "Wake kswapd requests", self.requests),
            row("kswapd_wakeups", "Kswapd wakeups", "", Neutral, None, Cell::recorded(self.wakes)),
            pages("kswapd_pages_scanned", "Kswapd pages scanned", self.scanned[1]),
            pages("kswapd_pages_reclaimed", "Kswapd pages reclaimed", self.reclaimed[1]),
            pages("kswapd_write_file_async", "Kswapd reclaim write file async I/O", kswapd[0]),
            pages("kswapd_write_anon_async", "Kswapd reclaim write anon async I/O", kswapd[1]),
            pages("kswapd_write_file_sync", "Kswapd reclaim write file sync I/O", kswapd[2]),
            pages("kswapd_write_anon_sync", "Kswapd reclaim write anon sync I/O", kswapd[3]),
            time("stalled_seconds", "Time stalled direct reclaim (seconds)", self.stalled),
            time("awake_seconds", "Time kswapd awake (seconds)", self.awake),
            pages("total_scanned", "Total pages scanned", scanned),
            pages("total_reclaimed", "Total pages reclaimed", reclaimed),
            share("scanned_reclaimed", "%age total pages scanned/reclaimed", Higher, of_scanned(reclaimed)),
            share("scanned_written", "%age total pages scanned/written", Lower, of_some(written)),
            share("file_scanned_written", "%age file pages scanned/written", Lower, of_some(written_file)),
            share("stalled_share", "Percentage Time Spent Direct Reclaim", Lower, stalled_share()),
            share("awake_share", "Percentage Time kswapd Awake", Lower, awake_share()),
        ]
    }
}

/// Pages reclaimed by direct reclaim and by kswapd on kernels that count kswapd's within the zones' sum (to 3.3).
fn reclaimed_by_counters(analysis: &Analysis) -> [Option<u64>; 2] {
    let kswapd = analysis.counters.vmstat("kswapd_steal");
    let all = analysis.counters.vmstat_sum(&super::mmtests::zoned("pgsteal_").each_ref().map(String::as_str));
    [kswapd.zip(all).and_then(|(kswapd, all)| all.checked_sub(kswapd)), kswapd]
}

/// The table.
pub fn table(analysis: &Analysis) -> Table {
    let note = "Whole system, by process name; cgroup reclaim is not in it.";
    metrics("vmscan", "FTrace Reclaim Statistics: vmscan", note, Raw::of(analysis).rows())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_analysis::testing::EventBuilder;
    use mmtwin_event::{CounterRow, Kind, Sink, Source, Times};

    const DD: (i32, &[u8]) = (7, b"dd");
    const DD_TOO: (i32, &[u8]) = (8, b"dd");
    const CP: (i32, &[u8]) = (9, b"cp");
    const KSWAPD: (i32, &[u8]) = (3, b"kswapd0");

    fn made(kind: Kind, who: (i32, &'static [u8]), us: u64) -> EventBuilder {
        EventBuilder::new(kind).pid(who.0).comm(who.1).at(us * 1000)
    }

    fn isolate(who: (i32, &'static [u8]), lru: i64, scanned: i64) -> EventBuilder {
        made(MmVmscanLruIsolate, who, 5).set("lru", lru).set("nr_scanned", scanned)
    }

    fn shrink(who: (i32, &'static [u8]), scanned: i64, reclaimed: i64) -> EventBuilder {
        made(MmVmscanLruShrinkInactive, who, 6).set("nr_scanned", scanned).set("nr_reclaimed", reclaimed)
    }

    fn values(source: Source, events: &[EventBuilder]) -> BTreeMap<String, Cell> {
        let mut analysis = Analysis::default();
        analysis.start(&source);
        events.iter().for_each(|made| analysis.event(&made.event()));
        Raw::of(&analysis).rows().into_iter().map(|row| (row.key, row.value)).collect()
    }

    #[test]
    fn names_qualify_not_processes() {
        let got = values(
            Source { times: Some(Times { user: 1.0, system: 0.5, elapsed: 2.0 }), ..Source::default() },
            &[
                made(MmVmscanDirectReclaimBegin, DD, 1_000_000).set("order", 0),
                made(MmVmscanDirectReclaimEnd, DD, 1_500_000),
                isolate(DD_TOO, 2, 100),
                isolate(DD, 3, 1000),
                shrink(DD_TOO, 100, 20),
                isolate(CP, 2, 5000),
                shrink(CP, 5000, 4000),
                made(MmVmscanWakeupKswapd, DD_TOO, 7).set("nid", 0),
                made(MmVmscanWakeupKswapd, CP, 7).set("nid", 0),
                made(MmVmscanKswapdWake, KSWAPD, 1_000_000).set("nid", 0),
                made(MmVmscanKswapdWake, KSWAPD, 1_100_000).set("nid", 0),
                isolate(KSWAPD, 0, 300),
                shrink(KSWAPD, 300, 180),
                made(MmVmscanWriteFolio, KSWAPD, 8).set("flags", 9),
                made(MmVmscanWriteFolio, KSWAPD, 8).set("flags", 6),
                made(MmVmscanWriteFolio, CP, 8).set("flags", 10),
                made(MmVmscanKswapdSleep, KSWAPD, 2_000_000).set("nid", 0),
            ],
        );
        let ints = [
            ("direct_reclaims", 1),
            ("direct_pages_scanned", 100),
            ("direct_pages_reclaimed", 20),
            ("wake_kswapd_requests", 1),
            ("kswapd_wakeups", 1),
            ("kswapd_pages_scanned", 300),
            ("kswapd_pages_reclaimed", 180),
            ("kswapd_write_anon_async", 1),
            ("kswapd_write_file_sync", 1),
            ("direct_write_file_async", 0),
            ("total_scanned", 400),
        ];
        for (key, value) in ints {
            assert_eq!(got[key], Cell::Int(value), "{key}");
        }
        let floats = [
            ("stalled_seconds", 0.5),
            ("awake_seconds", 1.0),
            ("scanned_reclaimed", 50.0),
            // kswapd's synchronous writes are in neither sum.
            ("scanned_written", 0.25),
            ("file_scanned_written", 0.0),
            ("stalled_share", 25.0),
            ("awake_share", 50.0),
        ];
        for (key, value) in floats {
            assert_eq!(got[key], Cell::Float(value), "{key}");
        }
    }

    #[test]
    fn unrecorded_events_make_their_rows_unknown() {
        let got = values(Source::default(), &[made(MmVmscanDirectReclaimBegin, DD, 1).set("order", 0)]);
        assert_eq!(got["direct_reclaims"], Cell::Int(1));
        for key in ["direct_pages_scanned", "stalled_seconds", "kswapd_wakeups", "total_scanned", "stalled_share"] {
            assert!(got[key].na().is_some(), "{key}");
        }
    }

    #[test]
    fn shares_of_nothing_scanned_are_unknown_but_where_the_scripts_print_0() {
        let names = ["mm_vmscan_direct_reclaim_begin", "mm_vmscan_kswapd_wake", "mm_vmscan_kswapd_sleep"];
        let more = ["mm_vmscan_lru_isolate", "mm_vmscan_lru_shrink_inactive", "mm_vmscan_write_folio"];
        let enabled = Some(names.iter().chain(&more).map(|name| name.to_string()).collect());
        let times = Some(Times { user: 0.0, system: 0.0, elapsed: 0.0 });
        let got = values(Source { enabled, times, ..Source::default() }, &[]);
        assert_eq!((&got["total_scanned"], &got["scanned_reclaimed"]), (&Cell::Int(0), &Cell::Float(0.0)));
        for key in ["scanned_written", "file_scanned_written", "awake_share"] {
            assert!(got[key].na().is_some(), "{key}");
        }
    }

    #[test]
    fn scans_of_3_5_come_from_shrink_events() {
        let unreported =
            |scanned| made(MmVmscanLruIsolate, DD, 5).set("isolate_mode", 0).set("file", 1).set("nr_scanned", scanned);
        let begin = made(MmVmscanDirectReclaimBegin, DD, 1).set("order", 0);
        let got = values(Source::default(), &[begin, unreported(32), unreported(64), shrink(DD, 32, 1)]);
        assert_eq!(got["direct_pages_scanned"], Cell::Int(32), "the other one was from an active list");
    }

    #[test]
    fn reclaimed_of_2_6_36_comes_from_counters() {
        let mut analysis = Analysis::default();
        let names = ["kswapd_steal", "pgsteal_dma", "pgsteal_normal"].map(String::from);
        for (at, values) in [(0, [10, 20, 30]), (9, [110, 50, 200])] {
            let values = values.map(Some);
            analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
        }
        assert_eq!(Raw::of(&analysis).reclaimed, [Some(100), Some(100)]);
    }
}

//! A made-up recording of every kernel era, as text and as trace.dat: the report recovers every row it was made from.

use super::support::{report_json, rows, scratch, value};
use mmtwin_event::era::generate::{CPUS, Recording, Totals};
use mmtwin_event::era::{Era, header_event, header_page};
use mmtwin_trace::dat::{Codec, FormatText, Meta, Opt, Version, Writer, id};
use mmtwin_trace::ring::PageLayout;
use mmtwin_trace::ring::encode::PageWriter;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Rows, as tables print them, of what a recording is made from. Writes are in two tables, under two labels.
const ROWS: [(&str, &str); 29] = [
    ("Direct reclaims", "87"),
    ("Direct reclaim pages scanned", "10101"),
    ("Direct reclaim pages reclaimed", "4667"),
    ("Direct reclaim write file async I/O", "28"),
    ("Direct reclaim write anon async I/O", "1346"),
    ("Direct reclaim write file sync I/O", "3"),
    ("Direct reclaim write anon sync I/O", "56"),
    ("Wake kswapd requests", "892"),
    ("Kswapd wakeups", "78"),
    ("Kswapd pages scanned", "137034"),
    ("Kswapd pages reclaimed", "31871"),
    ("Kswapd reclaim write file async I/O", "29"),
    ("Kswapd reclaim write anon async I/O", "849"),
    ("Kswapd reclaim write file sync I/O", "5"),
    ("Kswapd reclaim write anon sync I/O", "2"),
    ("Time stalled direct reclaim (seconds)", "254.07"),
    ("Time kswapd awake (seconds)", "117.82"),
    ("Direct number congest waited", "4"),
    ("Direct time congest waited", "200ms"),
    ("Direct full congest waited", "2"),
    ("Direct number conditional waited", "186"),
    ("Direct time conditional waited", "2504ms"),
    ("Direct full conditional waited", "25"),
    ("KSwapd number congest waited", "282"),
    ("KSwapd time congest waited", "18380ms"),
    ("KSwapd full congest waited", "176"),
    ("KSwapd number conditional waited", "318"),
    ("KSwapd time conditional waited", "4ms"),
    ("KSwapd full conditional waited", "0"),
];

/// Release strings of the eras; the columns of a line follow from them.
fn release(era: Era) -> &'static str {
    match era {
        Era::V2_6_36 => "2.6.36",
        Era::V3_3 => "3.4.0",
        Era::V3_5 => "3.10.0",
        Era::V6_1 => "6.1.0",
        Era::V6_12 => "6.12.0",
        Era::V6_18 => "6.18.0",
    }
}

fn text(era: Era, made: &Recording, path: &Path) {
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    let flags = match era {
        Era::V2_6_36 => "",
        Era::V3_3 | Era::V3_5 => ".... ",
        Era::V6_1 | Era::V6_12 | Era::V6_18 => "..... ",
    };
    writeln!(out, "# tracer: nop\n#").expect("written");
    for event in made.events() {
        let (seconds, us) = (event.ts / 1_000_000_000, event.ts / 1000 % 1_000_000);
        let pid = event.common.pid;
        write!(out, "{:>16}-{pid:<5} [{:03}] {flags}{seconds:>5}.{us:06}: {}: ", event.comm, event.cpu, event.event)
            .and_then(|()| out.write_all(&event.payload))
            .and_then(|()| out.write_all(b"\n"))
            .expect("written");
    }
}

fn dat(era: Era, made: &Recording, version: Version, path: &Path) {
    let directory = path.parent().expect("a directory");
    let mut writer = Writer::new(version, false, directory).expect("a writer");
    let buffer = writer.buffer("", "local", 4096);
    let mut lanes: Vec<PageWriter> = (0..CPUS).map(|_| PageWriter::new(PageLayout::little_endian_64(4096))).collect();
    for event in made.events() {
        let full = lanes[event.cpu as usize].push(event.ts, &event.record).expect("a short event");
        if let Some(page) = full {
            writer.pages(buffer, event.cpu, page).expect("written");
        }
    }
    for (cpu, lane) in lanes.iter_mut().enumerate() {
        while let Some(page) = lane.flush() {
            writer.pages(buffer, cpu as u32, page).expect("written");
        }
    }
    let format = |(id, definition): (u16, &mmtwin_event::era::Definition)| FormatText {
        system: definition.system.into(),
        text: definition.format_text(id),
        offset: 0,
    };
    let cmdlines: String = made.tasks().map(|(pid, comm)| format!("{pid} {comm}\n")).collect();
    let uname = format!("Linux test {} x86_64\0", release(era));
    let meta = Meta {
        long_size: 8,
        page_size: 4096,
        cpus: CPUS,
        header_page: header_page(era, 8, 4096),
        header_event: header_event(era),
        formats: made.formats().map(format).collect(),
        cmdlines: cmdlines.into_bytes().into(),
        options: vec![Opt { id: id::UNAME, data: uname.into_bytes() }],
        ..Meta::default()
    };
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    writer.finish(&meta, "a trace.dat", &mut out).expect("written");
}

/// Tables and keys of the rows of a label.
fn places(label: &str) -> Vec<(&'static str, String)> {
    let lower = label.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(' ').collect();
    match words[..] {
        ["direct", "reclaims"] => vec![("vmscan", "direct_reclaims".into())],
        ["wake", "kswapd", "requests"] => vec![("vmscan", "wake_kswapd_requests".into())],
        ["kswapd", "wakeups"] => vec![("vmscan", "kswapd_wakeups".into())],
        ["time", "stalled", ..] => vec![("vmscan", "stalled_seconds".into())],
        ["time", "kswapd", ..] => vec![("vmscan", "awake_seconds".into())],
        [who, "reclaim", "write", what, how, _] => {
            let key = format!("{who}_writes_{what}_{how}");
            vec![("vmscan", format!("{who}_write_{what}_{how}")), ("writepage", key)]
        }
        [who, .., "pages", what] => vec![("vmscan", format!("{who}_pages_{what}"))],
        [who, what, kind, "waited"] => vec![("congestion-wait", format!("{who}_{kind}_{what}"))],
        _ => panic!("{label} has no place"),
    }
}

fn check(era: Era, path: &Path) {
    let recorded = if era >= Era::V6_1 { "vmscan:*" } else { "vmscan:*,writeback:*" };
    let options = ["--recorded", recorded, "--table", "vmscan,congestion-wait,writepage,throttle"];
    let report = report_json(path, options);
    for (label, expected) in ROWS {
        let expected: f64 = expected.trim_end_matches("ms").parse().expect("a number");
        for (table, key) in places(label) {
            // Later kernels have no congestion waits; what they have instead is in another table.
            if table == "congestion-wait" && era >= Era::V6_1 {
                assert_eq!(value(&report, table, &key), None, "{era:?} {path:?}: {label}");
                continue;
            }
            let got = value(&report, table, &key).unwrap_or_else(|| panic!("{era:?} {path:?}: {label} is n/a"));
            assert!((got - expected).abs() < 1e-9, "{era:?} {path:?}: {label} is {got}, not {expected}");
        }
    }
    if era >= Era::V6_1 {
        throttling(&report);
    }
    // Rows that follow from these.
    let sum = |table: &str, keys: [&str; 2]| keys.map(|k| value(&report, table, k).expect("a number")).iter().sum();
    let scanned: f64 = sum("vmscan", ["direct_pages_scanned", "kswapd_pages_scanned"]);
    assert_eq!(value(&report, "vmscan", "total_scanned"), Some(scanned));
    let reclaimed: f64 = sum("vmscan", ["direct_pages_reclaimed", "kswapd_pages_reclaimed"]);
    assert_eq!(value(&report, "vmscan", "total_reclaimed"), Some(reclaimed));
    let mixed = ["direct_writes_mixed_sync", "direct_writes_mixed_async", "kswapd_writes_mixed_async"];
    assert_eq!(mixed.map(|key| value(&report, "writepage", key)), [Some(0.0); 3]);
}

/// The waits of kernels from 5.16 on: for writeback where the recording was made from waits for congestion, for
/// congestion where from those that wait only if a zone is congested.
fn throttling(report: &serde_json::Value) {
    let rows = rows(report, "throttle");
    for (who, kswapd) in [("Direct", false), ("KSwapd", true)] {
        for (kind, reason) in [("congest", "VMSCAN_THROTTLE_WRITEBACK"), ("conditional", "VMSCAN_THROTTLE_CONGESTED")] {
            for (figure, column) in [("number", "waits"), ("time", "time"), ("full", "timed_out")] {
                let of = rows.iter().filter(|r| r["reason"] == reason && (r["reclaimer"] == "kswapd") == kswapd);
                let got: f64 = of.map(|r| r[column].as_f64().expect("a number")).sum();
                let label = format!("{who} {figure} {kind} waited");
                let (_, expected) = ROWS.iter().find(|(row, _)| *row == label).expect("a row");
                assert_eq!(Ok(got), expected.trim_end_matches("ms").parse(), "{label}: {rows:?}");
            }
        }
    }
}

fn totals() -> Totals {
    let mut totals = Totals::default();
    for (label, figure) in ROWS {
        assert!(totals.set(label, figure), "{label}");
    }
    totals
}

#[test]
fn every_row_is_recovered_from_text() {
    let scratch = scratch();
    for era in Era::ALL {
        let made = Recording::new(era, &totals()).expect("possible totals");
        let path = scratch.path().join(format!("{era:?}.txt"));
        text(era, &made, &path);
        check(era, &path);
    }
}

#[test]
fn every_row_is_recovered_from_pages() {
    let scratch = scratch();
    let versions = [Version::V6, Version::V7(Codec::None), Version::V7(Codec::Zlib), Version::V7(Codec::Zstd)];
    for (era, version) in Era::ALL.into_iter().zip(versions.into_iter().cycle()) {
        let made = Recording::new(era, &totals()).expect("possible totals");
        let path = scratch.path().join(format!("{era:?}.dat"));
        dat(era, &made, version, &path);
        check(era, &path);
    }
}

/// Nothing was recorded of an event that was not enabled: n/a, not 0.
#[test]
fn an_empty_recording_knows_nothing() {
    let scratch = scratch();
    let made = Recording::new(Era::V6_18, &Totals::default()).expect("possible totals");
    let path = scratch.path().join("few.txt");
    text(Era::V6_18, &made, &path);
    let tables = "vmscan,congestion-wait,writepage";
    let options = ["--table", tables, "--recorded", "vmscan:mm_vmscan_kswapd_wake,writeback:*"];
    let report = report_json(&path, options);
    assert_eq!(value(&report, "writepage", "kswapd_writes_file_sync"), None);
    assert_eq!(value(&report, "vmscan", "kswapd_write_anon_async"), None);
    assert_eq!(value(&report, "congestion-wait", "direct_congest_number"), Some(0.0));
}

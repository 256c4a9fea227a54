//! What the packets of a trace say, read back byte by byte.

use super::*;
use crate::input::{InputFile, Options};
use mmtwin_event::{Fields, Slots, Typed};
use std::collections::{BTreeMap, BTreeSet};

/// A field of a message: its number, and a number or bytes.
#[derive(Clone, Debug, PartialEq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Decodes a message; panics if it is none.
fn decode(mut bytes: &[u8]) -> Vec<(u32, Value<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return value;
            }
        }
        panic!("too long")
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            kind => {
                let len = if kind == 1 { 8 } else { varint(&mut bytes) as usize };
                let (value, rest) = bytes.split_at(len);
                bytes = rest;
                if kind == 1 {
                    Value::Number(u64::from_le_bytes(value.try_into().unwrap()))
                } else {
                    Value::Bytes(value)
                }
            }
        };
        fields.push(((key >> 3) as u32, value));
    }
    fields
}

/// A `TrackEvent` with its names in words.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    at: u64,
    kind: u64,
    track: String,
    name: String,
    notes: BTreeMap<String, String>,
    value: Option<i64>,
    from: Vec<u64>,
    to: Vec<u64>,
}

fn text(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Value::Number(number) => number.to_string(),
    }
}

fn field<'a>(message: &'a [(u32, Value<'a>)], number: u32) -> Option<&'a Value<'a>> {
    message.iter().find(|(n, _)| *n == number).map(|(_, value)| value)
}

fn inner<'a>(message: &[(u32, Value<'a>)], number: u32) -> Vec<Vec<(u32, Value<'a>)>> {
    let bytes = message.iter().filter_map(|(n, value)| match value {
        Value::Bytes(bytes) if *n == number => Some(*bytes),
        _ => None,
    });
    bytes.map(decode).collect()
}

/// All events of a trace; every track and name must have been introduced before its use.
fn read(trace: &[u8]) -> Vec<Seen> {
    let (mut tracks, mut names, mut fields) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut seen = Vec::new();
    let trace = decode(trace);
    for packet in inner(&trace, 1) {
        for fresh in inner(&packet, 12) {
            for (number, known) in [(2, &mut names), (3, &mut fields)] {
                for entry in inner(&fresh, number) {
                    known.insert(text(field(&entry, 1).unwrap()), text(field(&entry, 2).unwrap()));
                }
            }
        }
        for track in inner(&packet, 60) {
            let id = text(field(&track, 1).unwrap());
            if let Some(parent) = field(&track, 5) {
                assert!(tracks.contains_key(&text(parent)), "a parent comes first");
            }
            let thread = inner(&track, 4).first().map(|thread| format!("thread {}", text(field(thread, 2).unwrap())));
            let process =
                inner(&track, 3).first().map(|process| format!("process {}", text(field(process, 1).unwrap())));
            let name = field(&track, 2).map(text).or(thread).or(process).expect("a name");
            assert!(tracks.insert(id, name).is_none(), "a track twice");
        }
        for event in inner(&packet, 11) {
            let Value::Number(at) = field(&packet, 8).unwrap() else { panic!() };
            let Value::Number(kind) = field(&event, 9).unwrap() else { panic!() };
            let named = field(&event, 10).map(|id| names[&text(id)].clone());
            let flows = |number| {
                let of = event.iter().filter(|(n, _)| *n == number);
                of.map(|(_, value)| text(value).parse().unwrap()).collect()
            };
            let notes = inner(&event, 4).into_iter().map(|note| {
                let value = note.iter().find(|(n, _)| *n != 1).map(|(_, value)| text(value));
                (fields[&text(field(&note, 1).unwrap())].clone(), value.unwrap_or_default())
            });
            seen.push(Seen {
                at: *at,
                kind: *kind,
                track: tracks[&text(field(&event, 11).unwrap())].clone(),
                name: named.or(field(&event, 23).map(text)).unwrap_or_default(),
                notes: notes.collect(),
                value: field(&event, 30).map(|value| text(value).parse::<u64>().unwrap() as i64),
                from: flows(47),
                to: flows(48),
            });
        }
    }
    seen
}

/// Gives a typed event to a writer.
fn give<T: Typed>(writer: &mut PerfettoWriter<Vec<u8>>, ts: u64, pid: i32, event: &T) {
    let mut slots = Slots::default();
    event.write(&mut slots);
    writer.event(&Event {
        ts,
        cpu: 1,
        pid,
        tgid: 0,
        flags: 0,
        preempt_count: 0,
        kind: T::KIND,
        id: 0,
        comm: b"task",
        name: T::KIND.schema().unwrap().name,
        raw: b"",
        fields: Fields::Text(&slots),
    });
}

fn writer() -> PerfettoWriter<Vec<u8>> {
    let mut writer = PerfettoWriter::new(Vec::new(), "memory", None);
    writer.start(&Source { cpu_nodes: vec![0, 1], ..Source::default() });
    writer
}

fn begin() -> v::MmVmscanDirectReclaimBegin {
    v::MmVmscanDirectReclaimBegin { order: 3, gfp_flags: mmtwin_event::value::Gfp(0), may_writepage: None }
}

/// (time, kind, name) of the events of a track.
fn brief(seen: &[Seen]) -> Vec<(u64, u64, &str)> {
    seen.iter().map(|event| (event.at, event.kind, event.name.as_str())).collect()
}

#[test]
fn slices_nest_whatever_was_lost() {
    let mut w = writer();
    give(&mut w, 5, 7, &v::MmVmscanDirectReclaimEnd { nr_reclaimed: 1 });
    give(&mut w, 10, 7, &begin());
    give(&mut w, 20, 7, &v::MmMigratePagesStart { mode: Default::default(), reason: Default::default() });
    // Its end was lost, and so was that of the migration.
    give(&mut w, 30, 7, &begin());
    // Delayed for longer than the reclaim has lasted.
    let throttled = v::MmVmscanThrottled { nid: 0, usec_timeout: 9, usec_delayed: 9, reason: Default::default() };
    give(&mut w, 40, 7, &throttled);
    give(&mut w, 50, 7, &v::MmVmscanDirectReclaimEnd { nr_reclaimed: 32 });
    w.finish();
    let seen = read(&w.close().unwrap());
    assert!(seen.iter().all(|event| event.track == "thread 7"));
    let expected = [
        (5, 3, "mm_vmscan_direct_reclaim_end"),
        (10, 1, "direct reclaim"),
        (20, 1, "migration"),
        (30, 2, ""),
        (30, 2, ""),
        (30, 1, "direct reclaim"),
        (30, 1, "reclaim throttled"),
        (40, 2, ""),
        (50, 2, ""),
    ];
    assert_eq!(brief(&seen), expected);
    assert_eq!(seen[1].notes["order"], "3");
    assert_eq!(seen[8].notes["nr_reclaimed"], "32");
}

#[test]
fn an_arrow_leads_from_the_wake_to_kswapd() {
    let mut w = writer();
    let wakeup = |nid| v::MmVmscanWakeupKswapd { nid, order: 0, zid: None, gfp_flags: None };
    give(&mut w, 10, 7, &wakeup(0));
    give(&mut w, 11, 8, &wakeup(0));
    give(&mut w, 12, 8, &wakeup(1));
    give(&mut w, 20, 40, &v::MmVmscanKswapdWake { nid: 0, order: 0, zid: None });
    give(&mut w, 30, 40, &v::MmVmscanKswapdSleep { nid: 0 });
    let seen = read(&w.close().unwrap());
    let kswapd = seen.iter().find(|event| event.name == "kswapd").unwrap();
    assert_eq!(kswapd.to, [seen[0].from.clone(), seen[1].from.clone()].concat());
    assert_eq!(BTreeSet::from_iter(seen.iter().flat_map(|event| &event.from)).len(), 3);
    assert_eq!(brief(&seen).last(), Some(&(30, 2, "")));
}

#[test]
fn a_pause_ends_when_it_was_to_or_with_the_next_event() {
    let mut w = writer();
    let slots = |pause: i64| {
        let mut slots = Slots::default();
        slots.set(Kind::BalanceDirtyPages.schema().unwrap().slot(b"pause").unwrap(), pause as u64);
        v::BalanceDirtyPages::read(&slots)
    };
    give(&mut w, 1_000_000, 7, &slots(4));
    give(&mut w, 3_000_000, 7, &slots(0));
    give(&mut w, 9_000_000, 7, &slots(2));
    w.finish();
    let seen = read(&w.close().unwrap());
    let ends: Vec<_> = seen.iter().filter(|event| event.kind == 2).map(|event| event.at).collect();
    assert_eq!(ends, [3_000_000, 11_000_000]);
}

#[test]
fn counters_have_values_where_they_change() {
    let mut w = writer();
    let names = ["pgscan".to_string(), "never".into()];
    for (at, value) in [(1, 5), (2, 5), (3, 6)] {
        w.counters(&CounterRow { source: "cgroup", key: "/web", at, names: &names, values: &[Some(value), Some(0)] });
    }
    w.lost(1, Some(9), 4);
    w.lost(Outcome::SOME_CPU, None, 5);
    let seen = read(&w.close().unwrap());
    let of: Vec<_> = seen.iter().map(|e| (e.at, e.track.as_str(), e.value)).collect();
    let expected = [(1, "pgscan", Some(5)), (3, "pgscan", Some(6)), (4, "CPU 1, node 1", None), (5, "CPUs", None)];
    assert_eq!(of, expected);
    assert_eq!(seen[2].notes["events"], "9");
}

#[test]
fn a_whole_recording_is_written_with_all_its_events() {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vmscan-v6.dat");
    let written = || {
        let mut file = InputFile::open(name).unwrap();
        let input = file.input(&Options::default()).unwrap();
        let mut writer = PerfettoWriter::new(Vec::new(), "memory", input.formats.clone());
        let outcome = input.read(&mut writer).unwrap();
        (writer.close().unwrap(), outcome.events)
    };
    let (trace, events) = written();
    assert!(trace == written().0, "the same bytes");
    let seen = read(&trace);
    // Each event is a begin, a moment, or the end of what began; waits and lost ends add ends.
    assert!(seen.len() as u64 >= events, "{} of {events}", seen.len());
    let mut open: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for event in &seen {
        let (depth, last) = open.entry(&event.track).or_default();
        assert!(event.at >= *last, "{event:?} after {last}");
        *last = event.at;
        match event.kind {
            1 => *depth += 1,
            2 => *depth = depth.checked_sub(1).expect("a begin"),
            _ => {}
        }
    }
    assert!(seen.iter().any(|event| event.name == "cgroup reclaim" || event.name == "direct reclaim"));
}

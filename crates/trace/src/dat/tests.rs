//! Files as a whole: written and read again, cut, damaged, made by trace-cmd.

use super::*;
use crate::format::{Formats, Out, Style};
use crate::ring::PageLayout;
use crate::ring::encode::PageWriter;
use crate::ring::merge::deliver;
use crate::ring::page::{Cursor, Entry, Reading};
use crate::text::{TextInput, read_text};
use crate::{Outcome, Place, Warnings};
use mmtwin_event::era::{Era, header_event, header_page};
use mmtwin_event::value::Shape;
use mmtwin_event::{Event, Fields, Kind, Sink, Slots, Source};
use proptest::prelude::*;

const VERSIONS: [Version; 4] =
    [Version::V6, Version::V7(Codec::None), Version::V7(Codec::Zlib), Version::V7(Codec::Zstd)];

/// What trace-cmd 3.1.6 wrote: `trace-cmd convert --file-version 7 --compression zstd` and `6`, `none` of the first
/// events of a recording on kernel 6.18 in the instance `lab`, with the formats of vmscan only.
const V6: &[u8] = include_bytes!("../../tests/data/vmscan-v6.dat");
const V7: &[u8] = include_bytes!("../../tests/data/vmscan-v7-zstd.dat");

fn meta(big_endian: bool, page_size: u32) -> Meta<'static> {
    let text =
        |system: &str, name: &str| FormatText { system: system.into(), text: format!("name: {name}\n"), offset: 0 };
    Meta {
        big_endian,
        long_size: 8,
        page_size,
        cpus: 3,
        header_page: header_page(Era::V6_18, 8, page_size),
        header_event: header_event(Era::V6_18),
        formats: vec![text("ftrace", "function"), text("sched", "a"), text("vmscan", "b"), text("vmscan", "c")],
        kallsyms: b"ffffffff81000000 T start\n".into(),
        printk: b"0xffffffff82000000 : \"x\"\n".into(),
        cmdlines: b"7 seven\n".into(),
        options: vec![Opt { id: id::TRACECLOCK, data: b"local [mono]\n\0".to_vec() }],
    }
}

/// (time, payload) of `n` events of a CPU.
fn events(cpu: u32, n: u64) -> Vec<(u64, Vec<u8>)> {
    (0..n).map(|i| (1000 + i * 10 + u64::from(cpu), vec![i as u8; 8 + (i as usize % 40) * 4])).collect()
}

/// A file with `n` events on CPU 0 and 2 of the instance `lab`.
fn file(version: Version, big_endian: bool, n: u64) -> Vec<u8> {
    let meta = meta(big_endian, 4096);
    let mut writer = Writer::new(version, big_endian, &std::env::temp_dir()).unwrap();
    let lab = writer.buffer("lab", "mono", 4096);
    let layout = PageLayout { big_endian, ..PageLayout::little_endian_64(4096) };
    for cpu in [2, 0] {
        let mut pages = PageWriter::new(layout);
        for (ts, payload) in events(cpu, n) {
            if let Some(page) = pages.push(ts, &payload).unwrap() {
                writer.pages(lab, cpu, page).unwrap();
            }
        }
        while let Some(page) = pages.flush() {
            writer.pages(lab, cpu, page).unwrap();
        }
    }
    let mut out = Vec::new();
    writer.finish(&meta, "out", &mut out).unwrap();
    out
}

type CpuEvents = Vec<(u32, Vec<(u64, Vec<u8>)>)>;

/// Events by CPU of all buffers, and everything that was wrong.
fn read(dat: &DatFile<'_>) -> (CpuEvents, Warnings) {
    let mut warnings = dat.warnings.clone();
    let mut out = Vec::new();
    for buffer in dat.buffers.iter().filter(|b| !b.is_empty()) {
        let Ok(layout) = buffer.layout(&dat.meta, &Place::file(dat.name)) else { continue };
        for stream in buffer.streams(&layout) {
            let mut cursor = Cursor::new(stream);
            let mut entries = Vec::new();
            let reading = Reading::plain(layout);
            if let Err(e) = cursor.gather(0, u64::MAX, &reading, &mut entries, &mut warnings) {
                warnings.add_error(dat.name, e);
            }
            let event = |e: &Entry| {
                let bytes = &cursor.chunks[e.chunk as usize][e.offset as usize..][..e.len as usize];
                (e.ts, bytes.to_vec())
            };
            out.push((cursor.cpu, entries.iter().filter(|e| e.len != Entry::LOST).map(event).collect()));
        }
    }
    (out, warnings)
}

#[test]
fn what_was_written_is_read() {
    for version in VERSIONS {
        for big_endian in [false, true] {
            let bytes = file(version, big_endian, 500);
            let dat = open("x", &bytes).unwrap();
            let expected = meta(big_endian, 4096);
            assert_eq!((dat.meta.cpus, &dat.meta.options), (3, &expected.options));
            assert_eq!(
                (&dat.meta.header_page, &dat.meta.header_event),
                (&expected.header_page, &expected.header_event)
            );
            let strip = |formats: &[FormatText]| -> Vec<_> {
                formats.iter().map(|f| (f.system.clone(), f.text.clone())).collect()
            };
            assert_eq!(strip(&dat.meta.formats), strip(&expected.formats));
            assert_eq!(
                (&dat.meta.kallsyms, &dat.meta.printk, &dat.meta.cmdlines),
                (&expected.kallsyms, &expected.printk, &expected.cmdlines)
            );
            let names: Vec<_> =
                dat.buffers.iter().map(|b| (b.name.as_str(), b.clock.as_deref(), b.page_size)).collect();
            assert_eq!(names, [("", Some("mono"), 4096), ("lab", Some("mono"), 4096)]);
            let (cpus, warnings) = read(&dat);
            assert_eq!(cpus, [(0, events(0, 500)), (2, events(2, 500))]);
            assert!(warnings.list().is_empty(), "{warnings:?}");
        }
    }
}

#[test]
fn files_of_trace_cmd_are_read_and_copied() {
    let six = open("v6", V6).unwrap();
    let seven = open("v7", V7).unwrap();
    let (expected, warnings) = read(&six);
    assert!(warnings.list().is_empty(), "{warnings:?}");
    assert_eq!(expected.iter().map(|(cpu, events)| (*cpu, events.len())).collect::<Vec<_>>(), [(1, 120)]);
    assert_eq!(read(&seven).0, expected);
    for dat in [&six, &seven] {
        assert_eq!(dat.meta.kernel().as_deref(), Some("6.18.44-fc-v669"));
        assert_eq!(dat.meta.clock().as_deref(), Some("local"));
        assert!(dat.meta.tasks().contains(&(28765, b"stream".to_vec())));
        let vmscan = dat.meta.formats.iter().filter(|f| f.system == "vmscan").count();
        assert_eq!(vmscan, 19);
        let lab = dat.buffers.iter().find(|b| b.name == "lab").unwrap();
        assert_eq!((lab.clock.as_deref(), lab.page_size), (Some("local"), 4096));
        for version in VERSIONS {
            let mut bytes = Vec::new();
            let warnings = copy(dat, version, &std::env::temp_dir(), "copy", &mut bytes).unwrap();
            assert!(warnings.list().is_empty());
            assert_eq!(read(&open("copy", &bytes).unwrap()).0, expected);
        }
    }
}

#[test]
fn a_cut_file_gives_the_events_before_the_cut() {
    for version in VERSIONS {
        let bytes = file(version, false, 3000);
        let whole = open("x", &bytes).unwrap();
        let complete = read(&whole).0;
        let Content::Pages(cpus) = &whole.buffers[1].content else { panic!("no pages") };
        let start = cpus[0].stored.offset as usize;
        let mut last = usize::MAX;
        for quarter in [3, 2, 1] {
            let part = &bytes[..start + (bytes.len() - start) * quarter / 4];
            let dat = open("x", part).unwrap();
            let (cpus, warnings) = read(&dat);
            assert!(!warnings.list().is_empty());
            let count: usize = cpus.iter().map(|(_, e)| e.len()).sum();
            assert!(count > 0 && count < last && count < 6000, "{version:?} {quarter} {count}");
            for ((cpu, events), (same, all)) in cpus.iter().zip(&complete) {
                assert_eq!(cpu, same);
                assert_eq!(*events, all[..events.len()]);
            }
            last = count;
        }
    }
}

#[test]
fn data_that_lost_their_table_are_found() {
    // trace-cmd writes the table behind the data: cut off with everything behind.
    let dat = open("v7", V7).unwrap();
    let Content::Pages(cpus) = &dat.buffers.iter().find(|b| b.name == "lab").unwrap().content else {
        panic!("no pages")
    };
    let end = (cpus[0].stored.offset + cpus[0].stored.len) as usize + 4;
    let cut = open("v7", &V7[..end]).unwrap();
    assert_eq!(read(&cut).0, read(&dat).0);
    let names: Vec<_> = cut.buffers.iter().filter(|b| !b.is_empty()).map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["lab"]);
    assert!(cut.warnings.list().iter().any(|w| w.message.contains("taken from the CPU statistics")));
    // Without statistics, CPUs are distinguished but not known. CPU 2 of the file is the second.
    for codec in [Codec::None, Codec::Zlib, Codec::Zstd] {
        let mut bytes = file(Version::V7(codec), false, 500);
        let whole = open("x", &bytes).unwrap();
        let clock = bytes.windows(12).rposition(|w| w == b"local [mono]").unwrap();
        let table = clock + b"local [mono]\n\0".len() + 10;
        assert_eq!(bytes[table..table + 2], id::BUFFER.to_le_bytes());
        let expected = read(&whole).0;
        // A size that reaches beyond the section ends the options here.
        bytes[table + 2..table + 6].fill(0xff);
        let dat = open("x", &bytes).unwrap();
        let found = read(&dat).0;
        assert_eq!(found.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((&found[0].1, &found[1].1), (&expected[0].1, &expected[1].1));
        assert!(dat.warnings.list().iter().any(|w| w.message.contains("counted from 0")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_files_are_read_or_refused(
        which in 0usize..6,
        cut in proptest::option::of(0usize..1 << 17),
        changes in proptest::collection::vec((0usize..1 << 17, any::<u8>(), 0u8..4), 0..6),
    ) {
        let mut bytes = match which {
            0 => V6.to_vec(),
            1 => V7.to_vec(),
            n => file(VERSIONS[n - 2], n % 2 == 0, 200),
        };
        for (at, value, spread) in changes {
            let at = at % bytes.len();
            let end = (at + (1 << spread)).min(bytes.len());
            bytes[at..end].fill(value);
        }
        bytes.truncate(cut.unwrap_or(usize::MAX));
        if let Ok(dat) = open("x", &bytes) {
            read(&dat);
            dat.meta.complete(&mut Formats::new(false, 8));
            dat.meta.cpu_stats();
            let _ = copy(&dat, Version::V6, &std::env::temp_dir(), "x", &mut std::io::sink());
        }
    }
}

#[test]
fn what_is_no_trace_dat_says_so() {
    let error = |bytes: &[u8]| open("x", bytes).unwrap_err().to_string();
    assert!(error(b"").contains("not a kernel trace"));
    assert!(error(b"\x17\x08\x44tracing").starts_with("x: offset 0xa: the version of the file"));
    assert_eq!(
        error(b"\x17\x08\x44tracing8\0\0\x08\0\x10\0\0"),
        "x: offset 0xa: unknown version `8` of trace.dat; supported: 6, 7"
    );
    let lz4 = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lz4\x001\0\x40\0\0\0\0\0\0\0";
    assert!(error(lz4).contains("unknown compression `lz4`"));
}

#[test]
fn a_wrong_part_is_named() {
    let mut v6 = file(Version::V6, false, 10);
    let tag = v6.windows(9).position(|w| w == b"flyrecord").unwrap();
    v6[tag..tag + 9].copy_from_slice(b"flyrekord");
    let expected = format!("x: offset {tag:#x}: options, latency or flyrecord expected here, found `flyrekord`");
    assert_eq!(open("x", &v6).unwrap_err().to_string(), expected);
    let mut v7 = file(Version::V7(Codec::None), false, 10);
    // The first option names where HEADER_INFO lies; let it name the options.
    let options = u64::from_le_bytes(v7[24..32].try_into().unwrap());
    let value = options as usize + 16 + 2 + 4;
    v7[value..value + 8].copy_from_slice(&options.to_le_bytes());
    let expected = format!("x: offset {options:#x}: expected section 16 here, found 0");
    assert_eq!(open("x", &v7).unwrap_err().to_string(), expected);
}

#[test]
fn options_in_a_circle_and_unknown_ones_are_stepped_over() {
    let mut bytes = file(Version::V7(Codec::None), false, 10);
    let codec_end = 10 + 2 + 2 + 4 + 5 + 1;
    let first = u64::from_le_bytes(bytes[codec_end..codec_end + 8].try_into().unwrap());
    // The last option is DONE: point it to the section it is in.
    let size = u64::from_le_bytes(bytes[first as usize + 8..first as usize + 16].try_into().unwrap());
    let done = first as usize + 16 + size as usize - 8;
    bytes[done..done + 8].copy_from_slice(&first.to_le_bytes());
    // The first option is HEADER_INFO; TRACECLOCK becomes one it is not known.
    let clock = bytes.windows(12).rposition(|w| w == b"local [mono]").unwrap() - 6;
    bytes[clock..clock + 2].copy_from_slice(&999u16.to_le_bytes());
    let dat = open("x", &bytes).unwrap();
    assert_eq!(dat.meta.option(999), Some(&b"local [mono]\n\0"[..]));
    assert_eq!(read(&dat).0[0].1, events(0, 10));
    let messages: Vec<_> = dat.warnings.list().iter().map(|w| w.message.as_str()).collect();
    assert_eq!(messages, ["the options sections form a loop"]);
}

#[test]
fn the_text_of_a_latency_tracer_is_handed_out() {
    let six = file(Version::V6, false, 0);
    let at = six.windows(10).position(|w| w == b"flyrecord\0").unwrap();
    let bytes = [&six[..at], b"latency  \0# tracer: irqsoff\n"].concat();
    let dat = open("x", &bytes).unwrap();
    let Content::Text(stored) = &dat.buffers[0].content else { panic!("no text") };
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stored.reader(), &mut text).unwrap();
    assert_eq!(text, "# tracer: irqsoff\n");
}

fn text_event<'a>(ts: u64, cpu: u32, name: &'a str, raw: &'a [u8], slots: &'a Slots) -> Event<'a> {
    Event {
        ts,
        cpu,
        pid: 5,
        tgid: 0,
        flags: 1,
        preempt_count: 2,
        kind: Kind::of_name(name),
        id: 0,
        comm: b"a task",
        name,
        raw,
        fields: Fields::Text(slots),
    }
}

#[test]
fn lines_become_events_that_print_the_line() {
    let slots = Slots::default();
    let lines: [(&str, &[u8]); 3] =
        [("mm_vmscan_kswapd_wake", b"nid=0 order=3"), ("x.isra.0", b"a % %s \"q\""), ("mm_vmscan_kswapd_wake", b"")];
    for version in VERSIONS {
        let mut writer = DatWriter::new(version, None, &std::env::temp_dir()).unwrap();
        writer.start(&Source { kernel: Some("6.1.0".into()), clock: Some("mono".into()), ..Source::default() });
        for (i, (name, raw)) in lines.iter().enumerate() {
            writer.event(&text_event(1000 + i as u64, 3, name, raw, &slots));
        }
        writer.lost(3, Some(4), 2000);
        let mut bytes = Vec::new();
        let written = writer.close("out", &mut bytes).unwrap();
        assert_eq!((written.events, written.left_out.list().len()), (3, 1));
        let dat = open("out", &bytes).unwrap();
        assert_eq!(dat.meta.kernel().as_deref(), Some("6.1.0"));
        assert_eq!(dat.meta.clock().as_deref(), Some("mono"));
        assert_eq!((dat.meta.cpus, dat.meta.tasks()), (4, vec![(5, b"a task".to_vec())]));
        let names: Vec<_> = dat.meta.formats.iter().filter_map(|f| f.text.lines().next()).collect();
        assert_eq!(names, ["name: mm_vmscan_kswapd_wake", "name: text_line"]);
        let (cpus, warnings) = read(&dat);
        assert!(warnings.list().is_empty());
        let texts: Vec<_> = cpus[0].1.iter().map(|(ts, r)| (*ts, r[2], r[3], r[4], &r[16..])).collect();
        assert_eq!(
            texts,
            [
                (1000, 1, 2, 5, &b"nid=0 order=3\0"[..]),
                (1001, 1, 2, 5, b"x.isra.0: a % %s \"q\"\0"),
                (1002, 1, 2, 5, b"\0"),
            ]
        );
    }
}

/// Takes events as (name, kind, time, values of all slots that are numbers, printed text).
#[derive(Default)]
struct Collect<'f> {
    formats: Option<&'f Formats>,
    events: Vec<Seen>,
}

type Seen = (String, Kind, u64, Vec<(usize, u64)>, Vec<u8>);

impl Sink for Collect<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let fields = event.kind.schema().map_or(&[][..], |s| s.fields);
        let is_number = |shape| !matches!(shape, Shape::Str | Shape::Sym | Shape::Gfp);
        let slots = fields.iter().enumerate().filter(|(slot, f)| event.has(*slot) && is_number(f.shape));
        let values = slots.map(|(slot, _)| (slot, event.slot(slot))).collect();
        let mut printed = Out::default();
        match (event.fields, self.formats.and_then(|f| Some((f, f.get(event.id as u16)?)))) {
            (Fields::Record(..) | Fields::Untyped, Some((formats, format))) => {
                format.print(formats, event.raw, Style::Kernel, &mut printed);
            }
            _ => printed.extend(event.raw),
        }
        self.events.push((event.name.into(), event.kind, event.ts, values, printed.as_bytes().to_vec()));
    }
}

#[test]
fn a_text_is_the_same_behind_a_trace_dat() {
    // Lines of 6.1: one of an era, one with a field that is not printed, a hashed pointer, an unknown event; the CPUs
    // of one microsecond not in their order; a function that two lines print.
    let text = "\
          kswapd0-67      [003] .....    20.523898: mm_vmscan_kswapd_sleep: nid=0
          kswapd0-67      [000] .....    20.523898: mm_vmscan_kswapd_wake: nid=3 order=2
          kswapd0-67      [001] d..2.    20.523898: mm_vmscan_write_folio: page=000000007bb8253f pfn=0x1976a flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC
          kswapd0-67      [001] .....    20.523899: mm_shrink_slab_end: super_cache_scan+0x0/0x210 00000000c25d6f71: nid: 0 unused scan count 0 new scan count 3 total_scan 3 last shrinker return val 0
          kswapd0-67      [001] .....    20.523899: my_event: any=1 text=%s
          kswapd0-67      [001] .....    20.523900: mm_vmscan_wakeup_kswapd: nid=1 order=0 gfp_flags=GFP_NOFS|__GFP_HIGHMEM
";
    let read = |sink: &mut dyn Sink| {
        read_text("text", TextInput::Bytes(text.as_bytes()), sink, &mut Outcome::default(), &mut |_| {}).unwrap();
    };
    let mut direct = Collect::default();
    read(&mut direct);
    for release in [None, Some("6.1.0".to_string())] {
        let mut writer = DatWriter::new(Version::V6, None, &std::env::temp_dir()).unwrap();
        writer.start(&Source { kernel: release, ..Source::default() });
        read(&mut writer);
        let mut bytes = Vec::new();
        let written = writer.close("out", &mut bytes).unwrap();
        assert!(written.left_out.list().is_empty());
        let dat = open("out", &bytes).unwrap();
        let mut formats = Formats::new(false, 8);
        for format in &dat.meta.formats {
            formats.add(&format.system, &format.text, &Place::file("out")).unwrap();
        }
        dat.meta.complete(&mut formats);
        let mut behind = Collect { formats: Some(&formats), ..Collect::default() };
        let layout = dat.buffers[0].layout(&dat.meta, &Place::file("out")).unwrap();
        let streams = dat.buffers[0].streams(&layout);
        let mut outcome = Outcome::default();
        deliver(streams, &layout, &formats, &dat.meta.time(), &mut behind, &mut outcome, &mut |_| {}).unwrap();
        assert_eq!(direct.events.len(), 6);
        for (behind, direct) in behind.events.iter_mut().zip(&direct.events) {
            assert!((direct.2..direct.2 + 500).contains(&behind.2));
            behind.2 = direct.2;
        }
        assert_eq!(behind.events, direct.events);
    }
}

#[test]
fn records_of_a_recording_are_written_unchanged() {
    let dat = open("v7", V7).unwrap();
    let mut writer =
        DatWriter::new(Version::V6, Some(Origin::of(&dat.meta, &dat.buffers)), &std::env::temp_dir()).unwrap();
    writer.start(&Source::default());
    let (cpus, _) = read(&dat);
    for (ts, record) in &cpus[0].1 {
        let slots = Slots::default();
        writer.event(&Event { fields: Fields::Untyped, ..text_event(*ts, cpus[0].0, "any", record, &slots) });
    }
    let mut bytes = Vec::new();
    writer.close("out", &mut bytes).unwrap();
    let copy = open("out", &bytes).unwrap();
    assert_eq!(read(&copy).0, cpus);
    assert_eq!(copy.meta.formats.len(), dat.meta.formats.len());
    assert_eq!(copy.buffers[1].name, "lab");
}

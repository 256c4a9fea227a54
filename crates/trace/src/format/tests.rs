//! Formats of real kernels, read and printed; damaged ones.

use super::*;
use mmtwin_event::era::{self, Era, Values};
use mmtwin_event::value::{Bytes, Shape};
use mmtwin_event::{Event, Fields, Slots};
use proptest::prelude::*;

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../tests/data/formats/", $name, ".txt"))
    };
}

const REAL: &[(&str, &str)] = &[
    ("vmscan", text!("mm_shrink_slab_start-6.18")),
    ("vmscan", text!("mm_vmscan_lru_shrink_inactive-6.18")),
    ("vmscan", text!("mm_vmscan_throttled-6.18")),
    ("vmscan", text!("mm_vmscan_lru_isolate-2.6.36")),
    ("sched", text!("sched_switch-6.18")),
    ("sched", text!("sched_skip_cpuset_numa-6.18")),
    ("kmem", text!("mm_page_alloc-6.18")),
    ("oom", text!("mark_victim-6.18")),
    ("ftrace", text!("print-6.18")),
    ("ftrace", text!("kernel_stack-6.18")),
];

/// Formats of one text.
fn formats(system: &str, text: &str, big_endian: bool) -> (Formats, u16) {
    let mut formats = Formats::new(big_endian, 8);
    let id = formats.add(system, text, &Place::file("format")).unwrap();
    let symbols = [(0x1000, "vma_shrink".to_string()), (0x1210, "next".to_string())];
    formats.set_symbols(Arc::new(symbols.into()));
    (formats, id)
}

/// A value of a field.
enum Set<'a> {
    Number(u64),
    Text(&'a [u8]),
}

/// A record of a format, its named fields set and all others 0. Located texts follow behind the fields.
fn record(formats: &Formats, id: u16, values: &[(&str, Set<'_>)]) -> Vec<u8> {
    let format = formats.get(id).unwrap();
    let mut raw = vec![0; format.size];
    let id_itself = ("common_type", Set::Number(id.into()));
    let all = values.iter().chain([&id_itself]);
    for (name, value) in all {
        let field = format.fields.iter().find(|f| f.name == *name).unwrap_or_else(|| panic!("no field {name}"));
        let (at, size) = (field.offset as usize, field.size as usize);
        let number = match (value, field.storage) {
            (Set::Number(number), _) => *number,
            (Set::Text(text), Storage::Inline | Storage::Rest) => {
                raw.resize(raw.len().max(at + text.len()), 0);
                raw[at..at + text.len()].copy_from_slice(text);
                continue;
            }
            (Set::Text(text), located) => {
                let base = if located == Storage::RelLoc { at + 4 } else { 0 };
                let word = (raw.len() - base) as u64 | (text.len() as u64 + 1) << 16;
                raw.extend_from_slice(text);
                raw.push(0);
                word
            }
        };
        let bytes = if formats.big_endian() { number << (64 - 8 * size) } else { number.swap_bytes() };
        raw[at..at + size].copy_from_slice(&bytes.to_be_bytes()[..size]);
    }
    raw
}

fn printed(formats: &Formats, id: u16, raw: &[u8], style: Style) -> String {
    let mut out = Out::default();
    formats.get(id).unwrap().print(formats, raw, style, &mut out);
    String::from_utf8(out.into()).unwrap()
}

use Set::{Number, Text};

#[test]
fn shrink_slab_prints_as_the_kernel_and_trace_cmd_print_it() {
    for big_endian in [false, true] {
        let (formats, id) = formats("vmscan", REAL[0].1, big_endian);
        let values = [
            ("shr", Number(0xffff_8881_0093_b080)),
            ("shrink", Number(0x1000)),
            ("nid", Number(u64::MAX)),
            ("gfp_flags", Number(0x112c4a)),
            ("cache_items", Number(1)),
            ("delta", Number(7)),
            ("nr_objects_to_shrink", Number(-5i64 as u64)),
            ("priority", Number(12)),
        ];
        let raw = record(&formats, id, &values);
        let flags = "GFP_NOFS|__GFP_HIGHMEM|__GFP_MOVABLE|__GFP_NOWARN|__GFP_NORETRY|__GFP_HARDWALL";
        let rest =
            format!("nid: -1 objects to shrink -5 gfp_flags {flags} cache items 1 delta 7 total_scan 0 priority 12");
        let kernel = format!("vma_shrink+0x0/0x210 ffff88810093b080: {rest}");
        assert_eq!(printed(&formats, id, &raw, Style::Kernel), kernel);
        let trace_cmd = format!("vma_shrink+0x0 0xffff88810093b080: {rest}");
        assert_eq!(printed(&formats, id, &raw, Style::TraceCmd), trace_cmd);
    }
}

#[test]
fn flags_in_a_trace_of_one_value_and_many_print_alike() {
    let (formats, id) = formats("vmscan", REAL[1].1, false);
    let flags = |bits: u64| {
        let raw = record(&formats, id, &[("reclaim_flags", Number(bits))]);
        printed(&formats, id, &raw, Style::Kernel).split("flags=").nth(1).unwrap().to_string()
    };
    // More values than are remembered.
    for round in 0..2 {
        for bits in 0..1000 {
            let expected = mmtwin_event::names::RECLAIM_FLAGS.flags_text(bits);
            assert_eq!(flags(bits), expected, "round {round}");
        }
    }
}

#[test]
fn unresolved_enumerators_have_the_numbers_of_the_vocabulary() {
    let (formats, id) = formats("vmscan", REAL[2].1, false);
    let format = formats.get(id).unwrap();
    assert_eq!(format.kind, Kind::MmVmscanThrottled);
    let slot = format.kind.schema().unwrap().slot(b"reason").unwrap();
    for (number, index, word) in [(1, 0, "WRITEBACK"), (2, 1, "ISOLATED"), (4, 2, "NOPROGRESS"), (8, 3, "CONGESTED")] {
        let raw = record(&formats, id, &[("reason", Number(number))]);
        assert_eq!(format.layout.read(&raw, slot), index);
        let line = format!("nid=0 usec_timeout=0 usect_delayed=0 reason=VMSCAN_THROTTLE_{word}");
        assert_eq!(printed(&formats, id, &raw, Style::Kernel), line);
    }
}

#[test]
fn words_are_translated_by_the_formats_own_list() {
    // 3.12 had cma where today's kernels have numa_misplaced, and the mode in another order than any kernel.
    let text = "name: mm_migrate_pages\nID: 9\n\
        field:unsigned short common_type; offset:0; size:2; signed:0;\nfield:int common_pid; offset:4; size:4; signed:1;\n\
        field:unsigned long succeeded; offset:8; size:8; signed:0;\nfield:unsigned long failed; offset:16; size:8; signed:0;\n\
        field:int mode; offset:24; size:4; signed:1;\nfield:int reason; offset:28; size:4; signed:1;\n\
        print fmt: \"%lu %lu %s %s\", REC->succeeded, REC->failed, \
        __print_symbolic(REC->mode, {2, \"MIGRATE_ASYNC\"}), __print_symbolic((u8)REC->reason, {5, \"cma\"}, {SYSCALL, \"syscall_or_cpuset\"})";
    let (formats, id) = formats("migrate", text, false);
    let format = formats.get(id).unwrap();
    let schema = format.kind.schema().unwrap();
    let read = |field: &'static str, number| {
        let raw = record(&formats, id, &[(field, Number(number))]);
        format.layout.read(&raw, schema.slot(field.as_bytes()).unwrap())
    };
    let reasons = &mmtwin_event::names::MIGRATE_REASON;
    assert_eq!(reasons.word(read("reason", 5)), "cma");
    assert_eq!(reasons.word(read("reason", 3)), "syscall_or_cpuset");
    assert_eq!(reasons.word(read("reason", 7)), "0x7");
    assert_eq!(mmtwin_event::names::MIGRATE_MODE.word(read("mode", 2)), "MIGRATE_ASYNC");
}

#[test]
fn layouts_of_every_era_are_complete_and_print_what_the_era_prints() {
    let mut compared = 0;
    for (i, definition) in era::definitions().enumerate() {
        let text = definition.format_text(i as u16);
        let (formats, id) = formats(definition.system, &text, false);
        let format = formats.get(id).unwrap();
        let context = format!("{} of era {:?}:\n{text}", definition.name, definition.era);
        assert_eq!((format.kind, &format.problems[..]), (Kind::of_name(definition.name), &[][..]), "{context}");
        assert_eq!(format.unprintable(&formats, Style::Kernel), None, "{context}");
        assert_eq!(format.unprintable(&formats, Style::TraceCmd), None, "{context}");

        let (slots, raw) = some_values(format.kind, definition.era, text.contains("%pS") || text.contains("%pF"));
        let values = Values { slots: &slots, raw: &raw };
        let Ok(record) = definition.encode(id, era::Common::default(), values, &mut |_| 0x1000) else { continue };
        let expected = String::from_utf8(definition.print(values).unwrap()).unwrap();
        assert_eq!(printed(&formats, id, &record, Style::Kernel), expected, "{context}");
        compared += 1;

        // And the typed fields are the ones that went in.
        let event = Event { kind: format.kind, ..event_of(&record, &format.layout) };
        for (slot, field) in format.kind.schema().unwrap().fields.iter().enumerate() {
            if event.has(slot) && matches!(field.shape, Shape::Int | Shape::Uint) && slots.present >> slot & 1 != 0 {
                let stored = matches!(field.name, "pfn" | "ofs" | "limit");
                assert!(stored || event.slot(slot) == slots.values[slot], "{} in {context}", field.name);
            }
        }
    }
    assert!(compared > 300, "only {compared} events were compared");
}

fn event_of<'a>(raw: &'a [u8], layout: &'a Layout) -> Event<'a> {
    Event {
        ts: 0,
        cpu: 0,
        pid: 0,
        tgid: 0,
        flags: 0,
        preempt_count: 0,
        kind: Kind::Other,
        id: 0,
        comm: b"",
        name: "",
        raw,
        fields: Fields::Record(layout, raw),
    }
}

/// A value for every field but `page`, which follows from `pfn`.
fn some_values(kind: Kind, era: Era, symbols: bool) -> (Slots, Vec<u8>) {
    let (mut slots, mut raw) = (Slots::default(), Vec::new());
    let mut add = |text: &str| {
        let start = raw.len() as u32;
        raw.extend_from_slice(text.as_bytes());
        Bytes { start, len: text.len() as u32 }.to_slot()
    };
    for (slot, field) in kind.schema().unwrap().fields.iter().enumerate() {
        let value = match field.shape {
            _ if field.name == "page" => continue,
            _ if field.name == "limit" => 1 << 3,
            _ if field.name == "ofs" => 5 << 12,
            Shape::Int | Shape::Uint => slot as u64 + 3,
            Shape::Hex => 0xffff_8880_0000_0000 + slot as u64,
            Shape::Bool => 1,
            Shape::Str if field.name == "flags" => add("Ma  "),
            Shape::Str => add("some_name"),
            Shape::Sym => add(if symbols { "vma_shrink+0x0/0x210" } else { "ffffffff81001000" }),
            Shape::Gfp => add(&era::gfp_text(era, 0xd0)),
            Shape::Flags(_) => 2,
            Shape::Name(_) => 1,
            Shape::Dev => 254 << 20 | 1,
        };
        slots.set(slot, value);
    }
    (slots, raw)
}

#[test]
fn texts_sets_and_widths_are_found_where_the_format_says() {
    let (formats, id) = self::formats("oom", REAL[7].1, false);
    let raw = record(&formats, id, &[("comm", Text(b"stress ng")), ("oom_score_adj", Number(-17i64 as u64))]);
    let line = "pid=0 comm=stress ng total-vm=0kB anon-rss=0kB file-rss:0kB shmem-rss:0kB uid=0 pgtables=0kB oom_score_adj=-17";
    assert_eq!(printed(&formats, id, &raw, Style::Kernel), line);
    let format = formats.get(id).unwrap();
    let slot = format.kind.schema().unwrap().slot(b"comm").unwrap();
    assert_eq!(Bytes::from_slot(format.layout.read(&raw, slot)).of(&raw), b"stress ng");

    for (big_endian, first_long) in
        [(false, [0b1011, 0, 0, 0, 0, 0, 0, 0x80]), (true, [0x80, 0, 0, 0, 0, 0, 0, 0b1011])]
    {
        let (formats, id) = self::formats("sched", REAL[5].1, big_endian);
        let raw = record(&formats, id, &[("comm", Text(b"spec")), ("mem_allowed", Text(&first_long))]);
        let line = "comm=spec pid=0 tgid=0 ngid=0 mem_nodes_allowed=0-1,3,63";
        assert_eq!(printed(&formats, id, &raw, Style::Kernel), line);
    }
}

#[test]
fn page_addresses_are_those_of_an_unrandomised_kernel() {
    let (formats, id) = formats("kmem", REAL[6].1, false);
    let line = |pfn, style| {
        let raw = record(&formats, id, &[("pfn", Number(pfn))]);
        printed(&formats, id, &raw, style).split(" order").next().unwrap().to_string()
    };
    assert_eq!(line(0x14b31d, Style::Kernel), "page=ffffea00052cc740 pfn=0x14b31d");
    assert_eq!(line(u64::MAX, Style::Kernel), "page=0000000000000000 pfn=0x0");
    assert_eq!(line(0x14b31d, Style::TraceCmd), "page=0x14b31d pfn=0x14b31d");
    assert_eq!(line(u64::MAX, Style::TraceCmd), "page=(nil) pfn=0x0");
}

#[test]
fn scheduler_events_print_as_trace_cmds_plugin_prints_them_and_name_tasks() {
    let (formats, id) = formats("sched", REAL[4].1, false);
    let values = [
        ("prev_comm", Text(b"tail".as_slice())),
        ("prev_pid", Number(211)),
        ("prev_prio", Number(120)),
        ("prev_state", Number(0x101)),
        ("next_comm", Text(b"swapper/3")),
        ("next_prio", Number(120)),
    ];
    let raw = record(&formats, id, &values);
    assert_eq!(printed(&formats, id, &raw, Style::TraceCmd), "tail:211 [120] S ==> swapper/3:0 [120]");
    let line =
        "prev_comm=tail prev_pid=211 prev_prio=120 prev_state=S+ ==> next_comm=swapper/3 next_pid=0 next_prio=120";
    assert_eq!(printed(&formats, id, &raw, Style::Kernel), line);
    let named = formats.get(id).unwrap().named_tasks(&raw, false);
    assert_eq!(named, [Some((211, b"tail".as_slice())), Some((0, b"swapper/3"))]);
}

#[test]
fn markers_and_stacks_have_no_name_in_the_kernels_text() {
    let line = |index: usize, values: &[(&str, Set<'_>)], style| {
        let (formats, id) = formats("ftrace", REAL[index].1, false);
        let raw = record(&formats, id, values);
        let mut out = Out::default();
        formats.get(id).unwrap().print_named(&formats, &raw, style, &mut out);
        String::from_utf8(out.into()).unwrap()
    };
    let marker = [("ip", Number(0x1000)), ("buf", Text(b"hello\n\0".as_slice()))];
    assert_eq!(line(8, &marker, Style::Kernel), "vma_shrink: hello\n");
    assert_eq!(line(8, &marker, Style::TraceCmd), "print:                vma_shrink: hello\n");
    let (formats, id) = formats("ftrace", REAL[8].1, false);
    let mut out = Out::default();
    formats.get(id).unwrap().print_named(&formats, &[], Style::Kernel, &mut out);
    assert_eq!(String::from_utf8(out.into()).unwrap(), "print: ip=? buf=?");
    let callers = [0x1008u64.to_le_bytes(), 0x1u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat();
    let stack = [("caller", Text(&callers))];
    assert_eq!(line(9, &stack, Style::Kernel), "<stack trace>\n => vma_shrink\n => 0x1\n");
    let expected = "kernel_stack:         <stack trace >\n=> vma_shrink (1008)\n=> 0x1 (1)\n";
    assert_eq!(line(9, &stack, Style::TraceCmd), expected);
}

/// Head of a made-up format whose fields begin at offset 8.
fn made_up(name: &str, fields: &str, print: &str) -> String {
    format!(
        "name: {name}\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{fields}\nprint fmt: {print}\n"
    )
}

#[test]
fn an_event_without_a_field_it_needs_stays_untyped_and_says_why() {
    let problems = |fields: &str| {
        let (formats, id) = formats("vmscan", &made_up("mm_vmscan_kswapd_wake", fields, "\"x\""), false);
        let format = formats.get(id).unwrap();
        assert!(format.problems.is_empty() == (format.kind == Kind::MmVmscanKswapdWake));
        format.problems.join("; ")
    };
    let field =
        |name: &str, offset: u32, size: u32| format!("field:int {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
    assert_eq!(problems(&(field("nid", 8, 4) + &field("order", 12, 4) + &field("more", 16, 4))), "");
    assert_eq!(problems(&field("nid", 8, 4)), "the format has no field order; the event stays untyped");
    let odd = field("nid", 8, 3) + &field("order", 12, 4);
    assert_eq!(
        problems(&odd),
        "field nid is not a number of 1, 2, 4 or 8 bytes but `int` of 3; the event stays untyped"
    );
    let far = field("nid", 8, 4) + &field("order", 70000, 4);
    assert_eq!(problems(&far), "field order has the impossible offset 70000 and size 4; the event stays untyped");
    assert!(problems(&(field("nid", u32::MAX, u32::MAX) + &field("order", 8, 4))).contains("impossible offset"));
}

#[test]
fn what_does_not_compile_is_printed_field_by_field() {
    let fields = "field:int a;\toffset:8;\tsize:4;\tsigned:1;\nfield:char b[4];\toffset:12;\tsize:4;\tsigned:0;\n\
                  field:u8 c[3];\toffset:16;\tsize:3;\tsigned:0;\nfield:void * d;\toffset:24;\tsize:8;\tsigned:0;\n";
    let (formats, id) = formats("x", &made_up("x", fields, "\"%d\", some_function(REC->a)"), false);
    let format = formats.get(id).unwrap();
    assert_eq!(format.unprintable(&formats, Style::Kernel), Some("unknown function some_function"));
    let mut raw = record(&formats, id, &[("a", Number(-3i64 as u64)), ("b", Text(b"hi")), ("d", Number(255))]);
    assert_eq!(printed(&formats, id, &raw, Style::Kernel), "a=-3 b=hi c=ARRAY[00, 00, 00] d=0xff");
    assert_eq!(printed(&formats, id, &raw, Style::TraceCmd), "[FAILED TO PARSE] a=-3 b=hi c=ARRAY[00, 00, 00] d=0xff");
    raw.truncate(20);
    assert_eq!(printed(&formats, id, &raw, Style::Kernel), "a=-3 b=hi c=ARRAY[00, 00, 00] d=?");
}

#[test]
fn conversions_and_arithmetic_are_those_of_c() {
    let fields = "field:int i;\toffset:8;\tsize:4;\tsigned:1;\nfield:unsigned long u;\toffset:16;\tsize:8;\tsigned:0;\n\
                  field:unsigned char b;\toffset:24;\tsize:1;\tsigned:0;\nfield:__data_loc u16[] v;\toffset:28;\tsize:4;\tsigned:0;\n\
                  field:u8 mac[6];\toffset:32;\tsize:6;\tsigned:0;\nfield:struct page * page;\toffset:40;\tsize:8;\tsigned:0;\n";
    let show = |print: &str| {
        let (formats, id) = formats("x", &made_up("x", fields, print), false);
        assert_eq!(formats.get(id).unwrap().unprintable(&formats, Style::Kernel), None, "{print}");
        let values = [
            ("i", Number(-6i64 as u64)),
            ("u", Number(0xfff0_0000_0001)),
            ("b", Number(200)),
            ("v", Text(&[1, 2, 3, 4, 5])),
            ("mac", Text(&[0, 0x1b, 0xfe, 3, 4, 5])),
            ("page", Number(0xffff_ea00_0000_0040)),
        ];
        printed(&formats, id, &record(&formats, id, &values), Style::Kernel)
    };
    for (print, expected) in [
        (
            r#""%d|%u|%lx|%llu|%hd|%hhu", REC->i, REC->i, REC->u, REC->u, REC->u, REC->b"#,
            "-6|4294967290|fff000000001|281406257233921|1|200",
        ),
        (
            r#""%5d|%-5d|%05d|%+d|% d|%x|%#x|%X|%#X|%o|%#o", 42, 42, -42, 42, 42, 255, 255, 255, 255, 8, 8"#,
            "   42|42   |-0042|+42| 42|ff|0xff|FF|0XFF|10|010",
        ),
        (
            r#""%08lx|%#010x|%.3d|%6.3d|%*d|%-*d|%%|%c%c", 0xabcUL, 255, 5, 5, 4, 7, 4, 7, 'o', 'k'"#,
            "00000abc|0x000000ff|005|   005|   7|7   |%|ok",
        ),
        (r#""%s|%8s|%-8s|%.2s|%.*s", "text", "text", "text", "text", 3, "text""#, "text|    text|text    |te|tex"),
        (r#""%d %d %d", REC->i / 4, REC->i % 4, REC->i >> 1"#, "-1 -2 -3"),
        (r#""%d %u %d", REC->i < 5, REC->i < 5u, REC->i == -6"#, "1 0 1"),
        (r#""%d %d", (u8)REC->i, (s8)REC->b"#, "250 -56"),
        (r#""%d %lld", REC->b << 24, (s64)REC->b << 24"#, "-939524096 3355443200"),
        (r#""%s", REC->i ? REC->b > 100 ? "big" : "small" : "none""#, "big"),
        (r#""%d %d", 1 || 1 / 0, !REC->i && REC->b"#, "1 0"),
        (r#""%zu %d", sizeof(u64), __get_dynamic_array_len(v)"#, "8 6"),
        (r#""%u %u", ((u16 *)__get_dynamic_array(v))[1], *(u8 *)__get_dynamic_array(v)"#, "1027 1"),
        (
            r#""%s|%s", __print_array(__get_dynamic_array(v), 2, sizeof(u16)), __print_hex(REC->mac, 3)"#,
            "{0x201,0x403}|00 1b fe",
        ),
        (r#""%pM|%*phC|%*pbl", REC->mac, 2, REC->mac, 16, REC->mac"#, "00:1b:fe:03:04:05|00:1b|8-9,11-12"),
        (r#""%lu", (unsigned long)((REC->page) - ((struct page *)(0xffffea0000000000UL)))"#, "1"),
        (
            r#""%s|%s", __print_flags(REC->b, " + ", {8, "A"}, {0x40 | 0x80, "B"}), __print_symbolic(REC->i, {-6, "six"})"#,
            "A + B|six",
        ),
        (r#""%pS|%ps|%pS", (void *)0x1010, (char *)0x1010, 0x10"#, "vma_shrink+0x10/0x210|vma_shrink|0x10"),
    ] {
        assert_eq!(show(print), expected, "{print}");
    }
}

#[test]
fn later_formats_replace_earlier_ones_of_their_number_and_common_fields_stay() {
    let (mut formats, id) = formats("vmscan", REAL[3].1, false);
    assert_eq!(id, 57);
    let raw = record(&formats, id, &[("common_pid", Number(-1i64 as u64)), ("common_flags", Number(5))]);
    let common = formats.common().read(&raw).unwrap();
    assert_eq!((common.id, common.pid, common.flags, common.preempt_count), (57, -1, 5, 0));
    assert_eq!(formats.common().read(&raw[..7]), None);
    let other = REAL[3].1.replace("mm_vmscan_lru_isolate", "another");
    formats.add("x", &other, &Place::file("f")).unwrap();
    assert_eq!(formats.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["another"]);
    let without = "name: x\nID: 3\nfield:int a;\toffset:8;\tsize:4;\n";
    let error = Formats::new(false, 8).add("x", without, &Place::file("f")).unwrap_err();
    assert_eq!(error.to_string(), "f: the format does not have the field common_type");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_formats_and_random_records_never_panic(
        index in 0..REAL.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..12),
        raw in proptest::collection::vec(any::<u8>(), 0..300),
        big_endian: bool,
        long_size in prop_oneof![Just(4u8), Just(8u8)],
    ) {
        let mut text = REAL[index].1.as_bytes().to_vec();
        for (place, byte, edit) in edits {
            let at = place.index(text.len());
            match edit {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => drop(text.drain(at..(at + 1 + usize::from(byte) % 40).min(text.len() - 1))),
            }
        }
        let mut formats = Formats::new(big_endian, long_size);
        if let Ok(id) = formats.add(REAL[index].0, &String::from_utf8_lossy(&text), &Place::file("f")) {
            let format = formats.get(id).unwrap();
            for style in [Style::Kernel, Style::TraceCmd] {
                let mut out = Out::default();
                format.print_named(&formats, &raw, style, &mut out);
                // A marker's text in the kernel's style is the marker alone, and may be empty.
                prop_assert!(style == Style::Kernel && REAL[index].0 == "ftrace" || !out.is_empty());
            }
            for slot in 0..mmtwin_event::MAX_SLOTS {
                format.layout.read(&raw, slot);
            }
            format.named_tasks(&raw, big_endian);
        }
    }

    #[test]
    fn random_texts_never_panic(text in "[ -~\n\t]{0,200}", print in "[ -~]{0,200}") {
        let mut formats = Formats::new(false, 8);
        let _ = formats.add("x", &text, &Place::file("f"));
        let field = "field:int a;\toffset:8;\tsize:4;\tsigned:1;\n";
        let id = formats.add("x", &made_up("x", field, &print), &Place::file("f")).unwrap();
        let mut out = Out::default();
        formats.get(id).unwrap().print(&formats, &[0; 12], Style::Kernel, &mut out);
    }
}

use super::args::Piece;
use super::*;
use crate::event::Slots;
use crate::names::UNNAMED;
use crate::value::{Bytes, Shape};
use crate::vocabulary::{Kind, SCHEMAS};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// Fields that the vocabulary does not have.
const UNTYPED: [(&str, &str); 1] = [("sched_skip_cpuset_numa", "mem_allowed")];

fn is_untyped(definition: &Definition) -> bool {
    UNTYPED.iter().any(|(event, _)| *event == definition.name)
}

#[test]
fn every_event_of_the_vocabulary_is_in_an_era() {
    let kinds: Vec<Kind> = definitions().map(|d| d.kind).collect();
    let absent: Vec<&str> = SCHEMAS.iter().filter(|s| !kinds.contains(&s.kind)).map(|s| s.name).collect();
    assert_eq!(absent, [] as [&str; 0]);
}

#[test]
fn an_event_is_in_an_era_once() {
    let mut seen = std::collections::BTreeSet::new();
    for d in definitions() {
        assert!(seen.insert((d.era, d.name)), "{:?} {}", d.era, d.name);
        assert_eq!(d.system, d.kind.schema().unwrap().system);
    }
}

#[test]
fn every_field_is_of_the_vocabulary_and_every_required_field_is_there() {
    for d in definitions() {
        for field in &d.fields {
            let known = field.slot.is_some() || UNTYPED.contains(&(d.name, field.name));
            assert!(known, "{:?} {}.{}", d.era, d.name, field.name);
        }
        for (slot, schema) in d.kind.schema().unwrap().fields.iter().enumerate().filter(|(_, f)| f.required) {
            assert!(d.fields.iter().any(|f| f.slot == Some(slot)), "{:?} {} lacks {}", d.era, d.name, schema.name);
        }
    }
}

#[test]
fn releases_have_their_era() {
    let of = Era::of_release;
    assert_eq!(of("6.1.0-56-cloud"), Some(Era::V6_1));
    assert_eq!(of("2.6.36-rc4-traceonly-v2r2"), Some(Era::V2_6_36));
    assert_eq!(of("2.6.37"), Some(Era::V2_6_36));
    assert_eq!(of("3.0.101"), Some(Era::V2_6_36));
    assert_eq!(of("3.3.0-vanilla"), Some(Era::V3_3));
    assert_eq!(of("3.4"), Some(Era::V3_3));
    assert_eq!(of("3.12.6"), Some(Era::V3_5));
    assert_eq!(of("5.15.0-100-generic"), Some(Era::V3_5));
    assert_eq!(of("6.12.111+deb12-amd64"), Some(Era::V6_12));
    assert_eq!(of("6.18.44"), Some(Era::V6_18));
    assert_eq!(of("7.0"), Some(Era::V6_18));
    assert_eq!(of("2.6.35"), None);
    assert_eq!(of(""), None);
    assert_eq!(of("next-20260101"), None);
    assert_eq!(of("6"), None);
    assert_eq!(of("99999999999.1"), None);
}

#[test]
fn headers_fit_the_long_and_the_page() {
    let text = header_page(Era::V2_6_36, 4, 4096);
    assert!(text.contains("local_t commit;\toffset:8;\tsize:4;\tsigned:1;"));
    assert!(text.contains("char data;\toffset:12;\tsize:4084;\tsigned:1;"));
    assert!(header_page(Era::V6_18, 8, 65536).contains("char data;\toffset:16;\tsize:65520;\tsigned:0;"));
    assert!(header_event(Era::V6_18).contains("\ttime_stamp : type == 31\n"));
    assert!(!header_event(Era::V3_5).contains("time_stamp"));
}

/// A format text, read by the obvious grammar.
#[derive(Debug, PartialEq)]
struct Read {
    name: String,
    /// Declaration, offset, size, sign of the own fields and the common ones.
    fields: Vec<(String, usize, usize, bool)>,
    format: String,
    args: String,
}

fn read_formats(text: &str) -> Vec<Read> {
    let mut formats: Vec<Read> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("name: ") {
            let (fields, format, args) = (Vec::new(), String::new(), String::new());
            formats.push(Read { name: name.to_string(), fields, format, args });
        } else if let Some(field) = line.strip_prefix("\tfield:") {
            let parts: Vec<&str> = field.split(";\t").collect();
            let [declaration, offset, size, signed] = parts[..] else { panic!("{line}") };
            let number = |part: &str, key| part.strip_prefix(key).unwrap().parse::<usize>().unwrap();
            let signed = number(signed.strip_suffix(';').unwrap(), "signed:") == 1;
            let field = (declaration.to_string(), number(offset, "offset:"), number(size, "size:"), signed);
            formats.last_mut().unwrap().fields.push(field);
        } else if let Some(print) = line.strip_prefix("print fmt: \"") {
            let (format, args) = print.split_once('"').unwrap();
            let last = formats.last_mut().unwrap();
            (last.format, last.args) = (format.to_string(), args.to_string());
        } else {
            assert!(line.is_empty() || line == "format:" || line.starts_with("ID: "), "{line}");
        }
    }
    formats
}

#[test]
fn format_texts_follow_the_grammar() {
    for d in definitions() {
        let text = format_text(d.era, d.name, 42).unwrap();
        assert!(text.starts_with(&format!("name: {}\nID: 42\nformat:\n", d.name)));
        let [read] = &read_formats(&text)[..] else { panic!("{text}") };
        let mut end = 0;
        for (declaration, offset, size, _) in &read.fields {
            assert!(*offset >= end && *size > 0, "{declaration} in\n{text}");
            end = offset + size;
        }
        let balanced = |open, close| read.args.matches(open).count() == read.args.matches(close).count();
        assert!(balanced('(', ')') && balanced('{', '}') && read.args.matches('"').count() % 2 == 0, "{text}");
        for used in read.args.split("REC->").skip(1) {
            let name: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            assert!(d.fields.iter().any(|f| f.name == name), "{name} in\n{text}");
        }
    }
    assert_eq!(format_text(Era::V2_6_36, "mm_vmscan_throttled", 1), None);
}

#[test]
fn real_kernels_have_the_same_fields_and_formats() {
    let real = [
        (Era::V6_18, include_str!("../../tests/data/era/formats-6.18.txt")),
        (Era::V6_1, include_str!("../../tests/data/era/formats-6.1.txt")),
    ];
    for (era, text) in real {
        let formats = read_formats(text);
        assert!(formats.len() > 5);
        for kernel in formats {
            let text = format_text(era, &kernel.name, 1).unwrap();
            let ours = read_formats(&text).remove(0);
            assert_eq!(ours.fields, kernel.fields, "{}", kernel.name);
            assert_eq!(ours.format, kernel.format, "{}", kernel.name);
        }
    }
}

/// Values of an event, put into the form a text line has.
#[derive(Clone, Debug, Default)]
struct Line {
    slots: Slots,
    raw: Vec<u8>,
}

impl Line {
    fn values(&self) -> Values<'_> {
        Values { slots: &self.slots, raw: &self.raw }
    }

    fn set_text(&mut self, slot: usize, text: &[u8]) {
        let range = Bytes { start: self.raw.len() as u32, len: text.len() as u32 };
        self.slots.set(slot, range.to_slot());
        self.raw.extend_from_slice(text);
    }

    /// Stores what is printed of a field.
    fn set(&mut self, d: &Definition, slot: usize, text: &str) -> Option<()> {
        let number = |text: &str| match text.strip_prefix('-') {
            Some(digits) => Some(digits.parse::<u64>().ok()?.wrapping_neg()),
            None => text.parse().ok(),
        };
        match d.schema.fields[slot].shape {
            Shape::Str | Shape::Sym | Shape::Gfp => self.set_text(slot, text.as_bytes()),
            Shape::Bool => self.slots.set(slot, matches!(text, "1" | "sync" | "true").into()),
            Shape::Flags(table) => self.slots.set(slot, table.parse_flags(text.as_bytes())?),
            Shape::Name(table) => self.slots.set(slot, table.index_of(text.trim_end().as_bytes())?),
            Shape::Int | Shape::Uint | Shape::Hex | Shape::Dev => self.slots.set(slot, number(text)?),
        }
        Some(())
    }

    /// Reads a line by the print format: texts between the literals are the fields of the arguments.
    fn scan(d: &Definition, line: &str) -> Option<Line> {
        let mut scanned = Line::default();
        let mut rest = line;
        let mut args = d.args.iter();
        let mut letters = None;
        for (i, piece) in d.pieces.iter().enumerate() {
            if let Piece::Literal(literal) = piece {
                rest = rest.strip_prefix(literal)?;
                continue;
            }
            let arg = args.next()?;
            let end = match d.pieces.get(i + 1) {
                Some(Piece::Literal(literal)) => rest.find(literal)?,
                // Conversions side by side are letters.
                Some(_) => 1,
                None => rest.len(),
            };
            let (printed, after) = rest.split_at(end);
            rest = after;
            let text = match piece {
                Piece::Pointer if printed.ends_with("(null)") => "0".to_string(),
                Piece::Hex | Piece::UpperHex | Piece::Pointer => u64::from_str_radix(printed, 16).ok()?.to_string(),
                _ => printed.to_string(),
            };
            let slot = |name: &[u8]| d.schema.slot(name);
            match *arg {
                args::Arg::Page(..) => scanned.set(d, slot(b"page")?, &text)?,
                args::Arg::Pfn(..) => scanned.set(d, slot(b"pfn")?, &text)?,
                args::Arg::Limit(_) => scanned.set(d, slot(b"limit")?, &text)?,
                args::Arg::Major(f) => scanned.slots.set(d.fields[f].slot?, text.parse::<u64>().ok()? << 20),
                args::Arg::Minor(f) => scanned.slots.values[d.fields[f].slot?] |= text.parse::<u64>().ok()?,
                args::Arg::Choice(f, Some(_), _, clear) if clear.len() == 1 => {
                    letters.get_or_insert((d.fields[f].slot?, String::new())).1.push_str(&text);
                }
                args::Arg::Field(f) if matches!(d.schema.fields[d.fields[f].slot?].shape, Shape::Sym) => {
                    scanned.set(d, d.fields[f].slot?, printed)?;
                }
                args::Arg::Field(f)
                | args::Arg::Words(f, _)
                | args::Arg::Symbol(f)
                | args::Arg::Known(f)
                | args::Arg::Bytes(f) => {
                    scanned.set(d, d.fields[f].slot?, &text)?;
                }
                args::Arg::Choice(f, None, ..) => scanned.set(d, d.fields[f].slot?, &text)?,
                _ => {}
            }
        }
        if let Some((slot, letters)) = letters {
            scanned.set_text(slot, letters.as_bytes());
        }
        rest.is_empty().then_some(scanned)
    }
}

#[test]
fn lines_of_real_kernels_are_printed_again() {
    let real = [
        (Era::V6_18, include_str!("../../tests/data/era/lines-6.18.txt")),
        (Era::V6_1, include_str!("../../tests/data/era/lines-6.1.txt")),
    ];
    for (era, text) in real {
        for line in text.lines() {
            let (event, payload) = line.split_once(": ").unwrap();
            let d = find(era, event).unwrap().printed();
            let scanned = Line::scan(&d, payload).unwrap_or_else(|| panic!("{line}"));
            let printed = d.print(scanned.values()).unwrap_or_else(|gap| panic!("{gap}: {line}"));
            assert_eq!(String::from_utf8(printed).unwrap(), payload, "{event}");
            d.encode(1, Common::default(), scanned.values(), &mut |_| 0).unwrap();
        }
    }
}

#[test]
fn old_kernels_print_their_way() {
    let printed = |era, event: &str, line: &str| {
        let d = find(era, event).unwrap();
        let scanned = Line::scan(d, line).unwrap();
        assert_eq!(String::from_utf8(d.print(scanned.values()).unwrap()).unwrap(), line);
    };
    printed(
        Era::V2_6_36,
        "mm_vmscan_lru_isolate",
        "isolate_mode=1 order=0 nr_requested=32 nr_scanned=32 nr_taken=31 contig_taken=0 contig_dirty=0 contig_failed=0",
    );
    printed(
        Era::V2_6_36,
        "mm_vmscan_writepage",
        "page=ffffea0001a2b3c0 pfn=429775 flags=RECLAIM_WB_ANON|RECLAIM_WB_SYNC",
    );
    printed(
        Era::V2_6_36,
        "mm_vmscan_direct_reclaim_begin",
        "order=3 may_writepage=1 gfp_flags=GFP_HIGHUSER_MOVABLE|GFP_NOWARN",
    );
    printed(
        Era::V2_6_36,
        "mm_page_alloc",
        "page=(null) pfn=0 order=9 migratetype=2 gfp_flags=GFP_ATOMIC|GFP_COMP|0x1000000",
    );
    printed(
        Era::V3_3,
        "writeback_start",
        "bdi 8:0: sb_dev 8:3 nr_pages=-1 sync_mode=0 kupdate=1 range_cyclic=1 background=0 reason=try_to_free_pages",
    );
    printed(Era::V3_5, "mm_migrate_pages", "nr_succeeded=32 nr_failed=0 mode=MIGRATE_SYNC_LIGHT reason=cma");
    printed(Era::V6_1, "mm_compaction_deferred", "node=1 zone=DMA32    order=9 order_failed=9 consider=3 limit=64");
    printed(Era::V6_1, "mm_page_alloc", "page=0000000000000000 pfn=0x0 order=9 migratetype=2 gfp_flags=GFP_NOWAIT");
}

#[test]
fn fields_that_a_line_lacks_are_unset_in_its_record() {
    let names = |d: &Definition| d.fields.iter().map(|f| (f.name, f.offset)).collect::<Vec<_>>();
    let wake = find(Era::V6_18, "mm_vmscan_kswapd_wake").unwrap();
    assert_eq!(names(wake), [("nid", 8), ("zid", 12), ("order", 16)]);
    assert_eq!(names(&wake.printed()), [("nid", 8), ("order", 12)]);
    let line = Line::scan(wake, "nid=1 order=2").unwrap();
    let missing = wake.encode(1, Common::default(), line.values(), &mut |_| 0);
    assert_eq!(missing, Err(Gap::Missing { event: "mm_vmscan_kswapd_wake", field: "zid" }));
    let record = wake.printed().encode(1, Common::default(), line.values(), &mut |_| 0).unwrap();
    assert_eq!(record[8..], [1, 0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn records_of_every_era_begin_with_their_common_fields() {
    let common = Common { pid: -2, flags: 0x11, preempt_count: 0x21 };
    for era in Era::ALL {
        let d = find(era, "mm_vmscan_kswapd_sleep").unwrap();
        let line = Line::scan(d, "nid=3").unwrap();
        let record = d.encode(0x1234, common, line.values(), &mut |_| 0).unwrap();
        let fifth: &[u8] = match era {
            Era::V2_6_36 => &[0xff; 4],
            Era::V3_3 | Era::V3_5 => &[0; 4],
            _ => &[],
        };
        assert_eq!(record, [&[0x34, 0x12, 0x11, 0x21, 0xfe, 0xff, 0xff, 0xff][..], fifth, &[3, 0, 0, 0]].concat());
    }
}

#[test]
fn strings_stand_behind_the_fields() {
    let d = find(Era::V6_18, "mm_setup_per_zone_lowmem_reserve").unwrap();
    let line = Line::scan(d, "node_id=1 zone name=DMA upper_zone name=Normal lowmem_reserve_pages=-5").unwrap();
    let record = d.encode(1, Common::default(), line.values(), &mut |_| 0).unwrap();
    assert_eq!(record[12..20], [32, 0, 4, 0, 36, 0, 7, 0]);
    assert_eq!(record[32..], *b"DMA\0Normal\0");
}

#[test]
fn symbols_get_addresses() {
    let d = find(Era::V6_18, "kfree").unwrap();
    let line = Line::scan(d, "call_site=__free_slab+0x87/0xf0 ptr=00000000fca315e2").unwrap();
    let mut asked = Vec::new();
    let mut symbols = |name: &[u8]| {
        asked.push(name.to_vec());
        0xffff_ffff_8100_0087
    };
    let record = d.encode(1, Common::default(), line.values(), &mut symbols).unwrap();
    assert_eq!(record[8..16], 0xffff_ffff_8100_0087u64.to_le_bytes());
    assert_eq!(asked, [b"__free_slab+0x87/0xf0".to_vec()]);
    let old = find(Era::V2_6_36, "kfree").unwrap();
    let line = Line::scan(old, "call_site=ffffffff810fc9a7 ptr=ffff88007c3b4f00").unwrap();
    let record = old.encode(1, Common::default(), line.values(), &mut |_| unreachable!()).unwrap();
    assert_eq!(record[16..24], 0xffff_ffff_810f_c9a7u64.to_le_bytes());
}

#[test]
fn gaps_are_reported() {
    let d = find(Era::V3_5, "mm_migrate_pages").unwrap();
    let mut line = Line::scan(d, "nr_succeeded=1 nr_failed=0 mode=MIGRATE_SYNC reason=compaction").unwrap();
    line.set(d, d.schema.slot(b"reason").unwrap(), "demotion").unwrap();
    let gap = d.print(line.values()).unwrap_err();
    assert_eq!(gap.to_string(), "mm_migrate_pages: field reason has no word \"demotion\" in this kernel");
    line.slots.set(d.schema.slot(b"reason").unwrap(), UNNAMED | 77);
    assert!(d.print(line.values()).unwrap().ends_with(b"reason=0x4d"));
    let d = find(Era::V6_12, "sched_migrate_task").unwrap();
    let line = Line::scan(d, "comm=0123456789abcdef pid=1 prio=1 orig_cpu=0 dest_cpu=1").unwrap();
    let gap = d.encode(1, Common::default(), line.values(), &mut |_| 0).unwrap_err();
    assert_eq!(gap, Gap::TooLong { event: "sched_migrate_task", field: "comm", length: 16 });
}

/// Any number that a field of the event may hold and a line may show.
fn any_line(d: &'static Definition) -> impl Strategy<Value = Line> {
    let numbers = prop::collection::vec((any::<u64>(), 0u32..64, "[a-z0-9/:._-]{1,15}"), d.schema.fields.len());
    numbers.prop_map(move |numbers| {
        let mut line = Line::default();
        for field in &d.fields {
            let Some(slot) = field.slot else { continue };
            let (number, shift, text) = &numbers[slot];
            let number = number >> shift;
            match d.schema.fields[slot].shape {
                Shape::Str if field.form == Form::Number => {
                    line.set_text(slot, [&b"Mas   "[..], b" f bdB"][number as usize % 2])
                }
                Shape::Str => line.set_text(slot, text.as_bytes()),
                Shape::Sym => line.set_text(slot, format!("{number:x}").as_bytes()),
                Shape::Gfp => line.set_text(slot, gfp_text(d.era, number & 0x1ff_ffff).as_bytes()),
                Shape::Bool => line.slots.set(slot, number & 1),
                Shape::Name(table) => {
                    let words = &field.words.unwrap().entries;
                    let word = words[number as usize % words.len()].1;
                    line.slots.set(slot, table.index_of(word.as_bytes()).unwrap());
                }
                Shape::Flags(_) => line.slots.set(slot, number & 0x1f),
                Shape::Dev => line.slots.set(slot, number & 0xffff_ffff),
                Shape::Uint if field.name == "index" && d.system == "filemap" => line.slots.set(slot, number << 12),
                _ => {
                    let bits = u32::from(field.size) * 8;
                    let kept = number << (64 - bits);
                    line.slots.set(
                        slot,
                        if field.signed { (kept as i64 >> (64 - bits)) as u64 } else { kept >> (64 - bits) },
                    );
                }
            }
        }
        line
    })
}

/// Reads a field of a record at the place that the format text names.
fn read_field(read: &Read, record: &[u8], name: &str) -> (u64, Vec<u8>) {
    let is = |declaration: &str| declaration.rsplit(' ').next().unwrap().split('[').next() == Some(name);
    let (declaration, offset, size, signed) = read.fields.iter().find(|(d, ..)| is(d)).unwrap();
    let bytes = &record[*offset..offset + size];
    let mut number = bytes.iter().take(8).rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
    if *signed && *size < 8 && number >> (size * 8 - 1) == 1 {
        number |= u64::MAX << (size * 8);
    }
    let text = match declaration.starts_with("__data_loc") {
        true => &record[number as usize & 0xffff..][..(number >> 16 & 0xffff) as usize],
        false => bytes,
    };
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    (number, text[..end].to_vec())
}

fn check_record(d: &Definition, line: &Line) -> Result<(), TestCaseError> {
    let record = d.encode(9, Common::default(), line.values(), &mut |_| unreachable!()).unwrap();
    let read = read_formats(&d.format_text(9)).remove(0);
    prop_assert!(record.len() >= read.fields.iter().map(|f| f.1 + f.2).max().unwrap());
    for field in &d.fields {
        let slot = field.slot.unwrap();
        let value = line.slots.values[slot];
        let text = Bytes::from_slot(value).of(&line.raw);
        let (number, chars) = read_field(&read, &record, field.name);
        match d.schema.fields[slot].shape {
            Shape::Str if field.form == Form::Number => {
                prop_assert_eq!(number, if text[0] == b'M' { 0xb } else { 0x70 })
            }
            Shape::Str => prop_assert_eq!(&chars[..], text),
            Shape::Sym => prop_assert_eq!(format!("{number:x}").into_bytes(), text),
            Shape::Gfp => prop_assert_eq!(gfp_text(d.era, number).into_bytes(), text),
            Shape::Name(table) => prop_assert_eq!(field.words.unwrap().text(number), table.words[value as usize]),
            _ if field.name == "index" && d.system == "filemap" => prop_assert_eq!(number, value >> 12),
            _ => prop_assert_eq!(number, value, "{} {}", d.name, field.name),
        }
    }
    // A reader of the printed line has the same record.
    let printed = String::from_utf8(d.print(line.values()).unwrap()).unwrap();
    let shown = d.printed();
    let again = Line::scan(&shown, &printed);
    prop_assert!(again.is_some(), "{}: {}", d.name, printed);
    prop_assert_eq!(String::from_utf8(shown.print(again.unwrap().values()).unwrap()).unwrap(), printed);
    Ok(())
}

#[test]
fn every_event_of_every_era_makes_a_record_and_a_line() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for d in definitions().filter(|d| !is_untyped(d)) {
        for _ in 0..4 {
            let line = any_line(d).new_tree(&mut runner).unwrap().current();
            check_record(d, &line).unwrap_or_else(|e| panic!("{:?} {}: {e}", d.era, d.name));
        }
    }
}

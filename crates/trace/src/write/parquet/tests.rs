//! Tables read back with the Parquet reader, against the events they were made of.

use super::*;
use crate::input::{InputFile, Options};
use crate::write::{Columns, TextStyle, TextWriter};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use mmtwin_event::Fields;
use mmtwin_event::vocabulary as v;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::path::Path;

/// Columns by name, each value as text; `-` is a value that is not there.
type Columned = BTreeMap<String, Vec<String>>;

fn value(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "-".into();
    }
    let as_text = |a: &dyn Array, row| a.as_string::<i32>().value(row).to_string();
    match array.data_type() {
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Binary => format!("{:?}", array.as_binary::<i32>().value(row)),
        DataType::Utf8 => as_text(array, row),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            as_text(dictionary.values(), dictionary.keys().value(row) as usize)
        }
        other => panic!("{other}"),
    }
}

fn read(file: &Path) -> Columned {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    let mut columns = Columned::new();
    for batch in builder.build().unwrap() {
        let batch: RecordBatch = batch.unwrap();
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            let values = (0..batch.num_rows()).map(|row| value(array, row));
            columns.entry(field.name().clone()).or_default().extend(values);
        }
    }
    columns
}

fn read_all(directory: &Path) -> BTreeMap<String, Columned> {
    let entries = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path());
    entries.map(|p| (p.file_stem().unwrap().to_string_lossy().into_owned(), read(&p))).collect()
}

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vmscan-v6.dat");

fn convert(input: &str, to: &Path) -> Vec<(String, u64)> {
    let mut file = InputFile::open(input).unwrap();
    let input = file.input(&Options::default()).unwrap();
    let mut writer = ParquetWriter::create(to, input.formats.clone(), false, 0o600).unwrap();
    input.read(&mut writer).unwrap();
    writer.close().unwrap()
}

/// Fields of some kinds, as the typed events say them.
#[derive(Default)]
struct Typed(BTreeMap<&'static str, Vec<Vec<String>>>);

impl Sink for Typed {
    fn event(&mut self, e: &Event<'_>) {
        let (name, values) = match e.kind {
            Kind::MmVmscanLruShrinkInactive => {
                let t = e.typed::<v::MmVmscanLruShrinkInactive>();
                let flags = mmtwin_event::names::RECLAIM_FLAGS.flags_text(t.flags.0.into());
                ("mm_vmscan_lru_shrink_inactive", vec![t.nid.to_string(), t.nr_scanned.to_string(), flags])
            }
            Kind::MmVmscanMemcgReclaimEnd => {
                let t = e.typed::<v::MmVmscanMemcgReclaimEnd>();
                ("mm_vmscan_memcg_reclaim_end", vec![t.nr_reclaimed.to_string(), e.pid.to_string(), e.cpu.to_string()])
            }
            _ => return,
        };
        let row = [vec![e.ts.to_string()], values].concat();
        self.0.entry(name).or_default().push(row);
    }
}

#[test]
fn tables_hold_what_the_events_say() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("out.parquet");
    let files = convert(SAMPLE, &to);
    assert!(!root.path().join("out.parquet.partial").exists());
    let tables = read_all(&to);
    let mut typed = Typed::default();
    let mut file = InputFile::open(SAMPLE).unwrap();
    let outcome = file.input(&Options::default()).unwrap().read(&mut typed).unwrap();
    let events = files.iter().filter(|f| f.0 != "tasks.parquet" && f.0 != "lost.parquet").map(|f| f.1).sum::<u64>();
    assert_eq!(events, outcome.events);
    for (name, columns) in [
        ("mm_vmscan_lru_shrink_inactive", ["ts", "nid", "nr_scanned", "field_flags"]),
        ("mm_vmscan_memcg_reclaim_end", ["ts", "nr_reclaimed", "pid", "cpu"]),
    ] {
        let table = &tables[name];
        let rows: Vec<Vec<String>> =
            (0..table["ts"].len()).map(|row| columns.iter().map(|c| table[*c][row].clone()).collect()).collect();
        assert!(!rows.is_empty());
        assert_eq!(rows, typed.0[name], "{name}");
    }
}

#[test]
fn text_and_binary_give_the_same_tables() {
    let root = tempfile::tempdir().unwrap();
    let lines = root.path().join("trace.txt");
    let mut file = InputFile::open(SAMPLE).unwrap();
    let input = file.input(&Options::default()).unwrap();
    let columns = Columns::of_release(input.source.kernel.as_deref());
    let style = TextStyle::Kernel(columns, None);
    let mut writer = TextWriter::new(File::create(&lines).unwrap(), "trace.txt", style, input.formats.clone());
    input.read(&mut writer).unwrap();
    writer.close().unwrap();
    convert(SAMPLE, &root.path().join("binary"));
    convert(&lines.to_string_lossy(), &root.path().join("text"));
    let (binary, text) = (read_all(&root.path().join("binary")), read_all(&root.path().join("text")));
    let (mut compared, mut words) = (0, 0);
    for (name, table) in text.iter().filter(|t| t.0 != "lost") {
        assert_eq!(table.keys().collect::<Vec<_>>(), binary[name].keys().collect::<Vec<_>>(), "{name}");
        for (column, values) in table {
            // Lines have microseconds and no thread group; they omit fields and derive others.
            let same = |(a, b): (&String, &String)| a == b || a == "-";
            if column != "ts" {
                assert!(values.iter().zip(&binary[name][column]).all(same), "{name} {column}");
                compared += values.iter().filter(|v| *v != "-").count();
                words += values.iter().filter(|v| v.starts_with("GFP_")).count();
            }
        }
    }
    assert!(compared > 1000 && words > 0, "{compared} {words}");
}

#[test]
fn batches_of_one_table_have_the_rows_of_its_file() {
    let root = tempfile::tempdir().unwrap();
    let files = convert(SAMPLE, &root.path().join("out"));
    let (name, mut batches) = ("mm_vmscan_lru_shrink_inactive", Vec::new());
    let mut take = |rows| batches.push(rows);
    let mut file = InputFile::open(SAMPLE).unwrap();
    let input = file.input(&Options::default()).unwrap();
    let mut sink = BatchSink::new(name, input.formats.clone(), &mut take);
    input.read(&mut sink).unwrap();
    let counted = sink.close().unwrap();
    let counted: Vec<(String, u64)> =
        counted.into_iter().map(|(name, rows)| (format!("{name}.parquet"), rows)).collect();
    assert_eq!(counted.iter().collect::<std::collections::BTreeSet<_>>(), files.iter().collect());
    let written = read(&root.path().join("out").join(format!("{name}.parquet")));
    let batch: &RecordBatch = &batches[0];
    let ts: Vec<String> = (0..batch.num_rows()).map(|row| value(batch.column(0).as_ref(), row)).collect();
    assert_eq!((batches.len(), &ts), (1, &written["ts"]));
    assert_eq!(batch.schema().metadata().get("mmtwin.event").map(String::as_str), Some(name));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let root = tempfile::tempdir().unwrap();
    let files = [root.path().join("a"), root.path().join("b")].map(|to| convert(SAMPLE, &to));
    assert_eq!(files[0], files[1]);
    for (file, _) in &files[0] {
        assert!(
            fs::read(root.path().join("a").join(file)).unwrap() == fs::read(root.path().join("b").join(file)).unwrap()
        );
    }
}

fn line<'a>(name: &'a str, raw: &'a [u8], ts: u64) -> Event<'a> {
    Event {
        ts,
        cpu: 1,
        pid: 7,
        tgid: 0,
        flags: 1,
        preempt_count: 2,
        kind: Kind::Other,
        id: 0,
        comm: b"a b",
        name,
        raw,
        fields: Fields::Untyped,
    }
}

#[test]
fn everything_else_of_a_stream_has_its_table() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("out");
    let mut w = ParquetWriter::create(&to, None, false, 0o600).unwrap();
    w.start(&Source { name: "x".into(), kernel: Some("6.1".into()), ..Source::default() });
    w.task(&Task { pid: 9, tgid: 8, comm: b"worker", cgroup: Some("/web") });
    let names = ["pgfault".to_string(), "max".to_string()];
    w.counters(&CounterRow { source: "vmstat", key: "", at: 5, names: &names, values: &[Some(u64::MAX), None] });
    w.event(&line("tasks", b"x=1", 10));
    w.event(&line("../Tasks", b"x=\xff", 11));
    w.event(&Event { pid: 9, comm: b"<...>", ..line("tasks", b"", 12) });
    w.lost(3, Some(4), 13);
    w.lost(Outcome::SOME_CPU, None, 14);
    w.call(&Call { function: "vmalloc", cpu: 2, nanoseconds: 1500 });
    w.finish();
    let files = w.close().unwrap();
    let named: Vec<_> = files.iter().map(|(n, rows)| (n.as_str(), *rows)).collect();
    let expected = [
        (".._Tasks.parquet", 1),
        ("calls.parquet", 1),
        ("counters.vmstat.parquet", 2),
        ("lost.parquet", 2),
        ("tasks.2.parquet", 2),
        ("tasks.parquet", 1),
    ];
    assert_eq!(named, expected);
    let tables = read_all(&to);
    let column = |table: &str, column: &str| tables[table][column].join(" ");
    assert_eq!(column("tasks.2", "payload"), "x=1 ");
    assert_eq!((column("tasks.2", "comm"), column("tasks.2", "tgid")), ("a b worker".into(), "- 8".into()));
    assert_eq!(column("counters.vmstat", "value"), format!("{} -", u64::MAX));
    assert_eq!(column("counters.vmstat", "name"), "pgfault max");
    assert_eq!((column("lost", "cpu"), column("lost", "events")), ("3 -".into(), "4 -".into()));
    assert_eq!((column("calls", "duration"), column("tasks", "cgroup")), ("1500".into(), "/web".into()));
    let file = File::open(to.join("tasks.2.parquet")).unwrap();
    let metadata = ArrowReaderMetadata::load(&file, Default::default()).unwrap();
    let notes = metadata.metadata().file_metadata().key_value_metadata().unwrap();
    let note = |key: &str| notes.iter().find(|n| n.key == key).and_then(|n| n.value.clone());
    assert_eq!(note("mmtwin.event").as_deref(), Some("tasks"));
    assert_eq!(note("mmtwin.kernel").as_deref(), Some("6.1"));
    assert_eq!(note("mmtwin.schema_version"), Some(SCHEMA_VERSION.to_string()));
}

#[test]
fn records_without_type_have_the_fields_of_their_format() {
    let text = "name: other\nID: 700\nformat:\n\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\
\tfield:char comm[4];\toffset:12;\tsize:4;\tsigned:0;\n\
\tfield:unsigned short Pid;\toffset:16;\tsize:2;\tsigned:0;\n\
\tfield:__data_loc char[] path;\toffset:18;\tsize:4;\tsigned:0;\n\n\
print fmt: \"%d\", REC->pid\n";
    let (common, _) = text.split_once("\tfield:int pid").unwrap();
    let wakeup = common.replace("other", "sched_wakeup").replace("700", "702")
        + "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->pid\n";
    let mut formats = Formats::new(false, 8);
    formats.add("test", text, &crate::Place::file("format")).unwrap();
    formats.add("sched", &wakeup, &crate::Place::file("format")).unwrap();
    let mut record = vec![0xbc, 2, 0, 0, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, b'a', b'b', 0, b'c', 5, 0];
    record.extend((22u32 | 3 << 16).to_le_bytes());
    record.extend(b"/x\0");
    let root = tempfile::tempdir().unwrap();
    let mut w = ParquetWriter::create(&root.path().join("out"), Some(Arc::new(formats)), false, 0o600).unwrap();
    let event = Event { id: 700, comm: b"", ..line("other", &record, 1) };
    w.event(&event);
    // A wakeup tells the name of task 7.
    let woken = [&record[..8], b"woken\0\0\0\0\0\0\0\0\0\0\0", &[7, 0, 0, 0, 120, 0, 0, 0]].concat();
    w.event(&Event { id: 702, name: "sched_wakeup", raw: &woken, ..event });
    w.event(&Event { raw: &record[..17], ..event });
    w.event(&Event { id: 701, name: "unknown", ..event });
    w.close().unwrap();
    let tables = read_all(&root.path().join("out"));
    let column = |column: &str| tables["other"][column].join(" ");
    assert_eq!((column("pid"), column("field_pid")), ("7 7".into(), "-1 -1".into()));
    assert_eq!((column("comm"), column("field_comm")), ("- woken".into(), "ab ab".into()));
    assert_eq!((column("field_field_Pid"), column("path")), ("5 -".into(), "/x -".into()));
    assert_eq!((tables["unknown"]["id"].join(" "), tables["unknown"]["record"].len()), ("701".into(), 1));
}

#[test]
fn row_groups_are_written_before_memory_is_full() {
    let root = tempfile::tempdir().unwrap();
    let mut w = ParquetWriter::create(&root.path().join("out"), None, false, 0o600).unwrap();
    let payload = vec![b'x'; 4 << 10];
    let mut most = 0;
    for ts in 0..12_000 {
        w.event(&line(if ts % 3 == 0 { "rare" } else { "often" }, &payload, ts));
        most = most.max(w.bytes);
        assert_eq!(w.bytes, w.tables.iter().map(|t| t.bytes).sum::<usize>());
    }
    assert!(most > BUDGET - (1 << 20) && most <= BUDGET + (1 << 13), "{most}");
    for ts in 0..ROWS as u64 + 1 {
        w.event(&line("short", b"", ts));
    }
    assert_eq!(w.close().unwrap()[2], ("short.parquet".into(), ROWS as u64 + 1));
    let rows = |name: &str| read(&root.path().join("out").join(name))["ts"].clone();
    let expected = |keep: fn(&u64) -> bool| (0..12_000).filter(keep).map(|t| t.to_string()).collect::<Vec<_>>();
    assert_eq!(rows("often.parquet"), expected(|t| t % 3 != 0));
    assert_eq!(rows("rare.parquet"), expected(|t| t % 3 == 0));
}

#[test]
fn only_directories_of_parquet_files_are_replaced_and_only_when_asked() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("out");
    let mut w = ParquetWriter::create(&to, None, false, 0o600).unwrap();
    w.event(&line("a", b"", 1));
    w.close().unwrap();
    assert!(ParquetWriter::create(&to, None, false, 0o600).is_err());
    let mut w = ParquetWriter::create(&to, None, true, 0o600).unwrap();
    w.event(&line("a", b"", 1));
    drop(w);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "nothing half-written stays");
    let mut w = ParquetWriter::create(&to, None, true, 0o600).unwrap();
    w.event(&line("a", b"", 1));
    w.close().unwrap();
    assert!(to.join("a.parquet").exists());
    fs::write(to.join("thesis.txt"), "years of work").unwrap();
    assert!(ParquetWriter::create(&to, None, true, 0o600).is_err());
    assert!(to.join("thesis.txt").exists());
    assert!(ParquetWriter::create(Path::new("/"), None, true, 0o600).is_err());
}

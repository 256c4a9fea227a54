//! The pages of a trace.dat as a tracefs directory give what the trace.dat gives; whatever is missing is named.

use crate::dat::{self, Content, DatFile};
use crate::input::{InputFile, Options};
use crate::ring::encode::PageWriter;
use crate::ring::{PageLayout, Pages};
use crate::{Error, Outcome};
use mmtwin_event::era::{Era, header_page};
use mmtwin_event::{Event, Sink, Task};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const V6: &[u8] = include_bytes!("../../../tests/data/vmscan-v6.dat");

fn put(path: PathBuf, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn raw(top: &Path, cpu: u32) -> PathBuf {
    top.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"))
}

/// Name of the event of a format text.
fn event_of(text: &str) -> &str {
    text.lines().next().unwrap().strip_prefix("name: ").unwrap()
}

/// Lays out a trace.dat as the directory it was recorded from.
fn lay_out(top: &Path, dat: &DatFile<'_>) {
    put(top.join("events/header_page"), &dat.meta.header_page);
    put(top.join("events/header_event"), &dat.meta.header_event);
    for format in &dat.meta.formats {
        let path = top.join("events").join(&format.system).join(event_of(&format.text)).join("format");
        put(path, &format.text);
    }
    put(top.join("saved_cmdlines"), &dat.meta.cmdlines);
    put(top.join("printk_formats"), &dat.meta.printk);
    put(top.join("kallsyms"), &dat.meta.kallsyms);
    put(top.join("trace_clock"), "local [mono]\n");
    for cpu in 0..dat.meta.cpus {
        put(raw(top, cpu), "");
    }
    for buffer in &dat.buffers {
        let Content::Pages(cpus) = &buffer.content else { panic!("pages") };
        for cpu in cpus {
            let mut pages: Box<dyn Pages<'_> + Send> = cpu.stored.pages(buffer.page_size as usize);
            let mut bytes = Vec::new();
            while let Some(chunk) = pages.next_chunk().unwrap() {
                bytes.extend_from_slice(&chunk);
            }
            put(raw(top, cpu.cpu), bytes);
        }
    }
}

/// A directory of the sample recording.
fn sample() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let top = root.path().join("t");
    lay_out(&top, &dat::open("v6", V6).unwrap());
    (root, top)
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<(u64, u32, i32, String, Vec<u8>)>,
    tasks: Vec<(i32, i32, Vec<u8>)>,
    lost: Vec<(u32, Option<u64>)>,
    rows: usize,
}

impl Sink for Seen {
    fn task(&mut self, task: &Task<'_>) {
        self.tasks.push((task.pid, task.tgid, task.comm.to_vec()));
    }
    fn event(&mut self, event: &Event<'_>) {
        self.events.push((event.ts, event.cpu, event.pid, event.name.into(), event.raw.to_vec()));
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, _at: u64) {
        self.lost.push((cpu, events));
    }
    fn counters(&mut self, _row: &mmtwin_event::CounterRow<'_>) {
        self.rows += 1;
    }
}

fn read(path: &Path) -> Result<(Seen, Outcome), Error> {
    let mut file = InputFile::open(path.to_str().unwrap())?;
    let mut seen = Seen::default();
    let outcome = file.input(&Options::default())?.read(&mut seen)?;
    Ok((seen, outcome))
}

fn refused(path: &Path) -> String {
    read(path).map(drop).expect_err("it was read").to_string()
}

fn warnings(outcome: &Outcome) -> Vec<String> {
    outcome.warnings.list().iter().map(ToString::to_string).collect()
}

#[test]
fn the_pages_of_a_trace_dat_give_what_it_gives() {
    let (root, top) = sample();
    let file = root.path().join("v6.dat");
    fs::write(&file, V6).unwrap();
    let (expected, _) = read(&file).unwrap();
    let (found, outcome) = read(&top).unwrap();
    assert!(found.events.len() > 40 && !found.tasks.is_empty());
    assert_eq!((found, warnings(&outcome)), (expected, vec![]));
    let mut file = InputFile::open(top.to_str().unwrap()).unwrap();
    let input = file.input(&Options::default()).unwrap();
    assert_eq!(input.source.clock.as_deref(), Some("mono"));
    assert_eq!(input.source.cpus, dat::open("v6", V6).unwrap().meta.cpus);
}

#[test]
fn formats_may_lie_elsewhere() {
    let (root, top) = sample();
    let expected = read(&top).unwrap().0;
    fs::rename(top.join("events"), top.join("formats")).unwrap();
    assert_eq!(read(&top).unwrap().0, expected);
    for entry in fs::read_dir(top.join("formats")).unwrap().flatten() {
        fs::rename(entry.path(), top.join(entry.file_name())).unwrap();
    }
    fs::remove_dir(top.join("formats")).unwrap();
    assert_eq!(read(&top).unwrap().0, expected, "beside per_cpu");
    // Of an instance, in the directory of the whole tracefs.
    let instance = root.path().join("t/instances/lab");
    fs::create_dir_all(&instance).unwrap();
    fs::rename(top.join("per_cpu"), instance.join("per_cpu")).unwrap();
    assert_eq!(read(&instance).unwrap().0, expected);
}

#[test]
fn what_is_missing_is_named() {
    let (_root, top) = sample();
    let header = top.join("events/header_page");
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, "").unwrap();
    let message = refused(&top);
    assert!(message.contains("events/header_page: empty; tracefs reports a size of 0"), "{message}");
    fs::write(&header, &text[..32]).unwrap();
    let message = refused(&top);
    assert!(message.contains("events/header_page: header_page has no field `data`"), "{message}");
    assert!(message.contains("with the first read only"), "{message}");
    fs::remove_file(&header).unwrap();
    let message = refused(&top);
    assert!(message.contains("events/header_page: missing"), "{message}");
    fs::remove_dir_all(top.join("events")).unwrap();
    put(header, text);
    let message = refused(&top);
    assert!(message.contains("t: no format (events/SYSTEM/EVENT/format) here"), "{message}");
}

#[test]
fn a_damaged_format_is_left_out_with_its_file() {
    let (_root, top) = sample();
    let event = read(&top).unwrap().0.events[0].3.clone();
    fs::write(top.join("events/vmscan").join(&event).join("format"), "name: x\n").unwrap();
    let (seen, outcome) = read(&top).unwrap();
    assert!(seen.events.iter().any(|e| e.3 == "unknown") && seen.events.iter().all(|e| e.3 != event));
    let named = format!("events/vmscan/{event}/format");
    assert!(warnings(&outcome).iter().any(|w| w.contains(&named) && w.contains("skipped")), "{outcome:?}");
}

#[test]
fn partial_and_empty_page_files() {
    let (_root, top) = sample();
    let (whole, _) = read(&top).unwrap();
    let cpu = whole.events[0].1;
    let bytes = fs::read(raw(&top, cpu)).unwrap();
    fs::write(raw(&top, cpu), [&bytes[..], &[1; 100]].concat()).unwrap();
    let (seen, outcome) = read(&top).unwrap();
    assert_eq!(seen, whole);
    let [warning] = &warnings(&outcome)[..] else { panic!("{outcome:?}") };
    let end = bytes.len();
    let place = format!("per_cpu/cpu{cpu}/trace_pipe_raw: offset {end:#x}: the last page is incomplete");
    assert!(warning.contains(&place), "{warning}");
    for entry in fs::read_dir(top.join("per_cpu")).unwrap().flatten() {
        fs::write(entry.path().join("trace_pipe_raw"), "").unwrap();
    }
    let (seen, outcome) = read(&top).unwrap();
    assert!(seen.events.is_empty() && warnings(&outcome)[0].contains("every per_cpu/cpuN/trace_pipe_raw is empty"));
    fs::write(raw(&top, cpu), &bytes[..100]).unwrap();
    let message = refused(&top);
    assert!(message.contains(&format!("cpu{cpu}/trace_pipe_raw: its 100 bytes are less than one page")), "{message}");
}

#[test]
fn the_text_of_a_directory_without_pages_is_its_trace() {
    let (_root, top) = sample();
    for entry in fs::read_dir(top.join("per_cpu")).unwrap().flatten() {
        fs::write(entry.path().join("trace_pipe_raw"), "").unwrap();
        fs::write(entry.path().join("trace"), "# tracer: nop\n").unwrap();
    }
    let line = "# tracer: nop\n  kswapd0-65  [000] ....  70.5: mm_vmscan_kswapd_sleep: nid=0\n";
    fs::write(top.join("trace"), line).unwrap();
    assert_eq!(read(&top).unwrap().0.events.len(), 1);
}

#[test]
fn snapshots_may_lie_beside_the_pages_and_pages_below() {
    let (root, top) = sample();
    let expected = read(&top).unwrap().0;
    put(top.join("trace"), "# tracer: nop\n");
    for moment in ["before", "after"] {
        put(top.join(moment).join("vmstat"), "pgfault 1\n");
    }
    for path in [&top, root.path()] {
        let (seen, outcome) = read(path).unwrap();
        assert_eq!((seen.events.len(), seen.rows), (expected.events.len(), 2));
        assert_eq!(warnings(&outcome), [""; 0]);
    }
}

#[test]
fn thread_groups_and_losses_are_those_of_the_kernel() {
    let (_root, top) = sample();
    let pid = read(&top).unwrap().0.tasks[0].0;
    put(top.join("saved_tgids"), format!("{pid} 4711\nnonsense\n"));
    put(top.join("per_cpu/cpu0/stats"), "entries: 5\noverrun: 30\ncommit overrun: 0\ndropped events: 1\n");
    let (seen, outcome) = read(&top).unwrap();
    assert_eq!((seen.tasks[0].1, seen.tasks[1].1), (4711, 0));
    assert_eq!((seen.lost, outcome.lost_total()), (vec![(0, Some(31))], (31, 0)));
}

/// Pages of one CPU, every record with the id 1.
fn pages(layout: PageLayout, n: u64) -> Vec<u8> {
    let (mut writer, mut bytes) = (PageWriter::new(layout), Vec::new());
    for i in 0..n {
        let mut record = [0; 12];
        record[..2].copy_from_slice(&if layout.big_endian { 1u16.to_be_bytes() } else { 1u16.to_le_bytes() });
        bytes.extend_from_slice(writer.push(1000 + i, &record).unwrap().unwrap_or_default());
    }
    while let Some(page) = writer.flush() {
        bytes.extend_from_slice(page);
    }
    bytes
}

#[test]
fn byte_order_and_page_size_follow_from_the_directory() {
    let sample = dat::open("v6", V6).unwrap();
    let format = sample.meta.formats.iter().find(|f| event_of(&f.text) == "mm_vmscan_kswapd_sleep").unwrap();
    let lines = |line: &str| if line.starts_with("ID:") { "ID: 1".to_string() } else { line.to_string() };
    let text = format.text.lines().map(lines).collect::<Vec<_>>().join("\n");
    for big_endian in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let top = root.path();
        let layout = PageLayout { big_endian, ..PageLayout::little_endian_64(8192) };
        put(top.join("events/header_page"), header_page(Era::V6_18, 8, 8192));
        put(top.join("events/vmscan/mm_vmscan_kswapd_sleep/format"), &text);
        put(raw(top, 3), pages(layout, 2000));
        let (described, outcome) = read(top).unwrap();
        assert_eq!((described.events.len(), warnings(&outcome)), (2000, vec![]), "{big_endian}");
        assert!(described.events.iter().all(|e| e.1 == 3 && e.3 == "mm_vmscan_kswapd_sleep"));
        // The size of the buffer goes before what the text describes.
        put(top.join("events/header_page"), header_page(Era::V6_18, 8, 4096));
        put(top.join("buffer_subbuf_size_kb"), "8\n");
        assert_eq!(read(top).unwrap().0, described);
        put(top.join("buffer_subbuf_size_kb"), "eight\n");
        assert!(refused(top).contains("buffer_subbuf_size_kb: expected the size of a sub-buffer in KiB, not `eight`"));
        put(top.join("buffer_subbuf_size_kb"), "0\n");
        assert!(refused(top).contains("impossible page layout"));
    }
}

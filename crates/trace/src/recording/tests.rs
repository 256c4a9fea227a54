//! Round trips through a recording, and recordings cut at every byte.

use super::*;
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{Cost, Exit, Losses};
use mmtwin_event::{CounterRow, Event, Kind};
use std::collections::BTreeMap;
use tempfile::TempDir;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
\tfield: char data;\toffset:16;\tsize:112;\tsigned:0;\n";

const FORMAT: &str = "name: mm_vmscan_kswapd_sleep\nID: 640\nformat:\n\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
\tfield:int nid;\toffset:8;\tsize:4;\tsigned:1;\n\n\
print fmt: \"nid=%d\", REC->nid\n";

const SUB_BUFFER: usize = 128;

/// A sub-buffer of three events, 5 ns apart.
fn page(time: u64, pid: u32) -> Vec<u8> {
    let mut page = time.to_le_bytes().to_vec();
    page.extend(48u64.to_le_bytes());
    for nid in 0..3u32 {
        page.extend((5 << 5 | 3u32).to_le_bytes());
        page.extend(640u32.to_le_bytes());
        page.extend(pid.to_le_bytes());
        page.extend(nid.to_le_bytes());
    }
    page.resize(SUB_BUFFER, 0);
    page
}

fn row(key: &str, counters: &[(&str, Option<u64>)]) -> Row {
    let mut row = Row::new(key);
    counters.iter().for_each(|(n, v)| row.push(*n, *v));
    row
}

fn manifest() -> Manifest {
    let tracing = Tracing {
        sub_buffer: SUB_BUFFER as u64,
        buffer: 1 << 20,
        big_endian: false,
        long_size: 8,
        cpus: vec![0, 1],
        events: vec!["vmscan:mm_vmscan_kswapd_sleep".into()],
        stacks: Vec::new(),
    };
    Manifest {
        schema_version: SCHEMA_VERSION,
        arm: "host".into(),
        tool: "mmtwin test".into(),
        clock: "mono".into(),
        start: 90,
        tracing: Some(tracing),
        ..Manifest::default()
    }
}

pub(super) fn end() -> End {
    End {
        schema_version: SCHEMA_VERSION,
        end: 500,
        losses: vec![Losses { cpu: 0, ..Losses::default() }, Losses { cpu: 1, overrun: 7, ..Losses::default() }],
        exit: Some(Exit::Code(3)),
        cost: Cost { cpu_time: 11, page_bytes: 384, ..Cost::default() },
        ..End::default()
    }
}

/// A recording of two CPUs with three pages, two sources of counters and two tasks.
pub(super) fn written(end: Option<End>) -> (TempDir, PathBuf) {
    written_so(end, false)
}

/// The same, its pages in frames or as they are.
pub(super) fn written_so(end: Option<End>, packed: bool) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("r.mmt");
    let mut w = Writer::create(&path, false).unwrap();
    w.text("header_page", HEADER_PAGE.as_bytes()).unwrap();
    w.format("vmscan", "mm_vmscan_kswapd_sleep", FORMAT.as_bytes()).unwrap();
    w.manifest(&manifest()).unwrap();
    let task = |pid, comm: &str| TaskLine { at: 95, pid, tgid: pid, comm: comm.into(), cgroup: Some("/web".into()) };
    w.tasks(&[task(41, "kswapd0"), task(42, "kswapd1")]).unwrap();
    w.counters("vmstat", 100, &[row("", &[("pgfault", Some(1)), ("pgfree", None)])]).unwrap();
    let nodes = |n| [row("0", &[("numa_hit", Some(n))]), row("1", &[("numa_hit", Some(u64::MAX))])];
    w.counters("numastat", 101, &nodes(5)).unwrap();
    let (files, mut packer) = (w.page_files(packed).unwrap(), Packer::new(1).unwrap());
    for (cpu, pages) in [(0, vec![page(110, 41), page(200, 41)]), (1, vec![page(112, 42)])] {
        let mut file = files.create(cpu).unwrap();
        for page in pages {
            io::Write::write_all(&mut file, if packed { packer.pack(&page).unwrap() } else { &page }).unwrap();
        }
    }
    w.counters("numastat", 300, &nodes(6)).unwrap();
    // A column appears.
    w.counters("vmstat", 301, &[row("", &[("pgfault", Some(4)), ("new", Some(9)), ("pgfree", Some(2))])]).unwrap();
    match end {
        Some(end) => drop(w.finish(end).unwrap()),
        None => drop(w.publish().unwrap()),
    }
    (root, path)
}

#[derive(Default, Debug, PartialEq, Clone)]
pub(super) struct Seen {
    pub events: Vec<(u64, u32, i32)>,
    kinds: Vec<Kind>,
    counters: Vec<String>,
    tasks: Vec<String>,
    pub lost: Vec<(u32, Option<u64>)>,
}

impl Sink for Seen {
    fn task(&mut self, task: &Task<'_>) {
        self.tasks.push(format!("{} {}", task.pid, String::from_utf8_lossy(task.comm)));
    }
    fn event(&mut self, event: &Event<'_>) {
        self.kinds.push(event.kind);
        self.events.push((event.ts, event.cpu, event.pid));
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, _at: u64) {
        self.lost.push((cpu, events));
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        let values: BTreeMap<_, _> = row.names.iter().zip(row.values).collect();
        self.counters.push(format!("{} {} {:?} {values:?}", row.at, row.source, row.key));
    }
}

pub(super) fn read(path: &Path) -> Result<(Seen, Outcome), Error> {
    let (mut seen, mut outcome) = (Seen::default(), Outcome::default());
    Recording::open(path)?.read(&mut seen, &mut outcome)?;
    Ok((seen, outcome))
}

#[test]
fn what_a_workload_achieved_is_read() {
    let (root, path) = written(Some(end()));
    assert_eq!(Recording::open(&path).unwrap().results, None);
    let mut writer = Writer::create(&root.path().join("workload"), false).unwrap();
    writer.manifest(&Manifest { tracing: None, ..manifest() }).unwrap();
    let results = Results { notes: vec!["a sentence".into()], ..Results::default() };
    writer.results(&results).unwrap();
    writer.finish(end()).unwrap();
    let recording = Recording::open(&root.path().join("workload")).unwrap();
    assert_eq!((recording.results, recording.warnings.list().len()), (Some(results), 0));
}

#[test]
fn a_limit_of_dirty_memory_in_bytes_is_known_from_files_or_from_the_scenario() {
    let (root, _) = written(Some(end()));
    let cases = [(None, None, None), (Some("0\n"), Some(8192), None), (Some("8192\n"), None, Some(8192))];
    for (i, (file, set, expected)) in cases.into_iter().chain([(None, Some(8192), Some(8192))]).enumerate() {
        let mut manifest = Manifest { tracing: None, ..manifest() };
        manifest.evidence.files.extend(file.map(|text: &str| ("/proc/sys/vm/dirty_bytes".into(), text.into())));
        manifest.scenario = set.map(|bytes: u64| serde_json::json!({"kernel": {"sysctl": {"vm.dirty_bytes": bytes}}}));
        let path = root.path().join(i.to_string());
        let mut writer = Writer::create(&path, false).unwrap();
        writer.manifest(&manifest).unwrap();
        writer.finish(end()).unwrap();
        assert_eq!(Recording::open(&path).unwrap().source().dirty_bytes, expected, "{i}");
    }
}

#[test]
fn what_was_written_is_read() {
    let (_root, path) = written(Some(end()));
    let (seen, outcome) = read(&path).unwrap();
    let times: Vec<_> = seen.events.iter().map(|(ts, cpu, pid)| (*ts, *cpu, *pid)).collect();
    let cpu0 = |t| (t, 0, 41);
    let cpu1 = |t| (t, 1, 42);
    let expected = [cpu0(115), cpu1(117), cpu0(120), cpu1(122), cpu0(125), cpu1(127), cpu0(205), cpu0(210), cpu0(215)];
    assert_eq!(times, expected);
    assert_eq!(seen.kinds, [Kind::MmVmscanKswapdSleep; 9]);
    assert_eq!(seen.tasks, ["41 kswapd0", "42 kswapd1"]);
    let expected = [
        r#"100 vmstat "" {"pgfault": Some(1), "pgfree": None}"#,
        r#"101 numastat "0" {"numa_hit": Some(5)}"#,
        r#"101 numastat "1" {"numa_hit": Some(18446744073709551615)}"#,
        r#"300 numastat "0" {"numa_hit": Some(6)}"#,
        r#"300 numastat "1" {"numa_hit": Some(18446744073709551615)}"#,
        r#"301 vmstat "" {"new": Some(9), "pgfault": Some(4), "pgfree": Some(2)}"#,
    ];
    assert_eq!(seen.counters, expected);
    assert_eq!(seen.lost, [(1, Some(7))]);
    assert_eq!(outcome.lost, BTreeMap::from([(1, (7, 0))]));
    assert_eq!(outcome.warnings.list(), []);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest, manifest());
    let cost = recording.end.unwrap().cost;
    assert!(cost.counter_bytes > 0 && cost.other_bytes > 0 && cost.page_bytes == 384);
}

#[test]
fn a_killed_recording_says_so() {
    let (_root, path) = written(None);
    let (seen, outcome) = read(&path).unwrap();
    assert_eq!(seen.events.len(), 9);
    assert_eq!(outcome.warnings.list().len(), 1);
    assert!(outcome.warnings.list()[0].message.contains("truncated"));
}

/// Files below a directory, sorted.
fn files(path: &Path) -> Vec<PathBuf> {
    let nested = entries(path).unwrap().into_iter();
    nested.flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).collect()
}

/// `part` is `whole` without some of its end, or all of it.
fn is_prefix<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
    whole.starts_with(part)
}

#[test]
fn a_recording_cut_at_any_byte_gives_a_prefix() {
    let (_root, path) = written(Some(end()));
    let (whole, _) = read(&path).unwrap();
    let mut cuts = 0;
    // The marker tells writers whose directory it is, and readers nothing.
    for file in files(&path).into_iter().filter(|file| leaf(file) != crate::output::ours::MARKER) {
        let bytes = fs::read(&file).unwrap();
        let name = leaf(&file);
        for length in 0..bytes.len() {
            fs::write(&file, &bytes[..length]).unwrap();
            let Ok((seen, outcome)) = read(&path) else {
                // Written by rename, or before the manifest: never seen incomplete, so an error is the right answer.
                assert!(["manifest.json", "header_page"].contains(&name.as_str()), "{name} cut at {length}");
                continue;
            };
            cuts += 1;
            // A JSON file is whole without its last line feed.
            let whole_json = name.ends_with(".json") && length + 1 == bytes.len();
            assert!(whole_json || !outcome.cuts().is_empty(), "{name} cut at {length}: nothing is said");
            assert!(is_prefix(&seen.tasks, &whole.tasks), "{name} cut at {length}");
            if name.ends_with(".pages") {
                let of = |seen: &Seen, cpu| -> Vec<_> { seen.events.iter().filter(|e| e.1 == cpu).copied().collect() };
                assert!((0..2).all(|cpu| is_prefix(&of(&seen, cpu), &of(&whole, cpu))), "{name} cut at {length}");
                let (_, gaps) = outcome.lost_total();
                assert!(gaps > 0, "{name} cut at {length}: no loss");
            } else if name.ends_with(".arrows") {
                let source = name.split('.').next().unwrap();
                let of = |seen: &Seen, this: bool| -> Vec<String> {
                    seen.counters.iter().filter(|c| c.contains(source) == this).cloned().collect()
                };
                assert_eq!(of(&seen, false), of(&whole, false), "{name} cut at {length}");
                assert!(seen.counters.iter().all(|c| whole.counters.contains(c)), "{name} cut at {length}");
                assert_eq!(seen.events, whole.events);
            }
        }
        fs::write(&file, &bytes).unwrap();
    }
    assert!(cuts > 1000, "only {cuts} cuts were readable");
}

#[test]
fn flipped_bits_are_no_panic() {
    let (_root, path) = written(Some(end()));
    for file in files(&path) {
        let mut bytes = fs::read(&file).unwrap();
        for i in 0..bytes.len() {
            let bit = 1 << (i % 8);
            bytes[i] ^= bit;
            fs::write(&file, &bytes).unwrap();
            if let Ok(recording) = Recording::open(&path) {
                // An error is as good as a result here.
                let _ = recording.read(&mut Seen::default(), &mut Outcome::default());
            }
            bytes[i] ^= bit;
        }
        fs::write(&file, &bytes).unwrap();
    }
}

#[test]
fn nothing_is_replaced_without_force_and_nothing_but_a_recording_with_it() {
    let (root, path) = written(None);
    assert!(Writer::create(&path, false).is_err());
    drop(Writer::create(&path, true).unwrap());
    assert!(Recording::is_one(&path), "the old one stays until the new one has begun");
    Writer::create(&path, true).unwrap().publish().unwrap();
    assert!(!Recording::is_one(&path));
    let other = root.path().join("other");
    fs::create_dir(&other).unwrap();
    Writer::create(&other, false).unwrap();
    fs::write(other.join("thesis.txt"), "years of work").unwrap();
    assert!(Writer::create(&other, true).is_err());
    assert!(other.join("thesis.txt").exists());
}

#[test]
fn a_recording_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let (_root, path) = written(Some(end()));
    let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert!(files(&path).iter().all(|f| mode(f) == 0o600));
}

#[test]
fn arrow_reads_the_counters_too() {
    let (_root, path) = written(Some(end()));
    let file = std::fs::File::open(path.join("counters/vmstat.1.arrows")).unwrap();
    let batches: Vec<_> = arrow_ipc::reader::StreamReader::try_new(file, None).unwrap().collect();
    assert_eq!(batches.len(), 1);
    let batch = batches[0].as_ref().unwrap();
    let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["time", "key", "pgfault", "pgfree", "new"]);
}

/// What `trace-cmd report` prints of a file; `None` if it is not installed.
fn trace_cmd(file: &Path) -> Option<String> {
    match std::process::Command::new("trace-cmd").arg("report").arg(file).output() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        output => {
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
    }
}

#[test]
fn a_recording_becomes_a_trace_dat() {
    use crate::dat::{Codec, DatWriter, Version, id};
    let (root, path) = written(Some(end()));
    let recording = Recording::open(&path).unwrap();
    let (whole, _) = read(&path).unwrap();
    for (version, file) in [(Version::V6, "6.dat"), (Version::V7(Codec::Zstd), "7.dat")] {
        let mut writer = DatWriter::new(version, recording.origin(), root.path()).unwrap();
        recording.read(&mut writer, &mut Outcome::default()).unwrap();
        let mut bytes = Vec::new();
        let done = writer.close(file, &mut bytes).unwrap();
        assert_eq!(done.events, 9);
        let dat = crate::dat::open(file, &bytes).unwrap();
        assert_eq!(dat.meta.clock().as_deref(), Some("mono"));
        assert_eq!(dat.meta.tasks(), [(41, b"kswapd0".to_vec()), (42, b"kswapd1".to_vec())]);
        assert_eq!((dat.meta.cpus, dat.meta.header_page.as_str()), (2, HEADER_PAGE));
        assert_eq!(dat.meta.option_text(id::UNAME), None);
        let dropped: Vec<_> = dat.meta.cpu_stats().iter().map(|s| (s.cpu, s.overrun)).collect();
        assert_eq!(dropped, [(0, Some(0)), (1, Some(7))]);
        let name = root.path().join(file);
        fs::write(&name, &bytes).unwrap();
        // Read back: the same events, tasks and losses.
        let mut input = crate::input::InputFile::open(&name).unwrap();
        let mut seen = Seen::default();
        let outcome = input.input(&crate::input::Options::default()).unwrap().read(&mut seen).unwrap();
        assert_eq!(seen, Seen { counters: Vec::new(), ..whole.clone() });
        assert_eq!(outcome.lost_total(), (7, 0));
        let Some(report) = trace_cmd(&name) else {
            eprintln!("skipped: trace-cmd is not installed");
            continue;
        };
        let lines: Vec<_> = report.lines().filter(|l| l.contains("mm_vmscan_kswapd_sleep")).collect();
        assert_eq!(lines.len(), 9, "{report}");
        assert!(lines[0].contains("kswapd0-41") && lines[0].contains("[000]"), "{report}");
        assert!(lines[1].contains("kswapd1-42") && lines[1].ends_with("nid=0"), "{report}");
        assert!(lines[5].ends_with("nid=2"), "{report}");
    }
}

#[test]
fn counters_alone_have_no_origin() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("r.mmt");
    let mut w = Writer::create(&path, false).unwrap();
    w.manifest(&Manifest { tracing: None, ..manifest() }).unwrap();
    w.finish(end()).unwrap();
    assert!(Recording::open(&path).unwrap().origin().is_none());
}

//! The reader as a whole: recorded files, every style of line, every event of the vocabulary, and damage.

use super::{TextInput, looks_like_text_trace, read_text, source};
use crate::{Error, Outcome};
use mmtwin_event::value::{Bytes, Shape};
use mmtwin_event::vocabulary::SCHEMAS;
use mmtwin_event::{Call, Event, Fields, Kind, Schema, Sink};
use proptest::prelude::*;

/// What came out of a text, written down.
#[derive(Default)]
struct Log {
    /// Columns of each event: time, CPU, comm, pid.
    columns: Vec<String>,
    /// Name and fields of each event.
    events: Vec<String>,
    calls: Vec<(String, u64)>,
    losses: Vec<(u32, Option<u64>, u64)>,
}

impl Sink for Log {
    fn event(&mut self, event: &Event<'_>) {
        let comm = String::from_utf8_lossy(event.comm);
        self.columns.push(format!("{} {} {comm} {}", event.ts, event.cpu, event.pid));
        let mut line = event.name.to_string();
        match event.fields {
            Fields::Text(_) => {
                let schema = event.kind.schema().expect("typed events have a schema");
                for (slot, field) in schema.fields.iter().enumerate().filter(|(slot, _)| event.has(*slot)) {
                    line += &format!(" {}={}", field.name, printed(field.shape, event.slot(slot), event.raw));
                }
            }
            _ => line += &format!(" ? {}", String::from_utf8_lossy(event.raw)),
        }
        self.events.push(line);
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.losses.push((cpu, events, at));
    }
    fn call(&mut self, call: &Call<'_>) {
        self.calls.push((call.function.to_string(), call.nanoseconds));
    }
}

/// A slot as text: characters as they stand in the line, words by their name, numbers in decimal.
fn printed(shape: Shape, slot: u64, raw: &[u8]) -> String {
    match shape {
        Shape::Str | Shape::Sym | Shape::Gfp => String::from_utf8_lossy(Bytes::from_slot(slot).of(raw)).into(),
        Shape::Int => (slot as i64).to_string(),
        Shape::Flags(table) => table.flags_text(slot),
        Shape::Name(table) => table.word(slot).into(),
        Shape::Uint | Shape::Hex | Shape::Bool | Shape::Dev => slot.to_string(),
    }
}

fn read(text: &[u8]) -> (Log, Outcome, Result<(), Error>) {
    let (mut log, mut outcome) = (Log::default(), Outcome::default());
    let result = read_text("t", TextInput::Bytes(text), &mut log, &mut outcome, &mut |_| {});
    (log, outcome, result)
}

fn read_well(text: &str) -> Log {
    let (log, outcome, result) = read(text.as_bytes());
    result.unwrap();
    assert_eq!(outcome.warnings.list(), [], "{text}");
    log
}

/// Event of a line whose payload this is.
fn event_of(name: &str, payload: &str) -> String {
    read_well(&format!("{:>16}-7       [000] .....     1.000000: {name}: {payload}\n", "t")).events.remove(0)
}

fn warnings(outcome: &Outcome) -> Vec<String> {
    outcome.warnings.list().iter().map(ToString::to_string).collect()
}

const VMSCAN: &str = include_str!("../../tests/data/text/vmscan-6.18.txt");
const VMSCAN_REPORT: &str = include_str!("../../tests/data/text/vmscan-6.18.report");

#[test]
fn trace_and_trace_cmd_report_give_the_same_events() {
    let trace = read_well(VMSCAN);
    assert_eq!(trace.events.len(), VMSCAN.lines().filter(|l| !l.starts_with('#')).count());
    // trace-cmd prints real pointers, and symbols without their size.
    let comparable = |log: &Log| -> Vec<String> {
        let word = |w: &str| match w.split_once('=') {
            Some(("shr", _)) => String::new(),
            Some(("shrink", symbol)) => symbol.split('/').next().unwrap_or_default().to_string(),
            _ => w.to_string(),
        };
        log.events.iter().map(|e| e.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect()
    };
    let report = read_well(VMSCAN_REPORT);
    assert_eq!(comparable(&trace), comparable(&report));
    assert_eq!(trace.columns, report.columns);
}

#[test]
fn sums_of_a_recording() {
    let sum = |events: &[String], event: &str, key: &str| -> u64 {
        let of = events.iter().filter(|e| e.split(' ').next() == Some(event));
        of.filter_map(|e| e.split(' ').find_map(|w| w.strip_prefix(key)?.strip_prefix('=')))
            .map(|v| v.parse::<u64>().unwrap())
            .sum()
    };
    let plain = |key: &str| -> u64 {
        let lines = VMSCAN.lines().filter(|l| l.contains("mm_vmscan_lru_isolate:"));
        lines.filter_map(|l| l.split_once(&format!(" {key}="))?.1.split(' ').next()?.parse::<u64>().ok()).sum()
    };
    let events = read_well(VMSCAN).events;
    for key in ["nr_requested", "nr_scanned", "nr_skipped", "nr_taken"] {
        assert_eq!(sum(&events, "mm_vmscan_lru_isolate", key), plain(key), "{key}");
    }
    assert!(plain("nr_taken") > 0);
}

#[test]
fn function_graph_recordings() {
    let log = read_well(include_str!("../../tests/data/text/fgraph-6.1.txt"));
    assert_eq!((log.calls.len(), log.calls.iter().map(|c| c.1).sum::<u64>()), (62, 15_672_175));
    let (log, outcome, result) = read(include_bytes!("../../tests/data/text/fgraph-6.12.txt"));
    result.unwrap();
    assert_eq!((log.calls.len(), log.calls.iter().map(|c| c.1).sum::<u64>()), (168, 244_091_419));
    let purged = log.events.iter().map(|e| e.rsplit('=').next().unwrap().parse::<u64>().unwrap());
    assert_eq!((log.events.len(), purged.sum::<u64>()), (61, 8023));
    assert_eq!(warnings(&outcome), ["t:6: events without a time have time 0 (61 times; this is the first)"]);
}

#[test]
fn payloads_that_are_not_key_and_value() {
    let cases = [
        (
            "mm_shrink_slab_start",
            "f+0x0/0x210 [xfs] 00000000b2b53b63: nid: 1 objects to shrink 2 gfp_flags A|B cache items 3 delta 4 total_scan 5 priority 6",
            "shr=2998221667 shrink=f+0x0/0x210 [xfs] nr_objects_to_shrink=2 gfp_flags=A|B cache_items=3 delta=4 total_scan=5 nid=1 priority=6",
        ),
        (
            "mm_shrink_slab_start",
            "f+0x0/0x210 ffffea0001a2b3c0: objects to shrink 2 gfp_flags A pgs_scanned 7 lru_pgs 8 cache items 3 delta 4 total_scan -5",
            "shr=18446719884481180608 shrink=f+0x0/0x210 nr_objects_to_shrink=2 gfp_flags=A cache_items=3 delta=4 total_scan=-5 pgs_scanned=7 lru_pgs=8",
        ),
        (
            "mm_shrink_slab_end",
            "f+0x0 0xff: nid: 1 unused scan count 2 new scan count 3 total_scan 4 last shrinker return val -1",
            "shr=255 shrink=f+0x0 unused_scan=2 new_scan=3 retval=-1 total_scan=4 nid=1",
        ),
        (
            "alloc_vmap_area",
            "va_start: 18446683600683089920 size=1 align=2 vstart=0xffffc90000000000 vend=0x3 failed=0",
            "va_start=18446683600683089920 size=1 align=2 vstart=18446683600570023936 vend=3 failed=0",
        ),
        (
            "writeback_start",
            "bdi 8:0: sb_dev 8:1 nr_pages=-1 sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background cgroup_ino=5",
            "bdi=8:0 sb_dev=8388609 nr_pages=-1 sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background cgroup_ino=5",
        ),
        ("writeback_pages_written", "-3", "pages=-3"),
        ("folio_wait_writeback", "bdi (unknown): ino=4 index=5", "bdi=(unknown) ino=4 index=5"),
        ("set_migration_pte", "addr=7f00, pte=ff10 order=9", "addr=32512 pte=65296 order=9"),
        (
            "mm_compaction_isolate_freepages",
            "range=(0x10 ~ 0x20) nr_scanned=3 nr_taken=4",
            "nr_scanned=3 nr_taken=4 start_pfn=16 end_pfn=32",
        ),
        (
            "mm_compaction_end",
            "zone_start=0x1 migrate_pfn=0x2 free_pfn=0x3 zone_end=0x4, mode=sync status=complete",
            "zone_start=1 migrate_pfn=2 free_pfn=3 zone_end=4 sync=1 status=complete",
        ),
        (
            "mm_compaction_deferred",
            "node=0 zone=DMA      order=9 order_failed=8 consider=1 limit=64",
            "node=0 zone=DMA order=9 order_failed=8 consider=1 limit=64",
        ),
        (
            "mark_victim",
            "pid=3 comm=a b total-vm=4kB anon-rss=5kB file-rss:6kB shmem-rss:7kB uid=8 pgtables=9kB oom_score_adj=-10",
            "pid=3 comm=a b total_vm=4 anon_rss=5 file_rss=6 shmem_rss=7 uid=8 pgtables=9 oom_score_adj=-10",
        ),
        ("rss_stat", "mm_id=1 curr=0 type=MM_SWAPENTS size=-4096B", "mm_id=1 curr=0 member=MM_SWAPENTS size=-4096"),
        (
            "mm_filemap_add_to_page_cache",
            "dev 254:0 ino 1a pfn=0x1b ofs=4096 order=0",
            "dev=266338304 ino=26 pfn=27 ofs=4096 order=0",
        ),
        ("mm_lru_insertion", "folio=000000000000001f pfn=0x2 lru=3 flags=Ma b  ", "folio=31 pfn=2 lru=3 flags=Ma b  "),
        (
            "mm_setup_per_zone_wmarks",
            "node_id=0 zone name=DMA32 watermark min=1 low=2 high=3 promo=4",
            "node_id=0 name=DMA32 watermark_min=1 watermark_low=2 watermark_high=3 watermark_promo=4",
        ),
        (
            "mm_setup_per_zone_lowmem_reserve",
            "node_id=0 zone name=DMA upper_zone name=Normal lowmem_reserve_pages=5",
            "node_id=0 name=DMA upper_name=Normal lowmem_reserve=5",
        ),
        (
            "mm_vmscan_throttled",
            "nid=0 usec_timeout=1 usect_delayed=2 reason=VMSCAN_THROTTLE_WRITEBACK",
            "nid=0 usec_timeout=1 usec_delayed=2 reason=VMSCAN_THROTTLE_WRITEBACK",
        ),
        (
            "sched_skip_vma_numa",
            "numa_scan_offset=7F1 vm_start=7F0 vm_end=7FF reason=shared_ro",
            "numa_scan_offset=2033 vm_start=2032 vm_end=2047 reason=shared_ro",
        ),
        (
            "mm_collapse_huge_page",
            "mm=00000000000000ff, isolated=1, status=succeeded",
            "mm=255 isolated=1 status=succeeded",
        ),
        (
            "sched_migrate_task",
            "comm=kworker/2:0H pid=29 prio=100 orig_cpu=0 dest_cpu=2",
            "comm=kworker/2:0H pid=29 prio=100 orig_cpu=0 dest_cpu=2",
        ),
        (
            "mm_vmscan_writepage",
            "page=(null) pfn=12 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC|0x40",
            "flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC|0x40 pfn=12 page=0",
        ),
        (
            "sched_migrate_task",
            "comm=a=b c pid=29 prio=100 orig_cpu=0 dest_cpu=2",
            "comm=a=b c pid=29 prio=100 orig_cpu=0 dest_cpu=2",
        ),
        ("mm_vmscan_kswapd_wake", "nid=1 order=(0)", "nid=1 order=0"),
        (
            "kmalloc",
            "call_site=f+0x58/0x110 (-2124233272) ptr=0xff (255) bytes_req=0xa8 (168) bytes_alloc=0xc0 (192) gfp_flags=0x40dc0 (265664) node=0xffffffff (-1)",
            "call_site=f+0x58/0x110 ptr=255 bytes_req=168 bytes_alloc=192 gfp_flags=0x40dc0 node=-1",
        ),
    ];
    for (name, payload, fields) in cases {
        assert_eq!(event_of(name, payload), format!("{name} {fields}"));
    }
}

#[test]
fn all_styles_of_columns_give_the_same_events() {
    let payloads = ["nid=0 order=1", "nid=1 order=2"];
    let styles: [(&str, &str); 9] = [
        ("", "          my app-7     [003]    12.000345: mm_vmscan_kswapd_wake: "),
        ("", "          my app-7     [003] d.s1    12.000345: mm_vmscan_kswapd_wake: "),
        ("", "          my app-7       [003] d.s1.    12.000345: mm_vmscan_kswapd_wake: "),
        ("", "          my app-7       (      7) [003] d.s1.    12.000345: mm_vmscan_kswapd_wake: "),
        ("cpus=4\n", "          my app-7     [003]    12.000345: mm_vmscan_kswapd_wake:  "),
        ("cpus=4\n", "lab:           my app-7     [003]    12.000345: mm_vmscan_kswapd_wake:  "),
        ("", "  my app-7         3d.s1. 12000345us+: mm_vmscan_kswapd_wake: "),
        (
            "",
            "          my app       7   3 1 00000001 00000000 [00b71c59] 12000.345ms (+0.042ms): mm_vmscan_kswapd_wake: ",
        ),
        ("", "          my app       7 [003]    12.000345: vmscan:mm_vmscan_kswapd_wake: "),
    ];
    for (head, style) in styles {
        for end in ["\n", "\r\n"] {
            // Long enough that the quick way is taken too.
            let text: String = (0..50).map(|i| format!("{style}{}{end}", payloads[i % 2])).collect();
            let log = read_well(&format!("{head}{text}"));
            assert_eq!(log.events.len(), 50, "{style}");
            for (i, (columns, event)) in log.columns.iter().zip(&log.events).enumerate() {
                assert_eq!(columns, "12000345000 3 my app 7", "{style}");
                assert_eq!(event, &format!("mm_vmscan_kswapd_wake {}", payloads[i % 2]), "{style}");
            }
        }
    }
}

#[test]
fn lines_that_are_no_events() {
    let text = concat!(
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 10/25   #P:2\n#\n",
        "##### CPU 1 buffer started ####\n",
        "CPU:1 [LOST 252 EVENTS]\n",
        "            bash-12      [001] .....     1.000000: mm_vmscan_kswapd_sleep: nid=0\n",
        "            bash-12      [001] .....     1.000001: <stack trace>\n => f\n => g\n",
        "CPU:0 [LOST EVENTS]\nCPU:1 [3 EVENTS DROPPED]\nCPU 2 is empty\n",
        "            bash-12      [001] .....     2.000000: schedule <-worker_thread\n",
        "            bash-12      [001] .....     2.000000: kernel_stack:         <stack trace >\n=> f (ff)\n",
    );
    let (log, outcome, result) = read(text.as_bytes());
    result.unwrap();
    assert_eq!(log.events, ["mm_vmscan_kswapd_sleep nid=0", "function ? schedule <-worker_thread"]);
    let all = Outcome::SOME_CPU;
    let second = 1_000_000_000;
    assert_eq!(
        log.losses,
        [(all, Some(15), second), (1, Some(252), second), (0, None, 2 * second), (1, Some(3), 2 * second)]
    );
    assert_eq!((outcome.lost_total(), outcome.stacks, outcome.events, outcome.untyped), ((270, 1), 2, 2, 1));
    assert_eq!(warnings(&outcome), [""; 0]);
}

#[test]
fn what_is_wrong_becomes_a_warning_and_the_rest_is_read() {
    let wake = "            bash-12      [001] .....     5.000000: mm_vmscan_kswapd_wake: nid=0 order=1\n";
    let early = wake.replace("5.000000", "4.000000");
    let short = wake.replace(" order=1", "");
    let odd = wake.replace("order=1", "order=x");
    let text = format!("{wake}garbage\n{early}{short}{odd}garbage\n{wake}{}", &wake[..60]);
    let (log, outcome, result) = read(text.as_bytes());
    result.unwrap();
    assert_eq!(log.events.len(), 5);
    assert_eq!(log.events[2], "mm_vmscan_kswapd_wake ? nid=0");
    assert_eq!((outcome.events, outcome.untyped), (5, 2));
    assert_eq!(
        warnings(&outcome),
        [
            "t:2: a line that is not an event was skipped (2 times; this is the first)",
            "t:3: time goes backwards: events stay in the order of the file",
            "t:4: mm_vmscan_kswapd_wake: fields are missing or unreadable; the event is kept without its type (2 times; this is the first)",
            "t:8: the last line is truncated and was skipped",
        ]
    );
    let (log, outcome, _) = read(wake.trim_end().as_bytes());
    assert_eq!(log.events, ["mm_vmscan_kswapd_wake nid=0 order=1"]);
    assert_eq!(warnings(&outcome), ["t:1: the last line has no line end: it may be cut short"]);
}

#[test]
fn lines_without_columns() {
    let (log, outcome, _) = read(b"mm_vmscan_kswapd_sleep: nid=3\nsome_event: x\n");
    assert_eq!(log.events, ["mm_vmscan_kswapd_sleep nid=3", "some_event ? x"]);
    assert_eq!(log.columns[0], "0 0  -1");
    assert_eq!(
        warnings(&outcome),
        ["t:1: events without columns have time 0, CPU 0 and task -1 (2 times; this is the first)"]
    );
}

#[test]
fn a_text_that_is_no_trace_is_an_error() {
    let prose = "Dear reader: this is\nno trace.\n";
    let message = |text: &str| read(text.as_bytes()).2.unwrap_err().to_string();
    let kinds = "t: not a kernel trace: no line of the kinds that ftrace, trace-cmd report and perf script print, but";
    assert_eq!(message(prose), format!("{kinds} `Dear reader: this is`"));
    assert_eq!(message(""), "t: not a kernel trace: it is empty");
    assert_eq!(message("\n\n"), "t: not a kernel trace: no event in 2 lines");
    // Given up early, not at the end.
    let (_, outcome, result) = read(prose.repeat(100_000).as_bytes());
    assert!(result.is_err());
    assert_eq!(outcome.warnings.list()[0].count, super::MAX_UNKNOWN_LINES);
}

#[test]
fn first_bytes_tell() {
    for trace in [
        "# tracer: nop\n#",
        "  a-1  [000]  1.000000: e: x\n",
        "CPU:0 [LOST 2 EVENTS]\n",
        " 0)   1.0 us    |  f();\n",
        &VMSCAN_REPORT[..900],
    ] {
        assert!(looks_like_text_trace(trace.as_bytes()), "{trace}");
    }
    for other in ["", "#!/bin/sh\necho x\n", "\x17\x08\x44tracing6\0", "{\"a\": 1}\n", "a,b,c\n1,2,3\n"] {
        assert!(!looks_like_text_trace(other.as_bytes()), "{other}");
    }
    let found = source("t", VMSCAN.as_bytes());
    assert_eq!((found.name.as_str(), found.arm.as_str(), found.cpus, found.kernel), ("t", "import", 2, None));
    let found = source("t", b"# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.18.44\n# latency: 0 us, #3/3, CPU#0 | (M:server VP:0, KP:0, SP:0 HP:0 #P:8)\n");
    assert_eq!((found.cpus, found.kernel.as_deref()), (8, Some("6.18.44")));
}

/// A value of a shape as the kernel prints it, and as [`printed`] prints the slot.
fn value(shape: Shape, n: u64) -> (String, String) {
    match shape {
        Shape::Int => ((n as i32).to_string(), (n as i32).to_string()),
        Shape::Uint if n.is_multiple_of(2) => (format!("{n:#x}"), n.to_string()),
        Shape::Uint => (n.to_string(), n.to_string()),
        Shape::Hex => (format!("{n:016x}"), n.to_string()),
        Shape::Bool => (["async", "true"][n as usize % 2].into(), (n % 2).to_string()),
        Shape::Str => (format!("a b{n}"), format!("a b{n}")),
        Shape::Sym => (format!("f{n}+0x0/0x10"), format!("f{n}+0x0/0x10")),
        Shape::Gfp => (format!("GFP_X|{n:#x}"), format!("GFP_X|{n:#x}")),
        Shape::Flags(table) => {
            let bits = n & table.numbers.iter().fold(0, |all, bit| all | bit);
            (table.flags_text(bits), table.flags_text(bits))
        }
        Shape::Name(table) => {
            let word = table.words[n as usize % table.words.len()];
            (word.into(), word.into())
        }
        Shape::Dev => (format!("{}:{}", n % 4096, n % 99), (((n % 4096) << 20) | (n % 99)).to_string()),
    }
}

/// `key=value` of the fields that `there` selects, required ones always: as printed and as read.
fn payload(schema: &Schema, numbers: &[u64], there: u32) -> (String, String) {
    let chosen = schema.fields.iter().enumerate().filter(|(i, f)| f.required || there >> i & 1 == 1);
    chosen.map(|(i, f)| (f.name, value(f.shape, numbers[i]))).fold(
        Default::default(),
        |(text, read), (name, (t, r))| {
            let gap = if text.is_empty() { "" } else { " " };
            (format!("{text}{gap}{name}={t}"), format!("{read} {name}={r}"))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Many lines of one event, so that templates are learned, observed and regrouped in between.
    #[test]
    fn generated_lines_of_every_event(
        rows in prop::collection::vec((prop::collection::vec(any::<u64>(), 24), 0u32..4, 0u32..64), 80),
        steady in any::<u32>(),
    ) {
        for schema in SCHEMAS {
            let (mut text, mut expected) = (String::new(), Vec::new());
            for (numbers, pick, shift) in &rows {
                // Fields in `steady` keep their value, as most do in real traces.
                let number = |i: usize| if steady >> i & 1 == 1 { 3 } else { numbers[i] >> shift };
                let numbers: Vec<u64> = (0..24).map(number).collect();
                let (line, fields) = payload(schema, &numbers, steady.rotate_left(*pick));
                text += &format!("{:>16}-7       [000] .....     1.000000: {}: {line}\n", "t", schema.name);
                expected.push(format!("{}{fields}", schema.name));
            }
            let (log, outcome, result) = read(text.as_bytes());
            prop_assert!(result.is_ok());
            prop_assert_eq!(warnings(&outcome), Vec::<String>::new());
            prop_assert_eq!(log.events, expected);
        }
    }

    #[test]
    fn random_bytes_are_stepped_over(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
        let _ = looks_like_text_trace(&bytes);
        let _ = source("t", &bytes);
    }

    /// Real lines with bytes replaced, inserted and removed: no panic, no line counted twice, and a stream gives the
    /// same as a slice.
    #[test]
    fn damaged_recordings_are_stepped_over(
        file in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 0..200),
    ) {
        let files = [VMSCAN, VMSCAN_REPORT, include_str!("../../tests/data/text/fgraph-6.12.txt")];
        let mut text = files[file].as_bytes().to_vec();
        for (place, byte, how) in changes {
            let at = place.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => drop(text.remove(at)),
            }
        }
        let (log, outcome, result) = read(&text);
        let lines = text.split(|b| *b == b'\n').count() as u64;
        prop_assert!(outcome.events <= lines);
        let (mut streamed, mut again) = (Log::default(), Outcome::default());
        let stream = read_text("t", TextInput::Stream(&mut &text[..]), &mut streamed, &mut again, &mut |_| {});
        prop_assert_eq!(result.is_ok(), stream.is_ok());
        prop_assert_eq!(log.events, streamed.events);
        prop_assert_eq!(warnings(&outcome), warnings(&again));
    }
}

#[test]
fn kinds_without_a_type_keep_their_payload() {
    assert_eq!(Kind::of_name("sched_switch"), Kind::Other);
    assert_eq!(event_of("sched_switch", "prev_comm=a ==> next_comm=b"), "sched_switch ? prev_comm=a ==> next_comm=b");
}

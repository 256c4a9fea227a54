//! Text of ftrace: as a whole and as a stream.

use super::everything::Everything;
use super::format::pages_of;
use crate::{Random, Seen, mutate, samples};
use mmtwin_trace::Outcome;
use mmtwin_trace::text::{TextInput, read_text};
use mmtwin_trace::write::{Columns, TextStyle, TextWriter};
use std::sync::Arc;

/// Bytes of each sample: enough for every kind of line.
const MOST: usize = 6 << 10;

const WORDS: &[&str] = &[
    "mm_page_alloc:",
    "mm_vmscan_kswapd_wake:",
    "sched_switch:",
    "nid=0",
    "order=",
    "[000]",
    "d..1.",
    "CPU:3 [LOST 5 EVENTS]",
    "CPU 1 buffer started",
    "<...>-77",
    "12.345678:",
    "=>",
    "# tracer: function_graph",
    "0)   1.234 us    |",
    "} /*",
    "prev_pid=",
    "gfp_flags=GFP_KERNEL",
    "page=(null)",
    "pfn=0x",
    "0x",
    "|",
    "reason=",
    "# ",
];

/// Text of several kernels and tracers.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = samples::files("crates/trace/tests/data/text", "", MOST);
    seeds.extend(samples::files("tests/data/findings", ".txt.gz", MOST));
    let recorded = samples::recorded();
    let style = TextStyle::Kernel(Columns::of_release(None), None);
    let (cpus, layout) = (recorded.cpus, recorded.layout);
    let formats = Arc::new(recorded.formats);
    let mut writer = TextWriter::new(Vec::new(), "lines", style, Some(formats.clone()));
    for (_, pages) in &cpus {
        pages_of(&pages[..layout.page_size.min(pages.len())], &formats, &layout, &mut writer).expect("the sample");
    }
    let mut lines = writer.close().expect("memory");
    lines.truncate(2 * MOST);
    seeds.push(lines);
    seeds
}

/// By lines and words.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    mutate::text_of(WORDS, input, other, random);
}

/// A stream is read as the whole.
pub fn run(input: &[u8]) -> Seen {
    let (mut all, mut outcome) = (Everything::default(), Outcome::default());
    let whole = read_text("fuzz.txt", TextInput::Bytes(input), &mut all, &mut outcome, &mut |_| {});
    let (mut again, mut ignored) = (Everything::default(), Outcome::default());
    let mut stream = input;
    let streamed = read_text("fuzz.txt", TextInput::Stream(&mut stream), &mut again, &mut ignored, &mut |_| {});
    assert_eq!((all.events, all.sum), (again.events, again.sum), "a stream is read as the whole");
    assert_eq!(whole.is_ok(), streamed.is_ok(), "a stream fails as the whole");
    match whole {
        Ok(()) => Seen::accepted(all.digest(&outcome)),
        Err(error) => Seen::refused(error),
    }
}

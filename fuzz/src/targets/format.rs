//! Format texts of events, with their print formats: read, and used on the records of a sample.

use crate::samples::{self, Recorded};
use crate::{Random, Seen, hash, mutate};
use mmtwin_event::Sink;
use mmtwin_trace::format::Formats;
use mmtwin_trace::ring::{CpuStream, PageLayout, SlicePages, TimeMap, merge};
use mmtwin_trace::write::{Columns, TextStyle, TextWriter};
use mmtwin_trace::{Outcome, Place};
use std::cell::OnceCell;
use std::sync::Arc;

/// Pages of each CPU whose records are printed.
const PAGES: usize = 1;

const WORDS: &[&str] = &[
    "field:",
    "offset:",
    "size:",
    "signed:",
    "print fmt:",
    "__data_loc",
    "__rel_loc",
    "unsigned",
    "long",
    "char",
    "[8]",
    "REC->",
    "__print_flags",
    "__print_symbolic",
    "__print_hex",
    "__print_array",
    "__get_str",
    "__get_dynamic_array",
    "__get_bitmask",
    "__entry",
    "sizeof",
    "? :",
    "<<",
    ">>",
    "%",
    "/",
    "&&",
    "%llu",
    "%*pbl",
    "%pS",
    "%s",
    "%.*s",
    "%08lx",
    "(unsigned long)",
    "(u8)",
    "{ 1, \"a\" }",
    "|",
    "~",
    "!",
    "name:",
    "ID:",
];

thread_local! {
    static SAMPLE: OnceCell<Recorded> = const { OnceCell::new() };
}

/// Format texts of three kernels.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = samples::recorded().texts.into_iter().map(|(_, text)| text.into_bytes()).collect();
    seeds.extend(samples::files("crates/trace/tests/data/formats", ".txt", usize::MAX));
    seeds
}

/// By lines and words.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    mutate::text_of(WORDS, input, other, random);
}

/// A damaged format reads and prints the records of the sample, whatever its fields and print format say now.
pub fn run(input: &[u8]) -> Seen {
    SAMPLE.with(|sample| {
        let sample = sample.get_or_init(samples::recorded);
        let mut formats = Formats::new(input.len() % 16 == 15, if input.len() % 8 == 7 { 4 } else { 8 });
        if let Err(error) = formats.add("fuzz", &String::from_utf8_lossy(input), &Place::file("format")) {
            return Seen::refused(error);
        }
        let formats = Arc::new(formats);
        let style = TextStyle::Kernel(Columns::of_release(None), None);
        let mut writer = TextWriter::new(Vec::new(), "lines", style, Some(formats.clone()));
        for (_, pages) in &sample.cpus {
            let pages = &pages[..pages.len().min(PAGES * sample.layout.page_size)];
            pages_of(pages, &formats, &sample.layout, &mut writer).expect("pages of a sample");
        }
        Seen::accepted(hash(&writer.close().expect("memory")))
    })
}

/// Reads pages as those of two CPUs.
pub fn pages_of(
    bytes: &[u8],
    formats: &Formats,
    layout: &PageLayout,
    sink: &mut dyn Sink,
) -> Result<Outcome, mmtwin_trace::Error> {
    let mut outcome = Outcome::default();
    let half = bytes.len() / 2 / layout.page_size * layout.page_size;
    let (a, b) = bytes.split_at(half);
    let stream = |cpu, bytes| CpuStream { cpu, pages: Box::new(SlicePages::new("pages", 0, bytes, layout.page_size)) };
    merge::deliver(
        vec![stream(0, a), stream(1, b)],
        layout,
        formats,
        &TimeMap::default(),
        sink,
        &mut outcome,
        &mut |_| {},
    )?;
    Ok(outcome)
}

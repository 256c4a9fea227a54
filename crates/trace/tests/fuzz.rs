//! Fuzzing of every reader: real inputs, damaged in random but repeatable ways, must be read without a panic, and
//! twice to the same result.
//!
//! A round takes a real input, damages it in a few places (bits, bytes, numbers, cuts, repeats, splices of another
//! input) and reads it. MMTWIN_FUZZ_ROUNDS sets the rounds per target, MMTWIN_FUZZ_SEED the first seed; a failure
//! names the seed of its round.

use mmtwin_event::{Event, Sink};
use mmtwin_trace::format::Formats;
use mmtwin_trace::ring::{CpuStream, PageLayout, SlicePages, TimeMap, merge};
use mmtwin_trace::text::{TextInput, read_text};
use mmtwin_trace::write::{Columns, TextStyle, TextWriter};
use mmtwin_trace::{Outcome, Place, dat};
use std::panic::{AssertUnwindSafe, catch_unwind};

const V6: &[u8] = include_bytes!("data/vmscan-v6.dat");
const V7: &[u8] = include_bytes!("data/vmscan-v7-zstd.dat");

/// SplitMix64: every round has its own, so that one round can be repeated alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Damages `bytes` in one to eight places.
fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const NUMBERS: [u64; 8] = [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 1 << 62, u64::MAX];
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        let len = 1 + random.below(64);
        let end = (at + len).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                for (to, from) in bytes.iter_mut().skip(at).zip(&number[..1 << random.below(4)]) {
                    *to = *from;
                }
            }
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let from = random.below(other.len());
                let part = &other[from..(from + len).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
        }
    }
}

/// Reads damaged copies of `inputs` with `read`, which gives what must be the same twice.
fn fuzz<T: PartialEq + std::fmt::Debug>(inputs: &[Vec<u8>], read: impl Fn(&[u8]) -> T) {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let first: u64 = number("MMTWIN_FUZZ_SEED", 1);
    for seed in first..first + number("MMTWIN_FUZZ_ROUNDS", 300) {
        let mut random = Random(seed);
        let mut bytes = inputs[random.below(inputs.len())].clone();
        let other = random.below(inputs.len());
        damage(&mut bytes, &inputs[other], &mut random);
        let once = catch_unwind(AssertUnwindSafe(|| read(&bytes)));
        let once = once.unwrap_or_else(|_| panic!("seed {seed}: the reader panicked"));
        assert_eq!(once, read(&bytes), "seed {seed}: two reads differ");
    }
}

/// Counts, and reads every field of every event.
#[derive(Default)]
struct Everything {
    events: u64,
    sum: u64,
}

impl Sink for Everything {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        let fields = event.kind.schema().map_or(0, |s| s.fields.len());
        for slot in (0..fields).filter(|slot| event.has(*slot)) {
            self.sum = self.sum.wrapping_mul(31).wrapping_add(event.slot(slot)).wrapping_add(event.ts);
        }
    }
}

fn told(outcome: &Outcome) -> String {
    outcome.warnings.list().iter().map(|w| format!("{w}\n")).collect()
}

#[test]
fn trace_dat() {
    fuzz(&[V6.to_vec(), V7.to_vec()], |bytes| {
        let dat = match dat::open("fuzz.dat", bytes) {
            Ok(dat) => dat,
            Err(error) => return (0, 0, error.to_string()),
        };
        let mut formats = Formats::new(dat.meta.big_endian, dat.meta.kernel_long_size());
        for f in &dat.meta.formats {
            // A format that cannot be read is left out; its events stay untyped.
            let _ = formats.add(&f.system, &f.text, &Place::offset("fuzz.dat", f.offset));
        }
        let (mut all, mut outcome) = (Everything::default(), Outcome::default());
        for buffer in &dat.buffers {
            let Ok(layout) = buffer.layout(&dat.meta, &Place::file("fuzz.dat")) else { continue };
            let streams = buffer.streams(&layout);
            if let Err(error) = merge::deliver(streams, &layout, &formats, &dat.meta.time(), &mut all, &mut outcome) {
                return (all.events, all.sum, error.to_string());
            }
        }
        (all.events, all.sum, told(&outcome))
    });
}

/// The pages and formats of the sample.
fn sample() -> (Vec<Vec<u8>>, Formats, PageLayout, Vec<String>) {
    let dat = dat::open("v6.dat", V6).unwrap();
    let buffer = dat.buffers.iter().find(|b| !b.is_empty()).unwrap();
    let layout = buffer.layout(&dat.meta, &Place::file("v6.dat")).unwrap();
    let mut formats = Formats::new(dat.meta.big_endian, dat.meta.kernel_long_size());
    for f in &dat.meta.formats {
        formats.add(&f.system, &f.text, &Place::offset("v6.dat", f.offset)).unwrap();
    }
    let mut cpus = Vec::new();
    for mut stream in buffer.streams(&layout) {
        let mut pages = Vec::new();
        while let Some(run) = stream.pages.next_chunk().unwrap() {
            pages.extend_from_slice(&run);
        }
        cpus.push(pages);
    }
    let texts = dat.meta.formats.iter().map(|f| f.text.clone()).collect();
    (cpus, formats, layout, texts)
}

fn read_pages(bytes: &[u8], formats: &Formats, layout: &PageLayout, sink: &mut dyn Sink) -> Outcome {
    let mut outcome = Outcome::default();
    let half = bytes.len() / 2 / layout.page_size * layout.page_size;
    let (a, b) = bytes.split_at(half);
    let stream = |cpu, bytes| {
        let pages = Box::new(SlicePages::new("pages", 0, bytes, layout.page_size));
        CpuStream { cpu, pages }
    };
    merge::deliver(vec![stream(0, a), stream(1, b)], layout, formats, &TimeMap::default(), sink, &mut outcome).unwrap();
    outcome
}

#[test]
fn raw_pages() {
    let (cpus, formats, layout, _) = sample();
    fuzz(&cpus, |bytes| {
        let mut all = Everything::default();
        let outcome = read_pages(bytes, &formats, &layout, &mut all);
        (all.events, all.sum, told(&outcome))
    });
}

#[test]
fn format_texts() {
    let (cpus, _, layout, texts) = sample();
    let texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    fuzz(&texts, |bytes| {
        // A damaged format reads and prints the records of the sample, whatever its fields and print format say now.
        let mut formats = Formats::new(false, 8);
        let added = formats.add("fuzz", &String::from_utf8_lossy(bytes), &Place::file("format"));
        let formats = std::sync::Arc::new(formats);
        let style = TextStyle::Kernel(Columns::of_release(None), None);
        let mut writer = TextWriter::new(Vec::new(), "lines", style, Some(formats.clone()));
        for pages in &cpus {
            read_pages(&pages[..pages.len().min(4 * layout.page_size)], &formats, &layout, &mut writer);
        }
        (added.map_err(|e| e.to_string()), writer.close().unwrap())
    });
}

#[test]
fn text() {
    let (cpus, formats, layout, _) = sample();
    let style = TextStyle::Kernel(Columns::of_release(None), None);
    let mut writer = TextWriter::new(Vec::new(), "lines", style, Some(std::sync::Arc::new(formats)));
    let (_, formats, ..) = sample();
    for pages in &cpus {
        read_pages(pages, &formats, &layout, &mut writer);
    }
    let mut lines = writer.close().unwrap();
    lines.truncate(64 << 10);
    fuzz(&[lines], |bytes| {
        let (mut all, mut outcome) = (Everything::default(), Outcome::default());
        let whole = read_text("fuzz.txt", TextInput::Bytes(bytes), &mut all, &mut outcome).map_err(|e| e.to_string());
        let (mut again, mut ignored) = (Everything::default(), Outcome::default());
        let mut stream = bytes;
        let _ = read_text("fuzz.txt", TextInput::Stream(&mut stream), &mut again, &mut ignored);
        assert_eq!((all.events, all.sum), (again.events, again.sum), "a stream is read as the whole");
        (all.events, all.sum, whole, told(&outcome))
    });
}

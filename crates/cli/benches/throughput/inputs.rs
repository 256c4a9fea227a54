//! Inputs of the benchmark: the pages of a real recording, repeated.
//!
//! Every CPU of an input has copies of the pages of one recorded CPU, one after another in time. In a copy the base
//! time of each page is moved on, and a little by CPU so that CPUs do not run in step; the pid of each record is
//! moved by CPU so that tasks differ; marks of lost events are cleared. Records are as the kernel wrote them but for
//! that. Not modelled: tasks do not move between CPUs and all copies have the same mix of events.
//! Validated: `mmtwin report` must find as many events as were written, and have nothing to warn of.

use mmtwin_event::{Event, Sink};
use mmtwin_trace::dat::{self, Codec, Content, DatFile, Meta, Version, Writer};
use mmtwin_trace::format::Formats;
use mmtwin_trace::ring::{PageLayout, TimeMap, merge};
use mmtwin_trace::{Outcome, Place};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The recording that is repeated: reclaim of a memory cgroup on Linux 6.18.
pub const SEED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/host-6.18.dat");

/// Between one copy and the next on a CPU, in nanoseconds.
const GAP: u64 = 2_000_000;

/// What `fail` turns into: a sentence for the user.
pub type Result<T> = std::result::Result<T, String>;

/// An error about a file.
pub fn fail<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// The seed as an uncompressed file in memory.
pub struct Seed {
    bytes: Vec<u8>,
}

/// The pages of one recorded CPU.
struct Stream<'a> {
    pages: &'a [u8],
    /// Offset in `pages` of the pid of every record.
    pids: Vec<usize>,
}

/// What is copied.
struct Copied<'a> {
    meta: Meta<'a>,
    tasks: Vec<(i32, Vec<u8>)>,
    clock: String,
    layout: PageLayout,
    streams: Vec<Stream<'a>>,
    /// From the first event to the last, in nanoseconds.
    span: u64,
}

/// An input to be made.
pub struct Recipe {
    /// File name.
    pub name: &'static str,
    /// Version and compression.
    pub version: Version,
    /// CPUs.
    pub cpus: u32,
    /// What it has to reach.
    pub size: Size,
}

/// How large an input is at least.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// In events.
    Events(u64),
    /// In bytes of pages.
    Bytes(u64),
}

/// A trace.dat that is there.
pub struct Input {
    /// Where.
    pub path: PathBuf,
    /// Events in it.
    pub events: u64,
}

impl Seed {
    /// Reads it.
    pub fn read() -> Result<Seed> {
        let path = Path::new(SEED);
        let file = fs::read(path).map_err(fail(path))?;
        let dat = dat::open(SEED, &file).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        dat::copy(&dat, Version::V6, &std::env::temp_dir(), SEED, &mut bytes).map_err(|e| e.to_string())?;
        Ok(Seed { bytes })
    }

    /// Makes an input in `dir`, unless it is there from an earlier run with the same seed and size.
    pub fn input(&self, dir: &Path, recipe: &Recipe) -> Result<Input> {
        let dat = dat::open(SEED, &self.bytes).map_err(|e| e.to_string())?;
        let copied = Copied::of(&dat)?;
        let per_round: u64 = copied.for_cpus(recipe.cpus).map(|(_, s)| s.pids.len() as u64).sum();
        let bytes_per_round: u64 = copied.for_cpus(recipe.cpus).map(|(_, s)| s.pages.len() as u64).sum();
        let rounds = match recipe.size {
            Size::Events(events) => events.div_ceil(per_round),
            Size::Bytes(bytes) => bytes.div_ceil(bytes_per_round),
        };
        let path = dir.join(recipe.name);
        let made = format!("{:?}, {} CPUs, {rounds} rounds of {per_round} events", recipe.version, recipe.cpus);
        unless_made(&path, &made, rounds * bytes_per_round, || copied.write(&path, recipe, rounds))?;
        Ok(Input { path, events: rounds * per_round })
    }
}

impl<'a> Copied<'a> {
    fn of(dat: &DatFile<'a>) -> Result<Copied<'a>> {
        let buffer = dat.buffers.iter().find(|b| !b.is_empty()).ok_or("the seed is empty")?;
        let Content::Pages(cpus) = &buffer.content else { return Err("the seed has no pages".into()) };
        let layout = buffer.layout(&dat.meta, &Place::file(SEED)).map_err(|e| e.to_string())?;
        if layout.big_endian {
            return Err("the seed is big-endian, which is not provided for".into());
        }
        let mut formats = Formats::new(false, dat.meta.kernel_long_size());
        for format in &dat.meta.formats {
            formats.add(&format.system, &format.text, &Place::file(SEED)).map_err(|e| e.to_string())?;
        }
        let pid = formats.iter().flat_map(|f| &f.fields).find(|f| f.name == "common_pid");
        let pid = pid.ok_or("the seed's formats have no common_pid")?.offset as usize;
        let mut records = Records::default();
        let (time, mut outcome) = (TimeMap::default(), Outcome::default());
        merge::deliver(buffer.streams(&layout), &layout, &formats, &time, &mut records, &mut outcome, &mut |_| {})
            .map_err(|e| e.to_string())?;
        let mut streams = Vec::new();
        for cpu in cpus {
            let chunk = cpu.stored.pages(layout.page_size).next_chunk().map_err(|e| e.to_string())?;
            let Some(std::borrow::Cow::Borrowed(pages)) = chunk else { continue };
            let start = pages.as_ptr().addr();
            let inside = records.addresses.iter().filter(|a| (start..start + pages.len()).contains(a));
            streams.push(Stream { pages, pids: inside.map(|a| a - start + pid).collect() });
        }
        let (meta, clock) = (dat.meta.clone(), buffer.clock.clone().unwrap_or_else(|| "local".into()));
        let span = records.last - records.first.unwrap_or(0);
        Ok(Copied { tasks: meta.tasks(), meta, clock, layout, streams, span })
    }

    /// Every CPU with what it copies.
    fn for_cpus(&self, cpus: u32) -> impl Iterator<Item = (u32, &Stream<'a>)> {
        (0..cpus).zip(self.streams.iter().cycle())
    }

    fn write(&self, path: &Path, recipe: &Recipe, rounds: u64) -> Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let mut writer = Writer::new(recipe.version, false, dir).map_err(|e| e.to_string())?;
        let buffer = writer.buffer("", &self.clock, self.layout.page_size as u32);
        let mut pages = Vec::new();
        for round in 0..rounds {
            for (cpu, stream) in self.for_cpus(recipe.cpus) {
                // Steps that have no common measure with each other, within a millisecond.
                let by_cpu = u64::from(cpu) * 7_919_993 % 1_000_003;
                self.copy(stream, cpu, round * (self.span + GAP) + by_cpu, &mut pages);
                for run in pages.chunks(10 * self.layout.page_size) {
                    writer.pages(buffer, cpu, run).map_err(|e| e.to_string())?;
                }
            }
        }
        let mut cmdlines = Vec::new();
        for (cpu, (pid, name)) in (0..recipe.cpus).flat_map(|cpu| self.tasks.iter().map(move |t| (cpu, t))) {
            cmdlines.extend_from_slice(format!("{} ", moved(*pid, cpu)).as_bytes());
            cmdlines.extend_from_slice(name);
            cmdlines.push(b'\n');
        }
        let meta = Meta { cpus: recipe.cpus, cmdlines: cmdlines.into(), ..self.meta.clone() };
        let mut file = BufWriter::new(File::create(path).map_err(fail(path))?);
        writer.finish(&meta, &path.to_string_lossy(), &mut file).map_err(|e| e.to_string())
    }

    /// Puts a copy of a stream into `out`.
    fn copy(&self, stream: &Stream<'_>, cpu: u32, later: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(stream.pages);
        for page in out.chunks_exact_mut(self.layout.page_size) {
            let base = &mut page[self.layout.timestamp..][..8];
            let time = base.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
            base.copy_from_slice(&(time + later).to_le_bytes());
            // Bits 30 and 31 of the commit word: events were lost, and their number is stored.
            page[self.layout.commit + 3] &= 0x3f;
        }
        for at in &stream.pids {
            let field = &mut out[*at..*at + 4];
            let pid = field.iter().rev().fold(0, |sum: u32, b| sum << 8 | u32::from(*b)).cast_signed();
            field.copy_from_slice(&moved(pid, cpu).to_le_bytes());
        }
    }
}

/// The pid of a task's copy; the idle tasks are 0 on every CPU.
fn moved(pid: i32, cpu: u32) -> i32 {
    if pid == 0 { 0 } else { pid + cpu as i32 * 1000 }
}

/// Where records lie in memory, and when they begin and end.
#[derive(Default)]
struct Records {
    addresses: Vec<usize>,
    first: Option<u64>,
    last: u64,
}

impl Sink for Records {
    fn event(&mut self, event: &Event<'_>) {
        self.addresses.push(event.raw.as_ptr().addr());
        self.first = self.first.or(Some(event.ts));
        self.last = event.ts;
    }
}

/// Makes a file of about `bytes` and notes beside it what it was made of; does nothing if the note is there.
pub fn unless_made(path: &Path, made: &str, bytes: u64, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let note = PathBuf::from(format!("{}.made", path.display()));
    if path.exists() && fs::read_to_string(&note).is_ok_and(|text| text == made) {
        return Ok(());
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(dir).map_err(fail(dir))?;
    let free = disk.f_bavail * disk.f_frsize;
    // The writer keeps pages in a temporary file first.
    if free < bytes * 2 + (1 << 30) {
        let (free, bytes) = (free >> 20, bytes >> 20);
        return Err(format!("{free} MiB free in {}: too little for {bytes} MiB", dir.display()));
    }
    eprintln!("making {}: {made}", path.display());
    if note.exists() {
        fs::remove_file(&note).map_err(fail(&note))?;
    }
    make()?;
    fs::write(&note, made).map_err(fail(&note))
}

/// Copies the first lines of a text.
pub fn first_lines(text: &Path, lines: u64, to: &Path) -> Result<()> {
    let mut from = BufReader::new(File::open(text).map_err(fail(text))?);
    let mut out = BufWriter::new(File::create(to).map_err(fail(to))?);
    let mut line = Vec::new();
    for _ in 0..lines {
        line.clear();
        from.read_until(b'\n', &mut line).map_err(fail(text))?;
        out.write_all(&line).map_err(fail(to))?;
    }
    out.flush().map_err(fail(to))
}

/// Decompresses every chunk of a compressed trace.dat into one buffer and gives the bytes that came out: what the
/// decompressor costs alone. The file must be one that the [`Writer`] wrote.
pub fn decompress(path: &Path, file: &[u8]) -> Result<u64> {
    let name = path.to_string_lossy();
    let dat = dat::open(&name, file).map_err(|e| e.to_string())?;
    let number = |at: usize| -> Result<usize> {
        let bytes = file.get(at..at + 4).and_then(|b| b.try_into().ok()).ok_or("a chunk is cut")?;
        Ok(u32::from_le_bytes(bytes) as usize)
    };
    let mut zstd = zstd::bulk::Decompressor::new().map_err(fail(path))?;
    let mut zlib = flate2::Decompress::new(true);
    let (mut out, mut total) = (Vec::new(), 0);
    for buffer in &dat.buffers {
        let Content::Pages(cpus) = &buffer.content else { return Err(format!("{name}: no pages")) };
        for stored in cpus.iter().map(|c| &c.stored) {
            let mut at = stored.offset as usize;
            let chunks = number(at)?;
            at += 4;
            for _ in 0..chunks {
                let (packed, size) = (number(at)?, number(at + 4)?);
                let chunk = file.get(at + 8..at + 8 + packed).ok_or("a chunk is cut")?;
                out.resize(size, 0);
                total += match stored.codec {
                    Codec::Zstd => zstd.decompress_to_buffer(chunk, &mut out[..]).map_err(fail(path))? as u64,
                    Codec::Zlib => {
                        zlib.reset(true);
                        zlib.decompress(chunk, &mut out, flate2::FlushDecompress::Finish).map_err(fail(path))?;
                        zlib.total_out()
                    }
                    Codec::None => return Err(format!("{name}: not compressed")),
                };
                at += 8 + packed;
            }
        }
    }
    Ok(total)
}

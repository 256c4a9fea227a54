//! Writing a trace.dat.
//!
//! Everything that says where things are comes before the CPU data, which are spooled first, so all sizes are known
//! when the file is written: it is written in one go, to a pipe too, and one that is cut later loses only the data
//! behind the cut. trace-cmd itself writes the options of version 7 behind the data; the format leaves that free.

use super::build::{Builder, Strings, number};
use super::codec::Codec;
use super::meta::Meta;
use super::spool::{Lane, Spool};
use super::{MAGIC, id};
use crate::{Error, Place};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// More CPUs than any kernel can have; version 6 needs room for all up to the highest.
pub(super) const MAX_CPUS: u32 = 1 << 16;

/// Which kind of file to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 6, which has no compression.
    V6,
    /// Version 7.
    V7(Codec),
}

/// Takes pages, then writes the file.
pub struct Writer {
    version: Version,
    big_endian: bool,
    spool: Spool,
    buffers: Vec<Instance>,
}

struct Instance {
    name: String,
    clock: String,
    page_size: u32,
    cpus: BTreeMap<u32, Lane>,
}

/// What follows the head of the file: at an offset, bytes or the data of a CPU.
struct Piece<'w> {
    offset: u64,
    content: Content<'w>,
}

enum Content<'w> {
    Bytes(Vec<u8>),
    Lane(&'w Lane),
}

impl Writer {
    /// A writer that keeps pages in a temporary file in `dir` until [`Writer::finish`].
    pub fn new(version: Version, big_endian: bool, dir: &Path) -> Result<Writer, Error> {
        let codec = match version {
            Version::V6 => Codec::None,
            Version::V7(codec) => codec,
        };
        Ok(Writer { version, big_endian, spool: Spool::new(dir, codec, big_endian)?, buffers: Vec::new() })
    }

    /// Adds a buffer and gives its number. The name of the top buffer is empty; a file without it gets an empty one.
    pub fn buffer(&mut self, name: &str, clock: &str, page_size: u32) -> usize {
        let (name, clock) = (name.to_string(), clock.to_string());
        self.buffers.push(Instance { name, clock, page_size, cpus: BTreeMap::new() });
        self.buffers.len() - 1
    }

    /// Adds whole pages of a CPU to a buffer. CPU numbers of 65536 and more are an error.
    pub fn pages(&mut self, buffer: usize, cpu: u32, pages: &[u8]) -> Result<(), Error> {
        if cpu >= MAX_CPUS {
            return Err(Error::at(Place::file("trace.dat"), format!("no CPU {cpu}")));
        }
        self.spool.add(self.buffers[buffer].cpus.entry(cpu).or_default(), pages)
    }

    /// Writes the file to `out`; `name` is for messages.
    pub fn finish(mut self, meta: &Meta<'_>, name: &str, out: &mut dyn Write) -> Result<(), Error> {
        for lane in self.buffers.iter_mut().flat_map(|b| b.cpus.values_mut()) {
            self.spool.flush(lane)?;
        }
        if !self.buffers.iter().any(|b| b.name.is_empty()) {
            let clock = self.buffers.first().map_or("local".into(), |b| b.clock.clone());
            self.buffer("", &clock, meta.page_size);
        }
        self.buffers.sort_by_key(|b| !b.name.is_empty());
        let page_size = self.page_size(meta, name)?;
        let mut head = Builder::new(self.big_endian);
        head.bytes.extend_from_slice(MAGIC);
        head.string(if self.version == Version::V6 { "6" } else { "7" });
        head.bytes.push(self.big_endian.into());
        head.bytes.push(meta.long_size);
        head.number(page_size.into(), 4);
        let pieces = match self.version {
            Version::V6 => sequential(&self.buffers, meta, &mut head),
            Version::V7(codec) => sections(&self.buffers, codec, meta, &mut head).map_err(|e| Error::io(name, e))?,
        };
        let chunks = self.version != Version::V6 && self.version != Version::V7(Codec::None);
        let mut at = head.len();
        let write = || -> std::io::Result<()> {
            out.write_all(&head.bytes)?;
            for piece in pieces {
                std::io::copy(&mut std::io::Read::take(std::io::repeat(0), piece.offset - at), out)?;
                at = piece.offset;
                match piece.content {
                    Content::Bytes(bytes) => {
                        out.write_all(&bytes)?;
                        at += bytes.len() as u64;
                    }
                    Content::Lane(lane) => {
                        if chunks {
                            out.write_all(&number(lane.runs() as u64, 4, self.big_endian))?;
                            at += 4;
                        }
                        self.spool.copy(lane, out)?;
                        at += lane.len();
                    }
                }
            }
            out.flush()
        };
        write().map_err(|e| Error::io(name, e))
    }

    /// The page size for the start of the file. In version 6 it is that of all buffers.
    fn page_size(&self, meta: &Meta<'_>, name: &str) -> Result<u32, Error> {
        let mut sizes = self.buffers.iter().filter(|b| !b.cpus.is_empty()).map(|b| b.page_size);
        match (self.version, sizes.next()) {
            (Version::V6, Some(first)) => match sizes.find(|s| *s != first) {
                None => Ok(first),
                Some(_) => Err(Error::at(Place::file(name), "buffers with different page sizes need version 7")),
            },
            _ => Ok(meta.page_size),
        }
    }
}

/// Builds the head of version 6.
fn sequential<'w>(buffers: &'w [Instance], meta: &Meta<'_>, head: &mut Builder) -> Vec<Piece<'w>> {
    head.header_info(meta);
    head.ftrace_formats(meta);
    head.event_formats(meta);
    head.sized(&meta.kallsyms, 4);
    head.sized(&meta.printk, 4);
    head.sized(&meta.cmdlines, 8);
    let highest = buffers.iter().filter_map(|b| Some(b.cpus.last_key_value()?.0 + 1)).max().unwrap_or(0);
    let cpus = meta.cpus.min(MAX_CPUS).max(highest);
    head.number(cpus.into(), 4);
    head.bytes.extend_from_slice(b"options  \0");
    head.options(meta, &buffers[0].clock, cpus);
    let mut pointers = Vec::new();
    for buffer in &buffers[1..] {
        head.number(id::BUFFER.into(), 2);
        head.number(buffer.name.len() as u64 + 9, 4);
        pointers.push(head.len());
        head.number(0, 8);
        head.string(&buffer.name);
    }
    head.number(id::DONE.into(), 2);
    let mut tables = Vec::new();
    for (number, buffer) in buffers.iter().enumerate() {
        if number > 0 {
            head.patch(pointers[number - 1], head.len());
        }
        head.bytes.extend_from_slice(b"flyrecord\0");
        tables.push(head.len());
        head.bytes.resize(head.bytes.len() + cpus as usize * 16, 0);
        head.sized(format!("[{}]", buffer.clock).as_bytes(), 8);
    }
    let mut at = head.len();
    let mut pieces = Vec::new();
    for (buffer, table) in buffers.iter().zip(tables) {
        for (cpu, lane) in &buffer.cpus {
            at = at.next_multiple_of(buffer.page_size.max(1).into());
            head.patch(table + u64::from(*cpu) * 16, at);
            head.patch(table + u64::from(*cpu) * 16 + 8, lane.len());
            pieces.push(Piece { offset: at, content: Content::Lane(lane) });
            at += lane.len();
        }
    }
    pieces
}

/// Builds the head of version 7.
fn sections<'w>(
    buffers: &'w [Instance],
    codec: Codec,
    meta: &Meta<'_>,
    head: &mut Builder,
) -> std::io::Result<Vec<Piece<'w>>> {
    head.string(codec.name());
    head.string(codec.version());
    let first = head.len();
    head.number(0, 8);
    let big_endian = meta.big_endian;
    let mut strings = Strings::default();
    let mut options = Builder::new(big_endian);
    type Part = (u16, &'static str, fn(&mut Builder, &Meta<'_>));
    let parts: [Part; 6] = [
        (id::HEADER_INFO, "headers", Builder::header_info),
        (id::FTRACE_EVENTS, "ftrace events", Builder::ftrace_formats),
        (id::EVENT_FORMATS, "events format", Builder::event_formats),
        (id::KALLSYMS, "kallsyms", |out, meta| out.sized(&meta.kallsyms, 4)),
        (id::PRINTK, "printk", |out, meta| out.sized(&meta.printk, 4)),
        (id::CMDLINES, "command lines", |out, meta| out.sized(&meta.cmdlines, 8)),
    ];
    for (id, name, write) in parts {
        let mut body = Builder::new(big_endian);
        write(&mut body, meta);
        options.option(id, &number(head.len(), 8, big_endian));
        head.section(id, codec, strings.add(name), &body.bytes)?;
    }
    options.options(meta, &buffers[0].clock, meta.cpus);
    // The tables have fixed widths: sizes now, offsets as soon as it is known where the data begin.
    let mut tables = Vec::new();
    for buffer in buffers {
        let mut table = Builder::new(big_endian);
        table.number(0, 8);
        table.string(&buffer.name);
        table.string(&buffer.clock);
        table.number(buffer.page_size.into(), 4);
        table.number(buffer.cpus.len() as u64, 4);
        let rows = table.len();
        for (cpu, lane) in &buffer.cpus {
            table.number((*cpu).into(), 4);
            table.number(0, 8);
            table.number(lane.len(), 8);
        }
        let start = options.len() + 6;
        options.option(id::BUFFER, &table.bytes);
        tables.push((start, start + rows, strings.add(&format!("buffer flyrecord {}", buffer.name))));
    }
    options.option(id::DONE, &[0; 8]);
    let (options_name, strings_name) = (strings.add("options"), strings.add("strings"));
    head.section(id::STRINGS, codec, strings_name, &strings.0)?;
    head.patch(first, head.len());
    let options_at = head.len() + 16;
    head.section(id::DONE, Codec::None, options_name, &options.bytes)?;
    let mut at = head.len();
    let mut pieces = Vec::new();
    for (buffer, (start, rows, name)) in buffers.iter().zip(tables) {
        let header_at = at;
        head.patch(options_at + start, header_at);
        let header_piece = pieces.len();
        at += 16;
        for (row, lane) in buffer.cpus.values().enumerate() {
            at = at.next_multiple_of(buffer.page_size.max(1).into());
            head.patch(options_at + rows + row as u64 * 20 + 4, at);
            pieces.push(Piece { offset: at, content: Content::Lane(lane) });
            at += lane.len() + if codec == Codec::None { 0 } else { 4 };
        }
        let mut header = Builder::new(big_endian);
        header.section_header(id::BUFFER, codec != Codec::None, name, at - header_at - 16);
        pieces.insert(header_piece, Piece { offset: header_at, content: Content::Bytes(header.bytes) });
    }
    Ok(pieces)
}

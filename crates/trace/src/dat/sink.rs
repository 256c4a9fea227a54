//! A stream of events as a trace.dat.
//!
//! Records of binary sources are written unchanged, under the formats of their recording. A text line has no record:
//! it becomes an event of its name in the system `text`, whose only field is the text behind the name, so that the
//! line is printed again as it was, by mmtwin and by trace-cmd. Times are written as they are delivered, in
//! nanoseconds; options that would change them again are left out.
//!
//! What a trace.dat has no place for is left out and said: further names of a task, counters, function calls.

use super::build::number;
use super::id;
use super::meta::{FormatText, Meta, Opt};
use super::open::DatFile;
use super::write::{MAX_CPUS, Version, Writer};
use crate::ring::PageLayout;
use crate::ring::encode::{self, PageWriter};
use crate::{Error, Place, Warnings};
use mmtwin_event::{Call, CounterRow, Event, Sink, Source, Task};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Page size for text: lines of the kernel have at most 8 KiB.
const TEXT_PAGE: usize = 16 << 10;
/// First id for formats made here; the kernel's own tracers have those below.
const FIRST_ID: u16 = 100;
/// Name for events whose own name trace-cmd could not read.
const ODD_NAME: &str = "text_line";
/// Options that change times when a file is read.
const TIME_OPTIONS: [u16; 4] = [id::DATE, id::OFFSET, id::TIME_SHIFT, id::TSC2NSEC];

/// The common fields of the formats made here; they are those of every kernel from 3.x on.
const COMMON_FIELDS: &str = "\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
";
/// Where the text begins in the record of a line: behind the common fields and the word that says where it is.
const TEXT_OFFSET: u64 = 12;

/// What is known of a binary recording whose events are to be written.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// Its formats, symbols, options.
    pub meta: Meta<'a>,
    /// Size of its sub-buffers in bytes.
    pub page_size: u32,
    /// Name of the instance to write into; empty for the top buffer.
    pub instance: String,
}

impl<'a> DatFile<'a> {
    /// What a writer needs for the events of this file. The instance is kept if all data are of one.
    pub fn origin(&self) -> Origin<'a> {
        let filled = || self.buffers.iter().filter(|b| !b.is_empty());
        let page_size = filled().map(|b| b.page_size).max().unwrap_or(self.meta.page_size);
        let instance = match filled().next() {
            Some(first) if filled().count() == 1 => first.name.clone(),
            _ => String::new(),
        };
        Origin { meta: self.meta.clone(), page_size, instance }
    }
}

/// Takes events, and writes them as a trace.dat when it is closed.
pub struct DatWriter<'a> {
    writer: Writer,
    meta: Meta<'a>,
    layout: PageLayout,
    instance: String,
    /// Number of the only buffer, when it was made.
    buffer: Option<usize>,
    /// The source is a binary recording: every event is a record.
    binary: bool,
    cpus: BTreeMap<u32, PageWriter>,
    /// Ids of the formats made here, by event name.
    made: FxHashMap<String, u16>,
    comms: FxHashMap<i32, Vec<u8>>,
    record: Vec<u8>,
    events: u64,
    left_out: Warnings,
    failed: Option<Error>,
}

/// What became of the stream.
#[derive(Clone, Debug)]
pub struct Written {
    /// Events in the file.
    pub events: u64,
    /// What the file has no place for.
    pub left_out: Warnings,
}

impl<'a> DatWriter<'a> {
    /// A writer of events of a binary recording, or of text if there is no `origin`. Pages are kept in a temporary
    /// file in `dir` until it is closed.
    pub fn new(version: Version, origin: Option<Origin<'a>>, dir: &Path) -> Result<DatWriter<'a>, Error> {
        let binary = origin.is_some();
        let (mut meta, layout, instance) = match origin {
            Some(Origin { meta, page_size, instance }) => {
                let place = Place::file("header_page");
                let layout = PageLayout::parse(&meta.header_page, page_size as usize, meta.big_endian, &place)?;
                (meta, layout, instance)
            }
            None => {
                let layout = PageLayout::little_endian_64(TEXT_PAGE);
                let header_page = encode::header_page(&layout);
                let header_event = encode::HEADER_EVENT.into();
                let (long_size, page_size) = (8, TEXT_PAGE as u32);
                (Meta { long_size, page_size, header_page, header_event, ..Meta::default() }, layout, String::new())
            }
        };
        let scaled = meta.option(id::TSC2NSEC).is_some();
        meta.options.retain(|o| !TIME_OPTIONS.contains(&o.id));
        if scaled {
            // trace-cmd's name for a cycle counter whose times are nanoseconds already.
            meta.options.retain(|o| o.id != id::TRACECLOCK);
            meta.options.push(Opt { id: id::TRACECLOCK, data: b"[tsc2nsec]\n\0".to_vec() });
        }
        Ok(DatWriter {
            writer: Writer::new(version, meta.big_endian, dir)?,
            meta,
            layout,
            instance,
            binary,
            buffer: None,
            cpus: BTreeMap::new(),
            made: FxHashMap::default(),
            comms: FxHashMap::default(),
            record: Vec::new(),
            events: 0,
            left_out: Warnings::default(),
            failed: None,
        })
    }

    /// Writes the file to `out`; `name` is for messages.
    pub fn close(mut self, name: &str, out: &mut dyn Write) -> Result<Written, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let buffer = self.buffer();
        for (cpu, pages) in &mut self.cpus {
            while let Some(page) = pages.flush() {
                self.writer.pages(buffer, *cpu, page)?;
            }
        }
        let highest = self.cpus.last_key_value().map_or(0, |(cpu, _)| cpu.saturating_add(1));
        self.meta.cpus = self.meta.cpus.max(highest);
        if !self.binary {
            let mut comms: Vec<_> = self.comms.into_iter().collect();
            comms.sort();
            let lines = comms.iter().flat_map(|(pid, comm)| [pid.to_string().as_bytes(), b" ", comm, b"\n"].concat());
            self.meta.cmdlines = Cow::Owned(lines.collect());
        }
        self.writer.finish(&self.meta, name, out)?;
        Ok(Written { events: self.events, left_out: self.left_out })
    }

    /// Number of the only buffer.
    fn buffer(&mut self) -> usize {
        let (writer, meta) = (&mut self.writer, &self.meta);
        *self.buffer.get_or_insert_with(|| {
            let clock = meta.clock().unwrap_or_else(|| "local".into());
            writer.buffer(&self.instance, &clock, self.layout.page_size as u32)
        })
    }

    fn push(&mut self, event: &Event<'_>, record: &[u8]) -> Result<(), Error> {
        if event.cpu >= MAX_CPUS {
            self.left_out.add(|| Place::file(event.name), "an event with an impossible CPU number");
            return Ok(());
        }
        let buffer = self.buffer();
        let pages = self.cpus.entry(event.cpu).or_insert_with(|| PageWriter::new(self.layout));
        match pages.push(event.ts, record) {
            Ok(page) => {
                self.events += 1;
                page.map_or(Ok(()), |page| self.writer.pages(buffer, event.cpu, page))
            }
            Err(_) => {
                self.left_out.add(|| Place::file(event.name), "an event is too long for a page of the file");
                Ok(())
            }
        }
    }

    /// Makes the record of a text line.
    fn record_of(&mut self, event: &Event<'_>) -> Result<Vec<u8>, Error> {
        // trace-cmd reads only names that are words. Others are functions that called trace_printk.
        let is_word = event.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !event.name.is_empty();
        let (name, before) = if is_word { (event.name, "") } else { (ODD_NAME, event.name) };
        if !is_word {
            let message = "an event name that is not a word is written at the start of the text of `text_line`";
            self.left_out.add(|| Place::file(event.name), message);
        }
        let id = match self.made.get(name) {
            Some(id) => *id,
            None => self.make_format(name)?,
        };
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        let big_endian = self.meta.big_endian;
        record.extend(number(id.into(), 2, big_endian));
        record.extend([event.flags, event.preempt_count]);
        record.extend(number(event.pid as u32 as u64, 4, big_endian));
        let between = if is_word { "" } else { ": " };
        let parts = [before.as_bytes(), between.as_bytes(), event.raw, b"\0"];
        let length = parts.iter().map(|p| p.len() as u64).sum::<u64>();
        record.extend(number((length << 16) | TEXT_OFFSET, 4, big_endian));
        parts.iter().for_each(|p| record.extend_from_slice(p));
        Ok(record)
    }

    /// Adds the format of a text event; gives its id.
    fn make_format(&mut self, name: &str) -> Result<u16, Error> {
        let id = u16::try_from(usize::from(FIRST_ID) + self.made.len());
        let id = id.map_err(|_| Error::at(Place::file("text"), "more event names than a trace.dat can have"))?;
        let text = format!(
            "name: {name}\nID: {id}\nformat:\n{COMMON_FIELDS}\n\
             \tfield:__data_loc char[] text;\toffset:8;\tsize:4;\tsigned:0;\n\n\
             print fmt: \"%s\", __get_str(text)\n"
        );
        self.meta.formats.push(FormatText { system: "text".into(), text, offset: 0 });
        self.made.insert(name.into(), id);
        Ok(id)
    }

    /// Keeps the first thing that went wrong for [`DatWriter::close`].
    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

impl Sink for DatWriter<'_> {
    fn start(&mut self, source: &Source) {
        if self.binary {
            return;
        }
        self.meta.cpus = source.cpus;
        let clock = source.clock.as_deref().unwrap_or("local");
        self.meta.options.push(Opt { id: id::TRACECLOCK, data: format!("[{clock}]\n\0").into_bytes() });
        if let Some(kernel) = &source.kernel {
            let data = format!("Linux (none) {kernel} unknown\0").into_bytes();
            self.meta.options.push(Opt { id: id::UNAME, data });
        }
    }

    fn task(&mut self, task: &Task<'_>) {
        if !self.binary {
            self.comms.insert(task.pid, task.comm.to_vec());
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.failed.is_some() {
            return;
        }
        if self.binary {
            let result = self.push(event, event.raw);
            return self.note(result);
        }
        if event.tgid != 0 {
            self.left_out.add(|| Place::file(event.name), "a trace.dat has no place for thread group ids");
        }
        // Task 0 is <idle> everywhere, and a line says <...> where the kernel knew no name.
        if event.pid != 0 && !matches!(event.comm, b"" | b"<...>") {
            match self.comms.get(&event.pid) {
                Some(known) if known == event.comm => {}
                Some(_) => {
                    self.left_out.add(|| Place::file(event.name), "a task has several names; the last one is kept");
                    self.comms.insert(event.pid, event.comm.to_vec());
                }
                None => {
                    self.comms.insert(event.pid, event.comm.to_vec());
                }
            }
        }
        let result = self.record_of(event).and_then(|record| {
            let result = self.push(event, &record);
            self.record = record;
            result
        });
        self.note(result);
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, _at: u64) {
        if cpu < MAX_CPUS {
            self.cpus.entry(cpu).or_insert_with(|| PageWriter::new(self.layout)).lost(events);
        }
    }

    fn counters(&mut self, _row: &CounterRow<'_>) {
        self.left_out.add(|| Place::file("counters"), "a trace.dat has no place for counters");
    }

    fn call(&mut self, call: &Call<'_>) {
        let place = || Place::file(call.function);
        self.left_out.add(place, "calls of functions are not written to a trace.dat");
    }
}

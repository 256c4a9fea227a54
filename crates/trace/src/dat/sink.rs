//! A stream of events as a trace.dat.
//!
//! Records of binary sources are written unchanged, under the formats of their recording; text lines become records
//! in `lines`. Times are written as they are delivered, in nanoseconds; options that would change them again are left
//! out. Only where a text has several CPUs at one microsecond, in another order than the CPUs have, the later ones get
//! some nanoseconds more, so that they stay in the order of the text. What a trace.dat has no place for is omitted with a warning: further names of a task, counters, function calls.

use super::id;
use super::lines::Lines;
use super::meta::{Meta, Opt};
use super::pages::Buffer;
use super::write::{MAX_CPUS, Version, Writer};
use crate::ring::PageLayout;
use crate::ring::encode::PageWriter;
use crate::{Error, Place, Warnings};
use mmtwin_event::era::{Era, header_event, header_page};
use mmtwin_event::{Call, CounterRow, Event, Sink, Source, Task};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Page size for text: lines of the kernel have at most 8 KiB.
const TEXT_PAGE: usize = 16 << 10;
/// Options that change times when a file is read.
const TIME_OPTIONS: [u16; 4] = [id::DATE, id::OFFSET, id::TIME_SHIFT, id::TSC2NSEC];

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

impl<'a> Origin<'a> {
    /// What a writer needs for the events of `buffers`. The instance is kept if all data are of one.
    pub fn of(meta: &Meta<'a>, buffers: &[Buffer<'a>]) -> Origin<'a> {
        let filled = || buffers.iter().filter(|b| !b.is_empty());
        let page_size = filled().map(|b| b.page_size).max().unwrap_or(meta.page_size);
        let instance = match filled().next() {
            Some(first) if filled().count() == 1 => first.name.clone(),
            _ => String::new(),
        };
        Origin { meta: meta.clone(), page_size, instance }
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
    /// For lines; `None`: the source is a binary recording, every event is a record.
    lines: Option<Lines>,
    cpus: BTreeMap<u32, PageWriter>,
    comms: FxHashMap<i32, Vec<u8>>,
    /// Of the line before: its time, the time it was given, its CPU.
    before: (u64, u64, u32),
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
        let lines = origin.is_none().then(|| Lines::new(None));
        let (mut meta, layout, instance) = match origin {
            Some(Origin { meta, page_size, instance }) => {
                let place = Place::file("header_page");
                let layout = PageLayout::parse(&meta.header_page, page_size as usize, meta.big_endian, &place)?;
                (meta, layout, instance)
            }
            None => {
                let layout = PageLayout::little_endian_64(TEXT_PAGE);
                let (long_size, page_size) = (8, TEXT_PAGE as u32);
                let header_page = header_page(Era::V6_18, long_size, page_size);
                let header_event = header_event(Era::V6_18);
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
            lines,
            buffer: None,
            cpus: BTreeMap::new(),
            comms: FxHashMap::default(),
            before: (0, 0, 0),
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
        if let Some(lines) = self.lines {
            let mut comms: Vec<_> = self.comms.into_iter().collect();
            comms.sort();
            let names = comms.iter().flat_map(|(pid, comm)| [pid.to_string().as_bytes(), b" ", comm, b"\n"].concat());
            self.meta.cmdlines = Cow::Owned(names.collect());
            let (formats, kallsyms) = lines.close();
            self.meta.formats = formats;
            self.meta.kallsyms = Cow::Owned(kallsyms);
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

    /// The time of a line that keeps it behind the line before, if both have the same time. Readers put events of
    /// one time in order of their CPUs. What is added is never printed: it stays below half a microsecond.
    fn time_in_order(&mut self, event: &Event<'_>) -> u64 {
        let (time, given, cpu) = self.before;
        let mut ts = event.ts;
        if time == ts {
            ts = given + u64::from(event.cpu < cpu && given - time < 499);
        }
        self.before = (event.ts, ts, event.cpu);
        ts
    }

    /// Keeps the task's name that a line shows.
    fn note_names(&mut self, event: &Event<'_>) {
        if event.tgid != 0 {
            self.left_out.add(|| Place::file(event.name), "a trace.dat cannot hold thread group ids");
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
    }
}

impl Sink for DatWriter<'_> {
    fn start(&mut self, source: &Source) {
        if self.lines.is_none() {
            return;
        }
        self.lines = Some(Lines::new(source.kernel.as_deref()));
        self.meta.cpus = source.cpus;
        let clock = source.clock.as_deref().unwrap_or("local");
        self.meta.options.push(Opt { id: id::TRACECLOCK, data: format!("[{clock}]\n\0").into_bytes() });
        if let Some(kernel) = &source.kernel {
            let data = format!("Linux (none) {kernel} unknown\0").into_bytes();
            self.meta.options.push(Opt { id: id::UNAME, data });
        }
    }

    fn task(&mut self, task: &Task<'_>) {
        if self.lines.is_some() {
            self.comms.insert(task.pid, task.comm.to_vec());
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.failed.is_some() {
            return;
        }
        let result = match &mut self.lines {
            None => self.push(event, event.raw),
            Some(lines) => match lines.record(event, &mut self.left_out) {
                Ok(record) => {
                    self.note_names(event);
                    let ts = self.time_in_order(event);
                    self.push(&Event { ts, ..*event }, &record)
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = result {
            // For `close` to return; a sink has no other way to say it.
            self.failed = Some(error);
        }
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, _at: u64) {
        if cpu < MAX_CPUS {
            self.cpus.entry(cpu).or_insert_with(|| PageWriter::new(self.layout)).lost(events);
        }
    }

    fn counters(&mut self, _row: &CounterRow<'_>) {
        self.left_out.add(|| Place::file("counters"), "a trace.dat cannot hold counters");
    }

    fn call(&mut self, call: &Call<'_>) {
        let place = || Place::file(call.function);
        self.left_out.add(place, "function calls are not written to a trace.dat");
    }
}

//! From the ring buffers to `cpu/N.pages`.
//!
//! While tracing, only sub-buffers that are full move (`splice` gives no others). They pass through memory here
//! because the pids in them are wanted; that costs a copy, far less than the system calls. After tracing `read`
//! gives the rest, the partly filled last sub-buffer too.

use super::addresses::Addresses;
use super::descriptors::{self, PagesOpen};
use super::name;
use super::tasks::Tasks;
use super::tracing::Tracer;
use crate::Error;
use mmtwin_trace::Warnings;
use mmtwin_trace::recording::{Packer, PageFiles, Writer};
use mmtwin_trace::ring::page::{Cursor, Entry, Reading};
use mmtwin_trace::ring::{CpuStream, SlicePages, TimeMap};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes moved at once, if the system allows a pipe of that size.
const RUN: usize = 1 << 20;

/// Moves pages of all CPUs.
pub struct Drain {
    readers: Vec<Reader>,
    pipe: (File, File),
    buffer: Vec<u8>,
    /// Waiting on a buffer returns when a part of it is full, not at the first event.
    polls: bool,
    reading: Reading,
    entries: Vec<Entry>,
    files: PageFiles,
    bytes: u64,
    /// Events that were written.
    written: u64,
    /// Bytes that may still be written.
    room: u64,
    /// Nothing more is written, only counted.
    closed: bool,
    packer: Option<Packer>,
    addresses: Option<Addresses>,
    /// Ids of the records that are stacks, which are no events.
    stack_ids: Vec<u16>,
}

struct Reader {
    cpu: u32,
    name: String,
    raw: File,
    /// `None`: opened when something is written.
    pages: Option<File>,
    /// Bytes in the file of pages.
    length: u64,
    /// Events that were taken out of the buffer and not written.
    unwritten: u64,
}

impl Drain {
    /// Opens the buffers of `tracer` and files for their pages, compressed with this level of zstd if there is one.
    pub fn open(tracer: &mut Tracer, writer: &Writer, compress: Option<i32>) -> Result<Drain, Error> {
        let packer = compress.map(Packer::new).transpose().map_err(|e| Error::io("zstd", e))?;
        let (mut readers, files) = (Vec::new(), writer.page_files(packer.is_some())?);
        let open = descriptors::plan(tracer.manifest.cpus.len())?;
        for &cpu in &tracer.manifest.cpus {
            let path = tracer.instance.path().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let raw = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&path);
            let raw = raw.map_err(|e| Error::io(name(&path), e))?;
            let pages = Some(files.create(cpu)?).filter(|_| open == PagesOpen::Always);
            readers.push(Reader { cpu, name: name(&path), raw, pages, length: 0, unwritten: 0 });
        }
        let fail = |e: Errno| Error::io("pipe", e);
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(fail)?;
        // The system's limit for users may be lower; the default size works too, with more calls.
        let _ = fcntl_setpipe_size(&write, RUN);
        Ok(Drain {
            readers,
            pipe: (read.into(), write.into()),
            buffer: vec![0; RUN.max(tracer.layout.page_size)],
            polls: tracer.wakes_at_fill,
            reading: Reading { layout: tracer.layout, common: tracer.common, time: TimeMap::default() },
            entries: Vec::new(),
            files,
            bytes: 0,
            written: 0,
            room: u64::MAX,
            closed: false,
            packer,
            addresses: tracer.addresses.take(),
            stack_ids: tracer.stack_ids.clone(),
        })
    }

    /// Whether the kernel says when a part of a buffer is full.
    pub fn polls(&self) -> bool {
        self.polls
    }

    /// What to wait on; nothing if waiting would return at every event.
    pub fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        let readers = if self.polls { &self.readers[..] } else { &[] };
        readers.iter().map(|r| PollFd::new(&r.raw, PollFlags::IN))
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Addresses of code in what was written, ascending; `None`: they are not known.
    pub fn addresses(&self) -> Option<Vec<u64>> {
        self.addresses.as_ref().map(Addresses::sorted)
    }

    /// Number of those addresses.
    pub fn address_count(&self) -> usize {
        self.addresses.as_ref().map_or(0, Addresses::count)
    }

    /// Events written so far.
    pub fn events(&self) -> u64 {
        self.written
    }

    /// Bytes that may be written from now on.
    pub fn set_room(&mut self, room: u64) {
        self.room = room;
    }

    /// There was no room for a page, or none could be written: nothing is from then on.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Events of a CPU that were taken out of its buffer and not written.
    pub fn unwritten(&self, cpu: u32) -> u64 {
        self.readers.iter().find(|r| r.cpu == cpu).map_or(0, |r| r.unwritten)
    }

    /// Moves all full sub-buffers.
    pub fn move_whole(&mut self, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        for i in 0..self.readers.len() {
            loop {
                let reader = &self.readers[i];
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                let moved = match splice(&reader.raw, None, &self.pipe.1, None, RUN, flags) {
                    Ok(0) | Err(Errno::AGAIN | Errno::INTR) => break,
                    other => other.map_err(|e| Error::io(&reader.name, e))?,
                };
                if self.buffer.len() < moved {
                    self.buffer.resize(moved, 0);
                }
                (&self.pipe.0).read_exact(&mut self.buffer[..moved]).map_err(|e| Error::io("pipe", e))?;
                self.keep(i, moved, tasks, writer)?;
            }
        }
        Ok(())
    }

    /// Moves everything that is left, after tracing was switched off. What cannot be written is counted; the first
    /// error is returned.
    pub fn flush(&mut self, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        let size = self.reading.layout.page_size;
        let most = self.buffer.len() / size * size;
        let mut result = Ok(());
        for i in 0..self.readers.len() {
            let mut filled = 0;
            loop {
                let reader = &self.readers[i];
                let page = filled..filled + size;
                let read = match (&reader.raw).read(&mut self.buffer[page.clone()]) {
                    Ok(0) => break,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    other => other.map_err(|e| Error::io(&reader.name, e))?,
                };
                // What follows the kernel's data in a short read is padding of the page.
                self.buffer[page][read..].fill(0);
                filled += size;
                if filled == most {
                    result = result.and(self.keep(i, filled, tasks, writer));
                    filled = 0;
                }
            }
            if filled > 0 {
                result = result.and(self.keep(i, filled, tasks, writer));
            }
        }
        result
    }

    /// Writes the first `length` bytes of the buffer to the file of a CPU, as far as there is room, notes the pids and
    /// addresses in them and counts the events of what is not written.
    fn keep(&mut self, i: usize, length: usize, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        writer.prepare_pages(&mut self.buffer[..length], &self.reading.layout);
        let (written, result) = if self.closed { (0, Ok(())) } else { self.write(i, length) };
        self.closed |= written < length;
        self.find(i, 0, written)?;
        for entry in self.entries.iter().filter(|e| e.len != Entry::LOST) {
            tasks.saw(entry.common.pid);
            self.written += u64::from(!self.stack_ids.contains(&entry.common.id));
            if let Some(addresses) = &mut self.addresses {
                // Offsets are within the part of the buffer, which was one chunk.
                let record = self.buffer.get(entry.offset as usize..).and_then(|rest| rest.get(..entry.len as usize));
                addresses.saw(entry.common.id, record.unwrap_or_default());
            }
        }
        if written < length {
            self.find(i, written, length)?;
            let is_event = |e: &&Entry| e.len != Entry::LOST && !self.stack_ids.contains(&e.common.id);
            self.readers[i].unwritten += self.entries.iter().filter(is_event).count() as u64;
        }
        result
    }

    /// Appends the first `length` bytes of the buffer to the file of a CPU, whole pages as far as there is room; all or
    /// none of them in a frame. Returns how many bytes of the buffer are in it then.
    fn write(&mut self, i: usize, length: usize) -> (usize, Result<(), Error>) {
        let size = self.reading.layout.page_size;
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let is_frame = self.packer.is_some();
        let (bytes, fits) = match &mut self.packer {
            Some(packer) => match packer.pack(&self.buffer[..length]) {
                Ok(frame) => (frame, if frame.len() <= room { length } else { 0 }),
                Err(error) => return (0, Err(Error::io("zstd", error))),
            },
            None => {
                let fits = length.min(room) / size * size;
                (&self.buffer[..fits], fits)
            }
        };
        if fits == 0 {
            return (0, Ok(()));
        }
        let reader = &mut self.readers[i];
        let opened;
        let file = match &reader.pages {
            Some(file) => file,
            None => match self.files.append(reader.cpu) {
                Ok(file) => {
                    opened = file;
                    &opened
                }
                Err(error) => return (0, Err(error.into())),
            },
        };
        let mut file = file;
        let (stays, result) = match file.write_all(bytes) {
            Ok(()) => (bytes.len(), Ok(())),
            Err(error) => {
                // Part of it may be there; of that the whole pages stay, or nothing of a frame.
                let grown = file.metadata().map_or(0, |meta| meta.len().saturating_sub(reader.length));
                let unit = if is_frame { bytes.len() } else { size } as u64;
                let whole = grown.min(bytes.len() as u64) / unit * unit;
                // If this fails too, a reader leaves the incomplete rest out.
                let _ = file.set_len(reader.length + whole);
                (whole as usize, Err(Error::io(format!("pages of CPU {}", reader.cpu), error)))
            }
        };
        reader.length += stays as u64;
        self.bytes += stays as u64;
        self.room -= stays as u64;
        (if is_frame && stays > 0 { fits } else { stays }, result)
    }

    /// Finds the events in a part of the buffer.
    fn find(&mut self, i: usize, from: usize, to: usize) -> Result<(), Error> {
        let reader = &self.readers[i];
        let pages = SlicePages::new(&reader.name, 0, &self.buffer[from..to], self.reading.layout.page_size);
        let mut cursor = Cursor::new(CpuStream { cpu: reader.cpu, pages: Box::new(pages) });
        self.entries.clear();
        let mut ignored = Warnings::default();
        Ok(cursor.gather(0, u64::MAX, &self.reading, &mut self.entries, &mut ignored)?)
    }
}

/// `O_NONBLOCK`, as `OpenOptions` wants it.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

//! From the ring buffers to `cpu/N.pages`.
//!
//! While tracing, only sub-buffers that are full move (`splice` gives no others). They pass through memory here
//! because the pids in them are wanted; that costs a copy, far less than the system calls. After tracing `read`
//! gives the rest, the partly filled last sub-buffer too.

use super::name;
use super::tasks::Tasks;
use super::tracing::Tracer;
use crate::Error;
use mmtwin_trace::Warnings;
use mmtwin_trace::recording::Writer;
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
    bytes: u64,
}

struct Reader {
    cpu: u32,
    name: String,
    raw: File,
    pages: File,
}

impl Drain {
    /// Opens the buffers of `tracer` and files for their pages.
    pub fn open(tracer: &Tracer, writer: &Writer) -> Result<Drain, Error> {
        let mut readers = Vec::new();
        for &cpu in &tracer.manifest.cpus {
            let path = tracer.instance.path().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let raw = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&path);
            let raw = raw.map_err(|e| Error::io(name(&path), e))?;
            readers.push(Reader { cpu, name: name(&path), raw, pages: writer.pages(cpu)? });
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
            bytes: 0,
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

    /// Moves everything that is left, after tracing was switched off.
    pub fn flush(&mut self, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        let size = self.reading.layout.page_size;
        for i in 0..self.readers.len() {
            loop {
                let reader = &self.readers[i];
                let read = match (&reader.raw).read(&mut self.buffer[..size]) {
                    Ok(0) => break,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                    other => other.map_err(|e| Error::io(&reader.name, e))?,
                };
                // What follows the kernel's data in a short read is padding of the page.
                self.buffer[read..size].fill(0);
                self.keep(i, size, tasks, writer)?;
            }
        }
        Ok(())
    }

    /// Writes the first `length` bytes of the buffer to the file of a CPU and notes the pids in them.
    fn keep(&mut self, i: usize, length: usize, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        writer.prepare_pages(&mut self.buffer[..length], &self.reading.layout);
        let run = &self.buffer[..length];
        let reader = &mut self.readers[i];
        reader.pages.write_all(run).map_err(|e| Error::io(format!("pages of CPU {}", reader.cpu), e))?;
        self.bytes += length as u64;
        let pages = SlicePages::new(&reader.name, 0, run, self.reading.layout.page_size);
        let mut cursor = Cursor::new(CpuStream { cpu: reader.cpu, pages: Box::new(pages) });
        self.entries.clear();
        let mut ignored = Warnings::default();
        cursor.gather(0, u64::MAX, &self.reading, &mut self.entries, &mut ignored)?;
        for entry in self.entries.iter().filter(|e| e.len != Entry::LOST) {
            tasks.saw(entry.common.pid);
        }
        Ok(())
    }
}

/// `O_NONBLOCK`, as `OpenOptions` wants it.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

//! The ring buffers of an instance: waiting for them, taking pages out of them, and finding the records in these.
//!
//! While tracing, only sub-buffers that are full move (`splice` gives no others). They pass through memory here
//! because the pids in them are wanted; that costs a copy, far less than the system calls. `read` gives the partly
//! filled last sub-buffer too.

use super::descriptors::{self, PagesOpen};
use super::name;
use super::tracing::Tracer;
use crate::Error;
use mmtwin_trace::Warnings;
use mmtwin_trace::ring::page::{Cursor, Entry, Reading};
use mmtwin_trace::ring::{CpuStream, SlicePages, TimeMap};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes moved at once, if the system allows a pipe of that size.
const RUN: usize = 1 << 20;

/// `O_NONBLOCK`, as `OpenOptions` wants it.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Takes whole pages of a CPU, by its index in the manifest.
pub type Keep<'a> = dyn FnMut(usize, &mut [u8]) -> Result<(), Error> + 'a;

/// The ring buffers of all CPUs.
pub struct Buffers {
    readers: Vec<Reader>,
    pipe: (File, File),
    bytes: Vec<u8>,
    page_size: usize,
    /// Waiting on a buffer returns when a part of it is full, not at the first event.
    polls: bool,
}

struct Reader {
    name: String,
    raw: File,
}

impl Buffers {
    /// Opens those of `tracer`. Returns too whether there is room for other open files, one for each.
    pub fn open(tracer: &Tracer) -> Result<(Buffers, PagesOpen), Error> {
        let open = descriptors::plan(tracer.manifest.cpus.len())?;
        let mut readers = Vec::new();
        for &cpu in &tracer.manifest.cpus {
            let path = tracer.instance.path().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let raw = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&path);
            readers.push(Reader { raw: raw.map_err(|e| Error::io(name(&path), e))?, name: name(&path) });
        }
        let fail = |e: Errno| Error::io("pipe", e);
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(fail)?;
        // The system's limit for users may be lower; the default size works too, with more calls.
        let _ = fcntl_setpipe_size(&write, RUN);
        let page_size = tracer.layout.page_size;
        let bytes = vec![0; RUN.max(page_size)];
        let pipe = (read.into(), write.into());
        Ok((Buffers { readers, pipe, bytes, page_size, polls: tracer.wakes_at_fill }, open))
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

    /// Moves all full sub-buffers.
    pub fn move_whole(&mut self, keep: &mut Keep<'_>) -> Result<(), Error> {
        for (i, reader) in self.readers.iter().enumerate() {
            loop {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
                let moved = match splice(&reader.raw, None, &self.pipe.1, None, RUN, flags) {
                    Ok(0) | Err(Errno::AGAIN | Errno::INTR) => break,
                    other => other.map_err(|e| Error::io(&reader.name, e))?,
                };
                if self.bytes.len() < moved {
                    self.bytes.resize(moved, 0);
                }
                (&self.pipe.0).read_exact(&mut self.bytes[..moved]).map_err(|e| Error::io("pipe", e))?;
                keep(i, &mut self.bytes[..moved])?;
            }
        }
        Ok(())
    }

    /// Moves one more sub-buffer of each CPU, however little is in it: after [`Buffers::move_whole`] all that was
    /// written before this call is out.
    pub fn move_partial(&mut self, keep: &mut Keep<'_>) -> Result<(), Error> {
        for i in 0..self.readers.len() {
            if self.read_page(i, 0)? {
                keep(i, &mut self.bytes[..self.page_size])?;
            }
        }
        Ok(())
    }

    /// Moves everything that is left, after tracing was switched off. What cannot be kept is left to `keep`; its first
    /// error is returned, and the rest moves nevertheless.
    pub fn flush(&mut self, keep: &mut Keep<'_>) -> Result<(), Error> {
        let most = self.bytes.len() / self.page_size * self.page_size;
        let mut result = Ok(());
        for i in 0..self.readers.len() {
            let mut filled = 0;
            while self.read_page(i, filled)? {
                filled += self.page_size;
                if filled == most {
                    result = result.and(keep(i, &mut self.bytes[..filled]));
                    filled = 0;
                }
            }
            if filled > 0 {
                result = result.and(keep(i, &mut self.bytes[..filled]));
            }
        }
        result
    }

    /// Reads a sub-buffer to this place of the bytes. False: the buffer is empty.
    fn read_page(&mut self, i: usize, at: usize) -> Result<bool, Error> {
        let (reader, page) = (&self.readers[i], &mut self.bytes[at..at + self.page_size]);
        loop {
            match (&reader.raw).read(page) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    // What follows the kernel's data in a short read is padding of the page.
                    page[read..].fill(0);
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&reader.name, e)),
            }
        }
    }
}

/// Finds records in pages.
pub struct Records {
    reading: Reading,
    /// CPUs and the names of their buffers, by index.
    cpus: Vec<(u32, String)>,
    entries: Vec<Entry>,
    /// Ids of the records that are stacks, which are no events.
    stack_ids: Vec<u16>,
}

impl Records {
    /// For the buffers of `tracer`.
    pub fn new(tracer: &Tracer) -> Records {
        let buffer = |cpu: &u32| (*cpu, name(&tracer.instance.path().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"))));
        Records {
            reading: Reading { layout: tracer.layout, common: tracer.common, time: TimeMap::default() },
            cpus: tracer.manifest.cpus.iter().map(buffer).collect(),
            entries: Vec::new(),
            stack_ids: tracer.stack_ids.clone(),
        }
    }

    /// How pages are read.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Finds the records in some pages of a CPU, by its index. Offsets are within these pages, which are one chunk.
    pub fn find(&mut self, i: usize, pages: &[u8]) -> Result<(), Error> {
        let (cpu, name) = (self.cpus[i].0, &self.cpus[i].1);
        let pages = SlicePages::new(name, 0, pages, self.reading.layout.page_size);
        let mut cursor = Cursor::new(CpuStream { cpu, pages: Box::new(pages) });
        self.entries.clear();
        let mut ignored = Warnings::default();
        Ok(cursor.gather(0, u64::MAX, &self.reading, &mut self.entries, &mut ignored)?)
    }

    /// Number of events among the records in some pages of a CPU, by its index.
    pub fn count(&mut self, i: usize, pages: &[u8]) -> Result<u64, Error> {
        self.find(i, pages)?;
        Ok(self.entries.iter().filter(|entry| is_event(entry, &self.stack_ids)).count() as u64)
    }

    /// What [`Records::find`] found last.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Ids of the records that are stacks, which are no events.
    pub fn stack_ids(&self) -> &[u16] {
        &self.stack_ids
    }
}

/// Whether a record is an event: neither a mark of lost ones nor a stack.
pub fn is_event(entry: &Entry, stack_ids: &[u16]) -> bool {
    entry.len != Entry::LOST && !stack_ids.contains(&entry.common.id)
}

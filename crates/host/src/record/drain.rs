//! From the ring buffers to `cpu/N.pages`.

use super::addresses::Addresses;
use super::buffers::{Buffers, Records, is_event};
use super::descriptors::PagesOpen;
use super::tasks::Tasks;
use super::tracing::Tracer;
use crate::Error;
use mmtwin_trace::recording::{Packer, PageFiles, Writer};
use mmtwin_trace::ring::page::Entry;
use rustix::event::PollFd;
use std::fs::File;
use std::io::Write;

/// Moves pages of all CPUs.
pub struct Drain {
    buffers: Buffers,
    output: Output,
}

/// The files of pages, and what was seen in these.
struct Output {
    cpus: Vec<CpuFile>,
    records: Records,
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
}

struct CpuFile {
    cpu: u32,
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
        let (mut cpus, files) = (Vec::new(), writer.page_files(packer.is_some())?);
        let (buffers, open) = Buffers::open(tracer)?;
        for &cpu in &tracer.manifest.cpus {
            let pages = Some(files.create(cpu)?).filter(|_| open == PagesOpen::Always);
            cpus.push(CpuFile { cpu, pages, length: 0, unwritten: 0 });
        }
        let output = Output {
            cpus,
            records: Records::new(tracer),
            files,
            bytes: 0,
            written: 0,
            room: u64::MAX,
            closed: false,
            packer,
            addresses: tracer.addresses.take(),
        };
        Ok(Drain { buffers, output })
    }

    /// Whether the kernel says when a part of a buffer is full.
    pub fn polls(&self) -> bool {
        self.buffers.polls()
    }

    /// What to wait on; nothing if waiting would return at every event.
    pub fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.buffers.poll_fds()
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.output.bytes
    }

    /// Addresses of code in what was written, ascending; `None`: they are not known.
    pub fn addresses(&self) -> Option<Vec<u64>> {
        self.output.addresses.as_ref().map(Addresses::sorted)
    }

    /// Number of those addresses.
    pub fn address_count(&self) -> usize {
        self.output.addresses.as_ref().map_or(0, Addresses::count)
    }

    /// Events written so far.
    pub fn events(&self) -> u64 {
        self.output.written
    }

    /// Bytes that may be written from now on.
    pub fn set_room(&mut self, room: u64) {
        self.output.room = room;
    }

    /// There was no room for a page, or none could be written: nothing is from then on.
    pub fn is_closed(&self) -> bool {
        self.output.closed
    }

    /// Events of a CPU that were taken out of its buffer and not written.
    pub fn unwritten(&self, cpu: u32) -> u64 {
        self.output.cpus.iter().find(|file| file.cpu == cpu).map_or(0, |file| file.unwritten)
    }

    /// Moves all full sub-buffers.
    pub fn move_whole(&mut self, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        let Drain { buffers, output } = self;
        buffers.move_whole(&mut |i, pages| output.keep(i, pages, tasks, writer))
    }

    /// Moves everything that is left, after tracing was switched off. What cannot be written is counted; the first
    /// error is returned.
    pub fn flush(&mut self, tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        let Drain { buffers, output } = self;
        buffers.flush(&mut |i, pages| output.keep(i, pages, tasks, writer))
    }
}

impl Output {
    /// Writes pages to the file of a CPU, as far as there is room, notes the pids and addresses in them and counts the
    /// events of what is not written.
    fn keep(&mut self, i: usize, pages: &mut [u8], tasks: &mut Tasks, writer: &mut Writer) -> Result<(), Error> {
        writer.prepare_pages(pages, &self.records.reading().layout);
        let (written, result) = if self.closed { (0, Ok(())) } else { self.write(i, pages) };
        self.closed |= written < pages.len();
        let Output { records, addresses, .. } = self;
        records.find(i, &pages[..written])?;
        for entry in records.entries().iter().filter(|e| e.len != Entry::LOST) {
            tasks.saw(entry.common.pid);
            self.written += u64::from(is_event(entry, records.stack_ids()));
            if let Some(addresses) = addresses {
                let record = pages.get(entry.offset as usize..).and_then(|rest| rest.get(..entry.len as usize));
                addresses.saw(entry.common.id, record.unwrap_or_default());
            }
        }
        if written < pages.len() {
            self.cpus[i].unwritten += records.count(i, &pages[written..])?;
        }
        result
    }

    /// Appends pages to the file of a CPU, whole ones as far as there is room; all or none of them in a frame. Returns
    /// how many bytes of the pages are in it then.
    fn write(&mut self, i: usize, pages: &[u8]) -> (usize, Result<(), Error>) {
        let size = self.records.reading().layout.page_size;
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let is_frame = self.packer.is_some();
        let (bytes, fits) = match &mut self.packer {
            Some(packer) => match packer.pack(pages) {
                Ok(frame) => (frame, if frame.len() <= room { pages.len() } else { 0 }),
                Err(error) => return (0, Err(Error::io("zstd", error))),
            },
            None => {
                let fits = pages.len().min(room) / size * size;
                (&pages[..fits], fits)
            }
        };
        if fits == 0 {
            return (0, Ok(()));
        }
        let cpu = &mut self.cpus[i];
        let opened;
        let file = match &cpu.pages {
            Some(file) => file,
            None => match self.files.append(cpu.cpu) {
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
                let grown = file.metadata().map_or(0, |meta| meta.len().saturating_sub(cpu.length));
                let unit = if is_frame { bytes.len() } else { size } as u64;
                let whole = grown.min(bytes.len() as u64) / unit * unit;
                // If this fails too, a reader leaves the incomplete rest out.
                let _ = file.set_len(cpu.length + whole);
                (whole as usize, Err(Error::io(format!("pages of CPU {}", cpu.cpu), error)))
            }
        };
        cpu.length += stays as u64;
        self.bytes += stays as u64;
        self.room -= stays as u64;
        (if is_frame && stays > 0 { fits } else { stays }, result)
    }
}

//! Events of the last interval, from a tracefs instance of its own.
//!
//! Only events that come once per wait, not once per batch of pages: who waits, kswapd, purges, NUMA moves, kills. Pages
//! of the ring buffers are read as far as they are filled and decoded at once. What is read of a CPU in one sample is
//! bounded; the kernel overwrites and counts what there is beyond.

use crate::instance::Instance;
use crate::record::tracing::{cpus, header, sub_buffer};
use crate::tracefs::{self, Tracefs};
use crate::{Error, clock};
use mmtwin_event::Sink;
use mmtwin_event::manifest::Tracing;
use mmtwin_trace::format::Formats;
use mmtwin_trace::ring::{CpuStream, PageLayout, SlicePages, TimeMap, merge};
use mmtwin_trace::{Outcome, Place};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Ring buffer per CPU in bytes.
const BUFFER: u64 = 1 << 20;
/// Pages that are read of a CPU in one sample: those that a buffer holds.
const PAGES: usize = 256;

/// Events that are traced, as far as the kernel has them.
pub const EVENTS: [&str; 18] = [
    "compaction:mm_compaction_begin",
    "compaction:mm_compaction_end",
    "oom:mark_victim",
    "sched:sched_move_numa",
    "sched:sched_swap_numa",
    "vmalloc:purge_vmap_area_lazy",
    "vmscan:mm_vmscan_direct_reclaim_begin",
    "vmscan:mm_vmscan_direct_reclaim_end",
    "vmscan:mm_vmscan_kswapd_sleep",
    "vmscan:mm_vmscan_kswapd_wake",
    "vmscan:mm_vmscan_memcg_reclaim_begin",
    "vmscan:mm_vmscan_memcg_reclaim_end",
    "vmscan:mm_vmscan_memcg_softlimit_reclaim_begin",
    "vmscan:mm_vmscan_memcg_softlimit_reclaim_end",
    "vmscan:mm_vmscan_node_reclaim_begin",
    "vmscan:mm_vmscan_node_reclaim_end",
    "vmscan:mm_vmscan_throttled",
    "writeback:balance_dirty_pages",
];

/// An own instance with tracing on.
pub struct Events {
    /// Before the instance: it cannot be removed while its files are open.
    readers: Vec<(u32, String, File)>,
    /// Before the mount, which it is in.
    _instance: Instance,
    tracefs: Tracefs,
    layout: PageLayout,
    formats: Formats,
    /// What a recording says of them.
    pub tracing: Tracing,
    /// Texts for a recording: headers, and formats by system and event.
    pub texts: Vec<(Text, String)>,
    buffer: Vec<u8>,
}

/// A text of tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// `header_page` or `header_event`.
    Header(&'static str),
    /// The format of an event, by system and name.
    Format(String, String),
}

/// What is read in one sample: a CPU, and the filled part of a page.
pub type Page = (u32, Box<[u8]>);

impl Events {
    /// Sets tracing up and switches it on.
    ///
    /// # Errors
    /// In words, with what would help.
    pub fn open() -> Result<Events, String> {
        let tracefs = tracefs::open().map_err(|obstacle| {
            let fix = if rustix::process::geteuid().is_root() { &obstacle.fix } else { "sudo mmtwin top" };
            format!("{}; {fix}", obstacle.what)
        })?;
        Events::create(tracefs).map_err(|error| error.to_string())
    }

    fn create(tracefs: Tracefs) -> Result<Events, Error> {
        let at = tracefs.path().to_path_buf();
        let (instance, _) = Instance::create(&at)?;
        instance.set("trace_clock", clock::TRACE_CLOCK)?;
        instance.set("buffer_size_kb", &(BUFFER / 1024).to_string())?;
        let (big_endian, long_size) = (cfg!(target_endian = "big"), size_of::<usize>() as u8);
        let name = |path: &PathBuf| path.to_string_lossy().into_owned();
        let page = at.join("events/header_page");
        let header_page = header(&page)?;
        let sub_buffer = sub_buffer(&instance, &header_page);
        let layout = PageLayout::parse(&header_page, sub_buffer as usize, big_endian, &Place::file(&name(&page)))?;
        let mut texts = vec![(Text::Header("header_page"), header_page)];
        if let Ok(text) = header(&at.join("events/header_event")) {
            texts.push((Text::Header("header_event"), text));
        }
        let (mut formats, mut enabled) = (Formats::new(big_endian, long_size), Vec::new());
        for event in EVENTS {
            let Some((system, leaf)) = event.split_once(':') else { continue };
            let directory = at.join("events").join(system).join(leaf);
            let Ok(text) = fs::read_to_string(directory.join("format")) else { continue };
            if instance.set(&format!("events/{system}/{leaf}/enable"), "1").is_ok() {
                formats.add(system, &text, &Place::file(&name(&directory.join("format"))))?;
                texts.push((Text::Format(system.into(), leaf.into()), text));
                enabled.push(event.to_string());
            }
        }
        let cpus = cpus(instance.path())?;
        let mut readers = Vec::with_capacity(cpus.len());
        for &cpu in &cpus {
            let path = instance.path().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let raw = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(&path);
            readers.push((cpu, name(&path), raw.map_err(|e| Error::io(name(&path), e))?));
        }
        instance.set("tracing_on", "1")?;
        let (events, stacks) = (enabled, Vec::new());
        let tracing = Tracing { sub_buffer, buffer: BUFFER, big_endian, long_size, cpus, events, stacks };
        Ok(Events { readers, _instance: instance, tracefs, layout, formats, tracing, texts, buffer: Vec::new() })
    }

    /// The kernel's list of task names.
    pub fn saved_cmdlines(&self) -> PathBuf {
        self.tracefs.path().join("saved_cmdlines")
    }

    /// Gives what happened since the last call to a sink, by time, and the pages to `keep`.
    ///
    /// # Errors
    /// If the kernel refuses to give them, or what it gives cannot be read.
    pub fn read(&mut self, sink: &mut dyn Sink, keep: &mut dyn FnMut(Page)) -> Result<(), Error> {
        let size = self.layout.page_size;
        self.buffer.clear();
        let mut ends = Vec::with_capacity(self.readers.len());
        for (cpu, name, raw) in &mut self.readers {
            let start = self.buffer.len();
            for _ in 0..PAGES {
                let page = self.buffer.len();
                self.buffer.resize(page + size, 0);
                let read = match raw.read(&mut self.buffer[page..]) {
                    Ok(read) => read,
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
                    Err(e) => return Err(Error::io(name.as_str(), e)),
                };
                if read == 0 {
                    self.buffer.truncate(page);
                    break;
                }
                // What follows the kernel's data in a short read is padding of the page.
                self.buffer[page + read..].fill(0);
                let filled = self.buffer[page..].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                keep((*cpu, self.buffer[page..page + filled].into()));
            }
            ends.push((*cpu, start, self.buffer.len()));
        }
        let streams = ends.iter().zip(&self.readers).filter(|((_, start, end), _)| start < end);
        let streams = streams.map(|((cpu, start, end), (_, name, _))| {
            let pages = SlicePages::new(name, 0, &self.buffer[*start..*end], size);
            CpuStream { cpu: *cpu, pages: Box::new(pages) }
        });
        let mut outcome = Outcome::default();
        let (streams, times) = (streams.collect(), TimeMap::default());
        merge::deliver(streams, &self.layout, &self.formats, &times, sink, &mut outcome, &mut |_events| ())?;
        Ok(())
    }
}

/// `O_NONBLOCK`, as `OpenOptions` wants it.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

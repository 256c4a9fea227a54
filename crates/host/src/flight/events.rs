//! Events on their way from the ring buffers to the ring: compressed, with their tasks, addresses and stalls noted.

use super::dump::added;
use super::segment::{Kind, pack};
use super::stalls::{Stalls, Told};
use super::store::Store;
use crate::record::addresses::Addresses;
use crate::record::buffers::{Buffers, Records, is_event};
use crate::record::tasks::Tasks;
use crate::record::tracing::Tracer;
use crate::{Error, clock};
use mmtwin_event::manifest::Losses;
use mmtwin_trace::recording::Packer;
use mmtwin_trace::ring::page::Entry;
use rustix::event::PollFd;
use std::time::Duration;

/// Level of zstd: speed is what counts.
const LEVEL: i32 = 1;

/// The events of this machine.
pub struct Events {
    /// Before `tracer`: an instance cannot be removed while its files are open.
    buffers: Buffers,
    seen: Seen,
    tracer: Tracer,
    /// What the kernel and the recorder had lost when the segment began.
    before: Vec<Losses>,
}

/// Whether to wait on ring buffers: not while one is ready and gives nothing, until all are emptied the next time.
#[derive(Default)]
pub struct Listening {
    woken: bool,
    deaf: bool,
}

impl Listening {
    /// They are waited on.
    pub fn listens(&self) -> bool {
        !self.deaf
    }

    /// Whether one of them ended the wait.
    pub fn woken(&mut self, woken: bool) {
        self.woken = woken;
    }

    /// They were emptied, and that `gave` something.
    pub fn emptied(&mut self, gave: bool) {
        self.deaf = !gave && (self.woken || self.deaf);
        self.woken = false;
    }
}

/// What is done with pages.
struct Seen {
    records: Records,
    cpus: Vec<u32>,
    packer: Packer,
    addresses: Option<Addresses>,
    stalls: Stalls,
    told: Vec<Told>,
    /// Runs of pages that were taken out of the buffers.
    taken: u64,
    events: u64,
    /// Events that could not be written, by index of the CPU.
    unwritten: Vec<u64>,
}

impl Events {
    /// Those of `tracer`, which is still off. Stalls longer than `stall` are told.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn open(mut tracer: Tracer, stall: Option<Duration>) -> Result<Events, Error> {
        let (buffers, _) = Buffers::open(&tracer)?;
        let cpus = tracer.manifest.cpus.clone();
        let seen = Seen {
            records: Records::new(&tracer),
            packer: Packer::new(LEVEL).map_err(|e| Error::io("zstd", e))?,
            addresses: tracer.addresses.take(),
            stalls: Stalls::new(&tracer.instance, &tracer.manifest.events, stall),
            told: Vec::new(),
            taken: 0,
            events: 0,
            unwritten: vec![0; cpus.len()],
            cpus,
        };
        Ok(Events { buffers, seen, tracer, before: Vec::new() })
    }

    /// What is recorded, and how.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Stalls can be told.
    pub fn sees_stalls(&self) -> bool {
        self.seen.stalls.sees_stalls()
    }

    /// Switches tracing on.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn begin(&mut self) -> Result<(), Error> {
        self.before = self.lost()?;
        self.tracer.instance.set("tracing_on", "1")
    }

    /// What to wait on.
    pub fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.buffers.poll_fds()
    }

    /// Runs of pages that were taken out of the buffers so far.
    pub fn taken(&self) -> u64 {
        self.seen.taken
    }

    /// Events so far.
    pub fn count(&self) -> u64 {
        self.seen.events
    }

    /// Moves full sub-buffers to the ring, with `all` what there is in partly filled ones too.
    ///
    /// # Errors
    /// If events cannot be read any more.
    pub fn gather(&mut self, all: bool, tasks: &mut Tasks, store: &mut Store) -> Result<(), Error> {
        let Events { buffers, seen, .. } = self;
        buffers.move_whole(&mut |i, pages| seen.keep(i, pages, tasks, store))?;
        if all {
            let now = clock::now();
            buffers.move_partial(&mut |i, pages| seen.keep(i, pages, tasks, store))?;
            seen.told.extend(seen.stalls.running(now));
        }
        Ok(())
    }

    /// What the events told since the last call.
    pub fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.seen.told)
    }

    /// Writes what belongs to the segment that ends: addresses, and what was lost meanwhile.
    ///
    /// # Errors
    /// If events cannot be read any more.
    pub fn end_segment(&mut self, store: &mut Store) -> Result<(), Error> {
        let at = clock::now();
        let addresses = self.seen.addresses.as_mut().map(Addresses::take).unwrap_or_default();
        if !addresses.is_empty() {
            let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
            store.put(Kind::Addresses, 0, at, &pack(&bytes).map_err(|e| Error::io("zstd", e))?);
        }
        let now = self.lost()?;
        let lost: Vec<Losses> = now.iter().zip(&self.before).map(|(now, before)| less(*now, *before)).collect();
        if lost.iter().any(|lost| lost.total() > 0) {
            let text = serde_json::to_vec(&lost).map_err(|e| Error::io("losses", std::io::Error::from(e)))?;
            store.put(Kind::Losses, 0, at, &pack(&text).map_err(|e| Error::io("zstd", e))?);
        }
        self.before = now;
        Ok(())
    }

    /// Events lost so far, by CPU.
    ///
    /// # Errors
    /// If the kernel does not tell any more.
    pub fn lost(&self) -> Result<Vec<Losses>, Error> {
        let own = |&unwritten: &u64| Losses { unwritten, ..Losses::default() };
        Ok(self
            .tracer
            .losses()?
            .into_iter()
            .zip(self.seen.unwritten.iter().map(own))
            .map(|(a, b)| added(a, b))
            .collect())
    }

    /// Events that were lost when the segment began: the kernel may not tell more.
    pub fn known_lost(&self) -> &[Losses] {
        &self.before
    }

    /// Switches tracing off; what is in the buffers can still be moved.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn stop(&mut self, tasks: &mut Tasks, store: &mut Store) -> Result<(), Error> {
        self.tracer.instance.set("tracing_on", "0")?;
        let Events { buffers, seen, .. } = self;
        buffers.flush(&mut |i, pages| seen.keep(i, pages, tasks, store))
    }
}

impl Seen {
    fn keep(&mut self, i: usize, pages: &mut [u8], tasks: &mut Tasks, store: &mut Store) -> Result<(), Error> {
        let at = clock::now();
        let Seen { records, cpus, packer, addresses, stalls, told, taken, events, unwritten } = self;
        *taken += 1;
        records.find(i, pages)?;
        let mut count = 0;
        for entry in records.entries() {
            told.extend(stalls.saw(entry));
            if entry.len == Entry::LOST {
                continue;
            }
            tasks.saw(entry.common.pid);
            count += u64::from(is_event(entry, records.stack_ids()));
            if let Some(addresses) = addresses {
                let record = pages.get(entry.offset as usize..).and_then(|rest| rest.get(..entry.len as usize));
                addresses.saw(entry.common.id, record.unwrap_or_default());
            }
        }
        let frame = packer.pack(pages).map_err(|e| Error::io("zstd", e))?;
        if store.put(Kind::Pages, cpus[i], at, frame) {
            *events += count;
        } else {
            unwritten[i] += count;
        }
        Ok(())
    }
}

/// What was lost of a CPU meanwhile.
fn less(now: Losses, before: Losses) -> Losses {
    Losses {
        cpu: now.cpu,
        overrun: now.overrun.saturating_sub(before.overrun),
        commit_overrun: now.commit_overrun.saturating_sub(before.commit_overrun),
        dropped: now.dropped.saturating_sub(before.dropped),
        unwritten: now.unwritten.saturating_sub(before.unwritten),
    }
}

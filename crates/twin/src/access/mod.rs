//! A workload's touches of memory: what they allocate and how long they take.
//!
//! Two readers of the same program. The sampled one ([`sampled`]) takes a thread's rates and draws, once per epoch, how
//! many pages are touched for the first time and which; its cost follows faults, not touches. The explicit one
//! ([`explicit`]) makes every touch; it is what the sampled one is checked against (`tests/access.rs`). An access trace
//! is replayed touch by touch, too ([`replay`]).

mod ahead;
mod binomial;
mod cache;
mod costs;
mod cpus;
mod dentry;
mod dirty;
mod discard;
mod explicit;
mod hints;
mod index;
mod inode;
mod load;
mod lock;
mod marks;
mod pool;
mod readahead;
mod region;
mod replay;
mod rmap;
mod sampled;
mod swap;
mod tables;
mod young;

pub(crate) use ahead::Ahead;
pub(crate) use cache::{Reader, Touched};
pub(crate) use costs::FaultCosts;
pub(crate) use cpus::Cpus;
pub(crate) use dentry::Dentries;
pub(crate) use hints::Hit;
pub(crate) use index::{Asks, Index};
pub(crate) use inode::Inodes;
pub(crate) use load::Load;
pub(crate) use marks::{Balance, HUGE_PAGES, Mapping, Unit};
pub(crate) use pool::Pool;
pub(crate) use region::{Entry, Region, Shape};
pub(crate) use replay::{Replay, Step};
pub(crate) use sampled::Rest;
pub(crate) use swap::Swap;
use young::Log;

use crate::alloc::{AllocationFailure, Caller};
use crate::clock::{Random, Use};
use crate::kernel::{Kernel, Ps, Slab};
use crate::machine::Device;
use crate::page::Pfn;
use crate::writeback::Requests;
use mmtwin_workload::program::Touching;
use std::collections::BTreeMap;

/// Pages of a window of 128 KiB (`VM_READAHEAD_PAGES`).
const READAHEAD_PAGES: u64 = 32;
/// Pages of 64 KiB (`fault_around_bytes`).
pub(crate) const FAULT_AROUND: u64 = 16;

/// Memory and what all accesses share.
#[derive(Debug)]
pub(crate) struct AccessState {
    /// All regions of all processes.
    pub regions: Vec<Region>,
    /// Pools of the phases that run; an ended phase leaves its places empty.
    pub pools: Vec<Option<Pool>>,
    /// Latencies.
    pub load: Load,
    /// What faults cost.
    pub costs: FaultCosts,
    /// First touches.
    pub random: Random,
    /// Regions as processes map them; empty if nobody balances memory over nodes.
    pub mappings: Vec<Mapping>,
    /// First touches of marked pages.
    pub hint_random: Random,
    /// Swap space; of size 0 if there is none.
    pub swap: Swap,
    /// The disk below files.
    pub disk: Device,
    /// Pages that a window holds at most (`read_ahead_kb`).
    pub readahead_pages: u64,
    /// Pages that a fault which reads maps together if they are in memory (`fault_around_bytes`).
    pub fault_around: u64,
    /// Pages that are being read, and when they will be there.
    pub reading: BTreeMap<Pfn, Ps>,
    /// Requests to write that the disk has or that wait for their end.
    pub requests: Requests,
    /// Nodes by which pages of files are found.
    pub index: Index,
    /// What a file system remembers of each page that was written (`buffer_head`).
    pub buffers: Slab,
    /// Names that were looked up.
    pub dentries: Dentries,
    /// Inodes and dentries of files that regions are divided into.
    pub inodes: Inodes,
    /// Those that have begun since the engine asked, by when the disk will be done.
    pub ends: Vec<(Ps, u64)>,
    /// The request that failed last is not tried again.
    pub denied: bool,
    /// Touches by epoch, for those who ask which pages are young; somebody has asked.
    logs: Vec<Log>,
    looked: bool,
    /// Epochs since then.
    epoch: u32,
    young_random: Random,
}

impl AccessState {
    /// No regions yet, on a machine without swap whose disk takes no time.
    pub(crate) fn new(load: Load, costs: FaultCosts, seed: u64) -> AccessState {
        let disk = Device::new(0, 0, true);
        AccessState {
            regions: Vec::new(),
            pools: Vec::new(),
            load,
            costs,
            random: Random::new(seed, Use::FirstTouch),
            mappings: Vec::new(),
            hint_random: Random::new(seed, Use::HintFault),
            swap: Swap::new(Some(disk.clone()), 0),
            disk,
            readahead_pages: READAHEAD_PAGES,
            fault_around: FAULT_AROUND,
            reading: BTreeMap::new(),
            requests: Requests::default(),
            index: Index::new(1, 1, Asks::Wakes, true),
            buffers: Slab::new(dirty::BUFFERS),
            dentries: Dentries::new(0, 1),
            inodes: Inodes::default(),
            ends: Vec::new(),
            denied: false,
            logs: Vec::new(),
            looked: false,
            epoch: 0,
            young_random: Random::new(seed, Use::Young),
        }
    }

    /// Handles the fault of a touch. After a wait the same touch comes again.
    pub(crate) fn fault(
        &mut self,
        kernel: &mut Kernel,
        caller: &mut Caller,
        (region, mapper, reader): (usize, usize, &mut Reader),
        page: u64,
        write: bool,
    ) -> Result<Touched, AllocationFailure> {
        let of = &mut self.regions[region];
        if of.file {
            return self.file_fault(kernel, caller, (region, mapper, reader), page, write);
        }
        match of.entry(page) {
            Entry::Gone(_) => return self.swap_in(kernel, caller, (region, mapper), page, write),
            // Others have brought it in.
            Entry::Present(_) if !of.is_mapped_by(mapper, page) => {
                kernel.stat.events.faults += 1;
                kernel.spend(caller.cpu, self.costs.fault);
            }
            Entry::Absent | Entry::Zero | Entry::Present(_) => {
                let denied = std::mem::take(&mut self.denied);
                of.fault(kernel, caller, &self.costs, page, (write, denied))?;
            }
        }
        if !self.regions[region].anon {
            self.map_around(kernel, caller.cpu, (region, mapper), page, write);
        }
        Ok(Touched::Done)
    }

    /// Marks units of one huge page's length for hinting faults and lets them wait for touches in all pools of their
    /// mapping; those that were marked are left out.
    pub(crate) fn mark_all<'u>(&mut self, mapping: usize, units: &'u mut Vec<Unit>) -> std::vec::Drain<'u, Unit> {
        let at = &mut self.mappings[mapping];
        units.retain(|&unit| at.mark(unit));
        if let Some(&first) = units.first() {
            let block = u64::from(first.page) / HUGE_PAGES * HUGE_PAGES;
            for &pool in &at.pools {
                let hints = self.pools[pool].as_mut().and_then(|pool| pool.hints.as_mut());
                if let Some(hints) = hints.filter(|hints| hints.reaches(block..block + HUGE_PAGES)) {
                    units.iter().for_each(|&unit| hints.list(unit));
                }
            }
        }
        units.drain(..)
    }

    /// Lets a marked unit wait for a touch in all pools of its mapping.
    pub(crate) fn list(&mut self, mapping: usize, unit: Unit) {
        for &pool in &self.mappings[mapping].pools {
            let hints = self.pools[pool].as_mut().and_then(|pool| pool.hints.as_mut());
            hints.into_iter().for_each(|hints| hints.list(unit));
        }
    }

    /// The pages of a unit are now those from `pfn` on, on node `to` instead of `from`. No mapping has them marked.
    pub(crate) fn relocate(&mut self, region: usize, unit: Unit, pfn: Pfn, from: usize, to: usize) {
        self.regions[region].relocate(unit, pfn, from, to);
        for mapping in self.mappings.iter_mut().filter(|mapping| mapping.region == region) {
            mapping.clear(unit);
            for &pool in &mapping.pools {
                if let Some(Pool { hints: Some(hints), classes, stale, .. }) = &mut self.pools[pool] {
                    *stale = true;
                    hints.moved(classes, unit, from, to);
                }
            }
        }
    }

    /// A pool is no longer drawn from.
    pub(crate) fn drop_pool(&mut self, pool: usize) {
        self.pools[pool] = None;
        self.regions.iter_mut().for_each(|region| region.pools.retain(|&at| at != pool));
        self.mappings.iter_mut().for_each(|mapping| mapping.pools.retain(|&at| at != pool));
    }
}

/// A thread's accesses in a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accessor {
    /// By turn.
    pub list: Vec<Accessing>,
    /// Whose turn it is; explicit touches only.
    pub turn: usize,
    /// Touch by touch.
    pub explicit: bool,
    /// The touches are those of a trace; each of the list stands for a region.
    pub replay: Option<Replay>,
    /// Picoseconds that a turn took last; 0 before the first. Sampled touches only.
    pub pace: f64,
    /// What is left of turns that were interrupted. Sampled touches only.
    pub rest: Rest,
    /// CPU time of its thread since the touches began, faults and reclaim for them included, without waiting.
    pub ran: Ps,
}

/// One access of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Accessing {
    /// What it does. Its stream counts the touches.
    pub touching: Touching,
    /// Number of the region among all.
    pub region: usize,
    /// Number of the process's mapping among those of the region.
    pub mapper: usize,
    /// Number of the process's mapping of it among all that may be marked; `None` if nobody marks pages.
    pub mapping: Option<usize>,
    /// Marked pages that it will come to. Sampled touches only.
    pub ahead: Ahead,
    /// Number of the pool it draws from; `None`: it walks, or is explicit.
    pub pool: Option<usize>,
    /// Touches after which it has given its pages back.
    pub renewed: u64,
    /// Faults so far, on marked pages too; one that waits for the disk is one.
    pub faults: u64,
    /// CPU time so far, without what is done for it outside, and what of it the program itself has had.
    pub time: Ps,
    pub user: Ps,
    /// What it reads ahead.
    pub reader: Reader,
    /// Where its touches are written down, and how many were.
    pub log: Option<usize>,
    pub logged: u64,
}

/// How far a thread came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// To the end of its time.
    On,
    /// It sleeps until then.
    Asleep(Ps),
    /// All accesses have reached their counts.
    Done,
    /// To a marked page of a mapping.
    Marked(usize, Unit),
}

impl Accessing {
    /// Touches that are left; `None`: no end.
    pub(crate) fn left(&self) -> Option<u64> {
        self.touching.count.map(|count| count.saturating_sub(self.touching.stream.count))
    }

    /// Touches until its pages are given back.
    fn to_renewal(&self) -> u64 {
        let pages = self.touching.pages.end - self.touching.pages.start;
        if self.touching.recycle { pages - self.touching.stream.count % pages } else { u64::MAX }
    }

    pub(crate) fn active(&self) -> bool {
        self.left() != Some(0)
    }
}

impl Accessor {
    /// An access's part in the CPU time of the thread: as its share in what is known by access.
    pub(crate) fn cpu_time(&self, access: &Accessing) -> Ps {
        let all: Ps = self.list.iter().map(|access| access.time).sum();
        match all {
            0 => self.ran / self.list.len().max(1) as Ps,
            all => (u128::from(self.ran) * u128::from(access.time) / u128::from(all)) as Ps,
        }
    }

    /// CPU time that the program itself has had for its touches: thinking, and waiting for memory.
    pub(crate) fn user(&self) -> Ps {
        self.list.iter().map(|access| access.user).sum::<Ps>().min(self.ran)
    }

    /// Notes faults on a marked unit of a mapping.
    pub(crate) fn note_hints(&mut self, mapping: usize, unit: Unit, faults: u64) {
        let (begin, end) = (u64::from(unit.page), u64::from(unit.page) + unit.pages());
        let of = |access: &Accessing| {
            let pages = &access.touching.pages;
            access.mapping == Some(mapping) && pages.start < end && begin < pages.end
        };
        // Those on the program's own pages are of what it does first.
        let at = self.list.iter().position(of).unwrap_or(0);
        self.list.get_mut(at).into_iter().for_each(|access| access.faults += faults);
    }

    /// Runs a thread on its caller's CPU until a time, or for a touch more.
    pub(crate) fn run(
        &mut self,
        state: &mut AccessState,
        kernel: &mut Kernel,
        caller: &mut Caller,
        until: Ps,
    ) -> Result<Came, AllocationFailure> {
        if let Some(mut replay) = self.replay.take() {
            let came = replay::run((self, &mut replay), state, kernel, caller, until);
            self.replay = Some(replay);
            return came;
        }
        match self.explicit {
            false => sampled::run(self, state, kernel, caller, until),
            true => explicit::run(self, state, kernel, caller, until),
        }
    }
}

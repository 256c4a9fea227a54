//! The memory of the processes: regions with their page tables, files, swap, and what of them is on its way to a disk or
//! back. [`AccessState::fault`] handles a fault.

use crate::frame::Pfn;
use crate::hw::Device;
use crate::hw::load::Load;
use crate::mm::accessed::Log;
use crate::mm::accessed::pool::Pool;
use crate::mm::costs::FaultCosts;
use crate::mm::filemap::index::{Index, SlabAllocMode};
use crate::mm::filemap::{Reader, Reading, Touched};
use crate::mm::kernel::Kernel;
use crate::mm::prot_numa::{HUGE_PAGES, Mapping, Unit};
use crate::mm::region::{Entry, Region};
use crate::mm::slab::Slab;
use crate::mm::slab::dentry::Dentries;
use crate::mm::slab::inode::Inodes;
use crate::mm::swap::Swap;
use crate::mm::writeback::Requests;
use crate::mm::writeback::dirty;
use crate::page_alloc::{AllocationFailure, Caller};
use crate::time::{Ps, Random, Use};
use rustc_hash::FxHashMap;
use std::ops::Range;

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
    /// Costs of faults.
    pub costs: FaultCosts,
    /// First accesses.
    pub random: Random,
    /// Regions as processes map them; empty without NUMA balancing.
    pub mappings: Vec<Mapping>,
    /// First accesses to marked pages.
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
    pub reading: FxHashMap<Pfn, Reading>,
    /// Requests to read that a disk has been given since the engine took them: when, and when it ends them.
    pub reads: Vec<(Ps, Ps)>,
    /// Requests to write that the disk has or that wait for their end.
    pub requests: Requests,
    /// Nodes by which pages of files are found.
    pub index: Index,
    /// State of a file system for each page that was written (`buffer_head`).
    pub buffers: Slab,
    /// Names that were looked up.
    pub dentries: Dentries,
    /// Inodes and dentries of files that regions are divided into.
    pub inodes: Inodes,
    /// Requests to write that have begun since the engine took them, with the time when the disk ends them.
    pub ends: Vec<(Ps, u64)>,
    /// The allocation at which the last step of the thread that runs ended is not tried again. The engine sets it, true
    /// or false, before a step that accesses memory. The first place that can fall back clears it: a fault that falls
    /// back to a base page, read-ahead that stops, an index node in a smaller slab. Such places are deep below the
    /// step, behind calls that do not need it otherwise.
    pub denied: bool,
    /// Accesses by epoch, by which reclaim finds young pages; valid since the start.
    pub(crate) logs: Vec<Log>,
    pub(crate) looked: bool,
    /// Epochs since then.
    pub(crate) epoch: u32,
    pub(crate) young_random: Random,
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
            reading: FxHashMap::default(),
            reads: Vec::new(),
            requests: Requests::default(),
            index: Index::new(1, 1, SlabAllocMode::Wakes, true, false),
            buffers: Slab::new(dirty::BUFFERS),
            dentries: Dentries::new(0, 1, 1),
            inodes: Inodes::default(),
            ends: Vec::new(),
            denied: false,
            logs: Vec::new(),
            looked: false,
            epoch: 0,
            young_random: Random::new(seed, Use::Young),
        }
    }

    /// Handles the fault of an access. After a wait the same access is repeated.
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
        if !of.anon && of.users > 1 && self.costs.shmem_add > 0 {
            let step = self.add_shared(kernel, caller, (region, mapper), page, write)?;
            match step {
                Some(Touched::Done) => {
                    self.regions[region].touch(mapper, page);
                    self.map_around(kernel, caller.cpu, (region, mapper), page, write);
                    return Ok(Touched::Done);
                }
                Some(later) => return Ok(later),
                None => {}
            }
        }
        let of = &mut self.regions[region];
        match of.entry(page) {
            Entry::Gone(_) => return self.swap_in(kernel, caller, (region, mapper, reader), page, write),
            // Another thread has faulted it in.
            Entry::Present(_) if !of.is_mapped_by(mapper, page) => {
                kernel.stat.events.faults += 1;
                let cost = if write { self.costs.shmem_write_fault } else { self.costs.shmem_read_fault };
                kernel.spend(caller.cpu, cost);
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

    /// Marks units of one huge page's length for hinting faults and lists them in all pools of their mapping; units
    /// that were marked already are omitted.
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

    /// Lists a marked unit in all pools of its mapping.
    pub(crate) fn list(&mut self, mapping: usize, unit: Unit) {
        for &pool in &self.mappings[mapping].pools {
            let hints = self.pools[pool].as_mut().and_then(|pool| pool.hints.as_mut());
            hints.into_iter().for_each(|hints| hints.list(unit));
        }
    }

    /// Entries of pages are removed from all page tables: what comes there later is not marked.
    pub(crate) fn clear_marks(&mut self, region: usize, pages: Range<u64>) {
        for mapping in self.mappings.iter_mut().filter(|of| of.region == region && of.marked() > 0) {
            for page in pages.clone() {
                mapping.clear(Unit { page: page as u32, huge: false });
            }
            if pages.end - pages.start == HUGE_PAGES {
                mapping.clear(Unit { page: pages.start as u32, huge: true });
            }
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

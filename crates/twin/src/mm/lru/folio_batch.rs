//! Pages that wait for their LRU list in a batch of their CPU: `folio_add_lru`, `folio_activate`,
//! `folio_rotate_reclaimable`, `lru_add_drain_cpu`, `folio_mark_accessed` (5.8 to 6.18).
//!
//! A batch is drained to the lists when it is full or holds a huge page; a CPU that reclaims empties its own first. A
//! page in the batch of another CPU stays on its list, but the batch holds a reference, so reclaim cannot free it
//! (`__remove_mapping`). Not modelled: the batches of pages that are deactivated by advice; a page that its process
//! frees stays in another CPU's batch, without effect until it is on a list again. Checked against guests event by event
//! (docs/fidelity.md).

use crate::frame::{Flag, Frames, Pfn};
use crate::mm::vmscan::Reclaim;
use crate::vmstat::VmStat;
use rustc_hash::FxHashMap;

/// The batches of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batches {
    add: Vec<Pfn>,
    rotate: Vec<Pfn>,
    activate: Vec<Pfn>,
}

/// References that batches hold to pages on lists: how many of each page. Reclaim asks for every page that it could free,
/// and would have to search the batches of all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchRefs(FxHashMap<Pfn, u32>);

impl BatchRefs {
    fn get(&mut self, page: Pfn) {
        *self.0.entry(page).or_default() += 1;
    }

    fn put(&mut self, page: Pfn) {
        if let Some(count) = self.0.get_mut(&page) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&page);
            }
        }
    }

    /// True if a batch holds a page.
    pub(crate) fn hold(&self, page: Pfn) -> bool {
        self.0.contains_key(&page)
    }
}

impl Reclaim {
    /// A new page is to be put on its list. Returns how many of the batch have been.
    #[inline]
    pub(crate) fn add_page(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32, page: Pfn) -> u64 {
        let batch = &mut self.batches[cpu as usize].add;
        batch.push(page);
        let full = batch.len() >= self.rules.folio_batch_size || frames.order(page) > 0;
        if full { self.drain_added(frames, stat, cpu) } else { 0 }
    }

    fn drain_added(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32) -> u64 {
        let mut batch = std::mem::take(&mut self.batches[cpu as usize].add);
        let added = batch.len() as u64;
        batch.drain(..).for_each(|page| self.lru.add(frames, &mut stat.pages, page, false));
        self.batches[cpu as usize].add = batch;
        added
    }

    /// Drains all batches of a CPU to the lists. Returns how many new pages that are.
    pub(crate) fn drain(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32) -> u64 {
        let added = self.drain_added(frames, stat, cpu);
        self.drain_rotated(frames, stat, cpu);
        self.drain_activated(frames, stat, cpu);
        added
    }

    fn drain_activated(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32) {
        for page in std::mem::take(&mut self.batches[cpu as usize].activate) {
            self.batch_refs.put(page);
            let fits = !frames.has(page, Flag::Active) && !frames.has(page, Flag::Unevictable);
            if fits && self.lru.remove(frames, &mut stat.pages, page) {
                frames.set_flag(page, Flag::Active, true);
                self.lru.add(frames, &mut stat.pages, page, false);
                stat.events.reclaim.pgactivate += 1 << frames.order(page);
            }
        }
    }

    fn drain_rotated(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32) {
        for page in std::mem::take(&mut self.batches[cpu as usize].rotate) {
            self.batch_refs.put(page);
            if !frames.has(page, Flag::Unevictable) && self.lru.remove(frames, &mut stat.pages, page) {
                frames.set_flag(page, Flag::Active, false);
                self.lru.add(frames, &mut stat.pages, page, true);
                stat.events.reclaim.pgrotated += 1 << frames.order(page);
            }
        }
    }

    /// A page whose write has ended is moved to the tail, to be reclaimed next.
    pub(crate) fn rotate(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32, page: Pfn) {
        if frames.has(page, Flag::Dirty) || !frames.has(page, Flag::Lru) {
            return;
        }
        self.batch_refs.get(page);
        self.batches[cpu as usize].rotate.push(page);
        if self.batches[cpu as usize].rotate.len() >= self.rules.folio_batch_size || frames.order(page) > 0 {
            self.drain_rotated(frames, stat, cpu);
        }
    }

    /// A page was read or written by a system call: the first time it is referenced, the second time activated. True if
    /// it is activated.
    pub(crate) fn mark_accessed(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32, page: Pfn) -> bool {
        if !frames.set_flag(page, Flag::Referenced, true) || frames.has(page, Flag::Unevictable) {
            return false;
        }
        if frames.has(page, Flag::Active) {
            return false;
        }
        if frames.has(page, Flag::Lru) {
            self.batch_refs.get(page);
            self.batches[cpu as usize].activate.push(page);
            if self.batches[cpu as usize].activate.len() >= self.rules.folio_batch_size || frames.order(page) > 0 {
                self.drain_activated(frames, stat, cpu);
            }
        } else if self.batches[cpu as usize].add.contains(&page) {
            // It waits on this CPU for its list, which will be the active one.
            frames.set_flag(page, Flag::Active, true);
        }
        frames.set_flag(page, Flag::Referenced, false);
        let number = self.lru.number_of(frames, page);
        self.lru.age(number, 1 << frames.order(page));
        true
    }

    /// A page of a process becomes one that may be freed instead of swapped (`lru_lazyfree`): it belongs to the inactive
    /// file list now.
    pub(crate) fn lazyfree(&mut self, frames: &mut Frames, stat: &mut VmStat, page: Pfn) {
        let fits = frames.has(page, Flag::Swapbacked) && !frames.has(page, Flag::Unevictable);
        if fits && self.lru.remove(frames, &mut stat.pages, page) {
            for flag in [Flag::Active, Flag::Referenced, Flag::Swapbacked] {
                frames.set_flag(page, flag, false);
            }
            self.lru.add(frames, &mut stat.pages, page, false);
            stat.events.reclaim.pglazyfree += 1 << frames.order(page);
        }
    }

    /// A page is freed or taken to be moved: it leaves its list and all batches.
    pub(crate) fn forget(&mut self, frames: &mut Frames, stat: &mut VmStat, cpu: u32, page: Pfn) {
        self.isolated.values_mut().for_each(|of| of.forget(page));
        if self.lru.remove(frames, &mut stat.pages, page) {
            let Batches { activate, rotate, .. } = &mut self.batches[cpu as usize];
            for batch in [activate, rotate] {
                let before = batch.len();
                batch.retain(|&at| at != page);
                (batch.len()..before).for_each(|_| self.batch_refs.put(page));
            }
            return;
        }
        let cpus = [cpu as usize].into_iter().chain(0..self.batches.len());
        for cpu in cpus {
            let batch = &mut self.batches[cpu].add;
            if let Some(at) = batch.iter().position(|&at| at == page) {
                batch.remove(at);
                return;
            }
        }
    }
}

//! The address space: areas from request to reuse.
//!
//! Models `alloc_vmap_area`, `free_vmap_area_noflush`, `decay_va_pool_node`, `purge_vmap_node` and
//! `__purge_vmap_area_lazy` (6.12, with the rules of 6.1 and 6.18 as variants): home node by CPU, busy tree by address,
//! pools by size, lazy lists, the lazy page count with guard pages, the trigger. Calls take no time: the caller gives
//! the time. Not modelled: locks, object allocation, page tables, the shrinker, regions of per-CPU and vm_map_ram
//! users, the reclaim notifiers before an allocation fails.
//!
//! Checked by property tests: areas never overlap, the lowest fit is taken, neighbours merge, a lazy area is not
//! reused before it is purged, the count is that of the pages with their guards.

use super::free_tree::FreeTree;
use super::params::{Areas, PAGE_SHIFT, PurgeAccounting, Rules};
use super::pass;
use std::collections::{BTreeMap, VecDeque};

const PAGE: u64 = 1 << PAGE_SHIFT;
/// Addresses of one zone belong to the same node's busy tree.
const ZONE: u64 = 64 << 10;
/// Pools of a node: areas of 1 to this many pages.
const POOLS: u64 = 256;
/// x86-64 with four-level page tables: first byte and end of the vmalloc range.
pub const VMALLOC: (u64, u64) = (0xffff_c900_0000_0000, 0xffff_e8ff_ffff_ffff);

/// A range of addresses, guard page included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// Node of the requesting CPU, if it is from the plain range.
    pub home: Option<u32>,
}

impl Area {
    /// Its pages.
    pub fn pages(&self) -> u64 {
        (self.end - self.start) >> PAGE_SHIFT
    }
}

/// Purpose of an area, as /proc/vmallocinfo prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Pages of its own, on one memory node.
    Vmalloc {
        /// The memory node.
        nid: u32,
    },
    /// Mapping of existing pages.
    Vmap,
    /// Memory of a device.
    Ioremap {
        /// Its physical address.
        phys: u64,
    },
}

/// A request for an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes without the guard page.
    pub size: u64,
    /// A power of two.
    pub align: u64,
    /// From where to where; `None`: the plain range, which the pools serve.
    pub range: Option<(u64, u64)>,
    /// CPU of the caller.
    pub cpu: u32,
    /// Its purpose.
    pub mapping: Mapping,
    /// Calling symbol, with offset and length.
    pub caller: &'static str,
}

/// An area in use.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// Where.
    pub area: Area,
    /// Its purpose.
    pub mapping: Mapping,
    /// The caller.
    pub caller: &'static str,
}

/// Why a call cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// Nothing fits, not even after all lazy areas were purged.
    #[error("no vmalloc space for {0} bytes")]
    Full(u64),
    /// No request can have this size or alignment.
    #[error("a request of {0} bytes aligned to {1} is invalid")]
    Invalid(u64, u64),
    /// No area begins there.
    #[error("no area begins at {0:#x}")]
    NotBusy(u64),
}

/// Result of a search, for the trace event; a failed one is followed by another attempt or by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Start of the area, or the end of the range if it failed.
    pub addr: u64,
    /// True if nothing fits.
    pub failed: bool,
}

#[derive(Clone, Debug)]
struct Node {
    busy: BTreeMap<u64, Busy>,
    lazy: Vec<Area>,
    /// By pages - 1; the first of a pool is the next to be taken.
    pools: Vec<VecDeque<Area>>,
    purged: u64,
}

/// A vmalloc address space.
#[derive(Clone, Debug)]
pub struct Space {
    rules: Rules,
    range: (u64, u64),
    free: FreeTree,
    nodes: Vec<Node>,
    vmap_lazy_nr: u64,
    lazy_max: u64,
    used_pages: u64,
}

/// A pass that has begun: the lists that it detached.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Per node, the areas to purge in order of address.
    pub lists: Vec<Vec<Area>>,
    /// All lie between; (`u64::MAX`, 0) if there are none.
    pub range: (u64, u64),
    /// Works beside the drain worker.
    pub helpers: u64,
    /// Pools are emptied and not filled.
    pub full: bool,
}

impl Pass {
    /// Areas in all lists.
    pub fn areas(&self) -> u64 {
        self.lists.iter().map(|list| list.len() as u64).sum()
    }
}

impl Space {
    /// An empty space over a range of whole pages.
    pub fn new(rules: Rules, online_cpus: u32, possible_cpus: u32, range: (u64, u64)) -> Space {
        let pools = if rules.areas == Areas::Nodes { POOLS as usize } else { 0 };
        let node = Node { busy: BTreeMap::new(), lazy: Vec::new(), pools: vec![VecDeque::new(); pools], purged: 0 };
        Space {
            rules,
            range,
            free: FreeTree::new(range.0, range.1 & !(PAGE - 1)),
            nodes: vec![node; rules.nodes(possible_cpus).max(1) as usize],
            vmap_lazy_nr: 0,
            lazy_max: rules.lazy_max(online_cpus),
            used_pages: 0,
        }
    }

    /// Allocates an area. `searched` is called after every search, as the kernel's trace event is written. A search
    /// that fails is tried again after everything lazy was purged.
    pub fn alloc(&mut self, request: &Request, mut searched: impl FnMut(Search)) -> Result<Area, SpaceError> {
        let invalid = SpaceError::Invalid(request.size, request.align);
        let rounded = request.size.checked_next_multiple_of(PAGE).and_then(|size| size.checked_add(PAGE));
        let size = rounded.filter(|_| request.size > 0 && request.align.is_power_of_two()).ok_or(invalid)?;
        let (low, high) = request.range.unwrap_or(self.range);
        let home = (self.rules.areas == Areas::Nodes && request.range.is_none())
            .then(|| request.cpu % self.nodes.len() as u32);
        let mut at = home.and_then(|node| self.take_pooled(node, size, request.align));
        for last in [false, true] {
            at = at.or_else(|| self.free.take(size, request.align, low, high, request.range.is_some(), PAGE));
            searched(Search { addr: at.unwrap_or(high), failed: at.is_none() });
            if at.is_some() || last {
                break;
            }
            let pass = self.begin_pass(true);
            (0..pass.lists.len()).for_each(|node| self.purge_node(&pass, node));
        }
        let start = at.ok_or(SpaceError::Full(request.size))?;
        let area = Area { start, end: start + size, home };
        let node = self.node_of(start);
        self.nodes[node].busy.insert(start, Busy { area, mapping: request.mapping, caller: request.caller });
        if matches!(request.mapping, Mapping::Vmalloc { .. }) {
            self.used_pages += area.pages() - 1;
        }
        Ok(area)
    }

    /// An area of this size that waits for reuse. A misaligned one is moved to the end and the free space is searched
    /// instead.
    fn take_pooled(&mut self, node: u32, size: u64, align: u64) -> Option<u64> {
        let pool = self.nodes[node as usize].pools.get_mut((size >> PAGE_SHIFT) as usize - 1)?;
        let area = pool.pop_front()?;
        if area.start.is_multiple_of(align) {
            return Some(area.start);
        }
        pool.push_back(area);
        None
    }

    /// Node whose busy tree holds the area that starts at an address.
    fn node_of(&self, start: u64) -> usize {
        (start / ZONE % self.nodes.len() as u64) as usize
    }

    /// The area that an address lies in, and how many busy trees were searched: an area that extends into a further
    /// zone is in the tree of its start, so lookups walk the nodes backwards.
    pub fn find(&self, addr: u64) -> Option<(&Busy, usize)> {
        let (first, nodes) = (self.node_of(addr), self.nodes.len());
        (0..nodes).find_map(|i| {
            let node = &self.nodes[(first + nodes - i) % nodes];
            let busy = node.busy.range(..=addr).next_back()?.1;
            (addr < busy.area.end).then_some((busy, i + 1))
        })
    }

    /// Frees an area lazily. Returns it with the lazy page count after it: above [`lazy_max`](Self::lazy_max), the
    /// drain work is to be queued.
    pub fn free(&mut self, start: u64) -> Result<(Area, u64), SpaceError> {
        let node = self.node_of(start);
        let busy = self.nodes[node].busy.remove(&start).ok_or(SpaceError::NotBusy(start))?;
        if matches!(busy.mapping, Mapping::Vmalloc { .. }) {
            self.used_pages -= busy.area.pages() - 1;
        }
        self.vmap_lazy_nr += busy.area.pages();
        let home = busy.area.home.map_or(node, |home| home as usize);
        self.nodes[home].lazy.push(busy.area);
        Ok((busy.area, self.vmap_lazy_nr))
    }

    /// Begins a pass: decays the pools and takes all lazy lists.
    pub fn begin_pass(&mut self, full: bool) -> Pass {
        let mut pass = Pass { lists: Vec::with_capacity(self.nodes.len()), range: (u64::MAX, 0), helpers: 0, full };
        for i in 0..self.nodes.len() {
            for pool in 0..self.nodes[i].pools.len() {
                let decayed = pass::decayed(self.nodes[i].pools[pool].len() as u64, full, self.rules.small_pools);
                for _ in 0..decayed {
                    let area = self.nodes[i].pools[pool].pop_front();
                    area.into_iter().for_each(|area| self.merge(area));
                }
            }
            // The next list will be about as long.
            let next = Vec::with_capacity(self.nodes[i].lazy.len());
            let mut list = std::mem::replace(&mut self.nodes[i].lazy, next);
            list.sort_unstable_by_key(|area| area.start);
            if self.rules.areas == Areas::SingleList {
                // Its purge tree merges neighbours on insertion.
                list.dedup_by(|next, area| {
                    let touch = area.end == next.start;
                    if touch {
                        area.end = next.end;
                    }
                    touch
                });
            }
            if let (Some(first), Some(last)) = (list.first(), list.last()) {
                pass.range = (pass.range.0.min(first.start), pass.range.1.max(last.end));
            }
            pass.lists.push(list);
        }
        let with_work = pass.lists.iter().filter(|list| !list.is_empty()).count() as u64;
        pass.helpers = pass::helpers(self.vmap_lazy_nr, self.lazy_max, with_work);
        pass
    }

    /// Purges the list of one node at once.
    pub fn purge_node(&mut self, pass: &Pass, node: usize) {
        self.begin_node(node);
        for area in &pass.lists[node] {
            self.purge_area(pass, node, *area);
        }
        self.end_node(pass, node);
    }

    /// Begins the list of a node.
    pub fn begin_node(&mut self, node: usize) {
        self.nodes[node].purged = 0;
    }

    /// Purges the next area of a node's list: to its pool, or back to the free space. The count falls here if it
    /// falls per area.
    #[inline]
    pub fn purge_area(&mut self, pass: &Pass, node: usize, area: Area) {
        self.nodes[node].purged += 1;
        if self.rules.purge_accounting == PurgeAccounting::PerArea {
            self.vmap_lazy_nr -= area.pages();
        }
        match self.nodes[node].pools.get_mut(area.pages() as usize - 1) {
            Some(pool) if !pass.full && area.home.is_some() => pool.push_front(area),
            _ => self.merge(area),
        }
    }

    /// Ends the list of a node. The count falls here if it falls per list.
    pub fn end_node(&mut self, pass: &Pass, node: usize) {
        if self.rules.purge_accounting == PurgeAccounting::Batched {
            self.vmap_lazy_nr -= pass.lists[node].iter().map(Area::pages).sum::<u64>();
        }
    }

    fn merge(&mut self, area: Area) {
        // Every area was taken from the free space once and is in one place only, so it cannot be free already.
        let merged = self.free.give(area.start, area.end);
        debug_assert_eq!(merged, Ok(()));
    }

    /// Empties all pools, as the shrinker does under memory pressure; no pass, no event.
    pub fn shrink(&mut self) {
        for i in 0..self.nodes.len() {
            for pool in 0..self.nodes[i].pools.len() {
                std::mem::take(&mut self.nodes[i].pools[pool]).into_iter().for_each(|area| self.merge(area));
            }
        }
    }

    /// Lazy pages, guards included.
    pub fn vmap_lazy_nr(&self) -> u64 {
        self.vmap_lazy_nr
    }

    /// Lazy pages above which the drain work is queued.
    pub fn lazy_max(&self) -> u64 {
        self.lazy_max
    }

    /// Pages of payload in use: VmallocUsed of /proc/meminfo in pages.
    pub fn used_pages(&self) -> u64 {
        self.used_pages
    }

    /// `nr_purged` of a node: areas of its list that were purged so far, or of its last list.
    pub fn nr_purged(&self, node: usize) -> u64 {
        self.nodes[node].purged
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Areas in use, node by node in order of address.
    pub fn busy(&self) -> impl Iterator<Item = &Busy> {
        self.nodes.iter().flat_map(|node| node.busy.values())
    }

    /// Areas that wait for a purge, node by node in order of address, as far as no pass has taken them.
    pub fn lazy(&self) -> impl Iterator<Item = Area> {
        self.nodes.iter().flat_map(|node| {
            let mut lazy = node.lazy.clone();
            lazy.sort_unstable_by_key(|area| area.start);
            lazy
        })
    }

    /// Areas in a node's pool of this size in pages.
    pub fn pooled(&self, node: usize, pages: u64) -> u64 {
        let pool = (pages as usize).checked_sub(1).and_then(|i| self.nodes[node].pools.get(i));
        pool.map_or(0, |pool| pool.len() as u64)
    }

    /// The free space.
    pub fn free_ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.free.iter()
    }
}

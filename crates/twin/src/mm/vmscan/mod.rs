//! Page reclaim with lists by node: `mm/vmscan.c`. Reference is 6.1 with the classic LRU; 6.12 by rules.
//!
//! | subject | file |
//! |---|---|
//! | one reclaim: its target and what it may do (`scan_control`) | [`scan_control`] |
//! | how much of each list to scan (`get_scan_count`) | [`scan_count`] |
//! | pages isolated from a list's tail (`isolate_lru_folios`) | [`isolate`] |
//! | which pages are evicted (`shrink_folio_list`) | [`shrink_inactive`] |
//! | which are deactivated (`shrink_active_list`) | [`shrink_active`] |
//! | a lruvec, a node with its cgroups and slabs | [`shrink_lruvec`], [`shrink_node`] |
//! | kswapd, and direct reclaim | [`kswapd`], [`direct`] |
//! | sleeping until another task makes progress | [`reclaim_throttle`], [`pfmemalloc`] |
//! | a node's page cache before another node's memory | [`node_reclaim`] |
//!
//! LRU lists and folio batches are in [`lru`](super::lru), refaults in [`workingset`], shrinkers in
//! [`shrinker`](super::slab::shrinker), limits and protection of cgroups in [`memcg`](super::memcg), reclaim with lists
//! by zone in [`vmscan_zone`]; the choice between them is in [`reclaim`](super::reclaim).
//!
//! A reclaim is a state machine that advances by batches ([`Poll`]), so that it shares its CPU with other threads and
//! can sleep anywhere. The state of lists and nodes is the kernel's ([`Reclaim`]); where pages are mapped, which were
//! accessed and how they are written is in [`memory`](super::memory) and [`rmap`](super::rmap).

mod count;
mod direct;
mod isolate;
pub(crate) mod kswapd;
mod node_reclaim;
mod pfmemalloc;
mod reclaim_throttle;
mod scan_control;
mod scan_count;
mod shrink_active;
pub(crate) mod shrink_inactive;
mod shrink_lruvec;
mod shrink_node;

use crate::mm::lru::Lru;
use crate::mm::memcg::{Cgroup, Group, Stock};
use crate::mm::slab::shrinker::Shrinker;
use crate::mm::swap::readahead::SwapReadahead;
use crate::mm::vmscan_zone::Variant;
pub(crate) use direct::Direct;
pub(crate) use node_reclaim::{NodeReclaim, NodeReclaimHistory};
pub(crate) use reclaim_throttle::{Reason, Throttle};
pub(crate) use scan_control::{Control, Reclaimer};
pub(crate) use shrink_node::COSTLY_ORDER;

use crate::frame::{Pfn, ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::lru::folio_batch::{BatchRefs, Batches};
use crate::mm::memory::AccessState;
use crate::mm::vmscan_zone;
use crate::mm::workingset;
use crate::probe::Task;
use crate::time::{Ns, Ps};
use mmtwin_event::Typed;
use mmtwin_scenario::kernel::{MmapHits, ReadaheadWindows, ScanBalance};
use std::collections::{BTreeMap, BTreeSet};

/// Priority that a scan begins with: 1/4096 of a list.
pub(crate) const DEF_PRIORITY: u32 = 12;
/// Pages of a batch, and the least that a reclaim aims at (`SWAP_CLUSTER_MAX`).
pub(crate) const BATCH: u64 = 32;
/// Fruitless runs after which kswapd gives up, and of the allocator (`MAX_RECLAIM_RETRIES`).
pub(crate) const MAX_RETRIES: u32 = 16;

/// Free pages that compaction needs to work for an order (`compact_gap`).
pub(crate) fn compact_gap(order: u32) -> u64 {
    2 << order
}

/// Which faults on pages that have to be read `pgfault` counts again when they are made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// None: `mm_account_fault` counts a fault when it is done (6.5 and later).
    None,
    /// Faults that find their page locked (2.6.37 to 5.0, `lock_page_or_retry`).
    Waits,
    /// Of files also all that read, or read ahead, as they drop the lock of the address space (5.1 to 6.4,
    /// `maybe_unlock_mmap_for_io`).
    Reads,
}

/// How reclaim of a release differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Pages of a CPU's batch for the LRU lists (`PAGEVEC_SIZE`): 15, from 6.11 on 31.
    pub folio_batch_size: usize,
    /// Compaction scans the rest of a pageblock of which a page could not be moved (6.6 and later).
    pub finishes_pageblocks: bool,
    /// Reclaimed pages are freed and their TLB entries flushed by batches, in order; before all at once, the last first.
    pub frees_in_batches: bool,
    /// A task's pass over cgroups ends when enough is reclaimed, and the next one goes on behind.
    pub rotates: bool,
    /// What reclaim of a type costs, and when the scan balance knows it.
    pub scan_balance: ScanBalance,
    /// Scanned and reclaimed pages are counted by node, those for limits of cgroups too.
    pub counts_by_node: bool,
    /// Pages of unusable zones that an isolation skips at most; 0: no limit.
    pub skip_limit: u64,
    /// Interval of flushes of the LRU lists' statistics (`FLUSH_TIME`); 0: they are always current.
    pub stats_flush: Ns,
    /// `vm.swappiness`.
    pub swappiness: u64,
    /// `vm.zone_reclaim_mode`.
    pub node_reclaim_mode: u64,
    /// `vm.min_unmapped_ratio`, in percent.
    pub min_unmapped_ratio: u64,
    /// `vm.vfs_cache_pressure`, in percent.
    pub vfs_cache_pressure: u64,
    /// `vm.laptop_mode`.
    pub laptop_mode: bool,
    /// Faults that are counted.
    pub retries: Retries,
    /// Swap that is memory is read and written page by page (`rw_page`), which `pgpgin` and `pgpgout` do not count (3.16 to 6.2).
    pub swap_by_page: bool,
    /// Neighbours in swap are written with one request.
    pub swap_plug: bool,
    /// Anonymous pages of a process whose end has begun are kept.
    pub keeps_exiting: bool,
    /// How swap is read ahead.
    pub swap_readahead: SwapReadahead,
    /// `vm.page-cluster`.
    pub page_cluster: u32,
    /// A mapping that is read in order is read ahead like a call's file.
    pub mmap_sequential: bool,
    /// Windows of read-ahead.
    pub readahead: ReadaheadWindows,
    /// Read-ahead allocates large folios.
    pub large_folios: bool,
    /// Calls that write pages mark them accessed.
    pub writes_mark_accessed: bool,
    /// What counts against misses of mapped reads.
    pub mmap_hits: MmapHits,
    /// Pages of files are allocated as cold ones, and read-ahead may retry.
    pub cold_pages: bool,
    /// kswapd writes dirty file pages of a node where there are many; otherwise reclaim writes none.
    pub writes_dirty_files: bool,
    /// New anonymous pages are active (before 5.9).
    pub new_anon_active: bool,
    /// Refaults are detected (3.15 and later).
    pub workingset: bool,
    /// Devices' queues are full or congested, for which reclaimers and the flusher wait.
    pub congestion: bool,
    /// Compaction is that of before 3.7 ([`crate::mm::compaction`]).
    pub early_compaction: bool,
    /// Tasks compact for orders above 3 only, and wait for writes (before 2.6.38).
    pub compacts_costly: bool,
    /// Compaction that fails is deferred for its order and higher ones only (3.4 and later).
    pub defers_by_order: bool,
    /// `vm.extfrag_threshold`.
    pub extfrag_threshold: i64,
    /// `vm.compaction_proactiveness`; 0: there is no proactive compaction.
    pub proactiveness: u32,
    /// Ticks per second.
    pub hz: u64,
    /// Zones are reclaimed, not nodes, by the rules of a kernel of 2010.
    pub per_zone_lru: Option<Variant>,
}

impl Rules {
    /// Kernel 6.1 with default sysctls, 250 ticks a second.
    pub const V6_1: Rules = Rules {
        folio_batch_size: 15,
        finishes_pageblocks: false,
        scan_balance: ScanBalance::Cost,
        counts_by_node: false,
        frees_in_batches: false,
        rotates: false,
        skip_limit: 0,
        stats_flush: 0,
        swappiness: 60,
        node_reclaim_mode: 0,
        min_unmapped_ratio: 1,
        vfs_cache_pressure: 100,
        laptop_mode: false,
        retries: Retries::Reads,
        swap_by_page: true,
        swap_plug: false,
        keeps_exiting: false,
        swap_readahead: SwapReadahead::Vma,
        page_cluster: 3,
        mmap_sequential: false,
        readahead: ReadaheadWindows::OnDemand,
        large_folios: false,
        writes_mark_accessed: false,
        mmap_hits: MmapHits::Pages,
        cold_pages: false,
        writes_dirty_files: true,
        new_anon_active: false,
        workingset: true,
        congestion: false,
        early_compaction: false,
        compacts_costly: false,
        defers_by_order: true,
        extfrag_threshold: 500,
        proactiveness: 0,
        hz: 250,
        per_zone_lru: None,
    };
}

/// Reclaim state of a node (`struct pglist_data`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Largest order and highest zone of the pending requests to kswapd; `None`: there are none.
    pub kswapd_order: u32,
    pub kswapd_highest: Option<ZoneKind>,
    /// kswapd sleeps, with or without a timeout.
    pub kswapd_waits: bool,
    /// kswapd sleeps amid a run: it is throttled, or waits for a disk.
    pub kswapd_is_throttled: bool,
    /// Runs in a row that reclaimed nothing.
    pub kswapd_failures: u32,
    /// Many dirty pages at the tail: kswapd writes them.
    pub dirty: bool,
    /// Many pages under writeback at the tail.
    pub writeback: bool,
    /// All dirty pages wait for congested devices.
    pub congested: bool,
    /// A task reclaims the node before it takes memory of another.
    pub reclaim_locked: bool,
    /// Tasks asleep in [`reclaim_throttle`], by reason.
    pub throttled: [u32; 5],
    /// Pages written since tasks were throttled for writeback began to count.
    pub written_at_throttle: u64,
}

/// Reclaim state of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Reclaim {
    pub rules: Rules,
    pub lru: Lru,
    pub nodes: Vec<Node>,
    /// Used where zones are reclaimed.
    pub zones: Vec<vmscan_zone::Zone>,
    /// By sleeping task: its isolated pages. Pages whose writeback is awaited; whether a task waits for room in a
    /// device's queue.
    pub isolated: BTreeMap<i32, vmscan_zone::IsolatedPages>,
    pub awaited: BTreeSet<Pfn>,
    pub awaits_room: bool,
    /// By CPU.
    pub(crate) batches: Vec<Batches>,
    pub(crate) batch_refs: BatchRefs,
    /// Pages of slabs and of inodes that shrinkers have freed (`reclaimed_slab`).
    pub(crate) reclaimed_slab: u64,
    /// All cgroups, the root first.
    pub groups: Vec<Group>,
    /// Kernels that are asked beside this one, where zones are reclaimed.
    pub(crate) rivals: Vec<vmscan_zone::Rival>,
    /// By lruvec of a target: how many cgroups below it the passes of tasks have visited.
    pub(super) visited: Vec<usize>,
    /// By CPU: pages that are charged and not given out.
    pub(crate) stocks: Vec<Stock>,
    /// Pages that the task that runs has charged beyond `memory.high` in this step (`memcg_nr_pages_over_high`).
    /// `try_charge` adds them, which ends the step early; the engine takes them after it (`Engine::note_high`), as the
    /// kernel does on the return to user mode.
    pub over_high: u64,
    /// Caches of the kernel that can be shrunk.
    pub shrinkers: Vec<Shrinker>,
    /// Pages of swap that are free; `None`: there is no swap.
    pub free_swap: Option<u64>,
    /// Bits of the age of evictions that are omitted, so that it fits into a shadow.
    pub(crate) bucket_order: u32,
    /// Nodes whose kswapd is to be woken.
    pub wakes: Vec<usize>,
    /// Sleeping tasks to wake: node and reason.
    pub unthrottled: Vec<(usize, Reason)>,
    /// CPUs on which a worker wakes.
    pub workers: Vec<u32>,
    /// Page cache of each node that node reclaim leaves alone.
    pub min_unmapped: Vec<u64>,
    /// By CPU, while node reclaim is enabled: node reclaims of the last task.
    pub node_reclaim_history: Vec<NodeReclaimHistory>,
    /// When the last flush of statistics was.
    pub(crate) flushed: Ns,
}

/// Progress of a reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll<T> {
    /// It has done a batch and continues.
    On,
    /// It sleeps until then, or until it is woken on a node for a reason.
    Sleep(Ps, Option<(usize, Reason)>),
    /// It is done.
    Done(T),
}

/// Context of a reclaim: the kernel, the memory, the task and its CPU.
pub(crate) struct TaskCtx<'a> {
    pub kernel: &'a mut Kernel,
    pub memory: &'a mut AccessState,
    pub cpu: u32,
    pub task: Task,
}

impl TaskCtx<'_> {
    pub(crate) fn now(&self) -> Ns {
        self.kernel.now(self.cpu)
    }

    /// Time of its CPU.
    pub(crate) fn clock(&self) -> Ps {
        self.kernel.clock(self.cpu)
    }

    /// Length of a tick.
    pub(crate) fn jiffy(&self) -> Ns {
        1_000_000_000 / self.kernel.reclaim.rules.hz
    }

    /// Writes an event without texts.
    pub(crate) fn write<T: Typed>(&mut self, event: &T) {
        let (at, cpu, task) = (self.now(), self.cpu, self.task);
        self.kernel.probe.write(at, cpu, task, event, b"");
    }

    /// Work that takes some time.
    pub(crate) fn spend(&mut self, time: Ps) {
        self.kernel.spend(self.cpu, time);
    }

    /// A task's reclaim that began at a time has freed nothing. A pass over all zones and caches at every priority
    /// takes time even if there is nothing; without it a task that could free something would never have the CPU. The
    /// time was not measured: it is at least the cost of a fault for each priority.
    pub(crate) fn spend_fruitless(&mut self, begun: Ps) {
        let least = self.memory.costs.fault.max(1) * u64::from(DEF_PRIORITY + 1);
        let spent = self.kernel.clock(self.cpu).saturating_sub(begun);
        self.spend(least.saturating_sub(spent));
    }
}

impl Reclaim {
    /// Empty lists; `pages` is the memory of the machine, the first cgroup is the root.
    pub(crate) fn new(rules: Rules, nodes: usize, cgroups: Vec<Cgroup>, cpus: usize, pages: u64) -> Reclaim {
        let parents = cgroups.iter().map(|cgroup| cgroup.parent).collect();
        let lru = Lru::new(nodes, parents, rules.per_zone_lru.is_some());
        let bits = workingset::age_bits(lru.len());
        Reclaim {
            rules,
            rivals: Vec::new(),
            visited: vec![0; lru.len()],
            lru,
            nodes: vec![Node { kswapd_waits: true, ..Node::default() }; nodes],
            zones: vec![vmscan_zone::Zone::default(); nodes * ZONES],
            isolated: BTreeMap::new(),
            awaited: BTreeSet::new(),
            awaits_room: false,
            batches: vec![Batches::default(); cpus],
            batch_refs: BatchRefs::default(),
            reclaimed_slab: 0,
            groups: cgroups.into_iter().map(|config| Group { config, ..Group::default() }).collect(),
            stocks: vec![Stock::default(); cpus],
            over_high: 0,
            shrinkers: Vec::new(),
            free_swap: None,
            bucket_order: (u64::BITS - pages.leading_zeros()).saturating_sub(bits),
            wakes: Vec::new(),
            unthrottled: Vec::new(),
            workers: Vec::new(),
            min_unmapped: vec![0; nodes],
            node_reclaim_history: Vec::new(),
            flushed: Ns::MAX,
        }
    }

    /// True if something is to be done at once, or the task that runs is beyond `memory.high`.
    pub(crate) fn has_effects(&self) -> bool {
        !self.wakes.is_empty() || !self.unthrottled.is_empty() || !self.workers.is_empty() || self.over_high > 0
    }
}

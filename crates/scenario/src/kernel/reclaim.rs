//! Page reclaim: variants of the historic and modern kernels. Which kernel has which value is in `kernels/`.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reclaim {
    /// Owner of an LRU list.
    pub lru: LruScope,
    /// How the pressure is divided between anonymous and file pages.
    pub scan_balance: ScanBalance,
    /// Where scanned and reclaimed pages are counted.
    pub counters: ReclaimCounters,
    /// List that a new anonymous page enters.
    pub new_anon: NewAnon,
    /// Detection of refaults.
    pub workingset: Workingset,
    /// How memory of higher orders is freed.
    pub high_order: HighOrder,
    /// The second, synchronous pass of lumpy reclaim.
    pub sync_pass: SyncPass,
    /// When a request compacts memory itself before it reclaims.
    pub direct_compaction: DirectCompaction,
    /// Behaviour of compaction at a pageblock that it could not empty.
    pub pageblocks: Pageblocks,
    /// Where a reclaimer waits.
    pub congestion: Congestion,
    /// Reclaimers that write dirty file pages.
    pub dirty_pages: DirtyPages,
    /// Treatment of pages under writeback.
    pub writeback_pages: WritebackPages,
    /// When a node is balanced.
    pub balanced: Balanced,
    /// Wakeups of kswapd, and those that the event `mm_vmscan_wakeup_kswapd` counts.
    pub kswapd_wakeup: KswapdWakeup,
    /// kswapd tests for order 0 when compaction could work (3.4).
    pub kswapd_order_zero: bool,
    /// Which cgroups one pass of direct reclaim visits.
    pub cgroup_walk: CgroupWalk,
    /// Pages of unusable zones that one isolation may skip; 0 is no limit (7.3: 32768).
    pub skip_limit: u32,
    /// Milliseconds between two flushes of the statistics of LRU lists that reclaim reads; 0: they are summed up when it
    /// reads them (6.12: 2000).
    pub stats_flush_ms: u32,
    /// Pages of a CPU's batch for the LRU lists (`PAGEVEC_SIZE`): 14, 15, from 6.11 on 31.
    pub pagevec_size: u32,
    /// Reclaimed pages are freed in such batches, in their order, each after a flush of the TLBs (`shrink_folio_list`;
    /// 6.10 and newer).
    pub free_batches: bool,
    /// Swap that is memory is read and written page by page, which `pgpgin` and `pgpgout` do not count (`bdev_read_page`;
    /// 3.16 to 6.2).
    pub swap_rw_page: bool,
    /// Reclaim writes pages whose slots follow one another with one request, which is submitted when another slot comes, at
    /// 32 pages or with the end of its batch; swap that is memory is written page by page (`swap_write_submit`; seen in 7.3).
    pub swap_plug: bool,
    /// Swap slots are taken in clusters that have room before free ones (`cluster_alloc_swap_entry`): 6.18 and newer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub swap_nonfull_first: bool,
    /// Anonymous pages that only a process maps whose end has begun are kept (`folio_referenced_one`): 6.12 and newer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_exiting: bool,
    /// Which pages are read from swap together (`swapin_readahead`).
    pub swap_readahead: SwapReadahead,
    /// Compaction that fails is deferred for its order and higher ones only (`compaction_deferred`; 3.4 and newer).
    pub defer_by_order: bool,
    /// Anonymous memory ages where there is no swap, and no longer where swap is full (`shrink_zone`, `age_active_anon`;
    /// before 3.0).
    pub age_without_swap: bool,
    /// Scans of less than a batch are saved up (`nr_scan_try_batch`; before 3.0).
    pub save_scans: bool,
    /// Effect of references of a page (`page_check_references`).
    pub references: References,
    /// A task gives up when kswapd has given up all its zones, not when it finds them hopeless itself (`all_unreclaimable`;
    /// 2.6.39 and newer).
    pub give_up_with_kswapd: bool,
    /// How much of a cache is scanned (`shrink_slab`).
    pub shrink_slab: ShrinkSlab,
}

variant! {
    /// Read-ahead of swap, of at most 2 to the power of `vm.page-cluster` pages.
    pub enum SwapReadahead {
        /// The aligned block of places: before 3.14.
        Block = "block",
        /// As much of it as earlier read-ahead was right (`swapin_nr_pages`): 3.14 to 4.13.
        Hits = "hits",
        /// Of anonymous memory the pages of the mapping around the fault, where swap does not rotate
        /// (`swap_vma_readahead`): 4.14 and newer. Memory used as swap is read without it.
        Vma = "vma",
    }
}

variant! {
    /// References of a page.
    pub enum References {
        /// A page that was referenced once stays, and is freed next time if it is clean: before 3.3.
        Clean = "clean",
        /// One of an executable file becomes active at once, and anonymous memory does not have to be clean: 3.3 and newer.
        Executable = "executable",
    }
}

variant! {
    /// Scanning of caches where zones are reclaimed.
    pub enum ShrinkSlab {
        /// Deferred scans add up, without events: before 3.1.
        WindUp = "wind-up",
        /// Deferred scans are done slowly, with events: 3.1 to 3.11.
        Bounded = "bounded",
    }
}

variant! {
    /// LRU lists.
    pub enum LruScope {
        /// Per zone: before 4.8.
        Zone = "zone",
        /// Per node: 4.8 and newer.
        Node = "node",
    }
}

variant! {
    /// Balance of anonymous and file pages.
    pub enum ScanBalance {
        /// By the share of scanned pages that were rotated: before 5.8.
        Rotations = "rotations",
        /// By cost: pages written and refaults (6.1).
        Cost = "cost",
        /// By cost, in which rotations count too (6.12 and newer).
        CostRotations = "cost-rotations",
        /// The same, but taken from statistics of the reclaim's target when a node is reclaimed, which are as old as
        /// their last flush (7.3; which release began is not known).
        CostSampled = "cost-sampled",
    }
}

variant! {
    /// Counters `pgscan_*`, `pgsteal_*` and `pgrefill`.
    pub enum ReclaimCounters {
        /// Events of the machine; those by reclaimer without what limits of cgroups reclaim.
        Events = "events",
        /// Counters of nodes, with all (7.3; which release began is not known).
        Node = "node",
    }
}

variant! {
    /// List of a new anonymous page.
    pub enum NewAnon {
        /// Active: before 5.9.
        Active = "active",
        /// Inactive: 5.9 and newer.
        Inactive = "inactive",
    }
}

variant! {
    /// Detection of refaults.
    pub enum Workingset {
        /// None: before 3.15.
        None = "none",
        /// File pages: 3.15 to 5.8.
        File = "file",
        /// File and anonymous pages: 5.9 and newer.
        All = "all",
    }
}

variant! {
    /// Freeing memory of higher orders.
    pub enum HighOrder {
        /// 2.6.36: lumpy reclaim.
        Lumpy = "lumpy",
        /// Late 2010: lumpy reclaim that stops at the first neighbour it cannot take.
        LowLumpy = "low-lumpy",
        /// 3.3: reclaim for compaction, neighbours still taken for every order.
        CompactionNeighbours = "compaction-neighbours",
        /// 3.4: reclaim for compaction, where the code of lumpy reclaim still allows writes to congested devices for
        /// large blocks.
        CompactionOrLumpy = "compaction-or-lumpy",
        /// 3.5 and newer: reclaim for compaction.
        Compaction = "compaction",
    }
}

variant! {
    /// Second pass of lumpy reclaim.
    pub enum SyncPass {
        /// None: 3.5 and newer.
        None = "none",
        /// After waiting for congestion, over the same pages: 2.6.36.
        CongestionWait = "congestion-wait",
        /// At once, only if all kept pages were under writeback: late 2010 to 3.4.
        Writeback = "writeback",
    }
}

variant! {
    /// Orders for which direct compaction precedes reclaim.
    pub enum DirectCompaction {
        /// Above 3 only: 2.6.36.
        Costly = "costly",
        /// Any above 0: 3.0 to 4.x.
        AnyOrder = "any-order",
        /// Above 3, and above 0 for pages that cannot be moved: modern.
        CostlyOrUnmovable = "costly-or-unmovable",
    }
}

variant! {
    /// Pageblocks that compaction could not empty.
    pub enum Pageblocks {
        /// It continues behind the block of the requested order: before 6.3.
        Left = "left",
        /// It scans the rest of the pageblock at once, and leaves it alone later: 6.6 and newer.
        Finished = "finished",
    }
}

variant! {
    /// Waiting in reclaim.
    pub enum Congestion {
        /// `congestion_wait`: 2.6.36.
        Wait = "congestion-wait",
        /// `wait_iff_congested` between two attempts to allocate: only while a device is congested. Reclaim waits as
        /// before (late 2010).
        WaitIffDevice = "wait-iff-device",
        /// `wait_iff_congested` in both: only while a device is congested, or half as many pages are under writeback as
        /// are inactive (the first posting of 2010).
        WaitIffWriteback = "wait-iff-writeback",
        /// `wait_iff_congested` in both: the zone must be congested too. Batches without dirty pages mark it as well:
        /// 2.6.37.
        WaitIffZoneOrClean = "wait-iff-zone-or-clean",
        /// The same, without that: 2.6.38 to 5.15.
        WaitIffZone = "wait-iff-zone",
        /// Throttling by reason: 5.16 and newer.
        Throttle = "throttle",
    }
}

variant! {
    /// Writing dirty file pages from reclaim.
    pub enum DirtyPages {
        /// All reclaimers, unless the device is congested: 2.6.36.
        Write = "write",
        /// kswapd; reclaim has the flusher write what is dirty (the first posting of 2010).
        Kswapd = "kswapd",
        /// kswapd below priority 10: 3.2 to 3.x.
        KswapdLowPriority = "kswapd-low-priority",
        /// kswapd, on a zone flagged dirty: 3.11 to 4.7. Not modelled.
        KswapdZoneDirty = "kswapd-zone-dirty",
        /// kswapd, on a node flagged dirty: 4.8 to 6.15.
        KswapdNodeDirty = "kswapd-node-dirty",
        /// None: 6.16 and newer.
        Never = "never",
    }
}

variant! {
    /// Pages under writeback that reclaim scans.
    pub enum WritebackPages {
        /// Kept; the synchronous pass waits for them: 2.6.36.
        Keep = "keep",
        /// Kept, and a batch with too many of them waits for congestion: 3.2 to 3.x.
        ThrottleOnWriteback = "throttle-on-writeback",
        /// Activated; a node with only such pages throttles: modern.
        Activate = "activate",
    }
}

variant! {
    /// A node that needs no more reclaim.
    pub enum Balanced {
        /// Every zone reaches its high watermark: 2.6.36.
        AllZones = "all-zones",
        /// For higher orders, zones with a quarter of the pages do: 3.x.
        QuarterOfPages = "quarter-of-pages",
        /// Any zone does: modern.
        AnyZone = "any-zone",
    }
}

variant! {
    /// Wakes of kswapd.
    pub enum KswapdWakeup {
        /// Each request for each zone below its low watermark, also while kswapd runs: to 2.6.37.
        EachRequest = "each-request",
        /// Requests for zones below their low watermarks that find kswapd asleep: 2.6.38 to 4.7.
        Asleep = "asleep",
        /// Real wakes of a sleeping kswapd, per node: modern.
        Wake = "wake",
    }
}

variant! {
    /// cgroups one pass visits.
    pub enum CgroupWalk {
        /// All below the target.
        Whole = "whole",
        /// From where the last pass stopped, until the target is met: 6.12 direct and cgroup reclaim.
        Rotating = "rotating",
    }
}

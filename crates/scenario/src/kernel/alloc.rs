//! Rules of the page allocator that differ between kernels.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageAlloc {
    /// Sizes of the per-CPU page lists.
    pub pageset: Pageset,
    /// When a free of a block of order 1 to 3 empties a CPU's lists (`free_high` of `free_unref_page_commit`).
    pub pcp_free_high: PcpFreeHigh,
    /// Distance between the watermarks.
    pub watermarks: Watermarks,
    /// Largest `min_free_kbytes` that the kernel computes: 65536, newer 262144.
    pub min_free_kbytes_max: u64,
    /// Order of the largest free block (`MAX_ORDER`, before 6.4 less one): 10; where huge pages of 16 MiB are blocks of 4
    /// KiB pages, as on PPC64, 12.
    pub max_order: u32,
    /// Pages can be allocated in bulk (5.13+): vmalloc takes them so.
    pub bulk: bool,
    /// Which requests take the free rest of a pageblock of another type (`can_steal_fallback`; "mm: more aggressive page
    /// stealing for UNMOVABLE allocations", 4.0).
    pub fallback_steal: FallbackSteal,
    /// The rest of a block of another type from which one page is taken stays with that type (6.10 and newer).
    pub fallback_keeps_type: bool,
    /// How zonelists share the overflow of nodes at one distance (`build_zonelists`, `find_next_best_node`).
    pub node_load: NodeLoad,
    /// A request does not take blocks of another type while another zone can serve it (`ALLOC_NOFRAGMENT`; 5.0).
    pub avoid_fragmentation: bool,
    /// A request for a block does not count blocks that are too small for it, against a mark that is halved at each order
    /// (`__zone_watermark_ok`; before 4.4, modelled to 3.5).
    pub watermark_by_order: bool,
    /// Each zone keeps up to two pageblocks for requests that find no other block (`MIGRATE_RESERVE`,
    /// `setup_zone_migrate_reserve`; before 4.4, modelled to 3.5).
    pub migrate_reserve: bool,
    /// Nodes on which a fault allocates a huge page (`alloc_pages_vma`).
    pub thp_nodes: ThpNodes,
    /// `GFP_TRANSHUGE` includes `__GFP_NORETRY` (before 4.8).
    pub thp_noretry: bool,
    /// What a write to the huge zero page does (`do_huge_pmd_wp_page`).
    pub thp_zero_write: ThpZeroWrite,
    /// A fault clears a huge page even if the allocator has just cleared it (`init_on_alloc`; before 6.13).
    pub thp_cleared_twice: bool,
}

variant! {
    /// Requests that take the rest of a pageblock.
    pub enum FallbackSteal {
        /// Requests that find a large block, and reclaimable ones: before 4.0.
        LargeOrReclaimable = "large-or-reclaimable",
        /// Requests that find a large block, and all unmovable or reclaimable ones: 4.0 and newer.
        LargeOrUnmovable = "large-or-unmovable",
        /// The same, but block by block from the largest on, until one of them can be taken with its pageblock; only then
        /// pages of the smallest block (`__rmqueue_claim`, `__rmqueue_steal`): 6.15 and newer, and 6.12's stable series.
        ClaimThenSteal = "claim-then-steal",
    }
}

variant! {
    /// Load of a node in zonelists.
    pub enum NodeLoad {
        /// It falls with the place in the list: before 5.18.
        Place = "place",
        /// How often the node was chosen first of its distance: 5.18 and newer.
        Count = "count",
    }
}

variant! {
    /// Nodes on which a huge page is allocated.
    pub enum ThpNodes {
        /// All at once: before 4.1.
        All = "all",
        /// That of the policy alone: 4.1 to 5.3.
        Preferred = "preferred",
        /// That of the policy, then all, for faults that may wait: 5.4 and newer.
        PreferredThenAll = "preferred-then-all",
    }
}

variant! {
    /// Writes to the huge zero page.
    pub enum ThpZeroWrite {
        /// It is split, and a base page is written: before 6.13.
        Splits = "splits",
        /// A huge page replaces it, if there is one: 6.13 and newer.
        Replaces = "replaces",
    }
}

variant! {
    /// Maximum length of a per-CPU page list.
    pub enum Pageset {
        /// 4.13 and older: order 0 only, batch at most 31, high 6 x batch.
        BatchTimesSix = "batch-times-six",
        /// 6.1: small orders too, batch at most 63, high from the zone's low watermark.
        LowWatermark = "low-watermark",
        /// 6.12 and newer: as 6.1, and high floats with use between that and an eighth of the zone.
        Floating = "floating",
    }
}

variant! {
    /// When a free of a block of order 1 to 3 empties a CPU's lists.
    pub enum PcpFreeHigh {
        /// Never: before 5.18.
        Never = "never",
        /// When they have overflowed and little was allocated since (`free_factor`): 5.18 to 6.6.
        FreeFactor = "free-factor",
        /// When a batch of pages was freed with little allocated meanwhile, at last such a block, and a batch is there
        /// (`free_count`, `PCPF_FREE_HIGH_BATCH`): 6.7 to 6.15.
        FreeCount = "free-count",
        /// The same, when half the least length was freed more: 6.16 and newer.
        FreeCountHighMin = "free-count-high-min",
    }
}

variant! {
    /// How watermarks follow from `min_free_kbytes`.
    pub enum Watermarks {
        /// Before 4.6: low = min + min/4, high = min + min/2.
        Quarters = "quarters",
        /// 4.6 and newer: steps of max(min/4, scale factor x managed / 10000).
        ScaleFactor = "scale-factor",
        /// 6.12 and newer: the same, but Movable does not count as low memory.
        ScaleFactorMovable = "scale-factor-movable",
    }
}

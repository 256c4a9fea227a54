//! Rules of the page cache that differ between kernels.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filemap {
    /// Pages that a fault which reads maps together if they are in memory (`filemap_map_pages`): 16, before 3.15 only 1.
    pub fault_around_pages: u32,
    /// Which faults `pgfault` counts again when they are repeated (`filemap_fault`, `mm_account_fault`).
    pub fault_retry: FaultRetry,
    /// Allocation of a block for the index of pages (`radix_tree_preload`, `xas_nomem`).
    pub index_blocks: IndexBlocks,
    /// The index of the swap cache has nodes too, which stay while their slots have shadows (`add_to_swap_cache`; modelled of
    /// 5.9 to 6.17).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub swap_cache_nodes: bool,
    /// A mapping that is read in order is read ahead like a call's file (`do_sync_mmap_readahead`; modelled to 3.5).
    pub mmap_sequential: bool,
    /// Windows of read-ahead (`page_cache_sync_ra`, `page_cache_async_ra`).
    pub readahead: ReadaheadWindows,
    /// Files are read ahead in large folios, which are on LRU lists, referenced, reclaimed and moved as one
    /// (`mapping_set_large_folios`; ext4 since 6.16, modelled with `readahead = "aligned"`, 7.3).
    pub large_folios: bool,
    /// A call that writes a page marks it accessed, so that the second one activates it (`generic_perform_write`; before
    /// 4.7).
    pub writes_mark_accessed: bool,
    /// What counts against the misses after which a mapped read reads nothing around its page (`mmap_miss`).
    pub mmap_hits: MmapHits,
    /// Pages are allocated as cold ones, and read-ahead retries like other requests (`page_cache_alloc_cold`; modelled
    /// to 3.5). Later read-ahead does not retry (`readahead_gfp_mask`).
    pub cold_pages: bool,
}

variant! {
    /// Faults that count again.
    pub enum FaultRetry {
        /// None: 6.5 and newer, and before 2.6.37. The runs of 2012 are modelled so too.
        None = "none",
        /// Faults that find their page locked (`lock_page_or_retry`): to 5.0.
        Waits = "waits",
        /// Of files also those that read, or read ahead (`maybe_unlock_mmap_for_io`): 5.1 to 6.4.
        Reads = "reads",
    }
}

variant! {
    /// Requests for blocks of the index.
    pub enum IndexBlocks {
        /// They wait: before 4.3, modelled to 3.5.
        Wait = "wait",
        /// Single pages, which wait: SLAB instead of SLUB (`CONFIG_SLAB`, a choice of who builds the kernel).
        Single = "single",
        /// They do not: to 4.19.
        Light = "light",
        /// They do not, and wake kswapd: 4.20 and newer.
        WakeKswapd = "wake-kswapd",
    }
}

variant! {
    /// Windows of read-ahead.
    pub enum ReadaheadWindows {
        /// A page that is missing where the window ends continues it (`ondemand_readahead`): to 6.11.
        OnDemand = "on-demand",
        /// Only a marked page continues a window: 6.12 and newer.
        Marked = "marked",
        /// So, and windows end at multiples of the order that large folios have: 7.3. Which release began is not known.
        Aligned = "aligned",
    }
}

variant! {
    /// What counts against misses.
    pub enum MmapHits {
        /// Each page that a fault looks at to map it (`filemap_map_pages`): to 6.9.
        Pages = "pages",
        /// The same without pages that were evicted from the workingset before: 6.10 and newer.
        FreshPages = "fresh-pages",
        /// A fault that finds its page and does not wait: 7.3. Which release began is not known.
        Faults = "faults",
    }
}

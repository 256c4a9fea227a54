//! Reclaim by zones, as 2.6.36 and 2.6.37 had it, and 3.3 to 3.5 (`mm/vmscan.c`, `mm/page_alloc.c`, `mm/backing-dev.c` of
//! 2010 and 2012).
//!
//! | subject | file |
//! |---|---|
//! | how the kernels differ | [`variant`] |
//! | kernels for which it would make no difference | [`rivals`] |
//! | state of a zone | [`state`] |
//! | how much of each list to scan | [`scan_count`] |
//! | pages isolated from a list's tail, and their neighbours | [`isolate`] |
//! | a batch of inactive pages, the action for each | [`shrink_inactive`], [`shrink_page_list`] |
//! | a batch of active pages | [`shrink_active`] |
//! | a zone that is shrunk | [`shrink_zone`] |
//! | reclaim for compaction | [`block`] |
//! | shrinkers | [`slab`] |
//! | waiting for congested devices | [`congestion_wait`] |
//! | direct reclaim, kswapd and its loop | [`direct`], [`kswapd`], [`balance_pgdat`] |
//!
//! LRU lists are per zone, pressure is divided by the share of scanned pages that had to be kept, and a reclaimer
//! without progress sleeps. Code shared with later kernels is in [`vmscan`](super::vmscan) and [`lru`](super::lru):
//! lists, folio batches, page tables, swap.
//!
//! Not modelled: limits of cgroups; `zone_reclaim_mode`. Checked by tests of each rule, by runs in which events add up to the counters
//! (`tests/historic_reclaim.rs`), and by the published tables of 2010 (docs/model/reclaim-2010.md).

mod balance_pgdat;
mod block;
mod congestion_wait;
mod direct;
mod isolate;
mod kswapd;
mod rivals;
mod scan_count;
mod shrink_active;
mod shrink_inactive;
mod shrink_page_list;
mod shrink_zone;
mod slab;
mod state;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
mod tests_2012;
mod variant;

pub(crate) use direct::Direct;
pub(crate) use kswapd::Kswapd;
pub(crate) use rivals::Rival;
pub(crate) use state::{IsolatedPages, Zone};
pub use variant::{
    Balanced, Blocks, DirtyFiles, IsolateModes, Neighbours, References, Slabs, SyncPass, Variant, Waits,
};

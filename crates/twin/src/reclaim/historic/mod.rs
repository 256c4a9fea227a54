//! Reclaim by zones, as 2.6.36 and 2.6.37 had it, and 3.3 to 3.5 (`mm/vmscan.c`, `mm/page_alloc.c`, `mm/backing-dev.c` of
//! 2010 and 2012).
//!
//! | what | file |
//! |---|---|
//! | how the kernels differ | [`variant`] |
//! | what is known of a zone | [`state`] |
//! | how much of each list to scan | [`counts`] |
//! | pages taken from a list's tail, and their neighbours | [`isolate`] |
//! | a batch of inactive pages, what becomes of each | [`inactive`], [`page`] |
//! | a batch of active pages | [`active`] |
//! | a zone that is shrunk | [`zone`] |
//! | reclaim for compaction | [`block`] |
//! | shrinkers | [`slab`] |
//! | waiting for congested devices | [`wait`] |
//! | who reclaims: tasks that find no memory, kswapd and its loop | [`direct`], [`kswapd`], [`balance`] |
//!
//! Lists belong to zones, pressure is divided by how many of the pages that were looked at had to be kept, and whoever
//! makes no progress sleeps. What is the same today is in [`super`]: lists, batches of CPUs, page tables, swap.
//!
//! Left out: limits of cgroups; `zone_reclaim_mode`. Checked by tests of each rule, by runs in which events add up to the counters
//! (`tests/historic_reclaim.rs`), and by the published tables of 2010 (docs/model.md).

mod active;
mod balance;
mod block;
mod counts;
mod direct;
mod inactive;
mod isolate;
mod kswapd;
mod page;
mod slab;
mod state;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_2012;
mod variant;
mod wait;
mod zone;

pub(crate) use direct::Direct;
pub(crate) use kswapd::Kswapd;
pub(crate) use state::{Held, Zone};
pub use variant::{
    Balanced, Blocks, DirtyFiles, IsolateModes, Neighbours, References, Slabs, SyncPass, Variant, Waits,
};

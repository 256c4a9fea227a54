//! Reclaim by zones, as 2.6.36 and 2.6.37 had it (`mm/vmscan.c`, `mm/page_alloc.c`, `mm/backing-dev.c` of 2010).
//!
//! | what | file |
//! |---|---|
//! | what is known of a zone | [`state`] |
//! | how much of each list to scan | [`counts`] |
//! | pages taken from a list's tail | [`isolate`] |
//! | what becomes of inactive and of active pages | [`inactive`], [`active`] |
//! | a zone that is shrunk | [`zone`] |
//! | shrinkers | [`slab`] |
//! | waiting for congested devices | [`wait`] |
//! | who reclaims: tasks that find no memory, kswapd and its loop | [`direct`], [`kswapd`], [`balance`] |
//!
//! Lists belong to zones, pressure is divided by how many of the pages that were looked at had to be kept, and whoever
//! makes no progress sleeps. What is the same today is in [`super`]: lists, batches of CPUs, page tables, swap.
//!
//! Left out: reclaim for orders above 0, which takes neighbours (lumpy reclaim); limits of cgroups; `zone_reclaim_mode`;
//! flusher threads and congested devices; too many pages isolated at once, which cannot be here, because a batch is put
//! back before anybody else runs. Checked by tests of each rule, by runs in which events add up to the counters
//! (`tests/historic_reclaim.rs`), and by the published tables of 2010 (docs/model.md).

mod active;
mod balance;
mod counts;
mod direct;
mod inactive;
mod isolate;
mod kswapd;
mod slab;
mod state;
#[cfg(test)]
mod tests;
mod wait;
mod zone;

pub(crate) use direct::Direct;
pub(crate) use kswapd::Kswapd;
pub(crate) use state::Zone;

/// How the kernels of 2010 differ from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Where tasks wait that reclaim.
    pub waits: Waits,
}

/// Waiting for congested devices. With no device congested it makes no difference whether the zone has to be congested
/// too (2.6.37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Always (`congestion_wait`): 2.6.36.
    Always,
    /// Only while a device is congested (`wait_iff_congested`): late 2010.
    IfCongested,
}

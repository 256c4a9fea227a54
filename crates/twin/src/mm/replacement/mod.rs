//! Replacement alone: which accesses of a trace hit in a cache of some pages.
//!
//! The policies stand alone: no reclaim in batches, no time, no allocation. A run shows a trace with a whole kernel.
//! Checked against small independent implementations and against Che's approximation (`tests/replacement.rs`).

mod clock;
mod lru;

pub use clock::Clock;
pub use lru::Lru;

/// A cache of pages, which are numbers.
pub trait Policy {
    /// Accesses a page; true if it was cached. It is afterwards.
    fn touch(&mut self, page: u32) -> bool;
}

/// Accesses pages one after another and counts hits.
pub fn hits(policy: &mut impl Policy, pages: &[u32]) -> u64 {
    pages.iter().map(|&page| u64::from(policy.touch(page))).sum()
}

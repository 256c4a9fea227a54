//! Replacement alone: which touches of a trace find their page in a cache of some pages.
//!
//! Nothing of a kernel is around the policies: no reclaim in batches, no time, no allocation. What a whole kernel makes
//! of a trace is another question, which a run answers. Checked against small implementations of another kind and
//! against Che's approximation (`tests/replacement.rs`).

mod clock;
mod lru;

pub use clock::Clock;
pub use lru::Lru;

/// A cache of pages, which are numbers.
pub trait Policy {
    /// Touches a page; true if it was there. It is afterwards.
    fn touch(&mut self, page: u32) -> bool;
}

/// Touches pages one after another and counts those that are found.
pub fn hits(policy: &mut impl Policy, pages: &[u32]) -> u64 {
    pages.iter().map(|&page| u64::from(policy.touch(page))).sum()
}

//! How a pass of the drain work is shared out.
//!
//! Models `__purge_vmap_area_lazy` (6.9 to 6.18).

/// Works queued beside the drain worker itself, for `lazy` pages counted when the pass begins and so many nodes with
/// something to purge. The first nodes get one each; the drain worker purges the others itself, one after another.
pub fn helpers(lazy: u64, lazy_max: u64, nodes_with_work: u64) -> u64 {
    match nodes_with_work {
        0 => 0,
        nodes => (lazy / lazy_max.max(1)).clamp(1, nodes) - 1,
    }
}

/// Areas that a pass removes from a pool of `len` areas.
pub fn decayed(len: u64, full: bool, small: super::params::SmallPools) -> u64 {
    use super::params::SmallPools;
    match (full, len, small) {
        (true, ..) => len,
        (false, 1..=3, SmallPools::Emptied) => len,
        (false, ..) => len / 4,
    }
}

//! How a pass of the drain work is shared out.
//!
//! Models `__purge_vmap_area_lazy` (6.9 to 6.18).

/// Works queued beside the drain worker itself, for `lazy` pages counted when the pass begins and the number of nodes
/// with areas to purge. The first nodes have one each; the drain worker purges the others itself, one after another.
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

#[cfg(test)]
mod tests {
    use super::super::params::Rules;
    use super::helpers;

    #[test]
    fn helpers_follow_the_lazy_pages() {
        let cases = [(0, 100, 4), (99, 100, 4), (200, 100, 4), (399, 100, 4), (400, 100, 4), (9999, 100, 4)];
        assert_eq!(cases.map(|(lazy, max, nodes)| helpers(lazy, max, nodes)), [0, 0, 1, 2, 3, 3]);
        assert_eq!((helpers(500, 100, 0), helpers(500, 0, 9)), (0, 8));
    }

    #[test]
    fn limits_and_nodes_of_the_published_machines() {
        let cases = [(2, 16_384, 2), (72, 57_344, 72), (88, 57_344, 88), (192, 65_536, 128), (448, 73_728, 128)];
        for (cpus, lazy_max, nodes) in cases {
            assert_eq!((Rules::V6_12.lazy_max(cpus), Rules::V6_12.nodes(cpus)), (lazy_max, nodes));
        }
        assert_eq!(Rules::V6_1.nodes(448), 1);
    }
}

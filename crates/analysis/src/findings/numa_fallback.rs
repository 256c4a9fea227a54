//! Remote allocation by zonelist fallback: the preferred node was full.

use super::words::{count, percent, share};
use super::{Finding, grade};
use crate::Analysis;

/// Fewer misplaced pages (40 MiB) do not matter.
pub const MIN_MISSES: u64 = 10_000;
/// Percent of allocations that fell back to another node; a balanced machine has none.
pub const MIN_PERCENT: f64 = 5.0;
/// From half on, the preferred node has no effect.
const EXTREME_PERCENT: f64 = 50.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let misses = a.counters.vmstat("numa_miss").filter(|n| *n >= MIN_MISSES)?;
    let all = a.counters.vmstat("numa_hit")?.saturating_add(misses);
    let part = share(misses as f64, all as f64).filter(|p| *p >= MIN_PERCENT)?;
    let mut sentence = format!(
        "{} of {} page allocations fell back from the preferred node to another (numa_miss)",
        percent(part),
        count(all)
    );
    let nodes = a.counters.keys("numastat").into_iter();
    let foreign = nodes.filter_map(|node| a.counters.delta("numastat", node, "numa_foreign").map(|n| (n, node)));
    if let Some((n, node)) = foreign.filter(|(n, _)| *n > 0).max_by_key(|(n, _)| *n) {
        sentence += &format!("; most fell back from node {node} ({} times, numa_foreign)", count(n));
    }
    let severity = grade(40, 75, part, MIN_PERCENT, EXTREME_PERCENT);
    Some(Finding {
        key: "numa_fallback",
        severity,
        sentence,
        detail: String::new(),
        table: "numastat",
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn allocations(hit: u64, miss: u64) -> Recording {
        let mut r = Recording::default();
        r.vmstat(&[("numa_hit", 1, 1 + hit), ("numa_miss", 2, 2 + miss)]);
        r
    }

    #[test]
    fn fires_and_names_the_full_node() {
        let mut r = allocations(70_000, 30_000);
        r.counters("numastat", "0", &[("numa_foreign", 0, 100)]);
        r.counters("numastat", "1", &[("numa_foreign", 0, 29_900)]);
        let f = check(&r.analysis).unwrap();
        let expected = "30 % of 100 k page allocations fell back from the preferred node to another (numa_miss); \
                        most fell back from node 1 (29,900 times, numa_foreign)";
        assert_eq!(f.sentence, expected);
    }

    #[test]
    fn does_not_fire_for_few_misses() {
        assert_eq!(check(&allocations(1_000_000, 20_000).analysis), None);
        assert_eq!(check(&allocations(1_000, 9_000).analysis), None);
    }
}

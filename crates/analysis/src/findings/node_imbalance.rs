//! One node reclaims while another has free memory.

use super::words::{count, pages, percent, share};
use super::{Finding, grade};
use crate::Analysis;
use crate::tasks::Context;
use std::collections::BTreeMap;

/// Less reclaimed from a node (40 MiB) is no load.
const MIN_RECLAIMED: u64 = 10_000;
/// Percent of its memory that another node has free. A node that is filled keeps a few percent.
const MIN_FREE: f64 = 25.0;
/// The other node reclaimed less than a tenth as much.
const FEW_RECLAIMED: u64 = 10;

pub fn check(a: &Analysis) -> Option<Finding> {
    let mut reclaimed: BTreeMap<i32, u64> = BTreeMap::new();
    // A cgroup at its limit reclaims wherever its pages are.
    let global = |context| matches!(context, Context::Kswapd | Context::Direct | Context::Node);
    for visit in a.reclaim.places.sorted().iter().filter(|visit| global(visit.place.context)) {
        let sum = reclaimed.entry(visit.place.nid).or_default();
        *sum = sum.saturating_add(visit.reclaimed);
    }
    let (&full, &most) = reclaimed.iter().max_by_key(|(_, n)| **n).filter(|(_, n)| **n >= MIN_RECLAIMED)?;
    let spare = nodes(a).into_iter().filter(|(nid, ..)| *nid != full).filter_map(|(nid, free, managed)| {
        let few = reclaimed.get(&nid).is_none_or(|n| n.saturating_mul(FEW_RECLAIMED) < most);
        let part = share(free as f64, managed as f64).filter(|p| few && *p >= MIN_FREE)?;
        Some((nid, free, part))
    });
    let (other, free, part) = spare.max_by_key(|(_, free, _)| *free)?;
    let sentence = format!(
        "node {full} reclaimed {} while node {other} had {} free at the end ({} of it)",
        pages(most),
        pages(free),
        percent(part)
    );
    let misses = a.counters.vmstat("numa_miss");
    let detail = misses.map_or(String::new(), |n| format!("{} allocations fell back to another node", count(n)));
    let fix = "memory policies, cpusets and vm.zone_reclaim_mode keep allocations on a node; to try: mmtwin run --on twin \
               SCENARIO --set kernel.sysctl.vm.zone_reclaim_mode=0";
    Some(Finding {
        key: "node_imbalance",
        severity: grade(35, 55, part, MIN_FREE, 100.0),
        sentence,
        detail,
        table: "reclaim",
        fix: Some(fix.into()),
        ..Finding::default()
    })
}

/// Number, free pages and managed pages of each node at the end.
fn nodes(a: &Analysis) -> Vec<(i32, u64, u64)> {
    let mut nodes: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
    for zone in a.counters.keys("zoneinfo") {
        let Some(nid) = zone.split_once('/').and_then(|(nid, _)| nid.parse().ok()) else { continue };
        let last = |name: &str| a.counters.last("zoneinfo", zone, name);
        if let Some((free, managed)) = last("free").zip(last("managed")) {
            let sums = nodes.entry(nid).or_default();
            *sums = (sums.0.saturating_add(free), sums.1.saturating_add(managed));
        }
    }
    nodes.into_iter().map(|(nid, (free, managed))| (nid, free, managed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn machine(free: u64) -> Recording {
        let mut r = Recording::default();
        r.by(9, b"kswapd0", Kind::MmVmscanKswapdWake, 0, &[("nid", 0)]);
        for t in 0..500 {
            let fields = [("nid", 0), ("nr_scanned", 32), ("nr_reclaimed", 32), ("flags", 10)];
            r.by(9, b"kswapd0", Kind::MmVmscanLruShrinkInactive, t, &fields);
        }
        r.counters("zoneinfo", "0/Normal", &[("free", 900, 900), ("managed", 100_000, 100_000)]);
        r.counters("zoneinfo", "1/Normal", &[("free", free, free), ("managed", 100_000, 100_000)]);
        r
    }

    #[test]
    fn fires_when_another_node_is_free() {
        let f = check(&machine(70_000).analysis).unwrap();
        assert_eq!(f.sentence, "node 0 reclaimed 62 MiB while node 1 had 273 MiB free at the end (70 % of it)");
        assert_eq!(check(&machine(3_000).analysis), None);
    }
}

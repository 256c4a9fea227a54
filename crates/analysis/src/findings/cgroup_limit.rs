//! A cgroup at its limit: its allocations stall to reclaim the pages of the cgroup.

use super::words::{count, percent, share, time};
use super::{Cost, Finding, grade};
use crate::Analysis;
use crate::tasks::Context;
use mmtwin_event::Kind;

/// Fewer reclaims that free less than [`MIN_FREED`] are a start-up that reaches the limit once.
const MIN_RECLAIMS: u64 = 100;
/// 25 MiB reclaimed because of the limit: a hundred reclaims where memory is charged in batches of 64 pages.
/// Readahead charges large folios, and one reclaim frees hundreds of pages: a cgroup of 64 MiB that reads 256 MiB on
/// Linux 6.18 reclaims only 94 times, three times its limit in total.
const MIN_FREED: u64 = 6_400;
/// Stalled for half of the recorded time of one task has the highest severity.
const EXTREME_PERCENT: f64 = 50.0;
/// Refaults of more than half of the pages freed: the working set does not fit.
const THRASH_PERCENT: f64 = 50.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let cgroup = a.reclaim.context(Context::Memcg);
    // The end events count slab pages too; the batches may not have been recorded.
    let all_freed = cgroup.reclaimed_by_end.max(cgroup.inactive.reclaimed.all);
    if cgroup.begins < MIN_RECLAIMS && all_freed < MIN_FREED {
        return None;
    }
    let stalled = cgroup.durations();
    let part = a.span.length().and_then(|span| share(stalled.sum as f64, span as f64)).unwrap_or(0.0);
    let (scanned, freed) = (cgroup.inactive.scanned.all, cgroup.inactive.reclaimed.all);
    let reclaims = count(cgroup.begins);
    let (mut sentence, table) = match limits_hit(a) {
        Some(hit) => (format!("cgroup {hit} hit its limit: {reclaims} reclaims"), "cgroup"),
        None => (format!("a cgroup hit its limit {reclaims} times"), "reclaim"),
    };
    if let Some(efficiency) = share(freed as f64, scanned as f64) {
        let (scanned, freed, efficiency) = (count(scanned), count(freed), percent(efficiency));
        sentence += &format!(": {scanned} pages scanned for {freed} freed (efficiency {efficiency})");
    }
    if stalled.count() > 0 {
        sentence += &format!(", total stall time {}", time(stalled.sum as f64));
    }
    let mut detail = Vec::new();
    if let Some(refaults) = a.counters.vmstat_sum(super::refault::REFAULTS) {
        sentence += &format!(", {} refaults", count(refaults));
        if share(refaults as f64, freed as f64).is_some_and(|p| p >= THRASH_PERCENT) {
            detail.push("its working set is larger than its limit".to_string());
        }
    }
    if !a.recorded.has(Kind::MmVmscanDirectReclaimBegin) || a.reclaim.context(Context::Direct).begins > 0 {
        detail.extend(
            a.counters.last("vmstat", "", "nr_free_pages").map(|n| format!("{} pages free at the end", count(n))),
        );
    } else {
        let free = a.counters.last("vmstat", "", "nr_free_pages");
        let free = free.map_or(String::new(), |n| format!(" and had {} free pages at the end", count(n)));
        detail.push(format!("the system as a whole did no direct reclaim{free}"));
    }
    let severity = grade(50, 85, part, 0.0, EXTREME_PERCENT);
    let cost = (stalled.count() > 0).then(|| Cost::of_reclaimers(a, |_, process| process.waited(Context::Memcg)));
    let detail = detail.join("; ");
    Some(Finding { key: "cgroup_limit", severity, sentence, detail, table, cost, ..Finding::default() })
}

/// The cgroup whose limit was hit most often, by its own counters.
fn limits_hit(a: &Analysis) -> Option<String> {
    let names = ["memory.events.max", "memory.failcnt"];
    let hits = |key: &str| names.iter().find_map(|name| a.counters.delta("cgroup", key, name));
    let keys = a.counters.keys("cgroup");
    let worst = keys.iter().filter_map(|key| hits(key).map(|n| (n, *key))).filter(|(n, _)| *n > 0);
    worst.max_by_key(|(n, _)| *n).map(|(_, key)| key.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn reclaims(n: u64) -> Recording {
        reclaims_of(n, 32)
    }

    fn reclaims_of(n: u64, pages: i64) -> Recording {
        let mut r = Recording::default();
        for i in 0..n {
            let t = i * 1_000_000;
            r.event(Kind::MmVmscanMemcgReclaimBegin, t, &[("order", 0)]);
            r.event(
                Kind::MmVmscanLruShrinkInactive,
                t + 10,
                &[("nr_scanned", 2 * pages), ("nr_reclaimed", pages), ("flags", 10)],
            );
            r.event(Kind::MmVmscanMemcgReclaimEnd, t + 500_000, &[("nr_reclaimed", pages)]);
        }
        r
    }

    #[test]
    fn fires_when_reclaim_at_the_limit_goes_on() {
        let mut r = reclaims(200);
        r.vmstat(&[("workingset_refault_file", 0, 6_000), ("nr_free_pages", 5, 77_000)]);
        let f = check(&r.analysis).unwrap();
        let expected = "a cgroup hit its limit 200 times: 12,800 pages scanned for 6,400 freed (efficiency 50 %), \
                        total stall time 100 ms, 6,000 refaults";
        assert_eq!(f.sentence, expected);
        assert!(f.detail.starts_with("its working set is larger than its limit; "), "{}", f.detail);
        assert_eq!(f.severity, 85, "half of the time");
    }

    #[test]
    fn names_the_cgroup_if_its_counters_tell() {
        let mut r = reclaims(200);
        r.counters("cgroup", "/db", &[("memory.events.max", 0, 4)]);
        r.counters("cgroup", "/web", &[("memory.events.max", 1, 201)]);
        assert!(check(&r.analysis).unwrap().sentence.starts_with("cgroup /web hit its limit: 200 reclaims: "));
    }

    #[test]
    fn does_not_fire_for_a_start_up() {
        assert_eq!(check(&reclaims(99).analysis), None);
        assert_eq!(check(&reclaims_of(12, 512).analysis), None);
    }

    #[test]
    fn few_reclaims_that_free_much_are_enough() {
        assert!(check(&reclaims_of(13, 512).analysis).unwrap().sentence.starts_with("a cgroup hit its limit 13 times"));
    }
}

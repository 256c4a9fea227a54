//! Thrashing: evicted pages are refaulted.

use super::words::{count, percent, share};
use super::{Finding, grade};
use crate::Analysis;

/// The refault counters; before 5.9 one for both kinds of pages.
pub const REFAULTS: &[&str] = &["workingset_refault_anon", "workingset_refault_file", "workingset_refault"];
/// Fewer refaults than this (40 MiB) cost little whatever their share.
const MIN_REFAULTS: u64 = 10_000;
/// Refaults as percent of pages freed: above, more than every second page was evicted too early.
const MIN_PERCENT: f64 = 50.0;
/// As many refaults as pages freed: reclaim has no effect.
const EXTREME_PERCENT: f64 = 100.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let refaults = a.counters.vmstat_sum(REFAULTS).filter(|n| *n >= MIN_REFAULTS)?;
    let freed = freed(a)?;
    let part = share(refaults as f64, freed as f64).filter(|p| *p >= MIN_PERCENT)?;
    let mut sentence = format!("{} evicted pages were refaulted", count(refaults));
    sentence += &format!(": {} of the {} pages freed (workingset_refault)", percent(part), count(freed));
    let one = |name: &str| a.counters.vmstat(name);
    let mut detail = Vec::new();
    if let (Some(anon), Some(file)) = (one("workingset_refault_anon"), one("workingset_refault_file")) {
        detail.push(format!("{} anon, {} file", count(anon), count(file)));
    }
    if let Some(faults) = one("pgmajfault").filter(|n| *n > 0) {
        detail.push(format!("{} major faults", count(faults)));
    }
    let severity = grade(45, 80, part, MIN_PERCENT, EXTREME_PERCENT);
    Some(Finding {
        key: "refault_thrash",
        severity,
        sentence,
        detail: detail.join("; "),
        table: "vmstat",
        ..Finding::default()
    })
}

/// Pages freed by all reclaim, cgroups included where the kernel counts by kind of page (5.8 on).
fn freed(a: &Analysis) -> Option<u64> {
    let by_kind = a.counters.vmstat_sum(&["pgsteal_anon", "pgsteal_file"]);
    by_kind.or_else(|| {
        let kswapd = a.counters.vmstat_prefix("pgsteal_kswapd");
        let direct = a.counters.vmstat_prefix("pgsteal_direct");
        Some(kswapd?.saturating_add(direct?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn fires_when_half_comes_back() {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_file", 5, 30_005),
            ("workingset_refault_anon", 0, 0),
            ("pgsteal_file", 0, 40_000),
        ]);
        let f = check(&r.analysis).unwrap();
        assert!(f.sentence.ends_with("75 % of the 40,000 pages freed (workingset_refault)"), "{}", f.sentence);
        assert_eq!((f.severity, f.detail.as_str()), (63, "0 anon, 30,000 file"));
    }

    #[test]
    fn fires_on_kernels_with_zoned_counters() {
        let mut r = Recording::default();
        let zones = [
            ("pgsteal_kswapd_dma32", 0, 6_000),
            ("pgsteal_kswapd_normal", 0, 6_000),
            ("pgsteal_direct_normal", 0, 8_000),
        ];
        r.vmstat(&[&zones[..], &[("workingset_refault", 0, 20_000)]].concat());
        assert_eq!(check(&r.analysis).unwrap().severity, 80);
    }

    #[test]
    fn does_not_fire_below_the_threshold_or_without_counters() {
        let mut r = Recording::default();
        r.vmstat(&[("workingset_refault_file", 0, 15_000), ("pgsteal_file", 0, 40_000)]);
        assert_eq!(check(&r.analysis), None);
        let mut few = Recording::default();
        few.vmstat(&[("workingset_refault_file", 0, 900), ("pgsteal_file", 0, 900)]);
        assert_eq!(check(&few.analysis), None);
        let mut unknown = Recording::default();
        unknown.vmstat(&[("workingset_refault_file", 0, 15_000)]);
        assert_eq!(check(&unknown.analysis), None);
    }
}

//! Thrashing: what is in use does not fit, so evicted pages are read back again and again.

use super::refaults::{Cause, Refaults};
use super::words::{count, pages, percent, share};
use super::{Finding, grade};
use crate::Analysis;

/// Refaults as percent of pages freed: above, more than every second page was evicted too early.
pub const MIN_PERCENT: f64 = 50.0;
/// The same where tasks were seen to wait: a mixed load evicts much that never comes back.
const MIN_PERCENT_WAITED: f64 = 10.0;
/// Waited for pages that come back, as a share of the elapsed time.
pub const WAITED: f64 = 0.02;
/// As many refaults as pages freed: reclaim has no effect.
const EXTREME_PERCENT: f64 = 100.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let refaults = Refaults::of(a).filter(|refaults| refaults.cause() == Cause::TooLarge)?;
    let waits = [refaults.read_back.waited, refaults.read_back.reading];
    let waited = waits.iter().any(|share| *share >= Some(WAITED)) || faults_swap(&refaults);
    let min = if waited { MIN_PERCENT_WAITED } else { MIN_PERCENT };
    let part = share(refaults.total as f64, refaults.freed as f64).filter(|p| *p >= min)?;
    let mut sentence = format!("{} {} were refaulted", count(refaults.total), refaults.whose());
    sentence += &format!(": {} of the {} pages freed (workingset_refault)", percent(part), count(refaults.freed));
    if let Some(set) = refaults.working_set() {
        sentence += &format!("; a working set of about {} does not fit", pages(set));
    }
    let fix = refaults.cgroup.zip(refaults.limit());
    let fix = fix.map(|(cgroup, bytes)| format!("a limit that holds it; to try one: {}", cgroup.try_limit(bytes)));
    let next = refaults.distance.is_none().then(|| {
        let cgroup = refaults.cgroup.map_or(String::new(), |cgroup| format!(" --cgroup {}", cgroup.key));
        format!("mmtwin record -e 'vmscan:*' -e 'filemap:*'{cgroup} -- COMMAND tells how long pages were away")
    });
    let severity = grade(45, 80, part, MIN_PERCENT, EXTREME_PERCENT);
    let cost = refaults.read_back.cost(a, refaults.cgroup.map(|cgroup| cgroup.key), refaults.pressure.as_ref());
    let (detail, pressure) = (refaults.detail(), refaults.pressure);
    Some(Finding { key: "refault_thrash", severity, sentence, detail, table: "vmstat", cost, pressure, fix, next })
}

/// True if tasks waited for most pages that came back: anonymous ones come in by major faults, of which read-ahead
/// spares few.
fn faults_swap(refaults: &Refaults) -> bool {
    let faults = refaults.faults.unwrap_or(0);
    refaults.kinds.is_some_and(|(anon, _)| anon.saturating_mul(2) >= refaults.total && faults.saturating_mul(2) >= anon)
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
            ("workingset_activate_file", 0, 12_000),
            ("pgsteal_file", 0, 40_000),
        ]);
        let f = check(&r.analysis).unwrap();
        assert!(f.sentence.ends_with("75 % of the 40,000 pages freed (workingset_refault)"), "{}", f.sentence);
        assert_eq!((f.severity, f.detail.as_str()), (63, "0 anon, 30,000 file; 40 % activated"));
    }

    #[test]
    fn fires_on_kernels_with_zoned_counters() {
        let mut r = Recording::default();
        let zones = [
            ("pgsteal_kswapd_dma32", 0, 6_000),
            ("pgsteal_kswapd_normal", 0, 6_000),
            ("pgsteal_direct_normal", 0, 8_000),
        ];
        r.vmstat(&[&zones[..], &[("workingset_refault", 0, 20_000), ("workingset_activate", 0, 9_000)]].concat());
        assert_eq!(check(&r.analysis).unwrap().severity, 80);
    }

    #[test]
    fn a_tenth_is_enough_where_tasks_waited() {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_anon", 0, 15_000),
            ("workingset_refault_file", 0, 0),
            ("pgsteal_anon", 0, 100_000),
        ]);
        assert_eq!(check(&r.analysis), None);
        r.counters("psi", "", &[("memory_some_total", 0, 3_000_000)]);
        assert!(check(&r.analysis).is_some());
    }

    #[test]
    fn a_tenth_is_enough_where_tasks_waited_for_the_disk_because_of_it() {
        // A quarter of 10 % of the time, a hundredth of it.
        for (read, fires) in [(4 * 60_000, true), (4 * 1_500_000, false)] {
            let mut r = Recording::default();
            r.vmstat(&[
                ("workingset_refault_file", 0, 15_000),
                ("workingset_activate_file", 0, 900),
                ("pgsteal_file", 0, 50_000),
                ("pgpgin", 0, read),
            ]);
            r.counters("psi", "", &[("io_some_total", 0, 1_000_000)]);
            assert_eq!(check(&r.analysis).is_some(), fires, "{read}");
        }
    }

    #[test]
    fn a_tenth_is_enough_where_major_faults_brought_it_in() {
        for (faults, fires) in [(14_000, true), (900, false)] {
            let mut r = Recording::default();
            r.vmstat(&[
                ("workingset_refault_anon", 0, 15_000),
                ("workingset_refault_file", 0, 0),
                ("pgsteal_anon", 0, 100_000),
                ("pgmajfault", 0, faults),
            ]);
            assert_eq!(check(&r.analysis).is_some(), fires, "{faults}");
        }
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

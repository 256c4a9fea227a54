//! Poor NUMA locality: sampled accesses go to other nodes.

use super::words::{count, percent, share};
use super::{Finding, grade};
use crate::Analysis;

/// Hinting faults sample accesses; with fewer the share shows the initial placement only.
pub const MIN_FAULTS: u64 = 10_000;
/// Samples that a last quarter needs.
const MIN_SAMPLES: usize = 8;
/// Percent of hinting faults on the task's own node; below, most sampled accesses cross the interconnect.
pub const MIN_LOCAL: f64 = 50.0;

/// Percent of all faults that come in the last quarter of the time: below, they have ended. Steady ones give 25.
const ENDED_PERCENT: f64 = 5.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let faults = a.counters.vmstat("numa_hint_faults").filter(|n| *n >= MIN_FAULTS)?;
    let local = a.counters.vmstat("numa_hint_faults_local")?;
    let part = share(local as f64, faults as f64).filter(|p| *p < MIN_LOCAL)?;
    if settled(a, faults) {
        return None;
    }
    let sentence =
        format!("only {} of {} NUMA hinting faults were local (numa_hint_faults_local)", percent(part), count(faults));
    let detail = a.counters.vmstat("numa_pages_migrated");
    let detail = detail.map_or(String::new(), |n| format!("{} pages were migrated in this time", count(n)));
    let severity = grade(45, 75, part, MIN_LOCAL, 0.0);
    Some(Finding {
        key: "numa_locality",
        severity,
        sentence,
        detail,
        table: "numa",
        next: Some(super::why::task(a)),
        ..Finding::default()
    })
}

/// True if balancing settled in the last quarter of the time: faults are local, or hardly any are left, because pages
/// that moved to those who use them are scanned more and more rarely.
fn settled(a: &Analysis, faults: u64) -> bool {
    let since = |name: &str| {
        let series = a.counters.series("vmstat", "", name);
        let ((first, _), (last, all)) = (*series.first()?, *series.last()?);
        let from = last - (last - first) / 4;
        let before = series.iter().take_while(|(at, _)| *at <= from).last().filter(|_| series.len() > MIN_SAMPLES)?;
        all?.checked_sub(before.1?)
    };
    if a.counters.seconds("vmstat", "").is_none() {
        return false;
    }
    let Some((late, local)) = since("numa_hint_faults").zip(since("numa_hint_faults_local")) else { return false };
    let moved = a.counters.vmstat("numa_pages_migrated").is_some_and(|n| n.saturating_mul(2) >= faults);
    let ended = moved && share(late as f64, faults as f64) < Some(ENDED_PERCENT);
    ended || share(local as f64, late as f64) >= Some(MIN_LOCAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn faults(all: u64, local: u64) -> Recording {
        let mut r = Recording::default();
        r.vmstat(&[
            ("numa_hint_faults", 7, 7 + all),
            ("numa_hint_faults_local", 3, 3 + local),
            ("numa_pages_migrated", 0, 70),
        ]);
        r
    }

    #[test]
    fn fires_when_most_faults_are_remote() {
        let f = check(&faults(50_000, 10_000).analysis).unwrap();
        assert_eq!(f.sentence, "only 20 % of 50,000 NUMA hinting faults were local (numa_hint_faults_local)");
        assert_eq!((f.severity, f.detail.as_str()), (63, "70 pages were migrated in this time"));
    }

    #[test]
    fn does_not_fire_where_pages_moved_and_faults_ended() {
        use mmtwin_event::{CounterRow, Sink};
        for (moved, ends, fires) in [(12_000, 3, false), (12_000, 12, true), (70, 3, true)] {
            let mut r = Recording::default();
            let names = ["numa_hint_faults", "numa_hint_faults_local", "numa_pages_migrated"].map(String::from);
            for second in 0..=12u64 {
                let faults = 12_000 * second.min(ends) / ends;
                let values = [Some(faults), Some(0), Some(moved * second.min(ends) / ends)];
                let at = second * 1_000_000_000;
                r.analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
            }
            assert_eq!(check(&r.analysis).is_some(), fires, "{moved} {ends}");
        }
    }

    #[test]
    fn does_not_fire_for_local_or_few_faults() {
        assert_eq!(check(&faults(50_000, 30_000).analysis), None);
        assert_eq!(check(&faults(9_000, 0).analysis), None);
    }
}

//! NUMA page migrations that fail.

use super::words::{count, percent};
use super::{Finding, grade};
use crate::Analysis;
use crate::numa::NUMA_MISPLACED;

/// Fewer pages say nothing.
pub const MIN_PAGES: u64 = 1_000;
/// Percent of page migrations that failed. One failure halves the scan rate of a task until it moves, so one in ten keeps
/// nearly all busy tasks slowed.
pub const MIN_PERCENT: f64 = 10.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let m = a.numa.reason(NUMA_MISPLACED).filter(|m| m.succeeded.saturating_add(m.failed) >= MIN_PAGES)?;
    let part = m.failed_percent().filter(|p| *p >= MIN_PERCENT)?;
    let sentence = format!(
        "{} of NUMA page migrations failed: {} pages of {} (mm_migrate_pages, numa_misplaced)",
        percent(part),
        count(m.failed),
        count(m.succeeded.saturating_add(m.failed))
    );
    let detail = "possible causes: target nodes are full, pages are pinned or busy".into();
    let severity = grade(45, 70, part, MIN_PERCENT, 100.0);
    Some(Finding {
        key: "numa_migration_failures",
        severity,
        sentence,
        detail,
        table: "migrate",
        next: Some(super::why::task(a)),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn migrations(failed: i64, reason: i64) -> Recording {
        let mut r = Recording::default();
        for t in 0..100 {
            r.event(Kind::MmMigratePages, t, &[("reason", reason), ("nr_succeeded", 20), ("nr_failed", failed)]);
        }
        r
    }

    #[test]
    fn fires_when_a_fifth_fails() {
        let f = check(&migrations(5, 5).analysis).unwrap();
        assert!(f.sentence.starts_with("20 % of NUMA page migrations failed: 500 pages of 2,500"), "{}", f.sentence);
    }

    #[test]
    fn does_not_fire_for_few_failures_or_other_reasons() {
        assert_eq!(check(&migrations(1, 5).analysis), None);
        assert_eq!(check(&migrations(20, 0).analysis), None, "compaction");
    }
}

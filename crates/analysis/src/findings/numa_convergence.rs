//! NUMA balancing that does not converge: pages keep migrating.

use super::words::{count, percent, share, time};
use super::{Finding, grade};
use crate::Analysis;

/// Fewer migrated pages (40 MiB) do not matter.
const MIN_PAGES: u64 = 10_000;
/// Scanning begins after a second and then passes over memory once in 1 to 60 s: a shorter recording shows the first
/// placement only.
const MIN_SPAN: u64 = 10_000_000_000;
/// Percent of all migrated pages that were migrated in the last quarter of the recording. Steady migration gives 25; a
/// placement that converges gives nearly none (recordings of workloads that converge show 6 to 8).
const MIN_PERCENT: f64 = 15.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let (first, span) = (a.span.first?, a.span.length().filter(|span| *span >= MIN_SPAN)?);
    let moved = &a.numa.migrated_over_time;
    let all = moved.since(0);
    if all < MIN_PAGES {
        return None;
    }
    let last = moved.since(first + span / 4 * 3);
    let part = share(last as f64, all as f64).filter(|p| *p >= MIN_PERCENT)?;
    let sentence = format!(
        "NUMA balancing did not converge: {} of {} pages migrated in {} were migrated in the last quarter of the time",
        percent(part),
        count(all),
        time(span as f64)
    );
    let moves = a.numa.moves.values().chain(a.numa.swaps.values()).sum::<u64>();
    let detail = if moves > 0 { format!("tasks changed nodes {} times", count(moves)) } else { String::new() };
    let severity = grade(40, 60, part, MIN_PERCENT, 25.0);
    Some(Finding {
        key: "numa_convergence",
        severity,
        sentence,
        detail,
        table: "numa",
        next: Some(super::why::task(a)),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn migrations(seconds: u64, pages: impl Fn(u64) -> i64) -> Recording {
        let mut r = Recording::default();
        for t in 0..=seconds {
            r.event(Kind::MmMigratePages, t * 1_000_000_000, &[("reason", 5), ("nr_succeeded", pages(t))]);
        }
        r
    }

    #[test]
    fn fires_for_steady_migration() {
        let f = check(&migrations(100, |_| 1_000).analysis).unwrap();
        assert!(f.sentence.contains("of 101 k pages migrated in 100 s"), "{}", f.sentence);
        assert!(f.severity >= 55);
    }

    #[test]
    fn does_not_fire_when_it_settles_or_the_recording_is_short() {
        assert_eq!(check(&migrations(100, |t| if t < 30 { 1_000 } else { 20 }).analysis), None);
        assert_eq!(check(&migrations(9, |_| 10_000).analysis), None);
        assert_eq!(check(&migrations(100, |_| 10).analysis), None);
    }
}

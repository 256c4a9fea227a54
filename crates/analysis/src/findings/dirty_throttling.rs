//! Writers that are paused because too much is dirty.

use super::words::{count, counted, time};
use super::{Cost, Finding, grade};
use crate::Analysis;

/// Fewer pauses are the start of a write.
const MIN_PAUSES: u64 = 10;
/// On average one writer is always paused.
const EXTREME_PERCENT: f64 = 100.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let writers = &a.throttle.writers.usecs;
    if writers.count() < MIN_PAUSES {
        return None;
    }
    let cost = Cost::by_names(a, a.throttle.writer_waits.iter());
    let mut sentence = format!(
        "writers were paused {}, total {}, longest {} (balance_dirty_pages)",
        counted(writers.count(), "time"),
        time(writers.sum as f64 * 1000.0),
        time(writers.max()? as f64 * 1000.0),
    );
    if let Some(written) = a.counters.vmstat("nr_written") {
        sentence += &format!("; {} written", super::words::pages(written));
    }
    let detail = a.counters.vmstat("nr_throttled_written").filter(|n| *n > 0);
    let detail = detail.map_or(String::new(), |n| format!("{} pages written while reclaim waited", count(n)));
    let severity = grade(30, 70, cost.share().unwrap_or(0.0) * 100.0, 0.0, EXTREME_PERCENT);
    let fix = "writers are as fast as the disk; a larger vm.dirty_ratio holds bursts only; to try: mmtwin run --on twin \
               SCENARIO --set kernel.sysctl.vm.dirty_ratio=40";
    Some(Finding {
        key: "dirty_throttling",
        severity,
        sentence,
        detail,
        table: "throttle",
        cost: Some(cost),
        fix: Some(fix.into()),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn pauses(n: u64, ms: i64) -> Option<Finding> {
        let mut r = Recording::default();
        for i in 0..n {
            r.by(5, b"dd", Kind::BalanceDirtyPages, i * 100_000_000, &[("pause", ms)]);
        }
        check(&r.analysis)
    }

    #[test]
    fn fires_for_writers_that_wait() {
        let f = pauses(101, 20).unwrap();
        assert_eq!(f.sentence, "writers were paused 101 times, total 2.0 s, longest 20 ms (balance_dirty_pages)");
        assert_eq!(f.cost.unwrap().words(), "waited 2.0 s of 10 s (20 %): dd");
    }

    #[test]
    fn does_not_fire_for_writers_that_need_not_wait() {
        assert_eq!(pauses(101, 0), None);
        assert_eq!(pauses(9, 20), None);
    }
}

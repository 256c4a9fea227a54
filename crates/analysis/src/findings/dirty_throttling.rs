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
    // Writing the one sets the other to 0.
    let (knob, larger) = match a.source.dirty_bytes {
        Some(bytes) => ("vm.dirty_bytes", bytes.saturating_mul(2)),
        None => ("vm.dirty_ratio", 40),
    };
    let fix = format!(
        "writers are as fast as the disk; a larger {knob} holds bursts only; to try: mmtwin run --on twin SCENARIO --set \
         kernel.sysctl.{knob}={larger}"
    );
    Some(Finding {
        key: "dirty_throttling",
        severity,
        sentence,
        detail,
        table: "throttle",
        cost: Some(cost),
        fix: Some(fix),
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
    fn the_limit_that_counts_is_named() {
        for (dirty_bytes, knob) in [(None, "vm.dirty_ratio=40"), (Some(8 << 20), "vm.dirty_bytes=16777216")] {
            let mut r = Recording::default();
            r.analysis.source.dirty_bytes = dirty_bytes;
            for i in 0..20 {
                r.by(5, b"dd", Kind::BalanceDirtyPages, i * 100_000_000, &[("pause", 20)]);
            }
            let fix = check(&r.analysis).and_then(|f| f.fix).unwrap();
            assert!(fix.ends_with(&format!("kernel.sysctl.{knob}")), "{fix}");
        }
    }

    #[test]
    fn does_not_fire_for_writers_that_need_not_wait() {
        assert_eq!(pauses(101, 0), None);
        assert_eq!(pauses(9, 20), None);
    }
}

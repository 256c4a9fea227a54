//! Reclaim throttled on dirty pages and writeback.

use super::words::{count, percent, share, time};
use super::{Cost, Finding, elapsed, grade};
use crate::Analysis;
use crate::reclaim::{Batches, Detail};
use crate::tasks::Context;
use crate::throttle::Reason;

/// Sleep for writeback or congestion as percent of the recorded time, summed over tasks.
const MIN_PERCENT: f64 = 1.0;
/// One wait is up to 100 ms: fewer than this reach a percent of a short recording by chance.
const MIN_WAITS: u64 = 10;
/// From here on few waits count too.
const LONG_PERCENT: f64 = 10.0;
/// On average one task always sleeps.
const EXTREME_PERCENT: f64 = 100.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let (waits, usecs, what) = waits(a);
    let part = share(usecs as f64 * 1000.0, elapsed(a)? as f64).filter(|p| *p >= MIN_PERCENT)?;
    if waits < MIN_WAITS && part < LONG_PERCENT {
        return None;
    }
    let sentence = format!(
        "reclaim was throttled {} times on dirty pages or writeback ({what}), total {} ({} of the recorded time)",
        count(waits),
        time(usecs as f64 * 1000.0),
        percent(part)
    );
    let mut detail = scanned(a);
    let writers = &a.throttle.writers.usecs;
    if writers.count() > 0 {
        let (n, sum) = (count(writers.count()), time(writers.sum as f64 * 1000.0));
        let separator = if detail.is_empty() { "" } else { "; " };
        detail += &format!("{separator}writers paused {n} times, total {sum} (balance_dirty_pages)");
    }
    let severity = grade(45, 85, part, MIN_PERCENT, EXTREME_PERCENT);
    let waits = if a.throttle.waits.count > 0 { &a.throttle.waits } else { &a.congestion.by_name };
    let cost = Some(Cost::by_names(a, waits.iter()));
    Some(Finding {
        key: "writeback_throttling",
        severity,
        sentence,
        detail,
        table: "throttle",
        cost,
        ..Finding::default()
    })
}

/// Pages scanned; dirty pages and pages under writeback only where the events of the kernel report them.
fn scanned(a: &Analysis) -> String {
    let sum = |of: fn(&Batches) -> u64| {
        Context::ALL.iter().map(|&context| of(&a.reclaim.context(context).inactive)).fold(0, u64::saturating_add)
    };
    let scanned = sum(|batches| batches.scanned.all);
    let dirty = a.reclaim.reported.has(Detail::Dirty).then(|| sum(|batches| batches.dirty));
    let writeback = a.reclaim.reported.has(Detail::Writeback);
    let writeback = writeback.then(|| sum(|batches| batches.writeback.saturating_add(batches.immediate)));
    let parts = [dirty.map(|n| format!("{} dirty", count(n)))];
    let parts = parts.into_iter().chain([writeback.map(|n| format!("{} under writeback", count(n)))]);
    let parts: Vec<String> = parts.flatten().collect();
    match (scanned, parts.as_slice()) {
        (0, _) => String::new(),
        (_, []) => format!(
            "{} pages scanned; events of this kernel do not report how many were dirty or under writeback",
            count(scanned)
        ),
        _ => format!("{} pages scanned, of these {}", count(scanned), parts.join(" and ")),
    }
}

/// Waits, microseconds slept, and the kernel's names of the reasons: throttle reasons since 5.16, congestion waits before.
fn waits(a: &Analysis) -> (u64, u128, &'static str) {
    let (waits, usecs) = a.throttle.total(&[Reason::Writeback, Reason::Congested]);
    if waits > 0 {
        return (waits, usecs, "VMSCAN_THROTTLE_WRITEBACK, _CONGESTED");
    }
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    let sums = kinds.map(|(kswapd, conditional)| a.congestion.of(kswapd, conditional));
    let usecs = sums.iter().map(|w| u128::from(w.delayed_us)).sum();
    (sums.iter().map(|w| w.count).sum(), usecs, "congestion_wait, wait_iff_congested")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn throttled(reason: i64, usecs: i64) -> Recording {
        let mut r = Recording::default();
        for i in 0..100 {
            let fields = [("reason", reason), ("usec_timeout", 100_000), ("usec_delayed", usecs)];
            r.event(Kind::MmVmscanThrottled, i * 100_000_000, &fields);
        }
        r
    }

    #[test]
    fn fires_for_writeback() {
        let f = check(&throttled(0, 20_000).analysis).unwrap();
        assert!(f.sentence.starts_with("reclaim was throttled 100 times on dirty pages"), "{}", f.sentence);
        assert!(f.sentence.contains("total 2.0 s (20 % of"), "{}", f.sentence);
    }

    #[test]
    fn fires_for_old_kernels() {
        let mut r = Recording::default();
        r.event(Kind::WritebackCongestionWait, 0, &[("usec_timeout", 100_000), ("usec_delayed", 100_000)]);
        r.event(Kind::WritebackCongestionWait, 1_000_000_000, &[("usec_timeout", 100_000), ("usec_delayed", 100_000)]);
        assert!(check(&r.analysis).unwrap().sentence.contains("2 times"));
    }

    #[test]
    fn says_what_was_dirty_only_where_events_tell_it() {
        let mut r = throttled(0, 20_000);
        r.event(Kind::MmVmscanLruShrinkInactive, 10, &[("nr_scanned", 3200), ("nr_reclaimed", 7), ("flags", 10)]);
        let detail = "3,200 pages scanned; events of this kernel do not report how many were dirty or under writeback";
        assert_eq!(check(&r.analysis).unwrap().detail, detail);
        let mut r = throttled(0, 20_000);
        let fields = [("nr_scanned", 3200), ("flags", 10), ("nr_dirty", 0), ("nr_writeback", 8), ("nr_immediate", 1)];
        r.event(Kind::MmVmscanLruShrinkInactive, 10, &fields);
        let detail = "3,200 pages scanned, of these 0 dirty and 9 under writeback";
        assert_eq!(check(&r.analysis).unwrap().detail, detail);
    }

    #[test]
    fn few_waits_count_only_where_they_are_long() {
        for (usecs, fires) in [(60_000, false), (600_000, true)] {
            let mut r = Recording::default();
            let fields = [("reason", 0), ("usec_timeout", 100_000), ("usec_delayed", usecs)];
            r.event(Kind::MmVmscanThrottled, 0, &fields);
            r.event(Kind::MmVmscanKswapdSleep, 4_000_000_000, &[]);
            assert_eq!(check(&r.analysis).is_some(), fires, "{usecs}");
        }
    }

    #[test]
    fn does_not_fire_for_other_reasons_or_short_sleeps() {
        assert_eq!(check(&throttled(2, 20_000).analysis), None);
        assert_eq!(check(&throttled(0, 100).analysis), None);
    }
}

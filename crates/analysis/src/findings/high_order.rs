//! High-order allocations that drive reclaim: memory is free, but fragmented.

use super::words::{count, counted, percent, share, time};
use super::{Cost, Finding, elapsed, grade};
use crate::Analysis;
use crate::tasks::Context;

/// Part of the stalled time (or, without stalls, of kswapd's wakes) that is for orders above 0.
const MIN_PERCENT: f64 = 50.0;
/// Stalls for high orders as percent of the recorded time.
const MIN_OF_SPAN: f64 = 1.0;
/// Fewer wakeup requests say nothing about what drives kswapd.
const MIN_REQUESTS: u64 = 100;

pub fn check(a: &Analysis) -> Option<Finding> {
    stalls(a).or_else(|| requests(a))
}

fn stalls(a: &Analysis) -> Option<Finding> {
    let direct = a.reclaim.context(Context::Direct);
    let high = direct.by_order().filter(|(order, _)| *order != Some(0));
    let (mut sum, mut n, mut worst) = (0, 0, (0, None));
    for (order, durations) in high {
        sum += durations.sum;
        n += durations.count();
        worst = worst.max((durations.sum, order));
    }
    let part = share(sum as f64, direct.durations().sum as f64).filter(|p| *p >= MIN_PERCENT)?;
    let of_span = share(sum as f64, elapsed(a)? as f64).filter(|p| *p >= MIN_OF_SPAN)?;
    let order = worst.1.map_or("an unknown order".into(), |order| format!("order {order}"));
    let sentence = format!(
        "{} of the stall time of direct reclaim ({} in {}) was for high-order allocations, mostly {order}",
        percent(part),
        time(sum as f64),
        counted(n, "stall"),
    );
    let severity = grade(45, 70, of_span, MIN_OF_SPAN, 50.0);
    // Nobody waits for khugepaged, whose stalls are in the sum.
    let by_tasks = Cost::of_reclaimers(a, |_, process| process.waited(Context::Direct)).waited;
    let cost = Some(Cost::of(a, u64::try_from(sum).unwrap_or(u64::MAX).min(by_tasks)));
    let detail = compaction(a);
    Some(Finding {
        key: "high_order_reclaim",
        severity,
        sentence,
        detail,
        table: "latency",
        cost,
        ..Finding::default()
    })
}

fn requests(a: &Analysis) -> Option<Finding> {
    let (mut all, mut high, mut worst) = (0u64, 0u64, (0, 0));
    for node in a.reclaim.nodes() {
        for (order, n) in node.request_orders.iter() {
            all += n;
            if order > 0 {
                high += n;
                worst = worst.max((n, order));
            }
        }
    }
    let part = share(high as f64, all as f64).filter(|p| *p >= MIN_PERCENT && all >= MIN_REQUESTS)?;
    let sentence = format!(
        "{} of {} kswapd wakeups were for high-order allocations, mostly order {}",
        percent(part),
        count(all),
        worst.1,
    );
    let severity = grade(30, 45, part, MIN_PERCENT, 100.0);
    Some(Finding {
        key: "high_order_reclaim",
        severity,
        sentence,
        detail: compaction(a),
        table: "kswapd",
        ..Finding::default()
    })
}

/// Results of compaction, from counters.
fn compaction(a: &Analysis) -> String {
    let (stalls, success) = (a.counters.vmstat("compact_stall"), a.counters.vmstat("compact_success"));
    match (stalls, success) {
        (Some(stalls), Some(success)) if stalls > 0 => {
            format!("direct compaction ran {} and succeeded {}", counted(stalls, "time"), counted(success, "time"))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn stall(r: &mut Recording, at: u64, ns: u64, order: i64) {
        r.event(Kind::MmVmscanDirectReclaimBegin, at, &[("order", order)]);
        r.event(Kind::MmVmscanDirectReclaimEnd, at + ns, &[("nr_reclaimed", 1)]);
    }

    #[test]
    fn fires_when_stalls_are_for_huge_pages() {
        let mut r = Recording::default();
        stall(&mut r, 0, 100_000_000, 0);
        stall(&mut r, 1_000_000_000, 900_000_000, 9);
        r.vmstat(&[("compact_stall", 0, 4), ("compact_success", 0, 1)]);
        let f = check(&r.analysis).unwrap();
        assert!(
            f.sentence.starts_with("90 % of the stall time of direct reclaim (900 ms in 1 stall)"),
            "{}",
            f.sentence
        );
        assert!(f.sentence.ends_with("mostly order 9"), "{}", f.sentence);
        assert_eq!(f.detail, "direct compaction ran 4 times and succeeded 1 time");
    }

    #[test]
    fn fires_when_kswapd_is_woken_for_them() {
        let mut r = Recording::default();
        (0..120)
            .for_each(|t| r.event(Kind::MmVmscanWakeupKswapd, t, &[("nid", 0), ("order", 3 * (t as i64 % 4).min(1))]));
        assert_eq!(
            check(&r.analysis).unwrap().sentence,
            "75 % of 120 kswapd wakeups were for high-order allocations, mostly order 3"
        );
    }

    #[test]
    fn does_not_fire_for_single_pages() {
        let mut r = Recording::default();
        stall(&mut r, 0, 9_000, 0);
        stall(&mut r, 10_000, 1_000, 9);
        (0..200).for_each(|t| r.event(Kind::MmVmscanWakeupKswapd, t, &[("nid", 0), ("order", 0)]));
        assert_eq!(check(&r.analysis), None);
    }
}

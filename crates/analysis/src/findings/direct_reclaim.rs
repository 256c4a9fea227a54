//! Direct reclaim: allocations that stalled because kswapd did not keep up.

use super::words::{count, counted, percent, share, time};
use super::{Cost, Finding, elapsed, grade};
use crate::Analysis;
use crate::tasks::{Context, Task};
use mmtwin_event::Kind;

/// Stalls of which a finding is worth a line, even if they cost nothing: a handful is a start-up.
const MIN_STALLS: u64 = 10;
/// Pages freed that are as good a reason: 4 MiB.
const MIN_FREED: u64 = 1_000;
/// A single stall that a user notices, in nanoseconds.
const MIN_NOTICEABLE: u64 = 100_000_000;
/// Stalls as long as the recording: on average one task always waits.
const EXTREME_PERCENT: f64 = 100.0;
/// Without events: stalls per second by the allocstall counters. A scan of 32 pages takes 10 us to 1 ms, so a hundred
/// a second are a percent of the time, give or take a factor of ten.
pub const MIN_PER_SECOND: f64 = 100.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    if !a.recorded.has(Kind::MmVmscanDirectReclaimBegin) {
        return by_counters(a);
    }
    let direct = a.reclaim.context(Context::Direct);
    let stalls = direct.durations();
    let longest = stalls.max()?;
    let part = share(stalls.sum as f64, elapsed(a)? as f64)?;
    if stalls.count() < MIN_STALLS && direct.reclaimed_by_end < MIN_FREED && longest < MIN_NOTICEABLE {
        return None;
    }
    let stalled = a.reclaimers().filter(|(_, process)| process.begun(Context::Direct) > 0);
    let tasks: Vec<&Task> = stalled.map(|(task, _)| task).collect();
    let tasks = match &tasks[..] {
        [task] => task.name(),
        // One of them stands for all that are merged.
        tasks => counted(tasks.len() as u64 + a.reclaim.together().saturating_sub(1), "task"),
    };
    let quantile = |q| time(stalls.quantile(q).unwrap_or(0) as f64);
    let mut sentence = format!(
        "direct reclaim stalled {tasks} {}, total {} ({} of the recorded time): p50 {}, p99 {}, max {}",
        counted(stalls.count(), "time"),
        time(stalls.sum as f64),
        percent(part),
        quantile(0.5),
        quantile(0.99),
        time(longest as f64),
    );
    let order_0 = direct.by_order().find(|(order, _)| *order == Some(0)).map_or(0, |(_, d)| d.sum);
    sentence += &format!(
        "; {} of the stall time for order 0",
        percent(share(order_0 as f64, stalls.sum as f64).unwrap_or(0.0))
    );
    let (scanned, freed) = (direct.inactive.scanned.all, direct.inactive.reclaimed.all);
    let detail = match scanned {
        0 => String::new(),
        _ => format!("{} pages scanned for {} freed", count(scanned), count(freed)),
    };
    let severity = grade(45, 90, part, 1.0, EXTREME_PERCENT);
    let fix = "free memory before it runs out: vm.watermark_scale_factor or vm.min_free_kbytes; to try: mmtwin run --on \
               twin SCENARIO --set kernel.sysctl.vm.watermark_scale_factor=200";
    let fix = Some(fix.to_string());
    let cost = Some(Cost::of_reclaimers(a, |_, process| process.waited(Context::Direct)));
    Some(Finding {
        key: "direct_reclaim",
        severity,
        sentence,
        detail,
        table: "latency",
        cost,
        fix,
        ..Finding::default()
    })
}

fn by_counters(a: &Analysis) -> Option<Finding> {
    let stalls = a.counters.vmstat_prefix("allocstall")?;
    let rate = stalls as f64 / a.counters.seconds("vmstat", "")?;
    if rate < MIN_PER_SECOND {
        return None;
    }
    let sentence =
        format!("allocations entered direct reclaim {} times, {rate:.0} per second (allocstall)", count(stalls));
    let detail = "stall time unknown: the vmscan events were not recorded".into();
    let next = Some("mmtwin record -e 'vmscan:*' -- COMMAND".into());
    Some(Finding { key: "direct_reclaim", severity: 50, sentence, detail, table: "vmstat", next, ..Finding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn stalls(n: u64, ns: u64, every: u64) -> Recording {
        let mut r = Recording::default();
        for i in 0..n {
            r.event(Kind::MmVmscanDirectReclaimBegin, i * every, &[("order", 0)]);
            r.event(Kind::MmVmscanDirectReclaimEnd, i * every + ns, &[("nr_reclaimed", 32)]);
        }
        r
    }

    #[test]
    fn fires_for_many_short_and_for_one_long_stall() {
        let f = check(&stalls(1000, 1_000_000, 10_000_000).analysis).unwrap();
        assert!(
            f.sentence.starts_with("direct reclaim stalled task 1,000 times, total 1.0 s (10 % of"),
            "{}",
            f.sentence
        );
        assert!(f.sentence.ends_with("100 % of the stall time for order 0"), "{}", f.sentence);
        let mut one = stalls(1, 150_000_000, 0);
        one.event(Kind::MmVmscanKswapdSleep, 1_000_000_000_000, &[]);
        assert!(check(&one.analysis).unwrap().sentence.contains("max 150 ms"));
    }

    #[test]
    fn says_who_waited_and_for_how_long() {
        let cost = check(&stalls(1000, 1_000_000, 10_000_000).analysis).unwrap().cost.unwrap();
        assert_eq!((cost.words().as_str(), cost.waited), ("waited 1.0 s of 10 s (10 %): task", 1_000_000_000));
    }

    #[test]
    fn many_short_stalls_are_harmless_and_few_are_not_worth_a_line() {
        let found = crate::findings::all(&stalls(1000, 40_000, 10_000_000).analysis);
        assert!(matches!(&found[..], [f] if f.key == "direct_reclaim" && f.is_harmless()), "{found:?}");
        assert_eq!(check(&stalls(9, 50_000, 10_000_000).analysis), None);
    }

    #[test]
    fn counters_speak_where_events_are_missing() {
        let mut r = Recording::default();
        r.vmstat(&[("allocstall_normal", 0, 900), ("allocstall_movable", 10, 610)]);
        assert!(check(&r.analysis).unwrap().sentence.contains("1,500 times, 150 per second"));
        let mut quiet = Recording::default();
        quiet.vmstat(&[("allocstall_normal", 0, 900)]);
        assert_eq!(check(&quiet.analysis), None);
    }
}

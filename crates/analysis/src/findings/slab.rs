//! Slab shrinking that dominates reclaim.

use super::words::{count, percent, share, time};
use super::{Finding, grade};
use crate::Analysis;
use crate::tasks::Context;

/// Part of the time in reclaim that is spent in shrinkers. Pages are what reclaim is for; when shrinkers take longer
/// than everything else together, caches of objects are what fills memory, or a shrinker is slow.
const MIN_PERCENT: f64 = 50.0;
/// Less than this in shrinkers, as percent of the recorded time, does not matter.
const MIN_OF_SPAN: f64 = 1.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let span = a.span.length()?;
    let shares = Context::ALL.iter().filter_map(|&context| {
        let shrinking = a.slab.nanoseconds(context);
        share(shrinking as f64, span as f64).filter(|p| *p >= MIN_OF_SPAN)?;
        let part = share(shrinking as f64, a.reclaim.context(context).durations().sum as f64)?;
        Some((context, shrinking, part))
    });
    let (context, shrinking, part) = shares.filter(|s| s.2 >= MIN_PERCENT).max_by_key(|s| s.1)?;
    let by_time = a.slab.by_time(&a.source);
    let (name, worst) = by_time.first()?;
    let freed = worst.freed.map_or(String::new(), |freed| format!(", {} objects freed", count(freed)));
    let sentence = format!(
        "shrinkers took {} of the time in {} reclaim ({}); {name}: {} calls, {}{freed}",
        percent(part.min(100.0)),
        context.key(),
        time(shrinking as f64),
        count(worst.calls),
        time(worst.times.sum as f64),
    );
    let longest = worst.times.max().map_or(String::new(), |ns| format!("longest call {}", time(ns as f64)));
    let severity = grade(45, 75, part, MIN_PERCENT, 100.0);
    Some(Finding { key: "slab_dominates", severity, sentence, detail: longest, table: "slab", ..Finding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn reclaims(shrinking: u64, every: u64) -> Recording {
        let mut r = Recording::default();
        for i in 0..100 {
            let t = i * every;
            r.event(Kind::MmVmscanDirectReclaimBegin, t, &[("order", 0)]);
            r.event(Kind::MmShrinkSlabStart, t + 10, &[("shr", 4), ("total_scan", 128)]);
            r.event(Kind::MmShrinkSlabEnd, t + 10 + shrinking, &[("shr", 4), ("nid", 0), ("retval", 100)]);
            r.event(Kind::MmVmscanDirectReclaimEnd, t + 1_000_000, &[("nr_reclaimed", 1)]);
        }
        r
    }

    #[test]
    fn fires_when_shrinkers_take_most_of_the_time() {
        let f = check(&reclaims(800_000, 10_000_000).analysis).unwrap();
        assert!(f.sentence.starts_with("shrinkers took 80 % of the time in direct reclaim (80 ms);"), "{}", f.sentence);
        assert!(f.sentence.ends_with("100 calls, 80 ms, 10,000 objects freed"), "{}", f.sentence);
    }

    #[test]
    fn does_not_fire_for_a_small_part_or_little_time() {
        assert_eq!(check(&reclaims(300_000, 10_000_000).analysis), None);
        assert_eq!(check(&reclaims(800_000, 1_000_000_000).analysis), None);
    }
}

//! Poor scan efficiency: pages are scanned and not freed.

use super::words::{count, percent, share};
use super::{Cost, Finding, grade};
use crate::Analysis;
use crate::tasks::Context;

/// Less scanned than this (40 MiB) is no load.
pub const MIN_SCANNED: u64 = 10_000;
/// Below, more scanned pages are kept than freed. Streaming through the page cache frees nearly all pages scanned.
pub const MIN_PERCENT: f64 = 50.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let worst = measured(a).into_iter().filter(|m| m.1 >= MIN_SCANNED).filter_map(|(who, scanned, freed)| {
        let efficiency = share(freed as f64, scanned as f64).filter(|e| *e < MIN_PERCENT)?;
        Some((who, scanned, freed, efficiency))
    });
    let worst: Vec<_> = worst.collect();
    let (who, scanned, freed, efficiency) = worst.iter().min_by(|x, y| x.3.total_cmp(&y.3))?;
    let sentence = format!(
        "{who} freed {} of {} pages it scanned (efficiency {})",
        count(*freed),
        count(*scanned),
        percent(*efficiency)
    );
    let others = worst.iter().filter(|m| m.0 != *who);
    let others = others.map(|(who, scanned, _, e)| format!("{who}: {} of {} pages", percent(*e), count(*scanned)));
    let detail = others.collect::<Vec<_>>().join("; ");
    let severity = grade(35, 75, *efficiency, MIN_PERCENT, 0.0);
    // kswapd takes CPU time, and nobody waits for it; what is counted only has no time.
    let waits = [Context::Direct, Context::Memcg].into_iter().find(|context| named(*context) == *who);
    let waits = waits.filter(|context| a.reclaim.context(*context).durations().count() > 0);
    let cost = waits.map(|context| Cost::of_reclaimers(a, |_, process| process.waited(context)));
    Some(Finding { key: "scan_efficiency", severity, sentence, detail, table: "reclaim", cost, ..Finding::default() })
}

fn named(context: Context) -> &'static str {
    match context {
        Context::Kswapd => "kswapd",
        Context::Direct => "direct reclaim",
        _ => "cgroup reclaim",
    }
}

/// Pages scanned and freed by each reclaimer: from events where recorded, else from counters.
fn measured(a: &Analysis) -> Vec<(&'static str, u64, u64)> {
    let contexts = [
        (Context::Kswapd, "pgscan_kswapd", "pgsteal_kswapd"),
        (Context::Direct, "pgscan_direct", "pgsteal_direct"),
        (Context::Memcg, "", ""),
    ];
    let throttled = super::writeback::check(a).is_some();
    let one = |(context, scan, steal): (Context, &str, &str)| {
        let who = named(context);
        let batches = &a.reclaim.context(context).inactive;
        // Pages that wait for the disk are what writeback throttling speaks of.
        let kept = batches.scanned.all.saturating_sub(batches.reclaimed.all);
        let unwritten = batches.dirty.saturating_add(batches.writeback).saturating_add(batches.immediate);
        if throttled && unwritten.saturating_mul(2) > kept {
            return None;
        }
        if batches.count > 0 {
            return Some((who, batches.scanned.all, batches.reclaimed.all));
        }
        Some((who, a.counters.vmstat(scan)?, a.counters.vmstat(steal)?))
    };
    contexts.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    fn kswapd(freed: i64) -> Recording {
        let mut r = Recording::default();
        r.by(9, b"kswapd0", Kind::MmVmscanKswapdWake, 0, &[("nid", 0), ("order", 0)]);
        for t in 0..500 {
            let fields = [("nr_scanned", 32), ("nr_reclaimed", freed), ("flags", 10)];
            r.by(9, b"kswapd0", Kind::MmVmscanLruShrinkInactive, t, &fields);
        }
        r
    }

    #[test]
    fn fires_below_half() {
        let f = check(&kswapd(4).analysis).unwrap();
        assert_eq!(f.sentence, "kswapd freed 2,000 of 16,000 pages it scanned (efficiency 12 %)");
        assert_eq!(f.severity, 65);
    }

    #[test]
    fn does_not_fire_for_good_or_little_scanning() {
        assert_eq!(check(&kswapd(16).analysis), None);
        let mut little = Recording::default();
        little.vmstat(&[("pgscan_direct", 0, 9_000), ("pgsteal_direct", 0, 0)]);
        assert_eq!(check(&little.analysis), None);
    }

    #[test]
    fn the_worst_is_said_and_the_other_mentioned() {
        let mut r = Recording::default();
        r.vmstat(&[
            ("pgscan_direct", 0, 15_985),
            ("pgsteal_direct", 0, 1_805),
            ("pgscan_kswapd", 0, 99_000),
            ("pgsteal_kswapd", 0, 40_000),
        ]);
        let f = check(&r.analysis).unwrap();
        assert_eq!(f.sentence, "direct reclaim freed 1,805 of 15,985 pages it scanned (efficiency 11 %)");
        assert_eq!(f.detail, "kswapd: 40 % of 99,000 pages");
    }
}

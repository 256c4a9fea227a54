//! vmalloc purges that are long or frequent.

use super::words::{count, counted, time};
use super::{Finding, grade};
use crate::Analysis;

/// What runs for twice the watchdog threshold (10 s) without yielding is reported as a soft lockup.
const SOFT_LOCKUP: u64 = 20_000_000_000;
/// A long pass. Published means of a pass over one node's areas, with accounting in batches, are 14 us to 7 ms on
/// 72 to 448 CPUs; every allocation that needs the space meanwhile waits for the pass.
const LONG: u64 = 10_000_000;
/// Passes per second that are frequent: each flushes the TLB of every CPU.
const FREQUENT_PER_SECOND: f64 = 10.0;
/// Fewer passes give no rate.
const MIN_PASSES: u64 = 100;
/// The functions that purge, outermost first.
const FUNCTIONS: &[&str] = &["drain_vmap_area_work", "__purge_vmap_area_lazy", "purge_vmap_node"];

pub fn check(a: &Analysis) -> Option<Finding> {
    long(a).or_else(|| frequent(a))
}

fn long(a: &Analysis) -> Option<Finding> {
    let calls = FUNCTIONS.iter().filter_map(|name| a.calls.get(name)).map(|f| (f.longest, f));
    let called = calls.max_by_key(|(longest, _)| *longest).filter(|(longest, _)| *longest >= LONG);
    let drained = Some(a.vmalloc.drains.max).filter(|longest| *longest >= LONG);
    let (longest, sentence, table) = match (called, drained) {
        (Some((longest, f)), _) => {
            let (n, mean) = (counted(f.usecs.count, "call"), time(f.mean()));
            (longest, format!("a vmalloc purge took {} ({}: {n}, mean {mean})", time(longest as f64), f.name), "calls")
        }
        (None, Some(longest)) => {
            let (n, mean) = (counted(a.vmalloc.drains.count, "purge"), time(a.vmalloc.drains.mean().unwrap_or(0.0)));
            let what = format!("{} from exceeding lazy_max_pages to the end of the purge", time(longest as f64));
            (longest, format!("purging lazy vmalloc areas took up to {what} ({n}, mean {mean})"), "vmalloc")
        }
        (None, None) => return None,
    };
    let mut detail = lazy(a);
    if called.is_some() && longest >= SOFT_LOCKUP {
        detail = format!("longer than twice watchdog_thresh: a soft lockup; {detail}");
    }
    let severity = if longest >= SOFT_LOCKUP { 95 } else { grade(40, 90, (longest as f64).log10(), 7.0, 10.3) };
    let detail = detail.trim_end_matches("; ").to_string();
    Some(Finding { key: "vmalloc_purge", severity, sentence, detail, table, ..Finding::default() })
}

fn frequent(a: &Analysis) -> Option<Finding> {
    let passes = a.vmalloc.passes() - a.vmalloc.empty;
    let rate = passes as f64 * 1e9 / a.span.length().filter(|span| *span > 0)? as f64;
    if passes < MIN_PASSES || rate < FREQUENT_PER_SECOND {
        return None;
    }
    let areas = a.vmalloc.purged.sum as f64 / passes as f64;
    let sentence =
        format!("vmalloc purged {} times, {rate:.0} per second, {areas:.0} areas each on average", count(passes));
    let severity = grade(35, 60, rate, FREQUENT_PER_SECOND, 100.0);
    Some(Finding { key: "vmalloc_purge", severity, sentence, detail: lazy(a), table: "vmalloc", ..Finding::default() })
}

/// Most lazy pages and their limit.
fn lazy(a: &Analysis) -> String {
    match (a.vmalloc.lazy_high, a.vmalloc.lazy_max) {
        (Some(high), Some(max)) => format!("up to {} lazy pages, lazy_max_pages {}", count(high), count(max)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::{Call, Kind, Sink};

    fn called(nanoseconds: u64) -> Recording {
        let mut r = Recording::default();
        for nanoseconds in [14_000, nanoseconds] {
            r.analysis.call(&Call { function: "purge_vmap_node", cpu: 1, nanoseconds });
        }
        r
    }
    fn passes(n: u64, every: u64) -> Recording {
        let mut r = Recording::default();
        for i in 0..n {
            r.event(Kind::FreeVmapAreaNoflush, i * every, &[("nr_lazy", 16_386), ("nr_lazy_max", 16_384)]);
            r.event(Kind::PurgeVmapAreaLazy, i * every + 1_000, &[("num_purged", 8_000)]);
        }
        r
    }

    #[test]
    fn long_calls_fire_and_soft_lockups_are_named() {
        let f = check(&called(17_500_000).analysis).unwrap();
        assert_eq!(f.sentence, "a vmalloc purge took 18 ms (purge_vmap_node: 2 calls, mean 8.8 ms)");
        assert!(f.severity < 60 && f.detail.is_empty());
        let f = check(&called(20_000_000_000).analysis).unwrap();
        assert_eq!((f.severity, f.detail.as_str()), (95, "longer than twice watchdog_thresh: a soft lockup"));
    }

    #[test]
    fn slow_drains_and_frequent_passes_fire() {
        let mut slow = Recording::default();
        slow.event(Kind::FreeVmapAreaNoflush, 0, &[("nr_lazy", 20_000), ("nr_lazy_max", 16_384)]);
        slow.event(Kind::PurgeVmapAreaLazy, 40_000_000, &[("num_purged", 8_000)]);
        let f = check(&slow.analysis).unwrap();
        assert!(f.sentence.starts_with("purging lazy vmalloc areas took up to 40 ms"), "{}", f.sentence);
        assert_eq!(f.detail, "up to 20,000 lazy pages, lazy_max_pages 16,384");
        let f = check(&passes(200, 20_000_000).analysis).unwrap();
        assert_eq!(f.sentence, "vmalloc purged 200 times, 50 per second, 8000 areas each on average");
    }

    #[test]
    fn short_and_rare_purges_do_not_fire() {
        assert_eq!(check(&called(1_800_000).analysis), None);
        assert_eq!(check(&passes(200, 1_000_000_000).analysis), None);
        assert_eq!(check(&passes(20, 1_000_000).analysis), None);
    }
}

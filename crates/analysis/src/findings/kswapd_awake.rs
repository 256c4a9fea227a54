//! A kswapd that never sleeps: its node stays below its high watermark.

use super::words::{count, percent, share, time};
use super::{Finding, HARMLESS, grade};
use crate::reclaim::Process;
use crate::{Analysis, Span};
use mmtwin_event::Kind;

/// Awake for this part of the recorded time. kswapd naps for 100 ms before it counts as asleep, so short gaps between
/// bursts of allocation show as awake; a kswapd that sleeps a tenth of the time reaches its watermark.
const MIN_PERCENT: f64 = 90.0;
/// Percent of scanned pages freed from which on it does its work: data is passed over, and kswapd makes room for it. It
/// takes CPU time of its own, and nobody waits; tasks that do wait are what direct reclaim speaks of.
const KEEPS_UP_PERCENT: f64 = 90.0;
/// A shorter recording can lie within one burst: ten naps.
const MIN_SPAN: u64 = 1_000_000_000;

pub fn check(a: &Analysis) -> Option<Finding> {
    if !a.recorded.has_any(&[Kind::MmVmscanKswapdWake, Kind::MmVmscanKswapdSleep]) {
        return None;
    }
    let span = a.span.length().filter(|span| *span >= MIN_SPAN)?;
    let kswapds = a.tasks.iter().filter(|t| t.kswapd).filter_map(|t| Some((t, a.reclaim.process(t)?)));
    let awake = kswapds.map(|(t, p)| (t.name(), p, awake(p, a.span)));
    let mut awake: Vec<_> = awake.filter(|(.., ns)| share(*ns as f64, span as f64) >= Some(MIN_PERCENT)).collect();
    awake.sort_by(|x, y| y.2.cmp(&x.2).then_with(|| x.0.cmp(&y.0)));
    let (name, process, ns) = awake.first()?;
    let part = share(*ns as f64, span as f64)?;
    let mut sentence = format!("{name} was awake for {} of {}", percent(part), time(span as f64));
    let (scanned, freed) = (process.scanned.all, process.reclaimed.all);
    if scanned > 0 {
        sentence += &format!(": {} pages scanned for {} freed", count(scanned), count(freed));
    }
    let keeps_up = share(freed as f64, scanned as f64) >= Some(KEEPS_UP_PERCENT);
    let more: Vec<_> = awake[1..].iter().map(|(name, ..)| name.as_str()).collect();
    let detail = if more.is_empty() { String::new() } else { format!("also {}", more.join(", ")) };
    let severity = if keeps_up { HARMLESS / 2 } else { grade(50, 70, part, MIN_PERCENT, 100.0) };
    Some(Finding { key: "kswapd_never_sleeps", severity, sentence, detail, table: "kswapd", ..Finding::default() })
}

/// Nanoseconds awake. A kswapd that scanned without waking or sleeping was awake all the time.
fn awake(process: &Process, trace: Span) -> u128 {
    match &process.kswapd {
        Some(kswapd) => kswapd.awake_within(trace),
        None if process.scanned.all > 0 => trace.length().unwrap_or(0).into(),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn phases(phases: &[(u64, u64)], end: u64) -> Recording {
        let mut r = Recording::default();
        r.event(Kind::MmVmscanWakeupKswapd, 0, &[("nid", 0)]);
        for (wake, sleep) in phases {
            r.by(9, b"kswapd0", Kind::MmVmscanKswapdWake, *wake, &[("nid", 0)]);
            if *sleep > 0 {
                r.by(9, b"kswapd0", Kind::MmVmscanKswapdSleep, *sleep, &[("nid", 0)]);
            }
        }
        r.event(Kind::MmVmscanWakeupKswapd, end, &[("nid", 0)]);
        r
    }
    const S: u64 = 1_000_000_000;

    #[test]
    fn fires_with_an_open_phase() {
        let f = check(&phases(&[(S / 10, 4 * S), (4 * S, 0)], 10 * S).analysis).unwrap();
        assert_eq!(f.sentence, "kswapd0 was awake for 99 % of 10 s");
    }

    #[test]
    fn fires_for_one_that_only_worked() {
        let mut r = phases(&[], 10 * S);
        r.by(8, b"kswapd1", Kind::MmVmscanKswapdSleep, 10 * S, &[("nid", 1)]);
        r.by(9, b"kswapd0", Kind::MmVmscanLruShrinkInactive, S, &[("nr_scanned", 64), ("nr_reclaimed", 1)]);
        let f = check(&r.analysis).unwrap();
        assert_eq!(f.sentence, "kswapd0 was awake for 100 % of 10 s: 64 pages scanned for 1 freed");
        assert_eq!(f.detail, "also kswapd1", "its first event was sleep");
    }

    #[test]
    fn one_that_frees_what_it_scans_is_harmless() {
        for (freed, harmless) in [(64, true), (32, false)] {
            let mut r = phases(&[(S / 10, 4 * S), (4 * S, 0)], 10 * S);
            let fields = [("nr_scanned", 64), ("nr_reclaimed", freed)];
            r.by(9, b"kswapd0", Kind::MmVmscanLruShrinkInactive, S, &fields);
            assert_eq!(check(&r.analysis).unwrap().is_harmless(), harmless, "{freed}");
        }
    }

    #[test]
    fn does_not_fire_for_one_that_sleeps_or_a_short_recording() {
        assert_eq!(check(&phases(&[(0, 4 * S), (6 * S, 0)], 10 * S).analysis), None);
        assert_eq!(check(&phases(&[(1, 0)], S / 2).analysis), None);
    }
}

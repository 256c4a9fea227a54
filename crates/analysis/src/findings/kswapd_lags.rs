//! A kswapd that does not keep up: tasks reclaim themselves while it is awake.

use super::words::{count, percent, share};
use super::{Cost, Finding, grade};
use crate::Analysis;
use crate::tasks::Context;
use mmtwin_event::Kind;

/// Fewer direct reclaims are one burst.
const MIN_BEGUN: u64 = 100;
/// Percent of direct reclaims begun while a kswapd was awake. Where it slept it was not asked in time, which is another
/// matter.
const MIN_PERCENT: f64 = 50.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let kinds = [Kind::MmVmscanKswapdWake, Kind::MmVmscanKswapdSleep, Kind::MmVmscanDirectReclaimBegin];
    if !kinds.iter().all(|kind| a.recorded.has(*kind)) {
        return None;
    }
    let direct = a.reclaim.context(Context::Direct);
    let begun = direct.begins;
    let while_awake = a.reclaim.begun_while_kswapd_awake;
    let part = share(while_awake as f64, begun as f64).filter(|p| *p >= MIN_PERCENT && begun >= MIN_BEGUN)?;
    let sentence = format!(
        "kswapd does not keep up: {} of {} direct reclaims began while it was awake",
        percent(part),
        count(begun)
    );
    let low = below_low(a);
    let detail = low.map_or(String::new(), |zone| format!("zone {zone} was below its low watermark at the end"));
    let fix = "a larger distance between its watermarks: mmtwin run --on twin SCENARIO --set \
               kernel.sysctl.vm.watermark_scale_factor=200";
    Some(Finding {
        key: "kswapd_lags",
        severity: grade(40, 60, part, MIN_PERCENT, 100.0),
        sentence,
        detail,
        table: "kswapd",
        cost: Some(Cost::of_reclaimers(a, |_, process| process.waited(Context::Direct))),
        fix: Some(fix.into()),
        ..Finding::default()
    })
}

/// A zone whose free pages were below its low watermark at the end.
fn below_low(a: &Analysis) -> Option<&str> {
    let last = |zone: &str, name: &str| a.counters.last("zoneinfo", zone, name);
    a.counters
        .keys("zoneinfo")
        .into_iter()
        .find(|zone| last(zone, "free").zip(last(zone, "low")).is_some_and(|(free, low)| low > 0 && free < low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn stalls(awake: bool) -> Recording {
        let mut r = Recording::default();
        r.by(9, b"kswapd0", Kind::MmVmscanKswapdWake, 0, &[("nid", 0)]);
        if !awake {
            r.by(9, b"kswapd0", Kind::MmVmscanKswapdSleep, 1, &[("nid", 0)]);
        }
        for i in 0..200 {
            r.event(Kind::MmVmscanDirectReclaimBegin, 10 + i * 1_000_000, &[("order", 0)]);
            r.event(Kind::MmVmscanDirectReclaimEnd, 10 + i * 1_000_000 + 500_000, &[("nr_reclaimed", 32)]);
        }
        r.by(9, b"kswapd0", Kind::MmVmscanKswapdSleep, 300_000_000, &[("nid", 0)]);
        r
    }

    #[test]
    fn fires_only_while_it_is_awake() {
        let mut r = stalls(true);
        r.counters("zoneinfo", "0/Normal", &[("free", 9, 5), ("low", 7, 7)]);
        let f = check(&r.analysis).unwrap();
        assert_eq!(f.sentence, "kswapd does not keep up: 100 % of 200 direct reclaims began while it was awake");
        assert_eq!(f.detail, "zone 0/Normal was below its low watermark at the end");
        assert_eq!(check(&stalls(false).analysis), None);
    }
}

//! Sums over events that differ from the kernel's counters.

use super::Finding;
use crate::{Analysis, invariants};

/// In a complete recording the two are equal to the page. Any difference means that either the recording or the assumed
/// kernel rule is wrong, so no result that depends on them can be trusted.
pub fn check(a: &Analysis) -> Option<Finding> {
    if !invariants::is_complete(a) {
        return None;
    }
    let all = invariants::all(a);
    let mut violated = all.iter().filter(|line| line.difference().is_ok_and(|difference| difference != 0));
    let worst = violated.next()?;
    let more = violated.count();
    let sides = (worst.events.unwrap_or_default(), worst.counters.unwrap_or_default());
    let others = if more > 0 { format!(", and {more} more invariants") } else { String::new() };
    let label = worst.label.to_lowercase();
    Some(Finding {
        key: "invariants",
        severity: 95,
        sentence: format!(
            "events and counters disagree: {label}: {} in events, {} in counters{others}",
            sides.0, sides.1
        ),
        detail: "no events were lost, so they should be equal: the recording cannot be trusted".into(),
        table: "invariants",
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::{Kind, Sink, Source};

    /// kswapd wakes once between the samples, once while the last one is read, once long after.
    fn recording(arm: &str, counted: u64) -> Recording {
        let mut r = Recording::default();
        r.analysis.start(&Source { arm: arm.into(), ..Source::default() });
        r.vmstat(&[("pageoutrun", 5, 5 + counted)]);
        for at in [3_000_000_000, 10_000_000_001, 12_000_000_000] {
            r.event(Kind::MmVmscanKswapdWake, at, &[]);
        }
        r
    }

    #[test]
    fn fires_for_a_difference_that_no_sampling_explains() {
        for (counted, fires) in [(0, true), (1, false), (2, false), (3, true)] {
            let r = recording("lab", counted);
            assert_eq!(check(&r.analysis).is_some(), fires, "{counted}");
        }
        let found = check(&recording("lab", 3).analysis).unwrap();
        assert_eq!(found.sentence, "events and counters disagree: kswapd wakeups: 2 in events, 3 in counters");
    }

    #[test]
    fn does_not_fire_where_pageoutrun_counts_loops() {
        let mut r = Recording::default();
        r.analysis.start(&Source { arm: "twin".into(), ..Source::default() });
        r.vmstat(&[("pageoutrun", 5, 500), ("kswapd_skip_congestion_wait", 0, 7)]);
        r.event(Kind::MmVmscanKswapdWake, 3_000_000_000, &[]);
        assert_eq!(check(&r.analysis), None);
    }

    #[test]
    fn does_not_fire_where_the_recording_is_not_whole() {
        let mut r = recording("host", 3);
        assert!(check(&r.analysis).is_some());
        r.analysis.lost(0, Some(1), 5);
        assert_eq!(check(&r.analysis), None);
        assert_eq!(check(&recording("import", 2).analysis), None, "no common clock");
    }
}

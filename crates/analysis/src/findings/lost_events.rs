//! Lost events: every figure from events is too small.

use super::words::{count, counted, percent, share};
use super::{Finding, grade};
use crate::Analysis;

/// From a tenth lost on, no sum can be trusted.
const EXTREME_PERCENT: f64 = 10.0;

/// Any loss is reported; the severity grows with it.
pub fn check(a: &Analysis) -> Option<Finding> {
    if !a.losses.any() {
        return None;
    }
    let lost = a.losses.total();
    let part = share(lost.events as f64, lost.events as f64 + a.recorded.total() as f64).unwrap_or(100.0);
    let cpus = counted(a.losses.cpus.len() as u64, "CPU");
    let sentence = match lost.unknown_gaps {
        0 => format!("the kernel lost {} on {cpus} ({} of all events)", counted(lost.events, "event"), percent(part)),
        gaps => {
            let known = if lost.events > 0 {
                format!(", plus {} counted by the kernel", count(lost.events))
            } else {
                String::new()
            };
            format!("events were lost on {cpus} in {} of unknown size{known}", counted(gaps, "gap"))
        }
    };
    let detail = "sums over events are too small and some durations are missing; record with a larger --buffer".into();
    let part = if lost.unknown_gaps > 0 { part.max(EXTREME_PERCENT / 2.0) } else { part };
    Some(Finding {
        key: "lost_events",
        severity: grade(40, 90, part, 0.0, EXTREME_PERCENT),
        sentence,
        detail,
        table: "lost-events",
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::{Kind, Sink};

    fn recording() -> Recording {
        let mut r = Recording::default();
        (0..95).for_each(|t| r.event(Kind::MmVmscanKswapdSleep, t, &[]));
        r
    }

    #[test]
    fn fires_for_any_loss() {
        let mut r = recording();
        r.analysis.lost(1, Some(5), 7);
        let f = check(&r.analysis).unwrap();
        assert_eq!((f.sentence.as_str(), f.severity), ("the kernel lost 5 events on 1 CPU (5.0 % of all events)", 65));
        r.analysis.lost(0, None, 9);
        let f = check(&r.analysis).unwrap();
        let expected = "events were lost on 2 CPUs in 1 gap of unknown size, plus 5 counted by the kernel";
        assert_eq!(f.sentence, expected);
    }

    #[test]
    fn does_not_fire_without_loss() {
        assert_eq!(check(&recording().analysis), None);
    }
}

//! A working set in transition: what was in use before comes back, and then nothing more is evicted too early.

use super::refaults::{Cause, Refaults};
use super::words::{count, percent};
use super::{Finding, HARMLESS};
use crate::Analysis;

/// It has ended by itself; what it cost is in the pressure beside it.
const SEVERITY: u8 = HARMLESS / 2;

pub fn check(a: &Analysis) -> Option<Finding> {
    let refaults = Refaults::of(a).filter(|refaults| refaults.cause() == Cause::Transition)?;
    let sentence = format!(
        "the working set changed: {} {} came back, {} of them in the last fifth of the time",
        count(refaults.total),
        refaults.whose(),
        percent(refaults.late?)
    );
    let (detail, pressure) = (refaults.detail(), refaults.pressure);
    Some(Finding {
        key: "refault_transition",
        severity: SEVERITY,
        sentence,
        detail,
        table: "vmstat",
        pressure,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::{CounterRow, Sink};

    #[test]
    fn fires_when_refaults_end_and_not_when_they_go_on() {
        for (ends, fires) in [(4, true), (10, false)] {
            let mut r = Recording::default();
            let names = ["workingset_refault_file", "pgsteal_file", "workingset_activate_file"].map(String::from);
            for second in 0..=10u64 {
                let n = second.min(ends) * 10_000;
                let values = [Some(n), Some(n + 5), Some(n / 2)];
                let at = second * 1_000_000_000;
                r.analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
            }
            assert_eq!(check(&r.analysis).is_some(), fires, "{ends}");
        }
    }
}

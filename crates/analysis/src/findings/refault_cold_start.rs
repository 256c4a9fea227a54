//! A cold start: pages come back that were evicted before the recording.

use super::refaults::{Cause, Refaults};
use super::words::count;
use super::{Finding, HARMLESS};
use crate::Analysis;

/// Reading them once is what a start costs.
const SEVERITY: u8 = HARMLESS / 2;

pub fn check(a: &Analysis) -> Option<Finding> {
    let refaults = Refaults::of(a).filter(|refaults| refaults.cause() == Cause::ColdStart)?;
    let sentence = format!(
        "cold start: {} {} came back while {} were evicted: most had been evicted before the recording",
        count(refaults.total),
        refaults.whose(),
        if refaults.freed == 0 { "none".into() } else { count(refaults.freed) }
    );
    let (detail, pressure) = (refaults.detail(), refaults.pressure);
    Some(Finding {
        key: "refault_cold_start",
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

    #[test]
    fn fires_where_little_is_evicted() {
        for (freed, fires) in [(0, true), (9_000, true), (20_000, false)] {
            let mut r = Recording::default();
            r.vmstat(&[("workingset_refault_file", 0, 20_000), ("pgsteal_file", 0, freed)]);
            assert_eq!(check(&r.analysis).is_some(), fires, "{freed}");
        }
    }
}

//! Streaming: data is passed over, and its pages are evicted without a loss to anybody.

use super::refaults::{Cause, Refaults};
use super::words::{count, pages};
use super::{Finding, HARMLESS};
use crate::Analysis;

/// Reclaim does what it should: no action.
const SEVERITY: u8 = HARMLESS / 2;

pub fn check(a: &Analysis) -> Option<Finding> {
    let refaults = Refaults::of(a).filter(|refaults| refaults.cause() == Cause::Streaming)?;
    let mut sentence = format!(
        "streaming: {} {} were read again only after they could not have been kept",
        count(refaults.total),
        refaults.whose()
    );
    if let Some((distance, capacity)) = refaults.distance.zip(refaults.capacity) {
        sentence += &format!(": {} were evicted in between, and {} fit", pages(distance), pages(capacity));
    }
    let (detail, pressure) = (refaults.detail(), refaults.pressure);
    Some(Finding {
        key: "refault_streaming",
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
    fn says_that_nothing_is_to_be_done() {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_file", 0, 512_000),
            ("workingset_activate_file", 0, 19),
            ("pgsteal_file", 0, 900_000),
        ]);
        r.counters("psi", "", &[("memory_some_total", 0, 10_000)]);
        let f = check(&r.analysis).unwrap();
        assert!(f.is_harmless() && f.sentence.starts_with("streaming: 512 k evicted pages"), "{}", f.sentence);
    }

    #[test]
    fn does_not_fire_where_somebody_waited() {
        let mut r = Recording::default();
        r.vmstat(&[
            ("workingset_refault_file", 0, 512_000),
            ("workingset_activate_file", 0, 19),
            ("pgsteal_file", 0, 900_000),
        ]);
        r.counters("psi", "", &[("memory_some_total", 0, 2_900_000)]);
        assert_eq!(check(&r.analysis), None);
    }
}

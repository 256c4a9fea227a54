//! Kernels that differ only in how they decide while they reclaim zones, so that they may have one and the same run.

use super::check;
use super::kernel::by_zone;
use crate::mm::vmscan_zone::Variant;
use mmtwin_scenario::kernel::Reclaim;
use mmtwin_scenario::{Kernel, Scenario};

/// True if scenarios differ in nothing but the name of the kernel and keys of reclaim by zones that are decided by as the
/// run goes on.
pub fn are_rivals(one: &Scenario, other: &Scenario) -> bool {
    rival(one, other).is_some()
}

/// The rules of a rival's kernel.
pub(crate) fn rival(of: &Scenario, other: &Scenario) -> Option<Variant> {
    // These keys are in the rules by zone alone. One that other rules are made of too must not be added.
    let &Reclaim { high_order, sync_pass, congestion, .. } = &of.kernel.reclaim;
    let reclaim = Reclaim { high_order, sync_pass, congestion, ..other.kernel.reclaim };
    let kernel = Kernel { release: of.kernel.release.clone(), reclaim, ..other.kernel.clone() };
    let like = Scenario { kernel, written: of.written.clone(), ..other.clone() };
    // What is refused has to say so itself.
    if like != *of || check(other).is_err() {
        return None;
    }
    by_zone(&of.kernel)?;
    by_zone(&other.kernel)
}

#[cfg(test)]
mod tests {
    use super::super::kernel::reclaim;
    use super::*;
    use crate::mm::vmscan::Rules;
    use std::path::Path;

    fn scenario(release: &str, set: &str) -> Scenario {
        let text = format!("[machine]\npreset = \"phenom-4c-8g\"\n[kernel]\nrelease = \"{release}\"\n");
        let sets: Vec<String> = [set.to_string()].into_iter().filter(|set| !set.is_empty()).collect();
        mmtwin_scenario::parse("test", &text, Path::new(""), &sets).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn kernels_of_a_series_are_rivals_and_others_are_not() {
        let of = |one, other| are_rivals(&scenario(one, ""), &scenario(other, ""));
        assert!(of("2.6.36", "2.6.36-lowlumpy") && of("2.6.36-waitcongest", "2.6.36-lowlumpy"));
        assert!(of("3.4", "3.4-lumpyremove") && of("3.4", "3.4"));
        // Dirty pages, kswapd, events; nodes are reclaimed.
        assert!(!of("2.6.36", "2.6.36-nodirect") && !of("3.3", "3.4") && !of("3.4-lumpyremove", "3.5"));
        assert!(!of("6.1", "6.1"));
        let other = scenario("3.4", "run.seed=2");
        assert!(!are_rivals(&scenario("3.4", ""), &other));
    }

    #[test]
    fn rules_of_rivals_differ_by_zone_only() {
        for (one, other) in
            [("2.6.36", "2.6.36-lowlumpy"), ("2.6.36", "2.6.36-waitcongest"), ("3.4", "3.4-lumpyremove")]
        {
            let (one, other) = (reclaim(&scenario(one, "").kernel), reclaim(&scenario(other, "").kernel));
            assert_ne!(one, other);
            assert_eq!(Rules { per_zone_lru: one.per_zone_lru, ..other }, one);
            // Some are read elsewhere too.
            let (one, other) = (one.per_zone_lru.unwrap(), other.per_zone_lru.unwrap());
            assert_eq!((one.compaction, one.compacts_any_order), (other.compaction, other.compacts_any_order));
        }
    }
}

//! Formulas of the derived rows, as the report scripts of 2010, 2012 and today compute them.
//!
//! Validated: every derived value published with the two series is recomputed from its raw rows (`tests.rs`).

/// `part` in percent of `whole`; 0 if there is no whole.
pub fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part * 100.0 / whole }
}

/// Percent of scanned pages that were reclaimed, without its fraction; 100 if nothing was scanned.
pub fn whole_efficiency(reclaimed: f64, scanned: f64) -> f64 {
    if scanned == 0.0 { 100.0 } else { percent(reclaimed, scanned).trunc() }
}

/// Pages per second.
pub fn velocity(pages: f64, elapsed: f64) -> f64 {
    if pages == 0.0 { 0.0 } else { pages / elapsed }
}

/// Percent of all scans that direct reclaim made, without its fraction; 0 if kswapd scanned nothing.
pub fn whole_direct_scans(direct: f64, kswapd: f64) -> f64 {
    if kswapd == 0.0 { 0.0 } else { percent(direct, kswapd + direct).trunc() }
}

/// Percent of its CPU time and stalls that the test was stalled.
pub fn stalled_share(stalled: f64, cpu: f64) -> f64 {
    percent(stalled, cpu + stalled)
}

/// Work of compaction in the cost units of the current comparison scripts.
pub fn compaction_cost(migrate_scanned: f64, isolated: f64, migrated: f64, failed: f64) -> f64 {
    (7.0 * migrate_scanned + 19.0 * isolated + 1038.0 * migrated + 14.0 * failed) / 1e6
}

/// Work of automatic NUMA balancing in the cost units of the current comparison scripts.
pub fn autonuma_cost(pte_updates: f64, hint_faults: f64, migrated: f64) -> f64 {
    (7.0 * pte_updates + 5000.0 * hint_faults + 19.0 * migrated) / 1e6
}

/// Percent of hinting faults that were local; 100 if there were none.
pub fn local_faults(local: f64, faults: f64) -> f64 {
    if faults == 0.0 { 100.0 } else { local * 100.0 / faults }
}

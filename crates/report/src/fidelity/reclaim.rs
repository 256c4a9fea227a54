//! How well the twin's reclaim agrees with the kernel's: counters of what was scanned, reclaimed, activated and refaulted,
//! of stalls, of kswapd and of swap.

use super::{Count, Fidelity, count};

/// Counters that are judged, or how their names begin.
const COUNTERS: [&str; 9] = [
    "pgscan_",
    "pgsteal_",
    "pgactivate",
    "pgdeactivate",
    "workingset_refault_",
    "pageoutrun",
    "allocstall_",
    "kswapd_",
    "pswpout",
];

/// The counters of a comparison by name; empty where nothing was reclaimed.
pub fn counters(fidelity: &Fidelity) -> Vec<(&str, Count)> {
    if fidelity.rows.iter().filter(|row| row.name.starts_with("pgscan_")).all(|row| row.of_kernel() == 0.0) {
        return Vec::new();
    }
    let judged = fidelity.rows.iter().filter(|row| COUNTERS.iter().any(|begin| row.name.starts_with(begin)));
    judged.filter_map(|row| Some((row.name.as_str(), count(row)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Observed, compare};
    use super::*;

    #[test]
    fn counters_of_reclaim_are_picked() {
        let run = |scan: f64| {
            let values = [("pgsteal_kswapd", 2000.0), ("pgscan_kswapd", scan), ("pgfault", 5000.0), ("pgrotated", 3.0)];
            let values = values.iter().map(|(name, value)| ((0, name.to_string()), *value)).collect();
            Observed { values, ..Observed::default() }
        };
        let fidelity = compare(&[run(1000.0)], &[run(1500.0)], &[]);
        let names: Vec<_> = counters(&fidelity).into_iter().map(|(name, count)| (name, count.good)).collect();
        assert_eq!(names, [("pgscan_kswapd", Some(false)), ("pgsteal_kswapd", Some(true))]);
        assert!(counters(&compare(&[run(0.0)], &[run(1.0)], &[])).is_empty());
    }
}

//! Poor NUMA locality: sampled accesses go to other nodes.

use super::words::{count, percent, share};
use super::{Finding, grade};
use crate::Analysis;

/// Hinting faults sample accesses; with fewer the share shows the initial placement only.
const MIN_FAULTS: u64 = 10_000;
/// Percent of hinting faults on the task's own node; below, most sampled accesses cross the interconnect.
const MIN_LOCAL: f64 = 50.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    let faults = a.counters.vmstat("numa_hint_faults").filter(|n| *n >= MIN_FAULTS)?;
    let local = a.counters.vmstat("numa_hint_faults_local")?;
    let part = share(local as f64, faults as f64).filter(|p| *p < MIN_LOCAL)?;
    let sentence =
        format!("only {} of {} NUMA hinting faults were local (numa_hint_faults_local)", percent(part), count(faults));
    let detail = a.counters.vmstat("numa_pages_migrated");
    let detail = detail.map_or(String::new(), |n| format!("{} pages were migrated in this time", count(n)));
    let severity = grade(45, 75, part, MIN_LOCAL, 0.0);
    Some(Finding { key: "numa_locality", severity, sentence, detail, table: "numa", ..Finding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    fn faults(all: u64, local: u64) -> Recording {
        let mut r = Recording::default();
        r.vmstat(&[
            ("numa_hint_faults", 7, 7 + all),
            ("numa_hint_faults_local", 3, 3 + local),
            ("numa_pages_migrated", 0, 70),
        ]);
        r
    }

    #[test]
    fn fires_when_most_faults_are_remote() {
        let f = check(&faults(50_000, 10_000).analysis).unwrap();
        assert_eq!(f.sentence, "only 20 % of 50,000 NUMA hinting faults were local (numa_hint_faults_local)");
        assert_eq!((f.severity, f.detail.as_str()), (63, "70 pages were migrated in this time"));
    }

    #[test]
    fn does_not_fire_for_local_or_few_faults() {
        assert_eq!(check(&faults(50_000, 30_000).analysis), None);
        assert_eq!(check(&faults(9_000, 0).analysis), None);
    }
}

//! Compaction in the background that nobody asked for.

use super::words::{count, pages};
use super::{Finding, HARMLESS};
use crate::Analysis;

/// It costs CPU time of kcompactd; nobody waits.
const SEVERITY: u8 = HARMLESS / 2;
/// Pages scanned for pages to move (100 MiB): less is a few milliseconds of CPU time, and not worth a line.
const MIN_SCANNED: u64 = 25_600;

pub fn check(a: &Analysis) -> Option<Finding> {
    // Proactive compaction is in the sum of all compaction; kernels differ in whether it is in that of kcompactd.
    let scanned = ["compact_migrate_scanned", "compact_daemon_migrate_scanned"];
    let scanned = scanned.iter().filter_map(|name| a.counters.vmstat(name)).max().filter(|n| *n >= MIN_SCANNED)?;
    let demand = a.counters.vmstat("compact_daemon_wake")?.saturating_add(a.counters.vmstat("compact_stall")?);
    if demand > 0 {
        return None;
    }
    let moved = a.counters.vmstat("pgmigrate_success");
    let moved = moved.map_or(String::new(), |n| format!(", {} pages migrated for all reasons", count(n)));
    Some(Finding {
        key: "proactive_compaction",
        severity: SEVERITY,
        sentence: format!(
            "kcompactd scanned {} without a request for large blocks (compact_migrate_scanned){moved}",
            pages(scanned)
        ),
        table: "vmstat",
        fix: Some("vm.compaction_proactiveness=0 turns it off".into()),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn fires_only_without_demand() {
        for (scanned, wakes, fires) in [(600_000, 0, true), (600_000, 1, false), (9_000, 0, false)] {
            let mut r = Recording::default();
            r.vmstat(&[
                ("compact_daemon_migrate_scanned", 0, scanned),
                ("compact_daemon_wake", 4, 4 + wakes),
                ("compact_stall", 0, 0),
            ]);
            assert_eq!(check(&r.analysis).is_some(), fires, "{scanned} {wakes}");
        }
        let mut sum = Recording::default();
        sum.vmstat(&[
            ("compact_migrate_scanned", 0, 600_000),
            ("compact_daemon_migrate_scanned", 0, 0),
            ("compact_daemon_wake", 4, 4),
            ("compact_stall", 0, 0),
        ]);
        assert!(check(&sum.analysis).is_some());
        let mut unknown = Recording::default();
        unknown.vmstat(&[("compact_daemon_migrate_scanned", 0, 600_000)]);
        assert_eq!(check(&unknown.analysis), None);
    }
}

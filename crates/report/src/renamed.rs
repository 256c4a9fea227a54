//! Names of tables and rows that schema_version 2 changed: `--table` and `--fail-on` refuse an old one with its new one.
//!
//! CHANGELOG.md has the same list for readers, and the columns and keys that no option takes.

use mmtwin_event::words::glob;

/// Tables: old and new name.
const TABLES: &[(&str, &str)] = &[
    ("reconciliation", "cross-check"),
    ("reclaim-node", "reclaim-by-node"),
    ("reclaim-where", "reclaim-by-priority"),
    ("mmtests-today", "mmtests-current"),
    ("numa-2018", "mmtests-numa-2018"),
    ("numa-today", "mmtests-numa-current"),
    ("summary", "postprocess-summary"),
    ("vmalloc-areas", "vmalloc-purge-areas"),
    ("vmalloc-intervals", "vmalloc-purge-intervals"),
    ("vmalloc-drains", "vmalloc-purge-latency"),
    ("losses", "lost-events"),
];

/// Rows: table (as a pattern), old and new key.
const ROWS: &[(&str, &str, &str)] = &[
    ("reclaim-*", "reclaimed_by_end", "nr_reclaimed_end"),
    ("reclaim-*", "kept", "ref_keep"),
    ("reclaim-*", "active_taken", "active_isolated"),
    ("numa", "numa_faults_per_mark", "numa_hint_faults_per_pte_update"),
    ("numa", "numa_local_percent", "numa_hint_faults_local_percent"),
    ("numa", "numa_moves", "sched_move_numa"),
    ("numa", "numa_swaps", "sched_swap_numa"),
    ("numa", "numa_sticks", "sched_stick_numa"),
    ("numa-health", "active_nodes_least", "active_nodes_min"),
    ("numa-health", "active_nodes_most", "active_nodes_max"),
    ("numa-health", "remote_evenness", "remaining_balance"),
    ("numa-health", "migrated_late_percent", "migrated_last_quarter_percent"),
    ("oom", "killed", "oom_kill"),
    ("oom", "no_progress", "no_progress_loops_max"),
    ("compaction", "migrate_taken", "migrate_isolated"),
    ("compaction", "free_taken", "free_isolated"),
    ("compaction", "fast_free_taken", "fast_free_isolated"),
    ("compaction", "success", "success_percent"),
    ("vmalloc", "lazy_high", "lazy_pages_max"),
    ("vmalloc", "lazy_max", "lazy_max_pages"),
    ("vmalloc", "pages_drained", "pages_purged"),
    ("vmalloc", "drain_mean", "purge_latency_mean"),
    ("vmalloc", "drain_max", "purge_latency_max"),
    ("invariants", "kswapd_scanned", "pgscan_kswapd"),
    ("invariants", "kswapd_reclaimed", "pgsteal_kswapd"),
    ("invariants", "direct_scanned", "pgscan_direct"),
    ("invariants", "direct_reclaimed", "pgsteal_direct"),
    ("invariants", "cgroup_scanned", "memcg_scanned"),
    ("invariants", "cgroup_reclaimed", "memcg_reclaimed"),
    ("invariants", "numa_migrated", "numa_pages_migrated"),
    ("invariants", "kswapd_wakes", "pageoutrun"),
];

/// Parts of keys of `workload`, which begin with names of processes and regions.
const WORKLOAD: &[(&str, &str)] = &[
    ("touches", "accesses"),
    ("cpu_time_per_touch", "cpu_time_per_access"),
    ("most_lazy_pages", "lazy_pages_max"),
    ("passes_again", "repeated_passes"),
    ("purge_longest", "purge_max"),
];

/// The new name of a table, if it had another one.
pub(crate) fn table(old: &str) -> Option<&'static str> {
    TABLES.iter().find(|(name, _)| *name == old).map(|(_, new)| *new)
}

/// The new `TABLE.KEY` or `KEY` of a row, if its table or its key had another name. The table may be a pattern.
pub(crate) fn row(in_table: Option<&str>, key: &str) -> Option<String> {
    let renamed = in_table.and_then(table);
    let now = renamed.or(in_table);
    let fits = |pattern: &str| now.is_none_or(|name| glob(pattern, name) || glob(name, pattern));
    let new = match ROWS.iter().find(|(pattern, old, _)| *old == key && fits(pattern)) {
        Some((.., new)) => (*new).to_owned(),
        None if fits("workload") => WORKLOAD.iter().fold(key.to_owned(), |key, (old, new)| key.replace(old, new)),
        None => key.to_owned(),
    };
    let full = now.map_or(new.clone(), |name| format!("{name}.{new}"));
    (renamed.is_some() || new != key).then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;
    use crate::tables::{reclaim_tables, subject_tables};
    use mmtwin_analysis::Analysis;

    #[test]
    fn new_names_exist_and_old_ones_do_not() {
        let tables: Vec<_> =
            [reclaim_tables, subject_tables].iter().flat_map(|tables| tables(&Analysis::default())).collect();
        for (old, new) in TABLES {
            assert!(tables.iter().all(|table| table.name != *old), "{old}");
            let conditional = new.starts_with("vmalloc-") || *new == "cross-check";
            assert!(conditional || tables.iter().any(|table| table.name == *new), "{new}");
        }
        for (name, old, new) in ROWS.iter().filter(|(name, ..)| !name.contains('*')) {
            let table = tables.iter().find(|table| table.name == *name).expect(name);
            let Body::Metric(rows) = &table.body else { panic!("{name} has no rows with keys") };
            let has = |key: &str| rows.iter().any(|row| row.key == key);
            assert!(has(new) && !has(old), "{name}: {old} -> {new}");
        }
    }

    #[test]
    fn the_changelog_has_all_of_them() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CHANGELOG.md");
        let text = std::fs::read_to_string(path).expect("the changelog");
        let listed = |old: &str, new: &str| {
            let line = |line: &str| line.contains(&format!("`{old}`")) && line.contains(&format!("`{new}`"));
            assert!(text.lines().any(line), "{old} -> {new}");
        };
        TABLES.iter().for_each(|(old, new)| listed(old, new));
        ROWS.iter().for_each(|(_, old, new)| listed(old, new));
        WORKLOAD.iter().for_each(|(old, new)| listed(&format!("..._{old}"), &format!("..._{new}")));
    }

    #[test]
    fn rows_by_table_and_key() {
        assert_eq!(row(Some("numa"), "numa_sticks").as_deref(), Some("numa.sched_stick_numa"));
        assert_eq!(row(None, "numa_sticks").as_deref(), Some("sched_stick_numa"));
        assert_eq!(row(Some("reclaim-direct"), "kept").as_deref(), Some("reclaim-direct.ref_keep"));
        assert_eq!(row(Some("numa-today"), "pte_updates").as_deref(), Some("mmtests-numa-current.pte_updates"));
        assert_eq!(row(Some("*"), "kept").as_deref(), Some("*.ref_keep"));
        assert_eq!(row(Some("workload"), "p_0__touches").as_deref(), Some("workload.p_0__accesses"));
        assert_eq!(row(None, "p_0__zipf_r__cpu_time_per_touch").as_deref(), Some("p_0__zipf_r__cpu_time_per_access"));
        assert_eq!(row(Some("vmscan"), "kept"), None);
    }
}

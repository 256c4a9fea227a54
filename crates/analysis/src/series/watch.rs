//! Which counters are kept over time, under which name, and whether as a level or as growth per second.

/// How a counter is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its value.
    Level,
    /// Its growth per second.
    Rate,
}

/// Counters of `/proc/vmstat` by their name without a zone.
const VMSTAT: &[(&str, How)] = &[
    ("nr_free_pages", How::Level),
    ("nr_dirty", How::Level),
    ("nr_writeback", How::Level),
    ("nr_dirty_threshold", How::Level),
    ("nr_dirty_background_threshold", How::Level),
    ("nr_dirtied", How::Rate),
    ("nr_written", How::Rate),
    ("pgscan_kswapd", How::Rate),
    ("pgscan_direct", How::Rate),
    ("pgsteal_kswapd", How::Rate),
    ("pgsteal_direct", How::Rate),
    ("pgsteal_khugepaged", How::Rate),
    ("pgsteal_proactive", How::Rate),
    ("allocstall", How::Rate),
    ("workingset_refault", How::Rate),
    ("workingset_refault_anon", How::Rate),
    ("workingset_refault_file", How::Rate),
    ("pswpin", How::Rate),
    ("pswpout", How::Rate),
    ("compact_stall", How::Rate),
    ("compact_success", How::Rate),
    ("compact_fail", How::Rate),
    ("compact_daemon_wake", How::Rate),
    ("thp_fault_alloc", How::Rate),
    ("thp_fault_fallback", How::Rate),
    ("thp_collapse_alloc", How::Rate),
    ("thp_split_page", How::Rate),
    ("numa_hint_faults", How::Rate),
    ("numa_hint_faults_local", How::Rate),
    ("numa_pages_migrated", How::Rate),
    ("pgmigrate_success", How::Rate),
    ("pgmigrate_fail", How::Rate),
];

/// Counters of a zone in `/proc/zoneinfo`.
const ZONE: &[&str] = &["free", "min", "low", "high"];

/// Counters of a cgroup, of either version.
const CGROUP: &[(&str, How)] = &[
    ("memory.current", How::Level),
    ("memory.usage_in_bytes", How::Level),
    ("memory.max", How::Level),
    ("memory.limit_in_bytes", How::Level),
    ("memory.pressure.some_total", How::Rate),
    ("memory.stat.workingset_refault", How::Rate),
    ("memory.stat.workingset_refault_anon", How::Rate),
    ("memory.stat.workingset_refault_file", How::Rate),
];

const SWAP: &[&str] = &["SwapTotal", "SwapFree"];

/// Under which name a counter is kept, and how; `None`: it is not. Counters of one name are added up.
pub(super) fn watched<'a>(source: &str, key: &str, name: &'a str) -> Option<(&'a str, How)> {
    let among = |list: &[(&str, How)], name: &'a str| {
        list.iter().find(|(known, _)| *known == name).map(|(_, how)| (name, *how))
    };
    match source {
        "vmstat" => among(VMSTAT, without_zone(name)),
        "psi" => name.ends_with("_total").then_some((name, How::Rate)),
        "zoneinfo" if key.contains('/') => ZONE.contains(&name).then_some((name, How::Level)),
        "meminfo" if key.is_empty() => SWAP.contains(&name).then_some((name, How::Level)),
        "cgroup" => among(CGROUP, name),
        "numa_maps" => Some((name, How::Level)),
        _ => None,
    }
}

/// The name without what the kernel appends for each zone.
fn without_zone(name: &str) -> &str {
    let zones = ["_dma", "_dma32", "_normal", "_high", "_movable", "_device"];
    zones.iter().find_map(|zone| name.strip_suffix(zone)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_one_name() {
        for name in ["pgsteal_kswapd", "pgsteal_kswapd_normal", "pgsteal_kswapd_dma32"] {
            assert_eq!(watched("vmstat", "", name), Some(("pgsteal_kswapd", How::Rate)));
        }
        assert_eq!(watched("vmstat", "", "pgsteal_kswapd_anon"), None);
        assert_eq!(watched("zoneinfo", "0/Normal", "free"), Some(("free", How::Level)));
        assert_eq!(watched("zoneinfo", "0", "free"), None);
        assert_eq!(watched("meminfo", "0", "SwapFree"), None);
    }
}

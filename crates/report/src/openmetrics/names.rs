//! What a counter of the kernel is called in Prometheus: family, unit and labels.
//!
//! `mmtwin_SOURCE_NAME`, with the kernel's own name. Units are those of Prometheus: bytes for KiB, seconds for microseconds,
//! shares for percent. Pages stay pages and have no unit in their name: the size of a page is not known everywhere. What
//! only grows ends in `_total`. What the kernel keeps per node, zone or cgroup is a label.

use mmtwin_analysis::counters::is_gauge;

/// How a family's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As the kernel counts.
    Plain,
    /// The kernel's bytes.
    Bytes,
    /// The kernel's KiB, written as bytes.
    Kibibytes,
    /// The kernel's microseconds, written as seconds.
    Microseconds,
    /// The kernel's hundredths of a percent, written as shares.
    Hundredths,
}

impl Unit {
    /// What ends the name of the family, and stands behind `# UNIT`.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Plain => "",
            Unit::Bytes | Unit::Kibibytes => "bytes",
            Unit::Microseconds => "seconds",
            Unit::Hundredths => "ratio",
        }
    }

    /// A value of the kernel in this unit, exact.
    pub fn text(self, value: u64) -> String {
        match self {
            Unit::Plain | Unit::Bytes => value.to_string(),
            Unit::Kibibytes => (u128::from(value) * 1024).to_string(),
            Unit::Microseconds => format!("{}.{:06}", value / 1_000_000, value % 1_000_000),
            Unit::Hundredths => format!("{}.{:04}", value / 10_000, value % 10_000),
        }
    }
}

/// A counter of the kernel, as Prometheus names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Family, without `_total`.
    pub family: String,
    /// It only grows.
    pub counter: bool,
    /// Unit.
    pub unit: Unit,
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
}

/// Files of a cgroup that hold bytes.
const BYTES: &[&str] = &[
    "memory.current",
    "memory.peak",
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.current",
    "memory.swap.max",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.memsw.usage_in_bytes",
    "memory.memsw.limit_in_bytes",
];

/// Counters that `/proc/vmstat` has for each zone, and the zones as it names them.
const ZONED: &[&str] = &["allocstall", "pgalloc", "pgskip"];
const ZONES: &[&str] = &["dma", "dma32", "normal", "high", "movable", "device"];

/// Names a counter.
pub fn named(source: &str, key: &str, name: &str) -> Named {
    // Pages by node go up and down, also where their name says `total`.
    let by_node = name.starts_with("memory.numa_stat.");
    let gauge = is_gauge(source, name) || matches!(source, "numa_maps" | "sched") || by_node;
    let (prefix, labels) = place(source, key);
    let (own, unit) = match source {
        "meminfo" if name.starts_with("HugePages_") => (name.to_string(), Unit::Plain),
        "meminfo" => (name.to_string(), Unit::Kibibytes),
        "vmstat" if matches!(name, "pgpgin" | "pgpgout") => (name.to_string(), Unit::Kibibytes),
        "psi" => pressure(name),
        "cgroup" => cgroup(name, gauge),
        _ => (name.to_string(), Unit::Plain),
    };
    let (own, labels) = match per_zone(&own).filter(|_| source == "vmstat") {
        Some((rest, zone)) => (rest, [labels, vec![("zone", zone)]].concat()),
        None => (own, labels),
    };
    let (own, labels) = match (source, per_node(&own)) {
        ("cgroup" | "numa_maps", Some((rest, node))) => {
            let rest = if rest.is_empty() { "pages".into() } else { rest };
            (rest, [labels, vec![("node", node)]].concat())
        }
        // Version 1 has the sum too, which is no node.
        ("cgroup", None) if by_node => (format!("{own}_all_nodes"), labels),
        _ => (own, labels),
    };
    let mut family = format!("mmtwin_{prefix}_{}", allowed(&own));
    // The ends that the format keeps for itself.
    for end in ["_total", "_created", "_count", "_sum", "_bucket", "_info"] {
        if family.ends_with(end) {
            family.push_str("_value");
        }
    }
    if !unit.word().is_empty() && !family.ends_with(&format!("_{}", unit.word())) {
        family = format!("{family}_{}", unit.word());
    }
    Named { family, counter: !gauge, unit, labels }
}

/// What stands before the kernel's name, and where the counter is.
fn place(source: &str, key: &str) -> (String, Vec<(&'static str, String)>) {
    let node = |node: &str| vec![("node", node.to_string())];
    match source {
        "cgroup" => ("cgroup".into(), vec![("cgroup", key.to_string())]),
        "zoneinfo" => match key.split_once('/') {
            Some((number, zone)) => ("zone".into(), [node(number), vec![("zone", zone.to_string())]].concat()),
            None => ("zoneinfo_node".into(), node(key)),
        },
        "meminfo" if !key.is_empty() => ("node_meminfo".into(), node(key)),
        "node_vmstat" | "numastat" => (source.into(), node(key)),
        "numa_maps" => ("numa_maps".into(), vec![("region", key.to_string())]),
        "sched" | "delays" => (source.into(), vec![("thread", key.to_string())]),
        _ if key.is_empty() => (allowed(source), Vec::new()),
        _ => (allowed(source), vec![("key", key.to_string())]),
    }
}

/// `memory_some_total` and `memory_some_avg10`.
fn pressure(name: &str) -> (String, Unit) {
    match name.strip_suffix("_total") {
        Some(of) => (of.into(), Unit::Microseconds),
        None => (name.into(), Unit::Hundredths),
    }
}

/// Counters of a cgroup's files.
fn cgroup(name: &str, gauge: bool) -> (String, Unit) {
    if name.contains(".pressure.") {
        return pressure(name);
    }
    // What `numa_stat` counts are pages in version 1 and bytes in version 2.
    let bytes = BYTES.contains(&name) || (gauge && name.starts_with("memory.stat."));
    let unit = if bytes { Unit::Bytes } else { Unit::Plain };
    (name.strip_suffix("_in_bytes").unwrap_or(name).into(), unit)
}

/// `allocstall_normal`: the name, and the zone.
fn per_zone(name: &str) -> Option<(String, String)> {
    let (rest, zone) = name.split_once('_')?;
    (ZONED.contains(&rest) && ZONES.contains(&zone)).then(|| (rest.into(), zone.into()))
}

/// `memory.numa_stat.anon.N0`: the name, and the node.
fn per_node(name: &str) -> Option<(String, String)> {
    let (rest, last) = name.rsplit_once('.').unwrap_or(("", name));
    let node = last.strip_prefix('N').filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))?;
    Some((rest.into(), node.into()))
}

/// The characters that a name may have; parentheses at its end go.
fn allowed(name: &str) -> String {
    let name = name.trim_end_matches(')');
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Family, kind and labels in one line.
    fn line(source: &str, key: &str, name: &str) -> String {
        let named = named(source, key, name);
        let labels: Vec<_> = named.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        format!("{}{} {}", named.family, if named.counter { "_total" } else { "" }, labels.join(","))
    }

    #[test]
    fn names_have_units_and_labels() {
        for (source, key, name, expected) in [
            ("vmstat", "", "pgscan_kswapd", "mmtwin_vmstat_pgscan_kswapd_total "),
            ("vmstat", "", "pgpgin", "mmtwin_vmstat_pgpgin_bytes_total "),
            ("vmstat", "", "allocstall_normal", "mmtwin_vmstat_allocstall_total zone=normal"),
            ("vmstat", "", "nr_free_pages", "mmtwin_vmstat_nr_free_pages "),
            ("meminfo", "", "Active(anon)", "mmtwin_meminfo_Active_anon_bytes "),
            ("meminfo", "", "HugePages_Total", "mmtwin_meminfo_HugePages_Total "),
            ("meminfo", "1", "MemFree", "mmtwin_node_meminfo_MemFree_bytes node=1"),
            ("zoneinfo", "0/Normal", "free", "mmtwin_zone_free node=0,zone=Normal"),
            ("zoneinfo", "0", "pgpromote_success", "mmtwin_zoneinfo_node_pgpromote_success_total node=0"),
            ("numastat", "0", "numa_hit", "mmtwin_numastat_numa_hit_total node=0"),
            ("psi", "", "memory_some_total", "mmtwin_psi_memory_some_seconds_total "),
            ("psi", "", "memory_full_avg10", "mmtwin_psi_memory_full_avg10_ratio "),
            ("cgroup", "/web", "memory.current", "mmtwin_cgroup_memory_current_bytes cgroup=/web"),
            ("cgroup", "/web", "memory.limit_in_bytes", "mmtwin_cgroup_memory_limit_bytes cgroup=/web"),
            ("cgroup", "/web", "memory.stat.anon", "mmtwin_cgroup_memory_stat_anon_bytes cgroup=/web"),
            ("cgroup", "/web", "memory.stat.pgscan", "mmtwin_cgroup_memory_stat_pgscan_total cgroup=/web"),
            ("cgroup", "/web", "memory.events.max", "mmtwin_cgroup_memory_events_max_total cgroup=/web"),
            (
                "cgroup",
                "/web",
                "memory.pressure.some_total",
                "mmtwin_cgroup_memory_pressure_some_seconds_total cgroup=/web",
            ),
            ("cgroup", "/web", "memory.numa_stat.anon.N1", "mmtwin_cgroup_memory_numa_stat_anon cgroup=/web,node=1"),
            ("cgroup", "/web", "memory.numa_stat.total", "mmtwin_cgroup_memory_numa_stat_total_all_nodes cgroup=/web"),
            (
                "cgroup",
                "/web",
                "memory.numa_stat.hierarchical_total.N0",
                "mmtwin_cgroup_memory_numa_stat_hierarchical_total_value cgroup=/web,node=0",
            ),
            ("numa_maps", "one/heap", "N3", "mmtwin_numa_maps_pages region=one/heap,node=3"),
            ("sched", "7", "numa_scan_seq", "mmtwin_sched_numa_scan_seq thread=7"),
        ] {
            assert_eq!(line(source, key, name), expected);
        }
    }

    #[test]
    fn values_are_exact() {
        assert_eq!(Unit::Kibibytes.text(u64::MAX), "18889465931478580853760");
        assert_eq!(Unit::Microseconds.text(1_500_000), "1.500000");
        assert_eq!(Unit::Hundredths.text(25), "0.0025");
        assert_eq!(Unit::Plain.text((1 << 60) + 1), "1152921504606846977");
    }
}

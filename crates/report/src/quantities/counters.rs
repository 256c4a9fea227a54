//! The kernel's counters as rows: how much each grew; of gauges the last sample.

use super::part;
use crate::model::Better::{Higher, Lower, Neutral};
use crate::model::{Better, Body, Cell, Gain, Metric, Table};
use mmtwin_analysis::Analysis;
use mmtwin_analysis::counters::{Counters, is_gauge};
use mmtwin_event::words::glob;

/// Counters by pattern, and which direction is good; the first that fits decides, and others have none.
const DIRECTIONS: &[(&str, Better)] = &[
    ("pgscan*", Lower),
    ("allocstall*", Lower),
    ("pgmajfault", Lower),
    ("pswp*", Lower),
    ("workingset_refault*", Lower),
    ("oom_kill*", Lower),
    ("oom", Lower),
    ("max", Lower),
    ("high", Lower),
    ("failcnt", Lower),
    ("compact_stall", Lower),
    ("compact_fail", Lower),
    ("compact_success", Higher),
    ("thp_fault_fallback*", Lower),
    ("thp_fault_alloc", Higher),
    ("pgmigrate_fail", Lower),
    ("numa_hint_faults_local", Higher),
    ("numa_miss", Lower),
    ("numa_foreign", Lower),
    ("numa_other", Lower),
    ("nr_vmscan_write", Lower),
    ("nr_vmscan_immediate_reclaim", Lower),
    ("slabs_scanned", Lower),
];

fn better(name: &str) -> Better {
    DIRECTIONS.iter().find(|(pattern, _)| glob(pattern, name)).map_or(Neutral, |(_, better)| *better)
}

/// Counters of `/proc/vmstat` that count pages.
const PAGES: &[&str] = &[
    "nr_*",
    "pgscan*",
    "pgsteal*",
    "pswp*",
    "workingset_*",
    "pgmigrate_*",
    "pgalloc_*",
    "pgfree",
    "pgactivate",
    "pgdeactivate",
    "pgrefill*",
    "pgrotated",
    "pglazyfree*",
    "pgdemote*",
    "pgpromote*",
    "numa_pages_migrated",
    "compact_isolated",
    "compact_*_scanned",
    "drop_*",
];

fn unit(source: &str, name: &str) -> &'static str {
    let is = |patterns: &[&str]| patterns.iter().any(|pattern| glob(pattern, name));
    match source {
        "vmstat" if is(&["pgpgin", "pgpgout"]) => "KiB",
        "vmstat" if is(PAGES) => "pages",
        "meminfo" if !name.starts_with("HugePages_") => "KiB",
        "cgroup" => match name.strip_prefix("memory.stat.") {
            Some(leaf) if PAGES.iter().any(|pattern| glob(pattern, leaf)) => "pages",
            Some(_) if is_gauge(source, name) => "bytes",
            None if is(USAGE) || is(&["memory.max", "memory.high", "memory.low", "memory.min", "*limit_in_bytes"]) => {
                "bytes"
            }
            _ => "",
        },
        _ => "",
    }
}

/// Usage of a cgroup: of it the highest sample says more than the last.
const USAGE: &[&str] =
    &["memory.current", "memory.usage_in_bytes", "memory.memsw.usage_in_bytes", "memory.swap.current"];

fn row(key: String, label: String, unit: &'static str, better: Better, value: Cell) -> Metric {
    Metric { key, label, unit: unit.into(), better, gain: Gain::None, decimals: None, value, published: None }
}

/// A counter's growth, a gauge's last sample, the highest of a usage.
fn value(counters: &Counters, source: &str, key: &str, name: &str) -> Cell {
    if source == "cgroup" && USAGE.contains(&name) {
        let samples = counters.series(source, key, name);
        return Cell::recorded(samples.iter().filter_map(|(_, value)| *value).max());
    }
    match is_gauge(source, name) {
        true => Cell::recorded(counters.last(source, key, name)),
        false => Cell::recorded(counters.delta(source, key, name)),
    }
}

fn table(name: &str, title: &str, note: &str, rows: Vec<Metric>) -> Table {
    Table { name: name.into(), title: title.into(), note: note.into(), body: Body::Metric(rows) }
}

/// `vmstat` and `meminfo`: all counters, changed or not, so that inputs have the same rows.
pub(super) fn system(counters: &Counters, of: &Table) -> Table {
    let source = of.name.as_str();
    let names = counters.sampled(source, "").map(|sampled| sampled.names.clone()).unwrap_or_default();
    let rows = names.into_iter().map(|name| {
        let better = if is_gauge(source, &name) { Neutral } else { better(&name) };
        row(part(&name), name.clone(), unit(source, &name), better, value(counters, source, "", &name))
    });
    table(source, &of.title, "How much a counter grew; of a gauge the last sample.", rows.collect())
}

const RESOURCES: [&str; 3] = ["memory", "io", "cpu"];
const TASKS: [&str; 2] = ["some", "full"];

/// Share of the time and seconds that tasks waited, of the totals of a source; `name` is the total's.
fn pressure(counters: &Counters, source: &str, of: &str, total: &str) -> Option<[Cell; 2]> {
    let waited = counters.delta(source, of, total)?;
    let share = counters.seconds(source, of).map(|seconds| waited as f64 / 1e4 / seconds);
    Some([Cell::float(share), Cell::Float(waited as f64 / 1e6)])
}

/// `psi`: shares of the time, and seconds.
pub(super) fn psi(counters: &Counters) -> Table {
    let mut rows = Vec::new();
    for resource in RESOURCES {
        for tasks in TASKS {
            let known = pressure(counters, "psi", "", &format!("{resource}_{tasks}_total"));
            let Some([share, time]) = known else { continue };
            let (key, label) = (format!("{resource}.{tasks}"), format!("PSI {resource} {tasks}"));
            rows.push(row(format!("{key}_time"), format!("{label}: time"), "s", Lower, time));
            rows.insert(rows.len() - 1, row(key, label, "%", Lower, share));
        }
    }
    let note = "some: share of the time in which at least one task waited; full: in which all that could run did.";
    table("psi", "Pressure stall information (PSI)", note, rows)
}

/// `cgroup`: every counter of every cgroup, its path first.
pub(super) fn cgroups(counters: &Counters) -> Table {
    let mut rows = Vec::new();
    for key in counters.keys("cgroup") {
        let Some(sampled) = counters.sampled("cgroup", key) else { continue };
        for name in &sampled.names {
            let (of, label) = (format!("{}.{}", part(key), part(name)), format!("{key} {name}"));
            if name.contains(".pressure.") {
                // Averages are of the last seconds before a sample: the total tells all of it.
                let Some(total) = name.strip_suffix("_total") else { continue };
                let Some([share, time]) = pressure(counters, "cgroup", key, name) else { continue };
                let of = format!("{}.{total}", part(key));
                rows.push(row(of.clone(), format!("{key} {total}"), "%", Lower, share));
                rows.push(row(format!("{of}_time"), format!("{key} {total}: time"), "s", Lower, time));
                continue;
            }
            let leaf = name.rsplit_once('.').map_or(name.as_str(), |(_, leaf)| leaf);
            let better = if is_gauge("cgroup", name) { Neutral } else { better(leaf) };
            rows.push(row(of, label, unit("cgroup", name), better, value(counters, "cgroup", key, name)));
        }
    }
    let note = "How much a counter grew; of usage the highest sample, of other gauges the last.";
    table("cgroup", "Counters of cgroups", note, rows)
}

/// Counters of single nodes and zones, which have no table of their own.
const OF_NODES: [(&str, &str); 3] =
    [("zoneinfo", "Counters of zones"), ("node_vmstat", "vmstat of nodes"), ("numastat", "numastat of nodes")];

/// `zoneinfo`, `node_vmstat` and `numastat`: every counter of every zone or node, which comes first.
pub fn of_nodes_and_zones(analysis: &Analysis) -> Vec<Table> {
    let counters = &analysis.counters;
    let rows = |source: &str| {
        let mut rows = Vec::new();
        for key in counters.keys(source) {
            for name in counters.sampled(source, key).map_or(&[][..], |sampled| &sampled.names) {
                let of = format!("{}.{}", part(key), part(name));
                rows.push(row(of, format!("{key} {name}"), "", Neutral, value(counters, source, key, name)));
            }
        }
        rows
    };
    let note = "How much a counter grew; of a gauge the last sample.";
    OF_NODES.iter().map(|(source, title)| table(source, title, note, rows(source))).collect()
}

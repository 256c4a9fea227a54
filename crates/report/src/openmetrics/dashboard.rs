//! A dashboard of Grafana for what `mmtwin serve` exposes.

use super::alerts::series;
use serde_json::{Value, json};

/// A panel: title, unit of Grafana, and expressions with their legends.
type Panel = (&'static str, &'static str, Vec<(String, &'static str)>);

/// Per second, of a counter of this machine.
fn rate(source: &str, name: &str) -> String {
    format!("sum by (instance) (rate({}{{instance=~\"$instance\"}}[$__rate_interval]))", series(source, name))
}

/// A gauge of this machine.
fn gauge(source: &str, name: &str) -> String {
    format!("{}{{instance=~\"$instance\"}}", series(source, name))
}

/// Of all cgroups the ten with most.
fn most(expression: &str) -> String {
    format!("topk(10, {expression})")
}

/// The same counters of both lists of memory.
fn both(prefix: &str) -> String {
    format!("{} + {}", rate("vmstat", &format!("{prefix}_anon")), rate("vmstat", &format!("{prefix}_file")))
}

fn panels() -> Vec<Panel> {
    let vmstat = |name: &str| rate("vmstat", name);
    let meminfo = |name: &str| gauge("meminfo", name);
    let psi = |name: &str| rate("psi", name);
    let of_cgroup =
        |name: &str| format!("rate({}{{instance=~\"$instance\"}}[$__rate_interval])", series("cgroup", name));
    let share = |a: &str, b: &str| format!("({a}) / ({b})");
    let cgroup = "{{cgroup}}";
    vec![
        (
            "Pressure: share of the time in which tasks waited",
            "percentunit",
            vec![
                (psi("memory_some_total"), "memory, some"),
                (psi("memory_full_total"), "memory, full"),
                (psi("io_some_total"), "io, some"),
                (psi("cpu_some_total"), "cpu, some"),
            ],
        ),
        (
            "Memory",
            "bytes",
            vec![
                (meminfo("MemAvailable"), "available"),
                (meminfo("MemFree"), "free"),
                (meminfo("Active(anon)"), "active anon"),
                (meminfo("Inactive(anon)"), "inactive anon"),
                (meminfo("Active(file)"), "active file"),
                (meminfo("Inactive(file)"), "inactive file"),
            ],
        ),
        (
            "Pages reclaimed per second, by who",
            "short",
            vec![
                (vmstat("pgsteal_direct"), "tasks (direct reclaim)"),
                (vmstat("pgsteal_kswapd"), "kswapd"),
                (vmstat("pgsteal_khugepaged"), "khugepaged"),
            ],
        ),
        (
            "Share of scanned pages that are reclaimed",
            "percentunit",
            vec![(share(&both("pgsteal"), &both("pgscan")), "reclaimed of scanned")],
        ),
        (
            "Stalls per second",
            "short",
            vec![
                (vmstat("allocstall_normal"), "direct reclaim"),
                (vmstat("compact_stall"), "direct compaction"),
                (vmstat("oom_kill"), "tasks killed"),
            ],
        ),
        (
            "Refaults per second",
            "short",
            vec![(vmstat("workingset_refault_anon"), "anon"), (vmstat("workingset_refault_file"), "file")],
        ),
        ("Swap, pages per second", "short", vec![(vmstat("pswpin"), "in"), (vmstat("pswpout"), "out")]),
        ("Dirty and writeback", "bytes", vec![(meminfo("Dirty"), "dirty"), (meminfo("Writeback"), "writeback")]),
        (
            "NUMA hinting faults per second",
            "short",
            vec![
                (vmstat("numa_hint_faults_local"), "local"),
                (format!("{} - {}", vmstat("numa_hint_faults"), vmstat("numa_hint_faults_local")), "remote"),
                (vmstat("numa_pages_migrated"), "pages migrated"),
            ],
        ),
        (
            "NUMA allocations that fell back to another node, per second",
            "short",
            vec![(
                format!(
                    "sum by (node) (rate({}{{instance=~\"$instance\"}}[$__rate_interval]))",
                    series("numastat", "numa_miss")
                ),
                "node {{node}}",
            )],
        ),
        (
            "Huge pages per second",
            "short",
            vec![
                (vmstat("thp_fault_alloc"), "allocated"),
                (vmstat("thp_fault_fallback"), "fallen back"),
                (vmstat("thp_split_page"), "split"),
            ],
        ),
        ("Cgroups: usage", "bytes", vec![(most(&gauge("cgroup", "memory.current")), cgroup)]),
        (
            "Cgroups: usage of limit",
            "percentunit",
            vec![(most(&share(&gauge("cgroup", "memory.current"), &gauge("cgroup", "memory.max"))), cgroup)],
        ),
        (
            "Cgroups: share of the time in which tasks waited for memory",
            "percentunit",
            vec![(most(&of_cgroup("memory.pressure.some_total")), cgroup)],
        ),
        ("Cgroups: limit hit, per second", "short", vec![(most(&of_cgroup("memory.events.max")), cgroup)]),
        (
            "What is exposed",
            "short",
            vec![
                ("mmtwin_series{instance=~\"$instance\"}".into(), "series"),
                ("mmtwin_series_omitted{instance=~\"$instance\"}".into(), "series omitted"),
                ("mmtwin_cgroups_omitted{instance=~\"$instance\"}".into(), "cgroups omitted"),
            ],
        ),
    ]
}

/// The dashboard, as JSON to import.
pub fn dashboard() -> String {
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let panel = |(at, (title, unit, queries)): (usize, Panel)| {
        let targets: Vec<Value> = queries
            .iter()
            .zip(b'A'..)
            .map(|((expression, legend), name)| {
                let name = char::from(name).to_string();
                json!({"refId": name, "expr": expression, "legendFormat": legend, "datasource": source})
            })
            .collect();
        json!({
            "id": at + 1,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "gridPos": {"x": at % 2 * 12, "y": at / 2 * 8, "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": targets,
        })
    };
    let variables = json!([
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        {
            "name": "instance", "type": "query", "datasource": source, "includeAll": true, "multi": true, "refresh": 2,
            "query": "label_values(mmtwin_series, instance)",
        },
    ]);
    let dashboard = json!({
        "uid": "mmtwin",
        "title": "Memory (mmtwin)",
        "tags": ["mmtwin"],
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": variables},
        "panels": panels().into_iter().enumerate().map(panel).collect::<Vec<_>>(),
    });
    format!("{dashboard:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn panels_have_places_of_their_own_and_whole_expressions() {
        let dashboard: Value = serde_json::from_str(&dashboard()).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let places: BTreeSet<String> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
        assert_eq!(places.len(), panels.len());
        for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
            let expression = target["expr"].as_str().unwrap();
            for [open, close] in [['(', ')'], ['{', '}'], ['[', ']']] {
                assert_eq!(expression.matches(open).count(), expression.matches(close).count(), "{expression}");
            }
            assert!(expression.contains("mmtwin_"), "{expression}");
        }
    }
}

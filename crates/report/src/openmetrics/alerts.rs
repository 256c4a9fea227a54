//! Alert rules of Prometheus, with the thresholds of the findings.
//!
//! Of the findings those that counters alone decide, over five minutes. A finding looks at the whole recording and at what
//! else there is; an alert says that it is worth to make one.

use super::names::named;
use mmtwin_analysis::findings::{RULES, thresholds as t};
use std::fmt::Write;

/// An alert.
struct Alert {
    /// Key of the finding.
    finding: &'static str,
    name: &'static str,
    /// True: somebody should look now.
    critical: bool,
    expression: String,
}

/// The time that is looked at.
const OVER: &str = "5m";

/// The name of a counter's series.
pub(super) fn series(source: &str, name: &str) -> String {
    let named = named(source, "", name);
    format!("{}{}", named.family, if named.counter { "_total" } else { "" })
}

/// Growth of counters of `/proc/vmstat` over the time, their sum, by machine.
fn grew(names: &[&str]) -> String {
    let each = names.iter().map(|name| format!("sum by (instance) (increase({}[{OVER}]))", series("vmstat", name)));
    each.collect::<Vec<_>>().join(" + ")
}

/// One is at least `percent` of another, which is at least `least`.
fn part(of: &[&str], all: &[&str], percent: f64, least: u64) -> String {
    let (of, all) = (grew(of), grew(all));
    format!("({of}) / ({all}) >= {} and ({all}) >= {least}", percent / 100.0)
}

fn alerts() -> Vec<Alert> {
    let alert = |finding, name, critical, expression| Alert { finding, name, critical, expression };
    let cgroup = |name: &str| series("cgroup", name);
    let psi = series("psi", "memory_some_total");
    let (current, max) = (cgroup("memory.current"), cgroup("memory.max"));
    let hits = cgroup("memory.events.max");
    vec![
        alert("oom_kill", "MemoryOomKill", true, format!("{} > 0", grew(&["oom_kill"]))),
        alert(
            "direct_reclaim",
            "MemoryDirectReclaim",
            false,
            format!(
                "sum by (instance) (rate({}[{OVER}])) >= {}",
                series("vmstat", "allocstall_normal"),
                t::STALLS_PER_SECOND
            ),
        ),
        alert(
            "refault_thrash",
            "MemoryRefaultThrash",
            true,
            format!(
                "({refaults}) / ({}) >= {} and ({refaults}) >= {}",
                grew(&["pgsteal_anon", "pgsteal_file"]),
                t::REFAULT_PERCENT / 100.0,
                t::REFAULTS,
                refaults = grew(&["workingset_refault_anon", "workingset_refault_file"]),
            ) + &format!(" and sum by (instance) (rate({psi}[{OVER}])) >= {}", t::REFAULT_WAITED),
        ),
        alert(
            "swap_storm",
            "MemorySwapStorm",
            true,
            format!("{} >= {pages} and {} >= {pages}", grew(&["pswpin"]), grew(&["pswpout"]), pages = t::SWAP_PAGES)
                + &format!(" and sum by (instance) (rate({psi}[{OVER}])) >= {}", t::SWAP_PRESSURE),
        ),
        alert(
            "scan_efficiency",
            "MemoryScanInefficient",
            false,
            format!(
                "({}) / ({scanned}) < {} and ({scanned}) >= {}",
                grew(&["pgsteal_anon", "pgsteal_file"]),
                t::SCAN_PERCENT / 100.0,
                t::SCANNED,
                scanned = grew(&["pgscan_anon", "pgscan_file"]),
            ),
        ),
        alert(
            "cgroup_near_limit",
            "MemoryCgroupNearLimit",
            false,
            format!(
                "{current} / {max} >= {} and increase({hits}[{OVER}]) >= {}",
                t::CGROUP_PERCENT / 100.0,
                t::CGROUP_HITS
            ),
        ),
        alert(
            "thp_stalls",
            "MemoryHugePageStalls",
            false,
            part(
                &["thp_fault_fallback"],
                &["thp_fault_alloc", "thp_fault_fallback"],
                t::THP_FALLBACK_PERCENT,
                t::THP_FAULTS,
            ) + &format!(" and {} >= {}", grew(&["compact_stall"]), t::THP_STALLS),
        ),
        alert(
            "numa_locality",
            "NumaFaultsRemote",
            false,
            format!(
                "({}) / ({all}) < {} and ({all}) >= {}",
                grew(&["numa_hint_faults_local"]),
                t::NUMA_LOCAL_PERCENT / 100.0,
                t::NUMA_FAULTS,
                all = grew(&["numa_hint_faults"]),
            ),
        ),
        alert(
            "numa_migration_failures",
            "NumaMigrationsFail",
            false,
            part(
                &["pgmigrate_fail"],
                &["pgmigrate_success", "pgmigrate_fail"],
                t::MIGRATION_FAILED_PERCENT,
                t::MIGRATIONS,
            ),
        ),
        alert(
            "numa_fallback",
            "NumaAllocationsFallBack",
            false,
            part(&["numa_miss"], &["numa_hit", "numa_miss"], t::FALLBACK_PERCENT, t::MISSES)
                + &format!(" and {} >= {}", grew(&["numa_miss"]), t::MISSES),
        ),
    ]
}

/// A file of rules for Prometheus, as YAML.
pub fn rules() -> String {
    let mut text = String::from("# Written by `mmtwin serve --alerts`. Thresholds are those of the findings.\n");
    text.push_str("groups:\n  - name: mmtwin\n    rules:\n");
    for Alert { finding, name, critical, expression } in alerts() {
        let when = RULES.iter().find(|rule| rule.key == finding).map_or("", |rule| rule.when);
        let severity = if critical { "critical" } else { "warning" };
        // Expressions and sentences hold neither quotes nor backslashes.
        let _ = write!(
            text,
            "      - alert: {name}\n        expr: \"{expression}\"\n        for: 1m\n        labels:\n          \
             severity: {severity}\n        annotations:\n          summary: \"{{{{ $labels.instance }}}}: {when}\"\n          \
             finding: {finding}\n          command: \"mmtwin record -o incident.mmt -- sleep 60; mmtwin report incident.mmt\"\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alert_is_a_finding_and_its_expression_is_whole() {
        for alert in alerts() {
            assert!(RULES.iter().any(|rule| rule.key == alert.finding), "{}", alert.finding);
            let count = |c| alert.expression.chars().filter(|other| *other == c).count();
            assert_eq!(count('('), count(')'), "{}", alert.expression);
            assert!(!alert.expression.contains(['"', '\\']), "{}", alert.expression);
        }
    }

    #[test]
    fn thresholds_are_in_the_rules() {
        let text = rules();
        assert!(text.contains(&format!(
            "sum by (instance) (rate(mmtwin_vmstat_allocstall_total[5m])) >= {}",
            t::STALLS_PER_SECOND
        )));
        assert!(text.contains("(sum by (instance) (increase(mmtwin_vmstat_numa_miss_total[5m]))) / "));
        assert_eq!(text.matches("- alert: ").count(), alerts().len());
    }
}

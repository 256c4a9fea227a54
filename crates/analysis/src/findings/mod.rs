//! Findings: one sentence each, with its evidence.
//!
//! A rule is one file: a threshold with its reason, and a check that gives at most one sentence. It speaks only of
//! what was recorded; no evidence, no finding, and no finding is a result too.

mod cgroup_limit;
mod cost;
mod direct_reclaim;
mod efficiency;
#[cfg(test)]
mod fixture;
mod high_order;
mod invariants;
mod kswapd_awake;
mod lost_events;
mod numa_convergence;
mod numa_failures;
mod numa_fallback;
mod numa_locality;
mod oom;
mod refault;
mod slab;
mod vmalloc_purge;
mod words;
mod writeback;

pub use cost::{Cost, Pressure, Waiter, elapsed};

use crate::Analysis;

/// Findings of a lower severity need no action.
pub const HARMLESS: u8 = 20;

/// One verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// Stable snake_case name of the rule.
    pub key: &'static str,
    /// How bad, 0..=100.
    pub severity: u8,
    /// One sentence with its numbers.
    pub sentence: String,
    /// What it means or what else was seen; may be empty.
    pub detail: String,
    /// Name of the table that shows more.
    pub table: &'static str,
    /// Time that tasks waited because of it; `None`: the recording does not tell.
    pub cost: Option<Cost>,
    /// Pressure beside it, of its cgroup or of the system; `None`: not recorded.
    pub pressure: Option<Pressure>,
    /// What would help, with the command that tries it in the twin where one exists.
    pub fix: Option<String>,
    /// The command that tells more of the cause, or that records what is missing.
    pub next: Option<String>,
}

impl Finding {
    /// True if nothing needs to be done.
    pub fn is_harmless(&self) -> bool {
        self.severity < HARMLESS
    }

    /// The command that shows more.
    pub fn command(&self, input: &str) -> String {
        format!("mmtwin report {input} --table {}", self.table)
    }
}

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Key of its finding.
    pub key: &'static str,
    /// When it speaks, in a few words.
    pub when: &'static str,
    check: fn(&Analysis) -> Option<Finding>,
}

/// All rules; of two equally bad findings the earlier rule comes first.
pub const RULES: &[Rule] = &[
    Rule { key: "oom_kill", when: "the kernel killed processes", check: oom::check },
    Rule { key: "lost_events", when: "events were lost: statistics are incomplete", check: lost_events::check },
    Rule {
        key: "invariants",
        when: "sums over events differ from the kernel's counters although nothing was lost",
        check: invariants::check,
    },
    Rule { key: "cgroup_limit", when: "a cgroup reclaims because it is at its limit", check: cgroup_limit::check },
    Rule { key: "direct_reclaim", when: "tasks stall in direct reclaim", check: direct_reclaim::check },
    Rule { key: "scan_efficiency", when: "few of the scanned pages are reclaimed", check: efficiency::check },
    Rule { key: "refault_thrash", when: "evicted pages are read back soon after", check: refault::check },
    Rule { key: "kswapd_never_sleeps", when: "kswapd never sleeps", check: kswapd_awake::check },
    Rule {
        key: "writeback_throttling",
        when: "reclaim waits for dirty pages or for writeback",
        check: writeback::check,
    },
    Rule { key: "slab_dominates", when: "shrinking slabs takes most of the time of reclaim", check: slab::check },
    Rule { key: "high_order_reclaim", when: "high-order allocations drive reclaim", check: high_order::check },
    Rule { key: "numa_locality", when: "NUMA hinting faults stay remote", check: numa_locality::check },
    Rule { key: "numa_migration_failures", when: "NUMA page migrations fail", check: numa_failures::check },
    Rule { key: "numa_convergence", when: "NUMA page migrations do not settle", check: numa_convergence::check },
    Rule { key: "numa_fallback", when: "allocations fall back to another node", check: numa_fallback::check },
    Rule {
        key: "vmalloc_purge",
        when: "vmalloc purges are long or frequent; above 20 s a soft lockup",
        check: vmalloc_purge::check,
    },
];

/// All findings on an input, worst first.
pub fn all(a: &Analysis) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule.check(a)).collect();
    for finding in findings.iter_mut().filter(|f| f.pressure.is_none() && f.cost.is_some()) {
        finding.pressure = Pressure::of(a, None);
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

impl Rule {
    /// What it finds on an input.
    fn check(&self, a: &Analysis) -> Option<Finding> {
        let finding = (self.check)(a);
        debug_assert!(finding.as_ref().is_none_or(|found| found.key == self.key), "{}: {finding:?}", self.key);
        finding
    }
}

/// Severity between `from` and `to`, by where `value` lies between `threshold` and `extreme`.
fn grade(from: u8, to: u8, value: f64, threshold: f64, extreme: f64) -> u8 {
    let part = ((value - threshold) / (extreme - threshold)).clamp(0.0, 1.0);
    (f64::from(from) + part * (f64::from(to) - f64::from(from))).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_finds_nothing() {
        assert_eq!(all(&Analysis::default()), []);
    }

    #[test]
    fn grades_stay_in_range() {
        assert_eq!(grade(30, 80, 50.0, 50.0, 0.0), 30);
        assert_eq!(grade(30, 80, 25.0, 50.0, 0.0), 55);
        assert_eq!(grade(30, 80, -10.0, 50.0, 0.0), 80);
    }
}

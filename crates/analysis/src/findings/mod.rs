//! Findings: one sentence each, with its evidence.
//!
//! A rule is one file: a threshold with its reason, and a check that gives at most one sentence. It speaks only of
//! what was recorded; no evidence, no finding, and no finding is a result too.

mod cgroup_limit;
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

use crate::Analysis;

/// One verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl Finding {
    /// The command that shows more.
    pub fn command(&self, input: &str) -> String {
        format!("mmtwin report {input} --table {}", self.table)
    }
}

/// A rule.
type Rule = fn(&Analysis) -> Option<Finding>;

/// All rules; of two equally bad findings the earlier rule comes first.
const RULES: &[Rule] = &[
    oom::check,
    lost_events::check,
    invariants::check,
    cgroup_limit::check,
    direct_reclaim::check,
    efficiency::check,
    refault::check,
    kswapd_awake::check,
    writeback::check,
    slab::check,
    high_order::check,
    numa_locality::check,
    numa_failures::check,
    numa_convergence::check,
    numa_fallback::check,
    vmalloc_purge::check,
];

/// All findings on an input, worst first.
pub fn all(a: &Analysis) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(a)).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
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

//! Findings: one sentence each, with its evidence.
//!
//! A rule is one file: a threshold with its reason, and a check that gives at most one sentence. It speaks only of
//! what was recorded; no evidence, no finding, and no finding is a result too.

pub(crate) mod cgroup;
mod cgroup_limit;
mod cgroup_near_limit;
mod cost;
mod direct_reclaim;
mod dirty_throttling;
mod efficiency;
#[cfg(test)]
pub(crate) mod fixture;
mod high_order;
mod invariants;
mod kswapd_awake;
mod kswapd_lags;
mod limit_unused;
mod lost_events;
mod node_imbalance;
mod numa_convergence;
mod numa_failures;
mod numa_fallback;
mod numa_locality;
pub(crate) mod oom;
mod part;
mod proactive_compaction;
mod rank;
mod read_back;
mod refault;
mod refault_cold_start;
mod refault_streaming;
mod refault_transition;
pub(crate) mod refaults;
mod scope;
mod slab;
mod swap_storm;
mod thp_stalls;
pub mod thresholds;
mod vmalloc_purge;
mod why;
pub(crate) mod words;
mod writeback;

pub use cgroup::Cgroup;
pub use cost::{Accounted, Cost, Measured, Pressure, Waiter, elapsed};

use crate::Analysis;
use rank::Rank;

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
    rank: Rank,
    check: fn(&Analysis) -> Option<Finding>,
}

const fn rule(key: &'static str, when: &'static str, rank: Rank, check: fn(&Analysis) -> Option<Finding>) -> Rule {
    Rule { key, when, rank, check }
}

/// All rules; of two equally bad findings the earlier rule comes first.
pub const RULES: &[Rule] = &[
    rule("oom_kill", "the kernel killed processes", Rank::Fixed, oom::check),
    rule("lost_events", "events were lost: statistics are incomplete", Rank::Fixed, lost_events::check),
    rule(
        "invariants",
        "sums over events differ from the kernel's counters although nothing was lost",
        Rank::Fixed,
        invariants::check,
    ),
    rule("cgroup_limit", "a cgroup reclaims because it is at its limit", Rank::Cost, cgroup_limit::check),
    rule("direct_reclaim", "tasks stall in direct reclaim", Rank::Cost, direct_reclaim::check),
    rule("scan_efficiency", "few of the scanned pages are reclaimed", Rank::Cost, efficiency::check),
    rule(
        "refault_thrash",
        "the working set does not fit: evicted pages are read back",
        Rank::CostAndIo,
        refault::check,
    ),
    rule("kswapd_never_sleeps", "kswapd never sleeps", Rank::Cost, kswapd_awake::check),
    rule("writeback_throttling", "reclaim waits for dirty pages or for writeback", Rank::Cost, writeback::check),
    rule("slab_dominates", "shrinking slabs takes most of the time of reclaim", Rank::Cost, slab::check),
    rule("high_order_reclaim", "high-order allocations drive reclaim", Rank::Cost, high_order::check),
    rule("numa_locality", "NUMA hinting faults stay remote", Rank::Fixed, numa_locality::check),
    rule("numa_migration_failures", "NUMA page migrations fail", Rank::Fixed, numa_failures::check),
    rule("numa_convergence", "NUMA page migrations do not settle", Rank::Fixed, numa_convergence::check),
    rule("numa_fallback", "allocations fall back to another node", Rank::Fixed, numa_fallback::check),
    rule(
        "vmalloc_purge",
        "vmalloc purges are long or frequent; above 20 s a soft lockup",
        Rank::Fixed,
        vmalloc_purge::check,
    ),
    rule("swap_storm", "pages go out to swap and come back in at the same time", Rank::CostAndIo, swap_storm::check),
    rule("dirty_throttling", "writers are paused because too much is dirty", Rank::Cost, dirty_throttling::check),
    rule("thp_stalls", "tasks stall in compaction for huge pages and get small ones", Rank::Cost, thp_stalls::check),
    rule("kswapd_lags", "tasks reclaim while kswapd is awake: it does not keep up", Rank::Cost, kswapd_lags::check),
    rule("node_imbalance", "a node reclaims while another has free memory", Rank::Cost, node_imbalance::check),
    rule(
        "cgroup_near_limit",
        "a cgroup is held at its limit, by its counters, where reclaim events are missing",
        Rank::Cost,
        cgroup_near_limit::check,
    ),
    rule(
        "refault_transition",
        "evicted pages came back until the new working set fitted",
        Rank::Fixed,
        refault_transition::check,
    ),
    rule(
        "refault_streaming",
        "evicted pages were read again after they could not have been kept: no action",
        Rank::Fixed,
        refault_streaming::check,
    ),
    rule(
        "refault_cold_start",
        "pages came back that were evicted before the recording: no action",
        Rank::Fixed,
        refault_cold_start::check,
    ),
    rule(
        "proactive_compaction",
        "kcompactd compacts without a request: costs CPU time only",
        Rank::Fixed,
        proactive_compaction::check,
    ),
    rule("limit_unused", "a cgroup never uses half of its limit: advice", Rank::Fixed, limit_unused::check),
];

/// All findings on an input, worst first: those that cost most, and last those that need no action.
pub fn all(a: &Analysis) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule.check(a)).collect();
    rank::causes_first(&mut findings);
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

impl Rule {
    /// What it finds on an input.
    fn check(&self, a: &Analysis) -> Option<Finding> {
        let mut finding = (self.check)(a)?;
        debug_assert!(finding.key == self.key, "{}: {finding:?}", self.key);
        if finding.pressure.is_none() && self.rank != Rank::Fixed {
            finding.pressure = Pressure::of(a, None);
        }
        rank::rank(&mut finding, self.rank);
        if finding.next.is_none() && !finding.is_harmless() {
            finding.next = why::command(a, self.key);
        }
        Some(finding)
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

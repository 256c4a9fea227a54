//! Which finding comes first: what it cost decides.

use super::{Finding, HARMLESS, Measured};

/// Less than this share of the elapsed time waited is noise: a run repeated differs by more.
const NOISE: f64 = 0.005;
/// Severity of a finding whose cost is noise.
const COSTS_NOTHING: u8 = HARMLESS - 5;
/// Largest severity where the recording does not tell the cost: as if a tenth of the time was waited.
const UNKNOWN_COST: u8 = 60;
/// Severities by share of the elapsed time waited, linear in between. A few percent are seldom noticed, at a tenth a
/// service misses its targets, from a half on most of the time is waited.
const BY_SHARE: [(f64, u8); 5] = [(NOISE, 25), (0.02, 40), (0.1, 60), (0.5, 85), (1.0, 92)];

/// What the severity of a rule's finding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// On the time waited: its cost, else pressure on memory.
    Cost,
    /// Likewise, and on pressure on I/O where the finding is about reading pages back.
    CostAndIo,
    /// On what the rule says: nobody waits for it, or its harm is not time.
    Fixed,
}

/// Findings whose cause is another one: the fix is that of the cause. Stalls are measured where the task waits, in direct
/// reclaim, not where the reason is.
const CAUSES: [(&str, &[&str]); 2] = [
    ("swap_storm", &["direct_reclaim", "scan_efficiency", "kswapd_lags", "kswapd_never_sleeps"]),
    ("node_imbalance", &["direct_reclaim", "kswapd_lags", "kswapd_never_sleeps"]),
];

/// Puts a cause before its effects, if it needs action itself. What would help against an effect alone, as larger
/// watermarks where memory is short, may make the cause worse, so it is not said.
pub fn causes_first(findings: &mut [Finding]) {
    for (cause, effects) in CAUSES {
        let worst = findings.iter().filter(|f| effects.contains(&f.key)).map(|f| f.severity).max().unwrap_or(0);
        let found = findings.iter_mut().find(|f| f.key == cause && !f.is_harmless());
        if let Some(found) = found.filter(|found| found.severity > COSTS_NOTHING) {
            found.severity = found.severity.max(worst.saturating_add(1));
            findings.iter_mut().filter(|f| effects.contains(&f.key)).for_each(|f| f.fix = None);
        }
    }
}

/// Sets the severity.
pub fn rank(finding: &mut Finding, rank: Rank) {
    if rank == Rank::Fixed || finding.is_harmless() {
        return;
    }
    finding.severity = match waited(finding, rank) {
        Some(share) if share < NOISE => COSTS_NOTHING.min(finding.severity),
        Some(share) => by_share(share),
        None => finding.severity.min(UNKNOWN_COST),
    };
}

/// Share of the elapsed time that was waited; `None`: the recording does not tell. Pressure of the system may be that
/// of others, so it counts only where events tell no time of the finding's own; and a cost that is a part of the pressure
/// on I/O takes its place.
fn waited(finding: &Finding, rank: Rank) -> Option<f64> {
    let known = finding.cost.as_ref().and_then(|cost| Some((cost.share()?, cost.measured)));
    let of_tasks = known.is_some_and(|(_, measured)| matches!(measured, Measured::Events | Measured::DelayAccounting));
    let pressure = finding.pressure.as_ref().filter(|pressure| !of_tasks || !pressure.of.is_empty());
    let memory = pressure.and_then(|pressure| pressure.memory_some);
    let io = pressure.and_then(|pressure| pressure.io_some).filter(|_| rank == Rank::CostAndIo && known.is_none());
    let cost = known.map(|(share, _)| share);
    [cost, memory, io].into_iter().flatten().max_by(f64::total_cmp)
}

fn by_share(share: f64) -> u8 {
    let mut severity = BY_SHARE[0].1;
    for pair in BY_SHARE.windows(2) {
        let ((from, low), (to, high)) = (pair[0], pair[1]);
        if share > from {
            severity = super::grade(low, high, share, from, to);
        }
    }
    severity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Cost, Pressure};

    fn ranked(waited: Option<u64>, pressure: Option<(&str, f64)>, base: u8) -> u8 {
        let cost = waited.map(|waited| Cost { waited, elapsed: Some(1_000), ..Cost::default() });
        let pressure =
            pressure.map(|(of, share)| Pressure { of: of.into(), memory_some: Some(share), ..Pressure::default() });
        let mut finding = Finding { severity: base, cost, pressure, ..Finding::default() };
        rank(&mut finding, Rank::Cost);
        finding.severity
    }

    #[test]
    fn a_cause_stands_before_its_effects() {
        let of = |key, severity| Finding { key, severity, fix: Some("a fix".into()), ..Finding::default() };
        let mut findings = [of("direct_reclaim", 88), of("swap_storm", 61), of("oom_kill", 95)];
        causes_first(&mut findings);
        assert_eq!(findings.each_ref().map(|f| f.severity), [88, 89, 95]);
        assert_eq!(findings.map(|f| f.fix.is_some()), [false, true, true]);
        let mut slight = [of("direct_reclaim", 88), of("swap_storm", COSTS_NOTHING)];
        causes_first(&mut slight);
        assert_eq!(slight[1].severity, COSTS_NOTHING, "not the cause of so much");
        assert!(slight[0].fix.is_some());
    }

    #[test]
    fn cost_decides() {
        assert_eq!(ranked(Some(3), None, 80), COSTS_NOTHING, "41 ms of 16 s");
        assert_eq!(ranked(Some(3), Some(("", 0.3)), 80), COSTS_NOTHING, "others waited");
        assert_eq!(ranked(Some(3), Some(("/web", 0.3)), 80), 73, "the cgroup waited for something else");
        assert_eq!(ranked(None, Some(("", 0.001)), 80), COSTS_NOTHING);
        assert_eq!(ranked(None, None, 80), UNKNOWN_COST);
        assert_eq!([5, 20, 100, 500, 5_000].map(|ns| ranked(Some(ns), None, 40)), [25, 40, 60, 85, 92]);
    }

    #[test]
    fn a_part_of_the_pressure_on_io_stands_for_all_of_it() {
        let pressure = Pressure { memory_some: Some(0.001), io_some: Some(0.9), ..Pressure::default() };
        let cost = |waited| Cost { waited, elapsed: Some(1_000), measured: Measured::IoPressure, ..Cost::default() };
        let ranked = |cost| {
            let mut finding = Finding { severity: 80, cost, pressure: Some(pressure.clone()), ..Finding::default() };
            rank(&mut finding, Rank::CostAndIo);
            finding.severity
        };
        assert_eq!([Some(cost(20)), Some(cost(500)), None].map(ranked), [40, 85, 91]);
    }

    #[test]
    fn noise_is_harmless_whatever_the_rule_says() {
        assert!(COSTS_NOTHING < HARMLESS && BY_SHARE[0].1 >= HARMLESS);
    }
}

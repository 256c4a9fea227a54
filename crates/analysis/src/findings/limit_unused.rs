//! A limit that is far too large: memory that a cgroup never uses.

use super::cgroup::Cgroup;
use super::words::{percent, size};
use super::{Finding, HARMLESS, elapsed};
use crate::Analysis;

/// Advice only.
const SEVERITY: u8 = HARMLESS / 4;
/// A shorter run has not shown what it needs.
const MIN_ELAPSED: u64 = 60_000_000_000;
/// Percent of the limit that was ever used.
const MAX_PERCENT: f64 = 50.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    elapsed(a).filter(|ns| *ns >= MIN_ELAPSED)?;
    let unused = Cgroup::all(a).filter_map(|cgroup| {
        let (limit, peak) = (cgroup.limit()?, cgroup.peak()?);
        let part = peak as f64 * 100.0 / limit.max(1) as f64;
        (part < MAX_PERCENT).then_some((limit.saturating_sub(peak), limit, peak, part, cgroup))
    });
    let (_, limit, peak, part, cgroup) = unused.max_by_key(|(unused, ..)| *unused)?;
    let sentence = format!(
        "cgroup {} never used more than {} of its limit of {} ({})",
        cgroup.name(),
        size(peak),
        size(limit),
        percent(part)
    );
    Some(Finding {
        key: "limit_unused",
        severity: SEVERITY,
        sentence,
        table: "cgroups",
        fix: Some(format!("to try a smaller limit: {}", cgroup.try_limit(peak / 4 * 5))),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::Kind;

    #[test]
    fn fires_only_after_a_minute() {
        for (seconds, peak, fires) in [(61, 40, true), (61, 60, false), (59, 40, false)] {
            let mut r = Recording::default();
            r.counters("cgroup", "/web", &[("memory.max", 100 << 20, 100 << 20), ("memory.peak", 0, peak << 20)]);
            [0, seconds].iter().for_each(|s| r.event(Kind::MmVmscanWakeupKswapd, s * 1_000_000_000, &[("nid", 0)]));
            let found = check(&r.analysis);
            assert_eq!(found.is_some(), fires, "{seconds} s, {peak} MiB");
            assert!(found.is_none_or(|f| f.is_harmless()));
        }
    }
}

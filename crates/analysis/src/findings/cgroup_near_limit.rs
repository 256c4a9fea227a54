//! A cgroup that is held at its limit, by its own counters: where reclaim events were not recorded.

use super::cgroup::Cgroup;
use super::words::{count, percent, size};
use super::{Cost, Finding, HARMLESS, Pressure, cgroup_limit, grade};
use crate::Analysis;
use crate::tasks::Context;
use mmtwin_event::Kind;

/// Percent of the limit in use, at the end or at most: its tasks may have ended before the recording. The kernel charges in
/// batches, so a cgroup at its limit is a little below.
pub const MIN_PERCENT: f64 = 95.0;
/// Times that the limit was hit or `memory.high` exceeded: fewer are a start-up that reaches it once.
pub const MIN_HITS: u64 = 100;
/// Of the limit in memory that cannot be dropped: from here on hardly any page cache is left.
const TIGHT_PERCENT: f64 = 80.0;

pub fn check(a: &Analysis) -> Option<Finding> {
    if cgroup_limit::check(a).is_some() {
        return None;
    }
    let near = Cgroup::all(a).filter_map(|cgroup| {
        let limit = cgroup.limit().or_else(|| cgroup.high())?;
        let part = cgroup.usage()?.max(cgroup.peak().unwrap_or(0)) as f64 * 100.0 / limit.max(1) as f64;
        let hits = cgroup.hits().unwrap_or(0).max(cgroup.above_high().unwrap_or(0));
        (part >= MIN_PERCENT && hits >= MIN_HITS).then_some((hits, limit, part, cgroup))
    });
    let (hits, limit, part, cgroup) = near.max_by_key(|(hits, ..)| *hits)?;
    let mut sentence = format!(
        "cgroup {} used {} of its limit of {}, which it hit {} times",
        cgroup.name(),
        percent(part),
        size(limit),
        count(hits)
    );
    // What is recorded last tells of the time at the limit only while it is still held there.
    let percent_now = cgroup.usage()? as f64 * 100.0 / limit.max(1) as f64;
    let anon = cgroup.anon().filter(|_| percent_now >= MIN_PERCENT);
    let anon = anon.map(|bytes| (bytes, bytes as f64 * 100.0 / limit.max(1) as f64));
    if let Some((bytes, part)) = anon {
        sentence += &format!("; {} ({}) is anonymous or shared memory", size(bytes), percent(part));
    }
    let tight = anon.map_or(0.0, |(_, part)| part);
    // In a part of a recording, or a short one, there may be too few reclaims for a finding of their own.
    let timed = a.recorded.has(Kind::MmVmscanMemcgReclaimBegin);
    let streams = timed && tight < TIGHT_PERCENT && cgroup_limit::is_harmless_stream(a, Some(cgroup));
    let detail = match tight >= TIGHT_PERCENT {
        true => "an OOM kill is near unless it can swap",
        false if streams => cgroup_limit::STREAMS,
        false => "",
    };
    let larger = || format!("to try a larger limit: {}", cgroup.try_limit(limit.saturating_mul(2)));
    Some(Finding {
        key: "cgroup_near_limit",
        severity: if streams { HARMLESS / 2 } else { grade(30, 60, tight, 0.0, 100.0) },
        sentence,
        detail: detail.into(),
        table: "cgroups",
        cost: timed.then(|| Cost::of_reclaimers(a, |_, process| process.waited(Context::Memcg))),
        pressure: Pressure::of(a, Some(cgroup.key)),
        fix: (!streams).then(larger),
        next: (!timed).then(|| format!("mmtwin record -e 'vmscan:*' --cgroup {} -- COMMAND", cgroup.key)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn recorded_reclaim_is_its_cost() {
        let mut r = Recording::default();
        r.counters(
            "cgroup",
            "/web",
            &[("memory.max", 100 << 20, 100 << 20), ("memory.current", 0, 100 << 20), ("memory.events.max", 3, 903)],
        );
        let recording = check(&r.analysis).unwrap();
        assert_eq!((recording.cost, recording.next.is_some()), (None, true));
        for at in [1_000_000_000, 2_000_000_000] {
            r.event(Kind::MmVmscanMemcgReclaimBegin, at, &[("order", 0)]);
            r.event(Kind::MmVmscanMemcgReclaimEnd, at + 200_000_000, &[("nr_reclaimed", 32)]);
        }
        let found = check(&r.analysis).unwrap();
        assert_eq!((found.cost.unwrap().waited, found.next), (400_000_000, None));
    }

    #[test]
    fn a_stream_of_which_reclaim_was_recorded_is_harmless() {
        // Hardly anything comes back, more than half of it does, or most that is scanned is kept.
        for (refaults, freed, harmless) in [(20, 32, true), (900, 32, false), (20, 3, false)] {
            let mut r = Recording::default();
            let limit = 100 << 20;
            r.counters(
                "cgroup",
                "/web",
                &[("memory.max", limit, limit), ("memory.current", 0, limit), ("memory.failcnt", 0, 4_152)],
            );
            r.vmstat(&[("workingset_refault_file", 0, refaults), ("pgsteal_file", 0, 1_600)]);
            for i in 0..50 {
                let at = i * 200_000_000;
                r.event(Kind::MmVmscanMemcgReclaimBegin, at, &[("order", 0)]);
                let fields = [("nr_scanned", 32), ("nr_reclaimed", freed), ("flags", 10)];
                r.event(Kind::MmVmscanLruShrinkInactive, at + 10, &fields);
                r.event(Kind::MmVmscanMemcgReclaimEnd, at + 1_200_000, &[("nr_reclaimed", freed)]);
            }
            let found = crate::findings::all(&r.analysis);
            let found = found.iter().find(|f| f.key == "cgroup_near_limit").unwrap();
            assert_eq!(
                (found.is_harmless(), found.fix.is_none()),
                (harmless, harmless),
                "{refaults} {freed}: {found:?}"
            );
        }
    }

    fn cgroup(usage: u64, hits: u64) -> Option<Finding> {
        let mut r = Recording::default();
        let bytes = |mib: u64| mib << 20;
        r.counters(
            "cgroup",
            "/web",
            &[
                ("memory.max", bytes(100), bytes(100)),
                ("memory.current", 0, bytes(usage)),
                ("memory.events.max", 3, 3 + hits),
                ("memory.stat.anon", 0, bytes(90)),
            ],
        );
        check(&r.analysis)
    }

    #[test]
    fn fires_at_the_limit() {
        let f = cgroup(99, 1_500).unwrap();
        let expected = "cgroup /web used 99 % of its limit of 100 MiB, which it hit 1,500 times; 90 MiB (90 %) is \
                        anonymous or shared memory";
        assert_eq!((f.sentence.as_str(), f.detail.as_str()), (expected, "an OOM kill is near unless it can swap"));
    }

    #[test]
    fn memory_of_tasks_that_have_ended_is_not_told() {
        let mut r = Recording::default();
        let (limit, peak) = (100 << 20, 100 << 20);
        r.counters(
            "cgroup",
            "/web",
            &[
                ("memory.max", limit, limit),
                ("memory.current", 0, 1 << 20),
                ("memory.peak", 0, peak),
                ("memory.events.max", 0, 500),
                ("memory.stat.anon", 0, 0),
            ],
        );
        let sentence = check(&r.analysis).unwrap().sentence;
        assert_eq!(sentence, "cgroup /web used 100 % of its limit of 100 MiB, which it hit 500 times");
    }

    #[test]
    fn does_not_fire_below_it_or_for_a_start_up() {
        assert_eq!(cgroup(90, 1_500), None);
        assert_eq!(cgroup(99, 20), None);
    }
}

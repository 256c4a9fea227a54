//! A cgroup at its limit: its allocations stall to reclaim the pages of the cgroup.

use super::cgroup::{Cgroup, at_its_limit};
use super::read_back::ReadBack;
use super::refaults::{Cause, NO_WAIT, Refaults};
use super::words::{count, percent, share, time};
use super::{Cost, Finding, HARMLESS, Pressure, elapsed, grade};
use crate::Analysis;
use crate::tasks::Context;
use mmtwin_event::Kind;
use std::collections::BTreeMap;

/// Fewer reclaims that free less than [`MIN_FREED`] are a start-up that reaches the limit once.
const MIN_RECLAIMS: u64 = 100;
/// 25 MiB reclaimed because of the limit: a hundred reclaims where memory is charged in batches of 64 pages.
/// Readahead charges large folios, and one reclaim frees hundreds of pages: a cgroup of 64 MiB that reads 256 MiB on
/// Linux 6.18 reclaims only 94 times, three times its limit in total.
const MIN_FREED: u64 = 6_400;
/// Stalled for half of the recorded time of one task has the highest severity.
const EXTREME_PERCENT: f64 = 50.0;

/// What a stream may spend in reclaim, as percent of the elapsed time, without a loss: programs that read once took as
/// long without a limit, although 2 to 9 % of their time was in reclaim. From a fifth on reclaim itself is slow.
const STREAM_PERCENT: f64 = 20.0;
/// Percent of scanned pages that are freed where nothing of them is in use.
const STREAM_EFFICIENCY: f64 = 90.0;
/// Percent of scanned pages freed below which reclaim has work with pages that pass through: most that it looks at are
/// dirty, or busy, and to scan them again is what those who are charged wait for.
const MIN_STREAM_EFFICIENCY: f64 = 50.0;
/// Of the time of the events the samples must cover so much, to say that nothing of what was evicted came back: a part of
/// a recording may begin or end between two samples.
const MIN_COVERED: f64 = 0.8;
/// Refaults as percent of pages freed where nothing is read again.
const FEW_REFAULTS: f64 = 10.0;
/// The same where nobody waited for what came back: from here on every second page was evicted too early.
const SOME_REFAULTS: f64 = 50.0;

/// What is said where nothing needs to be done.
pub(super) const STREAMS: &str = "it streams: a larger limit would not keep these pages";

pub fn check(a: &Analysis) -> Option<Finding> {
    let cgroup = a.reclaim.context(Context::Memcg);
    // The end events count slab pages too; the batches may not have been recorded.
    let all_freed = cgroup.reclaimed_by_end.max(cgroup.inactive.reclaimed.all);
    if cgroup.begins < MIN_RECLAIMS && all_freed < MIN_FREED {
        return None;
    }
    let stalled = cgroup.durations();
    let (scanned, freed) = (cgroup.inactive.scanned.all, cgroup.inactive.reclaimed.all);
    let reclaims = count(cgroup.begins);
    let hit = at_its_limit(a);
    let of_tasks = most_hits_of_tasks(a);
    let (mut sentence, table) = match &hit {
        Some(hit) => (format!("{} hit its limit: {reclaims} reclaims", hit.words()), "cgroups"),
        None => match &of_tasks {
            Some(path) => {
                (format!("tasks of cgroup {} hit a limit {reclaims} times", a.source.containers.short(path)), "reclaim")
            }
            None => (format!("a cgroup hit its limit {reclaims} times"), "reclaim"),
        },
    };
    if let Some(efficiency) = share(freed as f64, scanned as f64) {
        let (scanned, freed, efficiency) = (count(scanned), count(freed), percent(efficiency));
        sentence += &format!(": {scanned} pages scanned for {freed} freed (efficiency {efficiency})");
    }
    if stalled.count() > 0 {
        sentence += &format!(", total stall time {}", time(stalled.sum as f64));
    }
    if let Some(refaults) = a.counters.vmstat_sum(super::refaults::REFAULTS) {
        sentence += &format!(", {} refaults", count(refaults));
    }
    let mut detail = Vec::new();
    let refaults = Refaults::of(a);
    let cause = refaults.as_ref().map(|refaults| refaults.cause());
    let streams = streams(a, hit);
    match cause {
        Some(Cause::TooLarge) => detail.push("its working set is larger than its limit".to_string()),
        _ if streams => detail.push(STREAMS.to_string()),
        _ => {}
    }
    let free = a.counters.last("vmstat", "", "nr_free_pages");
    if !a.recorded.has(Kind::MmVmscanDirectReclaimBegin) || a.reclaim.context(Context::Direct).begins > 0 {
        detail.extend(free.map(|n| format!("{} pages free at the end", count(n))));
    } else {
        let free = free.map_or(String::new(), |n| format!(" and had {} free pages at the end", count(n)));
        detail.push(format!("the system as a whole did no direct reclaim{free}"));
    }
    // Where no other finding says how large it must be, twice the limit shows whether it matters at all.
    let too_large = refaults.filter(|_| super::refault::check(a).is_some());
    let limit = |hit: Cgroup| {
        let of_hit = too_large.as_ref().filter(|refaults| refaults.cgroup.is_some_and(|cgroup| cgroup.key == hit.key));
        of_hit.and_then(Refaults::limit).or(Some(hit.limit()?.saturating_mul(2)))
    };
    let fix = hit.filter(|_| !streams);
    let fix = fix.and_then(|hit| Some(format!("to try a larger limit: {}", hit.try_limit(limit(hit)?))));
    let next = match of_tasks {
        _ if hit.is_some() => None,
        Some(path) if a.counters.has_change("cgroup", path) => None,
        Some(_) => Some("its counters tell its limit and pressure: `mmtwin record` has them".into()),
        None => Some("record with --cgroup to know which, with its limit and pressure".into()),
    };
    Some(Finding {
        key: "cgroup_limit",
        severity: match is_harmless_stream(a, hit) {
            true => HARMLESS / 2,
            false => grade(50, 85, percent_stalled(a), 0.0, EXTREME_PERCENT),
        },
        sentence,
        detail: detail.join("; "),
        table,
        cost: (stalled.count() > 0).then(|| Cost::of_reclaimers(a, |_, process| process.waited(Context::Memcg))),
        pressure: Pressure::of(a, hit.map(|hit| hit.key)),
        fix,
        next,
    })
}

/// The cgroup whose tasks reclaimed most often because of a limit: its own, or that of one above. `None` if it is not
/// recorded where they are, or they are in none.
fn most_hits_of_tasks(a: &Analysis) -> Option<&str> {
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    for (task, process) in a.reclaimers() {
        let begun = process.begun(Context::Memcg);
        if let Some(path) = a.tasks.cgroup(task).filter(|path| *path != "/" && begun > 0) {
            *hits.entry(path).or_default() += begun;
        }
    }
    hits.into_iter().max_by_key(|(_, begun)| *begun).map(|(path, _)| path)
}

/// Stalled in reclaim of cgroups, summed over tasks, as percent of the elapsed time.
fn percent_stalled(a: &Analysis) -> f64 {
    let stalled = a.reclaim.context(Context::Memcg).durations();
    elapsed(a).and_then(|span| share(stalled.sum as f64, span as f64)).unwrap_or(0.0)
}

/// True if reclaim of cgroups, of which `hit` is at its limit, evicts what passes through, and costs no more than it may.
pub(super) fn is_harmless_stream(a: &Analysis, hit: Option<Cgroup>) -> bool {
    streams(a, hit) && percent_stalled(a) < STREAM_PERCENT
}

/// True if what reclaim of cgroups evicts was used once, by what came back and by what it scanned for it.
fn streams(a: &Analysis, hit: Option<Cgroup>) -> bool {
    let inactive = &a.reclaim.context(Context::Memcg).inactive;
    let (scanned, freed) = (inactive.scanned.all, inactive.reclaimed.all);
    let easily = share(freed as f64, scanned as f64).is_none_or(|efficiency| efficiency >= MIN_STREAM_EFFICIENCY);
    match Refaults::of(a).map(|refaults| refaults.cause()) {
        Some(cause) => cause == Cause::Streaming && easily,
        None => passes_through(a, scanned, freed, hit),
    }
}

/// True if what reclaim evicts was used once: it frees all it scans, and nothing of it comes back, or too little for a
/// cause and nobody waited for it. Pages that were evicted before the recording come back too. Counters of another time
/// than that of the events say nothing of them.
fn passes_through(a: &Analysis, scanned: u64, freed: u64, hit: Option<Cgroup>) -> bool {
    let covered = match (a.counters.seconds("vmstat", ""), a.span.length()) {
        (Some(sampled), Some(span)) => sampled * 1e9 >= span as f64 * MIN_COVERED,
        _ => true,
    };
    let refaults = a.counters.vmstat_sum(super::refaults::REFAULTS).filter(|_| covered);
    let come_back = refaults.and_then(|n| share(n as f64, freed as f64));
    let few = come_back.is_some_and(|p| p < FEW_REFAULTS);
    let little = come_back.is_some_and(|p| p < SOME_REFAULTS) && !waited_beside(a, hit);
    share(freed as f64, scanned as f64) >= Some(STREAM_EFFICIENCY) && (few || little)
}

/// True if tasks waited for memory outside of reclaim too.
fn waited_beside(a: &Analysis, hit: Option<Cgroup>) -> bool {
    let pressure = Pressure::of(a, hit.map(|hit| hit.key));
    ReadBack::of(a, None, pressure.as_ref(), 0).waited >= Some(NO_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;
    use mmtwin_event::{CounterRow, Sink};

    fn reclaims(n: u64) -> Recording {
        reclaims_of(n, 32)
    }

    fn reclaims_of(n: u64, pages: i64) -> Recording {
        let mut r = Recording::default();
        for i in 0..n {
            let t = i * 1_000_000;
            r.event(Kind::MmVmscanMemcgReclaimBegin, t, &[("order", 0)]);
            r.event(
                Kind::MmVmscanLruShrinkInactive,
                t + 10,
                &[("nr_scanned", 2 * pages), ("nr_reclaimed", pages), ("flags", 10)],
            );
            r.event(Kind::MmVmscanMemcgReclaimEnd, t + 500_000, &[("nr_reclaimed", pages)]);
        }
        r
    }

    #[test]
    fn fires_when_reclaim_at_the_limit_goes_on() {
        let mut r = reclaims(200);
        r.vmstat(&[
            ("workingset_refault_file", 0, 12_000),
            ("workingset_activate_file", 0, 2_000),
            ("pgsteal_file", 0, 12_500),
            ("nr_free_pages", 5, 77_000),
        ]);
        let f = check(&r.analysis).unwrap();
        let expected = "a cgroup hit its limit 200 times: 12,800 pages scanned for 6,400 freed (efficiency 50 %), \
                        total stall time 100 ms, 12,000 refaults";
        assert_eq!(f.sentence, expected);
        assert!(f.detail.starts_with("its working set is larger than its limit; "), "{}", f.detail);
        assert_eq!(f.cost.map(|cost| cost.words()).as_deref(), Some("waited 100 ms of 10 s (1.0 %): task"));
    }

    #[test]
    fn names_the_cgroup_if_its_counters_tell() {
        let mut r = reclaims(200);
        r.counters("cgroup", "/db", &[("memory.events.max", 0, 4)]);
        r.counters("cgroup", "/web", &[("memory.events.max", 1, 201)]);
        assert!(check(&r.analysis).unwrap().sentence.starts_with("cgroup /web hit its limit: 200 reclaims: "));
    }

    #[test]
    fn a_limit_that_holds_what_is_in_use_is_proposed_where_that_is_known() {
        // 38,400 pages in a loop; 25,600 fit.
        let mut r = reclaims(200);
        let names = ["workingset_refault_file", "pgsteal_file"].map(String::from);
        for second in 0..=10 {
            let values = [(20_000u64 * second).saturating_sub(12_800), 20_000 * second].map(Some);
            let row =
                CounterRow { source: "vmstat", key: "", at: second * 1_000_000_000, names: &names, values: &values };
            r.analysis.counters(&row);
        }
        let limit = ("memory.max", 100 << 20, 100 << 20);
        r.counters("cgroup", "/a", &[limit, ("memory.events.max", 0, 200)]);
        let fix = |r: &Recording| check(&r.analysis).and_then(|f| f.fix).unwrap();
        assert!(fix(&r).ends_with("memory.max=\"200 MiB\""), "{}", fix(&r));
        r.counters(
            "cgroup",
            "/a",
            &[limit, ("memory.events.max", 0, 200), ("memory.stat.workingset_refault_file", 0, 187_200)],
        );
        assert_eq!(
            Some(fix(&r).replace("to try a larger limit", "a limit that holds it; to try one")),
            crate::findings::refault::check(&r.analysis).and_then(|f| f.fix)
        );
    }

    #[test]
    fn does_not_fire_for_a_start_up() {
        assert_eq!(check(&reclaims(99).analysis), None);
        assert_eq!(check(&reclaims_of(12, 512).analysis), None);
    }

    #[test]
    fn few_reclaims_that_free_much_are_enough() {
        assert!(check(&reclaims_of(13, 512).analysis).unwrap().sentence.starts_with("a cgroup hit its limit 13 times"));
    }

    #[test]
    fn counters_of_a_shorter_time_do_not_tell_what_came_back() {
        for (every, streams) in [(40_000_000, true), (300_000_000, false)] {
            let mut r = Recording::default();
            for i in 0..200 {
                r.event(Kind::MmVmscanMemcgReclaimBegin, i * every, &[("order", 0)]);
                let fields = [("nr_scanned", 32), ("nr_reclaimed", 32), ("flags", 10)];
                r.event(Kind::MmVmscanLruShrinkInactive, i * every + 10, &fields);
                r.event(Kind::MmVmscanMemcgReclaimEnd, i * every + 500_000, &[("nr_reclaimed", 32)]);
            }
            r.vmstat(&[("workingset_refault_file", 0, 5), ("pgsteal_file", 0, 6_400)]);
            assert_eq!(check(&r.analysis).unwrap().detail.contains("it streams"), streams, "{every}");
        }
    }

    #[test]
    fn a_stream_is_harmless_only_where_reclaim_frees_what_it_scans() {
        for (pages, scanned, harmless) in [(100, 110, true), (100, 600, false)] {
            let mut r = Recording::default();
            for i in 0..200 {
                let t = i * 10_000_000;
                r.event(Kind::MmVmscanMemcgReclaimBegin, t, &[("order", 0)]);
                let fields = [("nr_scanned", scanned), ("nr_reclaimed", pages), ("flags", 10)];
                r.event(Kind::MmVmscanLruShrinkInactive, t + 10, &fields);
                r.event(Kind::MmVmscanMemcgReclaimEnd, t + 500_000, &[("nr_reclaimed", pages)]);
            }
            r.vmstat(&[
                ("workingset_refault_file", 0, 12_000),
                ("workingset_activate_file", 0, 5),
                ("pgsteal_file", 0, 20_000),
            ]);
            assert_eq!(check(&r.analysis).unwrap().is_harmless(), harmless, "{scanned}");
        }
    }
}

//! Processes killed by the OOM killer: of a cgroup at its limit, or because memory ran out everywhere.

use super::cgroup::Cgroup;
use super::words::{count, size, time};
use super::{Finding, Pressure};
use crate::Analysis;
use crate::counters::Counters;
use crate::tasks::Context;
use mmtwin_event::Kind;
use std::collections::BTreeSet;

/// No other finding is worse than a killed process.
const SEVERITY: u8 = 97;

/// Whose memory ran out.
enum Scope<'a> {
    /// That of a cgroup.
    Cgroup(Option<Cgroup<'a>>),
    /// That of the system.
    System,
    /// Not recorded.
    Unknown,
}

pub fn check(a: &Analysis) -> Option<Finding> {
    let in_cgroups = || Cgroup::all(a).filter_map(|c| c.oom_kills()).max();
    let killed = killed(a).or_else(in_cgroups).filter(|n| *n > 0)?;
    let scope = scope(a);
    let victims = victims(a, killed);
    let (sentence, fix, of) = match scope {
        Scope::Cgroup(Some(cgroup)) => {
            let fix = cgroup.limit().map(|limit| {
                let more = limit / 2 * 3;
                // How much it would have used is not known: it was stopped.
                format!("less memory in it, or a larger limit; to try half as much again: {}", cgroup.try_limit(more))
            });
            (format!("{} ran out of memory: the OOM killer killed {victims}", cgroup.words()), fix, Some(cgroup.key))
        }
        Scope::Cgroup(None) => {
            let sentence = format!("a cgroup at its limit ran out of memory: the OOM killer killed {victims}");
            (sentence, Some("record with --cgroup to know which, and its limit".into()), None)
        }
        Scope::System => {
            let fix = "a limit for the process that grew, or more memory; mmtwin run --on twin SCENARIO --set \
                       cgroup.NAME.memory.max=SIZE tries a limit";
            (format!("memory ran out: the OOM killer killed {victims}"), Some(fix.into()), None)
        }
        Scope::Unknown => (format!("the OOM killer killed {victims}"), None, None),
    };
    let detail = free(&a.counters);
    let pressure = Pressure::of(a, of);
    Some(Finding {
        key: "oom_kill",
        severity: SEVERITY,
        sentence,
        detail,
        table: "oom",
        pressure,
        fix,
        ..Finding::default()
    })
}

/// Processes that were killed, by events and counters of the system; `None`: neither tells of one. The kernel marks a
/// victim again for each thread of it that finds no memory while it dies, and counts it once. The groups of such threads
/// are not always recorded, so the counter says how many there are at most; without a kill it did not cover the time.
pub(crate) fn killed(a: &Analysis) -> Option<u64> {
    let group = |pid: i32| a.tasks.get(pid).map(|task| task.tgid).filter(|tgid| *tgid != 0).unwrap_or(pid);
    let groups: BTreeSet<i32> = a.oom.victims.iter().map(|victim| group(victim.pid)).collect();
    let marked_again = a.oom.victims.len() - groups.len();
    let processes = Some(a.oom.killed.saturating_sub(marked_again as u64)).filter(|n| *n > 0);
    let counted = a.counters.vmstat("oom_kill").filter(|n| *n > 0);
    processes.into_iter().chain(counted).min()
}

/// The deepest cgroup that counted kills, as a parent counts those of its children. Without one: only reclaim for the
/// whole system checks its zones before it gives up, and an OOM of the system comes after direct reclaim.
fn scope(a: &Analysis) -> Scope<'_> {
    let killing = Cgroup::all(a).filter(|cgroup| cgroup.oom_kills().is_some_and(|n| n > 0));
    if let Some(cgroup) = killing.max_by_key(|cgroup| (cgroup.key.matches('/').count(), cgroup.key.len())) {
        return Scope::Cgroup(Some(cgroup));
    }
    let direct = a.reclaim.context(Context::Direct).begins;
    if a.oom.retry_checks > 0 {
        Scope::System
    } else if a.reclaim.context(Context::Memcg).begins > 0
        && direct == 0
        && a.recorded.has(Kind::MmVmscanDirectReclaimBegin)
    {
        Scope::Cgroup(None)
    } else {
        Scope::Unknown
    }
}

/// `python3-17, 58 MiB anonymous, at 4.4 s` or `3 processes, first python3-17, ...`.
fn victims(a: &Analysis, killed: u64) -> String {
    let processes = match killed {
        1 => "1 process".into(),
        _ => format!("{} processes", count(killed)),
    };
    let Some(victim) = a.oom.victims.first() else { return processes };
    let name = victim.comm.clone().or_else(|| a.tasks.get(victim.pid).map(|task| task.name()));
    let mut words = format!("{}-{}", name.as_deref().unwrap_or("<...>"), victim.pid);
    // Pages of files that it maps may be charged to others: with them it can have more than its cgroup.
    let anonymous = victim.anon_rss.map(|kib| (kib, "anonymous"));
    if let Some((kib, what)) = anonymous.or(victim.rss.map(|kib| (kib, "resident"))) {
        words += &format!(", {} {what}", size(kib.saturating_mul(1024)));
    }
    if let Some(since) = begin(a).and_then(|first| victim.at.checked_sub(first)) {
        words += &format!(", at {}", time(since as f64));
    }
    if killed > 1 { format!("{processes}, first {words}") } else { words }
}

/// When the recording began.
fn begin(a: &Analysis) -> Option<u64> {
    let counted = a.counters.seconds("vmstat", "").and(a.counters.sampled("vmstat", "")).map(|s| s.first_at);
    counted.into_iter().chain(a.span.first).min()
}

/// Free memory of the system at the end.
fn free(counters: &Counters) -> String {
    let free = counters.last("vmstat", "", "nr_free_pages");
    free.map_or(String::new(), |n| format!("the system had {} free at the end", super::words::pages(n)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::Recording;

    #[test]
    fn fires_by_event_or_counter() {
        let mut r = Recording::default();
        r.by(1, b"task", Kind::MmVmscanWriteFolio, 0, &[]);
        r.event(Kind::MarkVictim, 4_000_000_000, &[("pid", 1), ("anon_rss", 4096), ("file_rss", 1024)]);
        assert_eq!(check(&r.analysis).unwrap().sentence, "the OOM killer killed task-1, 4 MiB anonymous, at 4.0 s");
        let mut r = Recording::default();
        r.vmstat(&[("oom_kill", 3, 5)]);
        assert_eq!(check(&r.analysis).unwrap().sentence, "the OOM killer killed 2 processes");
    }

    #[test]
    fn threads_of_a_victim_are_no_victims() {
        let marked = |pids: &[i64]| {
            let mut r = Recording::default();
            r.analysis.tasks.announce(8, 7, b"pool");
            pids.iter().for_each(|pid| r.event(Kind::MarkVictim, *pid as u64, &[("pid", *pid)]));
            r
        };
        let first = |r: &Recording| check(&r.analysis).unwrap().sentence;
        assert_eq!(first(&marked(&[7, 8])), "the OOM killer killed <...>-7, at 0.0 ns", "of one group");
        let mut unknown = marked(&[7, 9]);
        assert!(
            first(&unknown).starts_with("the OOM killer killed 2 processes, first <...>-7"),
            "not known to be of one"
        );
        unknown.vmstat(&[("oom_kill", 3, 4)]);
        assert_eq!(first(&unknown), "the OOM killer killed <...>-7, at 7.0 ns", "by the counter");
        let mut late = marked(&[7]);
        late.vmstat(&[("oom_kill", 3, 3)]);
        assert_eq!(first(&late), "the OOM killer killed <...>-7, at 7.0 ns", "counted before the kill");
    }

    #[test]
    fn names_the_cgroup_and_its_limit() {
        let mut r = Recording::default();
        let limit = 150 << 20;
        let counters = |kills| [("memory.oom_control.oom_kill", 0, kills), ("memory.limit_in_bytes", limit, limit)];
        r.counters("cgroup", "/a", &counters(1));
        r.counters("cgroup", "/a/b", &counters(1));
        r.counters("cgroup", "/c/d/e", &counters(0));
        r.vmstat(&[("nr_free_pages", 5, 1_992_294)]);
        r.event(Kind::MarkVictim, 4_400_000_000, &[("pid", 7), ("anon_rss", 152_000)]);
        let f = check(&r.analysis).unwrap();
        let expected =
            "cgroup /a/b (limit 150 MiB) ran out of memory: the OOM killer killed <...>-7, 148 MiB anonymous, at 4.4 s";
        assert_eq!(f.sentence, expected);
        assert_eq!(f.detail, "the system had 7.6 GiB free at the end");
        assert!(f.fix.is_some_and(|fix| fix.ends_with("--set cgroup./a/b.memory.max=\"225 MiB\"")));
    }

    #[test]
    fn memory_ran_out_only_where_the_system_reclaimed() {
        let mut r = Recording::default();
        r.event(Kind::MmVmscanDirectReclaimBegin, 0, &[("order", 0)]);
        r.event(Kind::ReclaimRetryZone, 5, &[("no_progress_loops", 16), ("wmark_check", 0)]);
        r.event(Kind::MarkVictim, 10, &[("pid", 7)]);
        assert!(check(&r.analysis).unwrap().sentence.starts_with("memory ran out: the OOM killer killed"));
        let mut r = Recording::default();
        let enabled = Some(vec!["mm_vmscan_direct_reclaim_begin".into()]);
        use mmtwin_event::{Sink, Source};
        r.analysis.start(&Source { enabled, ..Source::default() });
        r.event(Kind::MmVmscanMemcgReclaimBegin, 0, &[("order", 0)]);
        r.event(Kind::MarkVictim, 10, &[("pid", 7)]);
        assert!(check(&r.analysis).unwrap().sentence.starts_with("a cgroup at its limit ran out of memory"));
    }

    #[test]
    fn does_not_fire_when_nobody_was_killed() {
        let mut r = Recording::default();
        r.vmstat(&[("oom_kill", 3, 3)]);
        r.counters("cgroup", "/a", &[("memory.events.oom_kill", 3, 3)]);
        assert_eq!(check(&r.analysis), None);
    }
}

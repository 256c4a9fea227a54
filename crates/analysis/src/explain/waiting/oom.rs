//! Why processes were killed: what the allocator tried before, and what was used.

use super::{Chain, Survey, chain, missing};
use crate::explain::Step;
use crate::explain::find::NotFound;
use crate::findings::cgroup::Cgroup;
use crate::findings::oom::killed;
use crate::findings::words::{count, counted, size, time};
use mmtwin_event::Kind;

const EVENTS: [(Kind, &str); 3] = [
    (Kind::MarkVictim, "who was killed, and how much memory it had"),
    (Kind::ReclaimRetryZone, "how often reclaim was tried without progress"),
    (Kind::FinishTaskReaping, "when the memory of the victim was free"),
];

/// Waits of the last second before a kill, which is the time in which reclaim gives up.
const BEFORE: u64 = 1_000_000_000;
/// Kills that are told.
const KILLS: usize = 4;

pub(super) fn explain(survey: &Survey) -> Result<Chain, NotFound> {
    let a = &survey.analysis;
    let marked = a.recorded.value(&[Kind::MarkVictim], a.oom.killed);
    let counted_kills = a.counters.vmstat("oom_kill");
    let of_cgroups: Vec<(Cgroup<'_>, u64)> =
        Cgroup::all(a).filter_map(|cgroup| Some((cgroup, cgroup.oom_kills().filter(|n| *n > 0)?))).collect();
    if marked.or(counted_kills).is_none() && of_cgroups.is_empty() {
        let how = "record oom:mark_victim, or the counters of /proc/vmstat";
        return Err(NotFound::Unknown(format!("whether memory ran out is not known: {how}")));
    }
    if marked.unwrap_or(0) == 0 && counted_kills.unwrap_or(0) == 0 && of_cgroups.is_empty() {
        return Err(NotFound::Unknown("memory did not run out: no process was killed in what was recorded".into()));
    }
    let mut steps = Vec::new();
    for victim in a.oom.victims.iter().take(KILLS) {
        let name = victim.comm.clone().or_else(|| a.tasks.get(victim.pid).map(|task| task.name()));
        let name = name.unwrap_or_else(|| "a process".into());
        let rss = victim.anon_rss.map_or(String::new(), |kib| format!(" with {} of anonymous memory", size(kib << 10)));
        let window = victim.at.saturating_sub(BEFORE)..=victim.at;
        let before: Vec<_> = survey.longest().into_iter().filter(|wait| window.contains(&wait.from)).collect();
        let scanned: u64 = before.iter().map(|wait| wait.scanned).sum();
        let freed: u64 =
            before.iter().map(|wait| if wait.scanned > 0 { wait.freed } else { wait.returned.unwrap_or(0) }).sum();
        if let Some(first) = before.iter().min_by_key(|wait| wait.from) {
            let ns: u64 = before.iter().map(|wait| wait.length()).sum();
            let part = if scanned > 0 { format!("{} scanned for ", size(scanned * 4096)) } else { String::new() };
            let what = format!(
                "in the second before, {} in {}, {}: {part}{} freed",
                counted(before.len() as u64, "wait"),
                first.cause.short(),
                time(ns as f64),
                size(freed * 4096)
            );
            steps.push(Step::new(first.from, Kind::MmVmscanLruShrinkInactive, None, what));
        }
        let at = time(victim.at.saturating_sub(survey.begins()) as f64);
        let what = format!("oom_kill_process: {name}-{} is killed{rss}, {at} after the start", victim.pid);
        steps.push(Step::new(victim.at, Kind::MarkVictim, None, what));
    }
    let mut said = Vec::new();
    let n = killed(a).unwrap_or_else(|| of_cgroups.iter().map(|(_, n)| n).sum());
    said.push(format!("{} killed", counted(n, "process")));
    for (cgroup, kills) in of_cgroups.iter().take(3) {
        let used = cgroup.peak().or(cgroup.usage()).map_or(String::new(), |bytes| format!(", it used {}", size(bytes)));
        let anon = cgroup.anon().map_or(String::new(), |bytes| format!(", {} at the end anonymous", size(bytes)));
        said.push(format!("{} killed {}{used}{anon}", cgroup.words(), count(*kills)));
    }
    if of_cgroups.is_empty() {
        let free = a.counters.series("vmstat", "", "nr_free_pages").iter().filter_map(|(_, value)| *value).min();
        said.extend(free.map(|pages| format!("the least free memory sampled was {}", size(pages * 4096))));
        said.push("no recorded cgroup was at its limit (mmtwin record --cgroup PATH tells which has one)".into());
    }
    if a.recorded.has(Kind::ReclaimRetryZone) {
        let loops =
            a.oom.no_progress.map_or(String::new(), |n| format!(", up to {n} reclaims in a row without progress"));
        said.push(format!(
            "zones were looked at for a retry {} times, {} allowed it{loops}",
            count(a.oom.retry_checks),
            count(a.oom.retry_passed)
        ));
    }
    said.extend((a.oom.reaped > 0).then(|| format!("the reaper freed the memory of {}", count(a.oom.reaped))));
    Ok(chain(
        "out of memory".into(),
        steps,
        missing(survey, &EVENTS).into_iter().collect(),
        format!("{}.", said.join("; ")),
    ))
}

//! The longest waits, and those of one task.

use super::{Chain, Survey, Wait, missing};
use crate::explain::Step;
use crate::explain::find::NotFound;
use crate::explain::gaps::Gap;
use crate::findings::words::{counted, percent, share, time};
use crate::findings::{Pressure, elapsed};
use mmtwin_event::Kind;

/// Waits that are listed.
const LISTED: usize = 8;

/// Events whose begin and end are waits.
const BEGINS: [(Kind, &str); 4] = [
    (Kind::MmVmscanDirectReclaimBegin, "waits in direct reclaim"),
    (Kind::MmVmscanMemcgReclaimBegin, "waits of cgroups at their limits"),
    (Kind::MmCompactionBegin, "waits in compaction"),
    (Kind::BalanceDirtyPages, "pauses of writers"),
];

/// What fills waits.
const INSIDE: [(Kind, &str); 2] = [
    (Kind::MmVmscanLruShrinkInactive, "what the waits scanned and freed"),
    (Kind::MmVmscanThrottled, "how much of it was sleep"),
];

/// True if no event of any wait was recorded.
fn knows_nothing(survey: &Survey) -> bool {
    BEGINS.iter().all(|(kind, _)| !survey.analysis.recorded.has(*kind))
}

/// Why there are no waits.
pub(super) fn nothing(survey: &Survey) -> String {
    let pressure = Pressure::of(&survey.analysis, None).map_or(String::new(), |p| format!("; {}", p.words()));
    match knows_nothing(survey) {
        true => format!(
            "no wait: none of their events was recorded (mmtwin record -e 'vmscan:*,compaction:*,writeback:balance_dirty_pages')\
             {pressure}"
        ),
        false => format!("no wait was seen: no task waited in what was recorded{pressure}"),
    }
}

fn step(survey: &Survey, rank: usize, wait: &Wait) -> Step {
    let kind = match wait.cause {
        super::Cause::Direct => Kind::MmVmscanDirectReclaimBegin,
        super::Cause::Cgroup => Kind::MmVmscanMemcgReclaimBegin,
        super::Cause::Node => Kind::MmVmscanNodeReclaimBegin,
        super::Cause::Compaction => Kind::MmCompactionBegin,
        super::Cause::Dirty => Kind::BalanceDirtyPages,
        super::Cause::Throttled => Kind::MmVmscanThrottled,
    };
    let at = time(wait.from.saturating_sub(survey.begins()) as f64);
    let spent = wait.spent();
    let spent = if spent.is_empty() { spent } else { format!(": {spent}") };
    let order = wait.order.filter(|order| *order > 0).map_or(String::new(), |order| format!(" (order {order})"));
    let what = format!(
        "{rank}. {} waited {} in {}{order}, {at} after the start{spent}",
        wait.who,
        time(wait.length() as f64),
        wait.cause.short()
    );
    Step::new(wait.from, kind, None, what)
}

/// `777 waits took 51 ms (15 % of 339 ms): 51 ms in 777 of reclaim of its cgroup`.
fn sums(survey: &Survey) -> String {
    let (count, ns) = survey.total();
    let elapsed = elapsed(&survey.analysis);
    let part = elapsed.and_then(|e| Some(format!(" ({} of {})", percent(share(ns as f64, e as f64)?), time(e as f64))));
    let causes =
        survey.by_cause.iter().map(|(cause, (n, ns))| format!("{} {}, {}", n, cause.short(), time(*ns as f64)));
    let causes: Vec<String> = causes.collect();
    format!("{} took {}{}: {}", counted(count, "wait"), time(ns as f64), part.unwrap_or_default(), causes.join("; "))
}

fn who(survey: &Survey) -> String {
    let mut names: Vec<(&String, &(u64, u64))> = survey.by_name.iter().collect();
    names.sort_by_key(|(name, (_, ns))| (std::cmp::Reverse(*ns), name.as_str()));
    let shown = names.iter().take(3).map(|(name, (_, ns))| format!("{name} {}", time(*ns as f64)));
    let more = names.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

/// The longest waits, in the order of their length: not in that of time.
pub(super) fn longest(survey: &Survey) -> Chain {
    let waits = survey.longest();
    let title = "the longest waits for memory".to_string();
    let gaps: Vec<Gap> = missing(survey, &[&BEGINS[..], &INSIDE].concat()).into_iter().collect();
    if waits.is_empty() {
        let answer = format!("{}.", capital(&nothing(survey)));
        return Chain { title, steps: sampled(survey), answer, ..Chain::default() };
    }
    let steps = waits.iter().take(LISTED).enumerate().map(|(i, wait)| step(survey, i + 1, wait)).collect();
    let pressure = Pressure::of(&survey.analysis, None).map_or(String::new(), |p| format!(" {}.", p.words()));
    let answer = format!(
        "{}. Who: {}.{pressure} One of them step by step: mmtwin explain {} --stall 1",
        sums(survey),
        who(survey),
        survey.analysis.source.name
    );
    Chain { title, steps, dropped: None, gaps, answer }
}

/// Sampled intervals in which tasks waited most, by pressure stall information of the system and of cgroups.
fn sampled(survey: &Survey) -> Vec<Step> {
    let counters = &survey.analysis.counters;
    let system = counters.keys("psi").into_iter().map(|key| ("psi", key, "memory_some_total"));
    let cgroups = counters.keys("cgroup").into_iter().map(|key| ("cgroup", key, "memory.pressure.some_total"));
    let mut found: Vec<(u64, u64, u64, String)> = Vec::new();
    for (source, key, name) in system.chain(cgroups) {
        let of = if source == "psi" { "the system".to_owned() } else { format!("cgroup {key}") };
        let series = counters.series(source, key, name);
        found.extend(series.windows(2).filter_map(|pair| {
            let us = pair[1].1?.checked_sub(pair[0].1?).filter(|us| *us > 0)?;
            Some((us, pair[0].0, pair[1].0, of.clone()))
        }));
    }
    found.sort_by_key(|(us, from, ..)| (std::cmp::Reverse(*us), *from));
    let step = |(i, (us, from, until, of)): (usize, &(u64, u64, u64, String))| {
        let (waited, length) = (*us as f64 * 1000.0, until.saturating_sub(*from) as f64);
        let part = share(waited, length).map_or(String::new(), |p| format!(" ({})", percent(p)));
        let at = time(from.saturating_sub(survey.begins()) as f64);
        let what = format!(
            "{}. tasks of {of} waited {} of the {} from here{part}, {at} after the start",
            i + 1,
            time(waited),
            time(length)
        );
        let mut step = Step::new(*from, Kind::Other, None, what);
        step.event = "pressure";
        step
    };
    found.iter().take(LISTED).enumerate().map(step).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The longest waits of a task.
pub(super) fn of_task(survey: &Survey, name: &str) -> Result<Chain, NotFound> {
    let analysis = &survey.analysis;
    let known = |pid: i32| analysis.tasks.get(pid).is_some();
    let is_named = analysis.tasks.iter().any(|task| task.name() == name);
    if !is_named && !name.parse().is_ok_and(known) {
        let mut names: Vec<String> = survey.by_name.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(survey.by_name[name].1));
        names.extend(analysis.tasks.iter().map(|task| task.name()).filter(|name| !survey.by_name.contains_key(name)));
        names.dedup();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        super::question::named("task", name, &names)?;
    }
    let waits = survey.of_wanted();
    let title = format!("waits of {name}");
    let gaps: Vec<Gap> = missing(survey, &[&BEGINS[..], &INSIDE].concat()).into_iter().collect();
    if waits.is_empty() {
        let answer = match knows_nothing(survey) {
            true => format!("Whether {name} waited is not known: no event of it was recorded."),
            false => format!("{name} did not wait for memory in what was recorded. {}.", capital(&sums(survey))),
        };
        return Ok(Chain { title, gaps, answer, ..Chain::default() });
    }
    let steps = waits.iter().take(LISTED).enumerate().map(|(i, wait)| step(survey, i + 1, wait)).collect();
    let ns = waits.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.length()));
    let (_, all) = survey.total();
    let part = share(ns as f64, all as f64).map_or(String::new(), |p| format!(", {} of all waiting", percent(p)));
    let of = elapsed(analysis)
        .and_then(|e| share(ns as f64, e as f64))
        .map_or(String::new(), |p| format!(" ({} of the time)", percent(p)));
    let sleeping = waits.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.throttled));
    let slept =
        if sleeping > 0 { format!("; {} of it asleep in throttling", time(sleeping as f64)) } else { String::new() };
    let rank = survey.longest().iter().position(|wait| **wait == *waits[0]);
    let more = rank.map_or(String::new(), |rank| {
        format!(" The longest step by step: mmtwin explain {} --stall {}", analysis.source.name, rank + 1)
    });
    let pids: std::collections::BTreeSet<i32> = waits.iter().map(|wait| wait.pid).collect();
    let cgroup = waits
        .iter()
        .find_map(|wait| survey.cgroups.get(&wait.pid))
        .map_or(String::new(), |of| format!(" Its cgroup: {of}."));
    let tasks = if pids.len() > 1 { format!(" ({} threads)", pids.len()) } else { String::new() };
    let answer = format!(
        "{name}{tasks} waited {} in {}{of}{part}{slept}.{cgroup}{more}",
        time(ns as f64),
        counted(waits.len() as u64, "wait")
    );
    Ok(Chain { title, steps, dropped: None, gaps, answer })
}

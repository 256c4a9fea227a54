//! What happened to a cgroup: its limit, its usage, for how long its tasks waited, what came back, who was killed.

use super::{Chain, Survey, chain, missing};
use crate::explain::Step;
use crate::explain::find::NotFound;
use crate::explain::gaps::Gap;
use crate::findings::Pressure;
use crate::findings::cgroup::Cgroup;
use crate::findings::words::{count, counted, size, time};
use mmtwin_event::Kind;

const EVENTS: [(Kind, &str); 1] = [(Kind::MmVmscanMemcgReclaimBegin, "its tasks' waits at the limit")];

/// Counters by their names in both versions of the interface, with what an interval is told for in which they grew most.
const PEAKS: [(&[&str], &str, &str); 3] = [
    (&["memory.events.max", "memory.failcnt"], "memory.max", "hits of its limit"),
    (&["memory.pressure.some_total"], "memory.pressure", "waited"),
    (
        &[
            "memory.stat.workingset_refault_file",
            "memory.stat.workingset_refault_anon",
            "memory.stat.workingset_refault",
        ],
        "workingset_refault",
        "pages came back",
    ),
];

pub(super) fn explain(survey: &Survey, path: &str) -> Result<Chain, NotFound> {
    let a = &survey.analysis;
    let mut known = a.counters.keys("cgroup");
    known.extend(survey.cgroups.values().map(String::as_str));
    known.sort_unstable();
    known.dedup();
    let wanted = if path == "/" { path } else { path.trim_end_matches('/') };
    if known.is_empty() {
        let how = "record with --cgroup PATH, or a container's cgroup by its glob";
        return Err(NotFound::Unknown(format!("no cgroup `{path}`: the recording has none; {how}")));
    }
    let key = super::question::named("cgroup", wanted, &known)?;
    let cgroup = Cgroup::all(a).find(|cgroup| cgroup.key == key);
    let steps = cgroup.map_or_else(Vec::new, |_| steps(survey, key));
    let mut gaps: Vec<Gap> = missing(survey, &EVENTS).into_iter().collect();
    let mut said = Vec::new();
    match &cgroup {
        Some(cgroup) => {
            let most = a.counters.series("cgroup", key, "memory.current");
            let most = most.into_iter().chain(a.counters.series("cgroup", key, "memory.usage_in_bytes"));
            let most =
                most.filter_map(|(_, value)| value).max().map_or(String::new(), |b| format!(" used up to {}", size(b)));
            said.push(format!("{}{most}", cgroup.words()));
            said.extend(cgroup.hits().map(|n| match n {
                0 => "it never hit its limit".to_string(),
                n => format!("it hit its limit {}", counted(n, "time")),
            }));
            said.extend(
                cgroup
                    .above_high()
                    .filter(|n| *n > 0)
                    .map(|n| format!("it was slowed {} above memory.high", counted(n, "time"))),
            );
            let pressure = Pressure::of(a, Some(key)).filter(|pressure| pressure.of == key);
            match pressure {
                Some(pressure) => said.push(pressure.words()),
                None => gaps.push(Gap {
                    what: "for how long its tasks waited".into(),
                    fix: "pressure of cgroups needs version 2 and CONFIG_PSI; else the events of waits".into(),
                }),
            }
            said.extend(cgroup.refaults().filter(|n| *n > 0).map(|n| format!("{} of its pages came back", count(n))));
            said.extend(cgroup.anon().map(|bytes| format!("{} of it is anonymous", size(bytes))));
            said.extend(cgroup.oom_kills().filter(|n| *n > 0).map(|n| format!("{} killed", counted(n, "process"))));
        }
        None => gaps.push(Gap {
            what: "its limit, usage, pressure and counters".into(),
            fix: format!("mmtwin record --cgroup {key}"),
        }),
    }
    said.extend(waits(survey, key));
    Ok(chain(format!("cgroup {key}"), steps, gaps, format!("{}.", said.join("; "))))
}

/// Waits of its tasks, where it is known which they are.
fn waits(survey: &Survey, key: &str) -> Option<String> {
    let of: Vec<_> =
        survey.longest().into_iter().filter(|wait| survey.cgroups.get(&wait.pid).is_some_and(|of| of == key)).collect();
    let longest = of.first()?;
    let ns = of.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.length()));
    let longest = format!("the longest {} by {}", time(longest.length() as f64), longest.who);
    Some(format!("its tasks waited {} in {}, {longest}", time(ns as f64), counted(of.len() as u64, "wait")))
}

/// Usage when it was first seen, highest and last, and the intervals in which most happened.
fn steps(survey: &Survey, key: &str) -> Vec<Step> {
    let counters = &survey.analysis.counters;
    let mut steps = Vec::new();
    let mut add = |at: u64, event: &'static str, what: String| {
        let mut step = Step::new(at, Kind::Other, None, what);
        step.event = event;
        steps.push(step);
    };
    let usage = ["memory.current", "memory.usage_in_bytes"].map(|name| counters.series("cgroup", key, name));
    let usage: Vec<(u64, u64)> = usage.into_iter().flatten().filter_map(|(at, value)| Some((at, value?))).collect();
    let start = survey.begins();
    let after = |at: u64| time(at.saturating_sub(start) as f64);
    if let (Some(first), Some(last)) = (usage.first(), usage.last()) {
        add(first.0, "memory.current", format!("{} in use", size(first.1)));
        let most = usage.iter().rev().max_by_key(|(_, bytes)| *bytes).unwrap_or(last);
        if most.0 != first.0 && most.0 != last.0 {
            add(
                most.0,
                "memory.current",
                format!("{} in use, the most, {} after the start", size(most.1), after(most.0)),
            );
        }
        if last.0 != first.0 {
            add(last.0, "memory.current", format!("{} in use", size(last.1)));
        }
    }
    for (names, event, what) in PEAKS {
        let series = names.iter().map(|name| counters.series("cgroup", key, name)).find(|series| series.len() > 1);
        let Some(series) = series else { continue };
        let grown =
            series.windows(2).filter_map(|pair| Some((pair[0].0, pair[1].0, pair[1].1?.checked_sub(pair[0].1?)?)));
        let Some((from, until, n)) = grown.max_by_key(|(.., n)| *n).filter(|(.., n)| *n > 0) else { continue };
        let of = time(until.saturating_sub(from) as f64);
        let n = if event == "memory.pressure" { time(n as f64 * 1000.0) } else { count(n) };
        add(from, event, format!("{n} {what} in the {of} from here, the most, {} after the start", after(from)));
    }
    steps
}

//! The cgroups and processes that matter: one line each, at most [`MOST`].

use super::strip::limit;
use super::{Line, Subject, cut, parts_that_fit};
use crate::format::grid::Tone;
use crate::model::{Better, Body, Metric};
use crate::units;
use mmtwin_analysis::Analysis;
use mmtwin_analysis::findings::Cgroup;
use mmtwin_analysis::reclaim::Process;
use mmtwin_analysis::tasks::Task;
use mmtwin_event::Kind;
use std::collections::BTreeMap;

/// Most lines, and most of them of each kind.
const MOST: usize = 7;
const WORK: usize = 3;
const CGROUPS: usize = 3;
const KSWAPD: usize = 2;
/// Longest name: that of a container with the runtime that made it.
const NAME: usize = 24;

/// Who, and what is known of it, most important first.
struct Actor {
    name: String,
    facts: Vec<String>,
}

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let work = first(workload(subject), WORK);
    let cgroups = first(cgroups(subject), CGROUPS);
    let (mut processes, kswapds) = reclaimers(subject);
    let kswapds = first(kswapds, KSWAPD);
    let room = MOST.saturating_sub(work.len() + cgroups.len() + kswapds.len());
    let more = processes.len().saturating_sub(room);
    processes.truncate(room);
    if let Some(last) = processes.last_mut().filter(|_| more > 0) {
        last.facts.insert(1.min(last.facts.len()), format!("and {more} more"));
    }
    let all: Vec<Actor> = work.into_iter().chain(cgroups).chain(processes).chain(kswapds).collect();
    // What has no name is a figure of its own: it takes the whole line.
    let named = all.iter().filter(|actor| !actor.name.is_empty());
    let longest = named.map(|actor| actor.name.chars().count()).max().unwrap_or(0).min(NAME);
    let line = |actor: &Actor| {
        if actor.name.is_empty() {
            return Line::new(Tone::Plain, parts_that_fit(&actor.facts, width));
        }
        let facts = parts_that_fit(&actor.facts, width.saturating_sub(longest + 2));
        Line::new(Tone::Plain, format!("{:<longest$}  {facts}", cut(&actor.name, longest)))
    };
    all.iter().map(line).collect()
}

fn first(mut actors: Vec<Actor>, most: usize) -> Vec<Actor> {
    actors.truncate(most);
    actors
}

/// What the workload of a scenario achieved: its rates, where it has any. What fills memory first says least.
fn workload(subject: &Subject<'_>) -> Vec<Actor> {
    let table = subject.report.tables.iter().find(|table| table.name == "workload");
    let Some(Body::Metric(rows)) = table.map(|table| &table.body) else { return Vec::new() };
    let rates: Vec<&Metric> = rows.iter().filter(|row| row.better == Better::Higher && row.unit == "/s").collect();
    let times: Vec<&Metric> = rows.iter().filter(|row| row.better == Better::Lower && row.unit == "ns").collect();
    let mut chosen = if rates.is_empty() { times } else { rates };
    chosen.sort_by_key(|row| row.label.contains("/populate:"));
    let more = chosen.len().saturating_sub(WORK);
    let mut actors: Vec<Actor> = chosen.into_iter().take(WORK).filter_map(figure).collect();
    if let Some(last) = actors.last_mut().filter(|_| more > 0) {
        last.facts.push(format!("{more} more {}", if more == 1 { "figure" } else { "figures" }));
    }
    actors
}

/// `boxed/0: zipf file: accesses per second` as `boxed/0: zipf file: 14,764 accesses/s`.
fn figure(row: &Metric) -> Option<Actor> {
    let value = row.value.number()?;
    let value = if row.unit == "ns" { units::time(value) } else { units::count(value) };
    let (of, what) = row.label.rsplit_once(": ").unwrap_or(("", &row.label));
    let what = match (what.strip_suffix(" per second"), what.strip_prefix("time ")) {
        (Some(things), _) => format!("{value} {things}/s"),
        (None, Some(per)) => format!("{value} {per}"),
        (None, None) => format!("{what} {value}"),
    };
    let fact = if of.is_empty() { what } else { format!("{of}: {what}") };
    Some(Actor { name: String::new(), facts: vec![fact] })
}

/// Cgroups with counters or with tasks that waited: those with most waits, pressure and hits of their limit first.
fn cgroups(subject: &Subject<'_>) -> Vec<Actor> {
    let analysis = subject.analysis;
    let counters = &analysis.counters;
    let waits = analysis.waited_by_cgroup();
    let elapsed = mmtwin_analysis::findings::elapsed(analysis).map(|ns| ns as f64);
    let mut all: Vec<(f64, u64, u64, Actor)> = Vec::new();
    for cgroup in Cgroup::all(analysis) {
        let key = cgroup.key;
        let series = ["memory.current", "memory.usage_in_bytes"].map(|name| counters.series("cgroup", key, name));
        // What is between two samples is in the peak only.
        let usage = series.iter().flatten().filter_map(|(_, value)| *value).max().max(cgroup.new_peak());
        let mut facts = Vec::new();
        if let Some(usage) = usage {
            let of = limit(subject, key).map_or(String::new(), |limit| format!(" of {}", units::bytes(limit)));
            facts.push(format!("up to {}{of}", units::bytes(usage as f64)));
        }
        let kills = cgroup.oom_kills().unwrap_or(0);
        facts.extend((kills > 0).then(|| units::counted(kills, "OOM kill")));
        let waited = waits.get(key).map_or(0.0, |ns| *ns as f64);
        let of_time = elapsed.map(|elapsed| waited / elapsed);
        facts.extend((waited > 0.0).then(|| match of_time {
            Some(share) => format!("waited {} ({})", units::time(waited), units::percent(share * 100.0)),
            None => format!("waited {}", units::time(waited)),
        }));
        let share = cgroup.pressure("some");
        let some = share.map(|share| share * 100.0).filter(|share| *share > 0.0);
        facts.extend(some.map(|share| format!("PSI some {}", units::percent(share))));
        let hits = cgroup.hits().unwrap_or(0);
        facts.extend((hits > 0).then(|| format!("limit hit {}", units::counted(hits, "time"))));
        let pages = |pages: Option<u64>, what: &str| {
            pages.filter(|pages| *pages > 0).map(|pages| format!("{} {what}", units::pages(pages as f64)))
        };
        let [_, reclaimed] = cgroup.reclaim();
        facts.extend(pages(cgroup.refaults(), "refaulted"));
        facts.extend(pages(reclaimed, "reclaimed"));
        if !facts.is_empty() {
            let waited = share.unwrap_or(0.0).max(of_time.unwrap_or(0.0));
            all.push((waited, kills + hits, usage.unwrap_or(0), Actor { name: cgroup.name(), facts }));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((b.1, b.2).cmp(&(a.1, a.2))));
    all.into_iter().map(|(.., actor)| actor).collect()
}

/// Tasks of one name.
#[derive(Default)]
struct Tasks {
    pid: i32,
    tasks: u64,
    reclaims: u64,
    stalled: u128,
    awake: u128,
    reclaimed: u64,
    scanned: u64,
}

/// Those that stalled in reclaim, longest first, and the kswapds.
fn reclaimers(subject: &Subject<'_>) -> (Vec<Actor>, Vec<Actor>) {
    let analysis = subject.analysis;
    let (mut tasks, mut kswapds): (BTreeMap<String, Tasks>, BTreeMap<String, Tasks>) = Default::default();
    for (task, process) in analysis.reclaimers() {
        if task.kswapd || process.kswapd.is_some() {
            add(analysis, kswapds.entry(task.name()).or_default(), task, process);
        } else if process.begins.iter().any(|n| *n > 0) || process.reclaimed.all > 0 {
            add(analysis, tasks.entry(task.name()).or_default(), task, process);
        }
    }
    // That of findings: the trace may be shorter than the command.
    let elapsed = mmtwin_analysis::findings::elapsed(analysis).map(|ns| ns as f64);
    let share = |ns: u128| match elapsed {
        Some(elapsed) => format!("{} ({})", units::time(ns as f64), units::percent(ns as f64 * 100.0 / elapsed)),
        None => units::time(ns as f64),
    };
    let known = analysis.recorded.has(Kind::MmVmscanLruShrinkInactive);
    let pages = |of: &Tasks| {
        let figures = [(of.reclaimed, "reclaimed"), (of.scanned, "scanned")];
        let text = |(pages, what): (u64, &str)| format!("{} {what}", units::pages(pages as f64));
        figures.into_iter().filter(|_| known && of.scanned > 0).map(text).collect::<Vec<_>>()
    };
    let mut tasks: Vec<(String, Tasks)> = tasks.into_iter().collect();
    tasks.sort_by(|(a, x), (b, y)| (y.stalled, y.reclaimed).cmp(&(x.stalled, x.reclaimed)).then(a.cmp(b)));
    let stalled = |(name, of): (String, Tasks)| {
        let mut facts = Vec::new();
        if of.stalled > 0 {
            facts.push(format!("stalled {} in {}", share(of.stalled), units::counted(of.reclaims, "reclaim")));
        } else if of.reclaims > 0 {
            facts.push(units::counted(of.reclaims, "reclaim"));
        }
        facts.extend(pages(&of));
        let name = if of.tasks > 1 { format!("{name} ({} tasks)", of.tasks) } else { format!("{name} ({})", of.pid) };
        Actor { name, facts }
    };
    let mut kswapds: Vec<(String, Tasks)> =
        kswapds.into_iter().filter(|(_, of)| of.awake > 0 || of.scanned > 0).collect();
    kswapds.sort_by(|(a, x), (b, y)| (y.awake, y.reclaimed).cmp(&(x.awake, x.reclaimed)).then(a.cmp(b)));
    let awake = |(name, of): (String, Tasks)| {
        let mut facts = Vec::new();
        facts.extend((of.awake > 0).then(|| format!("awake {}", share(of.awake))));
        facts.extend(pages(&of));
        Actor { name, facts }
    };
    (tasks.into_iter().map(stalled).collect(), kswapds.into_iter().map(awake).collect())
}

fn add(analysis: &Analysis, sum: &mut Tasks, task: &Task, process: &Process) {
    sum.pid = task.pid;
    sum.tasks += 1;
    sum.reclaims += process.begins.iter().sum::<u64>();
    sum.stalled += process.stalls.sum;
    sum.awake += process.kswapd.as_ref().map_or(0, |kswapd| kswapd.awake_within(analysis.span));
    sum.reclaimed = sum.reclaimed.saturating_add(process.reclaimed.all);
    sum.scanned = sum.scanned.saturating_add(process.scanned.all);
}

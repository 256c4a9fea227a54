//! The wait that is followed, with what the first reading knows of it: tasks that waited at the same time, the counters
//! around it, events that are missing.

use super::{Cause, Survey, Wait, missing};
use crate::explain::Step;
use crate::explain::gaps::{self, Gap};
use crate::findings::words::{count, counted, pages, percent, share, time};
use mmtwin_event::Kind;

/// A wait, and what is known of its surroundings.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) wait: Wait,
    pub(super) title: String,
    pub(super) answer: String,
    pub(super) around: Vec<Step>,
    pub(super) gaps: Vec<Gap>,
}

impl Target {
    pub(super) fn new(survey: &Survey, rank: usize, wait: Wait) -> Target {
        let (all, ns) = survey.total();
        let after = time(wait.from.saturating_sub(survey.begins()) as f64);
        let title = format!("{} waited {}, {after} after the start", wait.who, time(wait.length() as f64));
        let meanwhile: Vec<&Wait> = survey
            .longest()
            .into_iter()
            .filter(|other| other.pid != wait.pid && other.from < wait.until && other.until > wait.from)
            .collect();
        let mut said = vec![format!("{} waited {} {}", wait.who, time(wait.length() as f64), wait.cause.words())];
        said.extend(survey.cgroups.get(&wait.pid).map(|cgroup| format!("it is in cgroup {cgroup}")));
        said.extend(Some(wait.spent()).filter(|spent| !spent.is_empty()).map(|spent| format!("it {spent}")));
        if let Some(first) = meanwhile.first() {
            let others = meanwhile.len() as u64;
            said.push(format!("{} waited at the same time, {} the longest", counted(others, "other task"), first.who));
        }
        let part = share(wait.length() as f64, ns as f64).map_or(String::new(), percent);
        said.push(format!("the {}longest of {}, {part} of all waiting", ordinal(rank), counted(all, "wait")));
        let inside: &[(Kind, &str)] = match wait.cause {
            Cause::Direct | Cause::Cgroup | Cause::Node => &INSIDE,
            Cause::Compaction => &COMPACTION,
            Cause::Dirty | Cause::Throttled => &DIRTY,
        };
        let gaps = missing(survey, inside).into_iter().chain(gaps::lost(&survey.analysis.losses)).collect();
        Target { around: around(survey, &wait), wait, title, answer: format!("{}.", said.join("; ")), gaps }
    }
}

/// Events that fill a reclaim.
const INSIDE: [(Kind, &str); 6] = [
    (Kind::MmVmscanLruShrinkInactive, "which lists were scanned, and what kept pages"),
    (Kind::MmVmscanThrottled, "sleep for writeback, progress or congestion"),
    (Kind::MmShrinkSlabStart, "time in slab shrinkers"),
    (Kind::MmVmscanWriteFolio, "pages that reclaim wrote"),
    (Kind::MmVmscanWakeupKswapd, "whether kswapd was asked"),
    (Kind::MmPageAlloc, "the allocation that waited"),
];
const COMPACTION: [(Kind, &str); 2] = [
    (Kind::MmCompactionMigratepages, "pages that compaction moved"),
    (Kind::MmCompactionTryToCompactPages, "the order that was asked for"),
];
const DIRTY: [(Kind, &str); 2] =
    [(Kind::GlobalDirtyState, "dirty pages and their limits"), (Kind::WritebackStart, "what was written meanwhile")];

fn ordinal(n: usize) -> String {
    match (n % 10, n % 100) {
        _ if n == 1 => String::new(),
        (2, 2 | 20..) => format!("{n}nd "),
        (3, 3 | 20..) => format!("{n}rd "),
        (1, 20..) => format!("{n}st "),
        _ => format!("{n}th "),
    }
}

/// What counters say of the interval between the samples around a wait.
fn around(survey: &Survey, wait: &Wait) -> Vec<Step> {
    let counters = &survey.analysis.counters;
    if survey.analysis.source.arm == "import" {
        // Saved counters have a clock of their own.
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut at = None;
    let mut grown = |source: &str, name: &str| -> Option<(u64, u64)> {
        let series = counters.series(source, "", name);
        let pair = series.windows(2).find(|pair| pair[0].0 <= wait.from && wait.from < pair[1].0)?;
        at = Some(at.unwrap_or(pair[0].0));
        Some((pair[1].1?.checked_sub(pair[0].1?)?, pair[1].0 - pair[0].0))
    };
    if let Some((us, ns)) = grown("psi", "memory_some_total") {
        parts.push(format!("PSI memory some {}", percent(us as f64 * 1e5 / ns as f64)));
    }
    if let Some((us, ns)) = grown("psi", "io_some_total") {
        parts.push(format!("io some {}", percent(us as f64 * 1e5 / ns as f64)));
    }
    let files = grown("vmstat", "workingset_refault_file").map(|(n, _)| n);
    let anon = grown("vmstat", "workingset_refault_anon").map(|(n, _)| n);
    if let Some(n) = files.into_iter().chain(anon).reduce(u64::saturating_add) {
        parts.push(format!("{} refaults", count(n)));
    }
    let swapped = grown("vmstat", "pswpin").into_iter().chain(grown("vmstat", "pswpout")).map(|(n, _)| n).sum::<u64>();
    parts.extend((swapped > 0).then(|| format!("{} went to and from swap", pages(swapped))));
    let free = counters.series("vmstat", "", "nr_free_pages");
    let free = free.iter().rev().find(|(at, _)| *at <= wait.from).and_then(|(_, value)| *value);
    parts.extend(free.map(|n| format!("{} free at its start", pages(n))));
    let Some(at) = at.filter(|_| !parts.is_empty()) else { return Vec::new() };
    let mut step =
        Step::new(at.min(wait.from), Kind::Other, None, format!("in the samples around it: {}", parts.join(", ")));
    step.event = "counters";
    vec![step]
}

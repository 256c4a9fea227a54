//! Why pages came back: who evicted them, how long they were away, who read them again.

use super::{Chain, Survey, chain, missing};
use crate::explain::Step;
use crate::explain::find::NotFound;
use crate::explain::gaps::Gap;
use crate::findings::refaults::{Cause, REFAULTS, Refaults};
use crate::findings::words::{count, counted, pages, percent, share, time};
use mmtwin_event::Kind;
use std::collections::BTreeMap;

const EVENTS: [(Kind, &str); 2] = [
    (Kind::MmFilemapDeleteFromPageCache, "which pages were evicted, and by whom"),
    (Kind::MmFilemapAddToPageCache, "which pages came back, and for whom"),
];

/// Pages that are followed on the screen.
const EXAMPLES: usize = 3;

fn most(sums: &BTreeMap<String, u64>, all: u64) -> String {
    let mut sums: Vec<(&String, &u64)> = sums.iter().collect();
    sums.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), name.as_str()));
    let part = |n: u64| share(n as f64, all as f64).map_or(String::new(), percent);
    sums.iter().take(3).map(|(name, n)| format!("{name} {}", part(**n))).collect::<Vec<_>>().join(", ")
}

/// Device as the kernel prints it.
fn file(dev: u64, ino: u64) -> String {
    format!("inode {ino:#x} of device {}:{}", dev >> 20, dev & 0xf_ffff)
}

pub(super) fn explain(survey: &Survey) -> Result<Chain, NotFound> {
    let a = &survey.analysis;
    let counted_refaults = a.counters.vmstat_sum(REFAULTS);
    let returns = &survey.returns;
    if counted_refaults.is_none() && !a.recorded.has(Kind::MmFilemapAddToPageCache) {
        let how = "record filemap:mm_filemap_*, or the counters of /proc/vmstat";
        return Err(NotFound::Unknown(format!("whether pages came back is not known: {how}")));
    }
    if counted_refaults.unwrap_or(0) == 0 && returns.count == 0 {
        return Err(NotFound::Unknown("no evicted page came back in what was recorded".into()));
    }
    let mut steps = Vec::new();
    // The shortest, a usual and the longest time away.
    let mut examples: Vec<_> = returns.examples.iter().collect();
    examples.sort_by_key(|one| one.came.saturating_sub(one.left));
    let chosen = [0, examples.len() / 2, examples.len().saturating_sub(1)];
    let mut chosen: Vec<usize> = chosen.into_iter().filter(|i| *i < examples.len()).take(EXAMPLES).collect();
    chosen.dedup();
    for one in chosen.into_iter().map(|i| examples[i]) {
        let (left, came) = (one.left, one.came);
        let why = one.cause.map_or(String::new(), |cause| format!(" in {}", cause.short()));
        let what = format!("page {:#x} of {} leaves: {}{why}", one.page, file(one.dev, one.ino), one.evictor);
        steps.push(Step::new(left, Kind::MmFilemapDeleteFromPageCache, None, what));
        let what = format!(
            "page {:#x} comes back for {} after {}",
            one.page,
            one.reader,
            time(came.saturating_sub(left) as f64)
        );
        steps.push(Step::new(came, Kind::MmFilemapAddToPageCache, None, what));
    }
    steps.extend(busiest(survey));
    let mut said = Vec::new();
    if let Some(of) = Refaults::of(a) {
        let cause = match of.cause() {
            Cause::Streaming => "the data is passed over, no memory would keep it",
            Cause::TooLarge => "what is in use does not fit",
            Cause::Transition => "what is in use changed, and the new fits",
            Cause::ColdStart => "they were evicted before the recording",
            Cause::Unknown => "for how long they were away is not known, a longer recording tells",
        };
        said.push(format!("{} {} came back: {cause}", count(of.total), of.whose()));
        said.push(of.detail());
        let set = of.working_set().filter(|_| of.cause() == Cause::TooLarge);
        said.extend(set.map(|set| format!("The working set is about {}", pages(set))));
        said.extend(of.pressure.as_ref().map(|pressure| pressure.words()));
    } else if let Some(n) = counted_refaults {
        said.push(format!("{} evicted pages came back, too few to cost much", count(n)));
    }
    if returns.count > 0 {
        said.push(format!(
            "Seen to leave and to come back: {}; evicted by {}; read again by {}",
            counted(returns.count, "folio"),
            most(&returns.by_evictor, returns.count),
            most(&returns.by_reader, returns.count)
        ));
        let top = returns.by_file.iter().max_by_key(|(_, n)| **n);
        said.extend(top.map(|((dev, ino), n)| format!("Most are of {}: {}", file(*dev, *ino), count(*n))));
    }
    said.retain(|part| !part.is_empty());
    let mut gaps: Vec<Gap> = missing(survey, &EVENTS).into_iter().collect();
    if returns.count == 0 && gaps.is_empty() {
        let fix = "anonymous pages have no event: /proc/PID/smaps, or the counters of cgroups (--cgroup)".into();
        gaps.push(Gap { what: "which anonymous pages came back".into(), fix });
    }
    Ok(chain("refaults".into(), steps, gaps, format!("{}.", said.join(". "))))
}

/// The sampled interval with most refaults, with what was evicted in it.
fn busiest(survey: &Survey) -> Option<Step> {
    let counters = &survey.analysis.counters;
    let sum = |names: &[&str]| {
        let mut total: BTreeMap<u64, u64> = BTreeMap::new();
        for name in names {
            for (at, value) in counters.series("vmstat", "", name) {
                *total.entry(at).or_default() += value.unwrap_or(0);
            }
        }
        total.into_iter().collect::<Vec<_>>()
    };
    let (back, out) = (sum(REFAULTS), sum(&["pgsteal_anon", "pgsteal_file"]));
    let grown = |points: &[(u64, u64)], i: usize| Some(points.get(i + 1)?.1.saturating_sub(points.get(i)?.1));
    let most = (0..back.len().checked_sub(1)?).max_by_key(|i| grown(&back, *i).unwrap_or(0))?;
    let (from, until) = (back[most].0, back[most + 1].0);
    let n = grown(&back, most).filter(|n| *n > 0)?;
    let evicted = grown(&out, most).map_or(String::new(), |n| format!(" while {} were evicted", pages(n)));
    let what = format!("most came back in the {} from here: {}{evicted}", time((until - from) as f64), pages(n));
    let mut step = Step::new(from, Kind::Other, None, what);
    step.event = "workingset_refault";
    Some(step)
}

//! Why evicted pages came back: what all rules of refaults judge by.
//!
//! A refault alone says that a page was evicted and is used again. What it means depends on how long it was away
//! (refault distance: pages evicted in between), on whether the kernel counted it to the working set (activation), and
//! on whether somebody waited. Events of the page cache tell the distance; they are not recorded unless asked for.
//! Otherwise it follows from two counters over time: if pages come back in the order in which they left, those that come
//! back now left when as many had been evicted as have come back so far, and what was evicted since is their distance.

use super::Pressure;
use super::cgroup::{Cgroup, at_its_limit, with_most_refaults};
use super::part::Part;
use super::read_back::{ReadBack, reading_in};
use super::scope::Scope;
use super::words::{count, pages, percent, share, time};
use crate::Analysis;
use crate::counters::Counters;

/// The refault counters; before 5.9 one for both kinds of pages.
pub const REFAULTS: &[&str] = &["workingset_refault_anon", "workingset_refault_file", "workingset_refault"];
const ACTIVATED: &[&str] = &["workingset_activate_anon", "workingset_activate_file", "workingset_activate"];
const FREED: &[&str] = &["pgsteal_anon", "pgsteal_file"];
/// The same over time; of a cgroup it has no kinds.
const EVICTED: &[&str] = &["pgsteal_anon", "pgsteal_file", "pgsteal"];
/// Fewer refaults than this (40 MiB) cost little whatever their share, unless somebody was seen to wait for them, in the
/// whole recording or in the part of it in which most of them happened.
pub const MIN_REFAULTS: u64 = 10_000;
const MIN_REFAULTS_WAITED: u64 = 1_000;
/// Followed returns of pages that an average needs.
const MIN_RETURNED: u64 = 100;
/// Intervals with refaults that a distance needs.
const MIN_INTERVALS: usize = 3;
/// A distance of so many times the memory: no limit that anybody would set keeps such pages.
const FAR: f64 = 8.0;
/// A distance of so many times the memory, each page came back at most [`FEW_RETURNS`] times, and nobody waited for the
/// disk because of it: a second pass over data, not a set in use.
const RATHER_FAR: f64 = 2.0;
const FEW_RETURNS: f64 = 2.5;
/// Waited for pages that come back, as a share of the elapsed time: below, nobody did.
pub const NO_WAIT: f64 = 0.005;
/// From here on somebody did, however far the pages came from.
pub const WAIT: f64 = 0.05;
/// Percent of refaults that the kernel activated: below, hardly any page was of the working set that it kept.
const HARDLY_ACTIVATED: f64 = 1.0;
/// From here on the pages that came back were in use before.
const ACTIVATED_PERCENT: f64 = 25.0;
/// Percent of refaults in the last fifth of the time: below, they have ended. Steady refaults give 20.
const ENDED_PERCENT: f64 = 5.0;
/// The same in the last tenth of the time, and of evictions there: where these have ended too, less time is enough, as
/// what still comes back is the rest of a set that fits. Steady ones give 10.
const JUST_ENDED_PERCENT: f64 = 2.0;
const EVICTIONS_ENDED_PERCENT: f64 = 1.0;
/// Refaults of a transition for each page that fits: a new working set is read back once, and the old one once when it
/// is used again. With more, pages returned again and again, and it only ended.
const MAX_RETURNS: u64 = 2;
/// Refaults for each page that was read for the first time: from here on, the same pages were read repeatedly. A second
/// pass over a stream gives one.
const REPEATS: u64 = 3;
/// Percent of refaults that are anonymous: from here on, tasks waited for swap, which no read-ahead hides.
const ANON_PERCENT: f64 = 25.0;

/// Why pages came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Data is passed over; its pages come back after more was evicted than memory could ever keep.
    Streaming,
    /// What is in use does not fit.
    TooLarge,
    /// What is in use changed; the new working set fits.
    Transition,
    /// The pages were evicted before the recording.
    ColdStart,
    /// Somebody waited for them, and for how long they were away is not known: a part of a recording, or a short one.
    Unknown,
}

/// What is known of refaults.
#[derive(Clone, Debug)]
pub struct Refaults<'a> {
    /// All.
    pub total: u64,
    /// Those of anonymous pages and of files, where the kernel counts them apart.
    pub kinds: Option<(u64, u64)>,
    /// Pages evicted in the same time.
    pub freed: u64,
    /// Refaults that the kernel activated.
    pub activated: Option<u64>,
    /// Major faults.
    pub faults: Option<u64>,
    /// The cgroup that had most of them.
    pub cgroup: Option<Cgroup<'a>>,
    /// Pages that memory, or the limit of the cgroup, can hold; `None`: only cgroups reclaimed, and which is not known.
    pub capacity: Option<u64>,
    /// Pages evicted between a page's eviction and its return, on average.
    pub distance: Option<u64>,
    /// Nanoseconds between a page's eviction and its return, on average.
    pub away: Option<u64>,
    /// Percent of them in the last fifth of the time.
    pub late: Option<f64>,
    /// The same in the last tenth.
    pub latest: Option<f64>,
    /// Percent of all evictions in the last tenth of the time.
    pub latest_evictions: Option<f64>,
    /// Pressure of the cgroup, else of the system.
    pub pressure: Option<Pressure>,
    /// Shares of the elapsed time waited for them. A page that is not activated is waited for as I/O only.
    pub read_back: ReadBack,
    /// Most of what was read came in by a major fault for each page: at random, as read-ahead brings a stream in.
    pub one_by_one: bool,
}

impl<'a> Refaults<'a> {
    /// What counters tell; `None` without refaults worth a word or without the number of evicted pages. Where those of the
    /// machine are not there, of the cgroup that had most.
    pub fn of(a: &'a Analysis) -> Option<Refaults<'a>> {
        let counters = &a.counters;
        if !counters.has_change("vmstat", "") {
            let (_, cgroup) = with_most_refaults(a)?;
            let scope = Scope::cgroup(counters, &cgroup);
            // Version 1 does not count what is evicted.
            let found = Refaults::in_scope(a, scope, scope.grew("pgsteal")?, Some(cgroup), None)?;
            return Some(found).filter(|found| found.activated.is_some() || found.distance.is_some());
        }
        let total = counters.vmstat_sum(REFAULTS)?;
        let most = with_most_refaults(a).filter(|(n, _)| n.saturating_mul(2) >= total).map(|(_, cgroup)| cgroup);
        let only_cgroups = reclaims_for_cgroups_only(a);
        let cgroup = most.or_else(|| at_its_limit(a).filter(|_| only_cgroups));
        let memory = memory(counters).filter(|_| !only_cgroups);
        Refaults::in_scope(a, Scope::machine(counters), freed(a)?, cgroup, memory)
    }

    /// The same of some counters. `memory` is what can be on the lists where there is no limit.
    fn in_scope(
        a: &'a Analysis,
        scope: Scope<'a>,
        freed: u64,
        cgroup: Option<Cgroup<'a>>,
        memory: Option<u64>,
    ) -> Option<Refaults<'a>> {
        let total = scope.sum(REFAULTS).filter(|n| *n >= MIN_REFAULTS_WAITED)?;
        let limit = cgroup.and_then(|cgroup| cgroup.limit()).map(|bytes| bytes / 4096);
        let pressure = Pressure::of(a, cgroup.map(|cgroup| cgroup.key));
        // The kernel counts what is read in KiB.
        let read = a.counters.vmstat("pgpgin").map(|kib| kib / 4);
        let (refaulted, evicted) = (scope.over_time(REFAULTS), scope.over_time(EVICTED));
        let capacity = limit.or(memory);
        // Where pages of files were seen to leave and to return, that is exact.
        let seen = a.filemap.distance().filter(|_| a.filemap.returned >= MIN_RETURNED);
        let first_reads = read.map(|pages| pages.saturating_sub(total));
        let beyond = first_reads.zip(capacity).and_then(|(first, fits)| read_repeatedly(total, first, fits));
        // Without a capacity the averages do not ask whether pages were evicted before the recording: these were not.
        let averages = || distance(&refaulted, &evicted, capacity.filter(|_| beyond.is_none()));
        let (distance, away) = match seen.or_else(averages) {
            Some((distance, away)) => (Some(distance), Some(away).filter(|away| *away > 0)),
            None => (beyond, None),
        };
        let faults = scope.grew("pgmajfault");
        let found = Refaults {
            total,
            kinds: scope.grew("workingset_refault_anon").zip(scope.grew("workingset_refault_file")),
            freed,
            activated: scope.sum(ACTIVATED),
            faults,
            cgroup,
            capacity,
            distance,
            away,
            late: late(&refaulted, 5),
            latest: late(&refaulted, 10),
            latest_evictions: late(&evicted, 10),
            read_back: ReadBack::of(a, cgroup.map(|cgroup| cgroup.key), pressure.as_ref(), total),
            one_by_one: faults.zip(read).is_some_and(|(faults, read)| faults.saturating_mul(2) >= read.max(1)),
            pressure,
        };
        let ReadBack { waited, reading, .. } = found.read_back;
        let waited = waited >= Some(WAIT) || reading >= Some(WAIT);
        let waited_then = || {
            let of_system = found.pressure.as_ref().is_some_and(|pressure| pressure.of.is_empty());
            let part = Part::of(&refaulted).filter(|_| of_system && reading >= Some(NO_WAIT));
            part.and_then(|part| reading_in(a, part, REFAULTS)) >= Some(WAIT)
        };
        let counts = found.total >= MIN_REFAULTS || waited || waited_then();
        counts.then_some(found)
    }

    /// Why they came back.
    pub fn cause(&self) -> Cause {
        if self.freed.saturating_mul(2) < self.total {
            return Cause::ColdStart;
        }
        let activated = self.activated.and_then(|n| share(n as f64, self.total as f64));
        if self.ended() && activated >= Some(ACTIVATED_PERCENT) {
            return Cause::Transition;
        }
        let anon = self.kinds.and_then(|(anon, _)| share(anon as f64, self.total as f64));
        if anon >= Some(ANON_PERCENT) {
            return Cause::TooLarge;
        }
        // The kernel measures the distance of each page, and activates those that were away for less than memory holds;
        // where it does so with many, a distance from averages is that of other pages which never return.
        let in_use = activated >= Some(ACTIVATED_PERCENT);
        let like_stream = !self.one_by_one && activated < Some(HARDLY_ACTIVATED);
        let waited = self.read_back.waited;
        let streaming = match self.is_far() {
            Some(far) => far && waited.is_none_or(|waited| waited < WAIT),
            None => like_stream && waited.map_or(activated.is_some(), |waited| waited < NO_WAIT),
        };
        // Hardly any is activated either where the active list is nearly empty: the kernel compares distances with it.
        if !in_use && streaming && self.distance.is_none() && self.read_back.reading >= Some(WAIT) {
            return Cause::Unknown;
        }
        if !in_use && streaming { Cause::Streaming } else { Cause::TooLarge }
    }

    /// True if pages came back for a time, once or twice, and then no more.
    fn ended(&self) -> bool {
        let below = |percent: Option<f64>, limit| percent.is_some_and(|percent| percent < limit);
        let just_ended =
            below(self.latest, JUST_ENDED_PERCENT) && below(self.latest_evictions, EVICTIONS_ENDED_PERCENT);
        let few = self.capacity.is_none_or(|pages| self.total <= pages.saturating_mul(MAX_RETURNS));
        few && (just_ended || below(self.late, ENDED_PERCENT))
    }

    /// True if pages were away for longer than any memory would keep them; `None`: not known.
    fn is_far(&self) -> Option<bool> {
        let (distance, capacity) = (self.distance? as f64, self.capacity.filter(|n| *n > 0)? as f64);
        let times = distance / capacity;
        let returns = self.total as f64 / (capacity + distance);
        // A limit a few times as large would spare what somebody waits for.
        let waits = self.read_back.reading >= Some(WAIT);
        Some(times >= FAR || (times >= RATHER_FAR && returns <= FEW_RETURNS && !waits))
    }

    /// Size of what is in use, in pages: what memory holds and what is evicted before a page comes back.
    pub fn working_set(&self) -> Option<u64> {
        Some(self.capacity?.saturating_add(self.distance?))
    }

    /// Bytes of a limit that would hold it: an eighth more, as the limit holds more than what comes back.
    pub fn limit(&self) -> Option<u64> {
        Some(self.working_set()?.saturating_mul(4096) / 8 * 9)
    }

    /// Whose pages: `pages of cgroup /web (limit 64 MiB)` or `evicted pages`.
    pub fn whose(&self) -> String {
        self.cgroup.map_or("evicted pages".into(), |cgroup| format!("evicted pages of {}", cgroup.words()))
    }

    /// Kinds, distance and activation, as far as known.
    pub fn detail(&self) -> String {
        let mut detail = Vec::new();
        if let Some((anon, file)) = self.kinds {
            detail.push(format!("{} anon, {} file", count(anon), count(file)));
        }
        if let (Some(distance), Some(away)) = (self.distance, self.away) {
            let times = self.capacity.filter(|n| *n > 0).map(|n| distance as f64 / n as f64);
            let times = times.map_or(String::new(), |n| format!(", {n:.1} times what fits"));
            detail.push(format!("refault distance about {}{times}; back after {}", pages(distance), time(away as f64)));
        }
        if let Some(percent_activated) = self.activated.and_then(|n| share(n as f64, self.total as f64)) {
            detail.push(format!("{} activated", percent(percent_activated)));
        }
        if let Some(faults) = self.faults.filter(|n| *n > 0) {
            detail.push(format!("{} major faults", count(faults)));
        }
        detail.join("; ")
    }
}

/// True if nothing was reclaimed because the system was short of memory: kswapd scanned nothing, and no allocation
/// stalled.
pub fn reclaims_for_cgroups_only(a: &Analysis) -> bool {
    let idle = |name: &str| a.counters.vmstat_prefix(name) == Some(0);
    idle("pgscan_kswapd") && idle("allocstall")
}

/// Pages freed by all reclaim, cgroups included where the kernel counts by kind of page (5.8 on).
pub fn freed(a: &Analysis) -> Option<u64> {
    a.counters.vmstat_sum(FREED).or_else(|| {
        let kswapd = a.counters.vmstat_prefix("pgsteal_kswapd");
        let direct = a.counters.vmstat_prefix("pgsteal_direct");
        Some(kswapd?.saturating_add(direct?))
    })
}

/// Pages that can be on the lists of the system.
fn memory(counters: &Counters) -> Option<u64> {
    let lists = ["nr_inactive_anon", "nr_active_anon", "nr_inactive_file", "nr_active_file", "nr_free_pages"];
    lists.iter().map(|name| counters.last("vmstat", "", name)).reduce(|a, b| Some(a?.saturating_add(b?))).flatten()
}

/// Refault distance in pages and time away in nanoseconds, on average over all refaults. Not known where refaults begin
/// with the recording: those pages were evicted before it.
fn distance(refaulted: &[(u64, u64)], evicted: &[(u64, u64)], capacity: Option<u64>) -> Option<(u64, u64)> {
    if refaulted.len() != evicted.len() {
        return None;
    }
    let total = refaulted.last()?.1;
    let (mut sum, mut away, mut seen, mut intervals) = (0u128, 0u128, 0u128, 0);
    for i in 1..refaulted.len() {
        let came = refaulted[i].1.checked_sub(refaulted[i - 1].1)?;
        if came == 0 {
            continue;
        }
        // The one in the middle of the interval.
        let nth = refaulted[i - 1].1 + came / 2;
        let now = evicted[i - 1].1 + evicted[i].1.checked_sub(evicted[i - 1].1)? / 2;
        let Some(pages) = now.checked_sub(nth) else { continue };
        if seen == 0 && nth >= total / 20 && pages < capacity.unwrap_or(0) / 5 {
            return None;
        }
        let left = evicted.partition_point(|(_, n)| *n < nth).min(i);
        let since = refaulted[i].0.saturating_sub(evicted[left].0);
        sum += u128::from(pages) * u128::from(came);
        away += u128::from(since) * u128::from(came);
        seen += u128::from(came);
        intervals += 1;
    }
    // Most of them must be placed.
    if intervals < MIN_INTERVALS || seen * 2 < u128::from(total) {
        return None;
    }
    Some((u64::try_from(sum / seen).ok()?, u64::try_from(away / seen).ok()?))
}

/// Pages that are in use and do not fit, where the same ones were read repeatedly: what was read for the first time
/// (`first`) filled what fits, and since then nearly all that was read were refaults, several for each page. `None`:
/// pages that were evicted before the recording may have come back, once each.
fn read_repeatedly(refaults: u64, first: u64, fits: u64) -> Option<u64> {
    (fits > 0 && refaults >= first.saturating_mul(REPEATS)).then(|| first.checked_sub(fits)).flatten()
}

/// Percent in the last of so many parts of the time.
fn late(grown: &[(u64, u64)], parts: u64) -> Option<f64> {
    let ((first, _), (last, total)) = (grown.first()?, grown.last()?);
    let from = last - (last - first) / parts;
    let before = grown.iter().take_while(|(at, _)| *at <= from).last()?.1;
    // Two samples say nothing of when.
    (grown.len() > MIN_INTERVALS * 2).then(|| share((total - before.min(*total)) as f64, *total as f64)).flatten()
}

#[cfg(test)]
mod tests;

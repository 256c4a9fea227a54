//! Exact sums: what events add up to and what the kernel counted, which a complete recording has equal to the page.
//!
//! Rules of the kernel (6.1, mm/vmscan.c shrink_inactive_list, kswapd; mm/migrate.c migrate_misplaced_page; the same
//! since 5.8 for these names): every batch of inactive pages that is looked at is one mm_vmscan_lru_isolate of an
//! inactive list and moves pgscan_anon or pgscan_file; if kswapd does it, it moves pgscan_kswapd too; any other but
//! reclaim for a cgroup's limit moves pgscan_direct too (khugepaged's has a counter of its own from 6.3 on). If pages of
//! it could be taken, it ends with one mm_vmscan_lru_shrink_inactive and moves the same counters of pgsteal. None can be
//! taken where node reclaim may not unmap: without events of isolation such batches are not known.
//! Reclaim for a cgroup's limit is therefore what the first two hold beyond the others. A hinting fault that moves
//! pages is one mm_migrate_pages with reason numa_misplaced. Each wake of kswapd moves pageoutrun; before 3.12 each of
//! its loops did, of which a wake may have many.
//!
//! Counters are read while others run: what happens within [`READING`] after a sample begins may be in it or not, so
//! sums over events have a lower and an upper bound there. Not covered: the multi-generational LRU, whose batches are no
//! such events before 6.9, and huge pages' hinting faults before 5.14, which migrate without an event.
//!
//! Checked on recordings of kernels 6.1 and 6.12 in guests and of 6.18 on a host, by the tests of `report` and `lab`.

use crate::numa::{NUMA_MISPLACED, is_reason};
use crate::tasks::Context;
use crate::{Analysis, Kind};
use mmtwin_event::vocabulary::{MmMigratePages, MmVmscanLruIsolate, MmVmscanLruShrinkInactive};
use mmtwin_event::{CounterRow, Event, Source};

/// Nanoseconds from the time of a sample until `/proc/vmstat` has surely been read; some 100 us on a machine, some
/// 2 ms in an emulator.
const READING: u64 = 10_000_000;

/// What is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    KswapdScanned,
    KswapdReclaimed,
    DirectScanned,
    DirectReclaimed,
    CgroupScanned,
    CgroupReclaimed,
    /// By a task in an unknown kind of reclaim, which is either direct or for a cgroup.
    OtherScanned,
    OtherReclaimed,
    /// Scanned pages again, by isolations.
    KswapdIsolated,
    DirectIsolated,
    CgroupIsolated,
    OtherIsolated,
    NumaMigrated,
    KswapdWakes,
}

/// By [`Sum`].
type Sums = [u64; Sum::KswapdWakes as usize + 1];

/// Sums over events by when they happened.
#[derive(Clone, Debug, Default)]
pub struct Invariants {
    /// Events and counters have one clock.
    timed: bool,
    /// Times of the first and the last sample so far.
    first: Option<u64>,
    last: u64,
    inside: Sums,
    /// While the first and the last sample were read.
    at_first: Sums,
    at_last: Sums,
    after: Sums,
}

/// Why an invariant cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// An event or counter is missing.
    NotRecorded,
    /// The kernel has no such counter.
    NotInKernel,
    /// Events were lost.
    Lost,
}

/// Two sums that are equal in a complete recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Stable snake_case name.
    pub key: &'static str,
    /// What is summed up, for people.
    pub label: &'static str,
    /// Unit of both.
    pub unit: &'static str,
    /// By events: of the values that reading times allow the one nearest to the counters.
    pub events: Result<i128, Unknown>,
    /// By counters.
    pub counters: Result<i128, Unknown>,
}

impl Invariant {
    /// Events less counters.
    pub fn difference(&self) -> Result<i128, Unknown> {
        Ok(self.events? - self.counters?)
    }
}

impl Invariants {
    /// Takes note of whose clocks these are.
    pub fn start(&mut self, source: &Source) {
        self.timed = matches!(source.arm.as_str(), "twin" | "lab" | "host");
    }

    /// Takes a sample's row of `/proc/vmstat`; samples come in time order.
    pub fn row(&mut self, row: &CounterRow<'_>) {
        if row.source != "vmstat" || !row.key.is_empty() || !self.timed {
            return;
        }
        if self.first.is_none() {
            *self = Invariants { timed: true, first: Some(row.at), last: row.at, ..Invariants::default() };
        } else if row.at > self.last {
            self.last = row.at;
            for sums in [std::mem::take(&mut self.at_last), std::mem::take(&mut self.after)] {
                self.inside.iter_mut().zip(sums).for_each(|(inside, more)| *inside = inside.saturating_add(more));
            }
        }
    }

    /// Takes a batch of inactive pages, shrunk by a task in a reclaim context.
    #[inline]
    pub fn shrink_inactive(&mut self, at: u64, e: &MmVmscanLruShrinkInactive, context: Context) {
        let (scanned, reclaimed) = match context {
            Context::Kswapd => (Sum::KswapdScanned, Sum::KswapdReclaimed),
            Context::Direct | Context::Node => (Sum::DirectScanned, Sum::DirectReclaimed),
            Context::Memcg | Context::MemcgSoftlimit => (Sum::CgroupScanned, Sum::CgroupReclaimed),
            Context::Other => (Sum::OtherScanned, Sum::OtherReclaimed),
        };
        self.add(at, scanned, e.nr_scanned);
        self.add(at, reclaimed, e.nr_reclaimed);
    }

    /// Takes an isolation from an LRU list by a task in a reclaim context.
    #[inline]
    pub fn isolate(&mut self, at: u64, e: &MmVmscanLruIsolate, context: Context) {
        if e.lru.is_some_and(|lru| !lru.is_active()) {
            let isolated = match context {
                Context::Kswapd => Sum::KswapdIsolated,
                Context::Direct | Context::Node => Sum::DirectIsolated,
                Context::Memcg | Context::MemcgSoftlimit => Sum::CgroupIsolated,
                Context::Other => Sum::OtherIsolated,
            };
            self.add(at, isolated, e.nr_scanned);
        }
    }

    /// Takes a kswapd wakeup or a migration; other events are ignored.
    #[inline]
    pub fn event(&mut self, ev: &Event<'_>) {
        match ev.kind {
            Kind::MmVmscanKswapdWake => self.add(ev.ts, Sum::KswapdWakes, 1),
            Kind::MmMigratePages => {
                let e: MmMigratePages = ev.typed();
                if is_reason(e.reason.0, NUMA_MISPLACED) {
                    self.add(ev.ts, Sum::NumaMigrated, e.nr_succeeded);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, at: u64, sum: Sum, n: u64) {
        let sums = match self.first {
            None if self.timed => &mut self.after,
            None => &mut self.inside,
            Some(first) if at < first => return,
            Some(first) if at - first < READING => &mut self.at_first,
            Some(_) if at < self.last => &mut self.inside,
            Some(_) if at - self.last < READING => &mut self.at_last,
            Some(_) => &mut self.after,
        };
        sums[sum as usize] = sums[sum as usize].saturating_add(n);
    }

    /// Least and most of a sum between the samples.
    fn bounds(&self, sum: Sum) -> (i128, i128) {
        let of = |sums: &Sums| i128::from(sums[sum as usize]);
        let least = of(&self.inside);
        (least, least + of(&self.at_first) + of(&self.at_last))
    }
}

/// Growth of counters, summed; those that a kernel does not have count nothing.
fn grown(a: &Analysis, names: &[&str]) -> Result<i128, Unknown> {
    match a.counters.vmstat_sum(names) {
        Some(sum) => Ok(sum.into()),
        None if a.counters.has_change("vmstat", "") && a.source.arm != "twin" => Err(Unknown::NotInKernel),
        None => Err(Unknown::NotRecorded),
    }
}

/// All invariants of an input.
pub fn all(a: &Analysis) -> Vec<Invariant> {
    use Kind::{
        MmMigratePages, MmVmscanDirectReclaimBegin, MmVmscanKswapdWake, MmVmscanLruIsolate, MmVmscanLruShrinkInactive,
        MmVmscanMemcgReclaimBegin,
    };
    let recorded = |kinds: &[Kind]| match a.losses.any() {
        true => Err(Unknown::Lost),
        false => a.recorded.value(kinds, ()).ok_or(Unknown::NotRecorded),
    };
    let classic = if a.source.lru_gen { Err(Unknown::NotRecorded) } else { Ok(()) };
    let reclaim = |kinds: &[Kind]| classic.and(recorded(kinds));
    let isolations = a.recorded.has(MmVmscanLruIsolate) && a.reclaim.lists_are_reported();
    let node_reclaim = grown(a, &["zone_reclaim_success", "zone_reclaim_failed"]).is_ok_and(|times| times > 0);
    let unreported = if node_reclaim && !isolations { Err(Unknown::NotRecorded) } else { Ok(()) };
    let scanned = |batches, isolated| if isolations { isolated } else { batches };
    let huge = a.counters.vmstat("numa_huge_pte_updates").is_some_and(|n| n > 0);
    let mut migrations = a.numa.migrations.values().peekable();
    let reported = migrations.peek().is_some() && migrations.all(|migrated| migrated.thp_succeeded.is_some());
    let migrations = if huge && !reported { Err(Unknown::NotRecorded) } else { recorded(&[MmMigratePages]) };
    let direct = |what: &str| {
        let names = [format!("{what}_direct"), format!("{what}_khugepaged")];
        grown(a, &[&names[0]]).and_then(|_| grown(a, &[&names[0], &names[1]]))
    };
    let cgroup = |what: &str| {
        let of = |list: &str| grown(a, &[&format!("{what}_{list}")]);
        Ok(of("anon")? + of("file")? - of("kswapd")? - direct(what)?)
    };
    let kswapd = [MmVmscanLruShrinkInactive];
    let direct_kinds = [MmVmscanLruShrinkInactive, MmVmscanDirectReclaimBegin];
    let cgroup_kinds = [MmVmscanLruShrinkInactive, MmVmscanDirectReclaimBegin, MmVmscanMemcgReclaimBegin];
    let line = |key, label, unit, sum, may, known: Result<(), Unknown>, counters: Result<i128, Unknown>| {
        let (least, most) = a.invariants.bounds(sum);
        let most = most + may;
        let events = known.map(|()| counters.map_or(least, |counted| counted.clamp(least, most)));
        Invariant { key, label, unit, events, counters }
    };
    // The counter of waits that kswapd skips went when its loops did.
    let loops = a.counters.vmstat("kswapd_skip_congestion_wait").is_some();
    let runs = if loops { Err(Unknown::NotInKernel) } else { grown(a, &["pageoutrun"]) };
    let other = [scanned(Sum::OtherScanned, Sum::OtherIsolated), Sum::OtherReclaimed];
    let other = other.map(|sum| a.invariants.bounds(sum).1);
    let pages = "pages";
    vec![
        line(
            "pgscan_kswapd",
            "Pages scanned by kswapd",
            pages,
            scanned(Sum::KswapdScanned, Sum::KswapdIsolated),
            0,
            unreported.and(reclaim(&kswapd)),
            grown(a, &["pgscan_kswapd"]),
        ),
        line(
            "pgsteal_kswapd",
            "Pages reclaimed by kswapd",
            pages,
            Sum::KswapdReclaimed,
            0,
            reclaim(&kswapd),
            grown(a, &["pgsteal_kswapd"]),
        ),
        line(
            "pgscan_direct",
            "Pages scanned by direct reclaim",
            pages,
            scanned(Sum::DirectScanned, Sum::DirectIsolated),
            other[0],
            unreported.and(reclaim(&direct_kinds)),
            direct("pgscan"),
        ),
        line(
            "pgsteal_direct",
            "Pages reclaimed by direct reclaim",
            pages,
            Sum::DirectReclaimed,
            other[1],
            reclaim(&direct_kinds),
            direct("pgsteal"),
        ),
        line(
            "memcg_scanned",
            "Pages scanned by cgroup reclaim",
            pages,
            scanned(Sum::CgroupScanned, Sum::CgroupIsolated),
            other[0],
            unreported.and(reclaim(&cgroup_kinds)),
            cgroup("pgscan"),
        ),
        line(
            "memcg_reclaimed",
            "Pages reclaimed by cgroup reclaim",
            pages,
            Sum::CgroupReclaimed,
            other[1],
            reclaim(&cgroup_kinds),
            cgroup("pgsteal"),
        ),
        line(
            "numa_pages_migrated",
            "Pages migrated by NUMA balancing",
            pages,
            Sum::NumaMigrated,
            0,
            migrations,
            grown(a, &["numa_pages_migrated"]),
        ),
        line("pageoutrun", "kswapd wakeups", "", Sum::KswapdWakes, 0, recorded(&[MmVmscanKswapdWake]), runs),
    ]
}

/// True if events and counters cover the same time, so that a difference is none of the recording's making.
pub fn is_complete(a: &Analysis) -> bool {
    a.invariants.timed && a.invariants.first.is_some_and(|first| first < a.invariants.last) && !a.losses.any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;
    use mmtwin_event::Sink;

    /// Node reclaim that looks at 32 pages twice, of which the second time none can be taken, and what the kernel counts.
    fn node_reclaim(isolations: bool) -> Analysis {
        let mut analysis = Analysis::default();
        let enabled = vec!["mm_vmscan_direct_reclaim_begin".to_string()];
        analysis.start(&Source { enabled: Some(enabled), ..Source::default() });
        let made = |kind, us: u64| EventBuilder::new(kind).pid(7).comm(b"dd").at(us * 1000);
        let isolate = |us| made(Kind::MmVmscanLruIsolate, us).set("lru", 2).set("nr_scanned", 32);
        let mut events = vec![made(Kind::MmVmscanNodeReclaimBegin, 1)];
        if isolations {
            events.extend([isolate(2), made(Kind::MmVmscanLruIsolate, 2).set("lru", 3).set("nr_scanned", 9)]);
        }
        events.push(made(Kind::MmVmscanLruShrinkInactive, 3).set("nr_scanned", 32).set("nr_reclaimed", 30));
        if isolations {
            events.push(isolate(4));
        }
        events.iter().for_each(|event| analysis.event(&event.event()));
        let names = ["pgscan_direct", "pgsteal_direct", "zone_reclaim_success"].map(String::from);
        for (at, values) in [(0, [0, 0, 0]), (9, [64, 30, 1])] {
            let values = values.map(Some);
            analysis.counters(&CounterRow { source: "vmstat", key: "", at, names: &names, values: &values });
        }
        analysis
    }

    #[test]
    fn batches_of_which_nothing_is_taken_are_told_by_isolations_alone() {
        let of = |isolations: bool, key| {
            let line = all(&node_reclaim(isolations)).into_iter().find(|line| line.key == key).expect("a line");
            line.difference()
        };
        assert_eq!(of(true, "pgscan_direct"), Ok(0));
        assert_eq!(of(false, "pgscan_direct"), Err(Unknown::NotRecorded));
        assert_eq!(of(false, "pgsteal_direct"), Ok(0));
    }
}

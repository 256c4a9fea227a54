//! Compaction: what was scanned and moved, with what results, and what it cost.
//!
//! Begin and end carry no node, so durations are by task and mode; results per node, zone and order come from
//! mm_compaction_finished and _suitable, which are asked many times in one run.

use crate::tasks::Task;
use crate::waits::Waits;
use mmtwin_event::durations::Durations;
use mmtwin_event::vocabulary::*;
use mmtwin_event::{Event, Kind};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Largest number of different places kept separate; more can only come from a damaged file.
const MAX_PLACES: usize = 1 << 12;

/// Everything about compaction that events tell.
#[derive(Clone, Debug, Default)]
pub struct Compaction {
    /// The scanner for pages to move.
    pub migrate_scanner: Scanned,
    /// The scanner for free pages.
    pub free_scanner: Scanned,
    /// The fast search for free pages.
    pub fast_free_scanner: Scanned,
    /// Pages moved.
    pub migrated: u64,
    /// Pages that could not be moved.
    pub failed: u64,
    /// Runs by (synchronous, index of the result).
    pub runs: BTreeMap<(bool, u32), Durations>,
    /// Direct compactions by order of the request.
    pub direct: BTreeMap<i32, u64>,
    /// Results of [`CompactionCheck`] per place and index of the result.
    pub answers: BTreeMap<(CompactionCheck, ZoneOrder, u32), u64>,
    /// Deferrals per place.
    pub deferrals: BTreeMap<ZoneOrder, Deferrals>,
    /// Answers and deferrals that were omitted because there were too many places.
    pub dropped: u64,
    /// The daemons, by node.
    pub kcompactd: BTreeMap<i32, Kcompactd>,
    /// compact_retry by (order, index of the result, decision).
    pub retries: BTreeMap<(i32, u32, bool), u64>,
    /// Runs of all but kcompactd, by name.
    pub waits: Waits,
    open: FxHashMap<i32, u64>,
}

/// Sums of a scanner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Calls.
    pub calls: u64,
    /// Pages looked at.
    pub scanned: u64,
    /// Pages isolated.
    pub taken: u64,
}

impl Scanned {
    fn add(&mut self, scanned: u64, taken: u64) {
        self.calls += 1;
        self.scanned = self.scanned.saturating_add(scanned);
        self.taken = self.taken.saturating_add(taken);
    }
}

/// What the kernel asked itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompactionCheck {
    /// Has compaction of this zone finished?
    Finished,
    /// Is this zone suitable for compaction?
    Suitable,
}

/// A zone and an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneOrder {
    /// Node.
    pub node: i32,
    /// Index into the table of zones.
    pub zone: u32,
    /// Order of the request.
    pub order: i32,
}

/// Deferrals of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferrals {
    /// Compactions not tried because of earlier failures.
    pub deferred: u64,
    /// Failures after which more will be deferred.
    pub extended: u64,
    /// Ends of deferral.
    pub reset: u64,
}

/// The daemon of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kcompactd {
    /// Requests.
    pub requests: u64,
    /// Times it began to work.
    pub wakes: u64,
    /// Nanoseconds from wake to sleep; a phase still open at the end is not in it.
    pub awake: u128,
    since: Option<u64>,
}

/// Compactions that are open at once.
const MAX_OPEN: usize = 1 << 16;

/// Counts under a key unless that would make too many keys.
fn count<K: Ord, V: Default>(map: &mut BTreeMap<K, V>, key: K, dropped: &mut u64, add: impl FnOnce(&mut V)) {
    if map.len() >= MAX_PLACES && !map.contains_key(&key) {
        *dropped += 1;
    } else {
        add(map.entry(key).or_default());
    }
}

impl Compaction {
    /// Takes one event of this subject.
    pub fn event(&mut self, ev: &Event<'_>, task: &Task) {
        match ev.kind {
            Kind::MmCompactionIsolateMigratepages => {
                let e: MmCompactionIsolateMigratepages = ev.typed();
                self.migrate_scanner.add(e.nr_scanned, e.nr_taken);
            }
            Kind::MmCompactionIsolateFreepages => {
                let e: MmCompactionIsolateFreepages = ev.typed();
                self.free_scanner.add(e.nr_scanned, e.nr_taken);
            }
            Kind::MmCompactionFastIsolateFreepages => {
                let e: MmCompactionFastIsolateFreepages = ev.typed();
                self.fast_free_scanner.add(e.nr_scanned, e.nr_taken);
            }
            Kind::MmCompactionMigratepages => {
                let e: MmCompactionMigratepages = ev.typed();
                self.migrated = self.migrated.saturating_add(e.nr_migrated);
                self.failed = self.failed.saturating_add(e.nr_failed);
            }
            Kind::MmCompactionBegin => {
                // One whose end is missing stays open, and no machine compacts on so many threads.
                if self.open.len() >= MAX_OPEN {
                    self.open.clear();
                }
                self.open.insert(task.pid, ev.ts);
            }
            Kind::MmCompactionEnd => self.ended(ev, task),
            Kind::MmCompactionTryToCompactPages => {
                let order = ev.typed::<MmCompactionTryToCompactPages>().order;
                count(&mut self.direct, order, &mut self.dropped, |n| *n += 1);
            }
            Kind::MmCompactionFinished => {
                let e: MmCompactionFinished = ev.typed();
                self.answered(
                    CompactionCheck::Finished,
                    ZoneOrder { node: e.node, zone: e.zone.0, order: e.order },
                    e.ret.0,
                );
            }
            Kind::MmCompactionSuitable => {
                let e: MmCompactionSuitable = ev.typed();
                self.answered(
                    CompactionCheck::Suitable,
                    ZoneOrder { node: e.node, zone: e.zone.0, order: e.order },
                    e.ret.0,
                );
            }
            Kind::MmCompactionDeferred | Kind::MmCompactionDeferCompaction | Kind::MmCompactionDeferReset => {
                self.deferred(ev);
            }
            Kind::MmCompactionKcompactdSleep | Kind::MmCompactionWakeupKcompactd | Kind::MmCompactionKcompactdWake => {
                self.daemon(ev)
            }
            Kind::CompactRetry => {
                let e: CompactRetry = ev.typed();
                let key = (e.order, e.compaction_result.0, e.should_retry);
                count(&mut self.retries, key, &mut self.dropped, |n| *n += 1);
            }
            _ => {}
        }
    }

    fn ended(&mut self, ev: &Event<'_>, task: &Task) {
        let end: MmCompactionEnd = ev.typed();
        if let Some(ns) = self.open.remove(&task.pid).and_then(|begin| ev.ts.checked_sub(begin)) {
            let key = (end.sync, end.status.0);
            count(&mut self.runs, key, &mut self.dropped, |d| d.add(ns));
            self.waits.add(task, ns);
        }
    }

    fn answered(&mut self, question: CompactionCheck, spot: ZoneOrder, result: u32) {
        count(&mut self.answers, (question, spot, result), &mut self.dropped, |n| *n += 1);
    }

    fn deferred(&mut self, ev: &Event<'_>) {
        // The three events have the same fields.
        let (spot, which): (ZoneOrder, fn(&mut Deferrals) -> &mut u64) = match ev.kind {
            Kind::MmCompactionDeferred => {
                let e: MmCompactionDeferred = ev.typed();
                (ZoneOrder { node: e.node, zone: e.zone.0, order: e.order }, |d| &mut d.deferred)
            }
            Kind::MmCompactionDeferCompaction => {
                let e: MmCompactionDeferCompaction = ev.typed();
                (ZoneOrder { node: e.node, zone: e.zone.0, order: e.order }, |d| &mut d.extended)
            }
            _ => {
                let e: MmCompactionDeferReset = ev.typed();
                (ZoneOrder { node: e.node, zone: e.zone.0, order: e.order }, |d| &mut d.reset)
            }
        };
        count(&mut self.deferrals, spot, &mut self.dropped, |d| *which(d) += 1);
    }

    fn daemon(&mut self, ev: &Event<'_>) {
        let dropped = &mut self.dropped;
        match ev.kind {
            Kind::MmCompactionWakeupKcompactd => {
                let nid = ev.typed::<MmCompactionWakeupKcompactd>().nid;
                count(&mut self.kcompactd, nid, dropped, |k| k.requests += 1);
            }
            Kind::MmCompactionKcompactdWake => {
                let nid = ev.typed::<MmCompactionKcompactdWake>().nid;
                count(&mut self.kcompactd, nid, dropped, |k| {
                    k.wakes += 1;
                    k.since.get_or_insert(ev.ts);
                });
            }
            _ => {
                let nid = ev.typed::<MmCompactionKcompactdSleep>().nid;
                count(&mut self.kcompactd, nid, dropped, |k| {
                    let awake = k.since.take().and_then(|since| ev.ts.checked_sub(since));
                    k.awake += u128::from(awake.unwrap_or(0));
                });
            }
        }
    }

    /// Compaction runs that ended.
    pub fn ended_runs(&self) -> u64 {
        self.runs.values().map(Durations::count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Context;
    use crate::testing::{EventBuilder, task};

    fn take(c: &mut Compaction, made: EventBuilder) {
        let pid = made.event().pid;
        c.event(&made.event(), &task(pid, Context::Other));
    }

    #[test]
    fn runs_are_timed_per_task() {
        let mut c = Compaction::default();
        take(&mut c, EventBuilder::new(Kind::MmCompactionBegin).pid(1).at(10));
        take(&mut c, EventBuilder::new(Kind::MmCompactionBegin).pid(2).at(20));
        take(&mut c, EventBuilder::new(Kind::MmCompactionEnd).pid(1).at(50).set("mode", 1).set("status", 8));
        take(&mut c, EventBuilder::new(Kind::MmCompactionEnd).pid(2).at(25).set("mode", 0).set("status", 5));
        take(&mut c, EventBuilder::new(Kind::MmCompactionEnd).pid(3).at(99).set("mode", 0).set("status", 5));
        assert_eq!((c.runs[&(true, 8)].sum, c.runs[&(false, 5)].sum, c.ended_runs()), (40, 5, 2));
    }

    #[test]
    fn kcompactd_is_awake_from_wake_to_sleep() {
        let mut c = Compaction::default();
        take(&mut c, EventBuilder::new(Kind::MmCompactionWakeupKcompactd).set("nid", 1));
        take(&mut c, EventBuilder::new(Kind::MmCompactionKcompactdWake).at(10).set("nid", 1));
        take(&mut c, EventBuilder::new(Kind::MmCompactionKcompactdSleep).at(35).set("nid", 1));
        take(&mut c, EventBuilder::new(Kind::MmCompactionKcompactdSleep).at(90).set("nid", 1));
        let k = c.kcompactd[&1];
        assert_eq!((k.requests, k.wakes, k.awake), (1, 1, 25));
    }

    #[test]
    fn scanners_places_and_deferrals_add_up() {
        let mut c = Compaction::default();
        for _ in 0..2 {
            take(
                &mut c,
                EventBuilder::new(Kind::MmCompactionIsolateMigratepages).set("nr_scanned", 512).set("nr_taken", 32),
            );
            take(&mut c, EventBuilder::new(Kind::MmCompactionMigratepages).set("nr_migrated", 30).set("nr_failed", 2));
            take(
                &mut c,
                EventBuilder::new(Kind::MmCompactionFinished)
                    .set("node", 1)
                    .set("zone", 2)
                    .set("order", 9)
                    .set("ret", 4),
            );
            take(&mut c, EventBuilder::new(Kind::MmCompactionDeferred).set("node", 1).set("zone", 2).set("order", 9));
        }
        let spot = ZoneOrder { node: 1, zone: 2, order: 9 };
        assert_eq!(c.migrate_scanner, Scanned { calls: 2, scanned: 1024, taken: 64 });
        assert_eq!((c.migrated, c.failed), (60, 4));
        assert_eq!(c.answers[&(CompactionCheck::Finished, spot, 4)], 2);
        assert_eq!(c.deferrals[&spot], Deferrals { deferred: 2, ..Deferrals::default() });
    }

    #[test]
    fn damaged_places_stay_bounded() {
        let mut c = Compaction::default();
        for node in 0..2 * MAX_PLACES as i64 {
            take(&mut c, EventBuilder::new(Kind::MmCompactionSuitable).set("node", node));
        }
        assert_eq!((c.answers.len(), c.dropped), (MAX_PLACES, MAX_PLACES as u64));
    }
}

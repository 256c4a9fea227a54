//! What happened over time, in bounded memory: counters thinned by time, sums of events in bins, the longest waits.
//!
//! [`OverTime`] is an [`Analysis`] that keeps these too. They are for pictures; exact sums are in the analysis.

mod bins;
mod largest;
mod moments;
mod samples;
mod watch;

use crate::Analysis;
use crate::explain::waiting::{Cause, Tracker, Wait};
use crate::tasks::Context;
use mmtwin_event::vocabulary::{
    MmMigratePages, MmVmscanKswapdSleep, MmVmscanKswapdWake, MmVmscanLruShrinkInactive, PurgeVmapAreaLazy,
};
use mmtwin_event::{Call, CounterRow, Event, Kind, Order, Sink, Source, Task};
use std::collections::BTreeMap;

pub use bins::Bins;
pub use largest::{Happened, Largest};
pub use moments::{Moment, Moments, What};
pub use samples::{Group, Samples};

/// Most bins of sums over time, and of latencies over time.
const BINS: usize = 2048;
const HEAT: usize = 256;
/// Waits kept of each part of the time.
const WAITS: usize = 32;
/// Nodes whose kswapd is told apart.
const NODES: i32 = 64;

/// What happened over time.
#[derive(Clone, Debug)]
pub struct Series {
    /// Counters.
    pub samples: Samples,
    /// Pages reclaimed; a row for each of [`Context::ALL`].
    pub reclaimed: Bins,
    /// Nanoseconds that tasks waited; a row for each of [`Cause::ALL`].
    pub waited: Bins,
    /// Number of waits by when they began; a row for each [`latency_row`] of their lengths.
    pub latency: Bins,
    /// Nanoseconds that kswapd was awake; a row for each node.
    pub awake: Bins,
    /// Rows: areas that vmalloc purged, passes.
    pub purged: Bins,
    /// Rows: pages that migrated, pages that did not.
    pub migrated: Bins,
    /// Rows: tasks that NUMA balancing moved to another node, pairs that it exchanged.
    pub moved: Bins,
    /// The longest waits of every part of the time.
    pub waits: Largest<Wait>,
    /// The largest of other events of every part of the time.
    pub moments: Moments,
    /// The first of the purges of most areas: nanoseconds of the trace clock, areas.
    pub purge_peak: Option<(u64, u32)>,
    tracker: Tracker,
    /// When kswapd of a node woke.
    woke: BTreeMap<i32, u64>,
}

impl Default for Series {
    fn default() -> Series {
        let bins = || Bins::new(BINS);
        Series {
            samples: Samples::default(),
            reclaimed: bins(),
            waited: bins(),
            latency: Bins::new(HEAT),
            awake: bins(),
            purged: bins(),
            migrated: bins(),
            moved: bins(),
            waits: Largest::new(WAITS),
            moments: Moments::default(),
            purge_peak: None,
            tracker: Tracker::default(),
            woke: BTreeMap::new(),
        }
    }
}

/// The row of [`Series::latency`] of a length in nanoseconds: two to each power of two.
pub fn latency_row(ns: u64) -> usize {
    let ns = ns.max(1);
    let power = ns.ilog2();
    let half = power.checked_sub(1).map_or(0, |bit| ns >> bit & 1);
    (2 * power) as usize + half as usize
}

/// Least length of a row of [`Series::latency`] in nanoseconds.
pub fn latency_of_row(row: usize) -> f64 {
    let least = 2f64.powi((row / 2) as i32);
    if row.is_multiple_of(2) { least } else { least * 1.5 }
}

impl Series {
    fn event(&mut self, ev: &Event<'_>, analysis: &mut Analysis) {
        if let Some(wait) = self.tracker.event(ev, &mut analysis.tasks) {
            let row = Cause::ALL.iter().position(|cause| *cause == wait.cause).unwrap_or(0);
            self.waited.add_interval(wait.from, wait.until, row);
            self.latency.add(wait.from, latency_row(wait.length()), 1);
            self.waits.add(wait);
        }
        self.moments.event(ev);
        match ev.kind {
            Kind::MmVmscanLruShrinkInactive => {
                let e: MmVmscanLruShrinkInactive = ev.typed();
                let context = analysis.tasks.of(ev).context;
                let row = Context::ALL.iter().position(|known| *known == context).unwrap_or(Context::ALL.len() - 1);
                self.reclaimed.add(ev.ts, row, e.nr_reclaimed);
            }
            Kind::MmVmscanKswapdWake => {
                let e: MmVmscanKswapdWake = ev.typed();
                if (0..NODES).contains(&e.nid) {
                    self.woke.entry(e.nid).or_insert(ev.ts);
                }
            }
            Kind::MmVmscanKswapdSleep => {
                let e: MmVmscanKswapdSleep = ev.typed();
                if let Some(from) = self.woke.remove(&e.nid) {
                    self.slept(e.nid, from, ev.ts, ev.pid);
                }
            }
            Kind::PurgeVmapAreaLazy => {
                let e: PurgeVmapAreaLazy = ev.typed();
                self.purged.add(ev.ts, 0, e.num_purged.into());
                self.purged.add(ev.ts, 1, 1);
                if self.purge_peak.is_none_or(|(_, most)| e.num_purged > most) {
                    self.purge_peak = Some((ev.ts, e.num_purged));
                }
            }
            Kind::MmMigratePages => {
                let e: MmMigratePages = ev.typed();
                self.migrated.add(ev.ts, 0, e.nr_succeeded);
                self.migrated.add(ev.ts, 1, e.nr_failed);
            }
            Kind::SchedMoveNuma => self.moved.add(ev.ts, 0, 1),
            Kind::SchedSwapNuma => self.moved.add(ev.ts, 1, 1),
            _ => {}
        }
    }

    /// kswapd that is awake at the end has been so until then.
    fn finish(&mut self, last: u64) {
        for (node, from) in std::mem::take(&mut self.woke) {
            self.slept(node, from, last, 0);
        }
    }

    /// kswapd of a node has been awake.
    fn slept(&mut self, node: i32, from: u64, until: u64, pid: i32) {
        self.awake.add_interval(from, until, node as usize);
        self.moments.add(Moment { from, until: until.max(from), pid, what: What::Kswapd { node } });
    }

    /// Sums of events become 0 where nothing happened from one time to another, in nanoseconds of the trace clock.
    pub fn cover(&mut self, from: u64, to: u64) {
        self.latency.cover(from, to);
        self.bins().into_iter().for_each(|bins| bins.cover(from, to));
    }

    /// Joins bins and blocks until no picture has more than so many.
    pub fn thin(&mut self, most: usize) {
        self.samples.thin(most);
        self.bins().into_iter().for_each(|bins| bins.thin(most));
    }

    fn bins(&mut self) -> [&mut Bins; 6] {
        let Series { reclaimed, waited, awake, purged, migrated, moved, .. } = self;
        [reclaimed, waited, awake, purged, migrated, moved]
    }
}

/// Statistics, with what happened over time.
#[derive(Debug, Default)]
pub struct OverTime {
    /// All statistics.
    pub analysis: Analysis,
    /// What happened over time.
    pub series: Series,
}

impl Sink for OverTime {
    fn start(&mut self, source: &Source) {
        self.analysis.start(source);
    }

    fn task(&mut self, task: &Task<'_>) {
        self.analysis.task(task);
    }

    fn order(&self, kind: Kind) -> Order {
        self.analysis.order(kind)
    }

    fn event(&mut self, ev: &Event<'_>) {
        self.analysis.event(ev);
        self.series.event(ev, &mut self.analysis);
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.analysis.lost(cpu, events, at);
        // An end may be among them.
        self.series.tracker.forget();
        self.series.woke.clear();
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        self.analysis.counters(row);
        self.series.samples.row(row);
    }

    fn call(&mut self, call: &Call<'_>) {
        self.analysis.call(call);
    }

    fn finish(&mut self) {
        self.analysis.finish();
        self.series.finish(self.analysis.span.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    #[test]
    fn rows_of_latency() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(latency_row), [0, 2, 3, 4, 4, 5, 5, 6]);
        for ns in [1, 2, 3, 5, 1000, 12_345_678, u64::MAX] {
            let row = latency_row(ns);
            assert!(latency_of_row(row) <= ns as f64 && (ns as f64) < latency_of_row(row + 1) * 1.0001, "{ns}");
        }
    }

    #[test]
    fn events_have_their_places() {
        let mut over_time = OverTime::default();
        let mut event = |event: EventBuilder| over_time.event(&event.event());
        let (begin, shrink, end) =
            (Kind::MmVmscanDirectReclaimBegin, Kind::MmVmscanLruShrinkInactive, Kind::MmVmscanDirectReclaimEnd);
        event(EventBuilder::new(Kind::MmVmscanKswapdWake).at(1_000_000).comm(b"kswapd1").pid(7).set("nid", 1));
        event(EventBuilder::new(begin).at(2_000_000).comm(b"worker").pid(9).set("order", 2));
        event(EventBuilder::new(shrink).at(3_000_000).comm(b"worker").pid(9).set("nr_reclaimed", 5));
        event(EventBuilder::new(end).at(6_000_000).comm(b"worker").pid(9).set("nr_reclaimed", 5));
        over_time.finish();
        let series = &over_time.series;
        let sum = |bins: &Bins, row: usize| -> u64 { bins.iter().filter_map(|(_, bin)| bin.get(row)).sum() };
        assert_eq!(sum(&series.reclaimed, 0), 5, "by direct reclaim, the first context");
        assert_eq!(sum(&series.waited, 0), 4_000_000);
        assert_eq!(sum(&series.awake, 1), 5_000_000, "until the end");
        assert_eq!(sum(&series.latency, latency_row(4_000_000)), 1);
        let spell = Moment { from: 1_000_000, until: 6_000_000, pid: 0, what: What::Kswapd { node: 1 } };
        assert_eq!(series.moments.kept(), [&spell]);
        let waits = series.waits.kept();
        assert_eq!((waits.len(), waits[0].who.as_str(), waits[0].order), (1, "worker-9", Some(2)));
    }
}

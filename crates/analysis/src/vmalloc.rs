//! vmalloc: allocations, lazy frees and purges.
//!
//! From alloc_vmap_area, free_vmap_area_noflush and purge_vmap_area_lazy (6.12 on). A free whose `nr_lazy` exceeds
//! `nr_lazy_max` queues the drain work, and the purge event ends a pass: the time between is how long the drain
//! took, with its wait for a CPU. Passes that somebody else asked for have no such beginning. The event counts
//! areas; pages are reported by what the next free sees in `nr_lazy`, which misses what was freed during the pass.
//! How long the pass itself took is known from function_graph calls only ([`calls`](crate::calls)).

use crate::histogram::Log2;
use mmtwin_event::vocabulary::{AllocVmapArea, FreeVmapAreaNoflush, PurgeVmapAreaLazy};
use mmtwin_event::{Event, Kind};

/// Everything about vmalloc that events tell.
#[derive(Clone, Debug, Default)]
pub struct Vmalloc {
    /// Searches that found nothing; one that is retried counts again.
    pub failed: u64,
    /// Sizes of the areas found, in bytes, guard pages included.
    pub sizes: Log2,
    /// Lazy frees.
    pub frees: u64,
    /// Frees that found more lazy pages than allowed.
    pub frees_over_limit: u64,
    /// Largest number of lazy pages seen.
    pub lazy_high: Option<u64>,
    /// Number of lazy pages allowed before the drain starts, as last printed.
    pub lazy_max: Option<u64>,
    /// Areas per pass, empty passes included.
    pub purged: Log2,
    /// Passes that found nothing.
    pub empty: u64,
    /// Lazy pages that were gone at the first free after a pass: at least so many were purged.
    pub pages_drained: u64,
    /// Nanoseconds from the end of one pass to the end of the next.
    pub intervals: Log2,
    /// Nanoseconds from the free that crossed the limit to the end of the pass.
    pub drains: Log2,
    lazy_last: Option<u64>,
    lazy_before_purge: Option<u64>,
    crossed_at: Option<u64>,
    purged_at: Option<u64>,
}

impl Vmalloc {
    /// Takes one event of this subject.
    #[inline]
    pub fn event(&mut self, ev: &Event<'_>) {
        match ev.kind {
            Kind::AllocVmapArea => self.alloc(&ev.typed()),
            Kind::FreeVmapAreaNoflush => self.free(ev.ts, &ev.typed()),
            Kind::PurgeVmapAreaLazy => self.purge(ev.ts, &ev.typed()),
            _ => {}
        }
    }

    fn alloc(&mut self, ev: &AllocVmapArea) {
        match ev.failed {
            0 => self.sizes.add(ev.size),
            _ => self.failed += 1,
        }
    }

    fn free(&mut self, at: u64, ev: &FreeVmapAreaNoflush) {
        self.frees += 1;
        self.lazy_high = self.lazy_high.max(Some(ev.nr_lazy));
        self.lazy_max = Some(ev.nr_lazy_max);
        if let Some(before) = self.lazy_before_purge.take() {
            self.pages_drained = self.pages_drained.saturating_add(before.saturating_sub(ev.nr_lazy));
        }
        self.lazy_last = Some(ev.nr_lazy);
        if ev.nr_lazy > ev.nr_lazy_max {
            self.frees_over_limit += 1;
            self.crossed_at.get_or_insert(at);
        }
    }

    fn purge(&mut self, at: u64, ev: &PurgeVmapAreaLazy) {
        self.purged.add(ev.num_purged.into());
        if let Some(ns) = self.purged_at.replace(at).and_then(|before| at.checked_sub(before)) {
            self.intervals.add(ns);
        }
        if ev.num_purged == 0 {
            self.empty += 1;
            return;
        }
        self.lazy_before_purge = self.lazy_last.take().or(self.lazy_before_purge);
        if let Some(ns) = self.crossed_at.take().and_then(|crossed| at.checked_sub(crossed)) {
            self.drains.add(ns);
        }
    }

    /// Passes, empty ones included.
    pub fn passes(&self) -> u64 {
        self.purged.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    fn free(v: &mut Vmalloc, at: u64, nr_lazy: i64) {
        v.event(
            &EventBuilder::new(Kind::FreeVmapAreaNoflush)
                .at(at)
                .set("nr_lazy", nr_lazy)
                .set("nr_lazy_max", 100)
                .event(),
        );
    }
    fn purge(v: &mut Vmalloc, at: u64, areas: i64) {
        v.event(&EventBuilder::new(Kind::PurgeVmapAreaLazy).at(at).set("num_purged", areas).event());
    }

    #[test]
    fn drain_is_timed_from_the_free_that_crossed_the_limit() {
        let mut v = Vmalloc::default();
        free(&mut v, 10, 98);
        free(&mut v, 20, 102);
        free(&mut v, 30, 104);
        purge(&mut v, 35, 0);
        purge(&mut v, 50, 40);
        free(&mut v, 60, 4);
        purge(&mut v, 90, 1);
        assert_eq!((v.frees, v.frees_over_limit, v.lazy_high, v.lazy_max), (4, 2, Some(104), Some(100)));
        assert_eq!((v.drains.count, v.drains.max), (1, 30), "the pass at 90 had no crossing");
        assert_eq!((v.passes(), v.empty, v.pages_drained), (3, 1, 100));
        assert_eq!((v.intervals.count, v.intervals.sum), (2, 55));
    }

    #[test]
    fn failed_searches_have_no_size() {
        let mut v = Vmalloc::default();
        for failed in [0, 1] {
            v.event(&EventBuilder::new(Kind::AllocVmapArea).set("size", 8192).set("failed", failed).event());
        }
        assert_eq!((v.failed, v.sizes.count, v.sizes.sum), (1, 1, 8192));
    }
}

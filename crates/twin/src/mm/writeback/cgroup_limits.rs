//! How much of a cgroup may be dirty, and whether it is more: `mem_cgroup_wb_stats`, `mdtc_calc_avail`,
//! `domain_dirty_limits`, `wb_over_bg_thresh` (4.2 to 6.12).
//!
//! The same parts are taken as of all memory, of the pages of files that the cgroup has and of those that it may still
//! get: as many as its limits leave it and others have clean ones. Where statistics of cgroups are flushed now and then
//! (6.12 and newer), a writer above the limit waits for the next flush, whatever has been written meanwhile. Checked by a test of
//! [`dirty_limits`](crate::page_alloc::dirty_limits), and with `balance_dirty_pages` of a guest (docs/model/writeback.md).

use super::Thresholds;
use super::rate::State;
use crate::mm::kernel::Kernel;
use crate::mm::lru::List;
use crate::mm::region::Entry;
use crate::mm::vmscan::TaskCtx;

impl Kernel {
    /// State at a tick of all memory and of a cgroup, unless that is the root.
    pub(super) fn dirty_states(&mut self, wb: usize, tick: u64) -> (State, Option<State>) {
        let thresholds = self.thresholds();
        let dirty = self.dirty_pages() + self.pages_under_writeback();
        let cgroup = (wb > 0).then(|| self.cgroup_thresholds(wb, true));
        let writeback = &mut self.writeback;
        let of_disk = writeback.part(wb, thresholds.hard, tick);
        let of = &writeback.wbs[wb];
        let (own, limit) = (of.dirty + of.under, writeback.wbs[0].domain.hard(thresholds));
        let global = State { thresholds, dirty, limit, own, of_disk };
        let cgroup = cgroup.map(|(thresholds, dirty)| {
            let of_disk = writeback.part_of_cgroup(wb, thresholds.hard, tick);
            State { thresholds, dirty, limit: writeback.wbs[wb].domain.hard(thresholds), own, of_disk }
        });
        (global, cgroup)
    }

    /// Limits of a cgroup and its dirty pages, with or without those under writeback.
    pub(super) fn cgroup_thresholds(&self, cgroup: usize, with_under: bool) -> (Thresholds, u64) {
        let (lru, limits) = (&self.reclaim.lru, self.writeback.rules.limits);
        let all = limits.available(&self.alloc, &self.stat);
        let below = lru.below(cgroup);
        let count = |at: usize| {
            let of = self.writeback.charged(at);
            of.dirty + if with_under { of.under } else { 0 }
        };
        let dirty = below.into_iter().map(count).sum();
        let under = if with_under { self.pages_under_writeback() } else { 0 };
        let file = |place: usize| {
            let shown = lru.shown(lru.number(place, cgroup));
            shown.pages(List::InactiveFile) + shown.pages(List::ActiveFile)
        };
        let pages: u64 = (0..lru.places()).map(file).sum();
        let headroom = self.reclaim.and_above(cgroup).map(|at| {
            let of = &self.reclaim.groups[at];
            let most = of.config.max.unwrap_or(u64::MAX).min(of.config.high.unwrap_or(u64::MAX));
            most.saturating_sub(of.usage)
        });
        let clean = all.saturating_sub(self.dirty_pages() + under);
        let others = clean.saturating_sub(pages.saturating_sub(dirty));
        let available = pages + headroom.min().unwrap_or(0).min(others);
        (limits.of_cgroup(available, all), dirty)
    }
}

impl TaskCtx<'_> {
    /// More is dirty than the background limit of all memory or of a cgroup, or than the part that its files have of them.
    pub(super) fn over_background(&mut self, number: usize) -> bool {
        let (tick, kernel) = (self.now() / self.jiffy(), &mut self.kernel);
        let (background, dirty) = (kernel.thresholds().background, kernel.dirty_pages());
        let own = kernel.writeback.wbs[number].dirty;
        if dirty > background || own > kernel.writeback.part(number, background, tick) {
            return true;
        }
        if number == 0 {
            return false;
        }
        let (thresholds, dirty) = kernel.cgroup_thresholds(number, false);
        let background = thresholds.background;
        dirty > background || own > kernel.writeback.part_of_cgroup(number, background, tick)
    }

    /// The cgroup that a page of a file in memory is charged to.
    pub(super) fn cgroup_of(&self, region: usize, page: u64) -> Option<usize> {
        match self.memory.regions[region].entry(page) {
            Entry::Present(pfn) => Some(self.kernel.alloc.frames.cgroup(self.kernel.alloc.frames.head(pfn))),
            Entry::Absent | Entry::Zero | Entry::Gone(_) => None,
        }
    }
}

//! How much of a cgroup may be dirty: `mem_cgroup_wb_stats`, `mdtc_calc_avail`, `domain_dirty_limits` (4.2 to 6.12).
//!
//! The same parts are taken as of all memory, of the pages of files that the cgroup has and of those that it may still
//! get: as many as its limits leave it and others have clean ones. Checked by a test here, and with the limits in
//! `balance_dirty_pages` of guests.

use super::Thresholds;
use super::rate::State;
use crate::mm::kernel::Kernel;
use crate::mm::lru::List;

impl Kernel {
    /// State of all memory and, if it is not the root, of a cgroup, for a writer whose files they are at a tick.
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
            let of = &self.writeback.wbs[at];
            of.charged_dirty + if with_under { of.charged_under } else { 0 }
        };
        let dirty = below.into_iter().map(count).sum();
        let under = if with_under { self.pages_under_writeback() } else { 0 };
        let file = |place: usize| {
            let number = lru.number(place, cgroup);
            lru.pages(number, List::InactiveFile) + lru.pages(number, List::ActiveFile)
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

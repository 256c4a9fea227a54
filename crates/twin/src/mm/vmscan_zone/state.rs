//! State of a zone: `struct zone_reclaim_stat`, `pages_scanned`, `all_unreclaimable`, `zone_watermark_ok`,
//! `inactive_anon_is_low_global`, `too_many_isolated`, `clear_active_flags` (2.6.36).
//!
//! A zone is `all_unreclaimable` when six times its reclaimable pages were scanned without a page being freed, until
//! one is freed. Checked by tests here and by the runs of `tests/historic_reclaim.rs`.

use crate::frame::{Flag, Pfn, ZONES, ZoneKind};
use crate::hw::PAGE_SHIFT;
use crate::mm::kernel::Kernel;
use crate::mm::lru::{List, PerType};
use crate::mm::vmscan::TaskCtx;
use crate::vmstat::NodeItem;
use std::collections::BTreeSet;

/// Scans of all that can be reclaimed after which a zone is given up.
const HOPELESS: u64 = 6;

/// Requests without lowmem reserve: their check uses the mark alone.
pub(crate) const NO_RESERVE: ZoneKind = ZoneKind::Dma;

/// A zone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Zone {
    /// Recently scanned pages, and those of them that were put back as active or were referenced (`recent_scanned`,
    /// `recent_rotated`).
    pub scanned: PerType,
    pub rotated: PerType,
    /// By list: scans that were too few to begin with (`nr_saved_scan`).
    pub saved: [u64; 4],
    /// Pages scanned since one was freed to the zone.
    pages_scanned: u64,
    unreclaimable: bool,
    /// Pages off the lists: anonymous memory, files.
    pub isolated: PerType,
    /// A task's batch had dirty pages, all of which a congested device has refused (`ZONE_CONGESTED`).
    pub congested: bool,
    /// Number of frees at that time.
    returned: u64,
}

impl Zone {
    /// Number of frees to the zone: if it has grown, the zone is not hopeless.
    fn refresh(&mut self, returned: u64) {
        if std::mem::replace(&mut self.returned, returned) != returned {
            (self.pages_scanned, self.unreclaimable) = (0, false);
        }
    }
}

/// Isolated pages of a sleeping task.
#[derive(Clone, Debug)]
pub(crate) struct IsolatedPages {
    pub zone: usize,
    /// How many were taken: anonymous memory, files.
    pub taken: PerType,
    /// Pages that were not freed meanwhile.
    pub pages: BTreeSet<Pfn>,
    /// Others have freed some since its check.
    pub lost: bool,
}

impl IsolatedPages {
    /// A page is freed.
    pub(crate) fn forget(&mut self, page: Pfn) {
        self.lost |= self.pages.remove(&page);
    }
}

impl Kernel {
    /// Pages are off the lists (1), or on them again (-1).
    pub(super) fn count_isolated(&mut self, zone: usize, pages: PerType, sign: i64) {
        for (of, item) in [NodeItem::IsolatedAnon, NodeItem::IsolatedFile].into_iter().enumerate() {
            self.stat.pages.add(zone / ZONES, item, sign * pages[of] as i64);
            let isolated = &mut self.reclaim.zones[zone].isolated[of];
            *isolated = isolated.saturating_add_signed(sign * pages[of] as i64);
        }
    }

    /// A task is interrupted: its isolated pages are put back on their lists.
    pub(crate) fn release_isolated(&mut self, pid: i32) {
        let Some(IsolatedPages { zone, taken, pages, .. }) = self.reclaim.isolated.remove(&pid) else { return };
        self.count_isolated(zone, taken, -1);
        for page in pages {
            self.reclaim.lru.add(&mut self.alloc.frames, &mut self.stat.pages, page, false);
        }
    }
}

impl TaskCtx<'_> {
    /// More pages of a type are isolated than are on a zone's inactive list.
    pub(super) fn too_many_isolated(&self, zone: usize, list: List) -> bool {
        self.kernel.reclaim.zones[zone].isolated[usize::from(list.is_file())] > self.list_size(zone, list)
    }

    /// Pages that were taken count as inactive.
    pub(super) fn clear_active(&mut self, pages: impl Iterator<Item = Pfn>) {
        for page in pages {
            if self.kernel.alloc.frames.set_flag(page, Flag::Active, false) {
                self.kernel.stat.events.reclaim.pgdeactivate += 1 << self.kernel.alloc.frames.order(page);
            }
        }
    }

    /// State of a zone.
    pub(super) fn zone(&mut self, zone: usize) -> &mut Zone {
        let returned = self.kernel.alloc.zones[zone].returned;
        let of = &mut self.kernel.reclaim.zones[zone];
        of.refresh(returned);
        of
    }

    /// Pages of a zone were scanned.
    pub(super) fn note_scanned(&mut self, zone: usize, pages: u64) {
        self.zone(zone).pages_scanned += pages;
    }

    /// `zone_reclaimable`: there is hope yet.
    pub(super) fn is_hopeful(&mut self, zone: usize) -> bool {
        let reclaimable = self.kernel.reclaim.reclaimable(&self.kernel.stat.pages, zone);
        self.zone(zone).pages_scanned < reclaimable * HOPELESS
    }

    /// The zone has been given up.
    pub(super) fn is_given_up(&mut self, zone: usize) -> bool {
        self.zone(zone).unreclaimable
    }

    pub(super) fn give_up(&mut self, zone: usize) {
        self.zone(zone).unreclaimable = true;
    }

    /// A zone has more free than a mark, and what is kept from requests for zones up to a kind.
    pub(super) fn is_above(&self, zone: usize, order: u32, mark: u64, highest: ZoneKind) -> bool {
        let free = self.kernel.stat.free_pages_safe(zone);
        self.kernel.alloc.zones[zone].watermark_ok(order, mark, free, highest, Default::default())
    }

    /// Pages of a zone's list.
    pub(super) fn list_size(&self, zone: usize, list: List) -> u64 {
        self.kernel.stat.pages.lru(zone, list as usize)
    }

    /// Too few pages of a type are inactive: of files fewer than are active, of anonymous memory a part that is smaller
    /// the larger the zone is.
    pub(super) fn is_inactive_low(&self, zone: usize, file: bool) -> bool {
        let of = |list| self.list_size(zone, list);
        match file {
            true => of(List::ActiveFile) > of(List::InactiveFile),
            false if self.kernel.reclaim.free_swap.is_none() && !self.decide(|rules| rules.ages_without_swap) => false,
            false => {
                let ratio = inactive_ratio(self.kernel.alloc.zones[zone].present);
                of(List::InactiveAnon) * ratio < of(List::ActiveAnon)
            }
        }
    }

    /// There is room in swap.
    pub(super) fn has_swap(&self) -> bool {
        self.kernel.reclaim.free_swap.is_some_and(|free| free > 0)
    }
}

/// Ratio of active to inactive pages in a zone of this many (`calculate_zone_inactive_ratio`).
fn inactive_ratio(present: u64) -> u64 {
    match present >> (30 - PAGE_SHIFT) {
        0 => 1,
        gigabytes => (10 * gigabytes).isqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_zones_need_few_inactive_pages() {
        assert_eq!([100, 1 << 18, 3 << 18, 10 << 18].map(inactive_ratio), [1, 3, 5, 10]);
    }

    #[test]
    fn a_freed_page_makes_a_zone_reclaimable_again() {
        let mut zone = Zone { pages_scanned: 60, unreclaimable: true, returned: 3, ..Zone::default() };
        zone.refresh(3);
        assert!(zone.pages_scanned == 60 && zone.unreclaimable);
        zone.refresh(4);
        assert!(zone.pages_scanned == 0 && !zone.unreclaimable && zone.returned == 4);
    }
}

//! Watermarks and the reserve of low zones: `init_per_zone_wmark_min`, `__setup_per_zone_wmarks`,
//! `setup_per_zone_lowmem_reserve`, `__zone_watermark_ok` (4.13 to 6.18, and before 4.4), `boost_watermark`; 4.13 to 6.18.
//!
//! Not modelled: the highatomic reserve and CMA. Checked on the marks that
//! kernels 6.1 and 6.18 print (`tests/zoneinfo.rs`).

use super::{MAX_ORDER, Rules, Zone};
use crate::frame::ZoneKind;
use crate::hw::PAGE_SHIFT;

/// Watermarks of a zone, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Below it only urgent requests are served.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// Above it kswapd sleeps.
    pub high: u64,
    /// Target of kswapd when pages are promoted from slower memory.
    pub promo: u64,
}

/// Reserves below the watermark that a request may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserves {
    /// Half of the mark (`__GFP_HIGH`).
    pub high: bool,
    /// A quarter of what is left (atomic requests).
    pub harder: bool,
    /// All that there is (`ALLOC_NO_WATERMARKS`).
    pub all: bool,
}

/// Smallest default of `vm.min_free_kbytes`.
const MIN_FREE_KB: u64 = 128;
const KB_SHIFT: u32 = PAGE_SHIFT - 10;
/// Parts of which `watermark_scale_factor` and `watermark_boost_factor` are.
const FACTOR_PARTS: u64 = 10_000;
/// Marks of a movable zone excluded from lowmem: a thousandth of it within these.
const MOVABLE_MIN: (u64, u64) = (32, 128);
/// Marks stay below this, more than any machine has: so sums of marks of all zones never overflow.
const MOST_PAGES: u64 = 1 << 48;
/// Pageblocks that huge pages need free per zone: two, and one for each pair of three types.
const HUGE_BLOCKS: u64 = 2 + 3 * 3;

/// Sets watermarks and reserves of all zones.
pub(super) fn set_up(zones: &mut [Zone], rules: &Rules) {
    let is_low = |zone: &Zone| !(rules.movable_excluded_from_lowmem && zone.kind == ZoneKind::Movable);
    let lowmem: u64 = zones.iter().filter(|zone| is_low(zone)).map(|zone| zone.managed).sum();
    let populated = zones.iter().filter(|zone| zone.populated() && zone.kind <= ZoneKind::Normal).count() as u64;
    let pages_min = rules.min_free_kbytes.unwrap_or_else(|| {
        let default = ((lowmem << KB_SHIFT) * 16).isqrt().clamp(MIN_FREE_KB, rules.min_free_limit_kb);
        let huge = ((HUGE_BLOCKS * populated) << rules.pageblock_order).min(lowmem / 20) << KB_SHIFT;
        if rules.transparent_hugepage { default.max(huge) } else { default }
    }) >> KB_SHIFT;
    for zone in zones.iter_mut() {
        let share = part(pages_min, zone.managed, lowmem.max(1));
        let step = (share >> 2).max(part(zone.managed, rules.watermark_scale_factor, FACTOR_PARTS));
        let min = if is_low(zone) { share } else { (zone.managed / 1024).clamp(MOVABLE_MIN.0, MOVABLE_MIN.1) };
        zone.marks = Marks { min, low: min + step, high: min + 2 * step, promo: min + 3 * step };
        zone.by_order = rules.marks_by_order;
    }
    for node in zones.chunks_mut(crate::frame::ZONES) {
        for low in 0..node.len() {
            let ratio = rules.lowmem_reserve_ratio.get(low).copied().unwrap_or(0);
            let mut above = 0;
            for high in low + 1..node.len() {
                above += node[high].managed;
                node[low].lowmem_reserve[high] = if ratio > 0 && node[low].managed > 0 { above / ratio } else { 0 };
            }
        }
    }
}

/// A part of some pages, at most [`MOST_PAGES`].
fn part(pages: u64, times: u64, of: u64) -> u64 {
    let part = u128::from(pages) * u128::from(times) / u128::from(of);
    part.min(MOST_PAGES.into()) as u64
}

impl Zone {
    /// True if a block of an order may be taken with `free` pages free in the zone.
    #[inline]
    pub(crate) fn watermark_ok(&self, order: u32, mark: u64, free: u64, highest: ZoneKind, reserves: Reserves) -> bool {
        if reserves.all {
            return true;
        }
        let mut mark = (mark + self.boost) as i64;
        if reserves.high {
            mark -= mark / 2;
        }
        if reserves.harder {
            mark -= mark / 4;
        }
        let left = free as i64 - ((1 << order) - 1);
        if left <= mark + self.lowmem_reserve[highest as usize] as i64 {
            return false;
        }
        let blocks = |order: u32| self.free[order as usize].iter().map(|list| i64::from(list.len())).sum::<i64>();
        if self.by_order {
            return (0..order)
                .try_fold((left, mark), |(left, mark), at| less_an_order(left, mark, at, blocks(at)))
                .is_some();
        }
        order == 0 || (order..=MAX_ORDER).any(|order| blocks(order) > 0)
    }

    /// Raises all marks by a pageblock of an order because pages of different types have been mixed; kswapd is woken for
    /// it if the request `wakes` it.
    pub(super) fn boost_watermark(&mut self, factor: u64, order: u32, wakes: bool) {
        let max = part(self.marks.high, factor, FACTOR_PARTS);
        if factor == 0 || max == 0 || 4 << order > self.managed {
            return;
        }
        self.boost = (self.boost + (1 << order)).min(max.max(1 << order));
        self.boosted |= wakes;
    }
}

/// Free pages without the blocks of an order, and the mark to exceed; `None`: they do not exceed it.
fn less_an_order(left: i64, mark: i64, order: u32, blocks: i64) -> Option<(i64, i64)> {
    let (left, mark) = (left - (blocks << order), mark >> 1);
    (left > mark).then_some((left, mark))
}

#[cfg(test)]
mod tests {
    use super::super::zone;
    use super::*;
    use crate::hw::{Cpu, Machine};

    fn zones(pages: u64, rules: &Rules) -> Vec<Zone> {
        let machine = Machine::pc(&[pages], 0, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        let mut zones = zone::of_machine(&machine);
        set_up(&mut zones, rules);
        zones
    }

    #[test]
    fn the_default_follows_the_square_root_of_memory() {
        let rules = Rules { transparent_hugepage: false, ..Rules::V6_1 };
        let min = |rules: &Rules| zones(1 << 20, rules).iter().map(|zone| zone.marks.min).sum::<u64>();
        // 4 GiB: the square root of 4 x managed kB / 4 x 16 is 8 MiB less what is reserved.
        assert!((2000..2048).contains(&min(&rules)), "{}", min(&rules));
        let set = Rules { min_free_kbytes: Some(40_000), ..rules };
        assert!((9997..=10_000).contains(&min(&set)));
        // Huge pages need 11 pageblocks in each of three zones.
        assert!((11 * 512 * 3 - 3..=11 * 512 * 3).contains(&min(&Rules::V6_1)));
        // A machine of 1 TiB reaches the limit of 4.13; its square root is 128 MiB.
        let limits = [Rules::V4_13, Rules::V6_1].map(|rules| Rules { transparent_hugepage: false, ..rules });
        let min = limits.map(|rules| zones(1 << 28, &rules).iter().map(|zone| zone.marks.min).sum::<u64>());
        assert!((16_382..=16_384).contains(&min[0]) && (32_400..32_768).contains(&min[1]), "{min:?}");
    }

    #[test]
    fn absurd_sysctls_do_not_overflow() {
        let rules = Rules {
            min_free_kbytes: Some(u64::MAX),
            watermark_scale_factor: u64::MAX,
            transparent_hugepage: false,
            ..Rules::V6_1
        };
        let mut zones = zones(1 << 20, &rules);
        assert!(zones.iter().all(|zone| zone.marks.min <= zone.marks.low && zone.marks.low <= zone.marks.high));
        assert!(zones.iter().map(|zone| zone.marks.high).sum::<u64>() >= MOST_PAGES);
        assert!(!zones[1].watermark_ok(0, zones[1].marks.min, 1 << 20, ZoneKind::Dma32, Reserves::default()));
        zones[1].boost_watermark(u64::MAX, 9, true);
        assert_eq!(zones[1].boost, 512);
    }

    #[test]
    fn reserves_and_urgency_move_the_mark() {
        let mut zone = zones(1 << 20, &Rules::V6_1).swap_remove(1);
        zone.lowmem_reserve = [0, 0, 50, 50, 50];
        let ok = |free, highest, reserves| zone.watermark_ok(0, 1000, free, highest, reserves);
        let none = Reserves::default();
        assert!(!ok(1000, ZoneKind::Dma32, none) && ok(1001, ZoneKind::Dma32, none));
        assert!(!ok(1050, ZoneKind::Normal, none) && ok(1051, ZoneKind::Normal, none));
        let urgent = Reserves { high: true, harder: true, all: false };
        assert!(!ok(375, ZoneKind::Dma32, urgent) && ok(376, ZoneKind::Dma32, urgent));
        // No block of the order, with any number of free pages.
        assert!(!zone.watermark_ok(1, 0, 1_000_000, ZoneKind::Dma32, none));
    }

    #[test]
    fn small_blocks_did_not_count_for_large_requests() {
        // 1000 free pages, 20 of them single: 980 have to exceed half of the mark, what is in pairs a quarter.
        assert_eq!(less_an_order(1000, 100, 0, 20), Some((980, 50)));
        assert_eq!(less_an_order(980, 50, 1, 478), None);
        assert_eq!(less_an_order(980, 50, 1, 477), Some((26, 25)));
        let rules = Rules { marks_by_order: true, ..Rules::V6_1 };
        let zone = zones(1 << 20, &rules).swap_remove(1);
        let none = Reserves::default();
        // No block is free, but single pages need none.
        assert!(zone.watermark_ok(0, 10, 11, ZoneKind::Dma, none) && zone.watermark_ok(2, 10, 14, ZoneKind::Dma, none));
        assert!(!zone.watermark_ok(2, 10, 13, ZoneKind::Dma, none));
    }

    #[test]
    fn the_boost_has_a_limit() {
        let mut zone = zones(1 << 20, &Rules::V6_1).swap_remove(1);
        zone.marks.high = 1000;
        let boosts: Vec<u64> = (0..4)
            .map(|_| {
                zone.boost_watermark(15_000, 9, true);
                zone.boost
            })
            .collect();
        assert_eq!(boosts, [512, 1024, 1500, 1500]);
    }
}

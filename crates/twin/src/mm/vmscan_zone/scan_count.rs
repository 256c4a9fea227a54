//! How much of each list to scan: `get_scan_count`, `nr_scan_try_batch` (2.6.36 to 3.5).
//!
//! Anonymous memory and files share the pressure by the share of recently scanned pages that were not in use. Before
//! 3.0 scans of fewer pages than a batch are saved up; since then they are done at once, and kswapd scans at least a
//! batch of a zone that is `all_unreclaimable`. Checked by tests of the arithmetic here.

use super::Zone;
use crate::mm::lru::{List, PerType};
use crate::mm::vmscan::{BATCH, Control, TaskCtx};
use crate::vmstat::ZoneItem;

/// Pages to scan by list, in the order of [`List::EVICTABLE`].
pub(super) type Counts = [u64; 4];

/// Shares of anonymous memory and files, and what they are shares of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    parts: PerType,
    of: u64,
}

/// The shares of lists with this many pages; old scans decay as the lists turn over.
fn shares(zone: &mut Zone, pages: PerType, swappiness: u64) -> Shares {
    let priorities = [swappiness, 200 - swappiness];
    let mut parts = [0; 2];
    for of in 0..2 {
        if zone.scanned[of] > pages[of] / 4 {
            zone.scanned[of] /= 2;
            zone.rotated[of] /= 2;
        }
        parts[of] = (priorities[of] + 1) * (zone.scanned[of] + 1) / (zone.rotated[of] + 1);
    }
    Shares { parts, of: parts[0] + parts[1] + 1 }
}

/// Saves a scan up until there are enough for a batch.
fn batched(saved: &mut u64, scan: u64) -> u64 {
    *saved += scan;
    if *saved >= BATCH { std::mem::take(saved) } else { 0 }
}

/// A scan of nothing is one of a batch if it has to be done.
fn at_least(scan: u64, forced: bool) -> u64 {
    if forced && scan == 0 { BATCH } else { scan }
}

/// Pages to scan of each list of a zone.
pub(super) fn counts(ctx: &mut TaskCtx<'_>, control: &Control, zone: usize) -> Counts {
    let sizes = List::EVICTABLE.map(|list| ctx.list_size(zone, list));
    let (anon, file) = (sizes[0] + sizes[1], sizes[2] + sizes[3]);
    let no_swap = !control.may_swap || !ctx.has_swap();
    let free = ctx.kernel.stat.plain(zone, ZoneItem::FreePages);
    let high = ctx.kernel.alloc.zones[zone].marks.high;
    let swappiness = ctx.kernel.reclaim.rules.swappiness;
    let saves = ctx.decide(|rules| rules.saves_scans);
    let forced = !saves && control.is_kswapd() && ctx.is_given_up(zone);
    let of = ctx.zone(zone);
    let shares = match () {
        () if no_swap => Shares { parts: [0, 1], of: 1 },
        () if file + free <= high => Shares { parts: [1, 0], of: 1 },
        () => shares(of, [anon, file], swappiness),
    };
    let mut counts = [0; 4];
    for (number, list) in List::EVICTABLE.into_iter().enumerate() {
        let mut scan = sizes[number];
        if control.priority > 0 || no_swap {
            scan = at_least(scan >> control.priority, forced) * shares.parts[usize::from(list.is_file())] / shares.of;
        }
        counts[number] = if saves { batched(&mut of.saved[number], scan) } else { scan };
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_pages_reduce_the_share_of_a_type() {
        let mut zone = Zone::default();
        assert_eq!(shares(&mut zone, [1000, 1000], 60), Shares { parts: [61, 141], of: 203 });
        // All anonymous pages were in use, of files one in ten.
        zone.scanned = [200, 200];
        zone.rotated = [200, 20];
        assert_eq!(shares(&mut zone, [1000, 1000], 60), Shares { parts: [61, 141 * 201 / 21], of: 61 + 1349 + 1 });
        // More than a quarter of the list was scanned: the count is halved.
        assert_eq!(shares(&mut zone, [799, 1000], 60).parts, [61 * 101 / 101, 1349]);
        assert_eq!((zone.scanned, zone.rotated), ([100, 200], [100, 20]));
    }

    #[test]
    fn small_scans_are_saved_up() {
        let mut saved = 0;
        assert_eq!([20, 11, 0, 1, 5, 40].map(|scan| batched(&mut saved, scan)), [0, 0, 0, 32, 0, 45]);
        assert_eq!(saved, 0);
    }

    #[test]
    fn kswapd_scans_a_batch_of_unreclaimable_zones() {
        assert_eq!([(0, true), (0, false), (7, true)].map(|(scan, forced)| at_least(scan, forced)), [32, 0, 7]);
    }
}

//! Waiting for the reserve: `throttle_direct_reclaim`, `allow_direct_reclaim` (6.1 to 6.12).
//!
//! While less than half of the reserve below the minimum marks of a node is free, tasks sleep before they reclaim and
//! leave it to kswapd; the rest is for tasks that free memory. A task that may not wait for file systems continues
//! after a second. Not modelled: signals. Checked by `tests/reserve.rs` and against guests (docs/fidelity.md,
//! `pgscan_direct_throttle`).

use super::{MAX_RETRIES, Reason, TaskCtx, Throttle};
use crate::frame::{ZONES, ZoneKind};
use crate::time::Ps;
use crate::vmstat::ZoneItem;

impl TaskCtx<'_> {
    /// More than half of a node's reserve is free. If not, kswapd is woken without further checks.
    pub(super) fn allows_direct_reclaim(&mut self, node: usize) -> bool {
        let kernel = &mut *self.kernel;
        if kernel.reclaim.nodes[node].kswapd_failures >= MAX_RETRIES {
            return true;
        }
        let zones = node * ZONES..=node * ZONES + ZoneKind::Normal as usize;
        let used = zones.filter(|&zone| {
            kernel.alloc.zones[zone].managed > 0 && kernel.reclaim.reclaimable(&kernel.stat.pages, zone) > 0
        });
        let (mut reserve, mut free) = (0, 0);
        for zone in used {
            reserve += kernel.alloc.zones[zone].marks.min + kernel.alloc.zones[zone].boost;
            free += kernel.stat.plain(zone, ZoneItem::FreePages);
        }
        let enough = reserve == 0 || free > reserve / 2;
        let of = &mut kernel.reclaim.nodes[node];
        if !enough && of.kswapd_waits {
            of.kswapd_highest =
                Some(of.kswapd_highest.map_or(ZoneKind::Normal, |highest| highest.min(ZoneKind::Normal)));
            of.kswapd_waits = false;
            kernel.reclaim.wakes.push(node);
        }
        enough
    }

    /// A task sleeps for a node's reserve.
    pub(super) fn wait_for_reserve(&mut self, node: usize) -> Option<(Throttle, Ps)> {
        self.throttle(node, Reason::Reserve)
    }
}

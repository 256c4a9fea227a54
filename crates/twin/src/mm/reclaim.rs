//! The interface of a reclaim algorithm: direct reclaim, kswapd and its wakeup, by the algorithm of the kernel.
//!
//! There are two: the classic LRU with lists per node ([`vmscan`](super::vmscan), 4.8 and later) and with lists per
//! zone ([`vmscan_zone`], 2.6.36 to 3.5). Another one is a variant of [`TaskReclaim`] and of [`KswapdImpl`] and an arm
//! of `wake_all_kswapds`; the slow path, the engine and the build know only these. Isolation and LRU lists are private
//! to the algorithm; it walks mappings and writes pages through [`rmap`](super::rmap).

pub use crate::mm::vmscan::{Retries, Rules};
pub use crate::mm::vmscan_zone::{
    Balanced, Blocks, DirtyFiles, IsolateModes, Neighbours, References, Slabs, SyncPass, Variant, Waits,
};

use crate::frame::{ZONES, ZoneKind};
use crate::mm::kernel::Kernel;
use crate::mm::vmscan::kswapd::Kswapd;
use crate::mm::vmscan::{Control, Direct, Poll, TaskCtx, Throttle};
use crate::mm::vmscan_zone;
use crate::page_alloc::{Caller, Search};

/// A task that reclaims.
#[derive(Clone, Debug)]
pub(crate) enum TaskReclaim {
    PerNode(Direct),
    PerZone(vmscan_zone::Direct),
}

impl TaskReclaim {
    /// A task's reclaim, with the zones that it may take pages of; `again`: it has reclaimed for the same request before.
    pub(crate) fn new(ctx: &TaskCtx<'_>, control: Control, zones: Vec<usize>, again: bool) -> TaskReclaim {
        match ctx.kernel.reclaim.rules.per_zone_lru {
            None => TaskReclaim::PerNode(Direct::new(ctx, control, zones)),
            Some(_) => TaskReclaim::PerZone(vmscan_zone::Direct::new(ctx, control, zones, again)),
        }
    }

    /// The throttle in which it sleeps; `None` where zones are reclaimed, as sleepers are not counted there.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        match self {
            TaskReclaim::PerNode(direct) => direct.throttle(),
            TaskReclaim::PerZone(_) => None,
        }
    }

    /// Continues; at the end, the reclaimed pages, or 1 if there is no reason to give up.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<u64> {
        match self {
            TaskReclaim::PerNode(direct) => direct.step(ctx),
            TaskReclaim::PerZone(direct) => direct.step(ctx),
        }
    }
}

/// The thread of a node that keeps memory free.
#[derive(Clone, Debug)]
pub(crate) enum KswapdImpl {
    PerNode(Kswapd),
    PerZone(vmscan_zone::Kswapd),
}

impl KswapdImpl {
    /// A thread that has just started.
    pub(crate) fn new(rules: &Rules, node: usize) -> KswapdImpl {
        match rules.per_zone_lru {
            None => KswapdImpl::PerNode(Kswapd::new(node)),
            Some(_) => KswapdImpl::PerZone(vmscan_zone::Kswapd::new(node)),
        }
    }

    /// Continues. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        match self {
            KswapdImpl::PerNode(kswapd) => kswapd.step(ctx),
            KswapdImpl::PerZone(kswapd) => kswapd.step(ctx),
        }
    }
}

impl Kernel {
    /// Wakes the kswapds of all nodes that a search may take pages of (`wake_all_kswapds`).
    pub(crate) fn wake_all_kswapds(&mut self, caller: &Caller, search: &Search<'_>) {
        if self.reclaim.rules.per_zone_lru.is_some() {
            let zones: Vec<usize> = self.alloc.zones_of(search).collect();
            let preferred = zones.first().map_or(search.request.highest, |&zone| ZoneKind::ALL[zone % ZONES]);
            return zones.into_iter().for_each(|zone| {
                self.wakeup_kswapd_of_zone(caller.cpu, caller.task, zone, search.request.order, preferred);
            });
        }
        let mut nodes: Vec<usize> = self.alloc.zones_of(search).map(|zone| zone / ZONES).collect();
        nodes.dedup();
        for node in nodes {
            self.wakeup_kswapd(caller.cpu, caller.task, node, search.request);
        }
    }
}

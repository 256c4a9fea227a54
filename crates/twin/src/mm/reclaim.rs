//! Who reclaims, by the rules of the kernel's generation: by node (4.8 and later), or by zone as in 2010.

pub use crate::mm::vmscan::{Retries, Rules};
pub use crate::mm::vmscan_zone::{
    Balanced, Blocks, DirtyFiles, IsolateModes, Neighbours, References, Slabs, SyncPass, Variant, Waits,
};

use crate::mm::vmscan::kswapd::Kswapd;
use crate::mm::vmscan::{Control, Direct, Poll, TaskCtx, Throttle};
use crate::mm::vmscan_zone;

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

    /// The sleep that it has begun and not left; where zones are reclaimed nobody counts who sleeps.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        match self {
            TaskReclaim::PerNode(direct) => direct.throttle(),
            TaskReclaim::PerZone(_) => None,
        }
    }

    /// Goes on; at the end, the pages that were reclaimed, or 1 if there is no reason to give up.
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

    /// Goes on. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        match self {
            KswapdImpl::PerNode(kswapd) => kswapd.step(ctx),
            KswapdImpl::PerZone(kswapd) => kswapd.step(ctx),
        }
    }
}

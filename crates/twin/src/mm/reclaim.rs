//! Who reclaims, by the rules of the kernel's generation: by node (4.8 and later), or by zone as in 2010.

pub use crate::mm::vmscan::{Retries, Rules};
pub use crate::mm::vmscan_zone::{
    Balanced, Blocks, DirtyFiles, IsolateModes, Neighbours, References, Slabs, SyncPass, Variant, Waits,
};

use crate::mm::vmscan::kswapd::Kswapd;
use crate::mm::vmscan::{Control, Direct, Poll, Throttle, World};
use crate::mm::vmscan_zone;

/// A task that reclaims.
#[derive(Clone, Debug)]
pub(crate) enum TaskReclaim {
    ByNode(Direct),
    ByZone(vmscan_zone::Direct),
}

impl TaskReclaim {
    /// A task's reclaim, with the zones that it may take pages of; `again`: it has reclaimed for the same request before.
    pub(crate) fn new(world: &World<'_>, control: Control, zones: Vec<usize>, again: bool) -> TaskReclaim {
        match world.kernel.reclaim.rules.by_zone {
            None => TaskReclaim::ByNode(Direct::new(world, control, zones)),
            Some(_) => TaskReclaim::ByZone(vmscan_zone::Direct::new(world, control, zones, again)),
        }
    }

    /// The sleep that it has begun and not left; where zones are reclaimed nobody counts who sleeps.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        match self {
            TaskReclaim::ByNode(direct) => direct.throttle(),
            TaskReclaim::ByZone(_) => None,
        }
    }

    /// Goes on; at the end, the pages that were reclaimed, or 1 if there is no reason to give up.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Poll<u64> {
        match self {
            TaskReclaim::ByNode(direct) => direct.step(world),
            TaskReclaim::ByZone(direct) => direct.step(world),
        }
    }
}

/// The thread of a node that keeps memory free.
#[derive(Clone, Debug)]
pub(crate) enum NodeThread {
    ByNode(Kswapd),
    ByZone(vmscan_zone::Kswapd),
}

impl NodeThread {
    /// A thread that has just started.
    pub(crate) fn new(rules: &Rules, node: usize) -> NodeThread {
        match rules.by_zone {
            None => NodeThread::ByNode(Kswapd::new(node)),
            Some(_) => NodeThread::ByZone(vmscan_zone::Kswapd::new(node)),
        }
    }

    /// Goes on. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Poll<()> {
        match self {
            NodeThread::ByNode(kswapd) => kswapd.step(world),
            NodeThread::ByZone(kswapd) => kswapd.step(world),
        }
    }
}

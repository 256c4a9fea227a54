//! One reclaim: its purpose, permissions and progress (`struct scan_control`).

use super::{BATCH, DEF_PRIORITY};
use crate::frame::ZoneKind;
use crate::mm::lru::PerType;

/// The reclaimer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reclaimer {
    /// The thread of a node.
    Kswapd,
    /// A task that needs memory.
    Direct,
    /// A task of a cgroup that is at its limit.
    Cgroup(usize),
}

/// Dirty pages found by a pass over a node, total of its batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub dirty: u64,
    pub unqueued_dirty: u64,
    pub congested: u64,
    pub writeback: u64,
    pub immediate: u64,
    pub file_taken: u64,
    pub taken: u64,
}

/// A reclaim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub reclaimer: Reclaimer,
    pub order: u32,
    pub priority: u32,
    /// Highest zone to reclaim from.
    pub highest: ZoneKind,
    pub nr_to_reclaim: u64,
    pub may_writepage: bool,
    pub may_swap: bool,
    pub may_unmap: bool,
    /// The request allows calls into file systems and device I/O.
    pub fs: bool,
    pub io: bool,
    pub gfp: &'static str,
    /// The request insists on its block (`__GFP_REPEAT`; before 4.13).
    pub repeat: bool,
    /// By type: active lists may be shortened.
    pub may_deactivate: [bool; 2],
    pub force_deactivate: bool,
    pub skipped_deactivate: bool,
    /// A task visits all cgroups at each pass.
    pub full_walk: bool,
    /// Cgroups below `memory.low` are scanned too; some have been spared.
    pub low_broken: bool,
    pub low_spared: bool,
    pub cache_trim_mode: bool,
    pub file_is_tiny: bool,
    pub cost: PerType,
    pub compaction_ready: bool,
    /// The last batch was reclaimed for a block up to its end (`reclaim_mode`; before 3.5).
    pub in_mode: bool,
    pub scanned: u64,
    pub reclaimed: u64,
    pub seen: Seen,
}

impl Control {
    /// A reclaim for a request of an order, from the beginning.
    pub(crate) fn new(reclaimer: Reclaimer, order: u32, highest: ZoneKind, gfp: &'static str) -> Control {
        Control {
            reclaimer,
            order,
            priority: DEF_PRIORITY,
            highest,
            nr_to_reclaim: BATCH,
            may_writepage: true,
            may_swap: true,
            may_unmap: true,
            fs: !gfp.contains("NOFS") && !gfp.contains("NOIO"),
            io: !gfp.contains("NOIO"),
            gfp,
            repeat: false,
            may_deactivate: [false; 2],
            force_deactivate: false,
            skipped_deactivate: false,
            full_walk: false,
            low_broken: false,
            low_spared: false,
            cache_trim_mode: false,
            file_is_tiny: false,
            cost: [0; 2],
            compaction_ready: false,
            in_mode: false,
            scanned: 0,
            reclaimed: 0,
            seen: Seen::default(),
        }
    }

    pub(crate) fn is_kswapd(&self) -> bool {
        self.reclaimer == Reclaimer::Kswapd
    }

    /// The cgroup that pages are reclaimed from, with all below it.
    pub(crate) fn target(&self) -> usize {
        match self.reclaimer {
            Reclaimer::Cgroup(cgroup) => cgroup,
            Reclaimer::Kswapd | Reclaimer::Direct => 0,
        }
    }

    pub(crate) fn is_cgroup(&self) -> bool {
        matches!(self.reclaimer, Reclaimer::Cgroup(_))
    }
}

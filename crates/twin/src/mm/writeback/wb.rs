//! What is to be written of the files of one cgroup, and how fast that goes: `struct bdi_writeback` (3.2 to 6.12; one for
//! each cgroup of version 2 from 4.2 on).
//!
//! Number 0 is the root cgroup's. A file belongs to one of them ([`Region::wb`](crate::mm::region::Region)), whoever
//! writes to it; [`foreign`](super::foreign) has what follows if that is another cgroup. Checked by tests of
//! `tests/writeback.rs`.

use super::foreign::{Explicit, Foreign};
use super::inodes::Inodes;
use super::rate::{Domain, Rate};
use crate::time::Ns;
use std::collections::VecDeque;

/// Files of a cgroup on the disk; nothing is dirty at first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wb {
    pub(super) rate: Rate,
    /// The hard limit of the cgroup; the root's is that of all memory.
    pub(super) domain: Domain,
    /// Pages of its files that are dirty, and that are being written; that ever became dirty; whose writes have ended.
    pub(super) dirty: u64,
    pub(super) under: u64,
    pub(super) dirtied: u64,
    pub(super) written: u64,
    /// Pages that are charged to the cgroup, whosever files they are, and those of the last flush of its statistics.
    pub(super) charged: Charged,
    pub(super) flushed: Charged,
    pub(super) inodes: Inodes,
    /// Work for its flusher, and files of others that its tasks write to.
    pub(super) work_list: VecDeque<Explicit>,
    pub(super) foreign: Vec<Foreign>,
    /// Writers are above the hard limit.
    pub(super) exceeded: bool,
    /// All that is dirty is to be written (`WB_start_all`).
    pub(super) start_all: bool,
    /// Pages whose writeback tasks in reclaim have requested (before 4.15).
    pub(super) asked: u64,
    /// The flusher is at work, and was woken meanwhile.
    pub(super) running: bool,
    pub(super) again: bool,
    /// When a later wake-up is due; `None`: none is set.
    pub(super) timer: Option<Ns>,
    /// Time of its last check for old pages.
    pub(super) last_old: Ns,
}

/// Dirty pages, and those under writeback.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charged {
    pub(super) dirty: u64,
    pub(super) under: u64,
}

impl Wb {
    /// Pages dirtied and written since the start.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.dirtied, self.written)
    }
}

//! A kernel that has been running: what `/proc/zoneinfo` and the lab's `/proc/mmtwin_pagesets` showed of one.
//!
//! Taken over are a zone's free pages and, where they are known, the per-CPU lists with what their next refill and
//! return depend on, and what the CPUs have not yet added to the free pages' count. Left out: which free blocks there
//! are, so compaction finds memory less scattered than it was, and all that is on the LRU lists.

use super::{Kernel, KernelError};
use crate::alloc::{MAX_ORDER, PerCpuState, ZoneKind};
use crate::vmstat::ZoneItem;

/// What a zone held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// Its node.
    pub node: usize,
    /// Which zone.
    pub kind: ZoneKind,
    /// Free pages as counted.
    pub free: u64,
    /// What CPUs have not added to that count.
    pub free_diffs: Vec<(u32, i64)>,
    /// Lists of CPUs.
    pub lists: Vec<(u32, PerCpuState)>,
}

impl Kernel {
    /// Goes on from a zone's state. Nothing is counted but the free pages. A zone that is not there is left out.
    ///
    /// # Errors
    /// If a CPU of the state does not run here.
    pub(crate) fn go_on_from(&mut self, state: &ZoneState) -> Result<(), KernelError> {
        let found = self.alloc.zones.iter().position(|zone| (zone.node, zone.kind) == (state.node, state.kind));
        let (Some(zone), Some(&any)) = (found, self.stat.online().first()) else { return Ok(()) };
        let cpus = state.lists.iter().map(|of| of.0).chain(state.free_diffs.iter().map(|of| of.0));
        cpus.into_iter().try_for_each(|cpu| self.check_cpu(cpu))?;
        let diff: i64 = state.free_diffs.iter().map(|of| of.1).sum();
        let listed: u64 = state.lists.iter().map(|of| of.1.pages()).sum();
        self.occupy(zone, state.free.saturating_add_signed(diff) + listed);
        for (cpu, lists) in &state.lists {
            self.alloc.fill_per_cpu(zone, *cpu, lists);
        }
        let counted = self.stat.snapshot(zone, ZoneItem::FreePages);
        let free = self.alloc.free_pages(zone);
        self.stat.add(zone, any, ZoneItem::FreePages, free as i64 - counted as i64 - diff);
        self.stat.refresh();
        for &(cpu, diff) in &state.free_diffs {
            self.stat.add(zone, cpu, ZoneItem::FreePages, diff);
        }
        Ok(())
    }

    /// Takes memory away until a zone has no more pages free than this.
    fn occupy(&mut self, zone: usize, free: u64) {
        let mut most = MAX_ORDER;
        while let Some(over) = self.alloc.free_pages(zone).checked_sub(free).filter(|over| *over > 0) {
            let order = over.ilog2().min(most);
            match self.alloc.occupy(zone, order) {
                true => {}
                false if order == 0 => return,
                // Free blocks may all be smaller.
                false => most = order - 1,
            }
        }
    }
}

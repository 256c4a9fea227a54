//! Counters of scanned and reclaimed pages: `pgscan_*`, `pgsteal_*`, `pgrefill`, `pgrotate_*`; and what reclaim costs.
//!
//! Events of the machine do not count what limits of cgroups reclaim, except in the sums by type; counters of nodes
//! (7.3) have all of it. Not modelled: khugepaged and `memory.reclaim` as reclaimers of their own. Checked by the test
//! of its key (`tests/keys`), by sums of events (`tests/writeback.rs`), and by the counters of docs/fidelity.md.

use super::{BATCH, Control, Reclaim, Reclaimer, TaskCtx};
use crate::vmstat::NodeItem;
use mmtwin_scenario::kernel::ScanBalance;

/// A batch of inactive pages of a type was scanned.
pub(super) fn scanned(ctx: &mut TaskCtx<'_>, control: &Control, node: usize, file: bool, pages: u64) {
    if ctx.kernel.reclaim.rules.counts_by_node {
        let by = if control.is_kswapd() { NodeItem::ScanKswapd } else { NodeItem::ScanDirect };
        return add(ctx, node, [by, if file { NodeItem::ScanFile } else { NodeItem::ScanAnon }], pages);
    }
    let events = &mut ctx.kernel.stat.events.reclaim;
    *(if file { &mut events.pgscan_file } else { &mut events.pgscan_anon }) += pages;
    match control.reclaimer {
        Reclaimer::Kswapd => events.pgscan_kswapd += pages,
        Reclaimer::Direct => events.pgscan_direct += pages,
        Reclaimer::Cgroup(_) => {}
    }
}

/// Pages of a type were freed.
pub(super) fn reclaimed(ctx: &mut TaskCtx<'_>, control: &Control, node: usize, file: bool, pages: u64) {
    if ctx.kernel.reclaim.rules.counts_by_node {
        let by = if control.is_kswapd() { NodeItem::StealKswapd } else { NodeItem::StealDirect };
        return add(ctx, node, [by, if file { NodeItem::StealFile } else { NodeItem::StealAnon }], pages);
    }
    let events = &mut ctx.kernel.stat.events.reclaim;
    *(if file { &mut events.pgsteal_file } else { &mut events.pgsteal_anon }) += pages;
    match control.reclaimer {
        Reclaimer::Kswapd => events.pgsteal_kswapd += pages,
        Reclaimer::Direct => events.pgsteal_direct += pages,
        Reclaimer::Cgroup(_) => {}
    }
}

/// Adds pages to two counters of a node: one by reclaimer, one by type.
fn add(ctx: &mut TaskCtx<'_>, node: usize, items: [NodeItem; 2], pages: u64) {
    items.into_iter().for_each(|item| ctx.kernel.stat.pages.add(node, item, pages as i64));
}

/// A batch of active pages was scanned.
pub(super) fn refilled(ctx: &mut TaskCtx<'_>, control: &Control, node: usize, pages: u64) {
    if ctx.kernel.reclaim.rules.counts_by_node {
        ctx.kernel.stat.pages.add(node, NodeItem::Refill, pages as i64);
    } else if !control.is_cgroup() {
        ctx.kernel.stat.events.reclaim.pgrefill += pages;
    }
}

/// Pages of a type were kept.
pub(super) fn rotated(ctx: &mut TaskCtx<'_>, node: usize, file: bool, pages: u64) {
    if ctx.kernel.reclaim.rules.counts_by_node {
        let of = if file { NodeItem::RotateFile } else { NodeItem::RotateAnon };
        ctx.kernel.stat.pages.add(node, of, pages as i64);
    }
}

impl Reclaim {
    /// Reclaim of a type has cost pages that are written or read again, and some that it kept.
    pub(crate) fn note_cost(&mut self, number: usize, file: bool, (io, kept): (u64, u64)) {
        // From 6.2 on a page that is written or read costs as much as a batch.
        let cost = match self.rules.scan_balance {
            ScanBalance::Rotations | ScanBalance::Cost => io,
            ScanBalance::CostRotations | ScanBalance::CostSampled => io * BATCH + kept,
        };
        match self.rules.scan_balance {
            ScanBalance::CostSampled => self.lru.vec_mut(number).cost_ever[usize::from(file)] += cost,
            _ => self.lru.note_cost(number, file, cost),
        }
    }
}

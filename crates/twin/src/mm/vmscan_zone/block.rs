//! Reclaim so that compaction can work: `should_continue_reclaim` (2.6.38 to 3.5), `compaction_ready` (3.3 to 3.5).
//!
//! A zone is shrunk until compaction has the free pages that it needs, as long as that frees any; a request with
//! `__GFP_REPEAT` continues until no pages are left to scan. A zone that has enough for compaction of a large block is
//! skipped. In kernels with reclaim modes it continues only if the last batch was in reclaim/compaction mode. Checked
//! by tests of [`super`] and by `tests/historic_reclaim.rs`.

use super::Blocks;
use super::state::NO_RESERVE;
use crate::mm::compaction::Status;
use crate::mm::lru::List;
use crate::mm::vmscan::{COSTLY_ORDER, Control, DEF_PRIORITY, TaskCtx, compact_gap};
use crate::page_alloc::Marks;

/// Parts of a zone one of which may be free above the high mark (`KSWAPD_ZONE_BALANCE_GAP_RATIO`).
const GAP_RATIO: u64 = 100;

/// Free pages above its high mark from which on a zone of `present` pages is skipped.
pub(super) fn balance_gap(marks: Marks, present: u64) -> u64 {
    marks.low.min(present.div_ceil(GAP_RATIO))
}

/// True if a zone is shrunk once more, after this many pages were scanned and reclaimed.
pub(super) fn should_continue_reclaim(
    ctx: &TaskCtx<'_>,
    control: &Control,
    zone: usize,
    reclaimed: u64,
    scanned: u64,
) -> bool {
    let for_block = ctx.decide(|rules| match rules.blocks {
        Blocks::Lumpy | Blocks::LumpyByZone | Blocks::Single => false,
        Blocks::CompactionMode => control.in_mode,
        Blocks::Compaction => control.order > COSTLY_ORDER || control.order > 0 && control.priority < DEF_PRIORITY - 2,
    });
    if !for_block || reclaimed == 0 && !(control.repeat && scanned > 0) {
        return false;
    }
    let anon = if ctx.has_swap() { ctx.list_size(zone, List::InactiveAnon) } else { 0 };
    let (inactive, wanted) = (ctx.list_size(zone, List::InactiveFile) + anon, compact_gap(control.order));
    control.reclaimed < wanted && inactive > wanted || ctx.kernel.early_suitable(zone, control.order) == Status::Skipped
}

/// A zone has so much free that compaction is to be tried for a large block.
pub(super) fn compaction_ready(ctx: &mut TaskCtx<'_>, zone: usize, order: u32) -> bool {
    if order <= COSTLY_ORDER || !ctx.decide(|rules| rules.blocks.for_compaction()) {
        return false;
    }
    let of = &ctx.kernel.alloc.zones[zone];
    let mark = of.marks.high + balance_gap(of.marks, of.present) + compact_gap(order);
    let has_room = ctx.is_above(zone, 0, mark, NO_RESERVE);
    // A check whether compaction is deferred counts as an attempt.
    if ctx.early_deferred(zone, order) {
        return has_room;
    }
    has_room && ctx.kernel.early_suitable(zone, order) != Status::Skipped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_a_hundredth_of_the_zone_or_the_low_mark() {
        let marks = Marks { low: 500, ..Marks::default() };
        assert_eq!([1, 100, 101, 1 << 20].map(|present| balance_gap(marks, present)), [1, 1, 2, 500]);
    }
}

//! Tasks that find no memory where zones are reclaimed: `__alloc_pages_slowpath`, `should_alloc_retry`,
//! `__alloc_pages_direct_compact` (2.6.36 to 3.5).
//!
//! A request of a higher order compacts memory first, unless compaction is deferred. In 2010 that is done for costly
//! orders only, and always synchronously; later for all orders, and synchronously only after the first reclaim. Then
//! the task reclaims, and retries as long as reclaim makes progress. A costly order is not retried, unless it has
//! `__GFP_REPEAT` and has freed fewer pages than it requests; from 3.0 on it compacts once more. A request for a huge
//! page (`__GFP_NO_KSWAPD`) fails at once where compaction is deferred. Not modelled: that the allocator tries again
//! between its wait and the next compaction. Checked by `tests/historic_reclaim.rs`.

use super::{AllocSlowpath, Next, reclaim_for, zones_for};
use crate::mm::compaction::{TaskCompact, early};
use crate::mm::vmscan::{COSTLY_ORDER, TaskCtx};
use crate::mm::vmscan_zone::Variant;
use crate::page_alloc::Request;

/// A task compacts for a request.
fn compacts(variant: Variant, request: &Request) -> bool {
    let lets_work = !request.gfp.contains("NOFS") && !request.gfp.contains("NOIO");
    variant.compaction && request.order > if variant.compacts_any_order { 0 } else { COSTLY_ORDER } && lets_work
}

/// Outcome of a request after a reclaim that has freed `reclaimed` pages, `total` in total.
fn decide(request: &Request, reclaimed: u64, total: u64) -> Next {
    let costly = request.order > COSTLY_ORDER;
    let again = !request.no_retry && (!costly || request.repeat && total < 1 << request.order);
    match reclaimed {
        0 if !request.no_retry && costly => Next::GiveUp,
        0 if !request.no_retry => Next::Kill,
        _ if again => Next::Begin,
        _ => Next::Compact,
    }
}

/// Begins the next step of a request; if there is none, returns its outcome.
pub(super) fn begin_next(ctx: &mut TaskCtx<'_>, slowpath: &mut AllocSlowpath, variant: Variant) -> Option<Next> {
    let request = slowpath.failure.request;
    loop {
        match slowpath.next {
            Next::Begin => {
                slowpath.next = Next::Reclaim;
                let sync = slowpath.again || !variant.compacts_any_order;
                if compacts_early(ctx, slowpath, variant, sync) {
                    break;
                }
                if slowpath.deferred && !request.kswapd {
                    slowpath.next = Next::GiveUp;
                }
            }
            Next::Reclaim => {
                slowpath.next = Next::Drain;
                slowpath.direct = Some(reclaim_for(ctx, &slowpath.failure, slowpath.again));
                slowpath.again = true;
                break;
            }
            Next::Drain => {
                slowpath.next = Next::Decide;
                if slowpath.reclaimed > 0 {
                    ctx.kernel.drain_all_pages(ctx.cpu);
                    break;
                }
            }
            Next::Decide => {
                slowpath.total += slowpath.reclaimed;
                slowpath.next = decide(&request, slowpath.reclaimed, slowpath.total);
            }
            Next::Compact => {
                slowpath.next = Next::GiveUp;
                if variant.compacts_any_order && compacts_early(ctx, slowpath, variant, true) {
                    break;
                }
            }
            Next::GiveUp | Next::Kill => return Some(slowpath.next),
        }
    }
    None
}

/// Begins to compact for a request, unless compaction is deferred in the preferred zone.
fn compacts_early(ctx: &mut TaskCtx<'_>, slowpath: &mut AllocSlowpath, variant: Variant, sync: bool) -> bool {
    let request = slowpath.failure.request;
    let zones = zones_for(ctx.kernel, &slowpath.failure);
    let Some(&preferred) = zones.first().filter(|_| compacts(variant, &request)) else { return false };
    slowpath.deferred = ctx.early_deferred(preferred, request.order);
    if slowpath.deferred {
        return false;
    }
    slowpath.sync = sync;
    slowpath.compact = Some(TaskCompact::Early(early::Direct::new(ctx, request, sync, zones)));
    true
}

/// The compaction of a task has produced its block, or not (`false`).
pub(super) fn compacted(ctx: &mut TaskCtx<'_>, slowpath: &AllocSlowpath, got: bool) {
    let order = slowpath.failure.request.order;
    let Some(&preferred) = zones_for(ctx.kernel, &slowpath.failure).first() else { return };
    match got {
        true => ctx.early_defer_reset(preferred, order),
        false if slowpath.sync => ctx.early_defer(preferred, order),
        false => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_are_tried_for_once_unless_they_are_insisted_on() {
        let block = |order| Request { repeat: false, ..Request::KERNEL.of_order(order) };
        assert_eq!((decide(&block(9), 40, 40), decide(&block(3), 1, 900)), (Next::Compact, Next::Begin));
        let hard = Request { repeat: true, ..block(9) };
        assert_eq!([511, 512].map(|total| decide(&hard, 40, total)), [Next::Begin, Next::Compact]);
        // Nothing was freed.
        assert_eq!((decide(&hard, 0, 40), decide(&block(3), 0, 40)), (Next::GiveUp, Next::Kill));
        let modest = Request { no_retry: true, ..block(9) };
        assert_eq!((decide(&modest, 0, 0), decide(&modest, 32, 32)), (Next::Compact, Next::Compact));
    }

    #[test]
    fn small_blocks_were_not_compacted_for_in_2010() {
        let later = Variant { compacts_any_order: true, ..Variant::V2_6_36 };
        let of = |variant, order| compacts(variant, &Request::KERNEL.of_order(order));
        assert_eq!([3, 4].map(|order| of(Variant::V2_6_36, order)), [false, true]);
        assert_eq!([0, 1].map(|order| of(later, order)), [false, true]);
        assert!(!compacts(Variant { compaction: false, ..later }, &Request::KERNEL.of_order(9)));
        assert!(!compacts(later, &Request { gfp: "GFP_NOFS", ..Request::KERNEL.of_order(1) }));
    }
}

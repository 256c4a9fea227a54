//! Tasks that find no memory: the part of `__alloc_pages_slowpath` that may wait (6.1).
//!
//! A task whose allocation fails enters direct reclaim, as a part of that allocation, and tries again; for a block of
//! pages it compacts memory before and after. When nothing more can be reclaimed (`should_reclaim_retry`) or compacted
//! (`should_compact_retry`) a process is killed. Where zones are reclaimed [`pre_4_8`] has the rules. The part before
//! it, which wakes kswapd, is in [`kswapd`]. Checked by `tests/reclaim.rs` and against guests (docs/fidelity.md).

pub(crate) mod kswapd;
pub(crate) mod pre_4_8;

use crate::frame::{Migratetype, ZONES, ZoneKind};
use crate::mm::compaction::{Compact, Priority, Status, TaskCompact, Tries};
use crate::mm::kernel::Kernel;
use crate::mm::reclaim::TaskReclaim;
use crate::mm::vmscan::{COSTLY_ORDER, Control, MAX_RETRIES, NodeReclaim, Poll, Reason, Reclaimer, TaskCtx};
use crate::page_alloc::{AllocationFailure, Request};
use crate::time::{PS_PER_NS, Ps, Watch};
use crate::vmstat::ZoneItem;
use mmtwin_event::value::{CompactPriority, CompactRetryResult, Zone as ZoneName};
use mmtwin_event::vocabulary::{CompactRetry, ReclaimRetryZone};

/// A request that has slept more often than this, and for longer than [`LONG_ENOUGH`], will not succeed. A sleep times
/// out after a tick to a second, but is ended early and repeated whenever kswapd finds nothing to do.
const MOST_SLEEPS: u32 = 10_000;
const LONG_ENOUGH: Ps = 500_000_000 * PS_PER_NS;

/// An allocation that has failed and is in the slow path.
#[derive(Clone, Debug)]
pub(crate) struct AllocSlowpath {
    pub failure: AllocationFailure,
    pub next: Next,
    pub direct: Option<TaskReclaim>,
    pub compact: Option<TaskCompact>,
    /// It has reclaimed before.
    pub again: bool,
    /// Pages freed by the last reclaim.
    pub reclaimed: u64,
    /// Pages freed by all reclaims.
    pub total: u64,
    /// Reclaims in a row that freed nothing.
    fruitless: u32,
    /// How often it has slept, and since when that is too often.
    sleeps: u32,
    asleep_since: Option<Ps>,
    /// Result of the last compaction; whether its success in getting the block is still to be checked.
    compacted: Status,
    unseen: bool,
    tries: Tries,
    /// Where zones are reclaimed: the last compaction waited for pages; the next one was put off.
    pub sync: bool,
    pub deferred: bool,
}

/// Next step of an allocation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Compaction, for a costly order.
    Begin,
    Reclaim,
    /// Reclaimed pages may be on the lists of other CPUs, or charged by them.
    Drain,
    Compact,
    /// To begin again, or to give up.
    Decide,
    /// The request is denied.
    GiveUp,
    /// A process is killed for it.
    Kill,
}

/// Outcome for a task whose allocation has failed.
pub(crate) enum Outcome {
    /// It does what is to be done for memory, and tries again.
    Retry,
    /// Its request is denied.
    Deny,
    /// A process is killed for it.
    Kill(AllocationFailure),
    /// Nothing can be done.
    Fail(AllocationFailure),
}

/// Progress of a task in the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its time is over; it continues.
    On,
    /// It sleeps until then, or until it is woken.
    Asleep(Ps, Throttled),
    /// It has worked and worked while its clock stood still.
    Still,
    /// It waits again and again for memory that no thread frees.
    Waits,
}

/// The slow path of a task.
pub(crate) fn alloc_slowpath(
    ctx: &mut TaskCtx<'_>,
    (task_stall, node_reclaim): (&mut Option<AllocSlowpath>, &mut Option<NodeReclaim>),
    failure: AllocationFailure,
) -> Outcome {
    if !failure.request.may_wait {
        return Outcome::Fail(failure);
    }
    if let Some(asked) = failure.asks {
        *node_reclaim = Some(NodeReclaim::new(ctx, &failure.request, asked));
        return Outcome::Retry;
    }
    let known = task_stall.take().filter(|slowpath| slowpath.failure.request == failure.request);
    let mut slowpath = known.unwrap_or_else(|| AllocSlowpath::new(failure.clone()));
    slowpath.failure = failure;
    let per_zone_lru = ctx.kernel.reclaim.rules.per_zone_lru;
    if std::mem::take(&mut slowpath.unseen) {
        ctx.kernel.stat.events.reclaim.compact_fail += 1;
        if ctx.kernel.reclaim.rules.early_compaction {
            pre_4_8::compacted(ctx, &slowpath, false);
        }
    }
    let next = match per_zone_lru {
        Some(variant) => pre_4_8::begin_next(ctx, &mut slowpath, variant),
        None => slowpath.begin_next(ctx),
    };
    match next {
        Some(Next::Kill) => Outcome::Kill(slowpath.failure),
        Some(_) => Outcome::Deny,
        None => {
            *task_stall = Some(slowpath);
            Outcome::Retry
        }
    }
}

/// A task has its memory.
pub(crate) fn alloc_slowpath_ends(ctx: &mut TaskCtx<'_>, slowpath: Option<AllocSlowpath>) {
    let Some(slowpath) = slowpath.filter(|slowpath| slowpath.unseen) else { return };
    ctx.kernel.stat.events.reclaim.compact_success += 1;
    if ctx.kernel.reclaim.rules.early_compaction {
        return pre_4_8::compacted(ctx, &slowpath, true);
    }
    let order = slowpath.failure.request.order;
    if let Some(&zone) = zones_for(ctx.kernel, &slowpath.failure).first() {
        ctx.compaction_defer_reset(zone, order, true);
    }
}

/// Zones that an allocation may take pages of.
pub(crate) fn zones_for(kernel: &Kernel, failure: &AllocationFailure) -> Vec<usize> {
    let zones = kernel.alloc.zonelist(failure.from).iter().map(|&zone| zone as usize);
    let usable = |zone: &usize| {
        let of = &kernel.alloc.zones[*zone];
        failure.over_limit.is_some() || of.kind <= failure.request.highest && failure.nodes.has(of.node)
    };
    zones.filter(usable).collect()
}

/// A task's reclaim for a request; `again`: it has reclaimed for it before.
pub(crate) fn reclaim_for(ctx: &TaskCtx<'_>, failure: &AllocationFailure, again: bool) -> TaskReclaim {
    let (zones, request) = (zones_for(ctx.kernel, failure), failure.request);
    let control = match failure.over_limit {
        Some(cgroup) => {
            let control = Control::new(Reclaimer::Cgroup(cgroup), 0, ZoneKind::Device, request.gfp);
            Control { nr_to_reclaim: control.nr_to_reclaim.max(1 << request.order), ..control }
        }
        None => Control::new(Reclaimer::Direct, request.order, request.highest, request.gfp),
    };
    let control = Control { repeat: request.repeat, ..control };
    TaskReclaim::new(ctx, control, zones, again)
}

fn compaction_for(ctx: &mut TaskCtx<'_>, failure: &AllocationFailure, priority: Priority) -> TaskCompact {
    let zones = zones_for(ctx.kernel, failure);
    TaskCompact::Today(Compact::new(ctx, failure.request, priority, zones))
}

/// With all that could be reclaimed some zone would have a block of an order.
fn is_worth_retrying(kernel: &Kernel, failure: &AllocationFailure, order: u32) -> bool {
    let (alloc, request) = (&kernel.alloc, failure.request);
    alloc.populated().any(|zone| {
        let of = &alloc.zones[zone];
        let reclaimable = kernel.reclaim.reclaimable(&kernel.stat.pages, zone);
        let available = reclaimable + kernel.stat.snapshot(zone, ZoneItem::FreePages);
        of.kind <= request.highest
            && failure.nodes.has(of.node)
            && of.watermark_ok(order, of.marks.min, available, request.highest, Default::default())
    })
}

/// Runs the node reclaim of a task until a time; `None` if it does not reclaim, or is done.
pub(crate) fn reclaim_node(
    ctx: &mut TaskCtx<'_>,
    node_reclaim: &mut Option<NodeReclaim>,
    until: Ps,
) -> Option<Progress> {
    let at = node_reclaim.as_mut()?;
    let mut watch = Watch::within(ctx.clock());
    while ctx.clock() < until && !ctx.kernel.has_effects() {
        if !watch.goes_on(ctx.clock()) {
            return Some(Progress::Still);
        }
        match at.step(ctx) {
            Poll::On => {}
            Poll::Sleep(until, why) => return Some(Progress::Asleep(until, why)),
            Poll::Done(()) => {
                *node_reclaim = None;
                return None;
            }
        }
    }
    Some(Progress::On)
}

impl AllocSlowpath {
    /// The request.
    pub(crate) fn request(&self) -> Request {
        self.failure.request
    }

    fn new(failure: AllocationFailure) -> AllocSlowpath {
        AllocSlowpath {
            failure,
            next: Next::Begin,
            direct: None,
            compact: None,
            again: false,
            reclaimed: 0,
            total: 0,
            fruitless: 0,
            sleeps: 0,
            asleep_since: None,
            compacted: Status::Skipped,
            unseen: false,
            tries: Tries::NONE,
            sync: false,
            deferred: false,
        }
    }

    /// Begins the next step; if there is none, returns the outcome of the request.
    fn begin_next(&mut self, ctx: &mut TaskCtx<'_>) -> Option<Next> {
        let (request, of_cgroup) = (self.failure.request, self.failure.over_limit.is_some());
        let (costly, compacts) = (request.order > COSTLY_ORDER, request.order > 0);
        loop {
            match self.next {
                Next::Begin => {
                    self.next = Next::Reclaim;
                    if compacts && (costly || request.migratetype != Migratetype::Movable) {
                        self.compact = Some(compaction_for(ctx, &self.failure, Priority::Async));
                        break;
                    }
                }
                Next::Reclaim => {
                    let skipped = matches!(self.compacted, Status::Skipped | Status::Deferred);
                    // A huge page of one node is not worth reclaiming that node.
                    if costly && request.no_retry && (skipped || request.this_node) {
                        self.next = Next::GiveUp;
                        continue;
                    }
                    self.next = Next::Drain;
                    let limit = self.failure.over_limit;
                    limit.iter().for_each(|&cgroup| ctx.kernel.reclaim.note(cgroup, |events| events.max += 1));
                    self.direct = Some(reclaim_for(ctx, &self.failure, self.again));
                    self.again = true;
                    break;
                }
                Next::Drain => {
                    self.next = Next::Compact;
                    if let Some(cgroup) = self.failure.over_limit {
                        self.next = Next::Decide;
                        ctx.kernel.reclaim.drain_stocks(cgroup);
                        break;
                    }
                    if self.reclaimed > 0 {
                        ctx.kernel.drain_all_pages(ctx.cpu);
                        break;
                    }
                }
                Next::Compact => {
                    self.next = Next::Decide;
                    if compacts {
                        let light = costly && request.no_retry;
                        let priority = if light { Priority::Async } else { self.tries.priority };
                        self.compact = Some(compaction_for(ctx, &self.failure, priority));
                        break;
                    }
                }
                Next::Decide => {
                    // Reading ahead gives up at a limit too, but only when nothing more can be reclaimed.
                    let gives_up = if of_cgroup { request.no_retry && self.reclaimed == 0 } else { request.no_retry };
                    if gives_up || !of_cgroup && costly && !request.repeat {
                        self.next = Next::GiveUp;
                        continue;
                    }
                    self.fruitless = if self.reclaimed > 0 { 0 } else { self.fruitless + 1 };
                    let reclaims = of_cgroup || self.fruitless <= MAX_RETRIES && self.should_reclaim_retry(ctx);
                    let goes_on = self.fruitless <= MAX_RETRIES && reclaims;
                    let goes_on = goes_on || self.reclaimed > 0 && self.compacts_again(ctx);
                    self.next = match goes_on {
                        true => Next::Reclaim,
                        // A costly order does not invoke the OOM killer.
                        false if costly => Next::GiveUp,
                        false => Next::Kill,
                    };
                }
                Next::GiveUp | Next::Kill => return Some(self.next),
            }
        }
        None
    }

    /// `should_compact_retry`, with what there is if all is reclaimed that can be.
    fn compacts_again(&mut self, ctx: &mut TaskCtx<'_>) -> bool {
        let (order, failure, result) = (self.failure.request.order, &self.failure, self.compacted);
        if order == 0 {
            return false;
        }
        let Tries { priority, retries } = self.tries;
        let goes_on = self.tries.should_compact_retry(order, result, || is_worth_retrying(ctx.kernel, failure, 0));
        let event = CompactRetry {
            order: order as i32,
            priority: CompactPriority(priority as u32),
            // Failed, progress, or withdrawn.
            compaction_result: CompactRetryResult(match result {
                Status::Complete => 1,
                Status::Success | Status::Continue => 3,
                Status::Skipped | Status::Deferred | Status::Contended | Status::PartialSkipped => 2,
                // No run has this result.
                Status::NotSuitableZone | Status::NoSuitablePage => 2,
            }),
            retries: retries as i32,
            max_retries: (if order > COSTLY_ORDER { MAX_RETRIES / 4 } else { MAX_RETRIES }) as i32,
            should_retry: goes_on,
        };
        ctx.write(&event);
        goes_on
    }

    /// `should_reclaim_retry`: with all that could be reclaimed some zone would have enough.
    fn should_reclaim_retry(&self, ctx: &mut TaskCtx<'_>) -> bool {
        let request = self.failure.request;
        for zone in zones_for(ctx.kernel, &self.failure) {
            let of = &ctx.kernel.alloc.zones[zone];
            let (min_wmark, kind) = (of.marks.min, of.kind);
            let reclaimable = ctx.kernel.reclaim.reclaimable(&ctx.kernel.stat.pages, zone);
            let available = reclaimable + ctx.kernel.stat.snapshot(zone, ZoneItem::FreePages);
            let enough = of.watermark_ok(request.order, min_wmark, available, request.highest, Default::default());
            let event = ReclaimRetryZone {
                node: (zone / ZONES) as i32,
                zone: ZoneName(kind as u32),
                order: request.order as i32,
                reclaimable,
                available,
                min_wmark,
                no_progress_loops: self.fruitless as i32,
                wmark_check: enough,
            };
            ctx.write(&event);
            if enough {
                return true;
            }
        }
        false
    }

    /// Runs the reclaim or compaction of a task until a time; `None` if it has none, or is done.
    pub(crate) fn reclaim(&mut self, ctx: &mut TaskCtx<'_>, until: Ps) -> Option<Progress> {
        if self.direct.is_none() && self.compact.is_none() {
            return None;
        }
        let mut watch = Watch::within(ctx.clock());
        while ctx.clock() < until && !ctx.kernel.has_effects() {
            if !watch.goes_on(ctx.clock()) {
                return Some(Progress::Still);
            }
            match self.step(ctx) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    // Where zones are reclaimed a second pass waits for one page after the other, and each wait ends.
                    let by_zone = ctx.kernel.reclaim.rules.per_zone_lru.is_some();
                    self.sleeps += u32::from(!by_zone || !matches!(why, Some((_, Reason::Writeback))));
                    let now = ctx.clock();
                    if self.sleeps > MOST_SLEEPS && now - *self.asleep_since.get_or_insert(now) > LONG_ENOUGH {
                        // The throttle that has just begun is undone with the run.
                        return Some(Progress::Waits);
                    }
                    return Some(Progress::Asleep(until, why));
                }
                Poll::Done(()) => return None,
            }
        }
        Some(Progress::On)
    }

    /// Continues with the current step.
    fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        if let Some(direct) = &mut self.direct {
            return match direct.step(ctx) {
                Poll::On => Poll::On,
                Poll::Sleep(until, why) => Poll::Sleep(until, why),
                Poll::Done(reclaimed) => {
                    (self.direct, self.reclaimed) = (None, reclaimed);
                    Poll::Done(())
                }
            };
        }
        let Some(compact) = &mut self.compact else { return Poll::Done(()) };
        match compact.step(ctx) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(status) => {
                self.unseen = status != Status::Skipped;
                // Where zones are reclaimed this was counted at the start.
                let counted = matches!(compact, TaskCompact::Early(_));
                ctx.kernel.stat.events.reclaim.compact_stall += u64::from(self.unseen && !counted);
                (self.compact, self.compacted) = (None, status);
                Poll::Done(())
            }
        }
    }
}

/// Why a thread sleeps that reclaims: node and reason.
pub(crate) type Throttled = Option<(usize, Reason)>;

//! Tasks that find no memory: the part of `__alloc_pages_slowpath` that may wait (6.1).
//!
//! A task whose allocation fails reclaims itself, as a part of that allocation, and tries again; for a block of pages it
//! compacts memory before and after. When nothing more can be reclaimed (`should_reclaim_retry`) or compacted
//! (`should_compact_retry`) a process is killed. Where zones are reclaimed it goes by [`super::stall_by_zone`]. Checked by
//! `tests/reclaim.rs` and against guests (docs/fidelity.md).

use super::engine::{Engine, Step, Stop};
use super::watch::Watch;
use crate::alloc::{AllocationFailure, Caller, PageAllocator, Request, ZONES, Zone, ZoneKind};
use crate::compaction::{Compact, Priority, Status, TaskCompact, Tries};
use crate::kernel::{PS_PER_NS, Ps};
use crate::page::Migratetype;
use crate::reclaim::{COSTLY_ORDER, Control, MAX_RETRIES, NodeReclaim, Poll, Reason, TaskReclaim, Who, World};
use crate::vmstat::ZoneItem;
use mmtwin_event::value::{CompactPriority, CompactRetryResult, Zone as ZoneName};
use mmtwin_event::vocabulary::{CompactRetry, ReclaimRetryZone};

/// Shortest and longest turn of a CPU while memory is reclaimed: 50 us and 1 ms.
pub(super) const SHORTEST_TURN: Ps = 50_000_000;
const LONGEST_TURN: Ps = 1_000_000_000;
/// Time in which a page is brought in at most, about: 1 us.
const PAGE: Ps = 1_000_000;

/// Sleeps for one request after which nothing is to be hoped for, if they have taken so long: one ends by itself after a tick
/// to a second, but may be ended and begun again as often as kswapd finds nothing to do.
const MOST_SLEEPS: u32 = 10_000;
const LONG_ENOUGH: Ps = 500_000_000 * PS_PER_NS;

/// What a CPU does at least before another one's turn while memory is reclaimed. In it no CPU takes more than a sixteenth
/// of what lies between the marks where kswapd is woken and where tasks reclaim themselves, on the smallest node.
pub(super) fn turn(alloc: &PageAllocator) -> Ps {
    let gap = |node: &[Zone]| node.iter().map(|zone| zone.marks.low - zone.marks.min).sum::<u64>();
    let smallest = alloc.zones.chunks(ZONES).map(gap).filter(|gap| *gap > 0).min().unwrap_or(0);
    (smallest / 16 * PAGE).clamp(SHORTEST_TURN, LONGEST_TURN)
}

/// An allocation that has failed and goes on.
#[derive(Clone, Debug)]
pub(super) struct Stall {
    pub failure: AllocationFailure,
    pub next: Next,
    pub direct: Option<TaskReclaim>,
    pub compact: Option<TaskCompact>,
    /// It has reclaimed before.
    pub again: bool,
    /// What the last reclaim has freed.
    pub reclaimed: u64,
    /// What all reclaims have freed.
    pub total: u64,
    /// Reclaims in a row that freed nothing.
    fruitless: u32,
    /// How often it has slept, and since when that is too often.
    sleeps: u32,
    asleep_since: Option<Ps>,
    /// What the last compaction came to; whether it is still to be seen that it got the task its block.
    compacted: Status,
    unseen: bool,
    tries: Tries,
    /// Where zones are reclaimed: the last compaction waited for pages; the next one was put off.
    pub sync: bool,
    pub deferred: bool,
}

/// What is tried next for an allocation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Compaction, if it is for a block that is hard to get.
    Begin,
    Reclaim,
    /// What was reclaimed may lie on other CPUs' lists, or be charged by them.
    Drain,
    Compact,
    /// To begin again, or to give up.
    Decide,
    /// The request is denied.
    GiveUp,
    /// Somebody is killed for it.
    Kill,
}

impl Engine<'_> {
    /// A thread has found no memory: it does something for it, and tries again; or it is the end.
    pub(super) fn stalled(&mut self, thread: usize, failure: AllocationFailure) -> Result<Step, Stop> {
        if !failure.request.may_wait {
            return Err(Stop::OutOfMemory(thread, failure));
        }
        if let Some(asked) = failure.asks {
            let Caller { cpu, task, .. } = self.threads[thread].caller;
            let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
            self.threads[thread].node_reclaim = Some(NodeReclaim::new(&mut world, &failure.request, asked));
            return Ok(Step::On);
        }
        let known = self.threads[thread].stall.take().filter(|stall| stall.failure.request == failure.request);
        let mut stall = known.unwrap_or_else(|| Stall::new(failure.clone()));
        stall.failure = failure;
        let by_zone = self.kernel.reclaim.rules.by_zone;
        if std::mem::take(&mut stall.unseen) {
            self.kernel.stat.events.reclaim.compact_fail += 1;
            if self.kernel.reclaim.rules.early_compaction {
                self.compacted_early(thread, &stall, false);
            }
        }
        if let Some(variant) = by_zone {
            return self.stalled_by_zone(thread, stall, variant);
        }
        let (request, of_cgroup) = (stall.failure.request, stall.failure.over_limit.is_some());
        let (costly, compacts) = (request.order > COSTLY_ORDER, request.order > 0);
        loop {
            match stall.next {
                Next::Begin => {
                    stall.next = Next::Reclaim;
                    if compacts && (costly || request.migratetype != Migratetype::Movable) {
                        stall.compact = Some(self.compaction_for(thread, &stall.failure, Priority::Async));
                        break;
                    }
                }
                Next::Reclaim => {
                    let skipped = matches!(stall.compacted, Status::Skipped | Status::Deferred);
                    if costly && request.no_retry && skipped {
                        stall.next = Next::GiveUp;
                        continue;
                    }
                    stall.next = Next::Drain;
                    let limit = stall.failure.over_limit;
                    limit.iter().for_each(|&cgroup| self.kernel.reclaim.note(cgroup, |events| events.max += 1));
                    stall.direct = Some(self.reclaim_for(thread, &stall.failure, stall.again));
                    stall.again = true;
                    break;
                }
                Next::Drain => {
                    stall.next = Next::Compact;
                    if let Some(cgroup) = stall.failure.over_limit {
                        stall.next = Next::Decide;
                        self.kernel.reclaim.drain_stocks(cgroup);
                        break;
                    }
                    if stall.reclaimed > 0 {
                        self.kernel.drain_all_pages(self.threads[thread].caller.cpu);
                        break;
                    }
                }
                Next::Compact => {
                    stall.next = Next::Decide;
                    if compacts {
                        stall.compact = Some(self.compaction_for(thread, &stall.failure, stall.tries.priority));
                        break;
                    }
                }
                Next::Decide => {
                    // Reading ahead gives up at a limit too, but only when nothing more can be reclaimed.
                    let gives_up = if of_cgroup { request.no_retry && stall.reclaimed == 0 } else { request.no_retry };
                    if gives_up || !of_cgroup && costly && !request.repeat {
                        stall.next = Next::GiveUp;
                        continue;
                    }
                    stall.fruitless = if stall.reclaimed > 0 { 0 } else { stall.fruitless + 1 };
                    let reclaims =
                        of_cgroup || stall.fruitless <= MAX_RETRIES && self.should_reclaim_retry(thread, &stall);
                    let goes_on = stall.fruitless <= MAX_RETRIES && reclaims;
                    let goes_on = goes_on || stall.reclaimed > 0 && self.compacts_again(thread, &mut stall);
                    stall.next = match goes_on {
                        true => Next::Reclaim,
                        // Nobody is killed for a large block.
                        false if costly => Next::GiveUp,
                        false => Next::Kill,
                    };
                }
                Next::GiveUp => return Ok(self.deny(thread)),
                Next::Kill => return self.kill_for(thread, stall.failure).map(|()| Step::On),
            }
        }
        self.threads[thread].stall = Some(stall);
        Ok(Step::On)
    }

    /// A thread's request is denied.
    pub(super) fn deny(&mut self, thread: usize) -> Step {
        self.threads[thread].denied = true;
        Step::On
    }

    /// `should_compact_retry`, with what there is if all is reclaimed that can be.
    fn compacts_again(&mut self, thread: usize, stall: &mut Stall) -> bool {
        let (order, failure, result) = (stall.failure.request.order, &stall.failure, stall.compacted);
        if order == 0 {
            return false;
        }
        let Tries { priority, retries } = stall.tries;
        let goes_on = stall.tries.go_on(order, result, || self.is_worth_retrying(failure, 0));
        let event = CompactRetry {
            order: order as i32,
            priority: CompactPriority(priority as u32),
            // Failed, progress, or withdrawn.
            compaction_result: CompactRetryResult(match result {
                Status::Complete => 1,
                Status::Success | Status::Continue => 3,
                Status::Skipped | Status::Deferred | Status::Contended | Status::PartialSkipped => 2,
                // No run comes out like this.
                Status::NotSuitableZone | Status::NoSuitablePage => 2,
            }),
            retries: retries as i32,
            max_retries: (if order > COSTLY_ORDER { MAX_RETRIES / 4 } else { MAX_RETRIES }) as i32,
            should_retry: goes_on,
        };
        let Caller { cpu, task, .. } = self.threads[thread].caller;
        let at = self.kernel.now(cpu);
        self.kernel.probe.write(at, cpu, task, &event, b"");
        goes_on
    }

    /// A thread has got its memory.
    pub(super) fn stall_ends(&mut self, thread: usize) {
        let Some(stall) = self.threads[thread].stall.take().filter(|stall| stall.unseen) else { return };
        self.kernel.stat.events.reclaim.compact_success += 1;
        if self.kernel.reclaim.rules.early_compaction {
            return self.compacted_early(thread, &stall, true);
        }
        let (caller, order) = (self.threads[thread].caller, stall.failure.request.order);
        let zones = self.zones_for(&stall.failure);
        let mut world =
            World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        if let Some(&zone) = zones.first() {
            world.compaction_defer_reset(zone, order, true);
        }
    }

    /// Zones that an allocation may take pages of.
    pub(super) fn zones_for(&self, failure: &AllocationFailure) -> Vec<usize> {
        let zones = self.kernel.alloc.zonelist(failure.from).iter().map(|&zone| zone as usize);
        let usable = |zone: &usize| {
            let of = &self.kernel.alloc.zones[*zone];
            failure.over_limit.is_some() || of.kind <= failure.request.highest && failure.nodes.has(of.node)
        };
        zones.filter(usable).collect()
    }

    pub(super) fn reclaim_for(&mut self, thread: usize, failure: &AllocationFailure, again: bool) -> TaskReclaim {
        let (zones, caller, request) = (self.zones_for(failure), self.threads[thread].caller, failure.request);
        let world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        let control = match failure.over_limit {
            Some(cgroup) => Control::new(Who::Cgroup(cgroup), 0, ZoneKind::Device, request.gfp),
            None => Control::new(Who::Direct, request.order, request.highest, request.gfp),
        };
        let control = Control { repeat: request.repeat, ..control };
        TaskReclaim::new(&world, control, zones, again)
    }

    fn compaction_for(&mut self, thread: usize, failure: &AllocationFailure, priority: Priority) -> TaskCompact {
        let (zones, caller) = (self.zones_for(failure), self.threads[thread].caller);
        let mut world =
            World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        TaskCompact::Today(Compact::new(&mut world, failure.request, priority, zones))
    }

    /// `should_reclaim_retry`: with all that could be reclaimed some zone would have enough.
    fn should_reclaim_retry(&mut self, thread: usize, stall: &Stall) -> bool {
        let (request, Caller { cpu, task, .. }) = (stall.failure.request, self.threads[thread].caller);
        for zone in self.zones_for(&stall.failure) {
            let of = &self.kernel.alloc.zones[zone];
            let (min_wmark, kind) = (of.marks.min, of.kind);
            let reclaimable = self.kernel.reclaim.reclaimable(&self.kernel.stat.pages, zone);
            let available = reclaimable + self.kernel.stat.snapshot(zone, ZoneItem::FreePages);
            let enough = of.watermark_ok(request.order, min_wmark, available, request.highest, Default::default());
            let event = ReclaimRetryZone {
                node: (zone / ZONES) as i32,
                zone: ZoneName(kind as u32),
                order: request.order as i32,
                reclaimable,
                available,
                min_wmark,
                no_progress_loops: stall.fruitless as i32,
                wmark_check: enough,
            };
            let at = self.kernel.now(cpu);
            self.kernel.probe.write(at, cpu, task, &event, b"");
            if enough {
                return true;
            }
        }
        false
    }

    /// With all that could be reclaimed some zone would have a block of an order.
    fn is_worth_retrying(&self, failure: &AllocationFailure, order: u32) -> bool {
        let (alloc, request) = (&self.kernel.alloc, failure.request);
        alloc.populated().any(|zone| {
            let of = &alloc.zones[zone];
            let reclaimable = self.kernel.reclaim.reclaimable(&self.kernel.stat.pages, zone);
            let available = reclaimable + self.kernel.stat.snapshot(zone, ZoneItem::FreePages);
            of.kind <= request.highest
                && failure.nodes.has(of.node)
                && of.watermark_ok(order, of.marks.min, available, request.highest, Default::default())
        })
    }

    /// Lets a thread that reclaims a node before it takes memory of another do so until a time; `None` if it does not, or is
    /// done.
    pub(super) fn reclaim_node(&mut self, thread: usize, until: Ps) -> Option<Step> {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let node_reclaim = at.node_reclaim.as_mut()?;
        let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        let mut watch = Watch::within(world.kernel.clock(cpu));
        while world.kernel.clock(cpu) < until && !world.kernel.wants_attention() {
            if !watch.goes_on(world.kernel.clock(cpu)) {
                return Some(Step::Still);
            }
            match node_reclaim.step(&mut world) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    at.throttled = why;
                    return Some(Step::Asleep(until));
                }
                Poll::Done(()) => {
                    at.node_reclaim = None;
                    return None;
                }
            }
        }
        Some(Step::On)
    }

    /// Lets a thread that has to reclaim or compact do so until a time; `None` if it has not, or is done.
    pub(super) fn reclaim(&mut self, thread: usize, until: Ps) -> Option<Step> {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let stall = at.stall.as_mut().filter(|stall| stall.direct.is_some() || stall.compact.is_some())?;
        let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        let mut watch = Watch::within(world.kernel.clock(cpu));
        while world.kernel.clock(cpu) < until && !world.kernel.wants_attention() {
            if !watch.goes_on(world.kernel.clock(cpu)) {
                return Some(Step::Still);
            }
            match stall.step(&mut world) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    stall.sleeps += 1;
                    let now = world.kernel.clock(cpu);
                    if stall.sleeps > MOST_SLEEPS && now - *stall.asleep_since.get_or_insert(now) > LONG_ENOUGH {
                        // The throttle that has just begun is undone with the run.
                        return Some(Step::Waits);
                    }
                    at.throttled = why;
                    return Some(Step::Asleep(until));
                }
                Poll::Done(()) => return None,
            }
        }
        Some(Step::On)
    }
}

impl Stall {
    /// What was asked for.
    pub(super) fn request(&self) -> Request {
        self.failure.request
    }

    fn new(failure: AllocationFailure) -> Stall {
        Stall {
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

    /// Goes on with what is done for memory.
    fn step(&mut self, world: &mut World<'_>) -> Poll<()> {
        if let Some(direct) = &mut self.direct {
            return match direct.step(world) {
                Poll::On => Poll::On,
                Poll::Sleep(until, why) => Poll::Sleep(until, why),
                Poll::Done(reclaimed) => {
                    (self.direct, self.reclaimed) = (None, reclaimed);
                    Poll::Done(())
                }
            };
        }
        let Some(compact) = &mut self.compact else { return Poll::Done(()) };
        match compact.step(world) {
            Poll::On => Poll::On,
            Poll::Sleep(until, why) => Poll::Sleep(until, why),
            Poll::Done(status) => {
                self.unseen = status != Status::Skipped;
                // What zones are reclaimed for has been counted when it began.
                let counted = matches!(compact, TaskCompact::Early(_));
                world.kernel.stat.events.reclaim.compact_stall += u64::from(self.unseen && !counted);
                (self.compact, self.compacted) = (None, status);
                Poll::Done(())
            }
        }
    }
}

/// Why a thread sleeps that reclaims: node and reason.
pub(super) type Throttled = Option<(usize, Reason)>;

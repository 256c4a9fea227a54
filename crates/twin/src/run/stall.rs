//! Tasks that find no memory: the part of `__alloc_pages_slowpath` that may wait (6.1).
//!
//! A task whose allocation fails reclaims itself, as a part of that allocation, and tries again; for a block of pages it
//! compacts memory before and after. It gives up when nothing more can be reclaimed (`should_reclaim_retry`) or
//! compacted (`should_compact_retry`). Checked by `tests/reclaim.rs` and against guests (docs/fidelity.md).

use super::engine::{Engine, Step, Stop};
use crate::alloc::{AllocationFailure, PageAllocator, ZONES, Zone, ZoneKind};
use crate::compaction::{Compact, Priority, Status, Tries};
use crate::kernel::Ps;
use crate::page::Migratetype;
use crate::reclaim::{COSTLY_ORDER, Control, MAX_RETRIES, Poll, Reason, TaskReclaim, Who, World};
use crate::vmstat::ZoneItem;

/// Shortest and longest turn of a CPU while memory is reclaimed: 50 us and 1 ms.
pub(super) const SHORTEST_TURN: Ps = 50_000_000;
const LONGEST_TURN: Ps = 1_000_000_000;
/// Time in which a page is brought in at most, about: 1 us.
const PAGE: Ps = 1_000_000;

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
    failure: AllocationFailure,
    next: Next,
    direct: Option<TaskReclaim>,
    compact: Option<Compact>,
    /// It has reclaimed before.
    again: bool,
    /// What the last reclaim has freed.
    reclaimed: u64,
    /// Reclaims in a row that freed nothing.
    fruitless: u32,
    /// What the last compaction came to; whether it is still to be seen that it got the task its block.
    compacted: Status,
    unseen: bool,
    tries: Tries,
}

/// What is tried next for an allocation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Compaction, if it is for a block that is hard to get.
    Begin,
    Reclaim,
    /// What was reclaimed may lie on other CPUs' lists, or be charged by them.
    Drain,
    Compact,
    /// To begin again, or to give up.
    Decide,
}

impl Engine<'_> {
    /// A thread has found no memory: it does something for it, and tries again; or it is the end.
    pub(super) fn stalled(&mut self, thread: usize, failure: AllocationFailure) -> Result<Step, Stop> {
        if !failure.request.may_wait {
            return Err(Stop::OutOfMemory(thread, failure));
        }
        let known = self.threads[thread].stall.take().filter(|stall| stall.failure.request == failure.request);
        let mut stall = known.unwrap_or_else(|| Stall::new(failure.clone()));
        stall.failure = failure;
        if std::mem::take(&mut stall.unseen) {
            self.kernel.stat.events.reclaim.compact_fail += 1;
        }
        let (request, of_cgroup) = (stall.failure.request, stall.failure.over_limit.is_some());
        let (costly, by_zone) = (request.order > COSTLY_ORDER, self.kernel.reclaim.rules.by_zone.is_some());
        let compacts = request.order > 0 && !by_zone;
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
                        self.threads[thread].denied = true;
                        return Ok(Step::On);
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
                        let online = self.kernel.stat.online().to_vec();
                        online.into_iter().for_each(|cpu| self.kernel.drain_pages(cpu));
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
                    if !of_cgroup && (request.no_retry || costly) {
                        self.threads[thread].denied = true;
                        return Ok(Step::On);
                    }
                    stall.fruitless = if stall.reclaimed > 0 { 0 } else { stall.fruitless + 1 };
                    let reclaims = match by_zone {
                        // Where there is hope yet a reclaim has told of a page at least.
                        true => stall.reclaimed > 0,
                        false => of_cgroup || self.is_worth_retrying(&stall.failure, request.order),
                    };
                    let goes_on = stall.fruitless <= MAX_RETRIES && reclaims;
                    if !(goes_on || stall.reclaimed > 0 && self.compacts_again(&mut stall)) {
                        self.kernel.stat.events.reclaim.oom_kill += 1;
                        let limit = stall.failure.over_limit;
                        limit.iter().for_each(|&cgroup| self.kernel.reclaim.note(cgroup, |events| events.oom += 1));
                        return Err(Stop::OutOfMemory(thread, stall.failure));
                    }
                    stall.next = Next::Reclaim;
                }
            }
        }
        self.threads[thread].stall = Some(stall);
        Ok(Step::On)
    }

    /// `should_compact_retry`, with what there is if all is reclaimed that can be.
    fn compacts_again(&self, stall: &mut Stall) -> bool {
        let (order, failure) = (stall.failure.request.order, &stall.failure);
        let compacts = order > 0 && self.kernel.reclaim.rules.by_zone.is_none();
        compacts && stall.tries.go_on(order, stall.compacted, || self.is_worth_retrying(failure, 0))
    }

    /// A thread has got its memory.
    pub(super) fn stall_ends(&mut self, thread: usize) {
        let Some(stall) = self.threads[thread].stall.take().filter(|stall| stall.unseen) else { return };
        self.kernel.stat.events.reclaim.compact_success += 1;
        let (caller, order) = (self.threads[thread].caller, stall.failure.request.order);
        let zones = self.zones_for(&stall.failure);
        let mut world =
            World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        if let Some(&zone) = zones.first() {
            world.compaction_defer_reset(zone, order, true);
        }
    }

    /// Zones that an allocation may take pages of.
    fn zones_for(&self, failure: &AllocationFailure) -> Vec<usize> {
        let zones = self.kernel.alloc.zonelist(failure.from).iter().map(|&zone| zone as usize);
        let usable = |zone: &usize| {
            let of = &self.kernel.alloc.zones[*zone];
            failure.over_limit.is_some() || of.kind <= failure.request.highest && failure.nodes.has(of.node)
        };
        zones.filter(usable).collect()
    }

    fn reclaim_for(&mut self, thread: usize, failure: &AllocationFailure, again: bool) -> TaskReclaim {
        let (zones, caller, request) = (self.zones_for(failure), self.threads[thread].caller, failure.request);
        let world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        let control = match failure.over_limit {
            Some(cgroup) => Control::new(Who::Cgroup(cgroup), 0, ZoneKind::Device, request.gfp),
            None => Control::new(Who::Direct, request.order, request.highest, request.gfp),
        };
        TaskReclaim::new(&world, control, zones, again)
    }

    fn compaction_for(&mut self, thread: usize, failure: &AllocationFailure, priority: Priority) -> Compact {
        let (zones, caller) = (self.zones_for(failure), self.threads[thread].caller);
        let mut world =
            World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        Compact::new(&mut world, failure.request, priority, zones)
    }

    /// `should_reclaim_retry`: with all that could be reclaimed some zone would have enough.
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

    /// Lets a thread that has to reclaim or compact do so until a time; `None` if it has not, or is done.
    pub(super) fn reclaim(&mut self, thread: usize, until: Ps) -> Option<Step> {
        let at = &mut self.threads[thread];
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let stall = at.stall.as_mut().filter(|stall| stall.direct.is_some() || stall.compact.is_some())?;
        let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        while world.kernel.clock(cpu) < until && !world.kernel.wants_attention() {
            match stall.step(&mut world) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
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
    fn new(failure: AllocationFailure) -> Stall {
        Stall {
            failure,
            next: Next::Begin,
            direct: None,
            compact: None,
            again: false,
            reclaimed: 0,
            fruitless: 0,
            compacted: Status::Skipped,
            unseen: false,
            tries: Tries::NONE,
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
                (self.compact, self.compacted, self.unseen) = (None, status, status != Status::Skipped);
                world.kernel.stat.events.reclaim.compact_stall += u64::from(self.unseen);
                Poll::Done(())
            }
        }
    }
}

/// Why a thread sleeps that reclaims: node and reason.
pub(super) type Throttled = Option<(usize, Reason)>;

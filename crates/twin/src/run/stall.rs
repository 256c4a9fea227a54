//! Reclaim in a run: tasks that find no memory, kswapd's threads, pages whose writes end, and who is woken by that.
//!
//! A task whose allocation fails reclaims itself, as a part of that allocation, and tries again; for a block of pages it
//! compacts memory before and after. It gives up when nothing more can be reclaimed (`should_reclaim_retry`) or compacted. kswapd runs as a thread of its node: woken, it takes the CPU
//! at once, as a task that has slept does, and shares it then.

use super::RunError;
use super::engine::{Engine, Step, Stop};
use super::process::{Doing, Process, Thread};
use crate::alloc::{AllocationFailure, Caller, PageAllocator, Policy, ZONES, Zone, ZoneKind};
use crate::compaction::{Compact, Priority, Status, Tries};
use crate::kernel::Ps;
use crate::page::Migratetype;
use crate::probe::Task;
use crate::reclaim::{COSTLY_ORDER, Control, MAX_RETRIES, NodeThread, Poll, Reason, TaskReclaim, Who, World};
use crate::vmstat::ZoneItem;

/// Id of the first kswapd.
const FIRST_KSWAPD: i32 = 60;

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
    /// Makes kswapd's threads, one per node with memory.
    pub(super) fn start_kswapds(&mut self) {
        for node in 0..self.kernel.machine.nodes.len() {
            if (0..ZONES).all(|kind| self.kernel.alloc.zones[node * ZONES + kind].managed == 0) {
                continue;
            }
            let pid = FIRST_KSWAPD + node as i32;
            let cpus = self.kernel.machine.cpus_of(node);
            let cpu = cpus.first().copied().unwrap_or(0);
            let caller = Caller::new(cpu, Task { pid, tgid: pid }, Policy::Default);
            let kswapd = Doing::Kswapd(Box::new(NodeThread::new(&self.kernel.reclaim.rules, node)));
            let thread = self.add_kernel_thread(format!("kswapd{node}"), caller, kswapd);
            self.kswapds.push((node, thread));
        }
    }

    /// Adds a thread of the kernel.
    pub(super) fn add_kernel_thread(&mut self, name: String, caller: Caller, doing: Doing) -> usize {
        let thread = self.threads.len();
        self.threads.push(Thread::of_kernel(self.processes.len(), caller, doing));
        self.processes.push(Process::of_kernel(name, thread));
        thread
    }

    /// Threads of the kernel: kswapds, kcompactds and those that write back.
    pub(super) fn kernel_threads(&self) -> impl Iterator<Item = usize> + use<'_> {
        let kswapds = self.kswapds.iter().map(|kswapd| kswapd.1);
        let kcompactds = self.kcompactds.iter().map(|kcompactd| kcompactd.1);
        kswapds.chain(kcompactds).chain(self.writers_back.iter().flat_map(|of| [of.flusher, of.ender]))
    }

    /// Threads of the workload; those of the kernel come behind them.
    pub(super) fn workload_threads(&self) -> usize {
        self.threads.len() - self.kernel_threads().count()
    }

    /// Who waits for memory, pages or reclaim has something to do: time goes in small steps.
    pub(super) fn reclaims(&self) -> bool {
        let works = |&(_, thread): &(usize, usize)| self.queues.holds(self.threads[thread].caller.cpu, thread);
        self.kswapds.iter().chain(&self.kcompactds).any(works)
    }

    /// Does at once what reclaim and faults have left to be done.
    pub(super) fn attend(&mut self, cpu: u32) -> Result<(), RunError> {
        let at = self.kernel.clock(cpu);
        self.attend_writeback(cpu)?;
        self.attend_compaction(at)?;
        for (node, reason) in std::mem::take(&mut self.kernel.reclaim.unthrottled) {
            let sleepers = self.threads.iter().enumerate();
            let woken: Vec<usize> =
                sleepers.filter(|(_, thread)| thread.throttled == Some((node, reason))).map(|(i, _)| i).collect();
            for thread in woken {
                self.threads[thread].throttled = None;
                self.wake(thread, at)?;
            }
        }
        for node in std::mem::take(&mut self.kernel.reclaim.wakes) {
            let Some(&(_, thread)) = self.kswapds.iter().find(|(of, _)| *of == node) else { continue };
            let cpus = self.kernel.machine.cpus_of(node);
            self.wake_kernel_thread(thread, cpus, at)?;
        }
        Ok(())
    }

    /// Wakes a thread of the kernel that runs on some CPUs or, if they are none, on all.
    pub(super) fn wake_kernel_thread(&mut self, thread: usize, cpus: Vec<u32>, at: Ps) -> Result<(), RunError> {
        let to = self.kernel_thread_cpu(cpus, self.threads[thread].caller.cpu);
        if to != self.threads[thread].caller.cpu {
            self.set_cpu(thread, to);
        }
        self.threads[thread].sleeps += 1;
        self.apart = false;
        let idle = self.queues.enqueue_first(to, thread);
        if idle {
            self.kernel.wait(to, at);
            self.kernel.leave_idle(to)?;
        }
        self.make_ready(to);
        Ok(())
    }

    /// Where a thread of the kernel runs: where it was if that CPU is idle, else on an idle one, else where it was.
    fn kernel_thread_cpu(&self, cpus: Vec<u32>, before: u32) -> u32 {
        let all: Vec<u32> = if cpus.is_empty() { self.kernel.stat.online().to_vec() } else { cpus };
        let idle = |cpu: &&u32| self.queues.len(**cpu) == 0 && self.kernel.stat.is_online(**cpu);
        if idle(&&before) && all.contains(&before) {
            return before;
        }
        let known = Some(before).filter(|cpu| all.contains(cpu) && self.kernel.stat.is_online(*cpu));
        all.iter().find(idle).copied().or(known).or_else(|| all.first().copied()).unwrap_or(0)
    }

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

    /// Lets a kswapd work until a time.
    pub(super) fn balance_node(&mut self, thread: usize, until: Ps) -> Step {
        let at = &mut self.threads[thread];
        let Doing::Kswapd(kswapd) = &mut at.doing else { return Step::Ended };
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        while world.kernel.clock(cpu) < until && !world.kernel.wants_attention() {
            match kswapd.step(&mut world) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    at.throttled = why;
                    return Step::Asleep(until);
                }
                Poll::Done(()) => return Step::Waiting,
            }
        }
        Step::On
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

//! Reclaim in a run: tasks that find no memory, kswapd's threads, pages whose writes end, and who is woken by that.
//!
//! A task whose allocation fails reclaims itself, as a part of that allocation, and tries again; it gives up when
//! nothing more can be reclaimed (`should_reclaim_retry`). kswapd runs as a thread of its node: woken, it takes the CPU
//! at once, as a task that has slept does, and shares it then.

use super::RunError;
use super::engine::{Engine, Step, Stop};
use super::process::{Doing, Process, Thread};
use crate::alloc::{AllocationFailure, Caller, Policy, ZONES, ZoneKind};
use crate::kernel::Ps;
use crate::probe::Task;
use crate::reclaim::{COSTLY_ORDER, Control, Direct, Kswapd, MAX_RETRIES, Poll, Reason, Who, World};
use crate::vmstat::ZoneItem;

/// Id of the first kswapd.
const FIRST_KSWAPD: i32 = 60;

/// An allocation that has failed and goes on.
#[derive(Clone, Debug)]
pub(super) struct Stall {
    failure: AllocationFailure,
    direct: Option<Direct>,
    /// What the last reclaim has freed.
    reclaimed: u64,
    /// All CPUs' lists were emptied for it.
    drained: bool,
    /// Reclaims in a row that freed nothing.
    fruitless: u32,
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
            let kswapd = Doing::Kswapd(Box::new(Kswapd::new(node)));
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

    /// Threads of the kernel: kswapds and those that write back.
    pub(super) fn kernel_threads(&self) -> impl Iterator<Item = usize> + use<'_> {
        let kswapds = self.kswapds.iter().map(|kswapd| kswapd.1);
        kswapds.chain(self.writers_back.iter().flat_map(|of| [of.flusher, of.ender]))
    }

    /// Threads of the workload; those of the kernel come behind them.
    pub(super) fn workload_threads(&self) -> usize {
        self.threads.len() - self.kernel_threads().count()
    }

    /// Who waits for memory, pages or reclaim has something to do: time goes in small steps.
    pub(super) fn reclaims(&self) -> bool {
        self.kswapds.iter().any(|&(_, thread)| self.queues.holds(self.threads[thread].caller.cpu, thread))
    }

    /// Does at once what reclaim and faults have left to be done.
    pub(super) fn attend(&mut self, cpu: u32) -> Result<(), RunError> {
        let at = self.kernel.clock(cpu);
        self.attend_writeback(cpu)?;
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

    /// A thread has found no memory: it reclaims, and tries again; or it is the end.
    pub(super) fn stalled(&mut self, thread: usize, failure: AllocationFailure) -> Result<Step, Stop> {
        if !failure.request.may_wait {
            return Err(Stop::OutOfMemory(thread, failure));
        }
        let fresh = Stall { failure: failure.clone(), direct: None, reclaimed: 0, drained: true, fruitless: 0 };
        let known = self.threads[thread].stall.take().filter(|stall| stall.failure.request == failure.request);
        let first = known.is_none();
        let mut stall = known.unwrap_or(fresh);
        if !stall.drained && failure.over_limit.is_none() {
            // What was reclaimed may lie on other CPUs' lists.
            stall.drained = true;
            let online = self.kernel.stat.online().to_vec();
            online.into_iter().for_each(|cpu| self.kernel.drain_pages(cpu));
            self.threads[thread].stall = Some(stall);
            return Ok(Step::On);
        }
        let order = failure.request.order;
        if !first {
            // Reading ahead gives up at a limit too, but only when nothing more can be reclaimed.
            if failure.over_limit.is_none() && (failure.request.no_retry || order > COSTLY_ORDER) {
                self.threads[thread].denied = true;
                return Ok(Step::On);
            }
            stall.fruitless = if stall.reclaimed > 0 { 0 } else { stall.fruitless + 1 };
            let hopeless = failure.over_limit.is_none() && !self.is_worth_retrying(&failure);
            if stall.fruitless > MAX_RETRIES || hopeless {
                self.kernel.stat.events.reclaim.oom_kill += 1;
                return Err(Stop::OutOfMemory(thread, failure));
            }
        }
        let caller = self.threads[thread].caller;
        let request = failure.request;
        let zones = self.kernel.alloc.zonelist(failure.from).iter().map(|&zone| zone as usize);
        let zones = zones.filter(|&zone| {
            let of = &self.kernel.alloc.zones[zone];
            failure.over_limit.is_some() || of.kind <= request.highest && failure.nodes.has(of.node)
        });
        let zones = zones.collect();
        let world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu: caller.cpu, task: caller.task };
        let control = match failure.over_limit {
            Some(cgroup) => Control::new(Who::Cgroup(cgroup), 0, ZoneKind::Device, request.gfp),
            None => Control::new(Who::Direct, request.order, request.highest, request.gfp),
        };
        stall.direct = Some(Direct::new(&world, control, zones));
        (stall.drained, stall.failure) = (false, failure);
        self.threads[thread].stall = Some(stall);
        Ok(Step::On)
    }

    /// `should_reclaim_retry`: with all that could be reclaimed some zone would have enough.
    fn is_worth_retrying(&self, failure: &AllocationFailure) -> bool {
        let (alloc, request) = (&self.kernel.alloc, failure.request);
        alloc.populated().any(|zone| {
            let of = &alloc.zones[zone];
            let reclaimable = self.kernel.reclaim.reclaimable(&self.kernel.stat.pages, zone);
            let available = reclaimable + self.kernel.stat.snapshot(zone, ZoneItem::FreePages);
            of.kind <= request.highest
                && failure.nodes.has(of.node)
                && of.watermark_ok(request.order, of.marks.min, available, request.highest, Default::default())
        })
    }

    /// Lets a thread that has to reclaim do so until a time; `None` if it has not, or is done.
    pub(super) fn reclaim(&mut self, thread: usize, until: Ps) -> Option<Step> {
        let at = &mut self.threads[thread];
        let Some(Stall { direct: Some(direct), .. }) = &mut at.stall else { return None };
        let (cpu, task) = (at.caller.cpu, at.caller.task);
        let mut world = World { kernel: &mut self.kernel, memory: &mut self.memory, cpu, task };
        while world.kernel.clock(cpu) < until && !world.kernel.wants_attention() {
            match direct.step(&mut world) {
                Poll::On => {}
                Poll::Sleep(until, why) => {
                    at.throttled = why;
                    return Some(Step::Asleep(until));
                }
                Poll::Done(reclaimed) => {
                    let stall = at.stall.as_mut()?;
                    (stall.direct, stall.reclaimed) = (None, reclaimed);
                    return None;
                }
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

/// Why a thread sleeps that reclaims: node and reason.
pub(super) type Throttled = Option<(usize, Reason)>;

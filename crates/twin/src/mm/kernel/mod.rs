//! A simulated kernel on its machine.
//!
//! It owns the page allocator, the counters, the tracepoints and a clock per CPU (`time`). CPUs that idle, stop and start, and
//! the timers of all, are in `cpus`; allocations here and in `pages`, many alike at once in `loops`.

pub(crate) mod budget;
mod cpus;
mod pages;
pub(crate) mod spinlock;
mod state;
mod tick;
pub(crate) mod time;

pub use state::{ListState, ZoneState};

use crate::frame::{Frames, Pfn, ZoneKind};
use crate::hw::{Machine, MachineError, PageCosts};
use crate::mm::compaction::Compaction;
use crate::mm::memcg::Cgroup;
use crate::mm::stall::Stall;
use crate::mm::vmscan::{Reclaim, Rules as ReclaimRules};
use crate::mm::writeback;
use crate::mm::writeback::Writeback;
use crate::page_alloc::{
    Allocated, AllocationFailure, Caller, Context, NotAllocated, PageAllocator, Policy, Request, Rules,
};
use crate::probe::{Probe, Task};
use crate::time::{Ns, PS_PER_NS, Ps, Random, Use};
use crate::vmstat::{NumaItem, Refresh, VmStat, VmStatRules, ZoneItem};
use budget::Budget;
use cpus::running_nodes;
use spinlock::Lock;
use thiserror::Error;
use time::{Fetches, Times, check_costs};

/// Memory from which on a kernel has a huge zero page, in pages: 512 MiB (`hugepage_init`).
const HUGE_ZERO_PAGE_FROM: u64 = 512 << 8;

/// Rules of the kernel that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRules {
    /// The page allocator.
    pub alloc: Rules,
    /// The counters.
    pub vmstat: VmStatRules,
    /// Reclaim.
    pub reclaim: ReclaimRules,
}

/// Errors of building a kernel and of calls to it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are named in the messages
pub enum KernelError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("a counter threshold of 0 would write the shared words at every count: it is at least 1")]
    Threshold,
    #[error("a machine with {0} page frames is too large to be simulated here: each takes 16 bytes")]
    TooLarge(u64),
    #[error("all memory is reserved")]
    NoFreeMemory,
    #[error(
        "a cost of an allocation is negative, no number or above a second, work takes no time, or the clock stands"
    )]
    Costs,
    #[error("CPU {cpu} does not exist or does not run: CPUs are 0 to {last}")]
    NoCpu { cpu: u32, last: u32 },
    #[error("CPU {0} is named twice")]
    CpuTwice(u32),
    #[error("the only running CPU cannot stop")]
    LastCpu,
    #[error("order {order} is above the largest block's, {most}")]
    Order { order: u32, most: u32 },
    #[error(transparent)]
    Allocation(#[from] AllocationFailure),
    #[error(transparent)]
    Free(#[from] NotAllocated),
}

/// The kernel.
#[derive(Debug)]
pub struct Kernel {
    /// The machine it runs on.
    pub machine: Machine,
    /// The page allocator.
    pub alloc: PageAllocator,
    /// The counters.
    pub stat: VmStat,
    /// The tracepoints.
    pub probe: Probe,
    /// State of reclaim.
    pub(crate) reclaim: Reclaim,
    /// State of writeback.
    pub(crate) writeback: Writeback,
    pub(crate) compaction: Compaction,
    /// Allocation for which the running task has waited without success, and for which compaction may have captured a
    /// page (`current->capture_control`). The engine sets it before a step of a task in the slow path; an allocation of
    /// this request clears it; after the step it tells the engine whether the task has its memory. All mechanisms
    /// allocate with copies of the `Caller`, so it cannot be a field of that.
    pub(crate) awaited: Option<Request>,
    /// Waits of the running task, until the engine takes them.
    pub(crate) stall: Stall,
    pub(crate) costs: PageCosts,
    pub(crate) refresh: Refresh,
    pub(crate) siblings: Vec<Vec<u32>>,
    /// Reads of memory that may be huge map the huge zero page.
    pub(crate) huge_zero_page: bool,
    /// A write to it allocates a huge page (6.13 and later).
    pub(crate) huge_zero_replaced: bool,
    /// Of a CPU alone on its core, and of one with a busy sibling.
    times: [Times; 2],
    /// By CPU.
    pub(crate) fetches: Vec<Fetches>,
    /// By CPU.
    pub(crate) clocks: Vec<Ps>,
    busy: Vec<bool>,
    /// By CPU: busy siblings.
    neighbours: Vec<u32>,
    /// The time that all CPUs share, if they share the time of one.
    pub(crate) budget: Option<Budget>,
    /// Of writing an event.
    event_time: Ps,
    /// Time between two ticks.
    tick: Ps,
    ticks: tick::Ticks,
}

impl Kernel {
    /// Boots a kernel: all memory free, all CPUs running and idle, all counters 0.
    pub fn new(machine: Machine, costs: PageCosts, rules: KernelRules, probe: Probe) -> Result<Kernel, KernelError> {
        check_costs(&costs)?;
        if rules.vmstat.threshold == Some(0) || threshold_of(&rules) == Some(0) {
            return Err(KernelError::Threshold);
        }
        let machine = Machine::new(machine.nodes, machine.cpus, machine.distance)?;
        if !Frames::fit(machine.end_pfn()) {
            return Err(KernelError::TooLarge(machine.end_pfn()));
        }
        let mut alloc = PageAllocator::new(&machine, rules.alloc);
        if alloc.zones.iter().all(|zone| zone.managed == 0) {
            return Err(KernelError::NoFreeMemory);
        }
        let siblings = machine.siblings();
        let cpus = siblings.len();
        let mut stat = VmStat::new(rules.vmstat, &alloc.zone_sizes(), siblings.clone());
        stat.compaction = rules.reclaim.per_zone_lru.is_none_or(|variant| variant.compaction);
        for zone in 0..alloc.zones.len() {
            if alloc.zones[zone].managed > 0 {
                stat.add(zone, 0, ZoneItem::FreePages, alloc.zones[zone].managed as i64);
            }
        }
        alloc.set_pageset_sizes(&running_nodes(&machine, &stat));
        let managed: u64 = alloc.zones.iter().map(|zone| zone.managed).sum();
        let reclaim = Reclaim::new(rules.reclaim, machine.nodes.len(), vec![Cgroup::default()], cpus, managed);
        let blocks = machine.end_pfn().div_ceil(1 << rules.alloc.pageblock_order) as usize;
        let compaction = Compaction::new(&alloc, machine.nodes.len(), blocks, rules.reclaim.early_compaction);
        let refresh = Refresh::new(cpus, rules.vmstat.stat_interval, rules.vmstat.hz);
        Ok(Kernel {
            machine,
            alloc,
            stat,
            probe,
            reclaim,
            writeback: Writeback::new(writeback::Rules::DEFAULT, cpus),
            compaction,
            awaited: None,
            stall: Stall::default(),
            refresh,
            siblings,
            huge_zero_page: managed >= HUGE_ZERO_PAGE_FROM,
            huge_zero_replaced: rules.alloc.huge_zero_replaced,
            times: [&costs.alone, &costs.shared_core].map(|of| Times::of(&costs, of)),
            fetches: Fetches::of_cpus(cpus, costs.picoseconds(costs.refetch), 0),
            costs,
            clocks: vec![0; cpus],
            busy: vec![false; cpus],
            neighbours: vec![0; cpus],
            budget: None,
            event_time: 0,
            tick: 1_000_000_000_000 / u64::from(rules.vmstat.hz.max(1)),
            ticks: tick::Ticks::default(),
        })
    }

    /// Makes cgroups, of which the first is the root. Nothing may have been allocated for a process yet.
    pub(crate) fn set_cgroups(&mut self, cgroups: Vec<Cgroup>) {
        let managed = self.alloc.zones.iter().map(|zone| zone.managed).sum();
        let (rules, nodes, cpus) = (self.reclaim.rules, self.machine.nodes.len(), self.clocks.len());
        self.writeback.set_cgroups(cgroups.len());
        self.reclaim = Reclaim::new(rules, nodes, cgroups, cpus, managed);
    }

    /// Sets the rules of writeback. No page may be dirty yet.
    pub(crate) fn set_writeback(&mut self, rules: writeback::Rules) {
        self.writeback = Writeback::new(rules, self.clocks.len());
        self.alloc.dirty_limits = Some(rules.limits);
    }

    /// Costs of allocations on this machine.
    pub fn costs(&self) -> &PageCosts {
        &self.costs
    }

    /// Writes `vm.stat_interval`; timers that are set keep their time.
    pub fn set_stat_interval(&mut self, interval: Ns) {
        self.refresh.set_interval(interval);
    }

    /// Writes `vm.min_free_kbytes` or `vm.watermark_scale_factor`: new watermarks, list sizes and drift marks.
    pub fn set_watermarks(&mut self, change: impl FnOnce(&mut Rules)) {
        self.alloc.set_marks(change);
        self.alloc.set_pageset_sizes(&running_nodes(&self.machine, &self.stat));
        self.stat.set_thresholds(&self.alloc.zone_sizes());
    }

    /// An error for an order that no block of this kernel has.
    pub(crate) fn check_order(&self, order: u32) -> Result<(), KernelError> {
        let most = self.alloc.max_order();
        if order > most { Err(KernelError::Order { order, most }) } else { Ok(()) }
    }

    /// Allocates on the caller's CPU, which spends the time it takes.
    pub fn allocate(&mut self, caller: &mut Caller, request: &Request) -> Result<Pfn, KernelError> {
        self.check_cpu(caller.cpu)?;
        self.check_order(request.order)?;
        let got = match self.allocate_unchecked(caller, request) {
            Err(failure) if failure.request.may_wait => {
                // There is no reclaim here; pages on other CPUs' lists can be used.
                self.drain_all_pages(caller.cpu);
                self.allocate_unchecked(caller, request)
            }
            got => got,
        };
        Ok(got?.page)
    }

    /// Drains a CPU's lists of free pages.
    pub(crate) fn drain_pages(&mut self, cpu: u32) {
        let (alloc, mut ctx) = self.split(cpu, Task::default());
        alloc.drain_pages(&mut ctx, cpu);
    }

    /// Frees the pages of a CPU's lists of a zone to the buddy allocator (`drain_local_pages`).
    pub(crate) fn drain_zone_pages(&mut self, cpu: u32, zone: usize) {
        let (alloc, mut ctx) = self.split(cpu, Task::default());
        alloc.drain_zone_pages(&mut ctx, cpu, zone);
    }

    /// The lists of a zone are drained on all CPUs, as by [`Self::drain_all_pages`].
    pub(crate) fn drain_all_zone_pages(&mut self, by: u32, zone: usize) {
        for cpu in self.stat.online().to_vec() {
            let at = self.now(cpu).max(self.now(by));
            let (alloc, ctx) = self.split(cpu, Task::default());
            alloc.drain_zone_pages(&mut Context { at, ..ctx }, cpu, zone);
        }
    }

    /// The lists of all CPUs are drained at the request of one CPU; on CPUs whose clock is behind, at the time of the
    /// request.
    pub(crate) fn drain_all_pages(&mut self, by: u32) {
        for cpu in self.stat.online().to_vec() {
            let at = self.now(cpu).max(self.now(by));
            let (alloc, ctx) = self.split(cpu, Task::default());
            alloc.drain_pages(&mut Context { at, ..ctx }, cpu);
        }
    }

    /// Frees on a CPU, which spends the time it takes.
    pub fn free(&mut self, cpu: u32, task: Task, page: Pfn) -> Result<(), KernelError> {
        self.check_cpu(cpu)?;
        Ok(self.free_unchecked(cpu, task, page)?)
    }

    #[inline]
    pub(crate) fn allocate_unchecked(
        &mut self,
        caller: &mut Caller,
        request: &Request,
    ) -> Result<Allocated, AllocationFailure> {
        let (cpu, local) = (caller.cpu, self.machine.node_of(caller.cpu));
        let awaits = self.awaited.as_ref() == Some(request);
        if awaits {
            let (alloc, mut ctx) = self.split(cpu, caller.task);
            if let Some(got) = alloc.take_captured(&mut ctx, request) {
                self.awaited = None;
                return Ok(got);
            }
        }
        let mut search = self.alloc.begin(caller, local, request);
        if !self.reclaim.node_reclaim_history.is_empty() {
            let tried = std::mem::take(&mut self.reclaim.node_reclaim_history[cpu as usize]);
            let from = if tried.pid == caller.task.pid { tried.from } else { [0; 2] };
            let preferred = self.alloc.zones_of(&search).next().map_or(local, |zone| self.alloc.zones[zone].node);
            search.reclaim_first(self.nodes_to_reclaim(local, preferred, request), from);
        }
        let (alloc, mut ctx) = self.split(cpu, caller.task);
        let got = match alloc.allocate(&mut ctx, &mut search) {
            Some(got) => got,
            None if search.asks.is_some() => return Err(alloc.fail(&mut ctx, &search)),
            None => self.allocate_slowly(caller, search)?,
        };
        if awaits {
            self.awaited = None;
        }
        if std::mem::take(&mut self.alloc.zones[got.zone].boosted) {
            let of = &self.alloc.zones[got.zone];
            let wake = Request { highest: of.kind, gfp: "none", ..Request::KERNEL };
            self.wakeup_kswapd(cpu, caller.task, of.node, &wake);
        }
        if got.refilled > 0 {
            self.spend_locked(cpu, Lock::Zone(got.zone), got.refilled * self.costs.refill);
        }
        let mut spent = self.times(cpu).allocate + u64::from(got.counted) * self.count_time(cpu);
        for _ in 0..got.fetched {
            spent += self.fetches[cpu as usize].next();
        }
        if matches!(caller.policy, Policy::Interleave(_)) {
            spent += self.costs.interleave;
        }
        self.spend(cpu, spent);
        Ok(got)
    }

    #[inline]
    pub(crate) fn free_unchecked(&mut self, cpu: u32, task: Task, page: Pfn) -> Result<(), NotAllocated> {
        let zone = self.alloc.frames.zone(page);
        let (alloc, mut ctx) = self.split(cpu, task);
        let to_buddy = alloc.free(&mut ctx, page)?;
        let &Times { free, free_to_buddy, .. } = self.times(cpu);
        self.spend(cpu, free);
        if to_buddy > 0 {
            self.spend_locked(cpu, Lock::Zone(zone), to_buddy * free_to_buddy);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn split(&mut self, cpu: u32, task: Task) -> (&mut PageAllocator, Context<'_>) {
        let at = self.clocks[cpu as usize] / PS_PER_NS;
        (&mut self.alloc, Context { probe: &mut self.probe, stat: &mut self.stat, at, cpu, task })
    }

    /// kswapd of a node wakes or sleeps, which changes the thresholds of its zones.
    pub fn set_pressure(&mut self, node: usize, awake: bool) {
        if node < self.machine.nodes.len() {
            self.stat.set_pressure(node, awake, &self.alloc.zone_sizes());
        }
    }

    /// Every running CPU allocates and frees order-0 pages on its own node as if it had done so before, each a
    /// different number of times, so that their counters are not in step. It takes no time.
    pub fn age_counters(&mut self, seed: u64) {
        self.fetches = Fetches::of_cpus(self.clocks.len(), self.costs.picoseconds(self.costs.refetch), seed);
        let random = Random::new(seed, Use::CounterPhase);
        for cpu in self.stat.online().to_vec() {
            let Some(period) = self.own_zone(cpu).and_then(|zone| self.stat.numa.period(zone)) else { continue };
            // Two periods leave the first, longer or shorter, behind.
            self.count_pairs(cpu, 2 * period + random.below(u64::from(cpu), 0, period));
        }
    }

    /// Counts allocations and frees of order-0 pages of a CPU's own node. They take no time and leave the lists alone,
    /// as loops do that live from their CPU's list.
    pub(crate) fn count_pairs(&mut self, cpu: u32, times: u64) {
        let Some(zone) = self.own_zone(cpu) else { return };
        let local = self.alloc.zones[zone].node == self.machine.node_of(cpu);
        self.stat.numa.run(zone, cpu, NumaItem::Hit, times);
        self.stat.numa.run(zone, cpu, if local { NumaItem::Local } else { NumaItem::Other }, times);
        self.stat.events.allocated[self.alloc.zones[zone].kind as usize] += times;
        self.stat.events.freed += times;
    }

    /// The zone that the kernel's own requests of a CPU try first.
    fn own_zone(&self, cpu: u32) -> Option<usize> {
        let list = self.alloc.zonelist(self.machine.node_of(cpu));
        let wanted = list.iter().find(|&&zone| self.alloc.zones[zone as usize].kind <= ZoneKind::Normal);
        wanted.map(|&zone| zone as usize)
    }
}

/// The constant threshold of a design that has one.
fn threshold_of(rules: &KernelRules) -> Option<u32> {
    use crate::vmstat::Design;
    match rules.vmstat.design {
        Design::Separate(variant) | Design::Switched(variant) => variant.threshold,
        Design::InZone | Design::Event { .. } | Design::Off => None,
    }
}

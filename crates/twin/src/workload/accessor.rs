//! A thread's accesses in a phase, and how they are run: drawn in bulk, one by one, or from a trace.

use super::ahead::Ahead;
use super::latencies::Latencies;
use super::replay::Replay;
use super::sampled::Rest;
use super::{explicit, replay, sampled};
use crate::mm::accessed::How;
use crate::mm::costs::FaultCosts;
use crate::mm::filemap::Reader;
use crate::mm::kernel::{Kernel, KernelError};
use crate::mm::memory::AccessState;
use crate::mm::prot_numa::Unit;
use crate::page_alloc::{AllocationFailure, Caller};
use crate::time::{PS_PER_NS, Ps};
use mmtwin_scenario::program::AccessPlan;
use mmtwin_scenario::program::Pattern;

/// A thread's accesses in a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accessor {
    /// By turn.
    pub list: Vec<Accessing>,
    /// Access whose turn it is; explicit mode only.
    pub turn: usize,
    /// One by one.
    pub explicit: bool,
    /// The accesses are those of a trace; each entry of the list stands for a region.
    pub replay: Option<Replay>,
    /// Picoseconds that a turn took last; 0 before the first. Sampled mode only.
    pub pace: f64,
    /// Rest of interrupted turns. Sampled mode only.
    pub rest: Rest,
    /// CPU time of its thread since the accesses began, including their faults and reclaim, without waits.
    pub ran: Ps,
    /// The part of it in which its CPU had its turn.
    pub own: Ps,
}

/// One access of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Accessing {
    /// Its parameters. Its stream counts the accesses.
    pub plan: AccessPlan,
    /// Number of the region among all.
    pub region: usize,
    /// Number of the process's mapping among those of the region.
    pub mapper: usize,
    /// Its process has several threads.
    pub threaded: bool,
    /// Number of the process's mapping of it among all that may be marked; `None` without NUMA balancing.
    pub mapping: Option<usize>,
    /// Marked pages that it will reach. Sampled mode only.
    pub ahead: Ahead,
    /// Picoseconds of CPU time of one access without faults, as of the last turn. Sampled mode only.
    pub busy: f64,
    /// Its shares by node, of those that have one, and the faults to be expected of it, likewise.
    pub by_node: Vec<(usize, f64)>,
    pub expected: f64,
    /// Number of the pool it draws from; `None`: it walks, or is explicit.
    pub pool: Option<usize>,
    /// Accesses after which it has freed its pages.
    pub renewed: u64,
    /// Faults so far, on marked pages too; one that waits for the disk is one.
    pub faults: u64,
    /// The access that ends next has had one.
    pub faulted: bool,
    /// CPU time so far, without work outside the accessor, and the part of the program itself.
    pub time: Ps,
    pub user: Ps,
    /// When accesses began to arrive. Open loops only.
    pub begun: Option<Ps>,
    /// When the current access arrived, or began where each follows the one before. Explicit mode only.
    pub due: Option<Ps>,
    /// Its latencies.
    pub latencies: Latencies,
    /// Its read-ahead state.
    pub reader: Reader,
    /// Log of its accesses, and the number logged.
    pub log: Option<usize>,
    pub logged: u64,
}

/// Progress of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessProgress {
    /// To the end of its time.
    On,
    /// It sleeps until then.
    Asleep(Ps),
    /// It sleeps until another thread wakes it.
    Waiting,
    /// All accesses have reached their counts.
    Done,
    /// To a marked page of a mapping.
    Marked(usize, Unit),
}

impl Accessing {
    /// Remaining accesses; `None`: no end.
    pub(crate) fn left(&self) -> Option<u64> {
        self.plan.count.map(|count| count.saturating_sub(self.plan.stream.count))
    }

    /// Accesses until its pages are freed.
    pub(crate) fn to_renewal(&self) -> u64 {
        let pages = self.plan.pages.end - self.plan.pages.start;
        if self.plan.recycle { pages - self.plan.stream.count % pages } else { u64::MAX }
    }

    /// If it recycles its pages and has reached their end, they are freed.
    pub(crate) fn renew(
        &mut self,
        state: &mut AccessState,
        kernel: &mut Kernel,
        caller: &Caller,
    ) -> Result<(), KernelError> {
        if !self.plan.recycle {
            return Ok(());
        }
        let pages = self.plan.pages.clone();
        let count = self.plan.stream.count;
        let at_end = count != self.renewed && count.is_multiple_of(pages.end - pages.start);
        if !at_end || !self.active() {
            return Ok(());
        }
        self.renewed = count;
        match state.regions[self.region].anon {
            true => state.zap(kernel, caller, (self.region, self.mapper), pages),
            false => state.discard(kernel, caller, self.region, pages),
        }
    }

    /// When the access that is next arrives, on a CPU whose clock is `now`; `None`: each follows the one before.
    pub(crate) fn arrives(&mut self, now: Ps) -> Option<Ps> {
        let arrivals = self.plan.arrivals.as_mut()?;
        let begun = *self.begun.get_or_insert(now);
        Some(*self.due.get_or_insert_with(|| begun + arrivals.next().unwrap_or(0).saturating_mul(PS_PER_NS)))
    }

    /// An access begins, or is tried again.
    pub(super) fn begin(&mut self, now: Ps) {
        self.due.get_or_insert(now);
    }

    /// It ends, with its think time.
    pub(super) fn end(&mut self, kernel: &mut Kernel, cpu: u32, costs: &FaultCosts) {
        let ended = kernel.clock(cpu).saturating_sub(self.plan.think * PS_PER_NS);
        if let Some(due) = self.due.take() {
            self.latencies.took(due, ended);
        }
        self.count_faults(kernel, cpu, costs);
    }

    /// After an access that has had a fault the program asks for the thread's number of faults.
    pub(super) fn count_faults(&mut self, kernel: &mut Kernel, cpu: u32, costs: &FaultCosts) {
        if std::mem::take(&mut self.faulted) {
            kernel.spend(cpu, costs.fault_count);
            self.time += costs.fault_count;
        }
    }

    /// A fault of an access is handled.
    pub(super) fn note_fault(&mut self) {
        self.faults += 1;
        self.faulted = true;
    }

    pub(crate) fn active(&self) -> bool {
        self.left() != Some(0)
    }
}

impl Accessor {
    /// Others ran for so long when the thread had come to a time of its step.
    pub(crate) fn paused(&mut self, at: Ps, time: Ps) {
        self.list.iter_mut().for_each(|access| access.latencies.paused(at, time));
    }

    /// An access's part in the CPU time of the thread: as its share in what is known by access.
    pub(crate) fn cpu_time(&self, access: &Accessing) -> Ps {
        let all: Ps = self.list.iter().map(|access| access.time).sum();
        match all {
            0 => self.ran / self.list.len().max(1) as Ps,
            all => (u128::from(self.ran) * u128::from(access.time) / u128::from(all)) as Ps,
        }
    }

    /// CPU time of the program itself for its accesses: think time and memory latency.
    pub(crate) fn user(&self) -> Ps {
        let user: Ps = self.list.iter().map(|access| access.user).sum();
        let user = u128::from(user) * u128::from(self.ran) / u128::from(self.own.max(1));
        user.min(self.ran.into()) as Ps
    }

    /// Notes faults on a marked unit of a mapping, and from when to when they took.
    pub(crate) fn note_hints(&mut self, mapping: usize, unit: Unit, faults: u64, (began, ended): (Ps, Ps)) {
        let (begin, end) = (u64::from(unit.page), u64::from(unit.page) + unit.pages());
        let of = |access: &Accessing| {
            let pages = &access.plan.pages;
            access.mapping == Some(mapping) && pages.start < end && begin < pages.end
        };
        // Those on the program's own pages belong to its start.
        let at = self.list.iter().position(of).unwrap_or(0);
        let explicit = self.explicit;
        let Some(access) = self.list.get_mut(at) else { return };
        access.faults += faults;
        // An explicit access is under way.
        if !explicit {
            access.latencies.hint_took(began, ended);
        }
    }

    /// The accesses begin: drawn ones are logged by epoch, for reclaim.
    pub(crate) fn open_logs(&mut self, state: &mut AccessState) {
        for access in self.list.iter_mut().filter(|_| !self.explicit) {
            let how = match (access.pool, access.plan.stream.pattern()) {
                (Some(pool), _) => How::Pool(pool),
                (None, Pattern::Walk(cursor)) => How::Walk(*cursor, access.plan.pages.clone()),
                (None, Pattern::Draws(..)) => continue,
            };
            access.log = Some(state.open_log(access.region, access.mapper, how, access.plan.stream.writes().get()));
            access.logged = access.plan.stream.count;
        }
    }

    /// Accesses since the last call, by log.
    pub(crate) fn take_touches(&mut self) -> impl Iterator<Item = (usize, u64)> + use<'_> {
        self.list.iter_mut().filter_map(|access| {
            let count = access.plan.stream.count;
            access.log.map(|log| (log, count - std::mem::replace(&mut access.logged, count)))
        })
    }

    /// Runs a thread on its caller's CPU until a time, or for at least one access.
    pub(crate) fn run(
        &mut self,
        state: &mut AccessState,
        kernel: &mut Kernel,
        caller: &mut Caller,
        until: Ps,
    ) -> Result<AccessProgress, AllocationFailure> {
        if let Some(mut replay) = self.replay.take() {
            let came = replay::run((self, &mut replay), state, kernel, caller, until);
            self.replay = Some(replay);
            return came;
        }
        match self.explicit {
            false => sampled::run(self, state, kernel, caller, until),
            true => explicit::run(self, state, kernel, caller, until),
        }
    }
}

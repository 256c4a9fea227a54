//! Statistics and findings from events and counters.
//!
//! [`Analysis`] is a [`Sink`]: it gives each event to the accumulators of its subject, one per file, each a plain
//! struct with its sums. Nothing grows with the number of events; what could is capped and says what it omitted.
//! Order is needed only within a task and within a CPU. A long input is taken in two halves at the same time (`halves`).

pub mod alloc;
pub mod calls;
pub mod compaction;
pub mod congestion;
pub mod counters;
pub mod delays;
pub mod explain;
pub mod filemap;
pub mod findings;
mod halves;
pub mod histogram;
pub mod index;
pub mod invariants;
pub mod live;
pub mod losses;
pub mod numa;
pub mod oom;
pub mod reclaim;
pub mod recorded;
pub mod series;
pub mod slab;
pub mod stacks;
mod subject;
pub mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod thp;
pub mod throttle;
pub mod timeline;
pub mod vmalloc;
pub mod waits;

use alloc::Alloc;
use calls::Calls;
use compaction::Compaction;
use congestion::Congestion;
use counters::Counters;
use filemap::Filemap;
use invariants::Invariants;
use losses::Losses;
use mmtwin_event::{Call, CounterRow, Event, Half, Kind, Order, Sink, Source};
use numa::Numa;
use oom::Oom;
use reclaim::Reclaim;
use recorded::Recorded;
use slab::Slab;
use stacks::Stacks;
use tasks::Tasks;
use thp::Thp;
use throttle::Throttle;
use vmalloc::Vmalloc;

/// Everything that is known of one input.
#[derive(Debug, Default)]
pub struct Analysis {
    /// What the input says of itself.
    pub source: Source,
    /// Which events it has.
    pub recorded: Recorded,
    /// Who ran.
    pub tasks: Tasks,
    /// First and last time of its events.
    pub span: Span,
    /// What the kernel lost.
    pub losses: Losses,
    /// Page reclaim.
    pub reclaim: Reclaim,
    /// Waits for congested devices.
    pub congestion: Congestion,
    /// NUMA balancing.
    pub numa: Numa,
    /// vmalloc.
    pub vmalloc: Vmalloc,
    /// Compaction and page migration.
    pub compaction: Compaction,
    /// Slab shrinking.
    pub slab: Slab,
    /// From where tasks began to reclaim and to wait.
    pub stacks: Stacks,
    /// Throttling.
    pub throttle: Throttle,
    /// The page allocator.
    pub alloc: Alloc,
    /// Out of memory.
    pub oom: Oom,
    /// Huge pages.
    pub thp: Thp,
    /// The page cache.
    pub filemap: Filemap,
    /// Durations of function calls.
    pub calls: Calls,
    /// Counters.
    pub counters: Counters,
    /// Sums that are held against counters.
    pub invariants: Invariants,
    /// While it is in two halves.
    copies: Option<Box<halves::Copies>>,
}

/// A stretch of time in nanoseconds of the trace clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Time of the earliest event; `None` before any.
    pub first: Option<u64>,
    /// Time of the latest event.
    pub last: u64,
}

impl Span {
    /// Widens the span to hold a time.
    #[inline]
    fn hold(&mut self, at: u64) {
        if at > self.last {
            self.last = at;
        }
        if self.first.is_none_or(|first| at < first) {
            self.first = Some(at);
        }
    }

    /// Length in nanoseconds.
    pub fn length(&self) -> Option<u64> {
        self.first.map(|first| self.last - first)
    }
}

impl Analysis {
    /// Nanoseconds that tasks waited in reclaim, by the cgroup that they are in, as far as that is recorded.
    pub fn waited_by_cgroup(&self) -> std::collections::BTreeMap<&str, u64> {
        let mut waited = std::collections::BTreeMap::new();
        for (task, process) in self.reclaimers().filter(|(_, process)| process.kswapd.is_none()) {
            let Some(cgroup) = self.tasks.cgroup(task) else { continue };
            let sum: &mut u64 = waited.entry(cgroup).or_default();
            *sum = sum.saturating_add(u64::try_from(process.stalls.sum).unwrap_or(u64::MAX));
        }
        waited
    }

    /// Says after the last event that they were a part of an input: of this stretch of time, in nanoseconds of the trace
    /// clock, in which events of these kinds happened, of whomever. Times of the whole command, and sums that only whole
    /// recordings have equal, are not known then.
    pub fn is_part_of(&mut self, window: Option<(u64, u64)>, kinds: &[Kind]) {
        if let Some((from, to)) = window {
            self.span.hold(from);
            self.span.hold(to);
        }
        kinds.iter().for_each(|kind| self.recorded.enable(*kind));
        self.source.times = None;
        self.invariants = Invariants::default();
    }

    /// Everybody who had to do with reclaim, with what he did, in order of appearance; last those who are counted
    /// together, as the task [`tasks::OTHERS`].
    pub fn reclaimers(&self) -> impl Iterator<Item = (&tasks::Task, &reclaim::Process)> {
        let own = self.tasks.iter().filter_map(|task| Some((task, self.reclaim.process(task)?)));
        own.chain(self.reclaim.others())
    }
}

impl Sink for Analysis {
    fn start(&mut self, source: &Source) {
        self.source = source.clone();
        self.recorded.start(source);
        self.reclaim.start(source);
        self.invariants.start(source);
        self.stacks.start(source);
    }

    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        self.tasks.announce(task.pid, task.tgid, task.comm);
        if let Some(path) = task.cgroup {
            self.tasks.announce_cgroup(task.pid, path);
        }
    }

    fn order(&self, kind: Kind) -> Order {
        match kind {
            // Frees on any CPU cross the limit of lazy pages and a purge on another brings it down.
            Kind::AllocVmapArea | Kind::PurgeVmapAreaLazy | Kind::FreeVmapAreaNoflush => Order::Time,
            // Any task of a group changes its active nodes.
            Kind::UpdateNumaActiveNodesMask => Order::Time,
            _ => Order::Task,
        }
    }

    fn event(&mut self, ev: &Event<'_>) {
        self.take(ev);
    }

    fn halves(&mut self) -> Option<[Box<dyn Half + '_>; 2]> {
        Some(self.divide())
    }

    fn join(&mut self) {
        self.unite();
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.losses.lost(cpu, events, at);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        self.counters.row(row);
        self.invariants.row(row);
    }

    fn call(&mut self, call: &Call<'_>) {
        self.calls.call(call);
    }
}

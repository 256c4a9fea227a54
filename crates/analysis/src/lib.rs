//! Statistics and findings from events and counters.
//!
//! [`Analysis`] is a [`Sink`]: it gives each event to the accumulators of its subject, one per file, each a plain
//! struct with its sums. Nothing grows with the number of events; what could is capped and says what it left out.
//! Order is needed only within a task and within a CPU.

pub mod compaction;
pub mod counters;
pub mod findings;
pub mod index;
#[cfg(test)]
mod made;
pub mod numa;
pub mod recorded;
pub mod slab;
pub mod tasks;
pub mod throttle;
pub mod vmalloc;

use compaction::Compaction;
use counters::Counters;
use mmtwin_event::{Call, CounterRow, Event, Kind, Sink, Source};
use numa::Numa;
use recorded::Recorded;
use slab::Slab;
use tasks::Tasks;
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
    /// NUMA balancing.
    pub numa: Numa,
    /// vmalloc.
    pub vmalloc: Vmalloc,
    /// Compaction and page migration.
    pub compaction: Compaction,
    /// Slab shrinking.
    pub slab: Slab,
    /// Throttling.
    pub throttle: Throttle,
    /// Counters.
    pub counters: Counters,
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

impl Sink for Analysis {
    fn start(&mut self, source: &Source) {
        self.source = source.clone();
        self.recorded.start(source);
    }

    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        self.tasks.announce(task.pid, task.tgid, task.comm);
    }

    fn event(&mut self, ev: &Event<'_>) {
        use Kind::*;
        self.recorded.saw(ev.kind);
        self.span.hold(ev.ts);
        match ev.kind {
            MmShrinkSlabStart | MmShrinkSlabEnd => self.slab.event(ev, self.tasks.of(ev)),
            MmVmscanThrottled => self.throttle.event(ev, self.tasks.of(ev)),
            MmCompactionIsolateMigratepages
            | MmCompactionIsolateFreepages
            | MmCompactionFastIsolateFreepages
            | MmCompactionMigratepages
            | MmCompactionBegin
            | MmCompactionEnd
            | MmCompactionTryToCompactPages
            | MmCompactionFinished
            | MmCompactionSuitable
            | MmCompactionDeferred
            | MmCompactionDeferCompaction
            | MmCompactionDeferReset
            | MmCompactionKcompactdSleep
            | MmCompactionWakeupKcompactd
            | MmCompactionKcompactdWake
            | CompactRetry => self.compaction.event(ev, self.tasks.of(ev)),
            MmMigratePages
            | MmMigratePagesStart
            | SetMigrationPte
            | RemoveMigrationPte
            | SetMigrationPmd
            | RemoveMigrationPmd
            | MmNumaMigrateRatelimit
            | SchedMoveNuma
            | SchedStickNuma
            | SchedSwapNuma
            | UpdateNumaActiveNodesMask
            | SchedSkipVmaNuma
            | SchedSkipCpusetNuma
            | SchedMigrateTask => self.numa.event(ev, self.tasks.of(ev)),
            AllocVmapArea | PurgeVmapAreaLazy | FreeVmapAreaNoflush => self.vmalloc.event(ev, self.tasks.of(ev)),
            _ => {}
        }
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        self.counters.row(row);
    }

    fn call(&mut self, call: &Call<'_>) {
        self.vmalloc.call(call);
    }
}

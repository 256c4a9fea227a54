//! Which events begin and end something that takes time.

use mmtwin_event::vocabulary as v;
use mmtwin_event::{Event, Kind};

/// What an event is on the track of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// Something of this name begins.
    Begin(&'static str),
    /// It ends.
    End(&'static str),
    /// Something of this name has taken so many nanoseconds.
    Took(&'static str, u64),
    /// Something of this name will take so many nanoseconds.
    Takes(&'static str, u64),
    /// A moment.
    Moment,
    /// A moment that is about pages and not about the task: it belongs to the CPU.
    OfCpu,
}

/// What an event is. Purges of vmalloc and scans of NUMA balancing are moments: kernels trace no begin of them.
pub(super) fn edge(event: &Event<'_>) -> Edge {
    let microseconds = |usec: u64| usec.saturating_mul(1000);
    match event.kind {
        Kind::MmVmscanDirectReclaimBegin => Edge::Begin("direct reclaim"),
        Kind::MmVmscanDirectReclaimEnd => Edge::End("direct reclaim"),
        Kind::MmVmscanMemcgReclaimBegin => Edge::Begin("cgroup reclaim"),
        Kind::MmVmscanMemcgReclaimEnd => Edge::End("cgroup reclaim"),
        Kind::MmVmscanMemcgSoftlimitReclaimBegin => Edge::Begin("soft-limit reclaim"),
        Kind::MmVmscanMemcgSoftlimitReclaimEnd => Edge::End("soft-limit reclaim"),
        Kind::MmVmscanNodeReclaimBegin => Edge::Begin("node reclaim"),
        Kind::MmVmscanNodeReclaimEnd => Edge::End("node reclaim"),
        Kind::MmVmscanKswapdWake => Edge::Begin("kswapd"),
        Kind::MmVmscanKswapdSleep => Edge::End("kswapd"),
        Kind::MmShrinkSlabStart => Edge::Begin("shrink slab"),
        Kind::MmShrinkSlabEnd => Edge::End("shrink slab"),
        Kind::MmCompactionBegin => Edge::Begin("compaction"),
        Kind::MmCompactionEnd => Edge::End("compaction"),
        Kind::MmCompactionKcompactdWake => Edge::Begin("kcompactd"),
        Kind::MmCompactionKcompactdSleep => Edge::End("kcompactd"),
        Kind::MmMigratePagesStart => Edge::Begin("migration"),
        Kind::MmMigratePages => Edge::End("migration"),
        Kind::StartTaskReaping => Edge::Begin("reaping"),
        Kind::FinishTaskReaping => Edge::End("reaping"),
        Kind::MmVmscanThrottled => {
            let delayed = event.typed::<v::MmVmscanThrottled>().usec_delayed;
            Edge::Took("reclaim throttled", microseconds(delayed.max(0) as u64))
        }
        Kind::WritebackCongestionWait => {
            let delayed = event.typed::<v::WritebackCongestionWait>().usec_delayed;
            Edge::Took("congestion wait", microseconds(delayed.into()))
        }
        Kind::WritebackWaitIffCongested => {
            let delayed = event.typed::<v::WritebackWaitIffCongested>().usec_delayed;
            Edge::Took("congestion wait", microseconds(delayed.into()))
        }
        // Milliseconds; the event precedes the pause.
        Kind::BalanceDirtyPages => match event.typed::<v::BalanceDirtyPages>().pause {
            ms @ 1.. => Edge::Takes("dirty throttling", (ms as u64).saturating_mul(1_000_000)),
            _ => Edge::Moment,
        },
        Kind::Other => Edge::OfCpu,
        kind => match kind.schema().map(|schema| schema.system) {
            Some("kmem" | "pagemap" | "filemap") => Edge::OfCpu,
            _ => Edge::Moment,
        },
    }
}

/// A task: what has begun and not ended, by name, outermost first.
#[derive(Default)]
pub(super) struct Open {
    names: Vec<&'static str>,
    /// When the last event of the track was.
    pub last: u64,
    /// End of the innermost, where that was known when it began.
    pub until: Option<u64>,
}

impl Open {
    /// How many end with the end of this name; `None`: its begin was not seen.
    pub fn depth(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|open| *open == name).map(|at| self.names.len() - at)
    }

    /// One begins.
    pub fn push(&mut self, name: &'static str) {
        self.names.push(name);
    }

    /// The innermost ends.
    pub fn pop(&mut self) {
        self.names.pop();
    }
}

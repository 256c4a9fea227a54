//! What happened at a moment and is no wait: spells of kswapd, purges, migrations, moves of tasks.

use super::largest::{Happened, Largest};
use mmtwin_event::vocabulary::{MmMigratePages, PurgeVmapAreaLazy, SchedMoveNuma, SchedSwapNuma};
use mmtwin_event::{Event, Kind};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// kswapd of a node was awake.
    Kswapd {
        /// Its node.
        node: i32,
    },
    /// vmalloc purged lazily freed areas.
    Purge {
        /// How many.
        areas: u32,
    },
    /// A batch of pages was migrated.
    Migration {
        /// Pages that migrated.
        succeeded: u64,
        /// Pages that did not.
        failed: u64,
    },
    /// NUMA balancing moved a task from node to node.
    Move {
        /// Its thread id.
        task: i32,
        /// Nodes.
        from: i32,
        /// Nodes.
        to: i32,
    },
    /// NUMA balancing exchanged two tasks of two nodes.
    Swap {
        /// Their thread ids.
        tasks: [i32; 2],
        /// Their nodes.
        nodes: [i32; 2],
    },
}

/// When it happened, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds of the trace clock.
    pub from: u64,
    /// The same as `from` where no length is known.
    pub until: u64,
    /// Thread id of the task that was running.
    pub pid: i32,
    /// What happened.
    pub what: What,
}

impl Happened for Moment {
    fn from(&self) -> u64 {
        self.from
    }

    /// The length in nanoseconds, areas, or pages: one of them for each [`What`].
    fn size(&self) -> u64 {
        match self.what {
            What::Kswapd { .. } => self.until - self.from,
            What::Purge { areas } => areas.into(),
            What::Migration { succeeded, failed } => succeeded.saturating_add(failed),
            What::Move { .. } | What::Swap { .. } => 0,
        }
    }

    fn pid(&self) -> i32 {
        self.pid
    }
}

/// Moments of each [`What`] that are kept of each part of the time.
const OF_EACH: usize = 8;

/// The largest of each [`What`]: only those of one can be compared.
#[derive(Clone, Debug)]
pub struct Moments {
    kinds: [Largest<Moment>; 5],
}

impl Default for Moments {
    fn default() -> Moments {
        Moments { kinds: std::array::from_fn(|_| Largest::new(OF_EACH)) }
    }
}

impl Moments {
    /// Takes an event that tells all by itself.
    #[inline]
    pub(super) fn event(&mut self, ev: &Event<'_>) {
        let what = match ev.kind {
            Kind::PurgeVmapAreaLazy => {
                let e: PurgeVmapAreaLazy = ev.typed();
                What::Purge { areas: e.num_purged }
            }
            Kind::MmMigratePages => {
                let e: MmMigratePages = ev.typed();
                What::Migration { succeeded: e.nr_succeeded, failed: e.nr_failed }
            }
            Kind::SchedMoveNuma => {
                let e: SchedMoveNuma = ev.typed();
                What::Move { task: e.pid, from: e.src_nid, to: e.dst_nid }
            }
            Kind::SchedSwapNuma => {
                let e: SchedSwapNuma = ev.typed();
                What::Swap { tasks: [e.src_pid, e.dst_pid], nodes: [e.src_nid, e.dst_nid] }
            }
            _ => return,
        };
        self.add(Moment { from: ev.ts, until: ev.ts, pid: ev.pid, what });
    }

    /// Takes a moment.
    pub(super) fn add(&mut self, moment: Moment) {
        let kind = match moment.what {
            What::Kswapd { .. } => 0,
            What::Purge { .. } => 1,
            What::Migration { .. } => 2,
            What::Move { .. } => 3,
            What::Swap { .. } => 4,
        };
        self.kinds[kind].add(moment);
    }

    /// All, also those that are not kept.
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Those kept, in the order of their beginnings.
    pub fn kept(&self) -> Vec<&Moment> {
        let mut all: Vec<&Moment> = self.kinds.iter().flat_map(Largest::kept).collect();
        all.sort_by_key(|moment| (moment.from, moment.pid));
        all
    }
}

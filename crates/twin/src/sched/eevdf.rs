//! EEVDF, the fair class since 6.6, as 6.12 has it: `place_entity`, `update_entity_lag`, `pick_eevdf`,
//! `update_deadline`, and `sched_delayed`.
//!
//! A thread is eligible if its virtual runtime is not above the average of its CPU (`avg_vruntime`). The eligible
//! thread with the earliest deadline runs, and keeps the CPU while it is eligible, until it has used its slice
//! (`RUN_TO_PARITY`), at a tick or, in 7.3, at a timer for it (`HRTICK`). The lag of a thread (`vlag`) is kept over sleep. A
//! thread that sleeps with a negative lag stays queued (`sched_delayed`) until it is picked or wakes. Not modelled: weights,
//! groups, slices of different length, the half slice of a new thread. Checked by tests in [`super::fair`].

use super::fair::{Entity, MS, factor};

/// Times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eevdf {
    /// `sched_base_slice`, 0.7 ms (0.75 before 6.12's stable series), which grows with the number of CPUs up to eight.
    slice: i64,
    /// Most lag on either side.
    limit: i64,
    /// A timer ends a slice (`HRTICK`).
    pub(super) hrtick: bool,
}

impl Eevdf {
    pub(crate) fn new(cpus: usize, hz: u64) -> Eevdf {
        let slice = MS * 7 / 10 * factor(cpus);
        Eevdf { slice, limit: (2 * slice).max(1000 * MS / hz.max(1) as i64), hrtick: false }
    }

    /// The same, with a timer that ends a slice.
    pub(crate) fn with_hrtick(self) -> Eevdf {
        Eevdf { hrtick: true, ..self }
    }

    /// Lag of a thread: positive if it ran less than its share.
    pub(super) fn vlag(&self, entity: &Entity, avg_vruntime: i64) -> i64 {
        (avg_vruntime - entity.vruntime).clamp(-self.limit, self.limit)
    }

    /// Places a thread beside `others`, so that its lag is the same when the average counts it too. One that migrates
    /// keeps its relative deadline.
    pub(super) fn place(&self, entity: &mut Entity, avg_vruntime: i64, others: usize, migrates: bool) {
        let left = entity.deadline - entity.vruntime;
        let others = others as i64;
        let vlag = if others == 0 { 0 } else { entity.vlag * (others + 1) / others };
        entity.vruntime = avg_vruntime - vlag;
        entity.deadline = entity.vruntime + if migrates { left } else { self.slice };
    }

    /// A thread has run; true if its slice is used, and it has a new deadline.
    pub(super) fn update_deadline(&self, entity: &mut Entity) -> bool {
        let used = entity.vruntime >= entity.deadline;
        if used {
            entity.deadline = entity.vruntime + self.slice;
        }
        used
    }
}

/// Average of virtual runtimes; `empty` if there are none.
pub(super) fn avg_vruntime(vruntimes: impl Iterator<Item = i64> + Clone, empty: i64) -> i64 {
    let count = vruntimes.clone().count() as i64;
    let Some(first) = vruntimes.clone().next() else { return empty };
    first + vruntimes.map(|at| at - first).sum::<i64>().div_euclid(count)
}

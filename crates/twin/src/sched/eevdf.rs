//! EEVDF, the fair class since 6.6, as 6.12 has it: `place_entity`, `update_entity_lag`, `pick_eevdf`,
//! `update_deadline`, and `sched_delayed`.
//!
//! A thread is eligible if its virtual runtime is not above the mean of its CPU; of those the one with the earliest
//! deadline runs, and keeps the CPU while it is eligible, until it has used its slice (`RUN_TO_PARITY`). What a thread had too little or too
//! much, its lag, is kept over sleep: one that had too much remains in the mean, as delayed, until it is eligible again
//! or wakes. Not modelled: weights, groups, slices of different length, the half slice of a new thread. Checked by tests
//! in [`super::fair`].

use super::fair::{Entity, MS, factor};

/// Times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eevdf {
    /// `sched_base_slice`, which grows with the number of CPUs up to eight.
    slice: i64,
    /// Most lag on either side.
    limit: i64,
}

impl Eevdf {
    pub(crate) fn new(cpus: usize, hz: u64) -> Eevdf {
        let slice = MS * 3 / 4 * factor(cpus);
        Eevdf { slice, limit: (2 * slice).max(1000 * MS / hz.max(1) as i64) }
    }

    /// Lag of a thread where the mean is `mean`: how much it had too little.
    pub(super) fn lag(&self, entity: &Entity, mean: i64) -> i64 {
        (mean - entity.vruntime).clamp(-self.limit, self.limit)
    }

    /// Places a thread with its lag among `others`, of which the mean is `mean`: so that its lag is the same when it is
    /// in the mean itself. One that was moved keeps how far it is from its deadline.
    pub(super) fn place(&self, entity: &mut Entity, mean: i64, others: usize, moved: bool) {
        let left = entity.deadline - entity.vruntime;
        let others = others as i64;
        let lag = if others == 0 { 0 } else { entity.lag * (others + 1) / others };
        entity.vruntime = mean - lag;
        entity.deadline = entity.vruntime + if moved { left } else { self.slice };
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

/// Mean of virtual runtimes; `empty` if there are none.
pub(super) fn mean(entities: impl Iterator<Item = i64> + Clone, empty: i64) -> i64 {
    let count = entities.clone().count() as i64;
    let Some(first) = entities.clone().next() else { return empty };
    first + entities.map(|at| at - first).sum::<i64>().div_euclid(count)
}

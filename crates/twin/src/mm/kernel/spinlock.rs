//! Spin locks of CPUs that share the time of one ([`super::budget`]): where a CPU's turn ends while it holds a lock, another
//! that wants it spins for the rest of its own turn. Under a hypervisor the kernel's spin locks have no queue
//! (`virt_spin_lock`), so whoever tries next after a release has the lock.
//!
//! Which locks there are is in [`Lock`]; who spins for which in guests of 6.1 to 7.3 is in docs/model/notebook.md ("Spin locks").
//! All of a refill, an addition to an LRU list and an isolation is under its lock, of other costs [`percent`]. CPUs that have
//! time of their own hold a lock for microseconds, and wait for none.
//!
//! Not modelled: locks of run queues and others, those of page tables in faults, and of additions to a file by read-ahead. In
//! reclaim with swap guests lose two to five times as much as the twin. Checked by tests here and by times in guests (`tests/lab_time.rs`).

use super::Kernel;
use crate::time::Ps;
use std::collections::VecDeque;

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// A zone's buddy lists (`zone->lock`).
    Zone(usize),
    /// A node's LRU lists (`lru_lock`).
    Lruvec(usize),
    /// The pages of a region's file (`i_pages`).
    Pages(usize),
    /// Those in swap (`swap_address_space`).
    SwapCache,
    /// A table of a region's pages, by 2 MiB.
    PageTable(usize, u64),
}

/// Work under a lock, from when it is taken until it is released: by the CPU's clock while the step is simulated, later as what is
/// then left of the step's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub lock: Lock,
    pub from: Ps,
    pub to: Ps,
}

/// Percent of costs that are under a lock. Function graphs of 6.1 have `__filemap_add_folio` with 7 of the 10 us of a new page
/// of a file, `__folio_mark_dirty` with all of what makes it dirty, and `__folio_start_writeback` with 5.6 of the 31 us of its
/// writeback; of the first two half is assumed to be under the lock, with which a writer and the flusher lose 157 and 148 ms
/// where those of 6.1 and 6.12 lose about 100 and 110. Of the walks of page tables it is assumed.
pub(crate) mod percent {
    pub(crate) const RMAP: u64 = 45;
    pub(crate) const UNMAP: u64 = 75;
    pub(crate) const FILE_CREATE: u64 = 35;
    pub(crate) const FILE_DIRTY: u64 = 50;
    pub(crate) const WRITE_PAGE: u64 = 18;
}

/// Locks that a step takes, and those that are held between turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spinlocks {
    /// When the turn under way ends.
    turn_end: Ps,
    /// Work under locks beyond that.
    sections: Vec<Section>,
    /// By which CPUs that have no turn.
    held: Vec<(Lock, u32)>,
}

impl Spinlocks {
    /// A CPU goes on: what it holds concerns nobody until its turn ends.
    pub(super) fn begin_turn(&mut self, cpu: u32, end: Ps) {
        self.turn_end = end;
        self.sections.clear();
        self.held.retain(|&(_, by)| by != cpu);
    }

    /// A CPU's turn ends at a time, when it had come to `did`: the work under locks that is left.
    pub(super) fn end_turn(&mut self, cpu: u32, end: Ps, did: Ps) -> VecDeque<Section> {
        let beyond = self.sections.drain(..).filter(|section| section.to > end);
        let held = &mut self.held;
        let left = |Section { lock, from, to }| {
            held.extend((from < end).then_some((lock, cpu)));
            Section { lock, from: did - from, to: did - to }
        };
        beyond.map(left).collect()
    }
}

impl Kernel {
    /// A CPU works for some time under a lock.
    #[inline]
    pub(crate) fn spend_locked(&mut self, cpu: u32, lock: Lock, time: Ps) {
        match &self.budget {
            None => self.spend(cpu, time),
            Some(_) => self.spend_locked_in_turn(cpu, lock, time),
        }
    }

    /// A CPU does something for some time, some percent of it under a lock.
    #[inline]
    pub(crate) fn spend_partly_locked(&mut self, cpu: u32, lock: Lock, time: Ps, percent: u64) {
        let locked = time * percent / 100;
        self.spend(cpu, time - locked);
        self.spend_locked(cpu, lock, locked);
    }

    fn spend_locked_in_turn(&mut self, cpu: u32, lock: Lock, time: Ps) {
        let end = self.budget.as_ref().map_or(0, |budget| budget.locks.turn_end);
        if self.clock(cpu) < end && self.is_locked(lock, cpu) {
            self.spend(cpu, end - self.clock(cpu));
        }
        let from = self.clock(cpu);
        self.spend(cpu, time);
        let to = self.clock(cpu);
        if to > end {
            self.budget.iter_mut().for_each(|budget| budget.locks.sections.push(Section { lock, from, to }));
        }
    }

    /// True if another CPU holds a lock, which has something to run, but no turn.
    pub(crate) fn is_locked(&self, lock: Lock, cpu: u32) -> bool {
        let held = self.budget.iter().flat_map(|budget| &budget.locks.held);
        held.into_iter().any(|&(held, by)| held == lock && by != cpu && self.busy[by as usize])
    }

    /// A CPU's turn ends under a lock.
    pub(crate) fn hold(&mut self, lock: Lock, cpu: u32) {
        self.budget.iter_mut().for_each(|budget| budget.locks.held.push((lock, cpu)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::tests::cpus;
    use super::*;

    #[test]
    fn who_wants_a_lock_that_has_no_turn_spins_for_the_rest_of_its_own() {
        let mut kernel = cpus(2);
        kernel.share_budget(0);
        (0..2).for_each(|cpu| kernel.leave_idle(cpu).unwrap());
        kernel.begin_turn(0, 0, 100);
        kernel.spend_locked(0, Lock::Zone(0), 40);
        kernel.spend(0, 20);
        kernel.spend_locked(0, Lock::Zone(1), 70);
        kernel.spend_locked(0, Lock::Lruvec(0), 10);
        let ended = kernel.end_turn(0, 100);
        let sections =
            [Section { lock: Lock::Zone(1), from: 80, to: 10 }, Section { lock: Lock::Lruvec(0), from: 10, to: 0 }];
        assert_eq!((ended.beyond, ended.sections), (40, sections.into()));

        kernel.begin_turn(1, 100, 200);
        kernel.spend_locked(1, Lock::Lruvec(0), 10);
        assert_eq!(kernel.clock(1), 110, "it was not taken yet");
        kernel.spend_locked(1, Lock::Zone(1), 10);
        assert_eq!(kernel.clock(1), 210, "it spun until its turn was over");
        assert_eq!(kernel.end_turn(1, 200).beyond, 10);
        kernel.begin_turn(0, 200, 300);
        assert!(!kernel.is_locked(Lock::Zone(1), 1), "its holder goes on");
    }
}

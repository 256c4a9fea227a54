//! One CPU of the host for each guest in mode exact.
//!
//! The emulator runs a guest's timers in the thread of its virtual CPUs, after exactly the number of instructions of
//! the timer. Its main loop, which every timer wakes, also runs those that are due: if it is first, the interrupt
//! reaches the virtual CPU from outside and ends its turn early, and the run differs from others. On one CPU the main
//! loop does not run beside the virtual CPUs. Without this, 1 of 22 pairs of runs with disks differed.

use rustix::thread::CpuSet;
use std::sync::{Mutex, PoisonError};

/// For every guest of this process that runs: its CPU.
static TAKEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A CPU, until dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    cpu: usize,
}

impl Pinned {
    /// The CPU that the fewest guests of this process use, among those it may use; `None` if that is not known.
    pub fn claim() -> Option<Pinned> {
        let allowed = rustix::thread::sched_getaffinity(None).ok()?;
        let mut cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
        // Other processes begin elsewhere.
        let first = rustix::process::getpid().as_raw_pid() as usize % cpus.len().max(1);
        cpus.rotate_left(first);
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu = cpus.into_iter().min_by_key(|cpu| taken.iter().filter(|other| *other == cpu).count())?;
        taken.push(cpu);
        Some(Pinned { cpu })
    }

    /// This CPU alone.
    pub fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        set.set(self.cpu);
        set
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = taken.iter().position(|cpu| *cpu == self.cpu) {
            taken.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_share_a_cpu_only_when_there_are_more_of_them() {
        let count = std::thread::available_parallelism().unwrap().get();
        let guests: Vec<Pinned> = (0..2 * count).map(|_| Pinned::claim().unwrap()).collect();
        for guest in &guests {
            assert_eq!(guests.iter().filter(|other| other.cpu == guest.cpu).count(), 2);
            assert_eq!(guest.set().count(), 1);
        }
        drop(guests);
        assert!(TAKEN.lock().unwrap().is_empty());
    }
}

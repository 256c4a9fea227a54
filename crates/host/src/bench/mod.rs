//! What designs of the kernel cost on this machine: the same algorithms with real threads and real atomics.
//!
//! [`counters`] runs the per-CPU counter designs of the page allocator, [`purge`] the two ways of accounting for
//! purged vmalloc areas. A thread pinned to a CPU stands for that CPU, a slot that only it writes for the CPU's own
//! memory. What a process cannot do is omitted: interrupts are not switched off, nothing is preempted on purpose.

pub mod counters;
pub mod figure;
pub mod purge;
pub mod threads;
pub mod work;

/// CPUs from which on contention says something about larger machines. With two or three, a line goes back and forth
/// between the same few caches and never queues.
pub const ENOUGH_CPUS: usize = 4;

/// Numbers of threads to measure with: 1, 2, 4, ... and all.
pub fn steps(cpus: usize) -> Vec<usize> {
    let mut steps: Vec<usize> = (0..usize::BITS).map(|bit| 1 << bit).take_while(|&n| n < cpus).collect();
    steps.push(cpus);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_and_all() {
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(2), [1, 2]);
        assert_eq!(steps(6), [1, 2, 4, 6]);
        assert_eq!(steps(8), [1, 2, 4, 8]);
    }
}

//! How time passes: ticks for the latency of single accesses, and CPU work for think time.
//!
//! Think time is work, not waiting: the kernel's NUMA scanner follows the CPU time of a task. An amount of work is the
//! same number of multiplications wherever it is done, so that a thread that lost its CPU does not think less.

use crate::bench::work::Work;
use crate::clock;
use serde::{Deserialize, Serialize};

/// Speeds of this machine, measured once per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Ticks per nanosecond.
    pub ticks: f64,
    /// Rounds of [`Work`] per nanosecond of CPU time.
    pub rounds: f64,
}

/// Nanoseconds over which ticks are counted: the error of reading two clocks, some 50 ns, is 5 ppm of it.
const COUNTED: u64 = 10_000_000;

impl Pace {
    /// Measures the CPU that this runs on; takes some 12 ms.
    pub fn measure() -> Pace {
        let rounds = Work::speed();
        let (begin, first) = (clock::now(), ticks());
        while clock::now() - begin < COUNTED {}
        let (last, end) = (ticks(), clock::now());
        Pace { ticks: last.saturating_sub(first).max(1) as f64 / (end - begin) as f64, rounds }
    }

    /// Nanoseconds of some ticks.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.ticks) as u64
    }

    /// The tick at which the clock will show `time`; times too far away to count are never reached.
    pub fn tick_at(&self, time: u64) -> u64 {
        let ahead = time.saturating_sub(clock::now()) as f64 * self.ticks;
        ticks().saturating_add(ahead as u64)
    }

    /// Work that takes so many nanoseconds of CPU time; none for less than none.
    pub fn work(&self, nanoseconds: f64) -> Work {
        Work::of((nanoseconds * self.rounds).max(0.0).round() as u64)
    }
}

/// The time-stamp counter, or nanoseconds where there is none to read. Waits for the loads before it, so that their
/// latency is in the difference.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: both are part of every x86-64 CPU (SSE2 and TSC); Linux leaves the counter readable in user mode
        // unless a process has asked otherwise (PR_SET_TSC), which none here does.
        unsafe {
            core::arch::x86_64::_mm_lfence();
            core::arch::x86_64::_rdtsc()
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        clock::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_nanoseconds_in_the_end() {
        let pace = Pace { ticks: 2.5, rounds: 0.5 };
        assert_eq!(pace.nanoseconds(2500), 1000);
        assert_eq!(pace.tick_at(u64::MAX), u64::MAX);
        let soon = pace.tick_at(0);
        assert!(soon <= ticks());
    }

    #[test]
    fn a_machine_has_a_pace() {
        let pace = Pace::measure();
        assert!(pace.ticks > 0.0 && pace.rounds > 0.0, "{pace:?}");
    }
}

//! Local work: what a CPU does beside the operation that is measured.
//!
//! How often a shared line changes hands depends on how much else is done in between, so a loop of bare counter
//! updates would say nothing about a kernel's. The work is a chain of dependent multiplications without any memory, and
//! the operation is made part of the chain: its address comes from the work before it, and the work after it begins
//! with what it read. A processor that runs instructions out of order can therefore hide neither behind the other.

use super::threads::{Cpu, on};
use crate::{Error, clock};
use std::hint::black_box;
use std::time::Duration;

/// An amount of local work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    rounds: u64,
    /// 0, which the compiler does not know.
    nothing: u64,
}

/// Multiplications per measurement of their speed.
const SAMPLE: u64 = 1 << 17;

impl Work {
    /// As much as takes `time` on the first of these CPUs. Fails if there is none or it is not available.
    pub fn lasting(time: Duration, cpus: &[Cpu]) -> Result<Work, Error> {
        let missing = || Error::io("finding a CPU to run on", std::io::ErrorKind::NotFound);
        let cpu = *cpus.first().ok_or_else(missing)?;
        Ok(Work::of((time.as_nanos() as f64 * on(cpu, Work::speed)?).round() as u64))
    }

    /// Rounds per nanosecond on the CPU that this runs on: the fastest of several measurements, for whatever else
    /// happens can only make it slower. By the clock and not by CPU time, which some guests count in whole ticks.
    pub fn speed() -> f64 {
        let sample = || {
            let begin = clock::now();
            black_box(Work::of(SAMPLE).after(black_box(1)));
            clock::now() - begin
        };
        SAMPLE as f64 / (0..16).map(|_| sample()).min().unwrap_or(0).max(1) as f64
    }

    /// Works, beginning with `chain`; the result begins whatever comes next.
    #[inline]
    pub fn after(self, mut chain: u64) -> u64 {
        for _ in 0..self.rounds {
            // Knuth's multiplier for 64 bits: odd, so that nothing can be simplified.
            chain = chain.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        chain
    }

    /// `index`, but known only when `chain` is: the compiler and the processor must wait for it.
    #[inline]
    pub fn once_known(self, index: usize, chain: u64) -> usize {
        index + (chain & self.nothing) as usize
    }

    /// So many multiplications.
    pub fn of(rounds: u64) -> Work {
        Work { rounds, nothing: black_box(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::threads::cpus;

    #[test]
    fn work_depends_on_its_beginning_and_amount() {
        let work = |rounds, chain| Work::of(rounds).after(chain);
        assert_eq!(work(0, 7), 7);
        assert_ne!(work(3, 7), work(3, 8));
        assert_ne!(work(3, 7), work(4, 7));
        assert_eq!([0, 1, u64::MAX].map(|chain| Work::of(1).once_known(5, chain)), [5; 3]);
    }

    #[test]
    fn no_time_is_no_work() {
        let cpus = cpus().unwrap();
        assert_eq!(Work::lasting(Duration::ZERO, &cpus).unwrap().rounds, 0);
        assert!(Work::lasting(Duration::from_millis(1), &cpus).unwrap().rounds > 0);
        assert!(Work::lasting(Duration::from_millis(1), &[]).is_err());
    }
}

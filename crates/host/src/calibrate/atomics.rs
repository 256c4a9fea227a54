//! Atomics on one cache line: alone, between every two CPUs, and with more and more CPUs.
//!
//! A *transfer* is what one CPU waits for a line that another wrote last. Two CPUs wait for each other's value with
//! compare-and-exchange and write theirs; half a round trip is a transfer, the figure that public core-to-core tables
//! give. A *hand-off* is the time from one locked addition to the next on a line that CPUs queue for, every one adding
//! as fast as it can: the service time of a contended counter. It can be shorter than a transfer, because a CPU makes
//! several additions while it has the line.

use crate::bench::figure::{Figure, in_rounds, mean};
use crate::bench::steps;
use crate::bench::threads::{Cpu, Gate, Padded, paced, together};
use crate::{Error, clock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Two CPUs and a line.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Indices of the CPUs, the smaller first.
    pub cpus: (usize, usize),
    /// Nanoseconds of a transfer.
    pub transfer: Figure,
    /// Nanoseconds of a hand-off while both add.
    pub handoff: f64,
}

/// Some CPUs and a line.
#[derive(Clone, Copy, Debug)]
pub struct Contended {
    /// CPUs that add.
    pub cpus: usize,
    /// Nanoseconds of an addition on one of them.
    pub add: Figure,
}

impl Contended {
    /// Nanoseconds of a hand-off: from one addition to the next, whoever makes them.
    pub fn handoff(&self) -> f64 {
        self.add.median / self.cpus as f64
    }
}

/// Round trips of one sample.
const TRIPS: u64 = 100;

/// Samples of a pair; the median leaves out those in which a CPU did something else.
const SAMPLES: u64 = 31;

/// Additions of each CPU of a pair.
const ADDITIONS: u32 = 10_000;

/// Additions between two looks at whether the run is over.
const BATCH: u32 = 64;

/// Time of a round with many CPUs.
const ROUND: Duration = Duration::from_millis(20);

/// A locked addition to a line of one's own: the median CPU. Fails if a CPU cannot be had.
pub fn uncontended(cpus: &[Cpu]) -> Result<f64, Error> {
    let times = cpus.iter().map(|&cpu| {
        let line = Padded::<AtomicU64>::default();
        Ok(together(&[cpu], Duration::from_millis(1), |_, gate| add_until_over(&line.0, gate))?[0])
    });
    let times: Result<Vec<f64>, Error> = times.collect();
    Ok(Figure::of(times?).map_or(0.0, |figure| figure.median))
}

/// Every pair of CPUs. Fails if one of them cannot be had.
pub fn pairs(cpus: &[Cpu]) -> Result<Vec<Pair>, Error> {
    let mut pairs = Vec::new();
    for second in 1..cpus.len() {
        for first in 0..second {
            let both = [cpus[first], cpus[second]];
            let Some(transfer) = transfer(&both)? else { continue };
            pairs.push(Pair { cpus: (first, second), transfer, handoff: handoff(&both)? });
        }
    }
    pairs.sort_by_key(|pair| pair.cpus);
    Ok(pairs)
}

fn transfer(both: &[Cpu; 2]) -> Result<Option<Figure>, Error> {
    let line = Padded::<AtomicU64>::default();
    let samples = together(both, Duration::ZERO, |cpu, gate| {
        gate.wait();
        let samples = (0..SAMPLES).map(|sample| {
            let begin = clock::thread_cpu_time();
            for trip in 0..TRIPS {
                // The first waits for even values, the second for the odd ones that the first makes of them.
                let mine = 2 * (sample * TRIPS + trip) + cpu as u64;
                while line.0.compare_exchange(mine, mine + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {}
            }
            (clock::thread_cpu_time() - begin) as f64 / (2 * TRIPS) as f64
        });
        samples.collect::<Vec<_>>()
    })?;
    Ok(samples.into_iter().next().and_then(Figure::of))
}

fn handoff(both: &[Cpu; 2]) -> Result<f64, Error> {
    let line = Padded::<AtomicU64>::default();
    let times = together(both, Duration::ZERO, |_, gate| {
        gate.wait();
        let begin = clock::thread_cpu_time();
        for _ in 0..ADDITIONS {
            line.0.fetch_add(1, Ordering::Relaxed);
        }
        (clock::thread_cpu_time() - begin) as f64 / f64::from(ADDITIONS)
    })?;
    Ok(mean(&times) / both.len() as f64)
}

/// 2, 4, ... and all CPUs adding to one line. Fails if one of them cannot be had.
pub fn contended(cpus: &[Cpu]) -> Result<Vec<Contended>, Error> {
    let steps: Vec<usize> = steps(cpus.len()).into_iter().filter(|&adding| adding > 1).collect();
    let figures = in_rounds(&steps, |&cpus_adding| {
        let line = Padded::<AtomicU64>::default();
        let times = together(&cpus[..cpus_adding], ROUND, |_, gate| add_until_over(&line.0, gate))?;
        Ok(mean(&times))
    })?;
    Ok(steps.into_iter().zip(figures).map(|(cpus, add)| Contended { cpus, add }).collect())
}

fn add_until_over(line: &AtomicU64, gate: &Gate) -> f64 {
    let time = paced(gate, || {
        for _ in 0..BATCH {
            line.fetch_add(1, Ordering::Relaxed);
        }
    });
    time / f64::from(BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::threads::cpus;

    #[test]
    fn every_pair_once() {
        let cpus = cpus().unwrap();
        let pairs = pairs(&cpus).unwrap();
        assert_eq!(pairs.len(), cpus.len() * (cpus.len() - 1) / 2);
        assert!(pairs.iter().all(|p| p.cpus.0 < p.cpus.1 && p.transfer.low > 0.0 && p.handoff > 0.0));
    }

    #[test]
    fn contention_with_every_step() {
        let cpus = cpus().unwrap();
        let contended = contended(&cpus).unwrap();
        assert!(contended.iter().map(|c| c.cpus).eq(steps(cpus.len()).into_iter().skip(1)));
        assert!(contended.iter().all(|c| c.handoff() > 0.0 && c.handoff() <= c.add.median));
        assert!(uncontended(&cpus).unwrap() > 0.0);
    }
}

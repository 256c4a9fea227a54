//! Atomics on one cache line: alone, between each pair of CPUs, and with more and more CPUs.
//!
//! A *transfer* is what one CPU waits for a line that another wrote last. Two CPUs wait for each other's value with
//! compare-and-exchange and write theirs; half a round trip is a transfer, the figure that public core-to-core tables
//! give. A *hand-off* is the time from one locked addition to the next on a line that CPUs queue for, every one adding
//! as fast as it can: the service time of a contended counter. It can be shorter than a transfer, because a CPU makes
//! several additions while it has the line.

use crate::bench::figure::{Figure, in_rounds};
use crate::bench::steps;
use crate::bench::threads::{Cpu, Padded, paced, together};
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
    pub handoff: Figure,
}

/// Some CPUs and a line.
#[derive(Clone, Copy, Debug)]
pub struct Contended {
    /// CPUs that add.
    pub cpus: usize,
    /// Nanoseconds of a hand-off: from one addition to the next, whoever makes them.
    pub handoff: Figure,
}

/// Round trips of one sample.
const TRIPS: u64 = 100;

/// Samples of a pair; the median omits those in which a CPU did something else.
const SAMPLES: u64 = 31;

/// Additions in a sample of the faster CPU of a pair.
const ADDITIONS: u32 = 1024;

/// Additions between two looks at whether the run is over.
const BATCH: u32 = 64;

/// Time of a round with many CPUs.
const ROUND: Duration = Duration::from_millis(20);

/// A locked addition to a line of one's own, over all CPUs; `None` if there are none. Fails if one is not available.
pub fn uncontended(cpus: &[Cpu]) -> Result<Option<Figure>, Error> {
    let times = cpus.iter().map(|&cpu| {
        let line = Padded::<AtomicU64>::default();
        let batch = together(&[cpu], Duration::from_millis(1), |_, gate| paced(gate, || _ = add(&line.0)))?[0];
        Ok(batch / f64::from(BATCH))
    });
    let times: Result<Vec<f64>, Error> = times.collect();
    Ok(Figure::of(times?))
}

/// Every pair of CPUs. Fails if one of them is not available.
pub fn pairs(cpus: &[Cpu]) -> Result<Vec<Pair>, Error> {
    let mut pairs = Vec::new();
    for second in 1..cpus.len() {
        for first in 0..second {
            let both = [cpus[first], cpus[second]];
            if let Some((transfer, handoff)) = transfer(&both)?.zip(handoff(&both)?) {
                pairs.push(Pair { cpus: (first, second), transfer, handoff });
            }
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

fn handoff(both: &[Cpu; 2]) -> Result<Option<Figure>, Error> {
    let line = Padded::<AtomicU64>::default();
    let [arrived, over] = [(); 2].map(|()| Padded::<AtomicU64>::default());
    let rates = together(both, Duration::ZERO, |_, gate| {
        gate.wait();
        let samples = (1..=SAMPLES).map(|sample| {
            // Together into each sample and out of it: what one does while the other is away is not contention.
            arrived.0.fetch_add(1, Ordering::AcqRel);
            while arrived.0.load(Ordering::Acquire) < 2 * sample {}
            let begin = clock::now();
            let mut added = 0;
            while added < ADDITIONS && over.0.load(Ordering::Relaxed) < sample {
                added += add(&line.0);
            }
            let rate = f64::from(added) / (clock::now() - begin).max(1) as f64;
            over.0.fetch_max(sample, Ordering::Relaxed);
            rate
        });
        samples.collect::<Vec<f64>>()
    })?;
    let [first, second] = &rates[..] else { return Ok(None) };
    let handoffs = first.iter().zip(second).map(|(a, b)| 1.0 / (a + b)).filter(|time| time.is_finite());
    Ok(Figure::of(handoffs.collect()))
}

/// 2, 4, ... and all CPUs adding to one line. Fails if one of them is not available.
pub fn contended(cpus: &[Cpu]) -> Result<Vec<Contended>, Error> {
    let steps: Vec<usize> = steps(cpus.len()).into_iter().filter(|&adding| adding > 1).collect();
    let figures = in_rounds(&steps, |&adding| {
        let line = Padded::<AtomicU64>::default();
        let rates = together(&cpus[..adding], ROUND, |_, gate| {
            // Time that passes, not CPU time: the line serves whoever runs.
            gate.wait();
            let begin = clock::now();
            let mut added = 0u64;
            while added == 0 || !gate.over() {
                added += u64::from(add(&line.0));
            }
            added as f64 / (clock::now() - begin).max(1) as f64
        })?;
        Ok(1.0 / rates.iter().sum::<f64>())
    })?;
    Ok(steps.into_iter().zip(figures).map(|(cpus, handoff)| Contended { cpus, handoff }).collect())
}

/// A batch of additions; returns how many.
fn add(line: &AtomicU64) -> u32 {
    for _ in 0..BATCH {
        line.fetch_add(1, Ordering::Relaxed);
    }
    BATCH
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
        assert!(pairs.iter().all(|p| p.cpus.0 < p.cpus.1 && p.transfer.low > 0.0 && p.handoff.low > 0.0));
    }

    #[test]
    fn contention_with_every_step() {
        let cpus = cpus().unwrap();
        let contended = contended(&cpus).unwrap();
        assert!(contended.iter().map(|c| c.cpus).eq(steps(cpus.len()).into_iter().skip(1)));
        assert!(contended.iter().all(|c| c.handoff.low > 0.0));
        assert!(uncontended(&cpus).unwrap().is_some_and(|add| add.low > 0.0));
        assert!(uncontended(&[]).unwrap().is_none());
    }
}

//! A measured time, and what a nanosecond is in cycles.

use crate::{Error, clock};
use std::fs;

/// Times that a cell is measured. Cells take turns, so that what disturbs the machine for a while disturbs all alike.
pub const ROUNDS: u32 = 5;

/// Nanoseconds of one operation over the rounds of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The median round.
    pub median: f64,
    /// The fastest round.
    pub low: f64,
    /// The slowest round.
    pub high: f64,
}

impl Figure {
    /// Of the rounds, in any order; `None` if there are none.
    pub fn of(mut rounds: Vec<f64>) -> Option<Figure> {
        rounds.sort_by(f64::total_cmp);
        let (&low, &high) = (rounds.first()?, rounds.last()?);
        let middle = rounds.len() / 2;
        let median =
            if rounds.len() % 2 == 1 { rounds[middle] } else { f64::midpoint(rounds[middle - 1], rounds[middle]) };
        Some(Figure { median, low, high })
    }
}

/// Measures cells in rounds: every cell once, then every cell again. Returns a figure per cell, in their order, or the first
/// error.
pub fn in_rounds<C>(cells: &[C], mut measure: impl FnMut(&C) -> Result<f64, Error>) -> Result<Vec<Figure>, Error> {
    let mut rounds = vec![Vec::new(); cells.len()];
    for _ in 0..ROUNDS {
        for (cell, rounds) in cells.iter().zip(&mut rounds) {
            rounds.push(measure(cell)?);
        }
    }
    Ok(rounds.into_iter().filter_map(Figure::of).collect())
}

/// Mean of the threads of one round, as the published loops report theirs.
pub fn mean(threads: &[f64]) -> f64 {
    threads.iter().sum::<f64>() / threads.len() as f64
}

/// A running measurement of the time-stamp counter's frequency.
pub struct Cycles {
    counter: u64,
    nanoseconds: u64,
}

impl Cycles {
    /// Begins; `None` where there is no counter that runs at one frequency whatever the processor does.
    pub fn begin() -> Option<Cycles> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
        let flags = cpuinfo.lines().find(|l| l.starts_with("flags"))?;
        let has = |flag: &str| flags.split_whitespace().any(|f| f == flag);
        let steady = has("constant_tsc") && has("nonstop_tsc");
        steady.then(counter).flatten().map(|counter| Cycles { counter, nanoseconds: clock::now() })
    }

    /// Cycles per nanosecond since the beginning; `None` if less than a millisecond has passed.
    pub fn per_nanosecond(&self) -> Option<f64> {
        let counted = counter()?.checked_sub(self.counter)?;
        let passed = clock::now().checked_sub(self.nanoseconds).filter(|&ns| ns >= 1_000_000)?;
        Some(counted as f64 / passed as f64)
    }
}

#[cfg(target_arch = "x86_64")]
fn counter() -> Option<u64> {
    // SAFETY: every x86-64 processor has the instruction, and it accesses no memory. Linux lets processes use it; one
    // that asked the kernel to refuse it (PR_SET_TSC) would get a signal, which is no undefined behaviour.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let figure = |rounds: &[f64]| Figure::of(rounds.to_vec()).map(|f| (f.median, f.low, f.high));
        assert_eq!(figure(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(figure(&[4.0, 1.0]), Some((2.5, 1.0, 4.0)));
        assert_eq!(figure(&[]), None);
    }

    #[test]
    fn cells_take_turns() {
        let mut order = Vec::new();
        let figures = in_rounds(&[1, 2], |&cell| {
            order.push(cell);
            Ok(f64::from(cell))
        });
        assert_eq!(order[..4], [1, 2, 1, 2]);
        assert_eq!(order.len(), 2 * ROUNDS as usize);
        assert_eq!(figures.unwrap().iter().map(|f| f.median).collect::<Vec<_>>(), [1.0, 2.0]);
    }
}

//! The three stress tests of `test_vmalloc` as programs.
//!
//! Models `fix_size_alloc_test`, `full_fit_alloc_test` and `long_busy_list_alloc_test` of lib/test_vmalloc.c (6.12):
//! every thread runs the selected ones in its own random order. The local time of a loop is what it takes alone on a
//! machine; a step that only allocates or only frees takes half of it. Not modelled: migration of threads, and what the
//! pages themselves cost under contention.

use super::params::{Workload, fls};
use crate::time::{Random, Use};

/// Pages of an area: payload and the guard page.
pub const GUARD: u32 = 1;
/// Allocations that `long_busy_list_alloc_test` keeps.
const BUSY: u64 = 15_000;
/// Payload of its large allocation.
const LARGE: u32 = 100;

/// Round of a thread: allocate areas, then free areas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How often.
    pub times: u64,
    /// Pages of the areas allocated, guard included; 0: none.
    pub allocates: [u32; 2],
    /// The areas to free.
    pub frees: Frees,
    /// Local time of one round in nanoseconds.
    pub local_ns: f64,
}

/// Which areas a step frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    /// None: allocated areas are kept.
    Nothing,
    /// Those of this round.
    Own,
    /// One area that earlier steps of the same test kept; in round i the one kept as number first + i * stride.
    Kept {
        /// Its pages, guard included.
        pages: u32,
        /// Number of the first, counted from 0 in the order of allocation.
        first: u32,
        /// Distance to the next.
        stride: u32,
    },
}

impl Step {
    /// Areas allocated per round.
    pub fn allocated(&self) -> u32 {
        self.allocates.iter().filter(|&&pages| pages > 0).count() as u32
    }

    /// (areas, pages) freed per round.
    pub fn freed(&self) -> (u32, u32) {
        match self.frees {
            Frees::Nothing => (0, 0),
            Frees::Own => (self.allocated(), self.allocates.iter().sum()),
            Frees::Kept { pages, .. } => (1, pages),
        }
    }
}

/// The steps of one thread.
pub fn program(workload: &Workload, online_cpus: u32, thread: u32, seed: u64) -> Vec<Step> {
    let random = Random::new(seed, Use::TestOrder);
    let mut tests: Vec<u32> = (0..3).filter(|test| workload.tests & 1 << test != 0).collect();
    for i in (1..tests.len()).rev() {
        tests.swap(i, random.below(thread.into(), i as u64, i as u64 + 1) as usize);
    }
    let mut steps = Vec::new();
    for test in tests {
        for _ in 0..workload.repeats {
            match test {
                0 => steps.push(pair(workload, 0, [workload.pages + GUARD, 0])),
                1 => full_fit(workload, u64::from(fls(online_cpus)) * 8192, &mut steps),
                _ => long_busy_list(workload, &mut steps),
            }
        }
    }
    steps
}

fn pair(workload: &Workload, test: usize, allocates: [u32; 2]) -> Step {
    Step { times: workload.loops, allocates, frees: Frees::Own, local_ns: 1e3 * workload.loop_us[test] }
}

fn keep(times: u64, pages: u32, local_ns: f64) -> Step {
    Step { times, allocates: [pages, 0], frees: Frees::Nothing, local_ns }
}

fn drop(times: u64, pages: u32, (first, stride): (u32, u32), local_ns: f64) -> Step {
    Step { times, allocates: [0; 2], frees: Frees::Kept { pages, first, stride }, local_ns }
}

/// Pages of an array of `n` pointers by vmalloc, guard included.
fn array(n: u64) -> u32 {
    (n * 8).div_ceil(4096) as u32 + GUARD
}

/// Fills the space with `kept` areas and as many holes of exactly one area's size.
fn full_fit(workload: &Workload, kept: u64, steps: &mut Vec<Step>) {
    let (half, small) = (5e2 * workload.loop_us[1], 1 + GUARD);
    let pointers = array(kept);
    steps.push(keep(2, pointers, half));
    steps.push(keep(2 * kept, small, half));
    steps.push(drop(kept, small, (3, 2), half));
    steps.push(pair(workload, 1, [small, 0]));
    steps.push(drop(kept, small, (2, 2), half));
    steps.push(drop(2, pointers, (0, 1), half));
}

/// Many areas that stay, so that trees are deep.
fn long_busy_list(workload: &Workload, steps: &mut Vec<Step>) {
    let (half, small) = (5e2 * workload.loop_us[0], 1 + GUARD);
    let pointers = array(BUSY);
    steps.push(keep(1, pointers, half));
    steps.push(keep(BUSY, small, half));
    steps.push(pair(workload, 2, [LARGE + GUARD, small]));
    steps.push(drop(BUSY, small, (1, 1), half));
    steps.push(drop(1, pointers, (0, 1), half));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(tests: u32) -> Workload {
        Workload { threads: 1, tests, loops: 1_000_000, repeats: 1, pages: 1, loop_us: [1.0, 1.0, 10.0] }
    }

    #[test]
    fn areas_freed_per_thread_are_those_of_the_published_machines() {
        for (cpus, freed) in [(72, 4_129_691), (192, 4_146_075), (448, 4_162_459)] {
            let steps = program(&workload(7), cpus, 5, 1);
            assert_eq!(steps.iter().map(|step| step.times * u64::from(step.freed().0)).sum::<u64>(), freed);
            let allocated: u64 = steps.iter().map(|step| step.times * u64::from(step.allocated())).sum();
            assert_eq!(allocated, freed, "all are freed");
            let pages: u64 = steps.iter().map(|step| step.times * u64::from(step.freed().1)).sum();
            assert!((25.0..27.0).contains(&(pages as f64 / freed as f64)));
        }
    }

    #[test]
    fn every_thread_has_its_own_order() {
        let first = |thread| program(&workload(7), 4, thread, 9)[0].allocates;
        let orders: std::collections::BTreeSet<[u32; 2]> = (0..50).map(first).collect();
        assert_eq!(orders.len(), 3, "each test comes first somewhere");
        assert_eq!(program(&workload(1), 4, 0, 9).len(), 1);
    }
}

//! What a seed draws, in integers only: the same on every platform.

use mmtwin_scenario::program::random::{OfObject, Random, Use};

/// What is drawn for. Draws for one purpose do not shift those for another.
#[derive(Clone, Copy)]
#[repr(u64)]
pub enum For {
    /// Nodes, memory, disk and swap.
    Machine = 1,
    /// Release, sysctls, huge pages, the NUMA scanner.
    Kernel = 2,
    /// cgroups and processes.
    Workload = 3,
    /// The tunable of a family.
    Family = 4,
}

/// Numbers in the order in which they are asked for.
pub struct Draw {
    numbers: OfObject,
    next: u64,
}

impl Draw {
    /// The numbers of a seed.
    pub fn new(seed: u64, purpose: For) -> Draw {
        Draw { numbers: Random::new(seed, Use::Workload).of(purpose as u64), next: 0 }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next += 1;
        self.numbers.below(self.next, n)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of several. There is at least one.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

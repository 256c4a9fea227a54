//! CPUs in order of (clock, CPU).
//!
//! A tournament: the leaves are the CPUs, and each inner node has the lesser of its two children. A CPU comes and goes
//! in one walk from its leaf to the root, without branches that depend on the order; a binary heap takes two with them.

use super::Ps;

/// No CPU: behind all.
const NONE: (Ps, u32) = (Ps::MAX, u32::MAX);

/// The CPUs that have something to run, each with its clock.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    /// From the root at 1; the children of node i are 2i and 2i + 1. The leaves are the second half.
    nodes: Vec<(Ps, u32)>,
}

impl Ready {
    /// None of this many CPUs.
    pub(crate) fn new(cpus: usize) -> Ready {
        Ready { nodes: vec![NONE; 2 * cpus.next_power_of_two()] }
    }

    /// The first of them.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Ps, u32)> {
        Some(self.nodes[1]).filter(|first| first.1 != NONE.1)
    }

    /// The clock of a CPU, if it is there.
    pub(crate) fn clock(&self, cpu: u32) -> Option<Ps> {
        Some(self.nodes[self.nodes.len() / 2 + cpu as usize]).filter(|of| of.1 != NONE.1).map(|of| of.0)
    }

    /// Adds a CPU at a clock; one that is there stays as it is.
    #[inline]
    pub(crate) fn add(&mut self, clock: Ps, cpu: u32) {
        if self.nodes[self.nodes.len() / 2 + cpu as usize].1 == NONE.1 {
            self.set(cpu, (clock, cpu));
        }
    }

    /// Takes a CPU out.
    #[inline]
    pub(crate) fn remove(&mut self, cpu: u32) {
        self.set(cpu, NONE);
    }

    #[inline]
    fn set(&mut self, cpu: u32, to: (Ps, u32)) {
        let mut at = self.nodes.len() / 2 + cpu as usize;
        self.nodes[at] = to;
        while at > 1 {
            at /= 2;
            // Of equal clocks the left one, which has the lower number.
            let (left, right) = (self.nodes[2 * at], self.nodes[2 * at + 1]);
            self.nodes[at] = if right.0 < left.0 { right } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_first_is_that_of_a_sorted_set(steps in prop::collection::vec((0u64..9, 0u32..5, any::<bool>()), 0..60)) {
            let (mut ready, mut sorted) = (Ready::new(5), BTreeSet::new());
            for (clock, cpu, add) in steps {
                let known = sorted.iter().copied().find(|&(_, other)| other == cpu);
                if add {
                    ready.add(clock, cpu);
                    sorted.insert(known.unwrap_or((clock, cpu)));
                } else {
                    ready.remove(cpu);
                    known.iter().for_each(|known| { sorted.remove(known); });
                }
                prop_assert_eq!(ready.first(), sorted.first().copied());
            }
        }
    }
}

//! Memory that the kernel takes for objects of its own: a cache of SLUB (`new_slab`, `allocate_slab`, `__slab_free`; 5.17
//! to 6.12).
//!
//! Objects lie in blocks of pages. A new one goes into a block that has room, else into a new block, of a smaller order
//! where there is none of the usual one. A block that is empty is given back unless few are. Left out: what CPUs keep for
//! themselves, so that the order in which blocks are used differs; the objects' memory cgroups. Checked by a test here.

use super::Kernel;
use crate::alloc::{AllocationFailure, Caller, Policy, Request};
use crate::page::Pfn;
use crate::probe::Task;
use std::collections::{BTreeMap, BTreeSet};

/// What a cache's blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The usual block, and how many objects it has room for.
    pub usual: (Request, u64),
    /// What is asked for if there is no such block.
    pub small: (Request, u64),
    /// Empty blocks that are kept (`min_partial`).
    pub kept: usize,
}

/// A cache.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    shape: Shape,
    /// Objects of each block, and its room.
    blocks: BTreeMap<Pfn, (u64, u64)>,
    /// Those with room, and how many of them are empty.
    partial: BTreeSet<Pfn>,
    empty: usize,
}

impl Slab {
    /// An empty cache.
    pub(crate) fn new(shape: Shape) -> Slab {
        Slab { shape, blocks: BTreeMap::new(), partial: BTreeSet::new(), empty: 0 }
    }

    /// Takes an object: the block that it is in.
    pub(crate) fn take(&mut self, kernel: &mut Kernel, (cpu, task): (u32, Task)) -> Result<Pfn, AllocationFailure> {
        let block = match self.partial.first() {
            Some(&block) => block,
            None => {
                let Shape { usual, small, .. } = self.shape;
                let mut caller = Caller::new(cpu, task, Policy::Default);
                let (got, room) = match kernel.allocate_unchecked(&mut caller, &usual.0) {
                    Ok(got) => (got, usual.1),
                    Err(failure) if usual.0 == small.0 => return Err(failure),
                    Err(_) => (kernel.allocate_unchecked(&mut caller, &small.0)?, small.1),
                };
                self.blocks.insert(got.page, (0, room));
                self.partial.insert(got.page);
                self.empty += 1;
                got.page
            }
        };
        if let Some((used, room)) = self.blocks.get_mut(&block) {
            self.empty -= usize::from(*used == 0);
            *used += 1;
            if used == room {
                self.partial.remove(&block);
            }
        }
        Ok(block)
    }

    /// Gives an object of a block back.
    pub(crate) fn give(&mut self, kernel: &mut Kernel, (cpu, task): (u32, Task), block: Pfn) {
        let Some((used, _)) = self.blocks.get_mut(&block) else { return };
        *used -= 1;
        if *used > 0 || self.empty < self.shape.kept {
            self.empty += usize::from(*used == 0);
            self.partial.insert(block);
            return;
        }
        self.blocks.remove(&block);
        self.partial.remove(&block);
        let gone = kernel.free_unchecked(cpu, task, block);
        debug_assert!(gone.is_ok(), "a block of a cache was allocated");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Rules;
    use crate::kernel::KernelRules;
    use crate::machine::{Cpu, LoopCosts, Machine, PageCosts};
    use crate::probe::Probe;
    use crate::vmstat::{Design, Dialect, VmStatRules};

    #[test]
    fn objects_share_blocks() {
        let machine = Machine::pc(&[1 << 18], 0, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        let alone = LoopCosts { work: 100.0, count_s8: 0.0, count_u16: 0.0, count_word: 0.0 };
        let costs = PageCosts { clock_khz: 1_000_000, alone, shared_core: alone, refetch: 0.0, read_line: 0.0 };
        let (design, dialect) = (Design::Off, Dialect::V6_1);
        let vmstat = VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, dialect };
        let rules = KernelRules { alloc: Rules::V6_1, vmstat, reclaim: crate::reclaim::Rules::V6_1 };
        let mut kernel = Kernel::new(machine, costs, rules, Probe::off()).unwrap();
        let request = Request::KERNEL;
        let mut slab = Slab::new(Shape { usual: (request.of_order(3), 8), small: (request, 1), kept: 1 });
        let by = (0, Task::default());
        let blocks: Vec<Pfn> = (0..17).map(|_| slab.take(&mut kernel, by).unwrap()).collect();
        assert_eq!((slab.blocks.len(), blocks[0] == blocks[7], blocks[7] == blocks[8]), (3, true, false));
        assert_eq!(kernel.stat.events.allocated.iter().sum::<u64>(), 24);
        blocks.into_iter().for_each(|block| slab.give(&mut kernel, by, block));
        assert_eq!((slab.blocks.len(), slab.empty, kernel.stat.events.freed), (1, 1, 16));
    }
}

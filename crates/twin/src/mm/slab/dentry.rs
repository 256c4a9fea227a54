//! Names that were looked up and do not exist: negative dentries (`d_alloc`, `dput`, `prune_dcache_sb`, `dentry_free`; 6.1
//! to 6.12).
//!
//! Such a dentry has no user: it is added to the end of its node's list (`list_lru_add`), of which shrinkers free the oldest.
//! A slab of the cache `dentry` is freed with the last of its dentries: not when they are pruned, but after a grace period of
//! RCU (`machine.cost.rcu_grace_ticks`), on the CPU that pruned them. Names that are looked up one after another share slabs,
//! so slabs are freed nearly as fast as their dentries. Not modelled: names that exist, names too long to lie in their
//! dentry, dentries of a memory cgroup. Checked by tests
//! here and against guests (docs/fidelity.md, reclaim-slab).

use super::{Slab, SlabShape};
use crate::frame::{Migratetype, Pfn};
use crate::mm::kernel::Kernel;
use crate::page_alloc::{AllocationFailure, Request};
use crate::probe::Task;
use crate::time::{Ns, PS_PER_NS, Timers};
use std::collections::VecDeque;

/// Bytes of a dentry (`struct dentry` with a name of up to 31 bytes).
const SIZE: u64 = 192;

/// Memory for dentries.
const BLOCK: Request = Request {
    migratetype: Migratetype::Reclaimable,
    gfp: "GFP_KERNEL|__GFP_NOWARN|__GFP_NORETRY|__GFP_RECLAIMABLE",
    ..Request::KERNEL
};

/// All dentries of names that do not exist.
#[derive(Clone, Debug)]
pub(crate) struct Dentries {
    slab: Slab,
    /// By node: how many are on the list, and their blocks with how many of each, the oldest first.
    unused: Vec<(u64, VecDeque<(Pfn, u64)>)>,
    /// Scanned and not yet freed, by block.
    leaving: Timers<(Pfn, u64)>,
    /// Ticks from a scan to the callbacks of RCU.
    grace: u64,
}

impl Dentries {
    /// None on any node of a machine.
    pub(crate) fn new(nodes: usize, cpus: usize, grace: u64) -> Dentries {
        let shape = SlabShape::of(SIZE, cpus, BLOCK).without_waiting();
        Dentries { slab: Slab::new(shape), unused: vec![Default::default(); nodes], leaving: Timers::default(), grace }
    }

    /// Unused dentries of a node.
    pub(crate) fn unused(&self, node: usize) -> u64 {
        self.unused.get(node).map_or(0, |of| of.0)
    }

    /// A name is looked up.
    pub(crate) fn look_up(&mut self, kernel: &mut Kernel, by: (u32, Task)) -> Result<(), AllocationFailure> {
        let block = self.slab.take(kernel, by)?;
        let (count, blocks) = &mut self.unused[kernel.node_of_frame(block)];
        *count += 1;
        match blocks.back_mut() {
            Some((last, of_block)) if *last == block => *of_block += 1,
            _ => blocks.push_back((block, 1)),
        }
        Ok(())
    }

    /// A shrinker scans this many of a node, the oldest; returns their number.
    pub(crate) fn prune(&mut self, kernel: &Kernel, cpu: u32, node: usize, count: u64) -> u64 {
        let tick = 1_000_000_000 / kernel.reclaim.rules.hz;
        let due = (kernel.now(cpu) / tick + self.grace) * tick;
        let (all, blocks) = &mut self.unused[node];
        let mut left = count;
        while let Some((block, of_block)) = blocks.front_mut().filter(|_| left > 0) {
            let taken = left.min(*of_block);
            self.leaving.set(due, cpu, (*block, taken));
            left -= taken;
            *of_block -= taken;
            if *of_block == 0 {
                blocks.pop_front();
            }
        }
        *all -= count - left;
        count - left
    }

    /// Frees what has waited for its grace period until a time.
    pub(crate) fn end_grace_periods(&mut self, kernel: &mut Kernel, until: Ns) {
        while let Some(timer) = self.leaving.take(until) {
            let (block, count) = timer.what;
            // The CPU may have been idle since.
            kernel.wait(timer.cpu, timer.at * PS_PER_NS);
            (0..count).for_each(|_| self.slab.give(kernel, (timer.cpu, Task::default()), block));
        }
    }
}

//! The index of a file's pages in memory, and of what is remembered of those that left: `filemap_add_folio`,
//! `xas_alloc` (4.20 to 6.18), `calculate_order`.
//!
//! A node has 64 entries, of pages or of shadows or of nodes below; it comes with the first of them and stays, because
//! a page that leaves memory leaves its shadow. So the index grows with all that was ever read: half a percent of memory
//! for a file of three times its size. Left out: the shrinker of nodes that have only shadows, which begins when they
//! are an eighth of all pages; how the first page of a file does without a node; memory cgroups. Checked by a test here
//! and with the pages that guests kept in memory (docs/fidelity.md, `nr_inactive_file`).

use super::AccessState;
use super::marks::Bits;
use crate::alloc::{AllocationFailure, Caller, Request};
use crate::kernel::{Kernel, SlabShape};
use crate::page::Migratetype;

/// Entries of a node, as bits of a page's number.
const NODE_BITS: u32 = 6;
/// Bytes of a node.
const NODE_BYTES: u64 = 576;
/// Empty blocks that are kept (`min_partial` of objects of this size).
const KEPT: usize = 5;

const SINGLE: Request = Request {
    migratetype: Migratetype::Reclaimable,
    gfp: "GFP_NOFS|__GFP_ACCOUNT|__GFP_RECLAIMABLE",
    ..Request::KERNEL
};

/// How nodes lie in memory: the order of a block follows from the number of CPUs.
pub(crate) fn shape(cpus: u32) -> SlabShape {
    let room = |order: u32| (4096 << order) / NODE_BYTES;
    let wasted = |order: u32| (4096 << order) - room(order) * NODE_BYTES;
    let least = u64::from(4 * (cpus.ilog2() + 2)).min(room(3));
    let order = (0..3).find(|&order| room(order) >= least && wasted(order) <= (4096 << order) / 16).unwrap_or(3);
    // For a block of more than a page nobody waits.
    let usual = Request { may_wait: false, kswapd: false, no_retry: true, ..SINGLE }.of_order(order);
    SlabShape { usual: (usual, room(order)), small: (SINGLE, room(0)), kept: KEPT }
}

impl AccessState {
    /// Sees to it that a page of a file has an entry.
    #[inline]
    pub(super) fn index(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        region: usize,
        page: u64,
    ) -> Result<(), AllocationFailure> {
        let mut node = page;
        for level in 0..self.regions[region].indexed.len() {
            node >>= NODE_BITS;
            if self.regions[region].indexed[level].has(node) {
                break;
            }
            self.nodes.take(kernel, (caller.cpu, caller.task))?;
            self.regions[region].indexed[level].insert(node);
        }
        Ok(())
    }
}

/// Nodes by level, none yet, of the index of a file.
pub(super) fn levels(pages: u64) -> Vec<Bits> {
    let below = |nodes: &u64| (*nodes > 1).then(|| nodes.div_ceil(1 << NODE_BITS));
    std::iter::successors(Some(pages), below).skip(1).map(Bits::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_nodes_are_larger_with_more_cpus() {
        let of = |cpus| (shape(cpus).usual.0.order, shape(cpus).usual.1);
        assert_eq!([1, 3, 4, 31, 64].map(of), [(1, 14), (1, 14), (2, 28), (2, 28), (3, 56)]);
        assert_eq!(shape(8).small.1, 7);
    }

    #[test]
    fn an_index_has_as_many_levels_as_it_needs() {
        assert_eq!([1, 2, 64, 65, 4096, 4097].map(|pages| levels(pages).len()), [0, 1, 1, 2, 2, 3]);
    }
}

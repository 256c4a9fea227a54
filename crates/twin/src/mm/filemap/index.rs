//! Nodes of the index of the page cache (`radix_tree_node`): `radix_tree_preload`, `radix_tree_delete` (2.6.36 to 4.19),
//! `xas_alloc`, `xas_nomem`, `xas_delete_node` (4.20 to 6.12).
//!
//! The index of a file has nodes of 64 places each, objects of a cache whose blocks are of order 1 or 2 by the number
//! of CPUs. Before 4.3 a task that adds a page waits for such a block, reclaims for it, and falls back to order 0 when
//! the request fails; since then it does not wait, and since 4.20 a lack of blocks wakes kswapd. With SLAB blocks are of
//! order 0 (`calculate_slab_order`: what is left of a page is less than an eighth of it). A node is freed with
//! the last of its entries: before 3.15 entries are pages in memory, later also shadows of reclaimed pages. The swap cache has
//! such an index too, by slot; its nodes stay while their slots have shadows (5.9 to 6.17), and a task that reclaims takes
//! a block for them whatever the watermarks are, so that kswapd is then woken for order 2. Not modelled: that of other kernels;
//! nodes above the lowest, 1 in 64 of them; the grace period of RCU before an object can be used again; nodes
//! that each CPU holds in advance; nodes of pages that were in memory before the run; the shrinker of nodes that hold
//! only shadows, which does nothing until there are as many nodes as an eighth of the pages in memory; that a block
//! comes from the nodes of the task's policy. Checked by tests here and in `tests/slab.rs`, and against guests
//! (docs/fidelity.md).

use crate::frame::{Migratetype, NO_PAGE, Pfn};
use crate::mm::kernel::Kernel;
use crate::mm::memcg::kmem::INDEX_NODE;
use crate::mm::memory::AccessState;
use crate::mm::slab::{Slab, SlabShape};
use crate::page_alloc::{AllocationFailure, Caller, Request};
use crate::probe::Task;
use std::ops::Range;

/// Pages of a node (`RADIX_TREE_MAP_SIZE`, `XA_CHUNK_SIZE`).
const PLACES: u64 = 64;
/// Bytes of a node, before and since 4.20.
const SIZE: u64 = 560;
const SIZE_XARRAY: u64 = 576;

/// Memory for nodes.
const BLOCK: Request = Request {
    migratetype: Migratetype::Reclaimable,
    gfp: "GFP_KERNEL|__GFP_NOWARN|__GFP_NORETRY|__GFP_RECLAIMABLE",
    no_retry: true,
    ..Request::KERNEL
};
const SINGLE: Request = Request { gfp: "GFP_KERNEL|__GFP_RECLAIMABLE", no_retry: false, ..BLOCK };
const NOWAIT: &str = "GFP_NOWAIT|__GFP_NOWARN|__GFP_NORETRY|__GFP_COMP|__GFP_RECLAIMABLE|__GFP_ACCOUNT";

/// Allocation mode for a block of the usual order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlabAllocMode {
    /// Waits for it (before 4.3; here where zones are reclaimed).
    Waits,
    /// Waits for a single page: SLAB.
    Single,
    /// Does not (to 4.19).
    Lightly,
    /// Wakes kswapd for it (since 4.20).
    Wakes,
}

/// The lowest node of 64 pages of a file: the block of its object, its cache, and the number of places in use.
#[derive(Clone, Copy, Debug)]
struct Node {
    block: Pfn,
    slab: u8,
    used: u8,
}

const NONE: Node = Node { block: NO_PAGE, slab: 0, used: 0 };

/// All nodes.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// By node of the machine.
    slabs: Vec<Slab>,
    /// By region; those of a region without pages of a file are not there.
    files: Vec<Vec<Node>>,
    /// Of the swap cache, if that has nodes.
    swap: Option<Vec<Node>>,
    /// A reclaimed page keeps its place.
    pub keeps_shadows: bool,
}

impl Index {
    /// None yet, on a machine of this many nodes and CPUs.
    pub(crate) fn new(nodes: usize, cpus: usize, asks: SlabAllocMode, keeps_shadows: bool, of_swap: bool) -> Index {
        let mut shape = match asks {
            SlabAllocMode::Waits => SlabShape::of(SIZE, cpus, BLOCK),
            SlabAllocMode::Single => SlabShape::of(SIZE, cpus, SINGLE).single(),
            SlabAllocMode::Lightly => SlabShape::of(SIZE, cpus, BLOCK).without_waiting(),
            SlabAllocMode::Wakes => {
                let mut shape = SlabShape::of(SIZE_XARRAY, cpus, BLOCK).without_waiting();
                (shape.usual.0.kswapd, shape.usual.0.gfp) = (true, NOWAIT);
                shape
            }
        };
        shape.small.0 = SINGLE;
        Index { slabs: vec![Slab::new(shape); nodes], files: Vec::new(), swap: of_swap.then(Vec::new), keeps_shadows }
    }

    /// The node of a page, made room for.
    fn node(&mut self, region: usize, page: u64) -> &mut Node {
        if self.files.len() <= region {
            self.files.resize(region + 1, Vec::new());
        }
        node_of(&mut self.files[region], page)
    }
}

/// The node of a place, made room for.
fn node_of(nodes: &mut Vec<Node>, place: u64) -> &mut Node {
    let number = (place / PLACES) as usize;
    if nodes.len() <= number {
        nodes.resize(number + 1, NONE);
    }
    &mut nodes[number]
}

impl AccessState {
    /// Allocates a node for a page that is about to be added to the page cache, if needed.
    pub(super) fn prepare_index(
        &mut self,
        kernel: &mut Kernel,
        caller: &Caller,
        region: usize,
        page: u64,
    ) -> Result<(), AllocationFailure> {
        if self.index.node(region, page).block == NO_PAGE {
            let local = kernel.machine.node_of(caller.cpu);
            let denied = std::mem::take(&mut self.denied);
            let block = self.index.slabs[local].take_after(kernel, (caller.cpu, caller.task), denied)?;
            self.charge_object(kernel, caller, region, INDEX_NODE);
            *self.index.node(region, page) = Node { block, slab: local as u8, used: 0 };
        }
        Ok(())
    }

    /// A task that reclaims adds pages to the swap cache, at slots that were free; false if there is no memory for a node.
    pub(crate) fn enter_swap_index(&mut self, kernel: &mut Kernel, by: (u32, Task), slots: Range<u32>) -> bool {
        let Some(nodes) = &mut self.index.swap else { return true };
        let local = kernel.machine.node_of(by.0);
        for slot in slots.clone() {
            let node = node_of(nodes, slot.into());
            if node.block == NO_PAGE {
                let Ok(block) = self.index.slabs[local].take_in_reclaim(kernel, by) else { return false };
                *node = Node { block, slab: local as u8, used: 0 };
            }
        }
        slots.for_each(|slot| node_of(nodes, slot.into()).used += 1);
        true
    }

    /// A slot is free again, and so is its place.
    pub(crate) fn leave_swap_index(&mut self, kernel: &mut Kernel, by: (u32, Task), slot: u32) {
        let Some(nodes) = &mut self.index.swap else { return };
        let node = node_of(nodes, slot.into());
        if node.used == 0 {
            return;
        }
        node.used -= 1;
        if node.used == 0 {
            let Node { block, slab, .. } = std::mem::replace(node, NONE);
            self.index.slabs[usize::from(slab)].give(kernel, by, block);
        }
    }

    /// A page was added to the page cache; its place was free, or held a shadow.
    pub(super) fn enter_index(&mut self, region: usize, page: u64, had_shadow: bool) {
        if !(had_shadow && self.index.keeps_shadows) {
            self.index.node(region, page).used += 1;
        }
    }

    /// A page's place is free again.
    pub(crate) fn leave_index(&mut self, kernel: &mut Kernel, by: (u32, Task), region: usize, page: u64) {
        let node = self.index.node(region, page);
        if node.block == NO_PAGE {
            return;
        }
        node.used -= 1;
        if node.used == 0 {
            let Node { block, slab, .. } = std::mem::replace(node, NONE);
            self.index.slabs[usize::from(slab)].give(kernel, by, block);
            kernel.reclaim.charge_object(self.regions[region].objects_of, -INDEX_NODE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_ask_differently() {
        let of = |asks| Index::new(1, 4, asks, true, false).slabs[0].shape();
        let single = of(SlabAllocMode::Single);
        assert_eq!((single.usual, single.usual.0.order, single.usual.1), (single.small, 0, 7));
        let [waits, lightly, wakes] = [SlabAllocMode::Waits, SlabAllocMode::Lightly, SlabAllocMode::Wakes].map(of);
        let orders = [waits, lightly, wakes].map(|shape| (shape.usual.0.order, shape.usual.1, shape.small.1));
        assert_eq!(orders, [(2, 29, 7), (2, 29, 7), (2, 28, 7)]);
        let waiting = [waits, lightly, wakes].map(|shape| (shape.usual.0.may_wait, shape.usual.0.kswapd));
        assert_eq!(waiting, [(true, true), (false, false), (false, true)]);
        assert!([waits, lightly, wakes].iter().all(|shape| shape.small.0.may_wait && !shape.small.0.no_retry));
    }
}

//! Slab memory of the kernel: a cache of SLUB (`new_slab`, `allocate_slab`, `__slab_free`; 5.17 to 6.12).
//!
//! Objects lie in blocks of pages. New ones fill a block until it is full, then the one that has had room for longest,
//! else a new one, of a smaller order where there is none of the usual one. A full block is put at the end of the
//! partial list when one of its objects is freed; an empty block is freed unless few have room. So after many
//! allocations and frees objects are spread over many blocks. SLAB of earlier kernels uses blocks in the same order.
//! Not modelled: per-CPU slabs and per-CPU partial lists; the objects' memory cgroups. Checked by tests here.

pub(crate) mod dentry;
pub(crate) mod inode;
pub(crate) mod shrinker;

use crate::frame::Pfn;
use crate::hw::PAGE_SIZE;
use crate::mm::kernel::Kernel;
use crate::page_alloc::{AllocationFailure, Caller, Policy, Request};
use crate::probe::Task;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Largest order of a block (`slub_max_order`).
const MAX_ORDER: u32 = 3;

/// log2 of the pages of a block: enough objects for this many CPUs, and a small remainder.
fn order(size: u64, cpus: u64) -> u32 {
    let wanted = 4 * (u64::from(u64::BITS - cpus.leading_zeros()) + 1);
    let fits = |order: &u32, objects: u64, part: u64| {
        let bytes = PAGE_SIZE << order;
        bytes >= objects * size && bytes % size <= bytes / part
    };
    let find =
        |objects: u64| [16, 8, 4].into_iter().find_map(|part| (0..=MAX_ORDER).find(|at| fits(at, objects, part)));
    (1..=wanted).rev().find_map(find).unwrap_or(0)
}

/// Blocks of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlabShape {
    /// The usual block, and how many objects it has room for.
    pub usual: (Request, u64),
    /// Request if there is no such block.
    pub small: (Request, u64),
    /// Blocks with room that are kept, empty or not (`min_partial`).
    pub kept: usize,
}

impl SlabShape {
    /// Blocks of objects of up to a page on a machine with this many CPUs; the small ones are single pages.
    pub(crate) fn of(size: u64, cpus: usize, request: Request) -> SlabShape {
        let order = order(size, cpus as u64);
        let block = |order: u32| (request.of_order(order), (PAGE_SIZE << order) / size);
        // set_min_partial
        let kept = (size.ilog2() / 2).clamp(5, 10) as usize;
        SlabShape { usual: block(order), small: block(0), kept }
    }

    /// Single pages only.
    pub(crate) fn single(mut self) -> SlabShape {
        self.usual = self.small;
        self
    }

    /// Blocks as since 4.3: a usual one is tried without waiting and without waking kswapd if a small one is smaller.
    pub(crate) fn without_waiting(mut self) -> SlabShape {
        if self.usual.0.order > 0 {
            (self.usual.0.may_wait, self.usual.0.kswapd) = (false, false);
        }
        self
    }
}

/// Objects of a block, and where it is on the list of those with room.
#[derive(Clone, Copy, Debug)]
struct Block {
    used: u64,
    room: u64,
    place: Option<u64>,
}

/// A cache.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    shape: SlabShape,
    blocks: FxHashMap<Pfn, Block>,
    /// The block for new objects; not on the list.
    current: Option<Pfn>,
    /// Blocks with room by place, the oldest first.
    partial: BTreeMap<u64, Pfn>,
    /// The next place.
    next: u64,
    /// Tasks that were denied a usual block and have no small one yet: they do not request a usual one again.
    denied: BTreeSet<i32>,
}

impl Slab {
    /// An empty cache.
    pub(crate) fn new(shape: SlabShape) -> Slab {
        let (blocks, partial, denied) = Default::default();
        Slab { shape, blocks, current: None, partial, next: 0, denied }
    }

    /// Its blocks.
    #[cfg(test)]
    pub(crate) fn shape(&self) -> SlabShape {
        self.shape
    }

    /// Takes an object: the block that it is in.
    pub(crate) fn take(&mut self, kernel: &mut Kernel, by: (u32, Task)) -> Result<Pfn, AllocationFailure> {
        self.take_after(kernel, by, false)
    }

    /// The same for a task that reclaims.
    pub(crate) fn take_in_reclaim(&mut self, kernel: &mut Kernel, by: (u32, Task)) -> Result<Pfn, AllocationFailure> {
        let shape = self.shape;
        (self.shape.usual.0.memalloc, self.shape.small.0.memalloc) = (true, true);
        let got = self.take(kernel, by);
        self.shape = shape;
        got
    }

    /// The same for a task that was denied a usual block after waiting, and falls back to a small one.
    pub(crate) fn take_after(
        &mut self,
        kernel: &mut Kernel,
        (cpu, task): (u32, Task),
        denied: bool,
    ) -> Result<Pfn, AllocationFailure> {
        let has_room = |block: &Pfn| self.blocks.get(block).is_some_and(|of| of.used < of.room);
        let page = match self.current.filter(has_room) {
            Some(page) => page,
            None => match self.partial.pop_first() {
                Some((_, page)) => page,
                None => {
                    let SlabShape { usual, small, .. } = self.shape;
                    let mut caller = Caller::new(cpu, task, Policy::Default);
                    let waits_for_small = self.denied.contains(&task.pid);
                    let got =
                        if waits_for_small { None } else { Some(kernel.allocate_unchecked(&mut caller, &usual.0)) };
                    let (got, room) = match got {
                        Some(Ok(got)) => (got, usual.1),
                        Some(Err(failure)) if usual.0 == small.0 || usual.0.may_wait && !denied => return Err(failure),
                        None | Some(Err(_)) => {
                            if usual.0.may_wait {
                                self.denied.insert(task.pid);
                            }
                            let got = kernel.allocate_unchecked(&mut caller, &small.0)?;
                            self.denied.remove(&task.pid);
                            (got, small.1)
                        }
                    };
                    self.blocks.insert(got.page, Block { used: 0, room, place: None });
                    got.page
                }
            },
        };
        self.current = Some(page);
        if let Some(block) = self.blocks.get_mut(&page) {
            (block.used, block.place) = (block.used + 1, None);
        }
        Ok(page)
    }

    /// Gives an object of a block back.
    pub(crate) fn give(&mut self, kernel: &mut Kernel, (cpu, task): (u32, Task), page: Pfn) {
        let Some(block) = self.blocks.get_mut(&page) else { return };
        block.used -= 1;
        if self.current == Some(page) {
            return;
        }
        if block.used > 0 || self.partial.len() < self.shape.kept {
            if block.place.is_none() {
                block.place = Some(self.next);
                self.partial.insert(self.next, page);
                self.next += 1;
            }
            return;
        }
        if let Some(place) = block.place {
            self.partial.remove(&place);
        }
        self.blocks.remove(&page);
        kernel.reclaim.reclaimed_slab += 1 << kernel.alloc.frames.order(page);
        let gone = kernel.free_unchecked(cpu, task, page);
        debug_assert!(gone.is_ok(), "a block of a cache was allocated");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hw::{Cpu, Machine, PageCosts};
    use crate::mm::kernel::KernelRules;
    use crate::page_alloc::Rules;
    use crate::probe::Probe;
    use crate::vmstat::{Design, Dialect, VmStatRules};

    /// A kernel, and a cache of eight objects to a block.
    fn cache() -> (Kernel, Slab) {
        let machine = Machine::pc(&[1 << 18], 0, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        let costs = PageCosts::of_work(100.0);
        let (design, dialect) = (Design::Off, Dialect::V6_1);
        let early_drift_marks = false;
        let vmstat =
            VmStatRules { design, threshold: None, stat_interval: 1_000_000_000, hz: 250, early_drift_marks, dialect };
        let rules = KernelRules { alloc: Rules::V6_1, vmstat, reclaim: crate::mm::vmscan::Rules::V6_1 };
        let kernel = Kernel::new(machine, costs, rules, Probe::off()).unwrap();
        let request = Request::KERNEL;
        (kernel, Slab::new(SlabShape { usual: (request.of_order(3), 8), small: (request, 1), kept: 1 }))
    }

    #[test]
    fn blocks_are_as_large_as_the_kernels() {
        // Dentries, nodes of radix_tree_node (28 in 16 KiB on machines of 4 to 7 CPUs), inodes of ext4.
        let of = |size| [1, 4, 8, 16, 64].map(|cpus| order(size, cpus));
        assert_eq!((of(192), of(576), of(1088)), ([0, 0, 0, 1, 1], [1, 2, 2, 2, 3], [2, 3, 3, 3, 3]));
    }

    #[test]
    fn objects_share_blocks() {
        let ((mut kernel, mut slab), by) = (cache(), (0, Task::default()));
        let blocks: Vec<Pfn> = (0..17).map(|_| slab.take(&mut kernel, by).unwrap()).collect();
        assert_eq!((slab.blocks.len(), blocks[0] == blocks[7], blocks[7] == blocks[8]), (3, true, false));
        assert_eq!(kernel.stat.events.allocated.iter().sum::<u64>(), 24);
        blocks.into_iter().for_each(|block| slab.give(&mut kernel, by, block));
        // The block that is being filled stays.
        assert_eq!((slab.blocks.len(), slab.partial.len(), kernel.stat.events.freed), (1, 0, 16));
    }

    #[test]
    fn the_block_that_has_had_room_for_longest_is_filled() {
        let ((mut kernel, mut slab), by) = (cache(), (0, Task::default()));
        let blocks: Vec<Pfn> = (0..32).map(|_| slab.take(&mut kernel, by).unwrap()).collect();
        for object in [16, 0, 17, 8] {
            slab.give(&mut kernel, by, blocks[object]);
        }
        let next: Vec<Pfn> = (0..5).map(|_| slab.take(&mut kernel, by).unwrap()).collect();
        assert_eq!(next[..4], [blocks[16], blocks[16], blocks[0], blocks[8]]);
        assert!(!blocks.contains(&next[4]));
    }
}

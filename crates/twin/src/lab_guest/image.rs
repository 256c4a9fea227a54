//! Memory of a process besides its regions: heap, data, and the stacks of its threads, for NUMA balancing.
//!
//! Scanners mark these areas like any other, threads fault in them all the time, and the per-VMA filter of 6.12 takes
//! as long for an area of two pages as for a large one; so with small programs these areas decide the growth of scan
//! periods, the end of passes, and the members of groups: heap data of threads is adjacent, so they share pages of it
//! even if all their regions are private. The heap is the machine's (`machine.worker`); the other areas are those of
//! the program mmtwin-agent, whose threads have stacks of 256 KiB, with the pages that `smaps` of a guest shows as
//! present. They are allocated where the first thread starts, before the run's first sample; a stack where the thread
//! first needs it. Pages for which a node or cgroup has no room at that time stay absent: the process is killed when
//! its workload allocates memory. Not modelled: areas that are never scanned (code, read-only data, guard pages); that
//! the first thread may have been on another node when it allocated its heap; reclaim for the image.

use crate::mm::kernel::Kernel;
use crate::mm::memory::AccessState;
use crate::mm::region::{Region, Shape};
use crate::page_alloc::{Caller, Policy};
use std::ops::Range;

/// Addresses of images: above all regions.
pub(crate) const FIRST_ADDRESS: u64 = 0x7ff0_0000_0000;

/// Accesses per second of a page that is accessed all the time.
pub(crate) const ALWAYS: f64 = 1e3;

/// An area of a process.
pub(crate) struct Area {
    pub pages: u64,
    /// Pages that are there, the first ones.
    present: u64,
    /// Of these, those that a thread keeps touching; the first thread before the others.
    pub touched: Vec<(usize, Range<u32>)>,
}

/// The heap of a process, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    /// Present, without those of threads.
    pub pages: u32,
    /// Present pages, more for each thread: distance of the pages that two threads keep accessing.
    pub per_thread: u32,
    /// Not present, behind those that are.
    pub absent: u32,
    /// That each thread keeps accessing.
    pub hot: u32,
}

/// The areas of a process with these threads, in ascending order of address.
pub(crate) fn areas(threads: Range<usize>, heap: Heap) -> Vec<Area> {
    let (main, others) = (threads.start, threads.start + 1..threads.end);
    let untouched = |pages, present| Area { pages, present, touched: Vec::new() };
    let hot = (0..).zip(threads.clone()).map(|(number, thread)| {
        let at = heap.per_thread * number;
        (thread, at..at + heap.hot)
    });
    let present = u64::from(heap.pages) + u64::from(heap.per_thread) * threads.len() as u64;
    let mut areas = vec![Area { pages: present + u64::from(heap.absent), present, touched: hot.collect() }];
    // Stacks for signals, which stay absent, then those of the threads: the last one's is the lowest.
    areas.extend(others.clone().map(|_| untouched(2, 0)));
    areas.extend(others.rev().map(|thread| Area { pages: 64, present: 3, touched: vec![(thread, 0..1)] }));
    // The first thread's stack for signals, the vDSO, data, the stack.
    areas.extend([untouched(2, 0), untouched(2, 0), untouched(4, 4), untouched(7, 3)]);
    areas.push(Area { pages: 33, present: 8, touched: vec![(main, 0..2)] });
    areas
}

impl Area {
    /// Its region with the pages that are there, from the CPU on which the caller runs and by its policy.
    pub(crate) fn region(
        &self,
        kernel: &mut Kernel,
        memory: &AccessState,
        caller: &mut Caller,
        policy: Policy,
    ) -> Region {
        let nodes = kernel.machine.nodes.len();
        let (pages, parts, anon, file, huge, exec, locked) = (self.pages, 1, true, false, Vec::new(), false, false);
        let shape = Shape { pages, parts, anon, file, huge, exec, locked, policy };
        let mut region = Region::new(shape, nodes, memory.next_base());
        region.users = 1;
        for page in 0..self.present {
            if region.fault(kernel, caller, &memory.costs, page, (true, false)).is_err() {
                break;
            }
        }
        region
    }
}

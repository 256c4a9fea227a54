//! Migratetypes: refills, steals from other types and drains, by their events; sizes of pageblocks.

use super::{Seen, caller};
use crate::common::{BROADWELL, GIB, kernel, machine, vmstat};
use mmtwin_event::Kind;
use mmtwin_scenario::kernel::PcpFreeHigh;
use mmtwin_twin::frame::{Migratetype, Pfn, ZoneKind};
use mmtwin_twin::hw::{Cpu, Machine, Node};
use mmtwin_twin::mm::kernel::{Kernel, KernelRules};
use mmtwin_twin::page_alloc::{Policy, Request, Rules, StealPolicy};
use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmstat::Design;
use std::ops::Range;

#[test]
fn refills_steals_and_drains_are_events() {
    let kinds = [
        Kind::MmPageAlloc,
        Kind::MmPageFree,
        Kind::MmPageAllocZoneLocked,
        Kind::MmPagePcpuDrain,
        Kind::MmPageAllocExtfrag,
    ];
    let rules = KernelRules {
        alloc: Rules::V4_13,
        vmstat: vmstat(Design::InZone, None),
        reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1,
    };
    let mut kernel = Kernel::new(machine(1, 1, 1, 8 * GIB), BROADWELL, rules, Probe::new(kinds)).unwrap();
    let mut task = caller(0, Policy::Default);
    let pages: Vec<Pfn> = (0..200).map(|_| kernel.allocate(&mut task, &Request::KERNEL).unwrap()).collect();
    for &page in &pages {
        kernel.free(0, task.task, page).unwrap();
    }
    let mut seen = Seen::default();
    kernel.probe.drain(u64::MAX, &mut seen);
    // Boot memory is movable: the first refill takes a largest block for the kernel's own pages.
    let stolen = &seen.stolen;
    assert_eq!(stolen.len(), 1);
    assert_eq!([stolen[0].alloc_order, stolen[0].fallback_order], [0, 10]);
    assert_eq!([stolen[0].alloc_migratetype, stolen[0].fallback_migratetype], [0, 1]);
    assert_eq!(stolen[0].change_ownership, Some(1));
    let count = |kind| seen.kinds.iter().filter(|at| at.0 == kind).map(|at| at.1).sum::<u64>();
    // Seven refills of 31; a return of 31 each time the list reaches 186.
    assert_eq!(kinds.map(count), [200, 200, 7 * 31, 62, 1]);
    assert_eq!(
        seen.kinds[..3],
        [(Kind::MmPageAllocExtfrag, 1), (Kind::MmPageAllocZoneLocked, 31), (Kind::MmPageAlloc, 31)]
    );
    assert_eq!(seen.gfp, b"GFP_KERNEL");
    // 17 pages of the last refill were never used and lie at the tail.
    assert_eq!(seen.drained.len(), 62);
    assert!(seen.drained[17..].iter().zip(&pages).all(|(&drained, &page)| drained == u64::from(page)));
    assert_eq!(kernel.alloc.pageset(2, 0).unwrap().count, 7 * 31 - 62);
}

#[test]
fn small_movable_requests_take_the_smallest_foreign_block() {
    let kinds = [Kind::MmPageAllocExtfrag];
    // One zone of one pageblock and a bit: too few pageblocks to group by type, all of it unmovable.
    let nodes = vec![Node { memory: vec![Range { start: 512, end: 1024 + 4 }], reserved: Vec::new() }];
    let machine = Machine::new(nodes, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
    let alloc = Rules { transparent_hugepage: false, avoid_fragmentation: false, ..Rules::V6_1 };
    let rules =
        KernelRules { alloc, vmstat: vmstat(Design::InZone, None), reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1 };
    let mut kernel = Kernel::new(machine, BROADWELL, rules, Probe::new(kinds)).unwrap();
    let page = kernel.allocate(&mut caller(0, Policy::Default), &Request::USER).unwrap();
    let mut seen = Seen::default();
    kernel.probe.drain(u64::MAX, &mut seen);
    assert_eq!((seen.stolen[0].fallback_order, seen.stolen[0].change_ownership), (9, Some(1)));
    assert_eq!((page, kernel.alloc.block_type(page)), (512, Migratetype::Movable));
}

#[test]
fn the_rest_of_a_stolen_block_keeps_its_type_from_6_10_on() {
    let stolen = |alloc: Rules| {
        let nodes = vec![Node { memory: vec![Range { start: 512, end: 9 * 512 }], reserved: Vec::new() }];
        let machine = Machine::new(nodes, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        // Blocks that are freed stay on the CPU's lists.
        let alloc = Rules { transparent_hugepage: false, free_high: PcpFreeHigh::Never, ..alloc };
        let rules =
            KernelRules { alloc, vmstat: vmstat(Design::InZone, None), reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1 };
        let mut kernel = Kernel::new(machine, BROADWELL, rules, Probe::new([Kind::MmPageAllocExtfrag])).unwrap();
        let mut task = caller(0, Policy::Default);
        // The kernel has it all, and gives every other eight pages back.
        let request = Request { order: 3, ..Request::ATOMIC };
        let blocks: Vec<Pfn> = std::iter::from_fn(|| kernel.allocate(&mut task, &request).ok()).collect();
        for &block in blocks.iter().step_by(2) {
            kernel.free(0, task.task, block).unwrap();
        }
        kernel.probe.drain(u64::MAX, &mut Seen::default());
        let listed = |kernel: &Kernel| kernel.alloc.pageset(ZoneKind::Dma as usize, 0).unwrap().count as usize;
        let before = listed(&kernel);
        let page = kernel.allocate(&mut task, &Request::USER).unwrap();
        assert_eq!(kernel.alloc.block_type(page), Migratetype::Unmovable);
        let mut seen = Seen::default();
        kernel.probe.drain(u64::MAX, &mut seen);
        assert!(seen.stolen.iter().all(|of| of.alloc_migratetype == 1 && of.change_ownership == Some(0)));
        (listed(&kernel) + 1 - before, seen.stolen.len())
    };
    // Of a block of eight pages seven are the new type's, or each page is taken by itself.
    let (pages, steals) = stolen(Rules::V6_1);
    assert_eq!(steals, pages.div_ceil(8), "{pages}");
    let (pages, steals) = stolen(Rules::V6_12);
    assert_eq!(steals, pages);
}

#[test]
fn before_4_0_pages_that_cannot_be_moved_left_the_rest_of_small_blocks() {
    let stolen = |steal_policy: StealPolicy, migratetype: Migratetype| {
        let nodes = vec![Node { memory: vec![Range { start: 512, end: 9 * 512 }], reserved: Vec::new() }];
        let machine = Machine::new(nodes, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        let alloc = Rules { transparent_hugepage: false, min_free_kbytes: Some(0), steal_policy, ..Rules::V4_13 };
        let rules =
            KernelRules { alloc, vmstat: vmstat(Design::InZone, None), reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1 };
        let mut kernel = Kernel::new(machine, BROADWELL, rules, Probe::new([Kind::MmPageAllocExtfrag])).unwrap();
        let mut task = caller(0, Policy::Default);
        // Movable pages fill it all, and every other eight are freed.
        let request = Request { order: 3, migratetype: Migratetype::Movable, ..Request::ATOMIC };
        let blocks: Vec<Pfn> = std::iter::from_fn(|| kernel.allocate(&mut task, &request).ok()).collect();
        for &block in blocks.iter().step_by(2) {
            kernel.free(0, task.task, block).unwrap();
        }
        kernel.probe.drain(u64::MAX, &mut Seen::default());
        let request = Request { migratetype, ..Request::KERNEL };
        let pages: Vec<Pfn> = (0..20).map(|_| kernel.allocate(&mut task, &request).unwrap()).collect();
        let listed = kernel.alloc.pageset(ZoneKind::Dma as usize, 0).unwrap().count as usize;
        let mut seen = Seen::default();
        kernel.probe.drain(u64::MAX, &mut seen);
        let changed = pages.iter().all(|&page| kernel.alloc.block_type(page) == migratetype);
        (pages.len() + listed, seen.stolen.len(), changed)
    };
    // Every page is taken by itself; or the free half of the pageblock becomes the new type's, and the pageblock with
    // it.
    let (pages, steals, changed) = stolen(StealPolicy::LargeOrReclaimable, Migratetype::Unmovable);
    assert_eq!((steals, changed), (pages, false));
    let (pages, steals, changed) = stolen(StealPolicy::LargeOrReclaimable, Migratetype::Reclaimable);
    assert!(pages >= 20 && (steals, changed) == (1, true), "{steals} of {pages}");
    let (_, steals, changed) = stolen(StealPolicy::LargeOrUnmovable, Migratetype::Unmovable);
    assert_eq!((steals, changed), (1, true));
}

#[test]
fn pageblocks_can_be_larger() {
    let alloc = Rules { max_order: 12, pageblock_order: 12, ..Rules::V4_13 };
    let mut kernel = kernel(machine(1, 1, 1, 8 * GIB), alloc, vmstat(Design::InZone, None));
    let page = kernel.allocate(&mut caller(0, Policy::Default), &Request::KERNEL).unwrap();
    let first = page >> 12 << 12;
    let types = |at: Pfn| kernel.alloc.block_type(at);
    assert_eq!([first, first + 4095].map(types), [Migratetype::Unmovable; 2]);
    assert_eq!([first - 1, first + 4096].map(types), [Migratetype::Movable; 2]);
}

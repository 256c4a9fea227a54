//! Counters: deviation of free pages, cost of frees and reads, folding on idle CPUs, costs and rules that are refused.

use super::caller;
use crate::common::{BROADWELL, DESIGNS, GIB, kernel, machine, vmstat};
use mmtwin_twin::frame::{Pfn, ZoneKind};
use mmtwin_twin::hw::{Cpu, LoopCosts, Machine, Node, PageCosts};
use mmtwin_twin::mm::kernel::{Kernel, KernelError, KernelRules};
use mmtwin_twin::page_alloc::{Policy, Request, Rules};
use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmstat::{Design, ZoneItem};
use mmtwin_twin::workload::alloc_loop::AllocLoop;
use std::ops::Range;

/// A free takes longer where the CPU's list is too long and frees pages.
#[test]
fn pages_freed_to_the_buddy_lists_take_time() {
    let elapsed = |free_to_buddy: f64| {
        let alone = LoopCosts { free_to_buddy, ..BROADWELL.alone };
        let costs = PageCosts { alone, ..BROADWELL };
        let reclaim = mmtwin_twin::mm::vmscan::Rules::V6_1;
        let rules = KernelRules { alloc: Rules::V4_13, vmstat: vmstat(Design::Off, None), reclaim };
        let mut kernel = Kernel::new(machine(1, 1, 1, GIB), costs, rules, Probe::off()).unwrap();
        let mut task = caller(0, Policy::Default);
        let pages: Vec<Pfn> = (0..5000).map(|_| kernel.allocate(&mut task, &Request::USER).unwrap()).collect();
        let begun = kernel.now(0);
        let zone = kernel.alloc.frames.zone(pages[0]);
        let before = kernel.alloc.pageset(zone, 0).unwrap().count;
        pages.into_iter().for_each(|page| kernel.free(0, task.task, page).unwrap());
        let kept = kernel.alloc.pageset(zone, 0).unwrap().count - before;
        (kernel.now(0) - begun, 5000 - kept)
    };
    let ((without, _), (with, given_back)) = (elapsed(0.0), elapsed(2194.0));
    assert!(given_back > 500 && given_back < 5000, "{given_back}");
    // A microsecond each.
    assert_eq!((with - without + 500) / 1000, given_back);
}

#[test]
fn below_the_drift_mark_free_pages_are_counted_exactly() {
    // Eight CPUs with a threshold of 100 can hide more than the distance between the marks of a small zone.
    let alloc = Rules { transparent_hugepage: false, ..Rules::V4_13 };
    let nodes = vec![Node { memory: vec![Range { start: 256, end: 4096 }], reserved: Vec::new() }];
    let cpus = (0..8).map(|core| Cpu { node: 0, core }).collect();
    let machine = Machine::new(nodes, cpus, vec![vec![10]]).unwrap();
    let mut kernel = kernel(machine, alloc, vmstat(Design::InZone, Some(100)));
    let zone = ZoneKind::Dma as usize;
    let mut held = Vec::new();
    for cpu in 0..8 {
        let mut task = caller(cpu, Policy::Default);
        let pages = (0..60).map(|_| kernel.allocate(&mut task, &Request::ATOMIC).unwrap());
        held.extend(pages);
    }
    assert_eq!(kernel.stat.snapshot(zone, ZoneItem::FreePages), kernel.alloc.free_pages(zone));
    assert!(kernel.stat.plain(zone, ZoneItem::FreePages) > kernel.alloc.free_pages(zone));
    assert!(kernel.stat.free_pages_safe(zone) > kernel.alloc.free_pages(zone), "far above the mark");
    let mut task = caller(0, Policy::Default);
    while kernel.stat.plain(zone, ZoneItem::FreePages) > kernel.alloc.zones[zone].marks.high + 800 {
        held.push(kernel.allocate(&mut task, &Request::ATOMIC).unwrap());
    }
    kernel.allocate(&mut task, &Request::ATOMIC).unwrap();
    assert_eq!(kernel.stat.free_pages_safe(zone), kernel.alloc.free_pages(zone));
    // While kswapd is awake the threshold is small, and normal again when it sleeps.
    let marks = kernel.alloc.zones[zone].marks;
    kernel.set_pressure(0, true);
    assert_eq!(u64::from(kernel.stat.threshold(zone)), (marks.low - marks.min) / 8);
    kernel.set_pressure(0, false);
    assert_eq!(kernel.stat.threshold(zone), 100);
}

#[test]
fn reads_cost_what_updates_save() {
    let mut costs = Vec::new();
    for design in DESIGNS {
        for cores in [2, 8] {
            let mut kernel = kernel(machine(2, cores, 1, 8 * GIB), Rules::V4_13, vmstat(design, None));
            let (_, cost) = kernel.stat.numastat_text(1, &kernel.alloc);
            costs.push((cost.cpu_lines, cost.cycles(kernel.costs())));
        }
    }
    let lines: Vec<u64> = costs.iter().map(|cost| cost.0).collect();
    // Node 1 has one zone, the machine four; a design that folds takes them all, one with snapshots the node's.
    assert_eq!(lines, [0, 0, 0, 0, 4, 16, 4, 16, 16, 64, 0, 0]);
    assert_eq!(costs[9].1, 64.0 * BROADWELL.read_line);
}

#[test]
fn idle_cpus_fold_late_or_at_once() {
    let mut kernel = kernel(machine(1, 2, 1, GIB), Rules::V4_13, vmstat(Design::InZone, None));
    let zone = ZoneKind::Dma32 as usize;
    let shown = |kernel: &Kernel| kernel.stat.numa.zone(zone, &[0, 1], &mut Default::default())[0];
    let mut task = caller(1, Policy::Default);
    kernel.leave_idle(1).unwrap();
    kernel.allocate(&mut task, &Request::KERNEL).unwrap();
    assert_eq!((shown(&kernel), kernel.stat.needs_update(1)), (0, true));
    // The shepherd finds it, and its work continues while there is something to fold.
    kernel.advance(1_000_000_000);
    assert_eq!((shown(&kernel), kernel.stat.needs_update(1)), (1, false));
    kernel.allocate(&mut task, &Request::KERNEL).unwrap();
    kernel.enter_idle(1).unwrap();
    assert_eq!((shown(&kernel), kernel.stat.needs_update(1)), (2, false));
    // The work that was queued waits for the CPU to wake; then it finds nothing and stops.
    kernel.advance(3_000_000_000);
    kernel.leave_idle(1).unwrap();
    kernel.allocate(&mut task, &Request::KERNEL).unwrap();
    kernel.enter_idle(1).unwrap();
    assert_eq!((shown(&kernel), kernel.stat.needs_update(1)), (2, true));
    kernel.advance(4_000_000_000);
    assert_eq!(shown(&kernel), 3);
}

#[test]
fn impossible_kernels_are_refused_with_a_reason() {
    let build = |threshold, costs| {
        let rules = KernelRules {
            alloc: Rules::V4_13,
            vmstat: vmstat(Design::InZone, threshold),
            reclaim: mmtwin_twin::mm::vmscan::Rules::V6_1,
        };
        Kernel::new(machine(1, 1, 1, GIB), costs, rules, Probe::off()).map(|_| ())
    };
    assert_eq!(build(Some(0), BROADWELL), Err(KernelError::Threshold));
    let stopped = mmtwin_twin::hw::PageCosts { clock_khz: 0, ..BROADWELL };
    assert_eq!(build(None, stopped), Err(KernelError::Costs));
    let negative = mmtwin_twin::hw::PageCosts { refetch: f64::NAN, ..BROADWELL };
    assert_eq!(build(None, negative), Err(KernelError::Costs));
    let mut kernel = kernel(machine(1, 2, 1, GIB), Rules::V4_13, vmstat(Design::Off, None));
    let mut loops = |cpus: Vec<u32>| {
        let work = AllocLoop { cpus, loops: 1, request: Request::KERNEL, policy: Policy::Default };
        kernel.run_loops(&work).map(|_| ())
    };
    assert_eq!(loops(vec![0, 2]), Err(KernelError::NoCpu { cpu: 2, last: 1 }));
    assert_eq!(loops(vec![1, 1]), Err(KernelError::CpuTwice(1)));
    assert_eq!(loops(vec![]), Ok(()));
}

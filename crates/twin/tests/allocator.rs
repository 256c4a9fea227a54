//! The allocator and its counters as a whole.

use crate::common::{BROADWELL, DESIGNS, GIB, kernel, machine, vmstat};
use mmtwin_event::vocabulary::{MmPageAlloc, MmPageAllocExtfrag, MmPagePcpuDrain};
use mmtwin_event::{Event, Kind, Sink};
use mmtwin_twin::frame::{Migratetype, Pfn, State, ZONES, ZoneKind};
use mmtwin_twin::hw::{Cpu, LoopCosts, Machine, Node, PageCosts};
use mmtwin_twin::mm::kernel::{Kernel, KernelError, KernelRules};
use mmtwin_twin::page_alloc::{Caller, NodeMask, Policy, Request, Rules, StealPolicy};
use mmtwin_twin::probe::{Probe, Task};
use mmtwin_twin::vmstat::{Design, NUMA_ITEMS, NumaItem, Separate, ZoneItem};
use mmtwin_twin::workload::alloc_loop::AllocLoop;
use proptest::prelude::*;
use std::ops::Range;

const RULES: [Rules; 3] = [Rules::V4_13, Rules::V6_1, Rules::V6_12];

fn caller(cpu: u32, policy: Policy) -> Caller {
    Caller::new(cpu, Task { pid: 100 + cpu as i32, tgid: 100 }, policy)
}

/// A free takes longer where the CPU's list is too long and frees pages.
#[test]
fn pages_that_are_given_back_take_time() {
    let elapsed = |free_to_buddy: f64| {
        let alone = LoopCosts { free_to_buddy, ..BROADWELL.alone };
        let costs = PageCosts { alone, ..BROADWELL };
        let reclaim = mmtwin_twin::mm::vmscan::Rules::V6_1;
        let rules = KernelRules { alloc: Rules::V4_13, vmstat: vmstat(Design::Off, None), reclaim };
        let mut kernel = Kernel::new(machine(1, 1, 1, GIB), costs, rules, Probe::off()).unwrap();
        let mut who = caller(0, Policy::Default);
        let pages: Vec<Pfn> = (0..5000).map(|_| kernel.allocate(&mut who, &Request::USER).unwrap()).collect();
        let begun = kernel.now(0);
        let zone = kernel.alloc.frames.zone(pages[0]);
        let before = kernel.alloc.pageset(zone, 0).unwrap().count;
        pages.into_iter().for_each(|page| kernel.free(0, who.task, page).unwrap());
        let kept = kernel.alloc.pageset(zone, 0).unwrap().count - before;
        (kernel.now(0) - begun, 5000 - kept)
    };
    let ((without, _), (with, given_back)) = (elapsed(0.0), elapsed(2194.0));
    assert!(given_back > 500 && given_back < 5000, "{given_back}");
    // A microsecond each.
    assert_eq!((with - without + 500) / 1000, given_back);
}

/// Everything that may be compared of two kernels.
fn everything(kernel: &mut Kernel) -> Vec<String> {
    let cpus: Vec<u32> = kernel.stat.online().to_vec();
    let zones: Vec<usize> = kernel.alloc.populated().collect();
    let mut all: Vec<String> =
        vec![kernel.stat.zoneinfo_text(&kernel.alloc).0, kernel.stat.vmstat_text(&kernel.alloc).0];
    for &zone in &zones {
        let snapshot = kernel.stat.numa.snapshot(zone, &cpus);
        all.push(format!("{snapshot:?} {}", kernel.stat.snapshot(zone, ZoneItem::FreePages)));
        for &cpu in &cpus {
            let until = NumaItem::ALL.map(|item| kernel.stat.numa.until_shared(zone, cpu, item));
            all.push(format!("{:?} {until:?}", kernel.alloc.pageset(zone, cpu)));
            all.push(format!("{}", kernel.stat.lines.current(zone, cpu)));
        }
    }
    all.extend(cpus.iter().map(|&cpu| kernel.now(cpu).to_string()));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn many_loops_at_once_equal_single_loops(
        design in prop::sample::select(DESIGNS.to_vec()),
        rules in prop::sample::select(RULES.to_vec()),
        threshold in prop::option::of(1u32..200),
        (nodes, cores, threads) in (1u32..4, 1u32..4, 1u32..3),
        skip in 0u32..3,
        seed in prop::option::of(0u64..100),
        loops in 1u64..3000,
        node in prop::option::of(0usize..4),
        order in prop::sample::select(vec![0u32, 0, 0, 1, 4]),
        // Short enough that several timers go off during the loops.
        interval in prop::sample::select(vec![30_000u64, 200_000, 1_000_000_000]),
    ) {
        let request = Request::KERNEL.of_order(order);
        let cpus: Vec<u32> = (0..nodes * cores * threads).filter(|cpu| skip == 0 || cpu % (skip + 1) > 0).collect();
        prop_assume!(!cpus.is_empty());
        let policy = node.map_or(Policy::Default, Policy::Preferred);
        let work = AllocLoop { cpus, loops, request, policy };
        let mut kernels = [true, false].map(|batched| {
            let mut vmstat = vmstat(design, threshold);
            vmstat.stat_interval = interval;
            let mut kernel = kernel(machine(nodes, cores, threads, GIB), rules, vmstat);
            seed.into_iter().for_each(|seed| kernel.age_counters(seed));
            // Twice, so that the second run begins where the first has left lists and lines.
            let results = [0, 1].map(|_| {
                if batched { kernel.run_loops(&work).unwrap() } else { kernel.run_loops_singly(&work).unwrap() }
            });
            (kernel, results)
        });
        let [(a, many), (b, single)] = &mut kernels;
        prop_assert!(order > 0 || loops < 100 || many[0].batched > 0);
        prop_assert_eq!(single[0].batched, 0);
        for (many, single) in many.iter().zip(single.iter()) {
            prop_assert_eq!(&many.cpus, &single.cpus);
        }
        prop_assert_eq!(everything(a), everything(b));
    }
}

/// One thing that may happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate { cpu: u32, order: u32, kind: usize, policy: usize },
    Free { which: usize, cpu: u32 },
    Advance(u64),
    Idle(u32),
    Offline(u32),
    Online(u32),
    Pressure(usize, bool),
    Read,
    Refresh,
    Switch(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cpu = || 0u32..6;
    let order = prop::sample::select(vec![0u32, 0, 0, 0, 1, 2, 3, 5, 9, 10]);
    let step = prop_oneof![
        12 => (cpu(), order, 0usize..4, 0usize..5)
            .prop_map(|(cpu, order, kind, policy)| Step::Allocate { cpu, order, kind, policy }),
        10 => (any::<prop::sample::Index>(), cpu())
            .prop_map(|(which, cpu)| Step::Free { which: which.index(1 << 16), cpu }),
        1 => (0u64..3_000_000_000).prop_map(Step::Advance),
        1 => cpu().prop_map(Step::Idle),
        1 => cpu().prop_map(Step::Offline),
        1 => cpu().prop_map(Step::Online),
        1 => (0usize..3, any::<bool>()).prop_map(|(node, awake)| Step::Pressure(node, awake)),
        1 => Just(Step::Read),
        1 => Just(Step::Refresh),
    ];
    prop::collection::vec(step, 1..400)
}

/// A machine of three nodes: node 2 without CPUs, all small, so that allocations fail and fall back.
fn small() -> Machine {
    let node = |memory: Range<u64>| Node { memory: vec![memory], reserved: Vec::new() };
    let nodes = vec![node(1..6144), node(6144..8200), node(8200..10_000)];
    let cpus = (0..6).map(|cpu| Cpu { node: cpu / 3, core: cpu }).collect();
    let distance = vec![vec![10, 20, 30], vec![20, 10, 20], vec![30, 20, 10]];
    Machine::new(nodes, cpus, distance).unwrap()
}

fn request(kind: usize, order: u32) -> Request {
    let request = [
        Request::KERNEL,
        Request::USER,
        Request::ATOMIC,
        Request { migratetype: Migratetype::Reclaimable, this_node: true, ..Request::KERNEL },
    ][kind];
    request.of_order(order)
}

/// Pages of all lists must be whole: no page twice, none lost, every counter right.
fn check_pages(kernel: &Kernel, held: &[(Pfn, u32)]) {
    let alloc = &kernel.alloc;
    let mut seen = vec![false; alloc.frames.len()];
    let mut mark = |page: Pfn, order: u32| {
        for page in page..page + (1 << order) {
            assert!(!std::mem::replace(&mut seen[page as usize], true), "page {page} twice");
        }
    };
    let mut in_state = [0u64; 3];
    for page in 0..alloc.frames.len() as Pfn {
        let order = match alloc.frames.state(page) {
            State::None => continue,
            state => {
                let order = alloc.frames.order(page);
                in_state[state as usize - 1] += 1 << order;
                order
            }
        };
        mark(page, order);
        if alloc.frames.state(page) == State::Free && order < 10 {
            let buddy = page ^ 1 << order;
            let joinable = alloc.frames.state(buddy) == State::Free
                && alloc.frames.order(buddy) == order
                && alloc.frames.zone(buddy) == alloc.frames.zone(page);
            assert!(!joinable, "free pages {page} and {buddy} are not joined");
        }
    }
    let managed: u64 = alloc.zones.iter().map(|zone| zone.managed).sum();
    let free: u64 = alloc.populated().map(|zone| alloc.free_pages(zone)).sum();
    let sets = alloc.populated().flat_map(|zone| (0..6).map(move |cpu| alloc.pageset(zone, cpu).unwrap().count));
    let allocated: u64 = held.iter().map(|&(_, order)| 1u64 << order).sum();
    assert_eq!(in_state, [free, sets.sum(), allocated]);
    assert_eq!(in_state.iter().sum::<u64>(), managed);
    for zone in alloc.populated() {
        assert_eq!(
            kernel.stat.snapshot(zone, ZoneItem::FreePages),
            alloc.free_pages(zone),
            "free pages of zone {zone}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn under_any_schedule_snapshots_are_true_and_pages_whole(
        steps in steps(),
        design in prop::sample::select(DESIGNS.to_vec()),
        rules in prop::sample::select(RULES.to_vec()),
        threshold in prop::option::of(1u32..20),
    ) {
        let mut kernel = kernel(small(), Rules { transparent_hugepage: false, ..rules }, vmstat(design, threshold));
        let policies =
            [Policy::Default, Policy::Bind(NodeMask::of([1])), Policy::Preferred(2), Policy::Interleave(NodeMask::ALL), Policy::Bind(NodeMask::of([0, 2]))];
        let mut callers: Vec<Caller> = (0..6).map(|cpu| caller(cpu, Policy::Default)).collect();
        let mut held: Vec<(Pfn, u32)> = Vec::new();
        let mut truth = vec![[0u64; NUMA_ITEMS]; kernel.alloc.zones.len()];
        let (mut allocated, mut freed, mut now, mut largest) = (0, 0, 0, 0u64);
        let mut counting = design != Design::Off;
        let steps = steps.into_iter().enumerate().map(|(i, step)| match step {
            Step::Refresh if i % 2 == 1 => Step::Switch(i % 4 == 1),
            step => step,
        });
        for step in steps {
            match step {
                Step::Allocate { cpu, order, kind, policy } if kernel.stat.is_online(cpu) => {
                    let request = request(kind, order);
                    let before: Vec<_> = snapshots(&kernel);
                    callers[cpu as usize].policy = policies[policy];
                    let local = kernel.machine.node_of(cpu);
                    match kernel.allocate(&mut callers[cpu as usize], &request) {
                        Ok(page) => {
                            held.push((page, order));
                            allocated += 1 << order;
                            let zone = kernel.alloc.frames.zone(page);
                            let node = kernel.alloc.zones[zone].node;
                            if counting {
                                // What was counted, from the rules alone.
                                let wanted = match policies[policy] {
                                    Policy::Default | Policy::Bind(_) if !request.this_node => None,
                                    Policy::Preferred(_) => Some(2),
                                    _ => None,
                                };
                                let delta = difference(&before, &snapshots(&kernel));
                                let total = |item: NumaItem| delta.iter().map(|zone| zone[item as usize]).sum::<u64>();
                                prop_assert_eq!(total(NumaItem::Hit) + total(NumaItem::Miss), 1);
                                prop_assert_eq!(total(NumaItem::Local) + total(NumaItem::Other), 1);
                                prop_assert_eq!(total(NumaItem::Miss), total(NumaItem::Foreign));
                                prop_assert_eq!(delta[zone][NumaItem::Local as usize], u64::from(node == local));
                                if let Some(wanted) = wanted {
                                    prop_assert_eq!(delta[zone][NumaItem::Hit as usize], u64::from(node == wanted));
                                }
                                for (truth, delta) in truth.iter_mut().zip(&delta) {
                                    truth.iter_mut().zip(delta).for_each(|(truth, delta)| *truth += delta);
                                }
                            }
                        }
                        Err(KernelError::Allocation(failure)) => {
                            prop_assert_eq!(failure.request.order, order);
                            prop_assert_eq!(&before, &snapshots(&kernel));
                        }
                        Err(error) => prop_assert!(false, "{error}"),
                    }
                }
                Step::Free { which, cpu } if !held.is_empty() && kernel.stat.is_online(cpu) => {
                    let (page, order) = held.swap_remove(which % held.len());
                    kernel.free(cpu, Task::default(), page).unwrap();
                    prop_assert!(kernel.free(cpu, Task::default(), page).is_err());
                    freed += 1u64 << order;
                }
                Step::Allocate { .. } | Step::Free { .. } => {}
                Step::Advance(by) => { now += by; kernel.advance(now); }
                Step::Idle(cpu) if kernel.stat.is_online(cpu) => {
                    if kernel.stat.needs_update(cpu) { kernel.leave_idle(cpu).unwrap(); } else { kernel.enter_idle(cpu).unwrap(); }
                }
                Step::Idle(_) => {}
                Step::Offline(cpu) => {
                    let last = kernel.stat.online() == [cpu];
                    let was = kernel.stat.is_online(cpu);
                    prop_assert_eq!(kernel.set_offline(cpu).is_ok(), was && !last);
                }
                Step::Online(cpu) => kernel.set_online(cpu).unwrap(),
                Step::Pressure(node, awake) => kernel.set_pressure(node, awake),
                Step::Read => {
                    kernel.stat.vmstat_text(&kernel.alloc);
                    kernel.stat.zoneinfo_text(&kernel.alloc);
                }
                Step::Refresh => { kernel.stat.refresh(); }
                Step::Switch(on) => {
                    if kernel.stat.set_numa_stat(on).is_some() {
                        counting = on;
                        truth.fill([0; NUMA_ITEMS]);
                    }
                }
            }
            prop_assert_eq!(&snapshots(&kernel), &truth);
            for zone in kernel.alloc.populated() {
                largest = largest.max(u64::from(kernel.stat.threshold(zone)));
            }
            check_deviation(&mut kernel, design, &truth, largest)?;
        }
        check_pages(&kernel, &held);
        prop_assert_eq!(kernel.stat.events.freed, freed);
        prop_assert_eq!(kernel.stat.events.allocated.iter().sum::<u64>(), allocated);
        for (page, _) in held.drain(..) {
            let cpu = kernel.stat.online()[0];
            kernel.free(cpu, Task::default(), page).unwrap();
        }
        check_pages(&kernel, &[]);
    }
}

fn snapshots(kernel: &Kernel) -> Vec<[u64; NUMA_ITEMS]> {
    let zones = 0..kernel.alloc.zones.len();
    zones.map(|zone| kernel.stat.numa.snapshot(zone, kernel.stat.online())).collect()
}

fn difference(before: &[[u64; NUMA_ITEMS]], after: &[[u64; NUMA_ITEMS]]) -> Vec<[u64; NUMA_ITEMS]> {
    let zones = before.iter().zip(after);
    zones.map(|(before, after)| std::array::from_fn(|item| after[item] - before[item])).collect()
}

/// What files show against what has been counted. `largest` is the largest threshold so far: a lowered one does not
/// shorten what CPUs already hide.
fn check_deviation(
    kernel: &mut Kernel,
    design: Design,
    truth: &[[u64; NUMA_ITEMS]],
    largest: u64,
) -> Result<(), TestCaseError> {
    let online = kernel.stat.online().to_vec();
    let (cpus, zones) = (online.len() as i64, kernel.stat.populated().len() as i64);
    let mut cost = Default::default();
    let low_high = |groups: i64| match design {
        Design::InZone => (-groups * cpus * (largest as i64 >> 1), groups * cpus * largest as i64),
        Design::Separate(variant) | Design::Switched(variant) if variant.threshold.is_none() => {
            (-groups * cpus * (largest as i64 >> 1), groups * cpus * largest as i64)
        }
        Design::Separate(_) | Design::Switched(_) => (0, groups * cpus * 65_533),
        Design::Event { .. } => (0, i64::MAX),
        Design::Off => (0, 0),
    };
    let exact = |variant: Separate| variant.snapshot_reads;
    for &zone in kernel.stat.populated() {
        let shown = kernel.stat.numa.zone(zone, &online, &mut cost);
        let (low, high) = match design {
            Design::Separate(variant) | Design::Switched(variant) if exact(variant) => (0, 0),
            _ => low_high(1),
        };
        for item in 0..NUMA_ITEMS {
            let error = truth[zone][item] as i64 - shown[item] as i64;
            prop_assert!(low <= error && error <= high, "zone {zone} {item}: {error} not in {low}..={high}");
        }
    }
    let shown = kernel.stat.numa.system(&mut cost);
    let (low, high) = low_high(zones);
    for item in 0..NUMA_ITEMS {
        let error = truth.iter().map(|zone| zone[item] as i64).sum::<i64>() - shown[item] as i64;
        prop_assert!(low <= error && error <= high, "system {item}: {error} not in {low}..={high}");
    }
    Ok(())
}

#[test]
fn cpus_of_a_node_without_memory_hit_elsewhere() {
    let distance = vec![vec![10, 20], vec![20, 10]];
    let machine =
        Machine::pc(&[GIB, 0], 0, vec![Cpu { node: 0, core: 0 }, Cpu { node: 1, core: 1 }], distance).unwrap();
    let mut kernel = kernel(machine, Rules::V6_1, vmstat(Design::Event { zoneinfo_folds: true }, None));
    kernel.allocate(&mut caller(1, Policy::Default), &Request::USER).unwrap();
    let text = "numa_hit 1\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 1\n";
    assert_eq!(kernel.stat.numastat_text(0, &kernel.alloc).0, text);
    assert_eq!(kernel.stat.numastat_text(1, &kernel.alloc).0, text.replace('1', "0"));
}

#[test]
fn below_the_drift_mark_free_pages_are_counted_exactly() {
    // Eight CPUs with a threshold of 100 can hide more than lies between the marks of a small zone.
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
fn policies_choose_nodes() {
    let mut kernel = kernel(machine(3, 1, 1, 5 * GIB), Rules::V6_1, vmstat(Design::InZone, None));
    let mut nodes = |policy, cpu| {
        let mut caller = caller(cpu, policy);
        let allocate = |_| {
            let page = kernel.allocate(&mut caller, &Request::USER).unwrap();
            kernel.alloc.zones[kernel.alloc.frames.zone(page)].node
        };
        (0..4).map(allocate).collect::<Vec<_>>()
    };
    assert_eq!(nodes(Policy::Default, 1), [1; 4]);
    assert_eq!(nodes(Policy::Preferred(2), 1), [2; 4]);
    assert_eq!(nodes(Policy::Bind(NodeMask::of([0, 2])), 2), [2; 4]);
    assert_eq!(nodes(Policy::Bind(NodeMask::of([0])), 2), [0; 4]);
    assert_eq!(nodes(Policy::Interleave(NodeMask::of([0, 2])), 1), [0, 2, 0, 2]);
    assert_eq!(nodes(Policy::Interleave(NodeMask::of([])), 1), [1; 4]);
    let cpus = kernel.stat.online().to_vec();
    let sum = |item: NumaItem| {
        let of_node = |node: usize| {
            (0..ZONES).map(|kind| kernel.stat.numa.snapshot(node * ZONES + kind, &cpus)[item as usize]).sum::<u64>()
        };
        [0, 1, 2].map(of_node)
    };
    assert_eq!((sum(NumaItem::Hit), sum(NumaItem::Interleave)), ([6, 8, 10], [2, 0, 2]));
    assert_eq!((sum(NumaItem::Local), sum(NumaItem::Other)), ([0, 8, 4], [6, 0, 6]));
}

#[test]
fn full_nodes_fall_back_and_a_full_machine_fails() {
    let mut kernel =
        kernel(small(), Rules { transparent_hugepage: false, ..Rules::V6_1 }, vmstat(Design::InZone, None));
    let mut task = caller(3, Policy::Default);
    let mut zones = Vec::new();
    let failure = loop {
        match kernel.allocate(&mut task, &Request::KERNEL) {
            Ok(page) => zones.push(kernel.alloc.frames.zone(page)),
            Err(error) => break error.to_string(),
        }
    };
    let kept = |zone: &mmtwin_twin::page_alloc::Zone| zone.marks.min + zone.boost + zone.lowmem_reserve[2];
    let total: u64 = kernel.alloc.zones.iter().map(|zone| zone.managed - kept(zone).min(zone.managed)).sum();
    zones.dedup();
    // Low marks first: the own node, node 2 (it has no CPU), node 0 down to DMA; then the rest above the minimum.
    let first: Vec<usize> = zones.iter().take(4).map(|zone| zone / ZONES * 10 + zone % ZONES).collect();
    assert_eq!(first, [11, 21, 1, 0]);
    assert!(
        failure.starts_with("page allocation failure: order:0, mode:GFP_KERNEL, CPU 3, nodemask=(null), "),
        "{failure}"
    );
    // All but what the minimum and the reserve keep; a refill may take a batch less one of that.
    let allocated = kernel.stat.events.allocated.iter().sum::<u64>();
    assert!((total..total + 4 * 63).contains(&allocated), "{allocated} {total}");
    // What a request that cannot wait may use of the reserves.
    assert!(kernel.allocate(&mut task, &Request::ATOMIC).is_ok());
    assert!(kernel.allocate(&mut task, &Request::KERNEL.of_order(11)).is_err());
    let snapshot = snapshots(&kernel);
    let sum = |item: NumaItem| snapshot.iter().map(|zone| zone[item as usize]).sum::<u64>();
    assert_eq!(sum(NumaItem::Miss), sum(NumaItem::Foreign));
    assert!(sum(NumaItem::Miss) > 5000 && sum(NumaItem::Hit) > 1500);
}

#[derive(Default)]
struct Seen {
    kinds: Vec<(Kind, u64)>,
    stolen: Vec<MmPageAllocExtfrag>,
    gfp: Vec<u8>,
    drained: Vec<u64>,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        match self.kinds.last_mut() {
            Some((kind, count)) if *kind == event.kind => *count += 1,
            _ => self.kinds.push((event.kind, 1)),
        }
        match event.kind {
            Kind::MmPageAllocExtfrag => self.stolen.push(event.typed()),
            Kind::MmPagePcpuDrain => self.drained.push(event.typed::<MmPagePcpuDrain>().pfn.unwrap()),
            Kind::MmPageAlloc => {
                assert!(event.typed::<MmPageAlloc>().pfn.is_some());
                self.gfp = event.raw.to_vec();
            }
            _ => {}
        }
    }
}

#[test]
fn events_tell_refills_steals_and_returns() {
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
fn what_is_left_of_a_foreign_block_stays_with_its_type_from_6_10_on() {
    let stolen = |alloc: Rules| {
        let nodes = vec![Node { memory: vec![Range { start: 512, end: 9 * 512 }], reserved: Vec::new() }];
        let machine = Machine::new(nodes, vec![Cpu { node: 0, core: 0 }], vec![vec![10]]).unwrap();
        let alloc = Rules { transparent_hugepage: false, ..alloc };
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
    // Every page is taken by itself; or the free half of the pageblock becomes the new type's, and the pageblock with it.
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

#[test]
fn idle_cpus_fold_late_or_at_once() {
    let mut kernel = kernel(machine(1, 2, 1, GIB), Rules::V4_13, vmstat(Design::InZone, None));
    let zone = ZoneKind::Dma32 as usize;
    let shown = |kernel: &Kernel| kernel.stat.numa.zone(zone, &[0, 1], &mut Default::default())[0];
    let mut task = caller(1, Policy::Default);
    kernel.leave_idle(1).unwrap();
    kernel.allocate(&mut task, &Request::KERNEL).unwrap();
    assert_eq!((shown(&kernel), kernel.stat.needs_update(1)), (0, true));
    // The shepherd finds it, and its work goes on while there is something.
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
fn impossible_kernels_say_why() {
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

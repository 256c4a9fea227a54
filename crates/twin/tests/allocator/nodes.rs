//! Nodes: policies, memoryless nodes, fallback between zones, and a machine without free pages.

use super::{caller, small, snapshots};
use crate::common::{GIB, kernel, machine, vmstat};
use mmtwin_twin::frame::ZONES;
use mmtwin_twin::hw::{Cpu, Machine};
use mmtwin_twin::page_alloc::{NodeMask, Policy, Request, Rules};
use mmtwin_twin::vmstat::{Design, NumaItem};

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
    // A request that cannot wait may use part of the reserves.
    assert!(kernel.allocate(&mut task, &Request::ATOMIC).is_ok());
    assert!(kernel.allocate(&mut task, &Request::KERNEL.of_order(11)).is_err());
    let snapshot = snapshots(&kernel);
    let sum = |item: NumaItem| snapshot.iter().map(|zone| zone[item as usize]).sum::<u64>();
    assert_eq!(sum(NumaItem::Miss), sum(NumaItem::Foreign));
    assert!(sum(NumaItem::Miss) > 5000 && sum(NumaItem::Hit) > 1500);
}

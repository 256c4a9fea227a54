//! Batched allocation loops equal single ones: results, lists, counters, cache lines and clocks.

use super::RULES;
use crate::common::{DESIGNS, GIB, kernel, machine, vmstat};
use mmtwin_twin::mm::kernel::Kernel;
use mmtwin_twin::page_alloc::{Policy, Request};
use mmtwin_twin::vmstat::{NumaItem, ZoneItem};
use mmtwin_twin::workload::alloc_loop::AllocLoop;
use proptest::prelude::*;

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
        // Short enough that several timers fire during the loops.
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

//! Any schedule of allocations, frees, CPU hotplug and reads: counters and snapshots stay right, no page is lost.

use super::{RULES, caller, small, snapshots};
use crate::common::{DESIGNS, kernel, vmstat};
use mmtwin_twin::frame::{Migratetype, Pfn, State};
use mmtwin_twin::mm::kernel::{Kernel, KernelError};
use mmtwin_twin::page_alloc::{Caller, NodeMask, Policy, Request, Rules};
use mmtwin_twin::probe::Task;
use mmtwin_twin::vmstat::{Design, NUMA_ITEMS, NumaItem, Separate, ZoneItem};
use proptest::prelude::*;

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
                                // Expected counts, from the rules alone.
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

fn difference(before: &[[u64; NUMA_ITEMS]], after: &[[u64; NUMA_ITEMS]]) -> Vec<[u64; NUMA_ITEMS]> {
    let zones = before.iter().zip(after);
    zones.map(|(before, after)| std::array::from_fn(|item| after[item] - before[item])).collect()
}

/// Counters in the files against the true counts. `largest` is the largest threshold so far: a lowered one does not
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

use super::shared::{HIT, LOCAL};
use super::*;
use crate::bench::threads::{cpus, together};
use proptest::prelude::*;

/// A CPU for each thread; the same one may serve several, on as many nodes as asked for.
fn machine(threads: usize, nodes: u32) -> Vec<Cpu> {
    let cpus = cpus().unwrap();
    (0..threads).map(|i| Cpu { id: cpus[i % cpus.len()].id, node: i as u32 % nodes }).collect()
}

/// Counts `allocations` on every CPU at once, without folding at the end.
fn run(design: &dyn Design, cpus: &[Cpu], allocations: &[u64]) {
    let nodes = shared::nodes(cpus);
    let counted = together(cpus, Duration::ZERO, |cpu, gate| {
        gate.wait();
        (0..allocations[cpu]).for_each(|_| _ = design.count(cpu, nodes[cpu]));
    });
    counted.unwrap();
}

fn expect_exact(variant: Variant, stat: [u64; ITEMS], truth: u64) {
    let truth = if variant == Variant::Off { 0 } else { truth };
    assert_eq!((stat[HIT], stat[LOCAL]), (truth, truth), "{variant:?}");
    assert_eq!(stat.iter().sum::<u64>(), 2 * truth, "{variant:?}: only hit and local are counted");
}

/// Truth minus a plain read: lowest and highest for one CPU and zone.
fn bounds(variant: Variant, threshold: u32) -> (i64, i64) {
    match variant {
        Variant::ZoneS8 | Variant::ZoneS16 | Variant::SeparateS8 => (-i64::from(threshold >> 1), threshold.into()),
        Variant::SeparateU16 => (0, threshold.into()),
        Variant::Off | Variant::Events => (0, 0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_is_lost(
        variant in prop::sample::select([&Variant::OF_KERNELS[..], &[Variant::ZoneS16]].concat()),
        sweep in prop::sample::select(&THRESHOLDS[..]),
        allocations in prop::collection::vec(0u64..150_000, 1..5),
        nodes in 1u32..3,
    ) {
        let threshold = match variant {
            Variant::ZoneS8 | Variant::SeparateS8 => sweep.min(BASE),
            Variant::ZoneS16 => sweep.min(LARGEST_S16),
            _ => sweep,
        };
        let cpus = machine(allocations.len(), nodes);
        let nodes = shared::nodes(&cpus);
        let zones = nodes.iter().max().unwrap() + 1;
        let design = build(variant, threshold, &cpus).unwrap();
        run(&*design, &cpus, &allocations);
        let truth: u64 = allocations.iter().sum();

        // The plain system read is inside the documented deviation before anything is folded ...
        let (low, high) = bounds(variant, threshold);
        let counted = if variant == Variant::Off { 0 } else { truth };
        let deviation = counted as i64 - design.vmstat()[HIT] as i64;
        let n = cpus.len() as i64;
        prop_assert!((n * low..=n * high).contains(&deviation), "{variant:?} {threshold}: {deviation}");
        // ... the snapshot of a node is exact already ...
        if !matches!(variant, Variant::ZoneS8 | Variant::ZoneS16 | Variant::SeparateS8) {
            let total: u64 = (0..zones).map(|node| design.numastat(node)[HIT]).sum();
            prop_assert_eq!(total, counted);
        }
        // ... and after the fold everything is.
        (0..cpus.len()).for_each(|cpu| design.fold(cpu, nodes[cpu]));
        expect_exact(variant, design.vmstat(), truth);
        for node in 0..zones {
            let here = allocations.iter().zip(&nodes).filter(|(_, n)| **n == node).map(|(a, _)| a);
            expect_exact(variant, design.numastat(node), here.sum());
        }
    }
}

/// The words are updated as often as the period says: with an overstep every t + 1 + t/2 increments.
#[test]
fn updates_come_once_a_period() {
    let cpus = machine(1, 1);
    for (variant, threshold, period) in [
        (Variant::ZoneS8, 125, 188),
        (Variant::ZoneS16, 4096, 6145),
        (Variant::SeparateS8, 32, 49),
        (Variant::SeparateU16, 65_533, 65_534),
    ] {
        let design = build(variant, threshold, &cpus).unwrap();
        assert_eq!(design.period(), period);
        let mut seen = Vec::new();
        for allocation in 1..=3 * period {
            let before = design.vmstat();
            design.count(0, 0);
            if design.vmstat() != before {
                seen.push(allocation);
            }
        }
        let first = u64::from(threshold) + 1;
        assert_eq!(seen, [first, first + period, first + 2 * period], "{variant:?}");
    }
}

/// Reads that fold while CPUs count never lose anything; the kernel's race may count something twice.
#[test]
fn folding_reads_do_not_lose() {
    let cpus = machine(2, 1);
    let design = build(Variant::Events, 0, &cpus).unwrap();
    let counted = together(&cpus, Duration::from_millis(20), |cpu, gate| {
        let mut steps = 0u64;
        paced(gate, || {
            steps += 1;
            _ = if cpu == 0 { design.numastat(0)[HIT] } else { design.count(1, 0) };
        });
        steps
    });
    let truth = counted.unwrap()[1];
    let shown = design.numastat(0)[HIT];
    assert!(shown >= truth, "{shown} of {truth}");
}

/// What the measured loop leaves is folded, and its beginning is spread over a period.
#[test]
fn the_measured_loop_counts() {
    let cpus = machine(2, 1);
    for variant in Variant::OF_KERNELS {
        let design = build(variant, variant.threshold().unwrap_or(SERIES), &cpus).unwrap();
        let work = Work::lasting(Duration::from_nanos(20), &cpus).unwrap();
        let times =
            together(&cpus, Duration::from_millis(2), |cpu, gate| design.allocate(cpu, 2, 0, work, gate)).unwrap();
        assert!(times.iter().all(|t| *t > 0.0));
        let stat = design.vmstat();
        let expected = if variant == Variant::Off { 0..1 } else { u64::from(BATCH)..u64::MAX };
        assert!(expected.contains(&stat[HIT]) && stat[HIT] == stat[LOCAL], "{variant:?}: {stat:?}");
    }
}

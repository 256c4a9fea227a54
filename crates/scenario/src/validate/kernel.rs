//! The kernel: ranges of sysctls and tunables, and parameters of counter designs.

use crate::check::Check;
use crate::kernel::{Kernel, NumaCounters, Sysctl, Threshold, VmapNodes, Vmstat};
use crate::machine::Machine;
use crate::units::{Auto, List};

pub(super) fn check(kernel: &mut Kernel, machine: &Machine, check: &mut Check<'_>) {
    check.require((1..=10_000).contains(&kernel.hz), "kernel.hz", || "1 to 10000 timer interrupts per second".into());
    let cpus = machine.possible_cpus;
    check.require((cpus..=List::MAX + 1).contains(&kernel.nr_cpus), "kernel.nr_cpus", || {
        format!("the machine has {cpus} possible CPUs, and kernels are built for at most {}", List::MAX + 1)
    });
    let is_version = kernel.version.split('.').take(2).all(|part| part.parse::<u32>().is_ok());
    check
        .require(is_version && kernel.version.contains('.'), "kernel.version", || "a version begins like 6.1.0".into());
    vmstat(&mut kernel.vmstat, check);
    check.require((9..=13).contains(&kernel.page_alloc.max_order), "kernel.page_alloc.max_order", || {
        "largest blocks are of order 9 to 13".into()
    });
    if kernel.vmalloc.lazy_max_pages == Auto::Given(0) {
        check.fault("kernel.vmalloc.lazy_max_pages", "a purge needs at least one page to purge");
    }
    if let VmapNodes::Fixed(nodes) = kernel.vmalloc.vmap_nodes {
        check.require(nodes <= cpus, "kernel.vmalloc.vmap_nodes", || {
            format!("{nodes} nodes, but only {cpus} possible CPUs: a node's purge runs on the CPU of its number")
        });
    }
    let scan = &kernel.numa_balancing;
    check.require((1..=1 << 20).contains(&scan.scan_size_mb), "kernel.numa_balancing.scan_size_mb", || {
        "1 to 1048576 MB are scanned at once".into()
    });
    check.require(scan.scan_period_min_ms > 0, "kernel.numa_balancing.scan_period_min_ms", || {
        "a scan period is at least 1 ms".into()
    });
    let ordered = scan.scan_period_min_ms <= scan.scan_period_max_ms;
    check.require(ordered, "kernel.numa_balancing.scan_period_max_ms", || {
        format!("the longest period is shorter than the shortest, {} ms", scan.scan_period_min_ms)
    });
    check.require((100..=1000).contains(&kernel.sched.numa_imbalance_pct), "kernel.sched.numa_imbalance_pct", || {
        "an imbalance is 100 to 1000 percent".into()
    });
    let limits = limits(kernel);
    for (name, value, least, most) in limits {
        check.require((least..=most).contains(&value), &format!("kernel.sysctl.{name}"), || {
            format!("{name} is {least} to {most}")
        });
    }
    for (i, ratio) in kernel.sysctl.vm_lowmem_reserve_ratio.iter().enumerate() {
        check.require(*ratio <= 1 << 20, &format!("kernel.sysctl.vm.lowmem_reserve_ratio.#{i}"), || {
            "a ratio is at most 1048576".into()
        });
    }
    check.require((3..=4).contains(&kernel.sysctl.vm_lowmem_reserve_ratio.len()), LOWMEM, || {
        "ratios of DMA, DMA32, Normal and, where the kernel has it, Movable".into()
    });
}

const LOWMEM: &str = "kernel.sysctl.vm.lowmem_reserve_ratio";

/// Name, value, least and most of every sysctl that has limits.
fn limits(kernel: &Kernel) -> Vec<(&'static str, u64, u64, u64)> {
    let s: &Sysctl = &kernel.sysctl;
    // The cost model of 5.8 made room for swap that is faster than files.
    let swappiness = if version(kernel) >= (5, 8) { 200 } else { 100 };
    let always = [
        ("vm.swappiness", s.vm_swappiness, 0, swappiness),
        ("vm.zone_reclaim_mode", s.vm_zone_reclaim_mode, 0, 7),
        ("vm.min_unmapped_ratio", s.vm_min_unmapped_ratio, 0, 100),
        ("vm.min_slab_ratio", s.vm_min_slab_ratio, 0, 100),
        ("vm.dirty_background_ratio", s.vm_dirty_background_ratio, 0, 100),
        ("vm.dirty_ratio", s.vm_dirty_ratio, 0, 100),
        ("vm.page-cluster", s.vm_page_cluster, 0, 10),
        ("vm.extfrag_threshold", s.vm_extfrag_threshold, 0, 1000),
        ("vm.stat_interval", s.vm_stat_interval, 1, 86_400),
        ("kernel.watchdog_thresh", s.kernel_watchdog_thresh, 0, 60),
    ];
    let sometimes = [
        ("vm.watermark_scale_factor", s.vm_watermark_scale_factor, 1, 3000),
        ("vm.compaction_proactiveness", s.vm_compaction_proactiveness, 0, 100),
        ("vm.defrag_mode", s.vm_defrag_mode, 0, 1),
        ("vm.numa_stat", s.vm_numa_stat, 0, 1),
        ("kernel.numa_balancing", s.kernel_numa_balancing, 0, 3),
    ];
    let sometimes = sometimes.into_iter().filter_map(|(name, value, least, most)| Some((name, value?, least, most)));
    let small = always.into_iter().chain(sometimes);
    let small = small.map(|(name, value, least, most)| (name, u64::from(value), least, most));
    let given = s.vm_min_free_kbytes.given().map(|kbytes| ("vm.min_free_kbytes", kbytes, 1, 1 << 40));
    small.chain(given).collect()
}

/// Major and minor number of the kernel's version.
fn version(kernel: &Kernel) -> (u32, u32) {
    let mut numbers = kernel.version.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A parameter that the design has no use for is a fault where the scenario gives it, and dropped where it only comes
/// from the bundle: `numa_counters = "off"` alone must do.
fn vmstat(vmstat: &mut Vmstat, check: &mut Check<'_>) {
    use NumaCounters::{Events, SeparateS8, SeparateU16, ZoneS8, ZoneS16};
    let design = vmstat.numa_counters;
    if let Threshold::Fixed(threshold) = vmstat.threshold {
        let path = "kernel.vmstat.threshold";
        match design.max_threshold() {
            Some(most) if threshold > most => {
                let wider = (design == ZoneS8).then(|| "numa_counters = \"zone-s16\" holds more".to_string());
                check.fault_help(
                    path,
                    format!("numa_counters = \"{design}\" holds thresholds up to {most}, not {threshold}"),
                    wider,
                );
            }
            None if check.is_given(path) => {
                check.fault(path, format!("numa_counters = \"{design}\" has no threshold"));
            }
            None => vmstat.threshold = Threshold::Auto,
            Some(_) => {}
        }
    }
    let signed = matches!(design, ZoneS8 | ZoneS16 | SeparateS8);
    let separate = matches!(design, SeparateS8 | SeparateU16);
    let mut only = |key: &str, value: &mut bool, has: bool, which: &str| {
        if *value && !has {
            let path = format!("kernel.vmstat.{key}");
            if check.is_given(&path) {
                check.fault(&path, format!("only {which}, not \"{design}\""));
            }
            *value = false;
        }
    };
    only("overstep", &mut vmstat.overstep, signed, "designs with signed differentials overstep");
    only("snapshot_reads", &mut vmstat.snapshot_reads, separate, "designs with an array of their own add remainders");
    only("zoneinfo_folds", &mut vmstat.zoneinfo_folds, design == Events, "the design \"events\" folds when read");
}

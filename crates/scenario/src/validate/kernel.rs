//! The kernel: ranges of sysctls and tunables, and parameters of counter designs.

use crate::check::Check;
use crate::kernel::{Kernel, NumaCounters, Threshold, VmapNodes, Vmstat, limits};
use crate::machine::Machine;
use crate::units::{Auto, Bytes, List};
use mmtwin_event::KernelRelease;

pub(super) fn check(kernel: &mut Kernel, machine: &Machine, check: &mut Check<'_>) {
    check.require((1..=10_000).contains(&kernel.hz), "kernel.hz", || "1 to 10000 timer interrupts per second".into());
    let cpus = machine.possible_cpus;
    check.require((cpus..=List::MAX + 1).contains(&kernel.nr_cpus), "kernel.nr_cpus", || {
        format!("the machine has {cpus} possible CPUs, and kernels are built for at most {}", List::MAX + 1)
    });
    check.require(KernelRelease::parse(&kernel.version).is_some(), "kernel.version", || {
        "a version begins like 6.1.0".into()
    });
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
    check.require((1..=64).contains(&kernel.reclaim.pagevec_size), "kernel.reclaim.pagevec_size", || {
        "1 to 64 pages of a CPU's batch".into()
    });
    check.require((1..=512).contains(&kernel.filemap.fault_around_pages), "kernel.filemap.fault_around_pages", || {
        "a fault maps 1 to 512 pages".into()
    });
    check.require((1..=1024).contains(&kernel.sched.busy_factor), "kernel.sched.busy_factor", || {
        "a busy factor is 1 to 1024".into()
    });
    ticks(kernel.hz, machine, check);
    sysctls(kernel, machine, check);
    check.require((3..=4).contains(&kernel.sysctl.vm_lowmem_reserve_ratio.len()), LOWMEM, || {
        "ratios of DMA, DMA32, Normal and, where the kernel has it, Movable".into()
    });
    numbers(kernel, check);
}

/// Ticks leave the CPUs at least half of their time.
fn ticks(hz: u32, machine: &Machine, check: &mut Check<'_>) {
    let cpus = if machine.cpu.single_threaded_tcg { machine.cpus.len() as u64 } else { 1 };
    let longest = 1_000_000_000_000 / u64::from(hz.max(1)) / 2;
    check.require(machine.cost.tick.0.saturating_mul(cpus) <= longest, "machine.cost.tick", || {
        format!("{cpus} times {} is more than half of the time between ticks", machine.cost.tick)
    });
}

const LOWMEM: &str = "kernel.sysctl.vm.lowmem_reserve_ratio";

/// Every sysctl has a value that this kernel takes.
fn sysctls(kernel: &Kernel, machine: &Machine, check: &mut Check<'_>) {
    let Ok(serde_json::Value::Object(given)) = serde_json::to_value(&kernel.sysctl) else { return };
    for (name, value) in &given {
        let path = format!("kernel.sysctl.{name}");
        match value {
            serde_json::Value::Array(list) => {
                for (i, value) in list.iter().enumerate() {
                    sysctl(kernel, machine, name, value.as_u64(), &format!("{path}.#{i}"), check);
                }
            }
            // One that the kernel computes is a word.
            value => sysctl(kernel, machine, name, value.as_u64(), &path, check),
        }
    }
}

/// A value that is given or written for a sysctl must be accepted by the kernel.
pub(super) fn sysctl(
    kernel: &Kernel,
    machine: &Machine,
    name: &str,
    value: Option<u64>,
    path: &str,
    check: &mut Check<'_>,
) {
    let (Some(value), Some(limits)) = (value, limits(kernel, name)) else { return };
    check.require(limits.contain(value), path, || format!("{name} is {limits}"));
    // A kernel takes it, and nothing can be allocated from then on.
    let memory = machine.memory_bytes();
    let more = name == "vm.min_free_kbytes" && limits.contain(value) && value.saturating_mul(1024) > memory;
    check.require(!more, path, || format!("{name} = {value} is more than the machine has: {}", Bytes(memory)));
}

/// Numbers of variants that are multiplied with others.
fn numbers(kernel: &Kernel, check: &mut Check<'_>) {
    const DAY_MS: u64 = 86_400_000;
    let scan = &kernel.numa_balancing;
    let mut limited = vec![
        ("page_alloc.min_free_kbytes_max", kernel.page_alloc.min_free_kbytes_max, 1 << 42),
        ("numa_balancing.scan_delay_ms", scan.scan_delay_ms.into(), DAY_MS),
        ("numa_balancing.scan_period_max_ms", scan.scan_period_max_ms.into(), DAY_MS),
        ("numa_balancing.hot_threshold_ms", scan.hot_threshold_ms.into(), DAY_MS),
        ("reclaim.stats_flush_ms", kernel.reclaim.stats_flush_ms.into(), DAY_MS),
        ("sched.migration_cost_ns", kernel.sched.migration_cost_ns, 10_000_000_000),
        ("sched.cache_nice_tries", kernel.sched.cache_nice_tries.into(), 1000),
    ];
    limited.extend(kernel.vmalloc.lazy_max_pages.given().map(|pages| ("vmalloc.lazy_max_pages", pages, 1 << 40)));
    for (key, value, most) in limited {
        check.require(value <= most, &format!("kernel.{key}"), || format!("`{key}` is at most {most}, not {value}"));
    }
}

/// A parameter that the design does not use is a fault if the scenario gives it, and dropped if it is only in the
/// bundle: `numa_counters = "off"` alone must be enough.
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

//! The kernel: rules of the allocator and of the counters.

use super::BuildError;
use crate::alloc::{PerCpuHigh, Rules, SpreadLoad};
use crate::clock::Ns;
use crate::kernel::KernelRules;
use crate::reclaim;
use crate::vmstat::{Design, Dialect, SERIES_THRESHOLD, Separate, VmStatRules};
use crate::writeback::{self, Limit, Limits};
use mmtwin_scenario::Kernel;
use mmtwin_scenario::kernel::{
    Balanced, Congestion, DirtyPages, Files, LruScope, NeedsUpdate, NumaCounters, PageAlloc, Pageset, ScanBalance, Thp,
    Threshold, Watermarks,
};

const NS_PER_S: u64 = 1_000_000_000;

/// Rules of the page allocator and of the counters.
pub fn rules(of: &Kernel) -> Result<KernelRules, BuildError> {
    Ok(KernelRules { alloc: alloc(of), vmstat: vmstat(of)?, reclaim: reclaim(of) })
}

fn alloc(of: &Kernel) -> Rules {
    let PageAlloc { pageset, watermarks, min_free_kbytes_max, .. } = of.page_alloc;
    let sysctl = &of.sysctl;
    let ratios = &sysctl.vm_lowmem_reserve_ratio;
    Rules {
        batch_limit: if pageset == Pageset::BatchTimesSix { 128 } else { 256 },
        per_cpu_high: match pageset {
            Pageset::BatchTimesSix => PerCpuHigh::SixBatches,
            Pageset::LowWatermark => PerCpuHigh::LowMark,
            Pageset::Floating => PerCpuHigh::Auto,
        },
        per_cpu_orders: pageset != Pageset::BatchTimesSix,
        // The boost came with the rule that it serves.
        avoid_fragmentation: sysctl.vm_watermark_boost_factor.is_some(),
        watermark_boost_factor: sysctl.vm_watermark_boost_factor.unwrap_or(0).into(),
        // Without the factor the marks are quarters, as a factor of 0 makes them.
        watermark_scale_factor: sysctl.vm_watermark_scale_factor.unwrap_or(0).into(),
        min_free_kbytes: sysctl.vm_min_free_kbytes.given(),
        min_free_limit_kb: min_free_kbytes_max,
        transparent_hugepage: of.thp != Thp::Never,
        movable_apart: watermarks == Watermarks::ScaleFactorMovable,
        lowmem_reserve_ratio: [0, 1, 2, 3].map(|i| ratios.get(i).copied().unwrap_or(0).into()),
        spread_load: if is_at_least(of, 5, 18) { SpreadLoad::ByCount } else { SpreadLoad::ByPlace },
    }
}

/// The rules of a kernel that reclaims by zones, if they are modelled: those of 2010.
pub(super) fn by_zone(of: &Kernel) -> Option<reclaim::Variant> {
    let waits = match of.reclaim.congestion {
        Congestion::Wait => reclaim::Waits::Always,
        Congestion::WaitIffDevice | Congestion::WaitIffZone => reclaim::Waits::IfCongested,
        Congestion::Throttle => return None,
    };
    let known = of.reclaim.lru == LruScope::Zone
        && of.reclaim.balanced == Balanced::AllZones
        && of.reclaim.dirty_pages == DirtyPages::Write;
    known.then_some(reclaim::Variant { waits })
}

fn reclaim(of: &Kernel) -> reclaim::Rules {
    let by_zone = by_zone(of);
    reclaim::Rules {
        lru_batch: if is_at_least(of, 6, 11) { 31 } else { 15 - usize::from(by_zone.is_some()) },
        cost_of_rotations: of.reclaim.scan_balance == ScanBalance::CostRotations,
        skip_limit: of.reclaim.skip_limit.into(),
        stats_flush: Ns::from(of.reclaim.stats_flush_ms) * 1_000_000,
        swappiness: of.sysctl.vm_swappiness.into(),
        laptop_mode: of.sysctl.vm_laptop_mode != 0,
        hz: of.hz.into(),
        by_zone,
    }
}

/// When and how much is written back.
pub(crate) fn writeback(of: &Kernel) -> writeback::Rules {
    const NS_PER_CS: u64 = 10_000_000;
    let sysctl = &of.sysctl;
    let limit = |percent: u32, bytes: Option<u64>| match bytes {
        Some(bytes) if bytes > 0 => Limit::Pages(bytes.div_ceil(4096)),
        _ => Limit::Percent(percent.into()),
    };
    writeback::Rules {
        limits: Limits {
            background: limit(sysctl.vm_dirty_background_ratio, sysctl.vm_dirty_background_bytes),
            hard: limit(sysctl.vm_dirty_ratio, sysctl.vm_dirty_bytes),
        },
        expire: u64::from(sysctl.vm_dirty_expire_centisecs) * NS_PER_CS,
        interval: u64::from(sysctl.vm_dirty_writeback_centisecs) * NS_PER_CS,
        laptop_mode: sysctl.vm_laptop_mode != 0,
        only_expired: is_at_least(of, 6, 10),
        ends_anywhere: is_at_least(of, 6, 7),
        hz: of.hz.into(),
    }
}

fn vmstat(of: &Kernel) -> Result<VmStatRules, BuildError> {
    let said = &of.vmstat;
    let fixed = match said.threshold {
        Threshold::Auto => None,
        Threshold::Fixed(threshold) => Some(threshold),
    };
    let signed = matches!(said.numa_counters, NumaCounters::ZoneS8 | NumaCounters::ZoneS16 | NumaCounters::SeparateS8);
    if signed && !said.overstep {
        return Err(BuildError::NotModelled("kernel.vmstat.overstep = false", "signed differentials overstep"));
    }
    let separate = |threshold| Separate {
        threshold,
        snapshot_reads: said.snapshot_reads,
        update_test_fault: said.needs_update == NeedsUpdate::ItemsAsBytes,
    };
    let wide = separate(Some(fixed.unwrap_or(SERIES_THRESHOLD)));
    let design = match said.numa_counters {
        NumaCounters::ZoneS8 | NumaCounters::ZoneS16 => Design::InZone,
        NumaCounters::SeparateS8 => Design::Separate(separate(None)),
        NumaCounters::SeparateU16 if of.sysctl.vm_numa_stat.is_some() => Design::Switched(wide),
        NumaCounters::SeparateU16 => Design::Separate(wide),
        NumaCounters::Events => Design::Event { zoneinfo_folds: said.zoneinfo_folds },
        NumaCounters::Off => Design::Off,
    };
    Ok(VmStatRules {
        design,
        // A threshold of the wide design is its own.
        threshold: fixed.filter(|_| signed),
        stat_interval: u64::from(of.sysctl.vm_stat_interval) * NS_PER_S,
        hz: of.hz,
        dialect: match said.files {
            Files::V2_6_36 => Dialect::V2_6_36,
            Files::V4_13 => Dialect::V4_13,
            Files::V4_14 => Dialect::Series,
            Files::V6_1 => Dialect::V6_1,
            Files::V6_18 => Dialect::V6_18,
        },
    })
}

/// True if the kernel's version is at least this one.
fn is_at_least(of: &Kernel, major: u32, minor: u32) -> bool {
    let mut numbers = of.version.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn kernel(release: &str) -> Kernel {
        let text = format!("[machine]\npreset = \"broadwell-2s-88\"\n[kernel]\nrelease = \"{release}\"\n");
        mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap().kernel
    }

    #[test]
    fn bundles_give_the_rules_of_their_releases() {
        assert_eq!(alloc(&kernel("4.13")), Rules::V4_13);
        assert_eq!(alloc(&kernel("6.1")), Rules::V6_1);
        assert_eq!(alloc(&kernel("6.12")), Rules::V6_12);
        assert_eq!(vmstat(&kernel("4.13")).unwrap().design, Design::InZone);
        assert!(matches!(vmstat(&kernel("6.1")).unwrap().design, Design::Event { zoneinfo_folds: false }));
    }

    #[test]
    fn the_kernels_of_2010_reclaim_by_zones() {
        let waits = |release| by_zone(&kernel(release)).map(|variant| variant.waits);
        use reclaim::Waits::{Always, IfCongested};
        assert_eq!(["2.6.36", "2.6.36-lowlumpy"].map(waits), [Some(Always); 2]);
        assert_eq!(["2.6.36-waitcongest", "2.6.37"].map(waits), [Some(IfCongested); 2]);
        assert_eq!(["3.3", "3.13", "4.13", "6.1", "6.12"].map(waits), [None; 5]);
    }

    #[test]
    fn every_bundle_can_be_simulated() {
        for name in mmtwin_scenario::bundle_names() {
            assert!(rules(&kernel(name)).is_ok(), "{name}");
        }
    }
}

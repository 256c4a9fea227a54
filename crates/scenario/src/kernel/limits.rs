//! Values that a kernel accepts for its sysctls, and the errors for others.

use super::Kernel;
use std::fmt;

/// The largest `int`, where the kernel names no smaller limit.
const INT: u64 = i32::MAX as u64;
/// The largest number of TOML; `unsigned long` has a bit more.
const LONG: u64 = i64::MAX as u64;

/// Values of a sysctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Smallest value.
    pub least: u64,
    /// Largest value.
    pub most: u64,
    /// 0 is taken too, and switches something off.
    pub or_zero: bool,
}

impl Limits {
    const fn of(least: u64, most: u64) -> Limits {
        Limits { least, most, or_zero: false }
    }

    /// True if the kernel takes the value.
    pub fn contain(&self, value: u64) -> bool {
        (self.least..=self.most).contains(&value) || self.or_zero && value == 0
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zero = if self.or_zero { "0 or " } else { "" };
        write!(f, "{zero}{} to {}", self.least, self.most)
    }
}

/// Values that a kernel accepts for a sysctl, by its table (`kernel/sysctl.c`, `mm/page_alloc.c`,
/// `mm/page-writeback.c`, `mm/vmstat.c`). `None`: no such sysctl is known here.
pub fn limits(kernel: &Kernel, name: &str) -> Option<Limits> {
    let max = &kernel.sysctl_max;
    // Seconds that are kept in ticks.
    let seconds = INT / u64::from(kernel.hz.max(1));
    let limits = match name {
        "vm.swappiness" => Limits::of(0, max.vm_swappiness.into()),
        "vm.min_free_kbytes" => Limits::of(0, INT),
        "vm.watermark_scale_factor" => Limits::of(1, max.vm_watermark_scale_factor.into()),
        "vm.watermark_boost_factor" => Limits::of(0, INT),
        "vm.lowmem_reserve_ratio" => Limits::of(0, 1 << 20),
        // Bits: on, write, unmap.
        "vm.zone_reclaim_mode" => Limits::of(0, 7),
        "vm.min_unmapped_ratio" | "vm.min_slab_ratio" => Limits::of(0, 100),
        "vm.dirty_background_ratio" | "vm.dirty_ratio" => Limits::of(0, 100),
        // 0 stands for the percentage; writing it is refused, in actions.
        "vm.dirty_background_bytes" => Limits { least: 1, most: LONG, or_zero: true },
        "vm.dirty_bytes" => Limits { least: 2 * crate::units::PAGE, most: LONG, or_zero: true },
        "vm.dirty_expire_centisecs" | "vm.dirty_writeback_centisecs" | "vm.vfs_cache_pressure" => Limits::of(0, INT),
        "vm.laptop_mode" => Limits::of(0, seconds),
        "vm.page-cluster" => Limits::of(0, 10),
        "vm.extfrag_threshold" => Limits::of(0, 1000),
        "vm.compaction_proactiveness" => Limits::of(0, 100),
        "vm.percpu_pagelist_high_fraction" => Limits { least: 8, most: INT, or_zero: true },
        "vm.defrag_mode" | "vm.numa_stat" => Limits::of(0, 1),
        "vm.stat_interval" => Limits::of(1, 86_400.min(seconds)),
        "kernel.numa_balancing" => Limits::of(0, max.kernel_numa_balancing.into()),
        "kernel.numa_balancing_promote_rate_limit_MBps" | "kernel.numa_balancing_migrate_deferred" => {
            Limits::of(0, INT)
        }
        "kernel.watchdog_thresh" => Limits::of(0, 60),
        _ => return None,
    };
    Some(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Sysctl;
    use std::path::Path;

    fn kernel(release: &str) -> Kernel {
        let text = format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"{release}\"\n");
        crate::parse("s", &text, Path::new(""), &[]).expect("a scenario").kernel
    }

    #[test]
    fn every_sysctl_has_limits() {
        for name in Sysctl::NAMES {
            assert!(limits(&kernel("6.1"), name).is_some_and(|limits| limits.least <= limits.most), "{name}");
        }
        assert_eq!(limits(&kernel("6.1"), "vm.panic_on_oom"), None);
    }

    #[test]
    fn limits_are_those_of_the_release() {
        let most = |release, name| limits(&kernel(release), name).expect("limits").most;
        assert_eq!((most("4.19", "vm.swappiness"), most("6.1", "vm.swappiness")), (100, 200));
        assert_eq!(
            (most("4.19", "vm.watermark_scale_factor"), most("6.12", "vm.watermark_scale_factor")),
            (1000, 3000)
        );
        assert_eq!((most("4.19", "kernel.numa_balancing"), most("6.1", "kernel.numa_balancing")), (1, 3));
        assert_eq!(most("6.1", "vm.laptop_mode"), 2_147_483_647 / 250);
    }

    #[test]
    fn zero_may_stand_apart() {
        let fraction = limits(&kernel("6.1"), "vm.percpu_pagelist_high_fraction").expect("limits");
        assert!(fraction.contain(0) && !fraction.contain(7) && fraction.contain(8));
        assert_eq!(fraction.to_string(), "0 or 8 to 2147483647");
    }
}

//! Sysctls that decide how memory is managed.
//!
//! `None`: this kernel does not have it. The tunables of the NUMA scanner are in
//! [`NumaBalancing`](super::NumaBalancing), because they moved from sysctls to debugfs in 5.13.

use crate::units::Auto;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the sysctls with their names in `/proc/sys`.
macro_rules! sysctls {
    ($($(#[$doc:meta])* $name:literal $field:ident: $type:ty $(, $absent:literal)?;)+) => {
        /// Sysctls by the kernel's names.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Sysctl {
            $($(#[$doc])* #[serde(rename = $name $(, default, skip_serializing_if = $absent)?)]
            pub $field: $type,)+
        }

        impl Sysctl {
            /// Names of all sysctls that a kernel may have.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
            /// Sysctls that every kernel has and no bundle sets: while they are 0 another sysctl applies.
            pub const EVERYWHERE: &'static [&'static str] = &["vm.dirty_background_bytes", "vm.dirty_bytes"];
        }
    };
}

sysctls! {
    /// Preference for reclaiming anonymous memory: 0 to 200, before 5.8 to 100.
    "vm.swappiness" vm_swappiness: u32;
    /// Free memory to keep, in KiB; computed from the size of memory unless given.
    "vm.min_free_kbytes" vm_min_free_kbytes: Auto<u64>;
    /// Distance of the watermarks in 1/10000 of a zone (4.6+).
    "vm.watermark_scale_factor" vm_watermark_scale_factor: Option<u32>, "Option::is_none";
    /// Largest boost of the watermarks in 1/10000 of the high watermark (5.0+); 0 is off.
    "vm.watermark_boost_factor" vm_watermark_boost_factor: Option<u32>, "Option::is_none";
    /// Ratios of the reserve for lower zones: DMA, DMA32, Normal and, where it has one, Movable.
    "vm.lowmem_reserve_ratio" vm_lowmem_reserve_ratio: Vec<u32>;
    /// Node reclaim before using another node: sum of 1 (on), 2 (writes), 4 (unmaps).
    "vm.zone_reclaim_mode" vm_zone_reclaim_mode: u32;
    /// Unmapped page cache, in percent of a zone, above which node reclaim starts.
    "vm.min_unmapped_ratio" vm_min_unmapped_ratio: u32;
    /// Reclaimable slab, in percent of a zone, above which node reclaim starts.
    "vm.min_slab_ratio" vm_min_slab_ratio: u32;
    /// Dirty memory in percent at which background writeback starts.
    "vm.dirty_background_ratio" vm_dirty_background_ratio: u32;
    /// Dirty memory in percent at which writers wait.
    "vm.dirty_ratio" vm_dirty_ratio: u32;
    /// The same in bytes; 0: the percentage counts.
    "vm.dirty_background_bytes" vm_dirty_background_bytes: Option<u64>, "Option::is_none";
    /// Bytes of dirty memory at which writers wait; 0: the percentage counts.
    "vm.dirty_bytes" vm_dirty_bytes: Option<u64>, "Option::is_none";
    /// Age at which dirty memory is written, in 1/100 s.
    "vm.dirty_expire_centisecs" vm_dirty_expire_centisecs: u32;
    /// Interval of the flusher threads in 1/100 s; 0 is off.
    "vm.dirty_writeback_centisecs" vm_dirty_writeback_centisecs: u32;
    /// Laptop mode; 0 is off.
    "vm.laptop_mode" vm_laptop_mode: u32;
    /// Weight of dentries and inodes in reclaim, in percent.
    "vm.vfs_cache_pressure" vm_vfs_cache_pressure: u32;
    /// Pages read ahead from swap, as a power of two.
    "vm.page-cluster" vm_page_cluster: u32;
    /// Fragmentation index up to which compaction is skipped.
    "vm.extfrag_threshold" vm_extfrag_threshold: u32;
    /// Proactive compaction (5.9+); 0 is off.
    "vm.compaction_proactiveness" vm_compaction_proactiveness: Option<u32>, "Option::is_none";
    /// Per-CPU lists by a part of each zone (5.14+); 0 is the default rule.
    "vm.percpu_pagelist_high_fraction" vm_percpu_pagelist_high_fraction: Option<u32>, "Option::is_none";
    /// Reclaim for whole blocks of free pages (6.16+).
    "vm.defrag_mode" vm_defrag_mode: Option<u32>, "Option::is_none";
    /// Interval of folding per-CPU counters in seconds.
    "vm.stat_interval" vm_stat_interval: u32;
    /// NUMA counters on or off (4.15+).
    "vm.numa_stat" vm_numa_stat: Option<u32>, "Option::is_none";
    /// NUMA balancing: 0 off, 1 on, 2 tiering (3.8+).
    "kernel.numa_balancing" kernel_numa_balancing: Option<u32>, "Option::is_none";
    /// Largest rate of promotions in MB/s (5.18+).
    "kernel.numa_balancing_promote_rate_limit_MBps"
        kernel_numa_balancing_promote_rate_limit_mbps: Option<u32>, "Option::is_none";
    /// Faults for which shared pages stay after a refused migration (3.13 and 3.14-rc).
    "kernel.numa_balancing_migrate_deferred" kernel_numa_balancing_migrate_deferred: Option<u32>, "Option::is_none";
    /// The soft-lockup watchdog fires after twice this many seconds; 0 is off.
    "kernel.watchdog_thresh" kernel_watchdog_thresh: u32;
}

/// Sysctls of which the one that was written last counts: the kernel sets the other to 0.
pub const EXCLUSIVE: [[&str; 2]; 2] =
    [["vm.dirty_background_ratio", "vm.dirty_background_bytes"], ["vm.dirty_ratio", "vm.dirty_bytes"]];

impl Sysctl {
    /// True if another sysctl is set that replaces this one, which the kernel then shows as 0.
    pub fn is_replaced(&self, name: &str) -> bool {
        let bytes = match name {
            "vm.dirty_background_ratio" => self.vm_dirty_background_bytes,
            "vm.dirty_ratio" => self.vm_dirty_bytes,
            _ => None,
        };
        bytes.is_some_and(|bytes| bytes > 0)
    }
}

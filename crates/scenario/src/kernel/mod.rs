//! The kernel: a release's rules, its sysctls, and the variant of each mechanism, with everything filled in.
//!
//! A bundle (`kernels/NAME.toml`) gives a value to every key; a scenario's `[kernel]` overrides them. Variants are
//! enums with the text form of the scenario; each names the kernels that have it.

mod alloc;
mod balancing;
mod filemap;
mod limits;
mod reclaim;
mod sched;
mod sysctl;
mod sysctl_max;
mod variant;
mod vmalloc;
mod vmstat;
mod writeback;

pub use alloc::{FallbackSteal, NodeLoad, PageAlloc, Pageset, PcpFreeHigh, ThpNodes, ThpZeroWrite, Watermarks};
pub use balancing::{
    ActiveNodesCompare, ActiveSet, BackoffOnMigrateFail, CpuWeight, GroupPlacement, MigrateDegradesLocality,
    NumaBalancing, PeriodAdaptation, PeriodReset, PlacementAt, PlacementMoves, RecomputeOnJoin, ScanSharing, ScanStart,
    SearchPrefers, SharedPages, Statistics, TaskSearch,
};
pub use filemap::{FaultRetry, Filemap, IndexBlocks, MmapHits, ReadaheadWindows};
pub use limits::{Limits, limits};
pub use reclaim::{
    Balanced, CgroupWalk, Congestion, DirectCompaction, DirtyPages, HighOrder, KswapdWakeup, LruScope, NewAnon,
    Pageblocks, Reclaim, ReclaimCounters, References, ScanBalance, ShrinkSlab, SwapReadahead, SyncPass, Workingset,
    WritebackPages,
};
pub use sched::{BusiestGroup, DetachLimit, Fair, Sched};
pub use sysctl::{EXCLUSIVE, Sysctl};
pub use sysctl_max::SysctlMax;
pub use variant::Variant;
pub(crate) use variant::variant;
pub use vmalloc::{AreaCounters, FreeSpace, LazyMax, PoolDecay, PurgeAccounting, TlbFlush, Vmalloc, VmapNodes};
pub use vmstat::{
    Files, MAX_THRESHOLD_S8, MAX_THRESHOLD_S16, MAX_THRESHOLD_U16, NeedsUpdate, NumaCounters, Threshold, Vmstat,
};
pub use writeback::{DmDelay, Writeback};

use mmtwin_event::era::Era;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Bundle that the other keys are taken from unless given: its name, or the path of a TOML file.
    pub release: String,
    /// Version as `uname -r` begins: `6.1.0`.
    pub version: String,
    /// Layout and printed form of trace events.
    pub events: EventFormat,
    /// Timer interrupts per second (`CONFIG_HZ`).
    pub hz: u32,
    /// CPUs the kernel is built for (`CONFIG_NR_CPUS`).
    pub nr_cpus: u32,
    /// Control groups.
    pub cgroup: CgroupVersion,
    /// `CONFIG_COMPACTION`.
    pub compaction: bool,
    /// Pressure stall information (`CONFIG_PSI`; 4.20 and newer).
    pub psi: bool,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub thp: Thp,
    /// `/sys/kernel/mm/transparent_hugepage/defrag`.
    pub thp_defrag: ThpDefrag,
    /// Sysctls. One that the bundle does not list does not exist in this kernel.
    pub sysctl: Sysctl,
    /// The largest values that this kernel takes for sysctls, where kernels differ.
    pub sysctl_max: SysctlMax,
    /// The page allocator.
    pub page_alloc: PageAlloc,
    /// Per-CPU counters.
    pub vmstat: Vmstat,
    /// vmalloc.
    pub vmalloc: Vmalloc,
    /// Automatic NUMA balancing.
    pub numa_balancing: NumaBalancing,
    /// Page reclaim.
    pub reclaim: Reclaim,
    /// The page cache.
    pub filemap: Filemap,
    /// Writeback.
    pub writeback: Writeback,
    /// The CPU scheduler.
    pub sched: Sched,
}

variant! {
    /// Group of releases with the same trace events.
    pub enum EventFormat {
        /// 2.6.36 and 2.6.37 with the vmscan series of 2010.
        V2_6_36 = "2.6.36",
        /// 3.3 and 3.4.
        V3_3 = "3.3",
        /// 3.5 to about 5.15, and the NUMA balancing events of early 2014.
        V3_5 = "3.5",
        /// 6.1.
        V6_1 = "6.1",
        /// 6.12.
        V6_12 = "6.12",
        /// 6.18.
        V6_18 = "6.18",
    }
}

variant! {
    /// Version of memory control groups.
    pub enum CgroupVersion {
        /// Version 1.
        V1 = "v1",
        /// Version 2.
        V2 = "v2",
    }
}

variant! {
    /// Anonymous memory with transparent huge pages.
    pub enum Thp {
        /// Wherever it can.
        Always = "always",
        /// Where the program has set `MADV_HUGEPAGE`.
        Madvise = "madvise",
        /// Never.
        Never = "never",
    }
}

variant! {
    /// Faults that reclaim and compact memory for a huge page.
    pub enum ThpDefrag {
        /// All faults.
        Always = "always",
        /// None; kswapd and kcompactd are woken.
        Defer = "defer",
        /// Faults in areas with `MADV_HUGEPAGE`; others wake kswapd and kcompactd.
        DeferMadvise = "defer+madvise",
        /// Faults in areas with `MADV_HUGEPAGE`.
        Madvise = "madvise",
        /// None.
        Never = "never",
    }
}

impl EventFormat {
    /// The era of the event crate.
    pub fn era(self) -> Era {
        match self {
            EventFormat::V2_6_36 => Era::V2_6_36,
            EventFormat::V3_3 => Era::V3_3,
            EventFormat::V3_5 => Era::V3_5,
            EventFormat::V6_1 => Era::V6_1,
            EventFormat::V6_12 => Era::V6_12,
            EventFormat::V6_18 => Era::V6_18,
        }
    }
}

//! Automatic NUMA balancing: tunables and variants. Which posting or release has which value is in `kernels/`.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Automatic NUMA balancing. It is on or off by the sysctl `kernel.numa_balancing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumaBalancing {
    /// CPU time of a new task before its memory is scanned.
    pub scan_delay_ms: u32,
    /// Shortest time between scans, for 256 MB of memory.
    pub scan_period_min_ms: u32,
    /// Longest time between scans.
    pub scan_period_max_ms: u32,
    /// Memory scanned at once, in MB.
    pub scan_size_mb: u32,
    /// Age below which a page counts as hot in tiering.
    pub hot_threshold_ms: u32,
    /// Which generation of the code: order of placement and scan period, task search, scanner limits.
    pub rules: Rules,
    /// What keeps shared pages from bouncing between nodes.
    pub shared_pages: SharedPages,
    /// How the nodes that a group actively uses are found.
    pub active_set: ActiveSet,
    /// The comparison of two active nodes.
    pub active_set_test: ActiveSetTest,
    /// How CPU faults are weighted by CPU time.
    pub cpu_weight: CpuWeight,
    /// How fault statistics are aged.
    pub statistics: Statistics,
    /// Whose active set is computed anew when a task joins a group.
    pub refresh_at_join: RefreshAtJoin,
    /// When a new thread's first scan is due.
    pub scan_start: ScanStart,
    /// Who scans an address space.
    pub scan_sharing: ScanSharing,
    /// What the load balancer asks before it moves a task.
    pub balancer_hook: BalancerHook,
    /// What a failed migration does to the scan period.
    pub failure_slowdown: FailureSlowdown,
    /// Migrations into a node are limited to 128 MiB per 100 ms (to 4.18).
    pub rate_limit: bool,
    /// Tasks in their first four scans migrate pages that nobody else used (4.19 and newer).
    pub early_life: bool,
    /// Faults on local pages record who faulted (before 5.15).
    pub local_exchange: bool,
    /// Memory areas are skipped that a task does not use (6.8 and newer).
    pub vma_filter: bool,
    /// Pages remember the node, not the CPU, of the last fault: the 2014 series' fourth posting, literally.
    pub cpupid_node: bool,
}

variant! {
    /// Generation of the code.
    pub enum Rules {
        /// 3.13 and 3.14-rc.
        V3_13 = "3.13",
        /// The 2014 series as posted.
        V2014 = "2014",
        /// 3.15 to about 4.13, as merged.
        V3_18 = "3.18",
        /// 4.14 to 4.17.
        V4_14 = "4.14",
        /// 4.19.
        V4_19 = "4.19",
        /// 6.1.
        V6_1 = "6.1",
        /// 6.8 and newer.
        V6_12 = "6.12",
    }
}

variant! {
    /// The brake on shared pages.
    pub enum SharedPages {
        /// After a refused migration the next faults are refused too: 16, or the sysctl's value.
        Deferred = "deferred",
        /// No brake.
        None = "none",
        /// Pages move among the nodes a group actively uses (2014).
        ActiveSet = "active-set",
        /// Pages move where the group has three quarters of the source's faults or CPU use (4.14 and newer).
        ThreeQuarters = "three-quarters",
    }
}

variant! {
    /// The nodes a group actively uses.
    pub enum ActiveSet {
        /// There is no such set.
        None = "none",
        /// Joined above 40 %, left below 20 % of the most used node: first and second posting.
        FortyTwenty = "40-20",
        /// Joined above 6/16, left below 3/16: third posting to 4.13.
        SixThreeSixteenths = "6/16-3/16",
        /// A count of nodes above a third of the most used one, without hysteresis (4.14 and newer).
        Count = "count",
    }
}

variant! {
    /// Three quarters of the source's faults, computed as posted or as reviewed.
    pub enum ActiveSetTest {
        /// `dst < src * 3 / 4`.
        Multiply = "multiply",
        /// `dst < src - (src >> 2)`.
        Shift = "shift",
    }
}

variant! {
    /// Weight of CPU faults.
    pub enum CpuWeight {
        /// Not weighted.
        None = "none",
        /// First posting: 1024, divides by zero when no time has passed.
        Unguarded1024 = "1024-unguarded",
        /// Second posting: 1024, guarded.
        Guarded1024 = "1024-guarded",
        /// Third posting: 16384 by the scheduler's runnable average.
        Average16384 = "16384-runnable-avg",
        /// Fourth posting: 16384 by long-term statistics.
        Long16384 = "16384-long",
        /// As merged: 65536.
        Modern65536 = "65536",
    }
}

variant! {
    /// Ageing of fault statistics.
    pub enum Statistics {
        /// Halved in place, visible to others in between.
        InPlace = "in-place",
        /// Computed in local variables, no value in between.
        Local = "local",
    }
}

variant! {
    /// Active sets computed anew when a task joins a group.
    pub enum RefreshAtJoin {
        /// None.
        None = "none",
        /// That of the group it leaves, without its faults: first to third posting.
        Left = "left",
        /// That of the group it joins: fourth posting.
        Joined = "joined",
        /// Also that of the group it leaves.
        Both = "both",
    }
}

variant! {
    /// First scan of a new thread.
    pub enum ScanStart {
        /// All threads of an address space are due at the same time.
        Zero = "zero",
        /// The patch of 2018 with its mixed units: about 8 ms and two ticks, whatever the number of threads.
        Staggered = "staggered",
        /// What the patch meant: min(scan_period_max, period x users of the address space) in milliseconds.
        StaggeredIntended = "staggered-intended",
    }
}

variant! {
    /// Who scans an address space.
    pub enum ScanSharing {
        /// The thread that is first, every other waits for its period: all kernels.
        PerMm = "per-mm",
        /// Every thread on its own.
        Independent = "independent",
        /// One scanner per address space.
        SharedScanner = "shared-scanner",
    }
}

variant! {
    /// Hook of the load balancer.
    pub enum BalancerHook {
        /// To 4.13: one test whether a move improves locality, one whether it degrades it.
        Pair = "pair",
        /// Newer: one comparison of fault weights.
        Weights = "weights",
    }
}

variant! {
    /// Scan period after a failed migration.
    pub enum FailureSlowdown {
        /// Unchanged.
        None = "none",
        /// Doubled at every later placement too, because the count of failures stays.
        Literal = "literal",
        /// Doubled once, the count is cleared.
        Cleared = "cleared",
    }
}

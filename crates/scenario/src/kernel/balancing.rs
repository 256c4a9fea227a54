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
    /// Rule that keeps shared pages from bouncing between nodes.
    pub shared_pages: SharedPages,
    /// How the nodes that a group actively uses are found.
    pub active_set: ActiveSet,
    /// The comparison of two active nodes.
    pub active_nodes_compare: ActiveNodesCompare,
    /// How CPU faults are weighted by CPU time.
    pub cpu_weight: CpuWeight,
    /// How fault statistics are aged.
    pub statistics: Statistics,
    /// Whose active set is recomputed when a task joins a group.
    pub recompute_on_join: RecomputeOnJoin,
    /// When a new thread's first scan is due.
    pub scan_start: ScanStart,
    /// Tasks that scan an address space.
    pub scan_sharing: ScanSharing,
    /// Check of the load balancer before it moves a task.
    pub migrate_degrades_locality: MigrateDegradesLocality,
    /// Effect of a failed migration on the scan period.
    pub backoff_on_migrate_fail: BackoffOnMigrateFail,
    /// Migrations into a node are limited to 128 MiB per 100 ms (to 4.18).
    pub rate_limit: bool,
    /// Tasks in their first four scans migrate pages that no other task used (4.19 and newer).
    pub first_scans: bool,
    /// Faults on local pages update the cpupid (before 5.15).
    pub cpupid_xchg_on_local: bool,
    /// Anonymous pages that a CPU's batch or the swap cache holds are marked too (`change_pte_range`; 6.12).
    pub marks_referenced: bool,
    /// Memory areas are skipped that a task does not use (6.8 and newer).
    pub vma_filter: bool,
    /// Pages remember the node, not the CPU, of the last fault: the 2014 series' fourth posting, literally.
    pub cpupid_node: bool,
    /// A node stamp that is ahead of the task's run time is waited for; before, the difference wraps and a scan is due
    /// (`task_tick_numa`; 4.14 and newer here).
    pub scan_stamp_ahead: bool,
    /// The time that a scan took delays the next one 32 times as long (`task_numa_work`; "sched/numa: Cap PTE scanning
    /// overhead to 3% of run time", 4.5).
    pub scan_overhead_cap: bool,
    /// A scan ends after eight times its size of address space without pages, too (`task_numa_work`; "sched/numa: Limit the
    /// amount of virtual memory scanned in task_numa_work()", 4.3).
    pub scan_virtual_limit: bool,
    /// How the scan period follows from local, private and shared faults (`update_task_scan_period`).
    pub period_adaptation: PeriodAdaptation,
    /// A group's threads and shared faults lengthen its scan periods (`task_scan_start`, `task_scan_max`; 4.14).
    pub period_by_group: bool,
    /// Event that resets the scan period to that of a new task.
    pub period_reset: PeriodReset,
    /// A placement adapts the scan period before it chooses a node (`task_numa_placement`; before 4.19).
    pub period_before_placement: bool,
    /// How the preferred node of a task in a group is chosen (`task_numa_placement`, `preferred_group_nid`).
    pub group_placement: GroupPlacement,
    /// A node is preferred if the task itself has faults, not if its group has (`task_numa_placement`; before 4.19).
    pub own_faults_decide: bool,
    /// When a placement itself moves the task (`task_numa_placement`).
    pub placement_moves: PlacementMoves,
    /// Faults are counted by the node of the CPU too (`numa_faults_cpu`; the 2014 series and newer).
    pub cpu_faults: bool,
    /// Which faults place a task again (`task_numa_fault`).
    pub placement_at: PlacementAt,
    /// A task is moved to its preferred node without an earlier attempt that failed (`task_numa_fault`; the 2014 series and
    /// newer).
    pub first_retry: bool,
    /// Shared faults between nodes of a group's active set count as local (`task_numa_fault`; 3.16).
    pub active_set_is_local: bool,
    /// Pages may follow a task to a node without memory (`mpol_misplaced`; before 6.9).
    pub memoryless_target: bool,
    /// A page that was moved stays writable (`pte_savedwrite`; before 6.3).
    pub saved_write: bool,
    /// Huge pages are moved by a function of their own, without the event and the counters of others
    /// (`migrate_misplaced_transhuge_page`; before 5.14).
    pub huge_migration_apart: bool,
    /// A failed move is tried again after a sixteenth of the scan period, not only after a second
    /// (`numa_migrate_preferred`; 3.16).
    pub retry_by_period: bool,
    /// A search that finds no CPU writes `sched_stick_numa` (`task_numa_migrate`; 5.7).
    pub stick_event: bool,
    /// Whether a search for a CPU changes the preferred node of a task in a group (`task_numa_migrate`).
    pub search_prefers: SearchPrefers,
    /// Search of nodes and CPUs (`task_numa_find_cpu`).
    pub task_search: TaskSearch,
    /// Nodes at the very limit count as neighbours (`score_nearby_nodes`; before 4.19).
    pub distance_limit_included: bool,
    /// Shared memory without a policy of its own is left alone (`vma_policy_mof`; from 3.18 to before 6.12).
    pub shmem_policy: bool,
}

variant! {
    /// Adaptation of the scan period.
    pub enum PeriodAdaptation {
        /// By local faults: 3 of 10 make it longer (3.13 to 3.16).
        LocalThree = "local-3",
        /// By local faults: 7 of 10 make it longer (after 3.16, to 4.13).
        LocalSeven = "local-7",
        /// By private or local faults: 7 of 10 make it longer (4.14 and newer).
        PrivateOrLocal = "private-or-local",
    }
}

variant! {
    /// Resetting the scan period.
    pub enum PeriodReset {
        /// A search for a CPU that found one (`task_numa_migrate`): before 4.19.
        Move = "move",
        /// Coming to another node (`update_scan_period`): 4.19 and newer.
        NodeChange = "node-change",
    }
}

variant! {
    /// Preferred node of a task in a group.
    pub enum GroupPlacement {
        /// That with the largest sum of both weights, if task and group differ: 3.13 to 3.16.
        TaskAndGroup = "task-and-group",
        /// By the group's faults and the topology: after 3.16.
        Topology = "topology",
    }
}

variant! {
    /// Moves after a placement.
    pub enum PlacementMoves {
        /// If the preferred node is a new one: 3.13 to 3.16.
        NewNode = "new-node",
        /// If the task is not on its preferred node: after 3.16, to 4.18.
        OtherNode = "other-node",
        /// The fault that placed the task does: 4.19 and newer.
        Never = "never",
    }
}

variant! {
    /// Faults that place a task.
    pub enum PlacementAt {
        /// Each: before 4.19.
        EveryFault = "every-fault",
        /// Those that may move it: 4.19 and newer.
        Retry = "retry",
    }
}

variant! {
    /// Preference after a search.
    pub enum SearchPrefers {
        /// Stays as it is: here from 3.13 to 3.15, whose moves prefer the last node that was searched.
        Placed = "placed",
        /// The last node that was searched, if the group is active there: after 3.15, to 4.18.
        LastActive = "last-active",
        /// The node of the CPU that was found, or the task's own: 4.19 and newer.
        Found = "found",
    }
}

variant! {
    /// Search for a CPU.
    pub enum TaskSearch {
        /// By load: before 4.14.
        Load = "load",
        /// By load, on nodes that have capacity (`numa_has_capacity`): 4.14 to 4.18.
        Capacity = "capacity",
        /// By what a node can take; the first idle CPU will do: 4.19 and newer.
        NodeType = "node-type",
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
        /// The same shares of memory faults instead of CPU faults: asked for in the review of 2014, never posted.
        SixThreeSixteenthsMemory = "6/16-3/16-memory",
        /// A count of nodes above a third of the most used one, without hysteresis (4.14 and newer).
        Count = "count",
    }
}

variant! {
    /// Three quarters of the source's faults, computed as posted or as reviewed.
    pub enum ActiveNodesCompare {
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
    /// Active sets recomputed when a task joins a group.
    pub enum RecomputeOnJoin {
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
        /// The patch of 2018 with its mixed units: about 8 ms and two ticks, for any number of threads.
        Staggered = "staggered",
        /// Intention of the patch: min(scan_period_max, period x users of the address space) in milliseconds.
        StaggeredIntended = "staggered-intended",
    }
}

variant! {
    /// Tasks that scan an address space.
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
    pub enum MigrateDegradesLocality {
        /// To 4.13: one test whether a move improves locality, one whether it degrades it.
        Pair = "pair",
        /// Newer: one comparison of fault weights.
        Weights = "weights",
    }
}

variant! {
    /// Scan period after a failed migration.
    pub enum BackoffOnMigrateFail {
        /// Unchanged.
        None = "none",
        /// Doubled at every later placement too, because the count of failures stays.
        Literal = "literal",
        /// Doubled once, the count is cleared (6.12.117; which release of the stable series began is not known).
        Cleared = "cleared",
    }
}

//! The CPU scheduler, as far as memory placement and reclaim depend on it.

use super::variant::variant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPU scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sched {
    /// `imbalance_pct` of the lowest NUMA domain: 125, newer 117.
    pub numa_imbalance_pct: u32,
    /// A task that ran this recently on its CPU is cache-hot (`sched_migration_cost_ns`).
    pub migration_cost_ns: u64,
    /// Failed balancings before a hot task is moved (`cache_nice_tries` of NUMA domains).
    pub cache_nice_tries: u32,
    /// How kernel threads share a CPU with others.
    pub fair: Fair,
    /// How the group of CPUs to pull tasks from is found (`find_busiest_group`).
    pub busiest_group: BusiestGroup,
    /// Factor on the interval of a busy CPU (`busy_factor`): 32, from 5.10 on 16.
    pub busy_factor: u32,
    /// Which tasks are too large to be pulled (`detach_tasks`).
    pub detach_limit: DetachLimit,
    /// An interrupt that wakes a thread sets the CPU's timer once, when that has been switched to
    /// (`CONFIG_HRTIMER_REARM_DEFERRED`): 7.1 and newer. It acts where CPUs share the time of one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hrtimer_rearm_deferred: bool,
}

variant! {
    /// Sharing of a CPU.
    pub enum Fair {
        /// Threads that wake take the CPU, and all have turns. No kernel's rule: so the waits of 2010 and 2012 are modelled.
        Turns = "turns",
        /// CFS: before 6.6.
        Cfs = "cfs",
        /// EEVDF: 6.6 and newer.
        Eevdf = "eevdf",
        /// The same, but a slice ends at a timer of its own instead of at a tick (`HRTICK`): 7.3.
        EevdfHrtick = "eevdf-hrtick",
    }
}

variant! {
    /// Search for the busiest group.
    pub enum BusiestGroup {
        /// By load, a group without capacity first: to 4.13.
        LoadEarly = "load-early",
        /// By load: 4.14 to 5.4.
        Load = "load",
        /// By the type of the group (`group_has_spare`, ...): 5.5 and newer.
        Type = "type",
        /// The same, and of groups that are fully busy the last one (6.12).
        TypeLast = "type-last",
    }
}

variant! {
    /// Tasks that stay.
    pub enum DetachLimit {
        /// Tasks with more load than twice the imbalance: before 5.10.
        Half = "half",
        /// Tasks with more load than the imbalance, which is doubled with every failed balancing: 5.10 and newer.
        Shift = "shift",
    }
}

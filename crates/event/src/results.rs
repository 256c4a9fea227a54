//! Results of a scenario's workload: `results.json`. Every arm writes the same.
//!
//! Times are nanoseconds of the trace clock, sums over threads where documented so. Values that an arm cannot measure
//! are `None`.

use crate::manifest::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// How the run ended.
    pub ending: Ending,
    /// Phases of all processes, by process and phase; those that never began are omitted.
    pub phases: Vec<PhaseResult>,
    /// Parts of the scenario that were not run, and other notes, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Default for Results {
    fn default() -> Results {
        Results { schema_version: SCHEMA_VERSION, ending: Ending::Completed, phases: Vec::new(), notes: Vec::new() }
    }
}

impl Results {
    /// Seconds from the beginning of the first phase to a time of the trace clock.
    pub fn seconds_to(&self, at: u64) -> f64 {
        let start = self.phases.iter().map(|phase| phase.start).min().unwrap_or(0);
        at.saturating_sub(start) as f64 / 1e9
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Ending {
    /// Every process did all its phases.
    Completed,
    /// At `run.duration`, with processes still at work.
    TimeUp,
    /// Memory ran out. A process was killed for it: the first one of several. All others continued.
    OutOfMemory {
        /// When, in nanoseconds of the trace clock.
        at: u64,
        /// Process that was killed; the allocating thread if no process could be.
        pid: i32,
        /// Its name.
        comm: String,
        /// The kernel's message.
        message: String,
    },
    /// The twin ended the run, because it made no progress or needed too much memory: an error, and not one of the
    /// modelled kernel.
    Stopped {
        /// When.
        at: u64,
        /// Thread whose turn it was; 0: none's.
        pid: i32,
        /// Name of its process.
        comm: String,
        /// Work that continued.
        message: String,
    },
}

/// Results of a process in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Name of the process.
    pub process: String,
    /// Name of the phase; its number from 0 where the scenario gives none, `populate` for the part before the first.
    pub phase: String,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Its accesses, in the scenario's order.
    #[serde(default)]
    pub accesses: Vec<AccessResult>,
    /// Its actions, in the scenario's order.
    #[serde(default)]
    pub actions: Vec<ActionResult>,
    /// Where the pages of the process's regions were at its end.
    #[serde(default)]
    pub placement: Vec<Placement>,
    /// Time that the kernel spent on balancing the process's memory; `None` if it is not measured separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancing: Option<BalancingTime>,
    /// Active nodes at its end of the NUMA group that most of its threads are in; `None` without a group, or if not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_nodes: Option<u64>,
}

/// CPU time of NUMA balancing, in nanoseconds, on the threads it was done for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalancingTime {
    /// Marking pages, with the flushes of TLBs.
    pub scan: u64,
    /// Faults on marked pages, without migrations.
    pub fault: u64,
    /// Migrations of pages, with the copies.
    pub migrate: u64,
}

impl BalancingTime {
    /// Adds times.
    pub fn add(&mut self, other: &BalancingTime) {
        self.scan += other.scan;
        self.fault += other.fault;
        self.migrate += other.migrate;
    }
}

/// Sums of all threads of an access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessResult {
    /// Name of the region.
    pub region: String,
    /// Name of the pattern.
    pub pattern: String,
    /// Participating threads.
    pub threads: u32,
    /// Accesses.
    pub touches: u64,
    /// Page faults of these accesses, those that found the page in memory included.
    pub faults: u64,
    /// CPU time of all threads, think time included.
    pub cpu_time: u64,
    /// Latency of an access without think time, from the access to its end; of accesses that arrive (open loop), from the
    /// arrival.
    #[serde(default)]
    pub latency: Option<Latency>,
}

/// Latencies of accesses or operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean in nanoseconds.
    pub mean: f64,
    /// (least, count): slot i holds from its least nanoseconds to below those of the next, powers of two of ns or us.
    pub slots: Vec<(u64, u64)>,
    /// Nanoseconds that half of them do not exceed, within 1 %; `None` where only the slots are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<u64>,
    /// Nanoseconds that 99 % of them do not exceed, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<u64>,
}

/// Sums of all threads of an action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// Kind of the action (`page-loop`).
    pub kind: String,
    /// Key that distinguishes it from others of its kind (`order 0, GFP_ATOMIC`).
    #[serde(default)]
    pub detail: String,
    /// Participating threads.
    pub threads: u32,
    /// Operations of all threads: allocations, readings, rounds of a test.
    pub operations: u64,
    /// Operations that failed.
    #[serde(default)]
    pub failures: u64,
    /// Time of all threads in it, without pauses of the scenario.
    pub time: u64,
    /// Nanoseconds per operation, the mean of the threads' means; `None` without operations.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Latency of the kernel function that the action is about: for `vmalloc-test` and `module-cycle`
    /// `purge_vmap_node`, or `__purge_vmap_area_lazy` of kernels without it.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// Attempts one by one, of `high-order-alloc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// More figures by their names (`cache_lines`, `purge_calls`).
    #[serde(default)]
    pub more: BTreeMap<String, f64>,
}

/// An attempt to allocate a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began.
    pub at: u64,
    /// Nanoseconds until it was over.
    pub latency: u64,
    /// The block was allocated.
    pub success: bool,
}

/// Where the pages of a region are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Name of the region.
    pub region: String,
    /// Pages by node, without pages that were never accessed.
    pub nodes: Vec<u64>,
}

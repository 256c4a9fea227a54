//! Metadata of a recording: `manifest.json`, `state.json`, `end.json`, `run.json` and the lines of `tasks.jsonl`.
//!
//! A field unknown to a reader is ignored, one that a writer omitted is `None` or empty, so files of neighbouring
//! versions read each other; [`SCHEMA_VERSION`] counts the changes that break this. Times are nanoseconds of the trace
//! clock. All values that differ between two runs of the same deterministic scenario (wall time, process ids, the
//! machine it ran on) is in [`Run`] and [`Cost`] only.

use crate::Times;
use crate::container::Containers;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of all files described here.
pub const SCHEMA_VERSION: u32 = 1;

/// `manifest.json`: written before the first event, never changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// `twin`, `lab` or `host`.
    pub arm: String,
    /// Program and version that wrote the recording.
    pub tool: String,
    /// Trace clock of events and counters, as tracefs names it.
    pub clock: String,
    /// Start of the recording.
    pub start: u64,
    /// Event tracing; `None`: counters only.
    #[serde(default)]
    pub tracing: Option<Tracing>,
    /// Why there is no event tracing.
    #[serde(default)]
    pub no_tracing: Option<String>,
    /// Counter sampling.
    pub counters: Sampling,
    /// Command that was recorded; `None`: until interrupted.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// The recorded machine and kernel.
    pub evidence: Evidence,
    /// Resolved scenario that was run.
    #[serde(default)]
    pub scenario: Option<serde_json::Value>,
    /// Hash of the resolved scenario.
    #[serde(default)]
    pub scenario_hash: Option<String>,
}

/// `state.json`: memory of the machine when the first phase of a scenario began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// When it was read.
    pub at: u64,
    /// By process and thread of the scenario: the CPU on which it was last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<Vec<u32>>,
    /// By process and thread of the scenario: the CPU on which it began its first phase, which the kernel chose when it
    /// woke the thread; none of a process: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Vec<u32>>,
    /// Texts of the kernel's files, by path. One that is not there is omitted.
    pub files: BTreeMap<String, String>,
}

/// How events were traced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tracing {
    /// Size of a ring-buffer sub-buffer in bytes: the pages of `cpu/N.pages`.
    pub sub_buffer: u64,
    /// Ring buffer per CPU in bytes.
    pub buffer: u64,
    /// Pages are in big-endian order.
    pub big_endian: bool,
    /// Size of the kernel's `long` in bytes.
    pub long_size: u8,
    /// CPUs that have a file of pages, ascending.
    pub cpus: Vec<u32>,
    /// Enabled events as `system:event`, sorted.
    pub events: Vec<String>,
    /// Those of them with which the kernel records its stack (`record -g`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<String>,
}

/// How counters were sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Nanoseconds between samples; `None`: only at start and end.
    pub interval: Option<u64>,
    /// Cgroups the user chose, as paths below their mount.
    #[serde(default)]
    pub cgroups: Vec<String>,
    /// Names of the containers that these are, as far as their runtimes say them.
    #[serde(default, skip_serializing_if = "Containers::is_empty")]
    pub containers: Containers,
}

/// The recorded machine and kernel. Text is as the kernel shows it, without the last newline; a file that does not
/// exist or may not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// System name, release, version and machine, as `uname` has them.
    pub uname: Uname,
    /// `/proc/cmdline`.
    #[serde(default)]
    pub cmdline: Option<String>,
    /// Kernel configuration.
    #[serde(default)]
    pub config: Option<Config>,
    /// Memory of the machine in kB, as in `/proc/meminfo`.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Nodes, ascending.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// Online CPUs, ascending.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// CPU model.
    #[serde(default)]
    pub cpu_model: Option<String>,
    /// Hypervisor or machine name, where this is a guest.
    #[serde(default)]
    pub vm: Option<String>,
    /// Files that decide how memory is managed, by path: `vm.*` and `kernel.numa_balancing*` sysctls, transparent
    /// huge pages, multi-generational LRU, DAMON, memory tiers, `sched/numa_balancing`, swaps.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// Values of `uname`, without the host's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uname {
    /// `Linux`.
    pub sysname: String,
    /// `6.18.2`.
    pub release: String,
    /// Build number and date.
    pub version: String,
    /// `x86_64`.
    pub machine: String,
}

/// A kernel's configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// 64-bit FNV-1a of the whole text, in hexadecimal: equal for equal configurations.
    pub fnv1a: String,
    /// Options that decide how memory is managed, with their values.
    pub options: BTreeMap<String, String>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Number.
    pub id: u32,
    /// CPUs, ascending; empty for memory without CPUs.
    pub cpus: Vec<u32>,
    /// Memory in kB.
    pub memory: Option<u64>,
    /// Distances to the nodes of the machine in ascending order (SLIT).
    pub distances: Vec<u32>,
    /// Memory tier, if the kernel has tiers.
    #[serde(default)]
    pub tier: Option<String>,
    /// Read and write latency (ns) and bandwidth (MB/s) to the nearest initiators (HMAT), by file name.
    #[serde(default)]
    pub access: BTreeMap<String, u64>,
}

/// `end.json`: written last, by rename. A recording without it was cut off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// End of the recording.
    pub end: u64,
    /// Lost events by CPU, for every CPU that was traced.
    #[serde(default)]
    pub losses: Vec<Losses>,
    /// How the command ended.
    #[serde(default)]
    pub exit: Option<Exit>,
    /// Times of the command and its children.
    #[serde(default)]
    pub times: Option<Times>,
    /// Why the recording ended before what it recorded, in a sentence; `None`: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Cost of the recording.
    #[serde(default)]
    pub cost: Cost,
    /// Bytes of the files of the recording, by their path in it; of a directory of formats, whose path ends in `/`, the
    /// sum. A file that is shorter now was cut. Empty: not recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, u64>,
    /// Names of the containers that were met while recording, as far as their runtimes say them.
    #[serde(default, skip_serializing_if = "Containers::is_empty")]
    pub containers: Containers,
    /// Deviations from the request, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Events of a CPU that are not in the recording: the kernel's counts (`per_cpu/cpuN/stats`) and the recorder's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// CPU.
    pub cpu: u32,
    /// Overwritten before they were read.
    pub overrun: u64,
    /// Lost because an interrupted writer held the page.
    pub commit_overrun: u64,
    /// Not written because the buffer was full.
    pub dropped: u64,
    /// Taken out of the buffer and not written to the recording: the disk was full, or the recording as large as it
    /// may be.
    #[serde(default)]
    pub unwritten: u64,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> u64 {
        let kernel = self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped);
        kernel.saturating_add(self.unwritten)
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Cost of the recording itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the recorder in nanoseconds, from its start.
    pub cpu_time: u64,
    /// The part of it between start and end of the recording.
    pub cpu_time_recording: u64,
    /// Bytes of event pages.
    pub page_bytes: u64,
    /// Bytes of counters.
    pub counter_bytes: u64,
    /// Bytes of formats, symbols and tasks.
    pub other_bytes: u64,
}

/// `run.json`: values that differ between runs and are not part of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Seconds since 1970 (UTC) at the start.
    pub started: u64,
    /// Name of the machine the recorder ran on.
    pub host: String,
    /// Process id of the recorder.
    pub pid: u32,
    /// Program and version.
    pub tool: String,
}

/// A line of `tasks.jsonl`: state of a task at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLine {
    /// When it was looked up.
    pub at: u64,
    /// Thread id.
    pub pid: i32,
    /// Thread group id, 0 if unknown.
    #[serde(default)]
    pub tgid: i32,
    /// Name; bytes that are not UTF-8 are replaced.
    pub comm: String,
    /// Path of the memory cgroup.
    #[serde(default)]
    pub cgroup: Option<String>,
}

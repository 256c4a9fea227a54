//! The workload: processes with their regions of memory and the phases of their work, and the cgroups they run in.

mod access;
mod action;
mod cgroup;
pub(crate) mod instances;
mod policy;

pub use access::{Access, AccessError, Arrival, ArrivalLaw, Pattern, PatternName, Threads, Via};
pub use action::{Action, ActionError, ActionKind, ActionName, Advice, Discard, Gfp, Limit, ReadFile, VmallocTest};
pub use cgroup::{Cgroup, CgroupMemory, CgroupSwap};
pub use instances::Instances;
pub use policy::{Nodes, Policy, PolicyError};

use crate::kernel::variant;
use crate::units::{Bytes, List, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process. Its threads run through the phases together: a phase begins when the one before it has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Name, as events show it (`comm`): 1 to 15 bytes, no blanks; each process has its own.
    pub name: String,
    /// Threads.
    #[serde(default = "one")]
    pub threads: u32,
    /// CPUs it may run on; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<List>,
    /// Thread i stays on the i-th of `cpus`, from the first again when there are more threads.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pin: bool,
    /// Memory policy of the process: `default`, `bind:0-3`, `preferred:1`, `interleave:all`.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// Node on which all its threads start; absent: spread over its CPUs, idle ones first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_node: Option<u32>,
    /// Name of its cgroup; absent: the root cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// When it starts, from the start of the run.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub start: Time,
    /// How many of it run; a resolved scenario has each of them spelled out.
    #[serde(default, skip_serializing_if = "Instances::is_default")]
    pub instances: Instances,
    /// Its memory.
    #[serde(default, rename = "region", skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Region>,
    /// Its work.
    #[serde(default, rename = "phase", skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
}

/// A region of a process's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name, by which accesses refer to it.
    pub name: String,
    /// Size.
    pub size: Bytes,
    /// Its backing.
    #[serde(default = "anon")]
    pub kind: RegionKind,
    /// Which threads use which part.
    #[serde(default = "shared")]
    pub sharing: Sharing,
    /// Name of the file; regions of the same file, also in other processes, are the same pages. Kinds `file` and
    /// `shmem`; absent: a file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Huge pages.
    #[serde(default = "huge_default")]
    pub huge: Huge,
    /// Memory policy of the region (`mbind`); absent: that of the process. Pages of a file are allocated by the policy
    /// of the process that reads them, whatever this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// All its pages are accessed once, in order, by the thread that uses them, before the first phase.
    #[serde(default, skip_serializing_if = "is_false")]
    pub populate: bool,
    /// Memory policy while it is populated; afterwards it has none of its own, so that NUMA balancing may move it.
    /// Absent: its own policy or that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub populate_policy: Option<Policy>,
    /// Mapped executable: reclaim spares such file pages.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exec: bool,
    /// Cannot be reclaimed (`mlock`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub locked: bool,
    /// A file that is deleted when the last process that uses it has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub temporary: bool,
    /// A file without blocks on the disk: a page of it that is not in memory is cleared, not read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sparse: bool,
    /// Files of one size that it is divided into, each with an inode and a dentry in the kernel; absent: it is one file, of
    /// which neither is modelled. Kernels that reclaim by zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
}

/// A phase of a process's work. It ends after `duration`, or without one when every access and action has reached its
/// `count`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name in results; absent: its number, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Memory accesses.
    #[serde(default, rename = "access", skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<Access>,
    /// Other work, one after the other for each thread; a thread with actions and accesses does the actions first.
    #[serde(default, rename = "action", skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

variant! {
    /// Backing of a region.
    pub enum RegionKind {
        /// Nothing: anonymous memory.
        Anon = "anon",
        /// A file on the machine's disk.
        File = "file",
        /// A file in memory (tmpfs).
        Shmem = "shmem",
    }
}

variant! {
    /// Which threads use which part of a region.
    pub enum Sharing {
        /// Every thread uses all of it.
        Shared = "shared",
        /// It is divided evenly: thread i of n uses the i-th of n parts.
        Private = "private",
    }
}

variant! {
    /// Huge pages of a region.
    pub enum Huge {
        /// By `kernel.thp`.
        Default = "default",
        /// The program requests transparent huge pages (`MADV_HUGEPAGE`).
        Madvise = "madvise",
        /// The program refuses them (`MADV_NOHUGEPAGE`).
        Never = "never",
        /// Reserved huge pages (hugetlbfs).
        Hugetlb = "hugetlb",
    }
}

fn one() -> u32 {
    1
}

fn anon() -> RegionKind {
    RegionKind::Anon
}

fn shared() -> Sharing {
    Sharing::Shared
}

fn huge_default() -> Huge {
    Huge::Default
}

fn is_false(value: &bool) -> bool {
    !value
}

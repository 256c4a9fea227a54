//! A requirement of a scenario that this machine does not meet, in words.

use mmtwin_scenario::units::{Bytes, List};
use std::fmt;

/// A requirement of the scenario that this machine does not meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A node.
    #[error("node {node}: this machine has nodes {given}")]
    Node {
        /// Which one.
        node: u32,
        /// Nodes of this machine.
        given: List,
    },
    /// A node more than the scenario has.
    #[error("this machine has nodes {given}, the scenario {wanted}")]
    MoreNodes {
        /// How many the scenario has.
        wanted: usize,
        /// Nodes of this machine.
        given: List,
    },
    /// CPUs of a node.
    #[error("node {node} with CPUs {wanted}: this machine has CPUs {given}")]
    Cpus {
        /// Node.
        node: u32,
        /// What the scenario has.
        wanted: List,
        /// What this machine has.
        given: List,
    },
    /// More CPUs than a program can choose from.
    #[error("CPU {cpu}: the highest supported CPU number is {max}", max = rustix::thread::CpuSet::MAX_CPU - 1)]
    LargeCpu {
        /// Its number.
        cpu: u32,
    },
    /// Memory of a node.
    #[error("node {node} with {wanted} of memory: this machine has {given}")]
    NodeMemory {
        /// Node.
        node: u32,
        /// What the scenario has.
        wanted: Bytes,
        /// What this machine has.
        given: Bytes,
    },
    /// Distance of two nodes.
    #[error("distance {wanted} from node {from} to node {to}: this machine has {given}")]
    Distance {
        /// From this node.
        from: usize,
        /// To this node.
        to: usize,
        /// What the scenario has.
        wanted: u32,
        /// What this machine has.
        given: u32,
    },
    /// Swap.
    #[error("swap of {wanted}: this machine has {given}")]
    Swap {
        /// What the scenario has.
        wanted: Bytes,
        /// What this machine has.
        given: Bytes,
    },
    /// Free memory for the regions.
    #[error("regions of {wanted} in memory: {given} of memory and swap are free")]
    Memory {
        /// All regions in memory together.
        wanted: Bytes,
        /// What is free.
        given: Bytes,
    },
    /// Reserved huge pages.
    #[error("{wanted} huge pages of 2 MiB: {given} are reserved and free (vm.nr_hugepages)")]
    HugePages {
        /// All regions of kind hugetlb together.
        wanted: u64,
        /// Free ones.
        given: u64,
    },
    /// A place for files.
    #[error("files of {wanted} in {directory}: {given}")]
    Disk {
        /// All files together.
        wanted: Bytes,
        /// Where they would be.
        directory: String,
        /// What there is.
        given: String,
    },
    /// Work of a kernel module.
    #[error("action {action} of process {process}: it needs the kernel module mmtwin, which is not loaded")]
    Module {
        /// Process.
        process: String,
        /// Action.
        action: String,
    },
    /// A kernel module to be loaded and unloaded.
    #[error("module {module} of process {process}: not available for this kernel, or already loaded")]
    Cycle {
        /// Process.
        process: String,
        /// Module.
        module: String,
    },
    /// Something that only the twin does.
    #[error("{what} of process {process}: supported by the twin only")]
    TwinOnly {
        /// Process.
        process: String,
        /// What.
        what: String,
    },
    /// A file that an action reads or writes.
    #[error("action {action} of process {process}: {file}: {why}")]
    File {
        /// Process.
        process: String,
        /// Action.
        action: String,
        /// File.
        file: String,
        /// The system's error.
        why: String,
    },
    /// The default policy for a region of a process that has another one.
    #[error(
        "region {region} of process {process} with policy default: a process that has policy {policy} uses it there"
    )]
    DefaultPolicy {
        /// Process.
        process: String,
        /// Region.
        region: String,
        /// Policy of the process.
        policy: String,
    },
    /// A policy that this kernel does not have.
    #[error("policy {policy} of process {process}: it needs Linux 5.15, this is {release}")]
    Policy {
        /// Process.
        process: String,
        /// Policy.
        policy: String,
        /// Release of this kernel.
        release: String,
    },
    /// CPUs of the starting node that the process may not use.
    #[error("start on node {node} of process {process}: none of its CPUs is on that node")]
    StartNode {
        /// Process.
        process: String,
        /// Node.
        node: u32,
    },
    /// Memory that may be locked.
    #[error("{wanted} of locked memory of process {process}: the limit is {given} (ulimit -l)")]
    Locked {
        /// Process.
        process: String,
        /// All its locked regions.
        wanted: Bytes,
        /// The limit.
        given: Bytes,
    },
    /// Locked memory of all processes.
    #[error("{wanted} of locked memory in total: at most {limit}, which leaves a tenth of memory free")]
    AllLocked {
        /// All locked regions.
        wanted: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// More threads than a real machine starts.
    #[error("{wanted} threads: at most {limit}, half of kernel.threads-max")]
    Threads {
        /// Threads of all processes.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// A value that would make a real machine unusable.
    #[error("{name} = {value}: on a real machine {limits}{}", beyond(.why))]
    Floor {
        /// Name of the sysctl.
        name: String,
        /// What is to be written.
        value: u64,
        /// What may be.
        limits: String,
        /// What is beyond the limits.
        why: &'static str,
    },
    /// A cgroup.
    #[error("cgroup {name}: {why}")]
    Cgroup {
        /// Its name.
        name: String,
        /// Why it cannot be.
        why: String,
    },
    /// A sysctl of a guest.
    #[error("{name} = {wanted}: it is {given}")]
    Sysctl {
        /// Its name.
        name: String,
        /// What the scenario has.
        wanted: String,
        /// What this machine has.
        given: String,
    },
    /// Event tracing.
    #[error("trace events: {what} (fix: {fix})")]
    Tracing {
        /// What is the matter.
        what: String,
        /// The suggested fix.
        fix: String,
    },
}

fn beyond(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!("; beyond: {why}") }
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(pub Vec<Refusal>);

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this machine does not meet the requirements of the scenario:")?;
        self.0.iter().try_for_each(|refusal| write!(f, "\n    {refusal}"))
    }
}

//! The scenario file: what a machine, a kernel and a workload are, and how a scenario says it.
//!
//! A [`Scenario`] has everything filled in; the three arms read it and the manifest of a recording carries it.

pub mod kernel;
pub mod machine;
pub mod run;
pub mod units;
pub mod workload;

pub use kernel::Kernel;
pub use machine::Machine;
pub use run::Run;
pub use workload::{Cgroup, Process};

/// A resolved scenario: nothing is left to default.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it shows, in a line; may be empty.
    pub title: String,
    /// The machine.
    pub machine: Machine,
    /// The kernel.
    pub kernel: Kernel,
    /// Memory cgroups besides the root; a parent precedes its children.
    pub cgroups: Vec<Cgroup>,
    /// The workload.
    pub processes: Vec<Process>,
    /// How it is run.
    pub run: Run,
}

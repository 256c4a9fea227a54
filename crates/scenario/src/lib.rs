//! The scenario file: types of a machine, a kernel and a workload, and their text form.
//!
//! A [`Scenario`] has everything filled in; the three arms read it and the manifest of a recording carries it.

mod check;
pub mod kernel;
mod load;
pub mod machine;
mod output;
pub mod program;
pub mod published;
mod renamed;
pub mod run;
mod schema;
mod tree;
pub mod units;
mod validate;
pub mod workload;
mod written;

pub use kernel::Kernel;
pub use load::{bundle_names, bundle_text, from_json, load, parse, preset_names, preset_text};
pub use machine::Machine;
pub use renamed::migrate;
pub use run::Run;
pub use schema::schema;
pub use tree::{Fault, Faults};
pub use workload::{Cgroup, Process};
pub use written::Written;

/// A resolved scenario: nothing is left to default.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its subject, in a line; may be empty.
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
    /// Keys that it gives itself.
    pub written: Written,
}

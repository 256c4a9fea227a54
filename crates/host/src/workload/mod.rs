//! Running a scenario's workload for real, and recording while it runs: the host arm, and the lab arm inside a guest.
//!
//! The recorder starts a worker per process ([`worker`]); they are programs of their own with the processes' names,
//! CPUs, memory policies and regions, and access exactly the pages that `mmtwin_scenario::program` says. The recorder records
//! as for any command: events named by `run.events`, counters every `run.sample` and at every boundary between two
//! phases, at which all threads of that process stand still. With each sample goes the placement of all regions, as
//! counter source `numa_maps` (key `PROCESS/REGION`, counters `N0`, `N1`, ..., pages). `results.json` has what was
//! achieved.
//!
//! What this machine cannot give is refused by name before anything starts ([`refuse`]); what a run changes of the
//! machine is put back, and files behind regions have no name, so nothing is left behind.
//!
//! `page-loop`, `page-hog` and `vmalloc-test` are work of the kernel module in `crates/lab/module`; without it they are
//! refused. While the vmalloc test runs or modules are loaded and unloaded, purges of areas are timed with the machine's
//! function-graph tracer.

mod aside;
mod backing;
mod floor;
mod message;
mod oom;
mod pace;
mod placement;
mod policy;
pub mod refusal;
pub mod refuse;
mod run;
mod settings;
mod state;
mod team;
mod worker;

pub use pace::Pace;
pub use run::{Options, Outcome, run};
pub(crate) use worker::{PURGE_BUFFER, PURGES};
pub use worker::{WORKER, worker};

/// What the machine is to the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arm {
    /// A machine that has at least what the scenario needs.
    #[default]
    Host,
    /// A guest made for the scenario, which it must fit.
    Lab,
}

impl Arm {
    /// Its name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Host => "host",
            Arm::Lab => "lab",
        }
    }
}

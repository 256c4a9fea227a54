//! Real Linux kernels in QEMU: the machine of a scenario as QEMU's options, the guest's image, boot, agent, fetch.
//!
//! The lab arm is the host arm inside a guest: [`run`] boots a kernel with the scenario's nodes, starts `mmtwin-agent`
//! in it with the scenario, and fetches the recording. A guest is valid for decisions and counters, not for
//! performance: the emulator has the same latency for every node, so distances change policy only.
//!
//! Files for the guest are in a [`Folder`], which `tools/lab.sh` fills; [`doctor`] reports missing ones.

mod accelerator;
mod console;
mod cpio;
mod doctor;
mod error;
mod fetch;
mod folder;
mod image;
mod kernel;
mod modules;
mod options;
mod origin;
mod pinned;
mod plan;
mod process;
mod refuse;
mod run;
mod settings;
mod store;
mod turns;

pub use accelerator::Accelerator;
pub use console::Stage;
pub use doctor::{Check, doctor};
pub use error::{Error, Refusal};
pub use folder::Folder;
pub use kernel::Kernel;
pub use options::Mode;
pub use origin::Origin;
pub use plan::{Delay, NodePlan, PairPlan, Plan, Region, Smp, Use};
pub use process::Qemu;
pub use refuse::is_settable;
pub use run::{Extra, Job, Lab, Outcome, Progress, guests_at_once, run, run_all};

//! This machine: record it, say what it allows, and measure what its memory and cache lines cost.
//!
//! [`record::record`] leaves a recording of kernel events and counters, [`flight::fly`] keeps the last of them;
//! [`doctor::examine`] tells beforehand what they can take and the suggested fix for what they cannot. All use the same
//! parts: [`tracefs`] finds event tracing and [`instance`] owns a part of it, [`events`] chooses, [`sample`] and
//! [`cgroup`] read counters, [`containers`] has the names of containers, [`evidence`] says what machine and kernel this is. [`workload`] runs a scenario's workload and records it, and
//! [`restore`] puts back what that changes of the machine. [`mod@bench`] runs designs of
//! the kernel with real threads and atomics, and [`calibrate`] measures this machine for the twin.

pub mod bench;
pub mod calibrate;
pub mod cgroup;
pub mod clock;
pub mod containers;
pub mod doctor;
pub mod error;
pub mod events;
pub mod evidence;
pub mod flight;
pub mod instance;
pub mod record;
pub mod restore;
pub mod sample;
mod shuffle;
pub mod top;
pub mod tracefs;
pub mod workload;

pub use error::Error;

/// Program and version, as recordings name them.
pub const TOOL: &str = concat!("mmtwin ", env!("CARGO_PKG_VERSION"));

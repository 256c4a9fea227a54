//! vmalloc: areas of kernel address space, lazy freeing, and the purge that frees them.
//!
//! [`space`] is the address space with its rules and no time. [`mod@stress`] runs the three stress tests of `test_vmalloc`
//! on a machine in one of two forms, which share the programs ([`stress::program`]), the rules of a pass ([`pass`])
//! and the parameters ([`params`]): single events for short runs and traces, rates for the minutes of the published
//! ones. [`feedback`] holds the mean-value forms that both are compared with.

mod events;
pub mod feedback;
mod free_tree;
pub mod histogram;
mod lanes;
pub mod outcome;
pub mod params;
pub mod pass;
mod rates;
pub mod space;
pub mod stress;

pub use outcome::Outcome;
pub use params::Params;

use crate::probe::Probe;

/// Why a run of the stress tests ended early.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StressError {
    /// A parameter is impossible.
    #[error(transparent)]
    Param(#[from] params::BadParam),
    /// The address space is full.
    #[error(transparent)]
    Space(#[from] space::SpaceError),
}

/// Runs the stress tests with every area and every operation as an event of its own: about 20 million areas in some
/// seconds. Trace events are passed to the probe; more threads than CPUs are refused.
pub fn stress(params: &Params, probe: &mut Probe, seed: u64) -> Result<Outcome, StressError> {
    params.check()?;
    params.check_one_thread_per_cpu()?;
    Ok(events::run(params, probe, seed)?)
}

/// Runs the stress tests over rates: minutes of virtual time on hundreds of CPUs in about a second. Writes no trace
/// events: it follows no single area.
pub fn stress_over_rates(params: &Params, seed: u64) -> Result<Outcome, StressError> {
    params.check()?;
    Ok(rates::run(params, seed))
}

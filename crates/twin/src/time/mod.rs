//! Virtual time: nanoseconds, timers, random numbers, and the check that two runs are one.

pub mod determinism;
mod ready;
mod timers;
mod watch;

pub use mmtwin_scenario::program::random::{Chance, OfObject, Random, Use};
pub(crate) use ready::Ready;
pub use timers::{Timer, Timers};
pub(crate) use watch::Watch;

/// Nanoseconds since the simulated kernel booted.
pub type Ns = u64;

/// Picoseconds.
pub type Ps = u64;

/// Picoseconds of a nanosecond.
pub const PS_PER_NS: Ps = 1000;

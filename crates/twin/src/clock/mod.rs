//! Virtual time: nanoseconds, timers and random numbers.

mod timers;

pub use mmtwin_workload::random::{Chance, Random, Use};
pub use timers::{Timer, Timers};

/// Nanoseconds since the simulated kernel booted.
pub type Ns = u64;

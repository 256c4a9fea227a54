//! Virtual time: nanoseconds, timers and random numbers.

mod random;
mod timers;

pub use random::{Chance, Random, Use};
pub use timers::{Timer, Timers};

/// Nanoseconds since the simulated kernel booted.
pub type Ns = u64;

//! A scenario's threads as programs, the same for all arms.
//!
//! A program is read three ways: a real machine executes it, the twin's explicit mode replays it access by access, and
//! the twin's sampled mode takes only its rates. They can agree because a pattern is defined here once: the pages of a
//! region in [`Classes`] of equal popularity, spread by a [`Permutation`], drawn with numbers that depend on the thread
//! and the count of its accesses alone ([`Random`]); or a [`Cursor`] that walks.
//!
//! Same seed, same accesses, on every machine: only `+ - * /` and `libm` are used (`clippy.toml` of this crate).

mod arrivals;
pub mod classes;
pub mod cursor;
pub mod permutation;
pub mod random;
pub mod stream;
mod thread;

pub use arrivals::Arrivals;
pub use classes::{Class, Classes};
pub use cursor::Cursor;
pub use permutation::Permutation;
pub use random::{Chance, Random, Use};
pub use stream::{Access, Pattern, Stream};
pub use thread::{AccessPlan, PhaseAccess, PhaseAccesses, Thread, ThreadPhase, discarded, policy, threads};

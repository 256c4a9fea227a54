//! The simulated kernel: a machine, a kernel's rules and a workload in virtual time.
//!
//! Every mechanism is a folder named as a kernel developer would look for it. They share the [`clock`] and leave
//! their tracepoints through the [`probe`], from where a [`Sink`](mmtwin_event::Sink) takes them: an analysis, a
//! recording, or nothing.
//!
//! Same scenario and seed, same bytes, on every machine and in every build: time is integer nanoseconds, what happens
//! at the same time is ordered by CPU and sequence, random numbers depend on what they are for and not on when they
//! are drawn, and arithmetic that differs between platforms is refused by clippy (`clippy.toml` of this crate).

mod access;
pub mod alloc;
pub mod build;
pub mod clock;
mod compaction;
pub mod kernel;
pub mod machine;
mod numa;
pub mod page;
pub mod probe;
pub mod reclaim;
pub mod replacement;
pub mod run;
mod sched;
pub mod vmalloc;
pub mod vmstat;
pub mod writeback;

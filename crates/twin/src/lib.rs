//! The simulated kernel: a machine, a kernel's rules and a workload in virtual time.
//!
//! Every mechanism is a folder named as a kernel developer would look for it. Folders stand in one order, and none imports
//! from one that comes after it (`tests/layers.rs`). Events leave through the [`probe`], from where a
//! [`Sink`](mmtwin_event::Sink) takes them: an analysis, a recording, or nothing.
//!
//! Same scenario and seed, same bytes, on every machine and in every build: time is integer nanoseconds, what happens
//! at the same time is ordered by CPU and sequence, random numbers depend on what they are for and not on when they
//! are drawn, and arithmetic that differs between platforms is refused by clippy (`clippy.toml` of this crate).

pub mod build;
pub mod engine;
pub mod frame;
pub mod hw;
mod lab_guest;
pub mod mm;
mod numa;
pub mod page_alloc;
pub mod probe;
pub mod procfs;
mod sched;
pub mod time;
pub mod vmalloc;
pub mod vmstat;
pub mod workload;

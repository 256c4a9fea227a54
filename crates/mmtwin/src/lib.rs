//! Record, explain, simulate and predict how Linux manages memory on NUMA machines, as a library.
//!
//! - [`Trace::open`] reads what a kernel recorded, in any of the usual formats, and [`Analysed::report`] says what happened.
//! - [`Scenario::load`] reads a machine, a kernel and a workload out of a file, and [`run`] runs them on the *twin*, a
//!   simulated kernel. [`running`] also has the other arms: this machine, and real kernels in QEMU.
//! - [`Filter`] reads a part of a trace: some tasks, cgroups or nodes, or a stretch of time.
//! - [`compare`] puts traces and runs side by side, the baseline first.
//! - [`fleet`] reads many recordings and keeps a summary of each.
//! - [`sweep`] runs a scenario many times, with other values of some keys and several seeds.
//! - [`draft`] writes new scenarios.
//! - [`batches`] are the tables of a report or comparison as Arrow record batches, and write them as files of Arrow and
//!   Parquet; [`mmtwin_report::format`] writes them as text, JSON and CSV.
//!
//! Nothing here prints: how far something is goes to a callback, warnings are values, and what goes wrong is an
//! [`Error`]. The same scenario and seed give the same run, bit for bit, on every machine.
//!
//! ```
//! use mmtwin::{Request, Scenario, run};
//!
//! # fn main() -> Result<(), mmtwin::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/examples/numastat-pages.toml");
//! // With overrides, as `--set` of the command line takes them.
//! let scenario = Scenario::load(path, &["kernel.release=6.12"])?;
//! let ran = run(&scenario, Request::default(), &mut |_nanoseconds| {})?;
//! let allocated = ran.analysed.analysis.counters.change("vmstat", "", "pgalloc_normal");
//! assert!(allocated.is_some_and(|pages| pages > 0));
//! assert!(!ran.analysed.report().tables.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! Complete programs are in `examples/`: `embed_twin`, `read_trace` and `compare_policies`.

mod about;
mod batch_files;
mod batches;
mod compare;
pub mod draft;
mod error;
mod filter;
pub mod fleet;
mod reading;
pub mod running;
pub mod scenarios;
pub mod sweep;

/// The crate of the record batches.
pub use arrow_array;
pub use batches::{Batch, batches};
pub use compare::compare;
pub use error::Error;
pub use filter::{Extent, Filter};
/// Statistics and findings.
pub use mmtwin_analysis as analysis;
/// Events, counters, and who takes them.
pub use mmtwin_event as event;
/// Tables, comparison and their formats.
pub use mmtwin_report as report;
pub use mmtwin_report::compare::Comparison;
pub use mmtwin_report::model::Report;
/// What a scenario is made of.
pub use mmtwin_scenario as scenario;
pub use mmtwin_scenario::Scenario;
/// Readers and writers of traces.
pub use mmtwin_trace as trace;
pub use mmtwin_trace::input::Options;
/// The simulated kernel.
pub use mmtwin_twin as twin;
pub use reading::{Analysed, Trace, cuts};
pub use running::{Request, Simulated, run};

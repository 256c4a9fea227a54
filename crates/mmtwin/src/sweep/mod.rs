//! Many runs of one scenario: other values of some keys, several seeds, on as many threads as are wanted.
//!
//! [`Plan::new`] reads the cases and checks all of them; [`run`] runs what is missing, a run on one thread, and keeps
//! finished rows in a journal beside the output until the Parquet file is written; [`read`] reads that file. Rows are in
//! the order of the plan, so the bytes do not depend on the number of threads or on interruptions. Tables and curves are
//! in [`mmtwin_report::sweep`].
//!
//! Who has other machines takes a [`Driver`]: it says which runs are missing, and keeps what [`Planned::run`] gave on any of
//! them, sent as [`Ran::to_bytes`].
//!
//! A run is known by the hash of its resolved scenario, its seed and the version of the program.

mod cases;
mod driver;
mod expand;
mod faults;
mod journal;

mod plan;
mod row;
mod run;
mod table;
mod values;
mod wire;

pub use driver::{Done, Driver};
pub use journal::known;
pub use plan::{Base, Plan, Planned, Request};
pub use row::Ran;
pub use run::{Options, Progress, run, run_missing};
pub use table::{batch, read};
pub use values::{number, values};

use std::fmt;
use std::path::PathBuf;

/// Something wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: `--set 2`, `cases.csv:4`, `s.toml:3:1`.
    pub place: String,
    /// What.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Why a sweep could not begin or go on. Its rows so far are kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output or its journal.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] mmtwin_trace::Error),
    /// The Parquet file cannot be read or written.
    #[error("{}: {message}", path.display())]
    Parquet {
        /// Which.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// What is there is no sweep that can be continued.
    #[error("{}: {message}; -f starts again", path.display())]
    Other {
        /// Output or journal.
        path: PathBuf,
        /// What it is.
        message: String,
    },
    /// Another process writes it.
    #[error("{}: another sweep is writing it", .0.display())]
    Busy(PathBuf),
}

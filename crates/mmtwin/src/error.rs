//! What can go wrong.

use mmtwin_twin::engine::RunError;
use mmtwin_twin::time::determinism::Difference;
use mmtwin_twin::workload::trace::TraceError;
use std::path::PathBuf;

/// Why something could not be opened, run or written. Its text names the file and, where there is one, the place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input could not be read, or an output not be written.
    #[error(transparent)]
    Trace(#[from] mmtwin_trace::Error),
    /// A filter lets nothing of an input through.
    #[error("{input}: nothing matches {filter}; it has{there}")]
    NothingMatches {
        /// The input.
        input: String,
        /// The filter, in words.
        filter: String,
        /// What the input has, in lines.
        there: String,
    },
    /// A scenario has faults; all that were found.
    #[error(transparent)]
    Scenario(#[from] mmtwin_scenario::Faults),
    /// The twin cannot run the scenario as it was asked.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Two runs of the same scenario differ.
    #[error(transparent)]
    Difference(#[from] Difference),
    /// A row of an access trace that the scenario has no page for.
    #[error("{place}: {source}")]
    Access {
        /// The row.
        place: mmtwin_trace::Place,
        /// What is wrong with it.
        source: TraceError,
    },
    /// The state that a recording begins with cannot be used.
    #[error("{recording}: {message}")]
    State {
        /// The recording.
        recording: String,
        /// The file of the state, its line, and what is wrong.
        message: String,
    },
    /// This machine cannot run the workload.
    #[error(transparent)]
    Host(#[from] mmtwin_host::Error),
    /// The lab cannot run anything.
    #[error(transparent)]
    Lab(#[from] mmtwin_lab::Error),
    /// The lab has no program that runs the workload in a guest.
    #[error("no mmtwin-agent at {}: run `make lab`", .0.display())]
    NoAgent(PathBuf),
    /// One run of several in the lab failed.
    #[error("{}: {source}", .output.display())]
    Guest {
        /// Where its recording was to go.
        output: PathBuf,
        /// Why.
        source: mmtwin_lab::Error,
    },
    /// A signal asked for an end.
    #[error("interrupted")]
    Interrupted {
        /// Its number.
        signal: i32,
    },
}

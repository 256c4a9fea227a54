//! What can go wrong.

/// Why the twin could not be put beside something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A run of the twin or of the lab failed, or a recording could not be used.
    #[error(transparent)]
    Run(#[from] mmtwin::Error),
    /// A recording could not be read, or a file not be written.
    #[error(transparent)]
    Trace(#[from] mmtwin_trace::Error),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A published study cannot be run as it is.
    #[error("{study}: {message}")]
    Study {
        /// Its name.
        study: &'static str,
        /// Which row, and what is wrong.
        message: String,
    },
    /// Runs that cannot be compared: the file and why.
    #[error("{0}")]
    Fidelity(String),
}

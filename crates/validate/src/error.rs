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
    /// A bundle of the user cannot be run beside a study.
    #[error("{file}: {message}")]
    Variant {
        /// Its file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// A bundle of the user is based on a kernel that a study does not have.
    #[error("{file}: base {base} is no kernel of {study}; its kernels: {known}")]
    NoBase {
        /// The file of the bundle.
        file: String,
        /// What it is based on.
        base: String,
        /// The study.
        study: &'static str,
        /// Kernels of the study.
        known: String,
    },
    /// Runs that cannot be compared: the file and why.
    #[error("{0}")]
    Fidelity(String),
}

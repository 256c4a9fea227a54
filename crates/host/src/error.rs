//! What can stop a recording.

use crate::workload::refuse::Refusals;
/// Why this machine could not be recorded as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the recording could not be written.
    #[error(transparent)]
    Trace(#[from] mmtwin_trace::Error),
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// File, directory or action.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An event that this kernel does not have.
    #[error("no event `{pattern}` on this kernel{}", did_you_mean(.nearest))]
    Event {
        /// As the user wrote it.
        pattern: String,
        /// The nearest event there is.
        nearest: Option<String>,
    },
    /// A cgroup that does not exist, or has no memory controller.
    #[error("no memory cgroup `{path}`: looked for {tried}")]
    Cgroup {
        /// As the user wrote it.
        path: String,
        /// Directories that were tried.
        tried: String,
    },
    /// The command could not be started.
    #[error("cannot start `{command}`: {source}")]
    Command {
        /// Name of the program.
        command: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A scenario that this machine cannot run.
    #[error("{0}")]
    Refused(Refusals),
    /// A process of a workload that could not do its work.
    #[error("process {process}: {message}")]
    Workload {
        /// Its name.
        process: String,
        /// What happened.
        message: String,
    },
    /// A second signal: the recording is cut off.
    #[error("interrupted; what was recorded so far can be read")]
    Interrupted {
        /// Number of the signal.
        signal: i32,
    },
}

impl Error {
    /// An error of the operating system.
    pub fn io(what: impl Into<String>, source: impl Into<std::io::Error>) -> Error {
        Error::Io { what: what.into(), source: source.into() }
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |n| format!("; did you mean `{n}`?"))
}

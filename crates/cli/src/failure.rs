//! How a verb ends: messages and exit statuses.

use std::fmt;
use std::io::Write;

/// Why a verb ended without its result, as the user reads it.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong; exit status 1.
    Error(String),
    /// The command line asks for something that does not exist; exit status 2.
    Usage(String),
    /// The user wanted an end, by this signal; exit status 128 more than it.
    Interrupted(i32),
    /// The reader of standard output went away; nothing is said, as for any filter.
    BrokenPipe,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(message) | Failure::Usage(message) => f.write_str(message),
            Failure::Interrupted(_) => f.write_str("interrupted"),
            Failure::BrokenPipe => f.write_str("standard output was closed"),
        }
    }
}

impl From<mmtwin_trace::Error> for Failure {
    fn from(error: mmtwin_trace::Error) -> Failure {
        match error {
            mmtwin_trace::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe => {
                Failure::BrokenPipe
            }
            other => Failure::Error(other.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Error(error.to_string()),
        }
    }
}

impl From<mmtwin_host::Error> for Failure {
    fn from(error: mmtwin_host::Error) -> Failure {
        match error {
            mmtwin_host::Error::Interrupted { signal } => Failure::Interrupted(signal),
            other => Failure::Error(other.to_string()),
        }
    }
}

impl From<mmtwin::Error> for Failure {
    fn from(error: mmtwin::Error) -> Failure {
        match error {
            mmtwin::Error::Trace(error) => error.into(),
            mmtwin::Error::Host(error) => error.into(),
            mmtwin::Error::Interrupted { signal } => Failure::Interrupted(signal),
            other => Failure::Error(other.to_string()),
        }
    }
}

impl From<mmtwin_validate::Error> for Failure {
    fn from(error: mmtwin_validate::Error) -> Failure {
        match error {
            mmtwin_validate::Error::Run(error) => error.into(),
            mmtwin_validate::Error::Trace(error) => error.into(),
            mmtwin_validate::Error::Io(error) => error.into(),
            other => Failure::Error(other.to_string()),
        }
    }
}

/// Exit statuses beyond 0, 1 and 2.
pub mod status {
    /// A comparison fulfils `--fail-on`.
    pub const COMPARISON: i32 = 3;
    /// More events were lost than `--max-lost`.
    pub const LOST: i32 = 4;
    /// Memory ran out in a run, and a process was killed.
    pub const OUT_OF_MEMORY: i32 = 5;
    /// The recording ended because it reached `--max-size`.
    pub const FULL: i32 = 6;
    /// Ended by a signal, whose number is added, as a shell reports it.
    pub const SIGNAL: i32 = 128;
    /// Ended by SIGPIPE.
    pub const BROKEN_PIPE: i32 = SIGNAL + 13;
}

/// A message on standard error.
pub fn say(message: &str) {
    // Where that cannot be written there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "mmtwin: {message}");
}

//! What can stop a recording.

use crate::workload::refusal::Refusals;
use mmtwin_event::manifest::Exit;

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
    #[error("no memory cgroup `{path}`: looked for {tried}; {there}")]
    Cgroup {
        /// As the user wrote it.
        path: String,
        /// Directories that were tried.
        tried: String,
        /// What there is, in words.
        there: String,
    },
    /// A pattern of cgroups that cannot be read.
    #[error("pattern of cgroups `{pattern}`: {message}")]
    CgroupPattern {
        /// As the user wrote it.
        pattern: String,
        /// What is wrong.
        message: String,
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
    /// More CPUs than this process may open files for.
    #[error(
        "recording {cpus} CPUs takes {needed} open files and RLIMIT_NOFILE is {limit}: raise the hard limit (ulimit -Hn, \
         LimitNOFILE= of a unit)"
    )]
    Descriptors {
        /// CPUs.
        cpus: u64,
        /// Files.
        needed: u64,
        /// Files that are allowed.
        limit: u64,
    },
    /// A largest size below what describes the machine.
    #[error("--max-size {asked}: a recording of this machine takes {least} bytes before the first event")]
    Size {
        /// As asked, in bytes.
        asked: u64,
        /// Least that works.
        least: u64,
    },
    /// A directory of a flight recorder that cannot be used, or what its recorder says.
    #[error("{directory}: {message}")]
    Flight {
        /// The directory.
        directory: String,
        /// What is wrong.
        message: String,
    },
    /// A ring that is too small.
    #[error("--flight {asked}: the ring has at least {least} bytes")]
    Ring {
        /// As asked, in bytes.
        asked: u64,
        /// Least that works.
        least: u64,
    },
    /// The recording could not continue. It is ended as well as possible, and the command has run to its end.
    #[error("{cause}; recording stopped{}", ran_on(.exit))]
    Stopped {
        /// Why.
        cause: Box<Error>,
        /// How the command ended.
        exit: Option<Exit>,
    },
    /// A signal before anything was recorded, or in a run.
    #[error("interrupted")]
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

fn ran_on(exit: &Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!(". The command continued and exited with status {code}"),
        Some(Exit::Signal(signal)) => format!(". The command continued and was terminated by signal {signal}"),
        None => String::new(),
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |n| format!("; did you mean `{n}`?"))
}

//! Errors of the lab.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A feature of a scenario that the lab does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Key in the scenario, such as `machine.siblings`.
    pub key: String,
    /// Why not.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> Refusal {
        Refusal { key: key.into(), reason: reason.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

/// Why a scenario could not be run on a real kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recording cannot be written where it should.
    #[error(transparent)]
    Output(#[from] mmtwin_trace::Error),
    /// The emulator is not there.
    #[error("no qemu-system-x86_64: run `make lab`, or install the package qemu-system-x86")]
    NoQemu,
    /// The emulator is older than the mode needs.
    #[error("mode exact needs QEMU {needed} or newer, this is {found}: run `make lab`, or use mode smp")]
    OldQemu {
        /// Its version.
        found: String,
        /// The first major version that will do.
        needed: u32,
    },
    /// The emulator refused its options, or broke.
    #[error("QEMU: {message}")]
    Qemu {
        /// Its message.
        message: String,
    },
    /// No such kernel.
    #[error("no kernel `{name}`: available: {}; or specify the path of a bzImage", list(.known))]
    NoKernel {
        /// As the user wrote it.
        name: String,
        /// Names of the kernels in the lab's folder.
        known: Vec<String>,
    },
    /// A file that is not a kernel, or a kernel without something it needs.
    #[error("{path}: {message}")]
    Kernel {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// A part of the guest's image is missing.
    #[error("the guest's image needs {what}: {fix}")]
    Missing {
        /// The missing part.
        what: String,
        /// How to install it.
        fix: String,
    },
    /// An agent that cannot run in the guest.
    #[error("{path}: {message}")]
    Agent {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The scenario uses a feature that the lab does not support.
    #[error("the lab does not meet the requirements of the scenario:{}", lines(.0))]
    Refused(Vec<Refusal>),
    /// The scenario's machine is larger than what the host has left.
    #[error("the guest needs {} MiB of memory, this machine has {} MiB left", .needed >> 20, .available >> 20)]
    HostMemory {
        /// Bytes that the guest can use.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// No room for files of the guest.
    #[error("{path}: {} MiB are needed, {} MiB are free", .needed >> 20, .available >> 20)]
    NoSpace {
        /// Directory.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        available: u64,
    },
    /// The guest's kernel stopped.
    #[error("the kernel panicked: {message}{}", last_lines(.console))]
    Panic {
        /// The kernel's own words.
        message: String,
        /// Last lines of the console.
        console: Vec<String>,
    },
    /// The guest had too little memory.
    #[error("the guest ran out of memory: {message}{}", last_lines(.console))]
    GuestMemory {
        /// The kernel's own words.
        message: String,
        /// Last lines of the console.
        console: Vec<String>,
    },
    /// It took too long.
    #[error("the guest was still {stage} after {} s{}", .limit.as_secs(), last_lines(.console))]
    TimeOut {
        /// Its progress.
        stage: crate::Stage,
        /// The limit.
        limit: Duration,
        /// Last lines of the console.
        console: Vec<String>,
    },
    /// The guest stopped without a message.
    #[error("the guest exited while {stage}, without results{}", last_lines(.console))]
    Died {
        /// Its progress.
        stage: crate::Stage,
        /// Last lines of the console.
        console: Vec<String>,
    },
    /// The guest could not be set up for the scenario.
    #[error("setting up the guest: {message}")]
    SetUp {
        /// The failed step.
        message: String,
    },
    /// The agent reported a failure.
    #[error("the workload failed (status {status}): {message}")]
    Workload {
        /// Exit status of the agent.
        status: i32,
        /// Its standard error.
        message: String,
    },
    /// The recording is larger than the room it was given.
    #[error("the recording needs more than its {} MiB", .room >> 20)]
    Results {
        /// Room in bytes.
        room: u64,
    },
    /// The caller has cancelled.
    #[error("interrupted")]
    Interrupted,
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// File, directory or action.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl fmt::Display, source: impl Into<std::io::Error>) -> Error {
        Error::Io { what: what.to_string(), source: source.into() }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none (run `make lab`)".into() } else { names.join(", ") }
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| format!("\n  {refusal}")).collect()
}

fn last_lines(console: &[String]) -> String {
    if console.is_empty() {
        return String::new();
    }
    let lines: String = console.iter().map(|line| format!("\n  | {line}")).collect();
    format!("; the console's last lines:{lines}")
}

//! Guests for tests: finds their files, or names the missing ones; then the test reports that it is skipped.

use mmtwin_event::Sink;
use mmtwin_lab::{Error, Folder, Job, Kernel, Lab, Mode, Qemu, run};
use mmtwin_scenario::Scenario;
use mmtwin_trace::Outcome;
use mmtwin_trace::recording::Recording;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A kernel that can be booted.
pub struct Guest {
    pub lab: Lab,
    pub kernel: Kernel,
    pub mode: Mode,
}

impl Guest {
    /// One for which the test has an agent of its own.
    pub fn bare(kernel: &str, mode: Mode) -> Option<Guest> {
        skipping(found(kernel, mode))
    }

    /// One that the lab's agent is for.
    pub fn new(kernel: &str, mode: Mode) -> Option<Guest> {
        let with_agent = |guest: Guest| match guest.agent().is_file() {
            true => Ok(guest),
            false => Err(Error::Missing { what: "mmtwin-agent".into(), fix: "run `make lab`".into() }),
        };
        skipping(found(kernel, mode).and_then(with_agent))
    }

    /// The lab's agent.
    pub fn agent(&self) -> PathBuf {
        self.lab.folder.agent()
    }

    /// A run of a scenario.
    pub fn job<'a>(&'a self, scenario: &'a Scenario, agent: &'a Path, output: &'a Path) -> Job<'a> {
        let (room, time_out) = (64 << 20, Duration::from_secs(900));
        let (mode, force) = (self.mode, false);
        Job { scenario, kernel: &self.kernel, mode, agent, extra: &[], output, force, room, time_out }
    }

    /// Runs a scenario by the lab's agent.
    pub fn record(&self, scenario: &Scenario, output: &Path) {
        let (agent, stop) = (self.agent(), AtomicBool::new(false));
        let ran = run(&self.lab, &self.job(scenario, &agent, output), &stop, &mut |_| {});
        eprintln!("{} {}: {:?}", self.kernel.version, self.mode, ran.unwrap_or_else(|e| panic!("{e}")));
    }
}

fn found(kernel: &str, mode: Mode) -> Result<Guest, Error> {
    let lab = Lab { folder: Folder::find(), qemu: Qemu::find()? };
    if mode == Mode::Exact && lab.qemu.major() < 9 {
        return Err(Error::OldQemu { found: lab.qemu.version, needed: 9 });
    }
    let kernel = lab.folder.kernel(kernel, None)?;
    Ok(Guest { lab, kernel, mode })
}

/// Prints what is missing.
pub fn skipping<T>(found: Result<T, Error>) -> Option<T> {
    found.map_err(|error| eprintln!("skipped: {error}")).ok()
}

/// A scenario from its text.
pub fn parse(text: &str, sets: &[String]) -> Scenario {
    mmtwin_scenario::parse("test", text, Path::new(""), sets).unwrap_or_else(|e| panic!("{e}"))
}

/// Gives what is in a recording to a sink, and the recording.
pub fn read(path: &Path, sink: &mut dyn Sink) -> (Recording, Outcome) {
    let (recording, mut outcome) = (Recording::open(path).expect("a recording"), Outcome::default());
    sink.start(&recording.source());
    recording.read(sink, &mut outcome).expect("events");
    sink.finish();
    (recording, outcome)
}

/// Every file below a directory.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![directory.to_path_buf()];
    while let Some(next) = todo.pop() {
        for path in std::fs::read_dir(next).expect("a directory").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below").to_path_buf();
                found.insert(name, std::fs::read(path).expect("a file"));
            }
        }
    }
    found
}

/// Every file of a recording but `run.json`, which describes the run itself.
pub fn measured(recording: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = files(recording);
    found.remove(Path::new("run.json"));
    found
}

//! `mmtwin sweep --engine ray`: the Python package runs the sweep.

use crate::Failure;
use crate::args::SweepRun;
use crate::signals::Signals;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// The interpreter that has the package: that of the active environment.
const PYTHON: &str = "python3";
/// This program and its version, as the package names its own.
const VERSION: &str = concat!("mmtwin ", env!("MMTWIN_VERSION"));

/// Runs all that is missing and writes the output.
pub fn run(arguments: &SweepRun) -> Result<(), Failure> {
    if arguments.jobs.is_some() {
        return Err(Failure::Usage("-j is of --engine local: a cluster has as many runs at a time as CPUs".into()));
    }
    check()?;
    // The driver has the signal too, and writes what is finished before it ends.
    let signals = Signals::take()?;
    // Ray itself prints on standard output, of nodes that die for one; there is to be the table alone.
    let messages = std::io::stderr().as_fd().try_clone_to_owned()?;
    let status = command(arguments).stdin(Stdio::null()).stdout(messages).status()?;
    signals.check()?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Error(format!("{PYTHON} -m mmtwin.ray: {status}; the same command continues"))),
    }
}

/// The package is there and of this version.
fn check() -> Result<(), Failure> {
    let needed = "--engine ray needs the Python package: pip install 'mmtwin[ray]'";
    let asked = Command::new(PYTHON).args(["-c", "import mmtwin.ray; print(mmtwin.VERSION)"]).output();
    let asked = asked.map_err(|error| Failure::Error(format!("{needed} ({PYTHON}: {error})")))?;
    if !asked.status.success() {
        let said = String::from_utf8_lossy(&asked.stderr);
        let last = said.lines().last().unwrap_or_default();
        return Err(Failure::Error(format!("{needed} ({PYTHON}: {last})")));
    }
    match String::from_utf8_lossy(&asked.stdout).trim() {
        VERSION => Ok(()),
        other => {
            Err(Failure::Error(format!("the Python package is of {other}, and this is {VERSION}: install the same")))
        }
    }
}

fn command(arguments: &SweepRun) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(["-m", "mmtwin.ray"]).arg(&arguments.scenario).arg("--output").arg(&arguments.output);
    for set in &arguments.sets {
        command.arg("--set").arg(set);
    }
    if let Some(cases) = &arguments.cases {
        command.arg("--cases").arg(cases);
    }
    if let Some(seeds) = &arguments.seeds {
        let seeds: Vec<String> = seeds.0.iter().map(u64::to_string).collect();
        command.arg("--seeds").arg(seeds.join(","));
    }
    if let Some(address) = &arguments.address {
        command.arg("--address").arg(address);
    }
    for (flag, given) in [("--paired", arguments.paired), ("--force", arguments.force)] {
        if given {
            command.arg(flag);
        }
    }
    command
}

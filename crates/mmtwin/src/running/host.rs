//! Running a scenario's workload for real, on this machine.

use crate::reading::{Analysed, analyse};
use crate::{Failure, say};
use mmtwin_host::Error;
use mmtwin_host::workload::{Options, run};
use mmtwin_scenario::Scenario;
use mmtwin_trace::input;
use std::path::Path;

/// Runs a scenario into a recording and analyses it.
pub fn on_host(scenario: &Scenario, output: &Path, force: bool) -> Result<Analysed, Failure> {
    let options = Options { output: output.into(), force, ..Options::default() };
    run(scenario, &options, &mut say).map_err(|error| match error {
        Error::Interrupted { signal } => Failure::Interrupted(signal),
        error => Failure::Error(error.to_string()),
    })?;
    analyse(output, &input::Options::default())
}

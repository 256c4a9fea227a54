//! Running a scenario's workload for real, on this machine.

use crate::Error;
use mmtwin_host::workload::{Options, run};
use mmtwin_scenario::Scenario;
use std::path::Path;

/// Runs a scenario's workload on this machine, into a recording. `note` takes what is worth saying meanwhile.
///
/// # Errors
/// If this machine cannot run or record it, or a signal ends it.
pub fn on_host(scenario: &Scenario, output: &Path, force: bool, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
    run(scenario, &Options { output: output.into(), force, ..Options::default() }, note)?;
    Ok(())
}

//! Running scenarios on a real kernel in QEMU.

use crate::Error;
use mmtwin_lab::{Folder, Job, Kernel, Lab, Mode, Origin, Outcome, Progress, Qemu, guests_at_once, run_all};
use mmtwin_scenario::Scenario;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Largest recording that a guest can leave.
const ROOM: u64 = 512 << 20;

/// What the lab is told besides the scenario.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// `6.1`, `6.12` or a bzImage; `None`: the scenario's release.
    pub kernel: Option<String>,
    /// Modules of a bzImage.
    pub modules: Option<PathBuf>,
    /// How the guest's CPUs run.
    pub mode: Mode,
    /// Longest time of a guest.
    pub time_out: Duration,
    /// Replace recordings that are there.
    pub force: bool,
}

/// Runs scenarios in the lab, each into its recording, as many at once as do not disturb each other. `stop` ends all of
/// them; `progress` is told how far a guest is, by the index of its run, from several threads.
///
/// # Errors
/// If there is no lab or no such kernel. What goes wrong in one run is the result of that run.
pub fn on_lab(
    runs: &[(&Scenario, PathBuf)],
    options: &LabOptions,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, Progress<'_>) + Sync),
) -> Result<Vec<Result<Outcome, Error>>, Error> {
    let folder = Folder::find();
    let agent = agent(&folder)?;
    let kernel = |scenario: &Scenario| {
        let name = options.kernel.as_deref().unwrap_or(&scenario.kernel.release);
        folder.kernel(name, options.modules.as_deref())
    };
    let kernels: Vec<Kernel> = runs.iter().map(|(scenario, _)| kernel(scenario)).collect::<Result<_, _>>()?;
    let lab = Lab { folder, qemu: Qemu::find()? };
    let jobs: Vec<Job<'_>> = runs
        .iter()
        .zip(&kernels)
        .map(|((scenario, output), kernel)| Job {
            scenario,
            kernel,
            mode: options.mode,
            agent: &agent,
            extra: &[],
            output,
            force: options.force,
            room: ROOM,
            time_out: options.time_out,
        })
        .collect();
    let outcomes = run_all(&lab, &jobs, guests_at_once(options.mode), stop, progress);
    let named = |((_, output), outcome): (&(&Scenario, PathBuf), Result<Outcome, mmtwin_lab::Error>)| {
        outcome.map_err(|source| Error::Guest { output: output.clone(), source })
    };
    Ok(runs.iter().zip(outcomes).map(named).collect())
}

/// What a guest of the kernel `name` is made of here.
///
/// # Errors
/// If there is no lab or no such kernel.
pub fn origin(name: &str) -> Result<Origin, Error> {
    let folder = Folder::find();
    Ok(Origin::of(&Qemu::find()?, &folder.kernel(name, None)?, &agent(&folder)?)?)
}

/// The agent for the guest: that of $MMTWIN_AGENT, else the lab's.
fn agent(folder: &Folder) -> Result<PathBuf, Error> {
    let path = std::env::var_os("MMTWIN_AGENT").map_or_else(|| folder.agent(), PathBuf::from);
    match path.is_file() {
        true => Ok(path),
        false => Err(Error::NoAgent(path)),
    }
}

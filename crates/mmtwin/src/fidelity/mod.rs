//! The twin judged by real kernels: scenarios, each run in the lab on every kernel with several seeds, stored, and put
//! beside the twin of today.

mod same;
mod store;

pub use same::of_sides;

use crate::Failure;
use crate::reading::analyse;
use crate::running::{LabOptions, Request, on_lab, simulate};
use mmtwin_lab::Mode;
use mmtwin_report::fidelity::{self, Fidelity, Observed};
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::input::Options;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Kernels of the lab.
pub const KERNELS: [&str; 2] = ["6.1", "6.12"];
/// Seeds of a cell.
pub const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// Longest time of a guest.
const TIME_OUT: Duration = Duration::from_secs(600);

/// A scenario on a kernel.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the scenario.
    pub name: String,
    /// The kernel.
    pub kernel: String,
    /// Its file.
    path: PathBuf,
    /// Directory of its recordings.
    stored: PathBuf,
}

/// A cell with what was found.
pub struct Judged {
    /// The cell.
    pub cell: Cell,
    /// What the scenario shows.
    pub title: String,
    /// The comparison; `None`: nothing is stored.
    pub fidelity: Option<Fidelity>,
    /// Runs of the kernel.
    pub runs: usize,
}

/// All cells of a directory: scenarios by name, then kernels. A kernel that a scenario is not for has no cell.
pub fn cells(directory: &Path) -> Result<Vec<Cell>, Failure> {
    let entries =
        std::fs::read_dir(directory).map_err(|error| Failure::Error(format!("{}: {error}", directory.display())))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut cells = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for kernel in KERNELS {
            let stored = directory.join("recordings").join(&name).join(kernel);
            let cell = Cell { name: name.clone(), kernel: kernel.into(), path: path.clone(), stored };
            // Its own kernel must do; another may lack an event or a variant.
            let own = load(&path, &[]).map_err(failed)?.kernel.release == kernel;
            match cell.scenario(1) {
                Ok(_) => cells.push(cell),
                Err(_) if !own => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(cells)
}

impl Cell {
    /// The scenario with a seed.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, Failure> {
        let sets = [format!("kernel.release={:?}", self.kernel), format!("run.seed={seed}")];
        load(&self.path, &sets).map_err(failed)
    }

    /// Runs in the lab what is not stored, or all of it; the number of runs.
    pub fn refresh(&self, again: bool) -> Result<usize, Failure> {
        let missing: Vec<u64> = SEEDS.into_iter().filter(|&seed| again || !self.file(seed).is_file()).collect();
        if missing.is_empty() {
            return Ok(0);
        }
        let scratch = tempfile::tempdir()?;
        let scenarios = missing.iter().map(|&seed| self.scenario(seed)).collect::<Result<Vec<_>, _>>()?;
        let output = |seed: u64| scratch.path().join(format!("seed-{seed}.mmt"));
        let runs: Vec<(&Scenario, PathBuf)> =
            scenarios.iter().zip(&missing).map(|(scenario, &seed)| (scenario, output(seed))).collect();
        let kernel = Some(self.kernel.clone());
        let options = LabOptions { kernel, modules: None, mode: Mode::Exact, time_out: TIME_OUT, force: false };
        on_lab(&runs, &options)?;
        for (&seed, (_, output)) in missing.iter().zip(&runs) {
            store::pack(output, &self.file(seed))?;
        }
        Ok(missing.len())
    }

    fn file(&self, seed: u64) -> PathBuf {
        self.stored.join(format!("exact-seed-{seed}.tar.zst"))
    }

    /// Puts what is stored beside the twin.
    pub fn judge(&self) -> Result<Judged, Failure> {
        let mut kernel = Vec::new();
        for seed in SEEDS.into_iter().filter(|&seed| self.file(seed).is_file()) {
            kernel.push(self.stored(seed)?);
        }
        let mut twin = Vec::new();
        for seed in SEEDS {
            let scenario = self.scenario(seed)?;
            let analysed = simulate(&scenario, Request { name: &self.name, ..Request::default() })?.analysed;
            twin.push(fidelity::observe(&analysed.analysis, analysed.results.as_ref()));
        }
        let (title, runs) = (self.scenario(1)?.title, kernel.len());
        let fidelity = (runs > 0).then(|| fidelity::compare(&kernel, &twin));
        Ok(Judged { cell: self.clone(), title, fidelity, runs })
    }

    fn stored(&self, seed: u64) -> Result<Observed, Failure> {
        let scratch = store::unpack(&self.file(seed))?;
        let analysed = analyse(&scratch.path().to_string_lossy(), &Options::default())?;
        let hash = self.scenario(seed)?.hash();
        if analysed.scenario.as_ref() != Some(&hash) {
            let file = self.file(seed);
            let message = "the scenario has changed since it was recorded: `mmtwin fidelity --refresh --again`";
            return Err(Failure::Error(format!("{}: {message}", file.display())));
        }
        Ok(fidelity::observe(&analysed.analysis, analysed.results.as_ref()))
    }
}

fn failed(error: impl ToString) -> Failure {
    Failure::Error(error.to_string())
}

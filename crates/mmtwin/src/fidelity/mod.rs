//! The twin judged by real kernels: scenarios, each run in the lab on every kernel with several seeds, stored, and put
//! beside the twin of today.

pub mod difference;
mod page;
mod pages;
mod same;
mod store;

pub use page::page;
pub use pages::Agreement;
pub use same::of_sides;

use crate::Failure;
use crate::reading::{Analysed, analyse};
use crate::running::{LabOptions, Request, on_lab, simulate, state_of};
use mmtwin_event::Kind;
use mmtwin_lab::{Mode, guests_at_once};
use mmtwin_report::fidelity::{self, Fidelity, Observed};
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::input::Options;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Kernels of the lab.
pub const KERNELS: [&str; 2] = ["6.1", "6.12"];
/// Modes of the lab.
pub const MODES: [Mode; 2] = [Mode::Exact, Mode::Smp];
/// Seeds of a cell.
pub const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// The scenario that does nothing: what the kernel and the agent do by themselves.
pub const BACKGROUND: &str = "background";
/// Longest time of a guest.
const TIME_OUT: Duration = Duration::from_secs(600);

/// A scenario on a kernel in a mode of the lab.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the scenario.
    pub name: String,
    /// The kernel.
    pub kernel: String,
    /// How the guest's CPUs ran.
    pub mode: Mode,
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
    /// Where each page of the workload was; of the runs whose scenario records allocations.
    pub pages: Option<Agreement>,
    /// Runs of the kernel.
    pub runs: usize,
}

/// All cells of a directory: scenarios by name, then kernels, then modes. A kernel that a scenario is not for has no
/// cell.
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
            let of_mode = |mode| Cell {
                name: name.clone(),
                kernel: kernel.into(),
                mode,
                path: path.clone(),
                stored: stored.clone(),
            };
            // Its own kernel must do; another may lack an event or a variant.
            let own = load(&path, &[]).map_err(failed)?.kernel.release == kernel;
            match of_mode(Mode::Exact).scenario(1) {
                Ok(_) => cells.extend(MODES.map(of_mode)),
                Err(_) if !own => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(cells)
}

impl Cell {
    /// The scenario with a seed, on a machine as the mode makes it: its CPUs share one budget or do not.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, Failure> {
        let shared = self.mode == Mode::Exact;
        let sets = [
            format!("kernel.release={:?}", self.kernel),
            format!("run.seed={seed}"),
            format!("machine.cpu.shared_budget={shared}"),
        ];
        load(&self.path, &sets).map_err(failed)
    }

    /// Runs in the lab what is not stored, or all of it; the number of runs.
    pub fn refresh(&self, again: bool) -> Result<usize, Failure> {
        let missing: Vec<u64> = SEEDS.into_iter().filter(|&seed| again || !self.file(seed).is_file()).collect();
        let scratch = tempfile::tempdir()?;
        // Seed by seed in a mode that runs one guest at once: what is done is kept whatever comes then.
        for seeds in missing.chunks(guests_at_once(self.mode)) {
            for (seed, output) in self.run_in_lab(seeds, scratch.path())? {
                store::pack(&output, &self.file(seed))?;
            }
        }
        Ok(missing.len())
    }

    /// All stored runs, and one of them again in the lab.
    pub fn repeat(&self, seed: u64) -> Result<(Vec<Observed>, Observed), Failure> {
        let scratch = tempfile::tempdir()?;
        let stored = self.observed()?;
        let again = self.run_in_lab(&[seed], scratch.path())?;
        let Some((_, output)) = again.first() else { return Err(failed("nothing was run")) };
        Ok((stored, observed(&self.read(output, seed)?)))
    }

    /// Runs seeds in the lab; each with its recording below `directory`.
    fn run_in_lab(&self, seeds: &[u64], directory: &Path) -> Result<Vec<(u64, PathBuf)>, Failure> {
        if seeds.is_empty() {
            return Ok(Vec::new());
        }
        let scenarios = seeds.iter().map(|&seed| self.scenario(seed)).collect::<Result<Vec<_>, _>>()?;
        let outputs: Vec<PathBuf> = seeds.iter().map(|seed| directory.join(format!("seed-{seed}.mmt"))).collect();
        let runs: Vec<(&Scenario, PathBuf)> = scenarios.iter().zip(outputs.iter().cloned()).collect();
        let kernel = Some(self.kernel.clone());
        on_lab(&runs, &LabOptions { kernel, modules: None, mode: self.mode, time_out: TIME_OUT, force: false })?;
        Ok(seeds.iter().copied().zip(outputs).collect())
    }

    fn file(&self, seed: u64) -> PathBuf {
        self.stored.join(format!("{}-seed-{seed}.tar.zst", self.mode))
    }

    /// True if all of its runs are stored.
    pub fn is_complete(&self) -> bool {
        SEEDS.into_iter().all(|seed| self.file(seed).is_file())
    }

    /// What the stored runs show.
    pub fn observed(&self) -> Result<Vec<Observed>, Failure> {
        let stored = SEEDS.into_iter().filter(|&seed| self.file(seed).is_file());
        stored.map(|seed| Ok(observed(&self.stored(seed)?))).collect()
    }

    /// Puts what is stored beside the twin. `background` are runs of the same kernel in the same mode without workload.
    pub fn judge(&self, background: &[Observed]) -> Result<Judged, Failure> {
        let (mut kernel, mut twin, mut pages) = (Vec::new(), Vec::new(), None);
        for seed in SEEDS.into_iter().filter(|&seed| self.file(seed).is_file()) {
            let (unpacked, scratch, scenario) = (self.unpack(seed)?, tempfile::tempdir()?, self.scenario(seed)?);
            let stored = self.read(unpacked.path(), seed)?;
            // The twin begins with what the kernel held then, and at its time, as far as that was recorded.
            let state = state_of(&stored)?;
            let by_page = stored.analysis.recorded.has(Kind::MmPageAlloc);
            let recording = scratch.path().join("twin.mmt");
            let output = by_page.then_some((recording.as_path(), false));
            let request = Request { name: &self.name, state: state.as_ref(), output, ..Request::default() };
            let simulated = simulate(&scenario, request)?.analysed;
            if by_page {
                let compared = pages::compare(&scenario, unpacked.path(), &recording)?;
                pages.get_or_insert_with(Agreement::default).add(&compared);
            }
            kernel.push(observed(&stored));
            twin.push(observed(&simulated));
        }
        let (title, runs) = (self.scenario(1)?.title, kernel.len());
        let fidelity = (runs > 0).then(|| fidelity::compare(&kernel, &twin, background));
        Ok(Judged { cell: self.clone(), title, fidelity, pages, runs })
    }

    fn stored(&self, seed: u64) -> Result<Analysed, Failure> {
        self.read(self.unpack(seed)?.path(), seed)
    }

    fn unpack(&self, seed: u64) -> Result<TempDir, Failure> {
        store::unpack(&self.file(seed))
    }

    fn read(&self, recording: &Path, seed: u64) -> Result<Analysed, Failure> {
        let analysed = analyse(&recording.to_string_lossy(), &Options::default())?;
        let recorded = analysed.resolved.clone().unwrap_or_default();
        if let Some(change) = same::asked_of_guest(&recorded, &self.scenario(seed)?.to_json()).first() {
            let cure = "`mmtwin fidelity --refresh --again` records it anew";
            return Err(failed(format!("{self}, seed {seed}: the scenario has changed ({change}); {cure}")));
        }
        Ok(analysed)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}, mode {}", self.name, self.kernel, self.mode)
    }
}

fn observed(analysed: &Analysed) -> Observed {
    fidelity::observe(&analysed.analysis, analysed.results.as_ref())
}

fn failed(error: impl ToString) -> Failure {
    Failure::Error(error.to_string())
}

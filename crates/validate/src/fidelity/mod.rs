//! The twin judged by real kernels: scenarios, each run in the lab on every kernel with several seeds, stored, and put
//! beside the twin of today.

mod csv;
pub mod difference;
pub mod generate;
mod kept;
mod page;
mod pages;
mod same;
mod store;
pub mod unseen;

pub use csv::{Csv, files};
pub use page::{details, page};
pub use pages::Agreement;
pub use same::of_sides;
pub use store::{Guests, SEEDS};

use crate::Error;
use kept::Kept;
use mmtwin::{Analysed, Request, run};
use mmtwin_lab::Mode;
use mmtwin_report::fidelity::in_order::{self, InOrder, Steps};
use mmtwin_report::fidelity::{self, Fidelity, Observed};
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::Outcome;
use mmtwin_trace::recording::Recording;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use store::Runs;

/// Kernels of the lab.
pub const KERNELS: [&str; 2] = ["6.1", "6.12"];
/// The newest kernel, on which every third generated scenario runs too.
pub const NEWEST: &str = "7.3";
/// Modes of the lab.
pub const MODES: [Mode; 2] = [Mode::Exact, Mode::Smp];
/// The scenario that does nothing: what the kernel and the agent do by themselves.
pub const BACKGROUND: &str = "background";

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
    /// Where the runs of the scenario are stored.
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
    /// How the events of reclaim agree one by one, by seed; of machines with one CPU whose scenario records them.
    pub in_order: Vec<EventByEvent>,
    /// Runs of the kernel.
    pub runs: usize,
    /// How far they are from each other in settling and in places ([`fidelity::balancing::apart`]).
    pub apart: (Option<f64>, Option<f64>),
}

/// How the events of a run of the kernel agree with those of others.
pub struct EventByEvent {
    /// Of the kernel's run.
    pub seed: u64,
    /// With the twin's.
    pub twin: InOrder,
    /// With those of the kernel's own run with the next seed, which for the last is the first.
    pub own: InOrder,
}

/// All cells of a directory: scenarios by name, then kernels, then modes. A kernel that a scenario is not for has no
/// cell. Of the newest kernel there is what it does without a workload, for the generated scenarios.
pub fn cells(directory: &Path) -> Result<Vec<Cell>, Error> {
    let entries =
        std::fs::read_dir(directory).map_err(|error| Error::Fidelity(format!("{}: {error}", directory.display())))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut cells = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let stored = directory.join("runs").join(format!("{name}.jsonl.zst"));
        let of = |kernel: &str, mode| Cell {
            name: name.clone(),
            kernel: kernel.into(),
            mode,
            path: path.clone(),
            stored: stored.clone(),
        };
        for kernel in KERNELS {
            let of_mode = |mode| of(kernel, mode);
            // Its own kernel must do; another may lack an event or a variant.
            let own = load(&path, &[]).map_err(failed)?.kernel.release == kernel;
            match of_mode(Mode::Exact).scenario(1) {
                Ok(_) => cells.extend(MODES.map(of_mode)),
                Err(_) if !own => {}
                Err(failure) => return Err(failure),
            }
        }
        if name == BACKGROUND {
            cells.push(of(NEWEST, Mode::Exact));
        }
    }
    Ok(cells)
}

/// Puts cells beside the twin.
pub struct Judge {
    /// What the kernels do without a workload, by kernel and mode.
    backgrounds: BTreeMap<(String, String), Vec<Observed>>,
}

impl Judge {
    /// With what is stored of the cells without a workload.
    pub fn new(cells: &[Cell]) -> Result<Judge, Error> {
        let idle = cells.iter().filter(|cell| cell.name == BACKGROUND);
        let observed = |cell: &Cell| Ok(((cell.kernel.clone(), cell.mode.to_string()), cell.observed()?));
        Ok(Judge { backgrounds: idle.map(observed).collect::<Result<_, Error>>()? })
    }

    /// Puts a cell beside the twin.
    pub fn judge(&self, cell: &Cell) -> Result<Judged, Error> {
        let background = self.backgrounds.get(&(cell.kernel.clone(), cell.mode.to_string()));
        cell.judge(background.filter(|_| cell.name != BACKGROUND).map_or(&[], |runs| runs))
    }
}

impl Cell {
    /// The scenario with a seed, on a machine as the mode and the kernel make it.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, Error> {
        let machine = match self.mode {
            Mode::Exact => generate::preset(&self.kernel),
            Mode::Smp => "lab-4n-smp",
        };
        let sets = [
            format!("kernel.release={:?}", self.kernel),
            format!("run.seed={seed}"),
            format!("machine.preset={machine:?}"),
        ];
        load(&self.path, &sets).map_err(failed)
    }

    /// Does something with its runs.
    fn with_runs<T>(&self, work: impl FnOnce(&Runs<'_, Kept>) -> Result<T, Error>) -> Result<T, Error> {
        let (scenario, of) = (|seed| self.scenario(seed), format!("{} {}", self.kernel, self.mode));
        let (kernel, mode, file) = (self.kernel.as_str(), self.mode, self.stored.as_path());
        work(&Runs { kernel, mode, seeds: &SEEDS, scenario: &scenario, file, of: &of, keep: &Kept::of })
    }

    /// Runs in the lab what is not stored, or all of it; the number of runs.
    pub fn refresh(&self, again: bool, guests: Guests<'_>) -> Result<usize, Error> {
        self.with_runs(|runs| runs.refresh(again, guests))
    }

    /// All stored runs, and one of them again in the lab.
    pub fn repeat(&self, seed: u64, guests: Guests<'_>) -> Result<(Vec<Observed>, Observed), Error> {
        let (stored, scratch) = (self.observed()?, tempfile::tempdir()?);
        let again = self.with_runs(|runs| runs.read(&runs.record(&[seed], scratch.path(), guests)?[0], seed))?;
        Ok((stored, observed(&again)))
    }

    /// True if all of its runs are stored.
    pub fn is_complete(&self) -> Result<bool, Error> {
        self.with_runs(|runs| Ok(runs.missing(false)?.is_empty()))
    }

    /// What the stored runs show.
    pub fn observed(&self) -> Result<Vec<Observed>, Error> {
        self.with_runs(|runs| Ok(runs.stored()?.iter().map(|run| run.kept.observed()).collect()))
    }

    /// Puts what is stored beside the twin. `background` are runs of the same kernel in the same mode without workload.
    pub fn judge(&self, background: &[Observed]) -> Result<Judged, Error> {
        let (mut kernel, mut twin, mut pages, mut by_seed) = (Vec::new(), Vec::new(), None, Vec::new());
        self.with_runs(|runs| {
            for stored in runs.stored()? {
                let (scratch, scenario, kept) = (tempfile::tempdir()?, self.scenario(stored.seed)?, &stored.kept);
                // The twin begins with what the kernel held then, and at its time, as far as that was recorded.
                let state = stored.state()?;
                let recording = scratch.path().join("twin.mmt");
                let recorded = kept.pages.is_some() || kept.steps.is_some();
                let output = recorded.then_some((recording.as_path(), false));
                let request = Request { name: &self.name, state: state.as_ref(), output, ..Request::default() };
                let simulated = run(&scenario, request, &mut |_| {})?;
                if let Some(halted) = simulated.ran.halted {
                    return Err(Error::Fidelity(halted.to_string()));
                }
                if let Some(of_kernel) = &kept.pages {
                    let compared = pages::compare(of_kernel, &pages::placed(&scenario, &recording)?);
                    pages.get_or_insert_with(Agreement::default).add(&compared);
                }
                if let Some(of_kernel) = &kept.steps {
                    by_seed.push((stored.seed, of_kernel.clone(), steps(&recording)?));
                }
                kernel.push(kept.observed());
                twin.push(observed(&simulated.analysed));
            }
            Ok(())
        })?;
        let (title, runs) = (self.scenario(1)?.title, kernel.len());
        let fidelity = (runs > 0).then(|| fidelity::compare(&kernel, &twin, background));
        let apart = fidelity::balancing::apart(&kernel);
        let next = by_seed.iter().cycle().skip(1);
        let compared = by_seed.iter().zip(next).map(|((seed, kernel, twin), (_, other, _))| {
            let [twin, own] = [twin, other].map(|run| in_order::compare(kernel, run));
            EventByEvent { seed: *seed, twin, own }
        });
        let in_order = compared.collect();
        Ok(Judged { cell: self.clone(), title, fidelity, pages, in_order, runs, apart })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}, mode {}", self.name, self.kernel, self.mode)
    }
}

/// The first events of reclaim of a recording.
fn steps(path: &Path) -> Result<Steps, Error> {
    let (mut steps, mut outcome) = (Steps::default(), Outcome::default());
    Recording::open(path)?.read(&mut steps, &mut outcome)?;
    match outcome.lost_total() {
        (0, 0) => Ok(steps),
        _ => Err(Error::Fidelity(format!("{}: events were lost, so they cannot be compared", path.display()))),
    }
}

fn observed(analysed: &Analysed) -> Observed {
    fidelity::observe(&analysed.analysis, analysed.results.as_ref())
}

fn failed(error: impl ToString) -> Error {
    Error::Fidelity(error.to_string())
}

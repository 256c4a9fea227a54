//! The twin judged by generated scenarios ([`super::generate`]): each runs in the lab in mode exact, on every kernel and
//! with four seeds, and in the twin of today from the state of each guest.
//!
//! Of a run only what is judged is stored, a file for each scenario. A run that memory ran out in, that the lab refuses
//! or that fails is stored as such, and judged by that alone.

mod aggregate;
mod choice;
mod compare;
mod figures;
mod page;
mod ranking;
pub mod search;

pub use aggregate::{Row, rows};
pub use choice::{Choice, Chosen, families, family};
pub use compare::Quantity;
pub use figures::{End, Group};
pub use page::{CHOICES, ROWS, Summary, choices, details, opening_of, reopened, tables, text};

use super::generate::{DEVELOPMENT, TEST, preset, scenario};
use super::store::{Runs, TIME_OUT};
use super::{BACKGROUND, Cell as OfPage, KERNELS, NEWEST, failed};
use crate::Error;
use figures::Figures;
use mmtwin::running::LabOptions;
use mmtwin::{Analysed, Request, run};
use mmtwin_lab::{Mode, Origin};
use mmtwin_scenario::{Scenario, parse};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every scenario whose seed this divides runs on the newest kernel too.
const ON_NEWEST: u64 = 3;
/// Seeds with which a scenario runs.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// A set of generated scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Rules of the twin are found and corrected on these.
    Development,
    /// These judge it. What is printed of them are aggregates.
    Test,
}

impl Set {
    /// Both.
    pub const ALL: [Set; 2] = [Set::Test, Set::Development];

    /// Its name, and that of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Set::Development => "development",
            Set::Test => "test",
        }
    }

    /// The set of a seed.
    ///
    /// # Errors
    /// If it belongs to neither.
    pub fn of(seed: u64) -> Result<Set, Error> {
        match seed {
            _ if DEVELOPMENT.contains(&seed) => Ok(Set::Development),
            _ if TEST.contains(&seed) => Ok(Set::Test),
            _ => Err(failed(format!(
                "seed {seed}: the development set has {} to {}, the test set {} to {}",
                DEVELOPMENT.start(),
                DEVELOPMENT.end(),
                TEST.start(),
                TEST.end()
            ))),
        }
    }
}

/// A generated scenario on a kernel.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Seed of the scenario.
    pub seed: u64,
    /// The kernel.
    pub kernel: &'static str,
    /// What differs from the seed's scenario; of a member of a family.
    change: Option<(String, String)>,
    /// Where its runs are stored.
    file: PathBuf,
}

/// Runs scenarios in the lab, each into its recording: what came of each of them.
pub type EachGuest<'a> =
    dyn Fn(&[(&Scenario, PathBuf)], &LabOptions) -> Result<Vec<Result<(), mmtwin::Error>>, mmtwin::Error> + 'a;

/// A cell beside the twin.
pub struct Judged {
    /// The cell.
    pub cell: Cell,
    /// How runs ended: the kernel's, and the twin's with the same seed.
    pub ends: Vec<(End, End)>,
    /// Quantities, of runs that ended by themselves on both arms.
    pub quantities: Vec<Quantity>,
}

/// Cells of seeds on their kernels; runs are stored below `directory`.
///
/// # Errors
/// If a seed belongs to neither set.
pub fn cells(directory: &Path, seeds: &[u64]) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for &seed in seeds {
        let folder = directory.join("runs").join(Set::of(seed)?.name());
        let file = folder.join(format!("seed-{seed}.jsonl.zst"));
        let newest = seed.is_multiple_of(ON_NEWEST).then_some(NEWEST);
        let kernels = KERNELS.into_iter().chain(newest);
        cells.extend(kernels.map(|kernel| Cell { seed, kernel, change: None, file: file.clone() }));
    }
    Ok(cells)
}

/// Cells of a set of which runs are stored.
///
/// # Errors
/// If the directory cannot be read.
pub fn stored(directory: &Path, set: Set) -> Result<Vec<Cell>, Error> {
    cells(directory, &seeds_of(directory, set.name(), "seed-")?)
}

/// Seeds of which there is a file whose name begins so in a folder of the stored runs, ascending.
fn seeds_of(directory: &Path, folder: &str, prefix: &str) -> Result<Vec<u64>, Error> {
    let folder = directory.join("runs").join(folder);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|e| failed(format!("{}: {e}", folder.display())))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let seed = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(".jsonl.zst")?.parse::<u64>().ok());
        seeds.extend(seed);
    }
    seeds.sort_unstable();
    Ok(seeds)
}

/// How runs are made.
#[derive(Clone, Copy)]
pub struct Refresh<'a> {
    /// Guests at a time.
    pub jobs: usize,
    /// Run again, too, what another agent, emulator or kernel ran.
    pub outdated: bool,
    /// What a guest of a kernel is made of today.
    pub origin: &'a dyn Fn(&str) -> Result<Origin, mmtwin::Error>,
    /// Runs them.
    pub guests: &'a EachGuest<'a>,
}

/// Runs in the lab what is not stored; the number of runs that were stored.
///
/// # Errors
/// If the lab cannot run guests. What goes wrong in a guest is stored as its outcome.
pub fn refresh(cells: &[Cell], how: Refresh<'_>, note: &dyn Fn(&str)) -> Result<usize, Error> {
    let Refresh { jobs, outdated, origin, guests } = how;
    let mut missing = Vec::new();
    for cell in cells {
        let mut seeds = cell.with_runs(|runs| runs.missing(false))?;
        if outdated {
            let today = origin(cell.kernel)?;
            seeds.extend(cell.with_runs(|runs| runs.outdated(&today))?);
        }
        missing.extend(seeds.into_iter().map(|seed| (cell, seed)));
    }
    let mut kept = 0;
    for together in missing.chunks(jobs.max(1)) {
        let scratch = tempfile::tempdir()?;
        let scenarios: Vec<Scenario> =
            together.iter().map(|(cell, seed)| cell.scenario(*seed)).collect::<Result<_, _>>()?;
        let output = |number: usize| scratch.path().join(format!("{number}.mmt"));
        let runs: Vec<(&Scenario, PathBuf)> =
            scenarios.iter().enumerate().map(|(number, scenario)| (scenario, output(number))).collect();
        let (kernel, modules, mode) = (None, None, Mode::Exact);
        let options = LabOptions { kernel, modules, mode, time_out: TIME_OUT, force: false };
        for (number, outcome) in guests(&runs, &options)?.into_iter().enumerate() {
            let (cell, seed) = together[number];
            match outcome.map_err(end_of) {
                Ok(()) => cell.with_runs(|runs| runs.store(&output(number), seed))?,
                Err(Ok(end)) => {
                    let today = origin(cell.kernel)?;
                    cell.with_runs(|runs| runs.store_end(seed, today, Figures::none(end)))?;
                }
                Err(Err(error @ mmtwin::Error::Guest { source: mmtwin_lab::Error::TimeOut { .. }, .. })) => {
                    note(&format!("seed {} on {}, run {seed}: not stored: {error}", cell.seed, cell.kernel));
                    continue;
                }
                Err(Err(error)) => return Err(error.into()),
            }
            kept += 1;
        }
    }
    Ok(kept)
}

/// How a guest ended that left no recording, if that is due to the scenario and the kernel; the error otherwise. How
/// long a guest takes depends on the host.
fn end_of(error: mmtwin::Error) -> Result<End, mmtwin::Error> {
    use mmtwin_lab::Error as Lab;
    let mmtwin::Error::Guest { source, .. } = &error else { return Err(error) };
    let words = || source.to_string().lines().take(2).collect::<Vec<_>>().join(" ");
    match source {
        Lab::Refused(_) => Ok(End::Refused(words())),
        Lab::Panic { .. } | Lab::GuestMemory { .. } | Lab::Died { .. } | Lab::Workload { .. } => {
            Ok(End::Failed(words()))
        }
        _ => Err(error),
    }
}

/// What a guest without a workload counts, by kernel: of the runs of the scenario `background`.
///
/// # Errors
/// If they cannot be read.
pub fn idle(directory: &Path) -> Result<BTreeMap<String, BTreeMap<String, f64>>, Error> {
    let mut idle = BTreeMap::new();
    let exact = |cell: &OfPage| cell.name == BACKGROUND && cell.mode == Mode::Exact;
    for cell in super::cells(directory)?.iter().filter(|cell| exact(cell)) {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for ((_, name), value) in cell.observed()?.into_iter().flat_map(|run| run.values) {
            values.entry(name).or_default().push(value);
        }
        let middle = |(name, mut values): (String, Vec<f64>)| {
            values.sort_by(f64::total_cmp);
            Some((name, mmtwin_report::statistics::median(&values)?))
        };
        idle.insert(cell.kernel.clone(), values.into_iter().filter_map(middle).collect());
    }
    Ok(idle)
}

impl Cell {
    /// What a member of a family changes, as `--set` takes it. A value with a unit is a text.
    fn change(&self) -> Option<String> {
        let (key, value) = self.change.as_ref()?;
        Some(if value.contains(' ') { format!("{key}={value:?}") } else { format!("{key}={value}") })
    }

    /// Seed, kernel and tunable of a family.
    fn title(&self) -> String {
        let key = self.change.as_ref().map_or("", |(key, _)| key);
        format!("seed {} on {}, {key}", self.seed, self.kernel)
    }

    /// The scenario with a seed of its runs.
    fn scenario(&self, seed: u64) -> Result<Scenario, Error> {
        let mut sets = vec![
            format!("kernel.release={:?}", self.kernel),
            format!("machine.preset={:?}", preset(self.kernel)),
            format!("run.seed={seed}"),
        ];
        sets.extend(self.change());
        parse(&format!("seed {}", self.seed), &scenario(self.seed), Path::new(""), &sets).map_err(failed)
    }

    /// Does something with its runs.
    fn with_runs<T>(&self, work: impl FnOnce(&Runs<'_, Figures>) -> Result<T, Error>) -> Result<T, Error> {
        let scenario = |seed| self.scenario(seed);
        let keep = |_: &Path, analysed: &Analysed, scenario: &Scenario| Ok(Figures::of(analysed, scenario));
        let (kernel, mode, file) = (self.kernel, Mode::Exact, self.file.as_path());
        let change = self.change();
        let of = change.as_deref().unwrap_or(kernel);
        work(&Runs { kernel, mode, seeds: &SEEDS, scenario: &scenario, file, of, keep: &keep })
    }

    /// Puts what is stored beside the twin. `idle` is what a guest without a workload counts on this kernel.
    ///
    /// # Errors
    /// If stored runs cannot be read, or are not of today's scenario.
    pub fn judge(&self, idle: &BTreeMap<String, f64>) -> Result<Judged, Error> {
        Ok(self.judged(self.pairs()?, idle))
    }

    /// Puts the runs of the first half of the seeds beside those of the second, as if those were the twin's; `None`:
    /// fewer are stored.
    ///
    /// # Errors
    /// If stored runs cannot be read, or are not of today's scenario.
    pub fn judge_halves(&self, idle: &BTreeMap<String, f64>) -> Result<Option<Judged>, Error> {
        let mut first: Vec<Figures> = self.with_runs(|runs| runs.stored())?.into_iter().map(|run| run.kept).collect();
        if first.len() < SEEDS.len() {
            return Ok(None);
        }
        let mut second = first.split_off(SEEDS.len() / 2);
        second.iter_mut().for_each(|figures| figures.take_off(idle));
        Ok(Some(self.judged(first.into_iter().zip(second).collect(), idle)))
    }

    fn judged(&self, pairs: Vec<(Figures, Figures)>, idle: &BTreeMap<String, f64>) -> Judged {
        let ends = pairs.iter().map(|(kernel, other)| (kernel.end.clone(), other.end.clone())).collect();
        let whole = pairs.iter().filter(|(kernel, other)| kernel.end.is_whole() && other.end.is_whole());
        let (kernel, other): (Vec<&Figures>, Vec<&Figures>) = whole.map(|(kernel, other)| (kernel, other)).unzip();
        Judged { cell: self.clone(), ends, quantities: compare::compare(&kernel, &other, idle) }
    }

    /// The figures of each stored run, with those of the twin from the state of its guest.
    fn pairs(&self) -> Result<Vec<(Figures, Figures)>, Error> {
        self.with_runs(|runs| {
            let mut pairs = Vec::new();
            for stored in runs.stored()? {
                let (scenario, state) = (self.scenario(stored.seed)?, stored.state()?);
                let request = Request { state: state.as_ref(), ..Request::default() };
                let simulated = match run(&scenario, request, &mut |_| {}) {
                    Ok(simulated) => Figures::of(&simulated.analysed, &scenario),
                    Err(mmtwin::Error::Run(error)) => Figures::none(End::Refused(error.to_string())),
                    Err(error) => return Err(error.into()),
                };
                pairs.push((stored.kept, simulated));
            }
            Ok(pairs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_belong_to_one_set() {
        assert_eq!((Set::of(1).ok(), Set::of(999).ok()), (Some(Set::Development), Some(Set::Development)));
        assert_eq!(Set::of(1000).ok(), Some(Set::Test));
        let error = Set::of(2000).unwrap_err().to_string();
        assert_eq!(error, "seed 2000: the development set has 1 to 999, the test set 1000 to 1999");
    }

    #[test]
    fn a_guest_that_fails_by_itself_has_an_outcome() {
        let of = |source| end_of(mmtwin::Error::Guest { output: "x.mmt".into(), source });
        let panicked = mmtwin_lab::Error::Panic { message: "oops".into(), console: vec!["a line".into()] };
        assert_eq!(
            of(panicked).ok(),
            Some(End::Failed("the kernel panicked: oops; the console's last lines:   | a line".into()))
        );
        assert!(of(mmtwin_lab::Error::Interrupted).is_err());
        assert!(of(mmtwin_lab::Error::NoQemu).is_err());
    }

    #[test]
    fn nothing_is_stored_where_nothing_ran() {
        let directory = tempfile::tempdir().expect("directory");
        assert!(stored(directory.path(), Set::Test).expect("cells").is_empty());
        let cells = cells(directory.path(), &[4, 1002]).expect("cells");
        assert_eq!(cells.len(), 2 * KERNELS.len() + 1);
        assert!(cells[0].file.ends_with("runs/development/seed-4.jsonl.zst"));
        let refused = |runs: &[(&Scenario, PathBuf)], _: &LabOptions| {
            let one = |(_, output): &(&Scenario, PathBuf)| {
                Err(mmtwin::Error::Guest { output: output.clone(), source: mmtwin_lab::Error::Refused(Vec::new()) })
            };
            Ok(runs.iter().map(one).collect())
        };
        let of = |agent: &str| Origin { qemu: "10".into(), kernel: "6.1".into(), agent: agent.into() };
        let refreshed = |cells: &[Cell], jobs, outdated, agent| {
            let origin = |_: &str| Ok(of(agent));
            refresh(cells, Refresh { jobs, outdated, origin: &origin, guests: &refused }, &|_| {}).expect("runs")
        };
        let halves = || cells[0].judge_halves(&BTreeMap::new()).expect("runs").map(|of| of.ends.len());
        assert_eq!(halves(), None);
        assert_eq!(refreshed(&cells[..1], 3, false, "a"), SEEDS.len());
        assert_eq!(halves(), Some(SEEDS.len() / 2));
        assert_eq!(refreshed(&cells[..1], 3, false, "b"), 0, "they are stored");
        assert_eq!(refreshed(&cells[..1], 3, true, "a"), 0, "the same agent ran them");
        assert_eq!(refreshed(&cells[..1], 3, true, "b"), SEEDS.len(), "another agent");
        assert_eq!(refreshed(&cells[..1], 3, true, "b"), 0);
        assert_eq!(stored(directory.path(), Set::Development).expect("cells").len(), KERNELS.len());
        // The other kernel's runs are missing.
        assert_eq!(refreshed(&cells[..2], 1, false, "b"), SEEDS.len());
    }
}

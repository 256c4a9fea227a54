//! Stored runs of the lab, as far as something is made of them: a file for each scenario with the runs of all its seeds,
//! a line of JSON each, packed with Zstandard. Runs that are missing are recorded, and what is of use is kept.
//!
//! All runs of a scenario are much alike, so that packed together they take a tenth of what they take one by one.

use super::same;
use crate::Error;
use mmtwin::running::{LabOptions, STATE_FILES, state_of};
use mmtwin::{Analysed, Trace};
use mmtwin_analysis::Analysis;
use mmtwin_event::manifest;
use mmtwin_event::{CounterRow, Sink};
use mmtwin_lab::{Mode, Origin, guests_at_once};
use mmtwin_scenario::Scenario;
use mmtwin_trace::output::FileOutput;
use mmtwin_twin::engine::State;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Level of compression; files are packed once and small.
const LEVEL: i32 = 19;
/// Seeds of a cell.
pub const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// Longest time of a guest.
pub(super) const TIME_OUT: Duration = Duration::from_secs(600);

/// Runs scenarios in the lab, each into its recording.
type RunGuests<'a> = dyn Fn(&[(&Scenario, PathBuf)], &LabOptions) -> Result<(), mmtwin::Error> + 'a;

/// Who runs guests.
#[derive(Clone, Copy)]
pub struct Guests<'a> {
    /// Runs scenarios in the lab, each into its recording: [`mmtwin::running::on_lab`], and what a caller wants besides.
    pub run: &'a RunGuests<'a>,
    /// Takes what is worth saying meanwhile.
    pub note: &'a dyn Fn(&str),
}

/// Runs of one scenario on one kernel in one mode.
pub(super) struct Runs<'a, T> {
    pub kernel: &'a str,
    pub mode: Mode,
    /// Seeds of its runs.
    pub seeds: &'a [u64],
    /// The scenario with a seed.
    pub scenario: &'a dyn Fn(u64) -> Result<Scenario, Error>,
    /// Where the runs of the scenario are stored.
    pub file: &'a Path,
    /// Which runs of the file these are.
    pub of: &'a str,
    /// What is kept of a recording.
    pub keep: &'a dyn Fn(&Path, &Analysed, &Scenario) -> Result<T, Error>,
}

/// A run of a real kernel.
#[derive(Serialize, Deserialize)]
pub(super) struct Run<T> {
    /// Of which kernel and mode, or on which side of a change.
    of: String,
    /// Its seed.
    pub seed: u64,
    /// What ran the guest; `None`: it was run before 30 November 2026.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// The scenario as it was recorded.
    scenario: Value,
    held: Held,
    /// What it is judged by.
    pub kept: T,
}

/// The start of a line: whose it is.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Owner {
    of: String,
    seed: u64,
}

/// What the machine held when the workload began.
#[derive(Default, Serialize, Deserialize)]
struct Held {
    /// Nodes of the machine, and the node of every CPU.
    nodes: u32,
    cpu_nodes: Vec<u32>,
    /// The files that the twin reads, of a scenario that has a workload.
    state: Option<manifest::State>,
    /// The first rows of zoneinfo where there is none.
    zones: Vec<Zone>,
}

/// The first row of a zone.
#[derive(Serialize, Deserialize)]
struct Zone {
    key: String,
    at: u64,
    names: Vec<String>,
    values: Vec<Option<u64>>,
}

impl Held {
    fn of(recorded: &Analysed) -> Held {
        let source = &recorded.analysis.source;
        let state = recorded.state.clone().map(|mut state| {
            state.files.retain(|path, _| STATE_FILES.contains(&path.as_str()));
            state
        });
        let counters = &recorded.analysis.counters;
        let row = |key: &str| {
            let sampled = counters.sampled("zoneinfo", key)?;
            let (names, values) = (sampled.names.clone(), sampled.first.clone());
            Some(Zone { key: key.into(), at: sampled.first_at, names, values })
        };
        let zones = if state.is_some() {
            Vec::new()
        } else {
            counters.keys("zoneinfo").iter().filter_map(|key| row(key)).collect()
        };
        Held { nodes: source.nodes, cpu_nodes: source.cpu_nodes.clone(), state, zones }
    }
}

impl<T> Run<T> {
    /// What the machine held, for the twin to go on from.
    pub fn state(&self) -> Result<Option<State>, Error> {
        let mut analysis = Analysis::default();
        analysis.source.name = format!("{}, seed {}", self.of, self.seed);
        analysis.source.nodes = self.held.nodes;
        analysis.source.cpu_nodes = self.held.cpu_nodes.clone();
        for Zone { key, at, names, values } in &self.held.zones {
            analysis.counters(&CounterRow { source: "zoneinfo", key, names, values, at: *at });
        }
        let (state, outcome, about) = (self.held.state.clone(), Default::default(), Default::default());
        Ok(state_of(&Analysed { analysis, outcome, results: None, state, scenario: None, resolved: None, about })?)
    }
}

impl<T: Serialize + DeserializeOwned> Runs<'_, T> {
    /// Runs that are not stored, or all.
    pub fn missing(&self, again: bool) -> Result<Vec<u64>, Error> {
        let lines = lines(self.file)?;
        let stored = |seed: u64| lines.keys().any(|owner| owner.of == self.of && owner.seed == seed);
        Ok(self.seeds.iter().copied().filter(|&seed| again || !stored(seed)).collect())
    }

    /// Stored runs that another agent, emulator or kernel ran than `today`.
    pub fn outdated(&self, today: &Origin) -> Result<Vec<u64>, Error> {
        let other = |run: &Run<T>| run.origin.as_ref() != Some(today);
        Ok(self.stored()?.iter().filter(|run| other(run)).map(|run| run.seed).collect())
    }

    /// The runs that are stored, by seed. They must be of today's scenario.
    pub fn stored(&self) -> Result<Vec<Run<T>>, Error> {
        let mut runs = Vec::new();
        for (_, line) in lines(self.file)?.into_iter().filter(|(owner, _)| owner.of == self.of) {
            let run: Run<T> = serde_json::from_str(&line).map_err(|error| self.failed(error))?;
            self.check(&run.scenario, run.seed)?;
            runs.push(run);
        }
        Ok(runs)
    }

    /// Runs in the lab what is not stored, or all of it; the number of runs.
    pub fn refresh(&self, again: bool, guests: Guests<'_>) -> Result<usize, Error> {
        let (missing, scratch) = (self.missing(again)?, tempfile::tempdir()?);
        // As many as run at once: what is done is kept whatever comes then.
        for seeds in missing.chunks(guests_at_once(self.mode)) {
            for (&seed, output) in seeds.iter().zip(self.record(seeds, scratch.path(), guests)?) {
                self.store(&output, seed)?;
            }
        }
        Ok(missing.len())
    }

    /// Runs seeds in the lab; their recordings, below `directory`.
    pub fn record(&self, seeds: &[u64], directory: &Path, guests: Guests<'_>) -> Result<Vec<PathBuf>, Error> {
        let scenarios = seeds.iter().map(|&seed| (self.scenario)(seed)).collect::<Result<Vec<_>, _>>()?;
        let outputs: Vec<PathBuf> = seeds.iter().map(|seed| directory.join(format!("seed-{seed}.mmt"))).collect();
        let runs: Vec<(&Scenario, PathBuf)> = scenarios.iter().zip(outputs.iter().cloned()).collect();
        let kernel = Some(self.kernel.to_string());
        (guests.run)(&runs, &LabOptions { kernel, modules: None, mode: self.mode, time_out: TIME_OUT, force: false })?;
        Ok(outputs)
    }

    /// Analyses a recording of a seed, which must be of today's scenario.
    pub fn read(&self, recording: &Path, seed: u64) -> Result<Analysed, Error> {
        let analysed = Trace::open(recording)?.analyse(&mut |_| {})?;
        self.check(analysed.resolved.as_ref().unwrap_or_default(), seed)?;
        Ok(analysed)
    }

    /// Keeps what is of use of a recording, in the place of what was stored of its seed.
    pub fn store(&self, recording: &Path, seed: u64) -> Result<(), Error> {
        let (analysed, scenario) = (self.read(recording, seed)?, (self.scenario)(seed)?);
        let kept = (self.keep)(recording, &analysed, &scenario)?;
        let (held, origin) = (Held::of(&analysed), origin_of(recording)?);
        self.insert(Run {
            of: self.of.into(),
            seed,
            origin,
            scenario: analysed.resolved.unwrap_or_default(),
            held,
            kept,
        })
    }

    /// Keeps how a run ended that left no recording.
    pub fn store_end(&self, seed: u64, origin: Origin, kept: T) -> Result<(), Error> {
        let (scenario, held) = ((self.scenario)(seed)?.to_json(), Held::default());
        self.insert(Run { of: self.of.into(), seed, origin: Some(origin), scenario, held, kept })
    }

    fn insert(&self, run: Run<T>) -> Result<(), Error> {
        let seed = run.seed;
        let mut lines = lines(self.file)?;
        let line = serde_json::to_string(&run).map_err(|error| self.failed(error))?;
        lines.insert(Owner { of: run.of, seed }, line);
        write(self.file, lines.values())
    }

    fn check(&self, recorded: &Value, seed: u64) -> Result<(), Error> {
        let Some(change) = same::asked_of_guest(recorded, &(self.scenario)(seed)?.to_json()).into_iter().next() else {
            return Ok(());
        };
        let fix = "`mmtwin fidelity --refresh --again` records it again";
        Err(self.failed(format!("{}, seed {seed}: the scenario has changed ({change}); {fix}", self.of)))
    }

    fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::Fidelity(format!("{}: {what}", self.file.display()))
    }
}

/// What ran the guest of a recording, by its `lab.json`; `None`: it is of another arm.
fn origin_of(recording: &Path) -> Result<Option<Origin>, Error> {
    let file = recording.join("lab.json");
    if !file.exists() {
        return Ok(None);
    }
    let failed = |error: serde_json::Error| Error::Fidelity(format!("{}: {error}", file.display()));
    serde_json::from_slice(&fs::read(&file)?).map(Some).map_err(failed)
}

/// The lines of a file in the order in which they stand there; none if it is not there.
fn lines(file: &Path) -> Result<BTreeMap<Owner, String>, Error> {
    if !file.exists() {
        return Ok(BTreeMap::new());
    }
    let named = |error: std::io::Error| Error::Fidelity(format!("{}: {error}", file.display()));
    let packed = zstd::Decoder::new(File::open(file).map_err(named)?).map_err(named)?;
    let mut lines = BTreeMap::new();
    for line in BufReader::new(packed).lines() {
        let line = line.map_err(named)?;
        let owner = serde_json::from_str(&line).map_err(|error| named(error.into()))?;
        lines.insert(owner, line);
    }
    Ok(lines)
}

/// Writes a file: whole or not at all, and the same of the same lines.
fn write<'l>(file: &Path, lines: impl Iterator<Item = &'l String>) -> Result<(), Error> {
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    let output = FileOutput::open(file, true, 0o666)?;
    let mut packed = zstd::Encoder::new(output.file(), LEVEL)?;
    for line in lines {
        writeln!(packed, "{line}")?;
    }
    packed.finish()?;
    Ok(output.commit()?)
}

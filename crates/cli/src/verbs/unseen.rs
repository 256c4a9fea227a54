//! `mmtwin fidelity generate`, `run`, `test` and `search`: scenarios that a seed draws.

use super::fidelity::{FILES, PAGE};
use crate::args::{FidelityGenerate, FidelityRun, FidelitySearch, FidelityTest};
use crate::commit::commit;
use crate::lab::each_on_lab;
use crate::{Failure, parallel, say};
use mmtwin::Error;
use mmtwin::running::{LabOptions, origin};
use mmtwin_scenario::Scenario;
use mmtwin_trace::output::FileOutput;
use mmtwin_validate::fidelity::generate::scenario;
use mmtwin_validate::fidelity::unseen::search::{largest, of_development, smallest};
use mmtwin_validate::fidelity::unseen::{self, Cell, Choice, Chosen, Judged, Refresh, Set, Summary};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes the scenario of a seed.
pub fn generate(arguments: &FidelityGenerate) -> Result<i32, Failure> {
    let text = scenario(arguments.seed);
    let Some(directory) = &arguments.output else {
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(0);
    };
    std::fs::create_dir_all(directory)?;
    let file = directory.join(format!("seed-{}.toml", arguments.seed));
    FileOutput::open(&file, arguments.force, 0o666)?.write(text.as_bytes())?;
    Ok(0)
}

/// Runs scenarios in the lab.
pub fn run(arguments: &FidelityRun) -> Result<i32, Failure> {
    let (directory, seeds) = (&arguments.directory, &arguments.seeds.0);
    let cells = match arguments.families {
        true => seeds.iter().map(|&seed| unseen::family(directory, seed)).collect::<Result<Vec<_>, _>>()?.concat(),
        false => unseen::cells(directory, seeds)?,
    };
    let how = Refresh { jobs: arguments.jobs.into(), outdated: arguments.outdated, origin: &origin, guests: &guests };
    // Seed by seed, so that what is stored is said early.
    for of_seed in cells.chunk_by(|a, b| a.seed == b.seed) {
        let kept = unseen::refresh(of_seed, how, &say)?;
        say(&format!("seed {}: {kept} runs in the lab", of_seed[0].seed));
    }
    Ok(0)
}

/// What came of each guest.
fn guests(runs: &[(&Scenario, PathBuf)], options: &LabOptions) -> Result<Vec<Result<(), Error>>, Error> {
    Ok(each_on_lab(runs, options)?.into_iter().map(|outcome| outcome.map(drop)).collect())
}

/// Judges the twin by what is stored.
pub fn test(arguments: &FidelityTest) -> Result<i32, Failure> {
    let idle = unseen::idle(&arguments.directory)?;
    let judge = |cell: &Cell| Ok(cell.judge(idle.get(cell.kernel).unwrap_or(&Default::default()))?);
    let (commit, date) = commit();
    let mut summaries = Vec::new();
    let mut text = String::new();
    for set in Set::ALL.into_iter().filter(|set| !arguments.details || *set == Set::Development) {
        let cells = unseen::stored(&arguments.directory, set)?;
        if cells.is_empty() {
            continue;
        }
        let judged: Vec<Judged> = parallel::each(&cells, judge)?;
        let families = unseen::families(&arguments.directory, set)?;
        let choices = parallel::each(&families, |family| Ok(Choice::of(family)?))?;
        if arguments.details {
            text = unseen::details(&judged, &choices);
        }
        let chosen = (!choices.is_empty()).then(|| Chosen::new(&choices));
        summaries.extend(Summary::of(set, (&commit, &date), &judged, chosen));
    }
    if !arguments.details {
        let halves = |cell: &Cell| Ok(cell.judge_halves(idle.get(cell.kernel).unwrap_or(&Default::default()))?);
        let of_set = |set| unseen::stored(&arguments.directory, set);
        let cells = Set::ALL.into_iter().map(of_set).collect::<Result<Vec<_>, _>>()?.concat();
        let judged: Vec<Judged> = parallel::each(&cells, halves)?.into_iter().flatten().collect();
        summaries.extend(Summary::of_kernel((&commit, &date), &judged));
    }
    if summaries.is_empty() {
        let what = if arguments.details { "the development set" } else { "generated scenarios" };
        return Err(nothing_stored(&arguments.directory, what));
    }
    if !arguments.write_docs {
        std::io::stdout().write_all((unseen::tables(&summaries) + &text).as_bytes())?;
        return Ok(0);
    }
    let page = std::fs::read_to_string(PAGE).map_err(|e| Failure::Error(format!("{PAGE}: {e}")))?;
    let page = unseen::reopened(&page, &summaries)
        .ok_or_else(|| Failure::Error(format!("{PAGE} has no named examples: mmtwin fidelity --write-docs")))?;
    std::fs::create_dir_all(FILES)?;
    let folder = Path::new(FILES);
    FileOutput::open(&folder.join(unseen::ROWS), true, 0o666)?.write(unseen::text(&summaries).as_bytes())?;
    FileOutput::open(&folder.join(unseen::CHOICES), true, 0o666)?.write(unseen::choices(&summaries).as_bytes())?;
    FileOutput::open(PAGE.as_ref(), true, 0o666)?.write(page.as_bytes())?;
    Ok(0)
}

/// Makes a scenario smaller as long as the twin differs from the kernel.
pub fn search(arguments: &FidelitySearch) -> Result<i32, Failure> {
    if let Some(output) = &arguments.output {
        FileOutput::check(output, arguments.force)?;
    }
    arguments.seed.map_or(Ok(()), of_development)?;
    let idle = unseen::idle(&arguments.directory)?;
    let nothing = BTreeMap::new();
    let idle = |kernel: &str| idle.get(kernel).unwrap_or(&nothing);
    let mut cells = unseen::stored(&arguments.directory, Set::Development)?;
    cells.retain(|cell| arguments.seed.is_none_or(|seed| cell.seed == seed));
    if cells.is_empty() {
        return Err(nothing_stored(&arguments.directory, "the development set"));
    }
    let judged = parallel::each(&cells, |cell| Ok(cell.judge(idle(cell.kernel))?))?;
    let of = largest(&judged, arguments.quantity.as_deref())?;
    say(&format!("seed {} on {}: {} differs by {:+.1} %", of.seed, of.kernel, of.quantity, of.error));
    let text = smallest(&of, idle(of.kernel), &guests, &say)?.to_toml();
    match &arguments.output {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(output) => FileOutput::open(output, arguments.force, 0o666)?.write(text.as_bytes())?,
    }
    Ok(0)
}

fn nothing_stored(directory: &Path, what: &str) -> Failure {
    let directory = directory.display();
    Failure::Error(format!("{directory}: no runs of {what} are stored: mmtwin fidelity run --seeds 1..8"))
}

//! From an input to a report.

use crate::cli::Reading;
use crate::{Failure, progress, say};
use mmtwin_analysis::Analysis;
use mmtwin_event::Times;
use mmtwin_event::manifest::State;
use mmtwin_event::results::Results;
use mmtwin_report::model::{Finding, InputInfo, Report};
use mmtwin_report::{findings, tables};
use mmtwin_trace::Outcome;
use mmtwin_trace::input::{InputFile, Options};

impl Reading {
    /// What the arguments say of the inputs.
    pub fn options(&self) -> Result<Options, Failure> {
        let counters = match &self.counters {
            None => None,
            Some(pair) => {
                let (before, after) =
                    pair.split_once(',').ok_or_else(|| Failure::Usage("--counters: expected BEFORE,AFTER".into()))?;
                Some((before.to_string(), after.to_string()))
            }
        };
        let times = match &self.times {
            None => None,
            Some(text) => {
                let numbers: Option<Vec<f64>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
                let usable = |n: &Vec<f64>| n.iter().all(|x| x.is_finite() && *x >= 0.0);
                match numbers.filter(usable).as_deref() {
                    Some(&[user, system, elapsed]) => Some(Times { user, system, elapsed }),
                    _ => return Err(Failure::Usage("--times: expected USER,SYSTEM,ELAPSED in seconds".into())),
                }
            }
        };
        Ok(Options { counters, times, recorded: self.recorded.clone() })
    }
}

/// An input, analysed.
pub struct Analysed {
    /// All statistics.
    pub analysis: Analysis,
    /// What the reader had to say; its warnings have been printed.
    pub outcome: Outcome,
    /// What the workload of a scenario achieved.
    pub results: Option<Results>,
    /// What the machine held when the workload began.
    pub state: Option<State>,
    /// Hash of the scenario that ran.
    pub scenario: Option<String>,
    /// The scenario itself, resolved.
    pub resolved: Option<serde_json::Value>,
}

/// Opens an input. What is taken of a directory of several things is said on standard error.
pub fn open(name: &str) -> Result<InputFile, Failure> {
    let file = InputFile::open(name)?;
    if let Some(taken) = file.taken() {
        say(&format!("{name}: reading {taken}"));
    }
    Ok(file)
}

/// Reads and analyses an input. Warnings go to standard error.
pub fn analyse(name: &str, options: &Options) -> Result<Analysed, Failure> {
    let mut file = open(name)?;
    let recording = file.recording();
    let results = recording.and_then(|recording| recording.results.clone());
    let state = recording.and_then(|recording| recording.state.clone());
    let scenario = recording.and_then(|recording| recording.manifest.scenario_hash.clone());
    let resolved = recording.and_then(|recording| recording.manifest.scenario.clone());
    let input = file.input(options)?;
    let mut analysis = Analysis::default();
    let outcome = progress::shown(name, &mut analysis, |sink| input.read(sink))?;
    warn(&outcome);
    Ok(Analysed { analysis, outcome, results, state, scenario, resolved })
}

/// Most warnings of one input that are printed.
const WARNINGS: usize = 10;

/// Prints the warnings of a reader.
pub fn warn(outcome: &Outcome) {
    let warnings = outcome.warnings.list();
    for warning in warnings.iter().take(WARNINGS) {
        say(&format!("warning: {warning}"));
    }
    if let Some(more) = warnings.len().checked_sub(WARNINGS).filter(|n| *n > 0) {
        say(&format!("warning: {more} more kinds of warnings"));
    }
}

impl Analysed {
    /// All tables and findings.
    pub fn report(&self) -> Report {
        let source = &self.analysis.source;
        let (known, gaps) = self.outcome.lost_total();
        let mut reconciliation = tables::reconcile::reclaim(&self.analysis);
        reconciliation.extend(tables::reconcile::subjects(&self.analysis));
        let mut all = self.results.as_ref().map_or_else(Vec::new, tables::workload::tables);
        all.extend(tables::reclaim_tables(&self.analysis));
        all.extend(tables::subject_tables(&self.analysis));
        let mut found: Vec<Finding> =
            self.results.iter().flat_map(|results| tables::workload::findings(results, &source.name)).collect();
        found.extend(findings::of(&self.analysis));
        Report {
            input: InputInfo {
                name: source.name.clone(),
                arm: source.arm.clone(),
                kernel: source.kernel.clone(),
                lost_events: (gaps == 0).then_some(known),
                events: self.outcome.events,
                counters_only: self.outcome.events == 0
                    && (known, gaps) == (0, 0)
                    && self.analysis.recorded.is_empty()
                    && !self.analysis.counters.is_empty(),
                scenario: self.scenario.clone(),
            },
            findings: found,
            reconciliation,
            tables: all,
        }
    }
}

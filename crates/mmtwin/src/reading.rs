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
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

impl Reading {
    /// What the arguments say of the inputs.
    pub fn options(&self) -> Result<Options, Failure> {
        let counters = match &self.counters {
            None => None,
            Some(pair) => {
                let mut parts =
                    pair.as_bytes().splitn(2, |&b| b == b',').map(|part| OsStr::from_bytes(part).to_owned());
                let pair = parts.next().zip(parts.next());
                Some(pair.ok_or_else(|| Failure::Usage("--counters: expected BEFORE,AFTER".into()))?)
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
pub fn open(name: impl AsRef<OsStr>) -> Result<InputFile, Failure> {
    let file = InputFile::open(&name)?;
    if let Some(taken) = file.taken() {
        say(&format!("{}: reading {taken}", name.as_ref().to_string_lossy()));
    }
    Ok(file)
}

/// Reads and analyses an input. Warnings go to standard error.
pub fn analyse(name: impl AsRef<OsStr>, options: &Options) -> Result<Analysed, Failure> {
    let mut file = open(&name)?;
    let name = &name.as_ref().to_string_lossy();
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

/// What an input lacks, each with its place in it.
pub fn cuts(outcome: &Outcome, name: &str) -> Vec<String> {
    let inside = |cut: String| match cut.strip_prefix(name).map(|rest| rest.trim_start_matches([':', '/', ' '])) {
        Some(rest) if !rest.is_empty() => rest.to_string(),
        _ => cut,
    };
    outcome.cuts().into_iter().map(inside).collect()
}

/// An incomplete input: every sum may be too small.
fn incomplete_input(cuts: &[String], name: &str) -> Option<Finding> {
    let more = match cuts.len() {
        0 => return None,
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Some(Finding {
        key: "input_incomplete".into(),
        severity: 96,
        sentence: format!("the input is incomplete: {}{more}.", cuts[0]),
        detail: "It is not known how much is missing: sums are too small, and open intervals have no end.".into(),
        command: format!("mmtwin report {name} --table lost-events"),
    })
}

/// Why an input breaks a limit of lost events; `None`: it keeps it. A loss of unknown size breaks every limit.
pub fn too_many_lost(outcome: &Outcome, limit: u64) -> Option<String> {
    let (known, gaps) = outcome.lost_total();
    let cuts = outcome.warnings.cuts().count();
    if known <= limit && gaps == 0 && cuts == 0 {
        return None;
    }
    let gaps = if gaps > 0 { format!(" and {gaps} gaps of unknown size") } else { String::new() };
    let cut = if cuts > 0 { ", and the input is incomplete: the total is not known" } else { "" };
    Some(format!("{known} events lost{gaps}{cut}; --max-lost allows {limit}"))
}

impl Analysed {
    /// All tables and findings.
    pub fn report(&self) -> Report {
        let source = &self.analysis.source;
        let incomplete = cuts(&self.outcome, &source.name);
        let mut cross_check = tables::cross_check::reclaim(&self.analysis);
        cross_check.extend(tables::cross_check::subjects(&self.analysis));
        let mut all = self.results.as_ref().map_or_else(Vec::new, tables::workload::tables);
        all.extend(tables::reclaim_tables(&self.analysis));
        all.extend(tables::subject_tables(&self.analysis));
        let mut found: Vec<Finding> = incomplete_input(&incomplete, &source.name).into_iter().collect();
        found.extend(self.results.iter().flat_map(|results| tables::workload::findings(results, &source.name)));
        found.extend(findings::of(&self.analysis));
        Report {
            input: InputInfo {
                name: source.name.clone(),
                arm: source.arm.clone(),
                kernel: source.kernel.clone(),
                lost_events: self.outcome.lost_events(),
                lost_at_least: self.outcome.lost_total().0,
                incomplete,
                events: self.outcome.events,
                counters_only: self.outcome.events == 0
                    && self.outcome.lost_total() == (0, 0)
                    && self.analysis.recorded.is_empty()
                    && !self.analysis.counters.is_empty(),
                scenario: self.scenario.clone(),
            },
            findings: found,
            cross_check,
            tables: all,
        }
    }
}

//! `mmtwin explain`.

use super::{print, styled};
use crate::args::{Explain, Format, Printing};
use crate::{Failure, progress, reading};
use mmtwin::{Filter, Trace};
use mmtwin_analysis::explain::names::{Names, Query};
use mmtwin_analysis::explain::waiting::follow::Follow;
use mmtwin_analysis::explain::waiting::{Answer, Question, Survey};
use mmtwin_analysis::explain::{self, Chain};
use mmtwin_event::{Sink, Source};
use mmtwin_report::compare::single;
use mmtwin_report::format::chain;
use mmtwin_report::model::InputInfo;
use mmtwin_trace::Outcome;
use mmtwin_trace::input::Options;
use std::path::Path;

/// An input that is read several times.
struct Input<'a> {
    path: &'a Path,
    name: String,
    options: Options,
    filter: Filter,
    /// Hash of its scenario, and what the first reading had to say.
    scenario: Option<String>,
    outcome: Option<Outcome>,
}

impl Input<'_> {
    fn read(&mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let mut trace = match &self.outcome {
            None => reading::open_trace(self.path, &self.options)?,
            Some(_) => Trace::open_with(self.path, self.options.clone())?,
        }
        .only(self.filter.clone());
        let outcome = progress::events(&self.name, |progress| trace.read(sink, progress))?;
        if self.outcome.is_none() {
            reading::warn(&outcome);
            self.scenario = trace.recording().and_then(|recording| recording.manifest.scenario_hash.clone());
            self.outcome = Some(outcome);
        }
        Ok(())
    }

    fn error(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Error(format!("{}: {error}", self.name))
    }
}

/// Runs the verb.
pub fn run(arguments: Explain) -> Result<i32, Failure> {
    let Explain { input: path, stall, refault, oom, cgroup, page, task, group, recorded, format, window } = arguments;
    let filter = window.filter()?;
    let name = path.to_string_lossy().into_owned();
    if name == "-" {
        return Err(Failure::Usage("explain reads its input twice: specify a file, not standard input".into()));
    }
    let options = Options { recorded, ..Options::default() };
    let mut input = Input { path: &path, name, options, filter: filter.clone(), scenario: None, outcome: None };
    let question = match (stall, refault, oom, cgroup) {
        (Some(which), ..) => Question::Stall(which),
        (_, true, ..) => Question::Refault,
        (_, _, true, _) => Question::Oom,
        (.., Some(path)) => Question::Cgroup(path),
        _ => Question::Longest,
    };
    let (chains, source) = match (page.or(group.map(Query::Group)), task) {
        (Some(asked), _) => placed(&mut input, &asked)?,
        (None, Some(task)) => of_task(&mut input, &task)?,
        (None, None) => waited(&mut input, &question)?,
    };
    if format == Format::Table {
        for (i, chain) in chains.iter().enumerate() {
            styled(|style, out| {
                if i > 0 {
                    writeln!(out)?;
                }
                chain::write(chain, style, out)
            })?;
        }
        return Ok(0);
    }
    let outcome = input.outcome.unwrap_or_default();
    let info = InputInfo {
        name: source.name.clone(),
        arm: source.arm.clone(),
        kernel: source.kernel.clone(),
        lost_events: outcome.lost_events(),
        lost_at_least: outcome.lost_total().0,
        incomplete: mmtwin::cuts(&outcome, &source.name),
        events: outcome.events,
        counters_only: false,
        scenario: input.scenario,
        filter: (!filter.is_empty()).then(|| format!("only {}", filter.words())),
    };
    let command = format!("mmtwin script {}", input.name);
    let mut whole: Option<mmtwin_report::model::Report> = None;
    // The last one is that of the placement: its tables come first, the waits have names of their own.
    for chain in chains.iter().rev() {
        let mut report = mmtwin_report::explain::report(chain, info.clone(), command.clone());
        match &mut whole {
            None => whole = Some(report),
            Some(whole) => {
                report.tables.iter_mut().for_each(|table| table.name = format!("waits-{}", table.name));
                whole.tables.extend(report.tables);
                whole.findings.extend(report.findings);
            }
        }
    }
    let mut report = single(whole.unwrap_or_default());
    report.cross_check = None;
    print(&mut report, &Printing { tables: Vec::new(), format })?;
    Ok(0)
}

/// Why a page or a group is where it is.
fn placed(input: &mut Input<'_>, asked: &Query) -> Result<(Vec<Chain>, Source), Failure> {
    let mut names = Names::new(asked);
    input.read(&mut names)?;
    let subject = names.find().map_err(|e| input.error(e))?;
    // Which steps belong to the subject is known only now.
    let mut explain = explain::Explain::new(&names, subject);
    input.read(&mut explain)?;
    let chain = explain.chain();
    Ok((vec![chain], names.source))
}

/// Who waited, and why.
fn waited(input: &mut Input<'_>, question: &Question) -> Result<(Vec<Chain>, Source), Failure> {
    let mut survey = Survey::new(None);
    input.read(&mut survey)?;
    let chain = match survey.answer(question).map_err(|e| input.error(e))? {
        Answer::Chain(chain) => *chain,
        Answer::Follow(target) => {
            let mut follow = Follow::new(*target);
            input.read(&mut follow)?;
            follow.chain()
        }
    };
    Ok((vec![chain], survey.analysis.source))
}

/// The waits of a task, and where NUMA balancing put it: what is known of it, or else what is not.
fn of_task(input: &mut Input<'_>, task: &str) -> Result<(Vec<Chain>, Source), Failure> {
    let mut survey = Survey::new(Some(task));
    input.read(&mut survey)?;
    let waits = match survey.answer(&Question::Task(task.to_owned())) {
        Ok(Answer::Chain(chain)) if !chain.steps.is_empty() => Some(*chain),
        _ => None,
    };
    match placed(input, &Query::Task(task.to_owned())) {
        Ok((mut chains, source)) => {
            if waits.is_some() && chains.iter().all(|chain| chain.steps.is_empty()) {
                chains.clear();
            }
            chains.splice(0..0, waits);
            Ok((chains, source))
        }
        // Several tasks of one name have waits, but no single place.
        Err(error) => match waits {
            Some(waits) => Ok((vec![waits], survey.analysis.source)),
            None => Err(error),
        },
    }
}

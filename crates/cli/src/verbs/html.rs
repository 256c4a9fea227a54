//! `report` and `compare` with `--format html`: one file with charts over time.

use crate::args::{Compare, Report, TableStyle};
use crate::{Failure, output, progress, reading};
use mmtwin::{Analysed, Filter};
use mmtwin_analysis::series::Series;
use mmtwin_report::compare::{self, Comparison};
use mmtwin_report::fail_on::{FailOn, Outcome};
use mmtwin_report::html::{self, Run};
use mmtwin_report::model;
use mmtwin_report::screen::Subject;
use mmtwin_report::topics;
use mmtwin_trace::input::Options;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A page, and what it is about.
pub(super) struct Page {
    pub(super) html: Vec<u8>,
    /// Permissions of its file.
    pub(super) mode: u32,
    /// What `--fail-on` found.
    pub(super) outcome: Option<Outcome>,
    /// The input of a report.
    pub(super) analysed: Option<Analysed>,
}

/// Reads an input, with what happened over time.
fn read(name: &OsStr, options: &Options, filter: &Filter) -> Result<(Analysed, Series), Failure> {
    let mut trace = reading::open_trace(name, options)?.only(filter.clone());
    let name = name.to_string_lossy();
    let (analysed, series) = progress::events(&name, |progress| trace.analyse_over_time(progress))?;
    reading::warn(&analysed.outcome);
    Ok((analysed, series))
}

/// The page of a report on one input.
pub(super) fn report(arguments: &Report, fail_on: Option<&FailOn>) -> Result<Page, Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.into()));
    if arguments.keys {
        return usage("--keys is a list: --format table, json or csv");
    }
    if arguments.style == TableStyle::Historic {
        return usage("--format html has no historic layout");
    }
    refuse_topic(&arguments.inputs)?;
    let input = match arguments.inputs.as_slice() {
        [] => {
            let newest = reading::newest(Path::new("."))?;
            reading::say_newest(&newest);
            newest
        }
        [input] => input.clone(),
        _ => return usage("--format html is about one input; compare puts several side by side"),
    };
    let (analysed, series) = read(&input, &arguments.reading.options()?, &arguments.filtering.filter()?)?;
    let decide = |f: &FailOn| f.evaluate(&compare::single(analysed.quantities()));
    let outcome = fail_on.map(decide).transpose().map_err(|e| Failure::Usage(e.to_string()))?;
    let report = analysed.report();
    let comparison = chosen(compare::single(report.clone()), &arguments.printing.tables)?;
    let name = input.to_string_lossy();
    let run = Run { name: &name, subject: subject(&analysed, &report), series };
    let mut page = Vec::new();
    html::write(&format!("mmtwin report: {name}"), vec![run], &comparison, &mut page)?;
    Ok(Page { html: page, mode: output::mode_of([&input]), outcome, analysed: Some(analysed) })
}

/// The page of a comparison: of several runs of one column the first is drawn.
pub(super) fn compare(arguments: &Compare, fail_on: Option<&FailOn>) -> Result<Page, Failure> {
    refuse_topic(&arguments.inputs)?;
    let filter = arguments.filtering.filter()?;
    let (names, read) = super::compare::read(&arguments.inputs, |input| read(input, &Options::default(), &filter))?;
    let (sides, series): (Vec<Vec<_>>, Vec<Vec<_>>) = read.into_iter().map(|side| side.into_iter().unzip()).unzip();
    let drawn = series.into_iter().filter_map(|side| side.into_iter().next());
    let columns: Vec<_> = names.iter().map(String::as_str).zip(sides.iter().map(Vec::as_slice)).collect();
    let comparison = mmtwin::compare(&columns);
    let outcome = fail_on.map(|f| f.evaluate(&comparison)).transpose();
    let outcome = outcome.map_err(|e| Failure::Usage(e.to_string()))?;
    let mode = output::mode_of(comparison.inputs.iter().map(|input| &input.info.name));
    let comparison = chosen(comparison, &arguments.printing.tables)?;
    let reports: Vec<model::Report> = sides.iter().map(|side| side[0].report()).collect();
    let runs = comparison.columns.iter().zip(&sides).zip(&reports).zip(drawn);
    let runs = runs.map(|(((name, side), report), series)| {
        let subject = subject(&side[0], report);
        Run { name, subject, series }
    });
    let mut page = Vec::new();
    let title = format!("mmtwin compare: {}", comparison.columns.join(", "));
    html::write(&title, runs.collect(), &comparison, &mut page)?;
    Ok(Page { html: page, mode, outcome, analysed: None })
}

fn subject<'a>(analysed: &'a Analysed, report: &'a model::Report) -> Subject<'a> {
    Subject { analysis: &analysed.analysis, report, about: &analysed.about, chosen: None, kept: true }
}

/// Keeps the tables that are named; findings stay.
fn chosen(mut comparison: Comparison, tables: &[String]) -> Result<Comparison, Failure> {
    if tables.is_empty() {
        return Ok(comparison);
    }
    let findings = comparison.findings.clone();
    comparison.select(tables).map_err(|e| Failure::Usage(e.to_string()))?;
    Ok(Comparison { findings, ..comparison })
}

/// A page has all topics.
fn refuse_topic(inputs: &[OsString]) -> Result<(), Failure> {
    match inputs.last().and_then(|last| topics::named(last.to_str()?)) {
        Some(topic) => {
            let name = topic.name;
            Err(Failure::Usage(format!("--format html has all topics: omit {name} (a file is ./{name})")))
        }
        None => Ok(()),
    }
}

//! `mmtwin report`.

use super::{append, colour, html, reported, table_files};
use crate::args::{Format, Printing, Reading, Report, ReportFormat, ReportPrinting, TableStyle};
use crate::{Failure, output, reading, say, status, terminal};
use mmtwin::Analysed;
use mmtwin_event::Times;
use mmtwin_report::compare::{self, Comparison};
use mmtwin_report::fail_on::FailOn;
use mmtwin_report::format::{self, wrap};
use mmtwin_report::model;
use mmtwin_report::screen::{self, Subject};
use mmtwin_report::stacks;
use mmtwin_report::tables::{historic, postprocess};
use mmtwin_report::topics::{self, Topic};
use mmtwin_trace::Outcome;
use mmtwin_trace::input::Options;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Runs the verb.
pub fn run(arguments: Report) -> Result<i32, Failure> {
    arguments.output.check(arguments.printing.format, arguments.index.is_some())?;
    let printing = arguments.printing.text();
    if arguments.fleet {
        return super::fleet::run(&arguments, printing.as_ref());
    }
    let Some(printing) = printing else {
        return match arguments.printing.format {
            ReportFormat::Html => page(&arguments),
            _ => tables(&arguments),
        };
    };
    let mut text = Vec::new();
    let outcome = each(&arguments, &printing, &mut text);
    // What was read before an error is shown too; a file has all or nothing.
    if outcome.is_ok() || arguments.output.output.is_none() {
        let (mut inputs, _) = inputs_and_topic(&arguments.inputs);
        if inputs.is_empty() {
            inputs.extend(reading::newest(Path::new(".")).ok());
        }
        arguments.output.write(&text, output::mode_of(&inputs), !arguments.amount.no_pager)?;
    }
    outcome
}

/// Writes a page. Returns the exit status.
fn page(arguments: &Report) -> Result<i32, Failure> {
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose();
    let fail_on = fail_on.map_err(|e| Failure::Usage(e.to_string()))?;
    let page = html::report(arguments, fail_on.as_ref())?;
    arguments.output.write(&page.html, page.mode, false)?;
    let mut status = page.outcome.as_ref().map_or(0, reported);
    if let Some(analysed) = page.analysed {
        status = status.max(lost(&analysed, arguments.max_lost));
    }
    Ok(status)
}

/// Writes the tables of one input as a directory of files. Returns the exit status.
fn tables(arguments: &Report) -> Result<i32, Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.into()));
    if arguments.keys {
        return usage("--keys is a list: --format table, json or csv");
    }
    if arguments.style == TableStyle::Historic {
        return usage("--format arrow and parquet have no historic layout");
    }
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose();
    let fail_on = fail_on.map_err(|e| Failure::Usage(e.to_string()))?;
    let (mut inputs, topic) = inputs_and_topic(&arguments.inputs);
    check(arguments, topic)?;
    if inputs.is_empty() {
        let newest = reading::newest(Path::new("."))?;
        reading::say_newest(&newest);
        inputs.push(newest);
    }
    let [input] = inputs.as_slice() else {
        return usage("--format arrow and parquet are about one input; compare puts several side by side");
    };
    let analysed = reading::analyse_part(input, &arguments.reading.options()?, &arguments.filtering.filter()?)?;
    let outcome = fail_on.map(|f| f.evaluate(&compare::single(analysed.quantities()))).transpose();
    let outcome = outcome.map_err(|e| Failure::Usage(e.to_string()))?;
    let mut comparison = compare::single(analysed.report());
    if let Some(topic) = topic {
        comparison.select_topic(topic);
    }
    let ReportPrinting { tables, format } = &arguments.printing;
    table_files::write(comparison, tables, *format, &arguments.output, output::mode_of([input]))?;
    Ok(outcome.as_ref().map_or(0, reported).max(lost(&analysed, arguments.max_lost)))
}

/// Says that too many events were lost, if there is a limit. Returns the exit status.
fn lost(analysed: &Analysed, limit: Option<u64>) -> i32 {
    let Some(why) = limit.and_then(|limit| too_many_lost(&analysed.outcome, limit)) else { return 0 };
    say(&format!("{}: {why}", analysed.analysis.source.name));
    status::LOST
}

/// Appends the reports of all inputs. Returns the exit status.
fn each(arguments: &Report, printing: &Printing, text: &mut Vec<u8>) -> Result<i32, Failure> {
    let options = arguments.reading.options()?;
    let filter = arguments.filtering.filter()?;
    let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose().map_err(|e| usage(&e))?;
    let (mut inputs, topic) = inputs_and_topic(&arguments.inputs);
    check(arguments, topic)?;
    if arguments.keys {
        return super::keys::list(&inputs, topic, &options, arguments.amount.all, printing.format, text);
    }
    let chosen = if inputs.is_empty() {
        let newest = reading::newest(Path::new("."))?;
        if arguments.amount.all || topic.is_some() || !people(printing) {
            reading::say_newest(&newest);
        }
        inputs.push(newest);
        Some("newest recording here")
    } else {
        None
    };
    let mut status = 0;
    for name in &inputs {
        let analysed = reading::analyse_part(name, &options, &filter)?;
        let report = analysed.report();
        // A screen is made of the report itself.
        let of_screen = (people(printing) && !arguments.amount.all && topic.is_none()).then(|| report.clone());
        let mut comparison = compare::single(report);
        let decide = |f: &FailOn| f.evaluate(&compare::single(analysed.quantities()));
        let outcome = fail_on.as_ref().map(decide).transpose().map_err(|e| usage(&e))?;
        match (arguments.style, topic, &of_screen) {
            (TableStyle::Historic, ..) => print_historic(&analysed, &printing.tables, text)?,
            (_, Some(topic), _) => {
                comparison.select_topic(topic);
                match printing.format {
                    Format::Table if topic.name == topics::STACKS && !arguments.amount.all => {
                        let width = terminal::screen_width().max(screen::NARROWEST);
                        let lines = stacks::lines(&analysed.analysis, &name.to_string_lossy(), width);
                        lines.iter().try_for_each(|line| writeln!(text, "{line}"))?;
                    }
                    Format::Table if !arguments.amount.all => for_people(comparison, text)?,
                    _ => append(&mut comparison, printing, text)?,
                }
            }
            (_, None, Some(report)) => {
                let (analysis, about) = (&analysed.analysis, &analysed.about);
                one_screen(&Subject { analysis, report, about, chosen, kept: true }, text);
            }
            (_, None, None) => append(&mut comparison, printing, text)?,
        }
        if let Some(outcome) = outcome {
            status = status.max(reported(&outcome));
        }
        status = status.max(lost(&analysed, arguments.max_lost));
    }
    Ok(status)
}

/// Whether the report is for people: text, and no table of their choice.
fn people(printing: &Printing) -> bool {
    printing.format == Format::Table && printing.tables.is_empty()
}

/// Appends one screen, after a blank line if it is not the first.
pub(super) fn one_screen(subject: &Subject<'_>, text: &mut Vec<u8>) {
    if !text.is_empty() {
        text.push(b'\n');
    }
    let style = format::Style { width: terminal::screen_width(), colour: colour(), ..format::Style::default() };
    for line in screen::lines(subject, &style) {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
}

/// Appends tables for people, and what was omitted of them.
pub(super) fn for_people(mut comparison: Comparison, text: &mut Vec<u8>) -> Result<(), Failure> {
    let nothing = comparison.findings.is_none() && comparison.cross_check.is_none();
    let omitted = comparison.for_people();
    let width = terminal::screen_width().max(screen::NARROWEST);
    let style = format::Style { width, colour: colour(), rows: usize::MAX, brief: false, people: true };
    format::write(&comparison, format::Format::Table, &style, text)?;
    if nothing && comparison.tables.is_empty() {
        writeln!(text, "\nNothing was recorded of it, or nothing happened.")?;
    }
    if let Some(line) = omitted.line() {
        writeln!(text)?;
        wrap(&line, width).iter().try_for_each(|line| writeln!(text, "{line}"))?;
    }
    Ok(())
}

/// The inputs, and the topic if the last argument is the name of one.
fn inputs_and_topic(arguments: &[OsString]) -> (Vec<OsString>, Option<&'static Topic>) {
    let topic = arguments.last().and_then(|last| topics::named(last.to_str()?));
    let inputs = &arguments[..arguments.len() - usize::from(topic.is_some())];
    (inputs.to_vec(), topic)
}

/// Refuses what cannot be combined.
fn check(arguments: &Report, topic: Option<&Topic>) -> Result<(), Failure> {
    let Some(topic) = topic else { return Ok(()) };
    let name = topic.name;
    if !arguments.printing.tables.is_empty() {
        return Err(Failure::Usage(format!("topic {name} and --table: specify one of them (a file is ./{name})")));
    }
    if arguments.style == TableStyle::Historic {
        return Err(Failure::Usage(format!("topic {name} has no historic layout (a file is ./{name})")));
    }
    Ok(())
}

/// Why an input breaks a limit of lost events; `None`: it keeps it. A loss of unknown size breaks every limit.
fn too_many_lost(outcome: &Outcome, limit: u64) -> Option<String> {
    let (known, gaps) = outcome.lost_total();
    let cuts = outcome.warnings.cuts().count();
    if known <= limit && gaps == 0 && cuts == 0 {
        return None;
    }
    let gaps = if gaps > 0 { format!(" and {gaps} gaps of unknown size") } else { String::new() };
    let cut = if cuts > 0 { ", and the input is incomplete: the total is not known" } else { "" };
    Some(format!("{known} events lost{gaps}{cut}; --max-lost allows {limit}"))
}

/// The blocks of the published reports, and the kernel's post-processing script's output.
fn print_historic(analysed: &Analysed, tables: &[String], out: &mut Vec<u8>) -> Result<(), Failure> {
    let report: model::Report = analysed.report();
    let name = report.input.kernel.as_deref().unwrap_or(&report.input.name);
    if let Some(wanted) = tables.iter().find(|t| !historic::has(t) && *t != POSTPROCESS) {
        return Err(Failure::Usage(format!("table {wanted} has no historic layout")));
    }
    let wanted = |table: &str| tables.is_empty() || tables.iter().any(|t| t == table);
    for table in report.tables.iter().filter(|t| wanted(&t.name)) {
        if let Some(block) = historic::print(&[(name, table)]) {
            writeln!(out, "{block}")?;
        }
    }
    if wanted(POSTPROCESS) {
        write!(out, "{}", postprocess::print(&analysed.analysis))?;
    }
    Ok(())
}

/// Name of the post-processing script's output among the historic layouts.
const POSTPROCESS: &str = "postprocess";

impl Reading {
    /// What the arguments say of the inputs.
    pub(super) fn options(&self) -> Result<Options, Failure> {
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

//! `mmtwin compare`.

use super::report::for_people;
use super::{append, colour, html, reported, table_files};
use crate::args::{Compare, Format, ReportFormat, ReportPrinting, TableStyle};
use crate::{Failure, output, reading, terminal};
use mmtwin::{Analysed, running};
use mmtwin_report::column::ColumnArgument;
use mmtwin_report::compare::{Comparison, JoinedBody, JoinedTable};
use mmtwin_report::fail_on::FailOn;
use mmtwin_report::format;
use mmtwin_report::side_by_side::{self, Subject};
use mmtwin_report::tables::historic;
use mmtwin_report::topics;
use mmtwin_trace::input::Options;
use mmtwin_validate::fidelity;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Runs the verb.
pub fn run(arguments: Compare) -> Result<i32, Failure> {
    let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose().map_err(|e| usage(&e))?;
    let filter = arguments.filtering.filter()?;
    let topic = arguments.inputs.last().and_then(|last| topics::named(last.to_str()?));
    let inputs = &arguments.inputs[..arguments.inputs.len() - usize::from(topic.is_some())];
    if inputs.len() < 2 {
        return Err(Failure::Usage("compare needs two inputs: the baseline, and what is compared with it".into()));
    }
    if let Some(topic) = topic.filter(|_| !arguments.printing.tables.is_empty()) {
        let name = topic.name;
        return Err(Failure::Usage(format!("topic {name} and --table: specify one of them (a file is ./{name})")));
    }
    if arguments.style == TableStyle::Historic {
        check_historic(&arguments, topic.map(|topic| topic.name))?;
    }
    arguments.output.check(arguments.printing.format, false)?;
    if arguments.printing.format == ReportFormat::Html {
        let page = html::compare(&arguments, fail_on.as_ref())?;
        arguments.output.write(&page.html, page.mode, false)?;
        return Ok(page.outcome.as_ref().map_or(0, reported));
    }
    let (names, sides) = read(inputs, |input| reading::analyse_part(input, &Options::default(), &filter))?;
    let columns: Vec<_> = names.iter().map(String::as_str).zip(sides.iter().map(Vec::as_slice)).collect();
    let mut comparison = mmtwin::compare(&columns);
    let outcome = fail_on.map(|f| f.evaluate(&comparison)).transpose().map_err(|e| usage(&e))?;
    let mode = output::mode_of(comparison.inputs.iter().map(|input| &input.info.name));
    if arguments.style == TableStyle::Historic {
        let text = historic::of_comparison(&comparison, &arguments.printing.tables);
        arguments.output.write(text.as_bytes(), mode, !arguments.amount.no_pager)?;
        return Ok(outcome.map_or(0, |outcome| reported(&outcome)));
    }
    let Some(printing) = arguments.printing.text() else {
        match topic {
            Some(topic) => comparison.select_topic(topic),
            None => add_fidelity(&mut comparison, &sides)?,
        }
        let ReportPrinting { tables, format } = &arguments.printing;
        table_files::write(comparison, tables, *format, &arguments.output, mode)?;
        return Ok(outcome.map_or(0, |outcome| reported(&outcome)));
    };
    let people = printing.format == Format::Table && printing.tables.is_empty();
    let mut text = Vec::new();
    match topic {
        None if people && !arguments.amount.all => {
            let aside = running::state_of_the_lab(&columns);
            let subject = Subject { comparison: &comparison, command: &command(inputs), aside: aside.as_deref() };
            screen(&subject, &mut text);
        }
        None => {
            add_fidelity(&mut comparison, &sides)?;
            append(&mut comparison, &printing, &mut text)?;
        }
        Some(topic) => {
            // The overview stays for the heading.
            let whole = comparison.clone();
            comparison.select_topic(topic);
            match people && !arguments.amount.all {
                true => {
                    let aside = running::state_of_the_lab(&columns);
                    let subject = Subject { comparison: &whole, command: "", aside: aside.as_deref() };
                    of_topic(&subject, comparison, &mut text)?;
                }
                false => append(&mut comparison, &printing, &mut text)?,
            }
        }
    }
    arguments.output.write(&text, mode, !arguments.amount.no_pager)?;
    Ok(outcome.map_or(0, |outcome| reported(&outcome)))
}

/// Refuses what has no historic layout.
fn check_historic(arguments: &Compare, topic: Option<&str>) -> Result<(), Failure> {
    if let Some(name) = topic {
        return Err(Failure::Usage(format!("topic {name} has no historic layout (a file is ./{name})")));
    }
    if arguments.printing.format != ReportFormat::Table {
        return Err(Failure::Usage("--style historic is text: it has no other --format".into()));
    }
    match arguments.printing.tables.iter().find(|table| !historic::has(table)) {
        Some(table) => Err(Failure::Usage(format!("table {table} has no historic layout"))),
        None => Ok(()),
    }
}

/// Reads all inputs of the columns. Returns the columns' names and what was read of each.
pub(super) fn read<T>(
    columns: &[OsString],
    one: impl Fn(&OsStr) -> Result<T, Failure>,
) -> Result<(Vec<String>, Vec<Vec<T>>), Failure> {
    let (mut names, mut sides) = (Vec::new(), Vec::new());
    for argument in columns {
        let column = ColumnArgument::parse(argument, |name| Path::new(name).exists())
            .map_err(|e| Failure::Usage(e.to_string()))?;
        sides.push(column.inputs.iter().map(|input| one(input)).collect::<Result<_, _>>()?);
        names.push(column.name);
    }
    Ok((names, sides))
}

/// Appends the tables of a topic: side by side what can be, then lists of each input.
fn of_topic(subject: &Subject<'_>, mut comparison: Comparison, text: &mut Vec<u8>) -> Result<(), Failure> {
    let style = format::Style { width: terminal::screen_width(), colour: colour(), ..format::Style::default() };
    let mut lines = side_by_side::heading(subject, &style);
    let tables = side_by_side::tables(&comparison, &style);
    lines.extend([String::new()].into_iter().chain(tables));
    for line in lines {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    comparison.tables.retain(|table| matches!(table.body, JoinedBody::Single { .. }));
    comparison.inputs.iter_mut().for_each(|input| input.info.name = subject.comparison.columns[input.column].clone());
    let mut told = comparison.clone();
    told.for_people();
    if told.tables.is_empty() && told.findings.is_none() && told.cross_check.is_none() {
        return Ok(());
    }
    text.push(b'\n');
    for_people(comparison, text)
}

/// The tables of a twin beside a kernel, first.
fn add_fidelity(comparison: &mut Comparison, sides: &[Vec<Analysed>]) -> Result<(), Failure> {
    let Some(fidelity) = fidelity::of_sides(sides)? else { return Ok(()) };
    let curves = Some(fidelity.curve_table()).filter(|_| !fidelity.curves.is_empty());
    let joined = [fidelity.table()].into_iter().chain(curves).map(|table| JoinedTable {
        name: table.name,
        title: table.title,
        note: table.note,
        body: JoinedBody::Single { input: 0, body: table.body },
    });
    comparison.tables.splice(0..0, joined);
    Ok(())
}

/// The command with its inputs, for a line that names a topic behind it.
fn command(inputs: &[OsString]) -> String {
    let inputs: Vec<_> = inputs.iter().map(|input| input.to_string_lossy()).collect();
    format!("mmtwin compare {}", inputs.join(" "))
}

/// Appends one screen.
pub(super) fn screen(subject: &Subject<'_>, text: &mut Vec<u8>) {
    let style = format::Style { width: terminal::screen_width(), colour: colour(), ..format::Style::default() };
    for line in side_by_side::lines(subject, &style) {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
}

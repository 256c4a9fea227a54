//! One thin file per verb.

pub mod bench;
pub mod calibrate;
pub mod compare;
pub mod convert;
pub mod definitions;
pub mod doctor;
pub mod explain;
pub mod fidelity;
mod fleet;
mod flight;
mod html;
mod keys;
mod openmetrics;
pub mod record;
pub mod reference;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scenario;
mod scenario_new;
pub mod script;
pub mod scrub;
pub mod serve;
pub mod snap;
pub mod sweep;
mod sweep_ray;
pub mod table_files;
pub mod top;
mod unseen;

use crate::args::{Format, Printing};
use crate::{Failure, say, status, terminal};
use mmtwin_report::compare::{Comparison, FINDINGS, single};
use mmtwin_report::fail_on::Outcome;
use mmtwin_report::format;
use mmtwin_report::model::{Cell, Column, Finding, InputInfo, Report, Table};
use std::io::Write;

/// Prints a comparison as the arguments say.
fn print(comparison: &mut Comparison, printing: &Printing) -> Result<(), Failure> {
    let (format, brief, rows) = chosen_tables(comparison, printing)?;
    styled(|style, out| format::write(comparison, format, &format::Style { brief, rows, ..*style }, out))
}

/// The same, appended to a text.
fn append(comparison: &mut Comparison, printing: &Printing, text: &mut Vec<u8>) -> Result<(), Failure> {
    let (format, brief, rows) = chosen_tables(comparison, printing)?;
    let style = format::Style { width: terminal::width(), colour: colour(), brief, rows, people: false };
    Ok(format::write(comparison, format, &style, text)?)
}

/// Keeps the tables that the arguments name. Gives the format, whether to be brief, and the rows printed of a table.
fn chosen_tables(comparison: &mut Comparison, printing: &Printing) -> Result<(format::Format, bool, usize), Failure> {
    if !printing.tables.is_empty() {
        comparison.select(&printing.tables).map_err(|e| Failure::Usage(e.to_string()))?;
    }
    let format = match printing.format {
        Format::Table => format::Format::Table,
        Format::Json => format::Format::Json,
        Format::Csv => format::Format::Csv,
    };
    // Whoever names a table wants all of it.
    let brief = printing.tables.is_empty();
    Ok((format, brief, if brief { format::Style::default().rows } else { usize::MAX }))
}

/// Whether standard output shows colours.
fn colour() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// Writes text to standard output, in its width and colours.
fn styled(write: impl FnOnce(&format::Style, &mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let out = anstream::AutoStream::auto(std::io::stdout());
    let colour = out.current_choice() != anstream::ColorChoice::Never;
    let style = format::Style { width: terminal::width(), colour, ..format::Style::default() };
    // Styled text passes through the stream, which strips the styles where they are not wanted; buffered, because
    // rows are written in pieces.
    let mut out = std::io::BufWriter::new(out);
    write(&style, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Prints what `--fail-on` found. Returns the exit status.
fn reported(outcome: &Outcome) -> i32 {
    for row in &outcome.undecided {
        say(&format!("--fail-on: undecided: {row}"));
    }
    for row in &outcome.matched {
        say(&format!("--fail-on: {row}"));
    }
    if outcome.matched.is_empty() { 0 } else { status::COMPARISON }
}

/// Prints tables about this machine as the arguments say, after what must be known beforehand.
fn print_machine(tables: Vec<Table>, finding: Option<Finding>, printing: &Printing) -> Result<i32, Failure> {
    let input = InputInfo { name: "this machine".into(), arm: "host".into(), ..InputInfo::default() };
    print_tables(input, tables, finding.into_iter().collect(), printing)
}

/// Prints tables of one origin that is no trace, after what must be known beforehand.
fn print_tables(
    input: InputInfo,
    tables: Vec<Table>,
    findings: Vec<Finding>,
    printing: &Printing,
) -> Result<i32, Failure> {
    let nothing_to_say = findings.is_empty();
    let mut comparison = single(Report { input, findings, tables, ..Report::default() });
    if printing.format == Format::Table {
        // There is only one origin, and its counts of events would mean nothing.
        comparison.inputs.clear();
        if nothing_to_say {
            comparison.findings = None;
        }
    }
    let mut printing = printing.clone();
    if printing.tables.is_empty() {
        // All of it: what was measured is not abridged.
        printing.tables = comparison.tables.iter().map(|table| table.name.clone()).collect();
        printing.tables.push(FINDINGS.into());
    }
    print(&mut comparison, &printing)?;
    Ok(0)
}

/// A column of a list.
fn column(key: &str, label: &str, unit: &'static str) -> Column {
    Column { key: key.into(), label: label.into(), unit }
}

/// A word as a cell.
fn text(word: &str) -> Cell {
    Cell::Text(word.into())
}

/// True if `name` matches one of the patterns `EVENT` or `SYSTEM:EVENT`, or if there are none.
fn chosen(patterns: &[String], system: &str, name: &str) -> bool {
    use mmtwin_event::words::glob;
    let full = format!("{system}:{name}");
    patterns.is_empty() || patterns.iter().any(|p| glob(p, name) || glob(p, &full))
}

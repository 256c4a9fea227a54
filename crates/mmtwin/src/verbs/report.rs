//! `mmtwin report`.

use super::{print, reported};
use crate::cli::{Report, TableStyle};
use crate::reading::{self, Analysed};
use crate::{Failure, say, status};
use mmtwin_report::compare;
use mmtwin_report::fail_on::FailOn;
use mmtwin_report::tables::{historic, postprocess};
use std::io::Write;

/// Runs the verb.
pub fn run(arguments: Report) -> Result<i32, Failure> {
    let options = arguments.reading.options()?;
    let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose().map_err(|e| usage(&e))?;
    let mut status = 0;
    for name in &arguments.inputs {
        let analysed = reading::analyse(name, &options)?;
        let mut report = compare::single(analysed.report());
        let outcome = fail_on.as_ref().map(|f| f.evaluate(&report)).transpose().map_err(|e| usage(&e))?;
        match arguments.style {
            TableStyle::Modern => print(&mut report, &arguments.printing)?,
            TableStyle::Historic => print_historic(&analysed, &arguments.printing.tables)?,
        }
        if let Some(outcome) = outcome {
            status = status.max(reported(&outcome));
        }
        if let Some(why) = arguments.max_lost.and_then(|limit| reading::too_many_lost(&analysed.outcome, limit)) {
            say(&format!("{}: {why}", name.to_string_lossy()));
            status = status::LOST;
        }
    }
    Ok(status)
}

/// The blocks of the published reports, and the kernel's post-processing script's output.
fn print_historic(analysed: &Analysed, tables: &[String]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let report = analysed.report();
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

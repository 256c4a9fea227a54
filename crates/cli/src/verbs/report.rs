//! `mmtwin report`.

use super::{print, reported};
use crate::args::{Reading, Report, TableStyle};
use crate::{Failure, reading, say, status};
use mmtwin::Analysed;
use mmtwin_event::Times;
use mmtwin_report::compare;
use mmtwin_report::fail_on::FailOn;
use mmtwin_report::tables::{historic, postprocess};
use mmtwin_trace::Outcome;
use mmtwin_trace::input::Options;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

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
        if let Some(why) = arguments.max_lost.and_then(|limit| too_many_lost(&analysed.outcome, limit)) {
            say(&format!("{}: {why}", name.to_string_lossy()));
            status = status::LOST;
        }
    }
    Ok(status)
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

impl Reading {
    /// What the arguments say of the inputs.
    fn options(&self) -> Result<Options, Failure> {
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

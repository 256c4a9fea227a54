//! `mmtwin compare`.

use super::{print, reported};
use crate::cli::Compare;
use crate::{Failure, fidelity, reading};
use mmtwin_report::column::ColumnArgument;
use mmtwin_report::compare;
use mmtwin_report::fail_on::FailOn;
use mmtwin_report::tables;
use mmtwin_trace::input::Options;
use std::path::Path;

/// Runs the verb.
pub fn run(arguments: Compare) -> Result<i32, Failure> {
    let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose().map_err(|e| usage(&e))?;
    let (mut columns, mut sides) = (Vec::new(), Vec::new());
    for argument in &arguments.inputs {
        let column = ColumnArgument::parse(argument, |name| Path::new(name).exists()).map_err(|e| usage(&e))?;
        let (mut reports, mut side) = (Vec::new(), Vec::new());
        for input in &column.inputs {
            let analysed = reading::analyse(input, &Options::default())?;
            let mut report = analysed.report();
            // Lists of two inputs cannot be put side by side; their totals can.
            report.tables.extend(tables::reclaim::per_context(&analysed.analysis));
            reports.push(report);
            side.push(analysed);
        }
        columns.push((column.name, reports));
        sides.push(side);
    }
    if let Some(fidelity) = fidelity::of_sides(&sides)?
        && let Some(report) = columns.first_mut().and_then(|(_, reports)| reports.first_mut())
    {
        let curves = Some(fidelity.curve_table()).filter(|_| !fidelity.curves.is_empty());
        report.tables.splice(0..0, [fidelity.table()].into_iter().chain(curves));
    }
    let mut comparison = compare::compare(columns);
    let outcome = fail_on.map(|f| f.evaluate(&comparison)).transpose().map_err(|e| usage(&e))?;
    print(&mut comparison, &arguments.printing)?;
    Ok(outcome.map_or(0, |outcome| reported(&outcome)))
}

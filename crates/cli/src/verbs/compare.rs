//! `mmtwin compare`.

use super::{print, reported};
use crate::args::Compare;
use crate::{Failure, reading};
use mmtwin::Analysed;
use mmtwin_report::column::ColumnArgument;
use mmtwin_report::compare::{JoinedBody, JoinedTable};
use mmtwin_report::fail_on::FailOn;
use mmtwin_trace::input::Options;
use mmtwin_validate::fidelity;
use std::path::Path;

/// Runs the verb.
pub fn run(arguments: Compare) -> Result<i32, Failure> {
    let usage = |e: &dyn std::fmt::Display| Failure::Usage(e.to_string());
    let fail_on = arguments.fail_on.as_deref().map(FailOn::parse).transpose().map_err(|e| usage(&e))?;
    let filter = arguments.filtering.filter()?;
    let (mut names, mut sides) = (Vec::new(), Vec::new());
    for argument in &arguments.inputs {
        let column = ColumnArgument::parse(argument, |name| Path::new(name).exists()).map_err(|e| usage(&e))?;
        let side = column.inputs.iter().map(|input| reading::analyse_part(input, &Options::default(), &filter));
        sides.push(side.collect::<Result<Vec<Analysed>, _>>()?);
        names.push(column.name);
    }
    let fidelity = fidelity::of_sides(&sides)?;
    let columns: Vec<_> = names.iter().map(String::as_str).zip(sides.iter().map(Vec::as_slice)).collect();
    let mut comparison = mmtwin::compare(&columns);
    if let Some(fidelity) = fidelity {
        let curves = Some(fidelity.curve_table()).filter(|_| !fidelity.curves.is_empty());
        let joined = [fidelity.table()].into_iter().chain(curves).map(|table| JoinedTable {
            name: table.name,
            title: table.title,
            note: table.note,
            body: JoinedBody::Single { input: 0, body: table.body },
        });
        comparison.tables.splice(0..0, joined);
    }
    let outcome = fail_on.map(|f| f.evaluate(&comparison)).transpose().map_err(|e| usage(&e))?;
    print(&mut comparison, &arguments.printing)?;
    Ok(outcome.map_or(0, |outcome| reported(&outcome)))
}

//! `mmtwin doctor`.

use super::print;
use crate::Failure;
use crate::cli::{Doctor, Format, Printing};
use mmtwin_host::doctor::{Status, examine};
use mmtwin_report::compare;
use mmtwin_report::model::{Body, Cell, Column, InputInfo, Report, Table};

/// Runs the verb.
pub fn run(arguments: Doctor) -> Result<i32, Failure> {
    let text = |t: &str| Cell::Text(t.into());
    let rows = examine().into_iter().map(|check| {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        };
        let cure = text(check.cure.as_deref().unwrap_or_default());
        vec![text(check.group), text(&check.name), text(status), text(&check.found), cure]
    });
    let column = |key: &str, label: &str| Column { key: key.into(), label: label.into(), unit: "" };
    let columns =
        [("group", "Of"), ("name", "What"), ("status", "Status"), ("found", "Found"), ("cure", "Smallest cure")];
    let table = Table {
        name: "doctor".into(),
        title: "What this machine allows".into(),
        note: String::new(),
        body: Body::List { columns: columns.map(|(k, l)| column(k, l)).into(), rows: rows.collect() },
    };
    let input = InputInfo { name: "this machine".into(), arm: "host".into(), ..InputInfo::default() };
    let report = Report { input, tables: vec![table], ..Report::default() };
    let mut comparison = compare::single(report);
    if arguments.format == Format::Table {
        // There is only one machine to ask, and its counts of events would mean nothing.
        comparison.inputs.clear();
    }
    print(&mut comparison, &Printing { tables: vec!["doctor".into()], format: arguments.format })?;
    Ok(0)
}

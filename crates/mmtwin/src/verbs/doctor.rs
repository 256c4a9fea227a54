//! `mmtwin doctor`.

use super::print;
use crate::Failure;
use crate::cli::{Doctor, Printing};
use mmtwin_host::doctor::{Status, examine};
use mmtwin_report::compare;
use mmtwin_report::model::{Body, Cell, Column, InputInfo, Na, Report, Table};

/// Runs the verb.
pub fn run(arguments: Doctor) -> Result<i32, Failure> {
    let text = |t: &str| Cell::Text(t.into());
    let rows = examine().into_iter().map(|check| {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        };
        let cure = check.cure.as_deref().map_or(Cell::Na(Na::NotRecorded), text);
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
    print(&mut compare::single(report), &Printing { tables: Vec::new(), format: arguments.format })?;
    Ok(0)
}

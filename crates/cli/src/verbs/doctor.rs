//! `mmtwin doctor`.

use super::{column, print_machine, text};
use crate::args::{Doctor, Printing};
use crate::{Failure, say};
use mmtwin_host::doctor::{Status, examine};
use mmtwin_host::restore;
use mmtwin_report::model::{Body, Table};

/// Runs the verb.
pub fn run(arguments: Doctor) -> Result<i32, Failure> {
    // What runs left that were killed is no state of the machine to describe.
    restore::recover(&mut say);
    restore::remove_instances(&mut say);
    let rows = examine().into_iter().map(|check| {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        };
        let fix = text(check.fix.as_deref().unwrap_or_default());
        vec![text(check.group), text(&check.name), text(status), text(&check.found), fix]
    });
    let lab = mmtwin_lab::doctor(&mmtwin_lab::Folder::find()).into_iter().map(|check| {
        let status = if check.works { "ok" } else { "missing" };
        let fix = text(check.fix.as_deref().unwrap_or_default());
        vec![text("lab"), text(&check.name), text(status), text(&check.found), fix]
    });
    let rows = rows.chain(lab);
    let columns =
        [("group", "Group"), ("name", "Feature"), ("status", "Status"), ("found", "Found"), ("fix", "Suggested fix")];
    let table = Table {
        name: "doctor".into(),
        title: "Support on this machine".into(),
        note: String::new(),
        body: Body::List { columns: columns.map(|(k, l)| column(k, l, "")).into(), rows: rows.collect() },
    };
    print_machine(vec![table], None, &Printing { tables: vec!["doctor".into()], format: arguments.format })
}

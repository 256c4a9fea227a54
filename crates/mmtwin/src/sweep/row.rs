//! A run as a row: how it ended, and every quantity of it.

use crate::Simulated;
use mmtwin_event::results::Ending;
use mmtwin_event::words::glob;
use mmtwin_report::model::{Body, Report};
use mmtwin_report::quantities;
use mmtwin_report::sweep::{Number, Quantity, Status};
use mmtwin_report::topics::HISTORIC;
use std::collections::HashSet;

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// How it ended.
    pub status: Status,
    /// Why it ended before its end; `None`: it did not.
    pub reason: Option<String>,
    /// Worst first: key and sentence.
    pub findings: Vec<(String, String)>,
    /// What is known of it, in the order of its tables.
    pub values: Vec<(Quantity, Number)>,
}

impl Ran {
    /// A run that could not be run, and why: the same sweep tries it again.
    pub fn failed(reason: String) -> Ran {
        Ran { status: Status::Failed, reason: Some(reason), findings: Vec::new(), values: Vec::new() }
    }
}

/// A run that has ended.
pub(super) fn ran(simulated: &Simulated) -> Ran {
    let analysed = &simulated.analysed;
    let results = &simulated.ran.results;
    let (status, reason) = match &results.ending {
        Ending::Completed => (Status::Completed, None),
        Ending::TimeUp => (Status::TimeUp, None),
        Ending::OutOfMemory { at, pid, comm, message } => {
            let after = results.seconds_to(*at);
            (Status::OutOfMemory, Some(format!("{comm} (pid {pid}) was killed after {after:.3} s: {message}")))
        }
        Ending::Stopped { message, .. } => (Status::Stopped, Some(message.clone())),
    };
    let mut report = analysed.quantities();
    report.tables.extend(quantities::of_nodes_and_zones(&analysed.analysis));
    let findings = report.findings.iter().map(|finding| (finding.key.clone(), finding.sentence.clone())).collect();
    Ran { status, reason, findings, values: values(&report) }
}

/// Every known quantity, each key once, without those of published reports, which have the same in other units.
fn values(report: &Report) -> Vec<(Quantity, Number)> {
    let (mut seen, mut values) = (HashSet::new(), Vec::new());
    let current = |name: &str| !HISTORIC.iter().any(|pattern| glob(pattern, name));
    for table in report.tables.iter().filter(|table| current(&table.name)) {
        let Body::Metric(rows) = &table.body else { continue };
        for row in rows {
            let Some(number) = Number::of(&row.value) else { continue };
            let key = quantities::key(&table.name, &row.key);
            if seen.insert(key.clone()) {
                let (label, unit, better) = (row.label.clone(), row.unit.to_string(), row.better);
                values.push((Quantity { key, label, unit, better }, number));
            }
        }
    }
    values
}

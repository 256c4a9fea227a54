//! The findings of an analysis as a report shows them.

use crate::model::Finding;
use mmtwin_analysis::Analysis;

/// All findings, worst first, each with the command that shows more of this input.
pub fn of(analysis: &Analysis) -> Vec<Finding> {
    let found = mmtwin_analysis::findings::all(analysis).into_iter();
    let converted = found.map(|f| Finding {
        key: f.key.into(),
        severity: f.severity,
        command: f.command(&analysis.source.name),
        sentence: f.sentence,
        detail: f.detail,
        cost: f.cost,
        pressure: f.pressure,
        fix: f.fix,
        next: f.next,
    });
    converted.collect()
}

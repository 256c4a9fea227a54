//! An explanation as a report: the finding `answer`, the table `chain` of its steps, and `not-recorded`: what is not known
//! because no event of it was recorded.

use crate::model::{Body, Cell, Column, Finding, InputInfo, Report, Table};
use mmtwin_analysis::explain::Chain;

fn column(key: &str, label: &str, unit: &'static str) -> Column {
    Column { key: key.into(), label: label.into(), unit }
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

/// The report. `command` reads the events themselves.
pub fn report(chain: &Chain, input: InputInfo, command: String) -> Report {
    let none = || text("");
    let row = |step: &mmtwin_analysis::explain::Step| {
        let rule = step.rule;
        vec![
            Cell::int(step.at),
            Cell::int(step.until),
            Cell::int(step.times),
            text(step.event),
            rule.map_or_else(none, |rule| text(rule.word())),
            rule.map_or_else(none, |rule| text(rule.title())),
            rule.map_or_else(none, |rule| text(rule.function())),
            text(step.what.as_str()),
        ]
    };
    let dropped = chain.dropped.map_or(String::new(), |(_, n)| format!("{n} steps in the middle are not listed."));
    let steps = Table {
        name: "chain".into(),
        title: chain.title.clone(),
        note: dropped,
        body: Body::List {
            columns: vec![
                column("at", "at", "ns"),
                column("until", "until", "ns"),
                column("count", "count", ""),
                column("event", "event", ""),
                column("rule", "rule", ""),
                column("rule_title", "rule title", ""),
                column("function", "function", ""),
                column("what", "what", ""),
            ],
            rows: chain.steps.iter().map(row).collect(),
        },
    };
    let unknown = Table {
        name: "not-recorded".into(),
        title: "Not recorded".into(),
        note: String::new(),
        body: Body::List {
            columns: vec![column("what", "what", ""), column("fix", "fix", "")],
            rows: chain.gaps.iter().map(|gap| vec![text(gap.what.as_str()), text(gap.fix.as_str())]).collect(),
        },
    };
    let answer =
        Finding { key: "answer".into(), severity: 0, sentence: chain.answer.clone(), command, ..Finding::default() };
    Report { input, findings: vec![answer], tables: vec![steps, unknown], ..Report::default() }
}

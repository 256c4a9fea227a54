//! An explanation as a report: the finding `answer`, the table `chain` of its steps, and `unknown` of what the recording
//! cannot tell.

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
            rule.map_or_else(none, |rule| text(rule.section())),
            rule.map_or_else(none, |rule| text(rule.title())),
            rule.map_or_else(none, |rule| text(rule.function())),
            text(step.what.as_str()),
        ]
    };
    let left_out = chain.left_out.map_or(String::new(), |(_, n)| format!("{n} steps in the middle are left out."));
    let steps = Table {
        name: "chain".into(),
        title: chain.title.clone(),
        note: left_out,
        body: Body::List {
            columns: vec![
                column("at", "at", "ns"),
                column("until", "until", "ns"),
                column("times", "times", ""),
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
        name: "unknown".into(),
        title: "What the recording cannot tell".into(),
        note: String::new(),
        body: Body::List {
            columns: vec![column("what", "what", ""), column("cure", "cure", "")],
            rows: chain.gaps.iter().map(|gap| vec![text(gap.what.as_str()), text(gap.cure.as_str())]).collect(),
        },
    };
    let answer =
        Finding { key: "answer".into(), severity: 0, sentence: chain.answer.clone(), detail: String::new(), command };
    Report { input, findings: vec![answer], tables: vec![steps, unknown], ..Report::default() }
}

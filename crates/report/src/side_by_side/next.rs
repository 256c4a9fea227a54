//! Where to go on.

use super::{Subject, faint};
use crate::compare::JoinedBody;
use crate::people::tells;
use crate::screen::{Line, at_most};
use crate::topics::TOPICS;

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let comparison = subject.comparison;
    let command = subject.command(width);
    if comparison.columns.len() < 2 {
        let text = format!("more: {command} --all; --table NAME; -o DIR keeps the recordings");
        return at_most(&text, width, 2).into_iter().map(faint).collect();
    }
    let differs = |body: &JoinedBody| match body {
        JoinedBody::Metric(rows) => rows.iter().any(|row| {
            let known = row.values.iter().any(|value| tells(&value.cell));
            known && row.values.iter().skip(1).any(|value| value.change.is_some_and(|change| change != 0.0))
        }),
        JoinedBody::Single { .. } => false,
    };
    let topics = TOPICS
        .iter()
        .filter(|topic| comparison.tables.iter().any(|table| topic.compares(&table.name) && differs(&table.body)));
    let topics: Vec<&str> = topics.map(|topic| topic.name).collect();
    let text = match topics.is_empty() {
        true => format!("more: {command} --all"),
        false => format!("more: {command} TOPIC: {}; --all", topics.join(", ")),
    };
    // A simulated run beside a real one.
    let has = |arm: &str| comparison.inputs.iter().any(|input| input.info.arm == arm);
    let fidelity = if has("twin") && (has("lab") || has("host")) { "; --table fidelity" } else { "" };
    let text = format!("{text}{fidelity}");
    at_most(&text, width, 3).into_iter().map(faint).collect()
}

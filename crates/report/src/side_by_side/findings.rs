//! Which findings came and which went.

use super::{Subject, faint};
use crate::compare::Comparison;
use crate::format::grid::Tone;
use crate::model::Finding;
use crate::screen::{Line, at_most};

/// Findings that are told, of each kind, and lines of each.
const MOST: usize = 3;
const LINES: usize = 2;

/// A finding with the runs of each column that have it.
struct Known<'a> {
    finding: &'a Finding,
    runs: Vec<usize>,
}

fn known(comparison: &Comparison) -> Vec<Known<'_>> {
    let mut all: Vec<Known<'_>> = Vec::new();
    for (input, finding) in comparison.findings.iter().flatten() {
        let Some(column) = comparison.inputs.get(*input).map(|input| input.column) else { continue };
        let at = all.iter().position(|known| known.finding.key == finding.key).unwrap_or_else(|| {
            all.push(Known { finding, runs: vec![0; comparison.columns.len()] });
            all.len() - 1
        });
        all[at].runs[column] += 1;
    }
    all
}

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let comparison = subject.comparison;
    let runs = |column: usize| comparison.inputs.iter().filter(|input| input.column == column).count();
    let all = known(comparison);
    if comparison.columns.len() < 2 {
        return of_runs(&all, runs(0), width);
    }
    let mut lines = Vec::new();
    let mut tell = |of: &[&Known<'_>], word: &str, tone: Tone, count: &dyn Fn(&Known<'_>) -> String| {
        for known in of.iter().take(MOST) {
            let text = format!("{word}{}: {}", count(known), known.finding.sentence);
            lines.extend(at_most(&text, width, LINES).into_iter().map(|text| Line::new(tone, text)));
        }
        if of.len() > MOST {
            let keys: Vec<&str> = of.iter().skip(MOST).map(|known| known.finding.key.as_str()).collect();
            lines.extend(at_most(&format!("{word} too: {}", keys.join(", ")), width, 1).into_iter().map(faint));
        }
    };
    let here = |known: &Known<'_>, column: usize| format!("{} of {} runs", known.runs[column], runs(column));
    let came: Vec<&Known<'_>> = all.iter().filter(|k| k.runs[0] == 0).collect();
    let of_column = |known: &Known<'_>| {
        let in_columns = known.runs.iter().enumerate().skip(1).filter(|(_, n)| **n > 0);
        let parts: Vec<String> = in_columns
            .map(|(column, _)| match (comparison.columns.len() > 2, runs(column) > 1) {
                (true, true) => format!("{}, {}", comparison.columns[column], here(known, column)),
                (true, false) => comparison.columns[column].clone(),
                (false, true) => here(known, column),
                (false, false) => String::new(),
            })
            .filter(|part| !part.is_empty())
            .collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
    };
    tell(&came, "new finding", Tone::Bad, &of_column);
    let gone: Vec<&Known<'_>> = all.iter().filter(|k| k.runs[0] > 0 && k.runs[1..].iter().all(|n| *n == 0)).collect();
    let of_base = |known: &Known<'_>| if runs(0) > 1 { format!(" ({})", here(known, 0)) } else { String::new() };
    tell(&gone, "gone", Tone::Good, &of_base);
    let stay: Vec<&str> = all
        .iter()
        .filter(|k| k.runs[0] > 0 && k.runs[1..].iter().any(|n| *n > 0))
        .map(|k| k.finding.key.as_str())
        .collect();
    if !stay.is_empty() {
        lines.extend(at_most(&format!("findings on both sides: {}", stay.join(", ")), width, 2).into_iter().map(faint));
    }
    lines
}

/// Findings of runs of one column.
fn of_runs(all: &[Known<'_>], runs: usize, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for known in all.iter().take(MOST) {
        let text = format!("in {} of {runs} runs: {}", known.runs[0], known.finding.sentence);
        lines.extend(at_most(&text, width, LINES).into_iter().map(|text| Line::new(Tone::Strong, text)));
    }
    if all.len() > MOST {
        let keys: Vec<&str> = all.iter().skip(MOST).map(|known| known.finding.key.as_str()).collect();
        lines.extend(at_most(&format!("other findings: {}", keys.join(", ")), width, 2).into_iter().map(faint));
    }
    lines
}

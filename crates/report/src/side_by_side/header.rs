//! What is compared: a line for each column, what their scenarios differ in, and whether there are enough runs to claim
//! anything.

use super::{Subject, faint};
use crate::compare::Comparison;
use crate::format::grid::Tone;
use crate::quantities::OVERVIEW;
use crate::screen::{Line, at_most};
use crate::statistics;
use crate::units;

/// Columns with a line of their own, and lines of all notes.
const COLUMNS: usize = 5;
const NOTES: usize = 6;

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let comparison = subject.comparison;
    let columns = comparison.columns.len();
    let mut lines = Vec::new();
    for column in 0..columns.min(COLUMNS) {
        lines.extend(
            at_most(&self::column(comparison, column), width, 2).into_iter().map(|l| Line::new(Tone::Strong, l)),
        );
    }
    if columns > COLUMNS {
        lines.push(faint(format!("and {} more columns", columns - COLUMNS)));
    }
    let mut notes: Vec<Line> = Vec::new();
    notes.extend(incomplete(comparison).into_iter().map(|text| Line::new(Tone::Bad, text)));
    notes.extend(comparison.notes.iter().map(|note| Line::new(Tone::Plain, note.clone())));
    notes.extend(subject.aside.map(|aside| Line::new(Tone::Plain, aside)));
    notes.extend(claim(comparison).map(faint));
    let mut room = NOTES;
    for note in notes {
        let folded = at_most(&note.text, width, 3.min(room));
        room -= folded.len();
        lines.extend(folded.into_iter().map(|text| Line::new(note.tone, text)));
    }
    lines
}

/// `baseline old.mmt: 3 runs, simulated by the twin, Linux 6.1.0, 30.5 s elapsed`.
fn column(comparison: &Comparison, column: usize) -> String {
    let inputs: Vec<_> = comparison.inputs.iter().filter(|input| input.column == column).collect();
    let mut facts = Vec::new();
    facts.extend((inputs.len() > 1).then(|| format!("{} runs", inputs.len())));
    let mut of_runs: Vec<String> = Vec::new();
    for input in &inputs {
        let mut words = vec![crate::screen::arm(&input.info.arm).to_owned()];
        words.extend(input.info.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
        words.retain(|word| !word.is_empty());
        let words = words.join(", ");
        if !of_runs.contains(&words) {
            of_runs.push(words);
        }
    }
    let others = of_runs.len().saturating_sub(1);
    facts.extend(of_runs.into_iter().next().filter(|words| !words.is_empty()));
    facts.extend((others > 0).then(|| format!("and {others} other kinds of runs")));
    let elapsed = comparison.row(OVERVIEW, "elapsed").and_then(|row| row.values.get(column)?.cell.number());
    facts.extend(elapsed.map(|seconds| format!("{} elapsed", units::time(seconds * 1e9))));
    let lost: u64 = inputs.iter().map(|input| input.info.lost_at_least.max(input.info.lost_events.unwrap_or(0))).sum();
    facts.extend((lost > 0).then(|| format!("{} events LOST", units::count(lost as f64))));
    let role = if column == 0 && comparison.columns.len() > 1 { "baseline " } else { "" };
    format!("{role}{}: {}", comparison.columns[column], facts.join(", "))
}

fn incomplete(comparison: &Comparison) -> Option<String> {
    let mut parts = comparison.inputs.iter().filter(|input| !input.info.incomplete.is_empty());
    let first = parts.next()?;
    let more = match parts.count() {
        0 => String::new(),
        n => format!("; {n} more inputs are incomplete"),
    };
    Some(format!("incomplete: {}: {}: sums are too small{more}", first.info.name, first.info.incomplete[0]))
}

/// What the number of runs allows to say.
pub(super) fn claim(comparison: &Comparison) -> Option<String> {
    let runs = |column: usize| comparison.inputs.iter().filter(|input| input.column == column).count();
    let columns = comparison.columns.len();
    if columns < 2 {
        let n = runs(0);
        let enough = statistics::median_interval(&vec![0.0; n]).is_some_and(|of| of.confidence >= statistics::LEVEL);
        let said = if enough { "their 95 % confidence intervals" } else { "the lowest and the highest run" };
        return (n > 1).then(|| format!("medians of {n} runs; in brackets {said}"));
    }
    let least = (0..columns).map(runs).min()?;
    let family = super::rows::tested(comparison).max(1);
    let needed = |family| statistics::runs_needed(family);
    if least < 2 {
        let how = if (0..columns).all(|column| runs(column) == 1) { "one run each" } else { "one run on a side" };
        return Some(format!(
            "{how}: no claim. {} runs of each could show that one figure differs, {} that any of these does.",
            needed(1),
            needed(super::choose::rows(comparison).len())
        ));
    }
    let reach = (1..columns)
        .any(|column| statistics::smallest_p(runs(0), runs(column)) * family as f64 <= 1.0 - statistics::LEVEL);
    Some(match reach {
        true => "* significant at 5 % (Mann-Whitney U, Holm-corrected); [interval of the change]".to_owned(),
        false => format!(
            "{} and {} runs: too few for any figure here to be significant; {} of each would be needed.",
            runs(0),
            runs(1),
            needed(family)
        ),
    })
}

//! The quantities that differ: worse first, then better, then those of which neither direction is good.

use super::change::{State, change, figure, interval, is_sure, spread, state};
use super::choose::{self, label};
use super::{Subject, faint};
use crate::compare::{Comparison, Row};
use crate::format::grid::Tone;
use crate::screen::{Line, at_most, cut};

/// Columns of a value.
const VALUE: usize = 11;
/// Columns of a value with its change beside several others.
const BOTH: usize = 22;
/// Widest label.
const LABEL: usize = 44;

/// Rows that are tested in the column that has most of them.
pub(super) fn tested(comparison: &Comparison) -> usize {
    let rows = choose::rows(comparison);
    let of = |column: usize| {
        rows.iter().filter(|row| row.values.get(column).is_some_and(|value| value.test.is_some())).count()
    };
    (1..comparison.columns.len()).map(of).max().unwrap_or(0)
}

pub(super) fn lines(subject: &Subject<'_>, width: usize, room: usize) -> Vec<Line> {
    let rows = choose::rows(subject.comparison);
    match subject.comparison.columns.len() {
        0 | 1 => medians(&rows, width, room),
        2 => two(&rows, width, room),
        _ => several(subject.comparison, &rows, width, room),
    }
}

/// A label in so many columns: what is cut is its beginning, for a quantity is named at its end.
fn fit(label: &str, width: usize) -> String {
    let length = label.chars().count();
    match length > width {
        true => ['…'].into_iter().chain(label.chars().skip(length - width + 1)).collect(),
        false => format!("{label:<width$}"),
    }
}

/// Runs of one column.
fn medians(rows: &[&Row], width: usize, room: usize) -> Vec<Line> {
    let known: Vec<&&Row> = rows.iter().filter(|row| nonzero(row)).collect();
    let shown = known.len().min(room.saturating_sub(usize::from(known.len() > room)));
    let longest = known.iter().take(shown).map(|row| label(row).chars().count()).max().unwrap_or(0).min(LABEL);
    let line = |row: &&&Row| {
        let value = &row.values[0];
        let number = value.cell.number().map_or(String::new(), |number| figure(number, &row.unit));
        let text = format!("{}  {number:>VALUE$}  {}", fit(&label(row), longest), spread(row, value));
        Line::new(Tone::Plain, cut(text.trim_end(), width))
    };
    let mut lines: Vec<Line> = known.iter().take(shown).map(line).collect();
    if known.len() > shown {
        lines.push(faint(format!("{} more: --all", known.len() - shown)));
    }
    lines
}

fn nonzero(row: &Row) -> bool {
    row.values.iter().any(|value| value.cell.number().is_some_and(|number| number != 0.0))
}

/// Rows of one state, surest first, else in their order.
fn of_state<'a>(rows: &[&'a Row], wanted: State) -> Vec<&'a Row> {
    let mut found: Vec<&Row> = rows.iter().filter(|row| state(row, &row.values[1]) == wanted).copied().collect();
    found.sort_by_key(|row| !is_sure(&row.values[1]));
    found
}

const SECTIONS: [(State, &str, Tone); 3] = [
    (State::Worse, "Worse", Tone::Bad),
    (State::Better, "Better", Tone::Good),
    (State::Other, "Changed", Tone::Strong),
];

/// How many rows of each section are shown: a few of each, then as many as there is room for.
fn places(wanted: [usize; 3], room: usize) -> [usize; 3] {
    let (mut given, mut left) = ([0; 3], room);
    for most in [FEW, usize::MAX] {
        for (given, wanted) in given.iter_mut().zip(wanted) {
            let more = (wanted - *given).min(most).min(left);
            (*given, left) = (*given + more, left - more);
        }
    }
    given
}

/// Rows of a section that come before more of another.
const FEW: usize = 4;

fn two(rows: &[&Row], width: usize, room: usize) -> Vec<Line> {
    let sections = SECTIONS.map(|(state, ..)| of_state(rows, state));
    let last = at_most(&rest(rows), width, 2);
    // Headings, blank lines between sections, and the last line.
    let filled = sections.iter().filter(|rows| !rows.is_empty()).count();
    let used = (2 * filled).saturating_sub(1) + last.len();
    let shown = places(sections.each_ref().map(|rows| rows.len()), room.saturating_sub(used));
    let tested = rows.iter().any(|row| row.values[1].test.is_some());
    let all: Vec<&Row> = sections.iter().zip(shown).flat_map(|(rows, n)| rows.iter().take(n).copied()).collect();
    let mut pairs = pairs(&all, 2, width).into_iter();
    let mut lines = Vec::new();
    for (((_, word, tone), rows), n) in SECTIONS.into_iter().zip(&sections).zip(shown) {
        if rows.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::new(Tone::Plain, ""));
        }
        lines.push(Line::new(tone, heading(word, rows, n, tested)));
        lines.extend(pairs.by_ref().take(n).map(|text| Line::new(Tone::Plain, text)));
    }
    if lines.is_empty() {
        lines.push(Line::new(Tone::Strong, "No quantity that was recorded in both differs."));
    }
    lines.extend(last.into_iter().map(faint));
    lines
}

/// `Worse: 5, 3 of them significantly; 2 not shown`.
fn heading(word: &str, rows: &[&Row], shown: usize, tested: bool) -> String {
    let sure = rows.iter().filter(|row| is_sure(&row.values[1])).count();
    let mut text = match (tested, sure, rows.len()) {
        (false, ..) => format!("{word}, without a claim: {}", rows.len()),
        (true, 0, n) => format!("{word}: {n}, none significantly"),
        (true, sure, n) if sure == n => format!("{word}: {n}, significantly"),
        (true, sure, n) => format!("{word}: {n}, {sure} of them significantly (*)"),
    };
    if rows.len() > shown {
        text += &format!("; {} not shown", rows.len() - shown);
    }
    text
}

/// Rows of two columns: label, both values, the change, whether it is significant, and its interval; each as wide as it
/// must be, the labels as wide as they may.
pub(super) fn pairs(rows: &[&Row], indent: usize, width: usize) -> Vec<String> {
    let cells = |row: &&Row| {
        let number = |i: usize| match row.values[i].cell.number() {
            Some(number) => figure(number, &row.unit),
            None => "n/a".to_owned(),
        };
        let value = &row.values[1];
        let star = if is_sure(value) { "*" } else { " " };
        [number(0), number(1), format!("{}{star}", change(row, value)), interval(row, value)]
    };
    let cells: Vec<[String; 4]> = rows.iter().map(cells).collect();
    let widest = |i: usize| cells.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let [base, new, change, interval] = [0, 1, 2, 3].map(widest);
    let tail = base + new + change + 6 + if interval > 0 { interval + 1 } else { 0 };
    let longest = rows.iter().map(|row| label(row).chars().count()).max().unwrap_or(0);
    let longest = longest.min(LABEL).min(width.saturating_sub(tail + indent));
    let line = |(row, cells): (&&Row, &[String; 4])| {
        let label = fit(&label(row), longest);
        let [a, b, c, d] = cells;
        let text = format!("{:indent$}{label}  {a:>base$}  {b:>new$}  {c:>change$} {d}", "");
        cut(text.trim_end(), width)
    };
    rows.iter().zip(&cells).map(line).collect()
}

/// What is not shown, in a line.
fn rest(rows: &[&Row]) -> String {
    let count = |wanted: State| rows.iter().filter(|row| state(row, &row.values[1]) == wanted).count();
    let one_side =
        rows.iter().filter(|row| row.values.iter().filter(|value| value.cell.number().is_some()).count() == 1);
    let (equal, one_side) = (count(State::Equal), one_side.count());
    let mut parts = Vec::new();
    parts.extend((equal > 0).then(|| format!("{equal} equal")));
    parts.extend((one_side > 0).then(|| format!("{one_side} recorded on one side only")));
    let neither = count(State::Unknown) - one_side;
    parts.extend((neither > 0).then(|| format!("{neither} not recorded")));
    let text = parts.join(", ");
    if text.is_empty() { text } else { format!("Of these quantities: {text}.") }
}

/// Several columns beside the baseline, as many as fit.
pub(super) fn several(comparison: &Comparison, rows: &[&Row], width: usize, room: usize) -> Vec<Line> {
    let differs = |row: &&&Row| {
        row.values.iter().skip(1).any(|value| !matches!(state(row, value), State::Equal | State::Unknown))
    };
    let rows: Vec<&&Row> = rows.iter().filter(differs).collect();
    let others = (comparison.columns.len() - 1).min((width.saturating_sub(20 + VALUE)) / (BOTH + 1));
    let label_width = width.saturating_sub(VALUE + 1 + others * (BOTH + 1)).min(LABEL);
    let head = |name: &str, width: usize| format!("{:>width$}", cut(name, width));
    let mut heading = format!("{:label_width$} {}", "", head(&comparison.columns[0], VALUE));
    for name in comparison.columns.iter().skip(1).take(others) {
        heading += &format!(" {}", head(name, BOTH));
    }
    let mut lines = vec![Line::new(Tone::Strong, heading)];
    let hidden = comparison.columns.len() - 1 - others;
    let shown = rows.len().min(room.saturating_sub(2 + usize::from(hidden > 0)));
    for row in rows.iter().take(shown) {
        let number = |i: usize| row.values[i].cell.number().map_or("n/a".into(), |number| figure(number, &row.unit));
        let mut text = format!("{} {:>VALUE$}", fit(&label(row), label_width), number(0));
        for (i, value) in row.values.iter().enumerate().skip(1).take(others) {
            let star = if is_sure(value) { "*" } else { "" };
            let change = change(row, value);
            let change = if change.is_empty() { change } else { format!(" ({change}{star})") };
            text += &format!(" {:>BOTH$}", cut(&format!("{}{change}", number(i)), BOTH));
        }
        lines.push(Line::new(Tone::Plain, text));
    }
    if rows.len() > shown {
        lines.push(faint(format!("{} more quantities differ: --all", rows.len() - shown)));
    }
    if hidden > 0 {
        lines.push(faint(format!("{hidden} more columns: --all, or a wider terminal")));
    }
    if rows.is_empty() {
        lines = vec![Line::new(Tone::Strong, "No quantity that was recorded in all differs.")];
    }
    lines
}

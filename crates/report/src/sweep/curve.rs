//! A quantity over the values of a key, drawn in the terminal: a curve for each combination of the other keys.

use super::choose::{choose, is_needed};
use super::comparison;
use super::lines::differs;
use super::model::{Case, Sweep, short_keys};
use super::plot::{Point, Size, draw};
use crate::compare::{Comparison, JoinedBody, Row};
use crate::format::Style;
use crate::format::grid::{Tone, clean};
use crate::quantities::key;
use crate::screen::cut;
use crate::side_by_side::change::figure;
use crate::side_by_side::choose::label;
use crate::suggest::nearest;

/// Most curves that are drawn.
pub(super) const CURVES: usize = 6;
/// Lines of a curve, and its widest.
const HEIGHT: usize = 10;
const WIDEST: usize = 72;

/// A curve that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// No such key.
    #[error("no key or quantity '{name}'{hint}; keys of this sweep: {}", .keys.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest that there is.
        hint: String,
        /// Keys of the sweep.
        keys: Vec<String>,
    },
    /// Nothing to draw it over.
    #[error("a curve of '{0}' needs a key with several values")]
    NoKey(String),
    /// Nothing to draw.
    #[error("a curve over '{0}' needs a figure of the workload: name a quantity instead")]
    NoFigure(String),
}

/// Draws `name`: a key of the sweep, over which the workload's main figure is drawn, or a quantity (`TABLE.KEY`), which
/// is drawn over the first key.
///
/// # Errors
/// If there is no such key or quantity, or nothing to draw.
pub fn curve(sweep: &Sweep, name: &str, style: &Style) -> Result<Vec<String>, CurveError> {
    with_drawing(sweep, name, |drawing| drawing.lines(style))
}

/// Does something with what a curve consists of.
pub(super) fn with_drawing<T>(
    sweep: &Sweep,
    name: &str,
    draw: impl FnOnce(&Drawing<'_>) -> T,
) -> Result<T, CurveError> {
    let short = short_keys(&sweep.keys);
    let over = sweep.keys.iter().zip(&short).position(|(key, short)| key == name || short == name);
    let table = name.split_once('.').map_or("", |(table, _)| table);
    let comparison = comparison(sweep, |of| is_needed(of) || of == table);
    let cases = sweep.compared();
    let (over, row) = match over {
        Some(over) => (over, choose(&comparison).main.into_iter().next().ok_or(CurveError::NoFigure(name.into()))?),
        None => {
            let quantities = || sweep.quantities.iter().map(|of| of.key.as_str());
            let row = quantity(&comparison, name).ok_or_else(|| unknown(name, &sweep.keys, quantities()))?;
            let over = (0..sweep.keys.len()).find(|&at| differs(&cases, at)).ok_or(CurveError::NoKey(name.into()))?;
            (over, row)
        }
    };
    Ok(draw(&Drawing { cases, short, over, row }))
}

fn quantity<'a>(comparison: &'a Comparison, name: &str) -> Option<&'a Row> {
    let rows = comparison.tables.iter().filter_map(|table| match &table.body {
        JoinedBody::Metric(rows) => Some(rows.iter().map(move |row| (key(&table.name, &row.key), row))),
        JoinedBody::Single { .. } => None,
    });
    rows.flatten().find(|(key, _)| key == name).map(|(_, row)| row)
}

/// What is neither a key nor one of the quantities.
pub(super) fn unknown<'a>(name: &str, keys: &'a [String], quantities: impl Iterator<Item = &'a str>) -> CurveError {
    let known = keys.iter().map(String::as_str).chain(quantities);
    let hint = nearest(name, known).map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
    CurveError::Unknown { name: name.into(), hint, keys: keys.to_vec() }
}

/// What a curve consists of.
pub(super) struct Drawing<'a> {
    pub(super) cases: Vec<Case<'a>>,
    pub(super) short: Vec<String>,
    /// Index of the key from left to right.
    pub(super) over: usize,
    /// What is drawn.
    pub(super) row: &'a Row,
}

/// Cases that have the same values of all other keys.
pub(super) struct Group {
    /// These values, as `KEY=VALUE`; empty: there is no other key.
    pub(super) name: String,
    /// Their indices, from left to right.
    pub(super) cases: Vec<usize>,
}

impl Drawing<'_> {
    /// The curves.
    pub(super) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<(Vec<&String>, Vec<usize>)> = Vec::new();
        let mut in_order: Vec<(usize, &Case<'_>)> = self.cases.iter().enumerate().collect();
        in_order.sort_by_key(|(_, case)| case.place);
        for (number, case) in in_order {
            let others = case.values.iter().enumerate().filter(|(key, _)| *key != self.over).map(|(_, value)| value);
            let others: Vec<&String> = others.collect();
            match groups.iter_mut().find(|(known, _)| *known == others) {
                Some((_, cases)) => cases.push(number),
                None => groups.push((others, vec![number])),
            }
        }
        let named = |(others, cases): (Vec<&String>, Vec<usize>)| {
            let names = self.short.iter().enumerate().filter(|(key, _)| *key != self.over).map(|(_, name)| name);
            let pairs: Vec<String> = names.zip(others).map(|(name, value)| format!("{name}={value}")).collect();
            Group { name: pairs.join(", "), cases }
        };
        groups.into_iter().map(named).collect()
    }

    /// What is drawn, and over what.
    pub(super) fn title(&self) -> String {
        format!("{} over {}", label(self.row), self.short[self.over])
    }

    fn lines(&self, style: &Style) -> Vec<String> {
        let groups = self.groups();
        let mut lines = Vec::new();
        for group in groups.iter().take(CURVES) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let of = if group.name.is_empty() { String::new() } else { format!(", {}", group.name) };
            let title = format!("{}{of}", self.title());
            lines.push(Tone::Strong.paint(&cut(&clean(&title), style.width), style));
            lines.extend(self.one(&group.cases, style));
        }
        if groups.len() > CURVES {
            lines.push(Tone::Faint.paint(&format!("{} more curves", groups.len() - CURVES), style));
        }
        lines
    }

    /// One curve with its axes.
    fn one(&self, cases: &[usize], style: &Style) -> Vec<String> {
        let places = places(&cases.iter().map(|case| self.cases[*case].numbers[self.over]).collect::<Vec<_>>());
        let points: Vec<Point> = cases.iter().zip(&places).filter_map(|(case, x)| self.point(*case, *x)).collect();
        let (low, high) = self.extent();
        let axis = [(0, high), (HEIGHT / 2, (low + high) / 2.0), (HEIGHT - 1, low)];
        let axis = axis.map(|(line, value)| (line, figure(value, &self.row.unit)));
        let margin = axis.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let width = style.width.saturating_sub(margin + 2).clamp(20, WIDEST);
        let mut lines: Vec<String> = draw(&points, (low, high), Size { width, height: HEIGHT })
            .iter()
            .enumerate()
            .map(|(number, plot)| {
                let at = axis.iter().find(|(line, _)| *line == number);
                let text = at.map_or("", |(_, text)| text);
                format!("{text:>margin$} {}{plot}", if at.is_some() { '┤' } else { '│' }).trim_end().to_owned()
            })
            .collect();
        lines.push(format!("{:margin$} └{}", "", "─".repeat(width)));
        let labels: Vec<&str> = cases.iter().map(|case| self.cases[*case].values[self.over].as_str()).collect();
        lines.push(format!("{:margin$}  {}", "", below(&labels, &places, width)).trim_end().to_owned());
        lines
    }

    /// A point of a case; `None`: the value is not known.
    pub(super) fn point(&self, case: usize, x: f64) -> Option<Point> {
        let value = self.row.values.get(case)?;
        let y = value.cell.number()?;
        let interval = value.interval.map_or([y, y], |interval| [interval.low, interval.high]);
        Some(Point { x, y: [y, interval[0], interval[1]] })
    }

    /// Lower and upper end of all curves: from 0, unless all values are in the upper fifth.
    pub(super) fn extent(&self) -> (f64, f64) {
        let all: Vec<Point> = (0..self.cases.len()).filter_map(|case| self.point(case, 0.0)).collect();
        let low = all.iter().map(|point| point.y[1]).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(|point| point.y[2]).fold(f64::NEG_INFINITY, f64::max);
        match (low, high) {
            _ if all.is_empty() => (0.0, 1.0),
            (low, high) if low >= 0.0 && low < 0.8 * high => (0.0, high),
            (low, high) if low == high => (low.min(0.0), high.max(0.0)),
            range => range,
        }
    }
}

/// Where values stand from left to right, 0..1: by their size, or by that of their logarithms where these are more evenly
/// apart; words, and values that do not ascend, one after another.
pub(super) fn places(numbers: &[Option<f64>]) -> Vec<f64> {
    let known: Option<Vec<f64>> = numbers.iter().copied().collect();
    let known = known.filter(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let even: Vec<f64> = (0..numbers.len()).map(|at| at as f64).collect();
    let linear = known.unwrap_or(even);
    let logarithms = linear.iter().all(|number| *number > 0.0).then(|| linear.iter().map(|number| number.ln()));
    let logarithms: Option<Vec<f64>> = logarithms.map(Iterator::collect);
    let smallest = |numbers: &[f64]| {
        let gaps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
        let whole = numbers.last().zip(numbers.first()).map_or(0.0, |(last, first)| last - first);
        gaps.fold(f64::INFINITY, f64::min) / whole
    };
    let chosen = match logarithms {
        Some(logarithms) if smallest(&logarithms) > smallest(&linear) => logarithms,
        _ => linear,
    };
    let (first, last) = (chosen.first().copied().unwrap_or(0.0), chosen.last().copied().unwrap_or(0.0));
    chosen.iter().map(|number| if last > first { (number - first) / (last - first) } else { 0.5 }).collect()
}

/// Labels below their places, the first and the last always, others where there is room.
fn below(labels: &[&str], places: &[f64], width: usize) -> String {
    let mut line: Vec<char> = vec![' '; width];
    let mut write = |label: &str, place: f64| {
        let letters: Vec<char> = clean(label).chars().take(width).collect();
        let middle = (place * (width - 1) as f64).round() as usize;
        let start = middle.saturating_sub(letters.len() / 2).min(width - letters.len());
        let around = start.saturating_sub(2)..(start + letters.len() + 2).min(width);
        if line[around].iter().all(|letter| *letter == ' ') {
            line[start..start + letters.len()].copy_from_slice(&letters);
        }
    };
    let ends = labels.len().checked_sub(1).into_iter().flat_map(|last| [0, last]);
    ends.chain(0..labels.len()).for_each(|at| write(labels[at], places[at]));
    line.into_iter().collect()
}

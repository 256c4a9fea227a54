//! One table of a sweep: a row for each case, medians and their intervals of the figures that matter, the best marked.

use super::choose::{Chosen, best, choose, is_needed};
use super::comparison;
use super::model::{Case, Status, Sweep, short_keys};
use crate::compare::{Comparison, Row};
use crate::format::Style;
use crate::format::grid::{Entry, Grid, GridColumn, Tone, clean, wrap};
use crate::side_by_side::change::{figure, is_sure, spread};
use crate::side_by_side::choose::label;
use crate::statistics::runs_needed;
use crate::units::counted;
use std::collections::BTreeMap;

/// Most cases with a row of their own; of more, the best are shown.
const CASES: usize = 50;
/// Of so many cases only the best so many.
const BEST: usize = 20;
/// Most reasons and findings that are named.
const NAMED: usize = 5;

/// The table, line by line, without line breaks. `whole`: whether all cases are shown.
pub fn lines(sweep: &Sweep, style: &Style, whole: bool) -> Vec<String> {
    let comparison = comparison(sweep, is_needed);
    let cases = sweep.compared();
    let chosen = choose(&comparison);
    let heading = wrap(&clean(&heading(sweep, &cases)), style.width);
    let mut text: Vec<String> = heading.iter().map(|line| Tone::Strong.paint(line, style)).collect();
    text.push(String::new());
    let best = chosen.main.first().filter(|_| cases.len() > 1).and_then(|row| best(row, |case| is_whole(&cases[case])));
    let shown = shown_cases(&cases, &chosen, whole);
    let table = Table { sweep, cases: &cases, shown: &shown, best };
    let (grid, columns) = if whole { table.all(&chosen) } else { table.that_fits(&chosen, style) };
    let mut printed = String::new();
    grid.write(style, &mut printed);
    text.extend(printed.lines().map(str::to_owned));
    let mut notes = Vec::new();
    notes.extend(medians_note(sweep, &comparison, &cases));
    if let Some(row) = chosen.main.first().filter(|_| best.is_some() && chosen.main.len() > 1) {
        notes.push(format!("best: of {}", label(row)));
    }
    if shown.len() < cases.len() {
        notes.push(format!("{} more cases: --all", cases.len() - shown.len()));
    }
    let hidden = chosen.main.len() + chosen.changed.len() - columns;
    if hidden > 0 {
        let quantities = if hidden == 1 { "quantity" } else { "quantities" };
        notes.push(format!("{hidden} more {quantities} that differ: --all, or a wider terminal"));
    }
    notes.extend(findings(sweep));
    notes.extend(reasons(sweep, &cases));
    if !notes.is_empty() {
        text.push(String::new());
    }
    for note in notes {
        text.extend(wrap(&note, style.width).iter().map(|line| Tone::Faint.paint(line, style)));
    }
    text
}

fn heading(sweep: &Sweep, cases: &[Case<'_>]) -> String {
    let runs = sweep.rows.len();
    let of = if runs < sweep.planned { format!(" of {}", sweep.planned) } else { String::new() };
    let of_cases = counted(cases.len() as u64, "case");
    // What is the same in all cases is said once.
    let alike: Vec<String> = (0..sweep.keys.len())
        .filter(|key| !differs(cases, *key))
        .filter_map(|key| Some(format!(", {}={}", short_keys(&sweep.keys)[key], cases.first()?.values[key])))
        .collect();
    let of_runs = if runs == 1 && of.is_empty() { "run" } else { "runs" };
    format!("{}{}: {of_cases}, {runs}{of} {of_runs}", sweep.scenario, alike.concat())
}

/// Whether a key has several values.
pub(super) fn differs(cases: &[Case<'_>], key: usize) -> bool {
    cases.iter().any(|case| case.values[key] != cases[0].values[key])
}

/// True if all runs of a case reached their end.
fn is_whole(case: &Case<'_>) -> bool {
    case.rows.iter().all(|row| row.status.is_whole())
}

/// Indices of the cases that are shown, in their order; of many the best, best first.
fn shown_cases(cases: &[Case<'_>], chosen: &Chosen<'_>, whole: bool) -> Vec<usize> {
    let mut all: Vec<usize> = (0..cases.len()).collect();
    all.sort_by_key(|case| cases[*case].place);
    let Some(row) = chosen.main.first().filter(|_| cases.len() > CASES && !whole) else { return all };
    let value = |case: &usize| row.values.get(*case).and_then(|value| value.cell.number());
    let higher = row.better == crate::model::Better::Higher;
    all.retain(|case| is_whole(&cases[*case]) && value(case).is_some());
    all.sort_by(|a, b| {
        let (a, b) = (value(a).unwrap_or(0.0), value(b).unwrap_or(0.0));
        if higher { b.total_cmp(&a) } else { a.total_cmp(&b) }
    });
    all.truncate(BEST);
    all
}

struct Table<'a> {
    sweep: &'a Sweep,
    cases: &'a [Case<'a>],
    shown: &'a [usize],
    best: Option<usize>,
}

impl Table<'_> {
    /// The table with all quantities, which is divided where it is too wide.
    fn all(&self, chosen: &Chosen<'_>) -> (Grid, usize) {
        let all: Vec<&Row> = chosen.main.iter().chain(&chosen.changed).copied().collect();
        (self.grid(&all), all.len())
    }

    /// The table with as many quantities as the width allows, and how many they are: at least one.
    fn that_fits(&self, chosen: &Chosen<'_>, style: &Style) -> (Grid, usize) {
        let all: Vec<&Row> = chosen.main.iter().chain(&chosen.changed).copied().collect();
        let mut fits = self.grid(&all[..all.len().min(1)]);
        let mut columns = all.len().min(1);
        for more in 2..=all.len() {
            let grid = self.grid(&all[..more]);
            let mut text = String::new();
            grid.write(&Style { width: usize::MAX, colour: false, ..*style }, &mut text);
            if text.lines().any(|line| line.chars().count() > style.width) {
                break;
            }
            (fits, columns) = (grid, more);
        }
        (fits, columns)
    }

    fn grid(&self, rows: &[&Row]) -> Grid {
        let names = short_keys(&self.sweep.keys);
        let keys: Vec<usize> = (0..names.len()).filter(|key| differs(self.cases, *key)).collect();
        let mut columns: Vec<GridColumn> = keys.iter().map(|key| GridColumn::left(&names[*key])).collect();
        let leading = columns.len();
        let spreads: Vec<bool> =
            rows.iter().map(|row| self.shown.iter().any(|case| !spread(row, &row.values[*case]).is_empty())).collect();
        for (row, spreads) in rows.iter().zip(&spreads) {
            columns.push(GridColumn::right(label(row)));
            if *spreads {
                columns.push(GridColumn::left("interval").joined());
            }
        }
        columns.push(GridColumn::left(""));
        let line = |case: &usize| {
            let mut cells: Vec<Entry> = keys.iter().map(|key| Entry::plain(&self.cases[*case].values[*key])).collect();
            for (row, spreads) in rows.iter().zip(&spreads) {
                let value = &row.values[*case];
                let tone = if self.best == Some(*case) { Tone::Good } else { Tone::Plain };
                let number = value.cell.number().map_or("n/a".into(), |number| figure(number, &row.unit));
                cells.push(Entry::new(format!("{number}{}", if is_sure(value) { "*" } else { "" }), tone));
                if *spreads {
                    cells.push(Entry::plain(spread(row, value)));
                }
            }
            cells.push(self.mark(*case));
            cells
        };
        Grid { columns, rows: self.shown.iter().map(line).collect(), leading }
    }

    /// What is said behind a case: that it is the best, or how its runs ended.
    fn mark(&self, case: usize) -> Entry {
        if self.best == Some(case) {
            return Entry::new("best", Tone::Good);
        }
        let rows = &self.cases[case].rows;
        let ended = |status: Status| rows.iter().filter(|row| row.status == status).count();
        let parts = Status::ALL.into_iter().filter(|status| !status.is_whole() && ended(*status) > 0);
        let part = |status: Status| match (ended(status), rows.len()) {
            (n, all) if n == all => status.phrase().to_owned(),
            (n, all) => format!("{} in {n} of {all}", status.phrase()),
        };
        Entry::new(parts.map(part).collect::<Vec<_>>().join(", "), Tone::Bad)
    }
}

/// What the values are, and what may be claimed of them.
fn medians_note(sweep: &Sweep, comparison: &Comparison, cases: &[Case<'_>]) -> Option<String> {
    let seeds = cases.iter().map(|case| case.rows.len()).max()?;
    if cases.len() < 2 {
        return None;
    }
    if seeds < 2 {
        return Some("One seed: nothing is claimed of a difference; --seeds 1..5 gives medians and intervals.".into());
    }
    let rows = || {
        comparison.tables.iter().filter_map(|table| match &table.body {
            crate::compare::JoinedBody::Metric(rows) => Some(rows.as_slice()),
            crate::compare::JoinedBody::Single { .. } => None,
        })
    };
    if rows().flatten().any(|row| row.values.iter().any(is_sure)) {
        let first = match cases[0].place {
            0 => "the first case".to_owned(),
            _ => format!("the first case that reached its end ({})", cases[0].label(&short_keys(&sweep.keys))),
        };
        return Some(format!("Medians; * differs significantly from {first} (Mann-Whitney U, Holm, 5 %)."));
    }
    let family = |rows: &[Row]| {
        let tested = |case: usize| rows.iter().filter(|row| row.values[case].test.is_some()).count();
        (1..cases.len()).map(tested).max().unwrap_or(0)
    };
    let family = rows().map(family).filter(|family| *family > 0).min()?;
    let needed = runs_needed(family);
    Some(match seeds < needed {
        true => format!("Medians. With {seeds} seeds no difference can be significant: {needed} or more can."),
        false => "Medians. No difference from the first case is significant.".into(),
    })
}

/// Findings by how many runs have them.
fn findings(sweep: &Sweep) -> Option<String> {
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &sweep.rows {
        let mut keys: Vec<&str> = row.findings.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().for_each(|key| *runs.entry(key).or_default() += 1);
    }
    let mut runs: Vec<(&str, usize)> = runs.into_iter().collect();
    runs.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    let more = runs.len().saturating_sub(NAMED);
    let named: Vec<String> =
        runs.iter().take(NAMED).map(|(key, runs)| format!("{key} in {}", counted(*runs as u64, "run"))).collect();
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("Findings: {}{more}", named.join(", ")))
}

/// Why runs ended early.
fn reasons(sweep: &Sweep, cases: &[Case<'_>]) -> Vec<String> {
    let names = short_keys(&sweep.keys);
    let early = cases.iter().flat_map(|case| case.rows.iter().map(move |row| (case, row)));
    let mut early: Vec<_> = early.filter(|(_, row)| !row.status.is_whole()).collect();
    early.sort_by_key(|(case, _)| case.place);
    let line = |(case, row): &(&Case<'_>, &&super::model::Row)| {
        let case = case.label(&names);
        let place = if case.is_empty() { format!("seed {}", row.seed) } else { format!("{case}, seed {}", row.seed) };
        format!("{place}: {}: {}", row.status.phrase(), row.reason.as_deref().unwrap_or("no reason is known"))
    };
    let mut lines: Vec<String> = early.iter().take(NAMED).map(line).collect();
    if early.len() > NAMED {
        lines.push(format!("{} more runs ended early: columns status and reason", early.len() - NAMED));
    }
    if !lines.is_empty() {
        lines.insert(0, "Runs that ended early are in no median:".into());
    }
    lines
}

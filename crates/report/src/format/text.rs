//! The report as text: what it is about, findings, event/counter cross-check, then the tables.
//!
//! A value of a comparison is written `VALUE (+x.xx%)` by its row's rule of gain, or `VALUE (+x.x%)` with the plain
//! change if the row has none. With several runs the median is followed by its interval, the change by `*` if it is
//! significant (only then is it called better or worse, where the row prefers a direction) and by the size of the effect with its interval. Published figures stand before the column that reproduces them, the
//! error and whether the row was fitted behind it.

use super::Style;
use super::grid::{Entry, Grid, GridColumn, Tone, clean, wrap};
use super::{histogram, number};
use crate::compare::{Comparison, Input, JoinedBody, JoinedTable, Row, Test, Value};
use crate::gain::{Verdict, change};
use crate::model::{Body, Cell, Column, CrossCheck, Finding, Gain, Na};
use crate::statistics::Interval;
use std::fmt::Write;
use std::io;

/// Findings printed.
const FINDINGS: usize = 5;

/// Writes the whole text.
pub(super) fn write(comparison: &Comparison, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = String::new();
    inputs(comparison, style, &mut text);
    if let Some(found) = &comparison.findings {
        findings(comparison, found, style, &mut text);
    }
    if let Some(lines) = &comparison.cross_check {
        let both = |line: &CrossCheck| line.events.na().is_none() && line.counters.na().is_none();
        let lines: Vec<_> = lines.iter().filter(|(_, line)| !style.brief || both(line)).collect();
        if !lines.is_empty() {
            cross_check(comparison, &lines, style, &mut text);
        }
    }
    let (known, unknown): (Vec<_>, Vec<_>) = comparison.tables.iter().partition(|t| !style.brief || tells(&t.body));
    for table in known {
        self::table(comparison, table, style, &mut text);
    }
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().map(|table| table.name.as_str()).collect();
        heading("Not recorded", style, &mut text);
        line(&names.join(", "), Tone::Faint, style, &mut text);
    }
    out.write_all(text.as_bytes())
}

/// True if a table has anything but unknown values.
fn tells(body: &JoinedBody) -> bool {
    let known = |cell: &Cell| cell.na().is_none();
    match body {
        JoinedBody::Metric(rows) => rows.iter().flat_map(|row| &row.values).any(|value| known(&value.cell)),
        JoinedBody::Single { body, .. } => match body {
            Body::Metric(rows) => rows.iter().any(|row| known(&row.value)),
            Body::List { rows, .. } | Body::Series { rows, .. } => !rows.is_empty(),
            Body::Matrix { values, .. } => values.iter().flatten().any(known),
            Body::Histogram { slots, .. } => !slots.is_empty(),
        },
    }
}

fn line(text: &str, tone: Tone, style: &Style, out: &mut String) {
    for wrapped in wrap(text, style.width) {
        out.push_str(&tone.paint(&wrapped, style));
        out.push('\n');
    }
}

fn inputs(comparison: &Comparison, style: &Style, out: &mut String) {
    let columns = comparison.columns.len();
    let several_runs = comparison.inputs.len() > columns;
    for Input { column, info } in &comparison.inputs {
        let mut facts = vec![info.arm.clone()];
        facts.extend(info.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
        if info.counters_only {
            facts.push("counters only".into());
        } else {
            facts.push(format!("{} events", info.events));
            facts.push(match info.lost_events {
                Some(lost) => format!("{lost} lost"),
                None if info.lost_at_least > 0 => format!("at least {} lost", info.lost_at_least),
                None => "losses unknown".to_owned(),
            });
        }
        facts.push(incomplete(&info.incomplete));
        facts.extend(info.filter.clone());
        facts.retain(|fact| !fact.is_empty());
        let heading = comparison.columns.get(*column).filter(|name| columns > 1 && **name != info.name);
        let heading = heading.map_or(String::new(), |name| format!("{name} = "));
        line(&format!("{heading}{}: {}", info.name, facts.join(", ")), Tone::Faint, style, out);
    }
    for note in &comparison.notes {
        line(&format!("note: {note}"), Tone::Plain, style, out);
    }
    if let Some(baseline) = comparison.columns.first().filter(|_| columns > 1) {
        line(&format!("Baseline: {baseline}."), Tone::Faint, style, out);
    }
    if several_runs {
        let legend = "Values are medians over runs; [low, high] is their 95 % confidence interval with at least 6 runs, \
                      else the lowest and the highest run (confidence in --format json). * marks a difference that is \
                      significant at 5 % (Mann-Whitney U, Holm-corrected over the rows of a table); shift is the median \
                      difference (Hodges-Lehmann).";
        line(legend, Tone::Faint, style, out);
    }
}

/// Missing parts named in the first line; JSON has all.
const PARTS: usize = 2;

/// Missing parts of an input; empty if none.
fn incomplete(parts: &[String]) -> String {
    match parts.len() {
        0 => String::new(),
        n if n > PARTS => format!("incomplete ({}; and {} more)", parts[..PARTS].join("; "), n - PARTS),
        _ => format!("incomplete ({})", parts.join("; ")),
    }
}

/// The name of an input, where there are several.
fn which(comparison: &Comparison, input: usize) -> Option<&str> {
    comparison.inputs.get(input).filter(|_| comparison.inputs.len() > 1).map(|input| input.info.name.as_str())
}

fn findings(comparison: &Comparison, found: &[(usize, Finding)], style: &Style, out: &mut String) {
    heading(if found.is_empty() { "Findings: none" } else { "Findings" }, style, out);
    // Whoever wants all rows wants all findings.
    let most = if style.rows == usize::MAX { usize::MAX } else { FINDINGS };
    for (input, finding) in found.iter().take(most) {
        let input = which(comparison, *input).map_or(String::new(), |name| format!("{name}: "));
        for wrapped in wrap(&format!("{input}{}", finding.sentence), style.width) {
            let _ = writeln!(out, "{wrapped}");
        }
        let mut command = clean(&finding.command);
        let mut detail = wrap(&said(finding), style.width.saturating_sub(4));
        if let Some(last) = detail.last_mut() {
            // the command stands on the right of the last line, if there is room
            let needs = 4 + last.chars().count() + 3;
            if needs.saturating_add(command.chars().count()) <= style.width {
                let _ = write!(last, "   {}", Tone::Strong.paint(&std::mem::take(&mut command), style));
            }
        }
        let below = wrap(&command, style.width.saturating_sub(4)).into_iter().filter(|line| !line.is_empty());
        detail.extend(below.map(|line| Tone::Strong.paint(&line, style)));
        for wrapped in detail {
            let _ = writeln!(out, "    {}", wrapped.trim_end());
        }
    }
    more(found.len().saturating_sub(most), "findings", style, out);
}

/// Cost, pressure, detail, fix and next step, where known.
fn said(finding: &Finding) -> String {
    let cost = finding.cost.as_ref().map(|cost| cost.words());
    let pressure = finding.pressure.as_ref().map(|pressure| pressure.words());
    let detail = Some(finding.detail.clone()).filter(|detail| !detail.is_empty());
    let fix = finding.fix.as_ref().map(|fix| format!("fix: {fix}"));
    let next = finding.next.as_ref().map(|next| format!("why: {next}"));
    [cost, pressure, detail, fix, next].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn more(count: usize, what: &str, style: &Style, out: &mut String) {
    if count > 0 {
        line(&format!("… {count} more {what} (all with --format json)"), Tone::Faint, style, out);
    }
}

fn heading(text: &str, style: &Style, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    line(text, Tone::Strong, style, out);
}

fn cross_check(comparison: &Comparison, lines: &[&(usize, CrossCheck)], style: &Style, out: &mut String) {
    heading("Event/counter cross-check  [cross-check]", style, out);
    let mut columns = vec![GridColumn::left("")];
    columns.extend(["events", "counters", "difference"].map(GridColumn::right));
    columns.push(GridColumn::right("").joined());
    let rows = lines.iter().map(|(input, line)| {
        let input = which(comparison, *input).map_or(String::new(), |name| format!("{name}: "));
        let difference = line.difference();
        let percent = line.counters.number().zip(line.events.number()).map(|(c, e)| change(c, e));
        let percent = percent.filter(|p| p.is_finite()).map(|p| format!("({p:+.2}%)"));
        vec![
            Entry::plain(format!("{input}{}", line.label)),
            value(&line.events, None),
            value(&line.counters, None),
            value(&difference, None),
            Entry::plain(percent.unwrap_or_default()),
        ]
    });
    Grid { rows: rows.collect(), columns, leading: 1 }.write(style, out);
    let cells = lines.iter().flat_map(|(_, line)| [&line.events, &line.counters]);
    footnote(cells, style, out);
}

fn value(cell: &Cell, decimals: Option<u8>) -> Entry {
    Entry::new(number::printed(cell, decimals), if cell.na().is_some() { Tone::Faint } else { Tone::Plain })
}

/// Says why values are n/a.
fn footnote<'a>(cells: impl Iterator<Item = &'a Cell>, style: &Style, out: &mut String) {
    let reasons: Vec<Na> = cells.filter_map(Cell::na).collect();
    let phrases = [Na::NotRecorded, Na::NotInKernel, Na::Lost, Na::Undefined].map(|reason| {
        let count = reasons.iter().filter(|other| **other == reason).count();
        (count > 0).then(|| format!("{} ({count})", reason.phrase()))
    });
    let phrases: Vec<String> = phrases.into_iter().flatten().collect();
    if !phrases.is_empty() {
        line(&format!("n/a: {}", phrases.join(", ")), Tone::Faint, style, out);
    }
}

fn table(comparison: &Comparison, table: &JoinedTable, style: &Style, out: &mut String) {
    let input = match &table.body {
        JoinedBody::Metric(_) => None,
        JoinedBody::Single { input, .. } => which(comparison, *input),
    };
    let input = input.map_or(String::new(), |name| format!(" of {name}"));
    heading(&format!("{}{input}  [{}]", table.title, table.name), style, out);
    line(&table.note, Tone::Faint, style, out);
    match &table.body {
        JoinedBody::Metric(rows) => metric(comparison, rows, style, out),
        JoinedBody::Single { body, .. } => single(body, style, out),
    }
}

fn metric(comparison: &Comparison, rows: &[Row], style: &Style, out: &mut String) {
    let cells = || rows.iter().flat_map(|row| &row.values).map(|value| &value.cell);
    if cells().all(|cell| cell.na().is_some()) {
        // nothing to align; the reasons say it all
        return footnote(cells(), style, out);
    }
    let several = comparison.columns.len() > 1;
    let mut columns = vec![GridColumn::left("")];
    let mut lines: Vec<Vec<Entry>> = rows.iter().map(|row| vec![Entry::plain(&row.label)]).collect();
    if rows.iter().any(|row| !row.unit.is_empty()) {
        columns.push(GridColumn::left("unit"));
        lines.iter_mut().zip(rows).for_each(|(line, row)| line.push(Entry::new(&row.unit, Tone::Faint)));
    }
    let leading = columns.len();
    for (index, name) in comparison.columns.iter().enumerate() {
        let published = |row: &Row| row.values.get(index).and_then(|value| value.published);
        let reproduces = rows.iter().any(|row| published(row).is_some());
        if reproduces {
            columns.push(GridColumn::right("published"));
            for (line, row) in lines.iter_mut().zip(rows) {
                line.push(Entry::plain(published(row).map_or(String::new(), |p| number::shortest(p.value))));
            }
        }
        columns.push(GridColumn::right(if several || reproduces { name } else { "" }));
        let mut parts: Vec<Part> = vec![
            (false, "", |row, value| Entry::plain(spread(row, value))),
            (true, "", |row, value| Entry::new(gain(row, value), tone(value))),
            (false, "", |_, value| Entry::new(mark(value), tone(value))),
            (false, "shift", |row, value| Entry::plain(shift(row, value))),
        ];
        for (line, row) in lines.iter_mut().zip(rows) {
            line.push(row.values.get(index).map_or(Entry::plain(""), |v| value(&v.cell, row.decimals)));
        }
        let text = |part: &Part, row: &Row| row.values.get(index).map_or(Entry::plain(""), |value| part.2(row, value));
        parts.retain(|part| rows.iter().any(|row| !text(part, row).is_empty()));
        for part in parts {
            let column = if part.0 { GridColumn::right(part.1) } else { GridColumn::left(part.1) };
            columns.push(column.joined());
            lines.iter_mut().zip(rows).for_each(|(line, row)| line.push(text(&part, row)));
        }
        if reproduces {
            columns.extend([GridColumn::right("error"), GridColumn::left("status")]);
            for (line, row) in lines.iter_mut().zip(rows) {
                let error = row.values.get(index).and_then(|value| value.published?.error_percent(&value.cell));
                line.push(Entry::plain(error.map_or(String::new(), |error| format!("{} %", signed(error, 1)))));
                line.push(Entry::plain(published(row).map_or("", |published| published.status())));
            }
        }
    }
    Grid { columns, rows: lines, leading }.write(style, out);
    footnote(cells(), style, out);
}

/// What stands beside a value: whether it is aligned to the right, its heading, its text.
type Part = (bool, &'static str, fn(&Row, &Value) -> Entry);

fn interval(interval: &Interval, decimals: Option<u8>) -> String {
    let text = |number| number::printed(&Cell::Float(number), decimals);
    format!("[{}, {}]", text(interval.low), text(interval.high))
}

/// The interval of a median, unless all runs between its ends are equal.
fn spread(row: &Row, value: &Value) -> String {
    let interval = value.interval.as_ref().filter(|interval| interval.low != interval.high);
    interval.map_or(String::new(), |bounds| self::interval(bounds, row.decimals))
}

/// A change with its sign; one of nothing has none.
fn signed(number: f64, decimals: usize) -> String {
    match format!("{number:+.decimals$}") {
        text if text.trim_start_matches(['+', '-', '0', '.']).is_empty() => format!("{:.decimals$}", 0.0),
        text => text,
    }
}

fn gain(row: &Row, value: &Value) -> String {
    match (row.gain, value.gain, value.change) {
        (_, Some(gain), _) => format!("({}%)", signed(gain, 2)),
        (Gain::None, None, Some(change)) if change.is_finite() => format!("({}%)", signed(change, 1)),
        (Gain::None, None, Some(_)) => "(from 0)".to_owned(),
        _ => String::new(),
    }
}

/// Whether a difference may be called one: a test has to confirm it.
fn verdict(value: &Value) -> Option<Verdict> {
    value.verdict.filter(|_| value.test.is_some_and(|test| test.significant()))
}

fn mark(value: &Value) -> String {
    let star = if value.test.is_some_and(|test| test.significant()) { "*" } else { "" };
    let word = verdict(value).map_or("", Verdict::word);
    [star, word].join(" ").trim().to_owned()
}

fn tone(value: &Value) -> Tone {
    match verdict(value) {
        Some(Verdict::Better) => Tone::Good,
        Some(Verdict::Worse) => Tone::Bad,
        None => Tone::Plain,
    }
}

fn shift(row: &Row, value: &Value) -> String {
    let Some(Test { shift, .. }) = value.test else { return String::new() };
    let estimate = number::printed(&Cell::Float(shift.estimate), row.decimals);
    format!("{estimate} {}", interval(&shift.interval, row.decimals))
}

fn single(body: &Body, style: &Style, out: &mut String) {
    match body {
        Body::Metric(_) => {} // joined: never the table of a single input
        Body::List { columns, rows } | Body::Series { columns, rows } => list(columns, rows, style, out),
        Body::Matrix { rows, columns, axes, unit, values } => {
            let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
            line(&format!("rows: {}, columns: {}{unit}", axes.0, axes.1), Tone::Faint, style, out);
            let mut grid = Grid { columns: vec![GridColumn::left("")], rows: Vec::new(), leading: 1 };
            grid.columns.extend(columns.iter().map(GridColumn::right));
            grid.rows = rows
                .iter()
                .zip(values)
                .map(|(label, cells)| {
                    std::iter::once(Entry::plain(label)).chain(cells.iter().map(|cell| value(cell, None))).collect()
                })
                .collect();
            grid.write(style, out);
            footnote(values.iter().flatten(), style, out);
        }
        Body::Histogram { unit, slots, mean, total } => {
            histogram::write(unit, slots, (*mean, *total), style.width, out)
        }
    }
}

/// The cells of a column as text.
fn texts<'a>(cells: impl Iterator<Item = &'a Cell> + Clone, style: &Style) -> Vec<String> {
    if style.people { cells.map(|cell| number::printed(cell, None)).collect() } else { number::aligned(cells) }
}

/// Stands for the end of a row that is too short.
static MISSING: Cell = Cell::Na(Na::NotRecorded);

fn list(columns: &[Column], rows: &[Vec<Cell>], style: &Style, out: &mut String) {
    if rows.is_empty() {
        return line("none", Tone::Faint, style, out);
    }
    let shown = rows.get(..style.rows.min(rows.len())).unwrap_or_default();
    let mut lines: Vec<Vec<Entry>> = vec![Vec::new(); shown.len()];
    let mut headings = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let cells = shown.iter().map(|row| row.get(index).unwrap_or(&MISSING));
        let words = cells.clone().any(|cell| matches!(cell, Cell::Text(_)));
        let heading =
            if column.unit.is_empty() { column.label.clone() } else { format!("{} ({})", column.label, column.unit) };
        headings.push(if words { GridColumn::left(heading) } else { GridColumn::right(heading) });
        for (line, (text, cell)) in lines.iter_mut().zip(texts(cells.clone(), style).into_iter().zip(cells)) {
            line.push(Entry::new(text, if cell.na().is_some() { Tone::Faint } else { Tone::Plain }));
        }
    }
    Grid { columns: headings, rows: lines, leading: 1 }.write(style, out);
    more(rows.len() - shown.len(), "rows", style, out);
    footnote(shown.iter().flatten(), style, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::single;
    use crate::model::Report;

    fn text(findings: usize, command: &str, width: usize) -> String {
        let finding = |severity| Finding {
            key: "k".into(),
            severity,
            sentence: format!("sentence {severity}."),
            detail: "detail".into(),
            command: command.into(),
            ..Finding::default()
        };
        let report = Report { findings: (0..findings as u8).map(finding).collect(), ..Report::default() };
        let mut out = Vec::new();
        write(&single(report), &Style { width, ..Style::default() }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_worst_five_findings() {
        let text = text(7, "", 80);
        let first = text.find("sentence 6").unwrap();
        assert!(first < text.find("sentence 2").unwrap() && !text.contains("sentence 1"), "{text}");
        assert!(text.ends_with("… 2 more findings (all with --format json)\n"), "{text}");
    }

    #[test]
    fn the_command_stands_beside_the_detail_if_there_is_room() {
        assert!(text(1, "mmtwin report r", 80).contains("\n    detail   mmtwin report r\n"));
        assert!(text(1, "mmtwin report r", 20).contains("\n    detail\n    mmtwin report r\n"));
        assert!(text(1, "", 80).contains("\n    detail\n"));
    }
}

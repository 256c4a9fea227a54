//! The blocks of the published reports as their scripts printed them: label and value widths, two-line titles.
//!
//! Rows come from the tables of this module's siblings, one column per input, baseline first. Two-decimal rounding is
//! that of printf; a sum of two times is printed as the shortest decimal, single times keep two decimals.

use crate::compare::{Comparison, JoinedBody, Row};
use crate::model::{Body, Cell, Gain, Metric, Table};

/// Name of a table of what a benchmark printed, with gains.
pub const BENCHMARK: &str = "benchmark";

/// One column: the name of its kernel and its table.
pub type Input<'a> = (&'a str, &'a Table);

/// True if a table has a historic layout.
pub fn has(table: &str) -> bool {
    layout(table).is_some()
}

/// How the values of a block are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Trace statistics.
    Trace,
    /// Durations.
    Duration,
    /// Statistics of counters.
    Vmstat,
    /// Raw counters with gains; true: with two decimals.
    Raw(bool),
}

fn layout(table: &str) -> Option<Layout> {
    Some(match table {
        "vmscan" | "congestion-wait" | "writepage" => Layout::Trace,
        "duration-2010" | "duration-2012" => Layout::Duration,
        "mmtests-vmstat" => Layout::Vmstat,
        "vmstat-gain-2010" | BENCHMARK => Layout::Raw(true),
        "vmstat-gain" => Layout::Raw(false),
        _ => return None,
    })
}

/// Prints a block; `None` if the table has no historic layout or no inputs.
pub fn print(inputs: &[Input<'_>]) -> Option<String> {
    let first = inputs.first()?.1;
    let layout = layout(&first.name)?;
    let rows: Vec<&Vec<Metric>> = inputs
        .iter()
        .map(|(_, table)| match &table.body {
            Body::Metric(rows) => Some(rows),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let least = if matches!(layout, Layout::Raw(_)) { 28 } else { 40 };
    let longest = rows[0].iter().map(|row| row.label.chars().count() + 1).max();
    let width = longest.unwrap_or(0).max(least);
    let mut out = format!("{}\n{}", first.title, titles(inputs.iter().map(|(name, _)| *name)));
    for row in rows[0] {
        if row.key == "total_scanned" {
            out.push('\n');
        }
        out.push_str(&format!("{:<width$}", row.label));
        // Inputs of different kernels need not have the same rows.
        let cells = rows.iter().map(|column| column.iter().find(|other| other.key == row.key).map(|row| &row.value));
        let cells: Vec<Option<&Cell>> = cells.collect();
        for cell in &cells {
            match cell {
                Some(cell) => out.push_str(&value(layout, row, cell, cells[0].and_then(Cell::number))),
                None => out.push_str(&format!("{:>10} ", "n/a")),
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    Some(out)
}

/// The blocks of a comparison, a column for each of its columns: of several runs the medians. `wanted`: which tables;
/// none: all that have a historic layout.
pub fn of_comparison(comparison: &Comparison, wanted: &[String]) -> String {
    let mut out = String::new();
    for table in &comparison.tables {
        let JoinedBody::Metric(rows) = &table.body else { continue };
        if !wanted.is_empty() && !wanted.contains(&table.name) {
            continue;
        }
        let column = |number: usize| {
            let metric = |row: &Row| Metric {
                key: row.key.clone(),
                label: row.label.clone(),
                unit: row.unit.clone(),
                better: row.better,
                gain: row.gain,
                decimals: row.decimals,
                value: row.values[number].cell.clone(),
                published: None,
            };
            Table {
                name: table.name.clone(),
                title: table.title.clone(),
                note: String::new(),
                body: Body::Metric(rows.iter().map(metric).collect()),
            }
        };
        let tables: Vec<Table> = (0..comparison.columns.len()).map(column).collect();
        let inputs: Vec<Input<'_>> = comparison.columns.iter().map(String::as_str).zip(&tables).collect();
        if let Some(block) = print(&inputs) {
            out.push_str(&block);
            out.push('\n');
        }
    }
    out
}

/// Two lines of titles: the third and fourth part of a name from its end, then the last two.
fn titles<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let (mut upper, mut lower) = (" ".repeat(12), " ".repeat(12));
    for name in names {
        let parts: Vec<&str> = name.split('-').collect();
        let cut = parts.len().saturating_sub(2);
        upper.push_str(&format!("{:>18}", parts[parts.len().saturating_sub(4)..cut].join("-")));
        lower.push_str(&format!("{:>18}", parts[cut..].join("-")));
    }
    format!("{}\n{}\n", upper.trim_end(), lower.trim_end())
}

/// One value of a block.
fn value(layout: Layout, row: &Metric, cell: &Cell, base: Option<f64>) -> String {
    let Some(number) = cell.number() else {
        return match layout {
            Layout::Trace => format!("{:>10} ", "n/a"),
            Layout::Duration => format!("{:>10}", "n/a"),
            Layout::Vmstat => format!("{:>12}", "n/a"),
            Layout::Raw(_) => format!(" {:>12} ({:>7}%)", "n/a", "n/a"),
        };
    };
    match layout {
        Layout::Trace => match row.unit.as_ref() {
            "%" => format!("{number:>9.2}%"),
            "ms" => format!("{:>10} ", format!("{number}ms")),
            "s" => format!("{:>10} ", format!("{number:.2}")),
            _ if row.key.starts_with("total_") => format!("{number:>10}"),
            _ => format!("{number:>10} "),
        },
        Layout::Duration if row.key == "user_system" => format!("{:>10}", shortest(number)),
        Layout::Duration => format!("{number:>10.2}"),
        Layout::Vmstat => match row.unit.as_ref() {
            "%" => format!("{:>12}", format!("{number:.0}%")),
            "pages/s" => format!("{:>12}", format!("{number:>8.3}")),
            _ => format!("{number:>12}"),
        },
        Layout::Raw(decimals) => {
            let gain = base.and_then(|base| row.gain.of(base, number)).filter(|_| row.gain != Gain::None);
            let number = if decimals { format!("{number:.2}") } else { format!("{number}") };
            format!(" {number:>12} ({:>7}%)", gain.map_or("n/a".into(), |gain| format!("{gain:.2}")))
        }
    }
}

/// A sum of two times with two decimals each, without trailing zeros.
fn shortest(seconds: f64) -> String {
    let two = format!("{seconds:.2}");
    two.trim_end_matches('0').trim_end_matches('.').to_string()
}

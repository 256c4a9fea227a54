//! The blocks of the published reports as their scripts printed them: label and value widths, two-line titles.
//!
//! Rows come from the tables of this module's siblings, one column per input, baseline first. Two-decimal rounding is
//! that of printf; a sum of two times is printed as the shortest decimal, single times keep two decimals.

use crate::model::{Body, Cell, Gain, Metric, Table};

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
        "vmstat-gain-2010" => Layout::Raw(true),
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
    let mut out = format!("{}\n{}", first.title, titles(inputs.iter().map(|(name, _)| *name)));
    for row in rows[0] {
        if row.key == "total_scanned" {
            out.push('\n');
        }
        let width = if matches!(layout, Layout::Raw(_)) { 28 } else { 40 };
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

//! Tables for people: rows of zeros, and rows, columns and tables without a value are omitted and counted; pages are shown
//! in MiB and numbers with three digits. `--all`, `--table` and the other formats have the exact values.

use crate::compare::{Comparison, JoinedBody, JoinedTable};
use crate::model::{Body, Cell};
use crate::units;

/// A value that is known and not zero.
pub(crate) fn tells(cell: &Cell) -> bool {
    match cell {
        Cell::Text(text) => !text.is_empty(),
        cell => cell.number().is_some_and(|number| number != 0.0),
    }
}

/// The same for numbers only: words are labels.
fn counts(cell: &Cell) -> bool {
    !matches!(cell, Cell::Text(_)) && tells(cell)
}

pub(crate) fn body_tells(body: &Body) -> bool {
    match body {
        Body::Metric(rows) => rows.iter().any(|row| tells(&row.value)),
        Body::List { rows, .. } | Body::Series { rows, .. } => rows.iter().any(|row| row_of_list_tells(row)),
        Body::Matrix { values, .. } => values.iter().flatten().any(counts),
        Body::Histogram { slots, .. } => slots.iter().any(|(_, _, count)| *count > 0),
    }
}

/// The first column says what a row is about, such as a node: its number is no figure.
fn row_of_list_tells(row: &[Cell]) -> bool {
    row.len() < 2 || row.iter().skip(1).any(counts) || row.iter().skip(1).all(|cell| matches!(cell, Cell::Text(_)))
}

/// What was omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Rows of zeros.
    pub zeros: usize,
    /// Rows without a known value.
    pub unknown: usize,
    /// Columns of lists without a known value.
    pub columns: usize,
    /// Tables with neither.
    pub tables: usize,
}

impl Omitted {
    /// A line about it; `None` if nothing was omitted.
    pub fn line(&self) -> Option<String> {
        let counted =
            |n: usize, one: &str, many: &str| (n > 0).then(|| format!("{n} {}", if n == 1 { one } else { many }));
        let parts = [
            counted(self.zeros, "row of zeros", "rows of zeros"),
            counted(self.unknown, "row without a value", "rows without a value"),
            counted(self.columns, "column without a value", "columns without a value"),
            counted(self.tables, "table without a value", "tables without a value"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{} omitted: --all", parts.join(", ")))
    }
}

impl Comparison {
    /// Omits rows and tables that say nothing, and writes numbers for people.
    pub fn for_people(&mut self) -> Omitted {
        let mut omitted = Omitted::default();
        if let Some(checks) = &mut self.cross_check {
            let all = checks.len();
            checks.retain(|(_, line)| line.difference().na().is_none());
            omitted.unknown += all - checks.len();
        }
        for table in &mut self.tables {
            omit_rows(&mut table.body, &mut omitted);
            omit_columns(&mut table.body, &mut omitted);
            rounded(&mut table.body);
        }
        self.tables.retain(|table| {
            let keep = has_rows(table);
            omitted.tables += usize::from(!keep);
            keep
        });
        omitted
    }
}

fn omit_rows(body: &mut JoinedBody, omitted: &mut Omitted) {
    let mut count = |known: bool| if known { omitted.zeros += 1 } else { omitted.unknown += 1 };
    match body {
        JoinedBody::Metric(rows) => rows.retain(|row| {
            let keep = row.values.iter().any(|value| tells(&value.cell) || value.published.is_some());
            if !keep {
                count(row.values.iter().any(|value| value.cell.na().is_none()));
            }
            keep
        }),
        JoinedBody::Single { body: Body::List { rows, .. }, .. } => rows.retain(|row| {
            let keep = row_of_list_tells(row);
            if !keep {
                count(row.iter().skip(1).any(|cell| cell.number().is_some()));
            }
            keep
        }),
        JoinedBody::Single { .. } => {}
    }
}

/// Columns of a list of which nothing is known.
fn omit_columns(body: &mut JoinedBody, omitted: &mut Omitted) {
    let JoinedBody::Single { body: Body::List { columns, rows }, .. } = body else { return };
    if rows.is_empty() {
        return;
    }
    let known = |i: usize| rows.iter().any(|row| row.get(i).is_some_and(|cell| cell.na().is_none()));
    let keep: Vec<bool> = (0..columns.len()).map(|i| i == 0 || known(i)).collect();
    omitted.columns += keep.iter().filter(|keep| !**keep).count();
    let kept = |i: &mut usize| {
        *i += 1;
        keep.get(*i - 1).copied().unwrap_or(true)
    };
    let mut at = 0;
    columns.retain(|_| kept(&mut at));
    for row in rows {
        let mut at = 0;
        row.retain(|_| kept(&mut at));
    }
}

fn has_rows(table: &JoinedTable) -> bool {
    match &table.body {
        JoinedBody::Metric(rows) => !rows.is_empty(),
        JoinedBody::Single { body, .. } => body_tells(body),
    }
}

/// Pages of which people think in bytes.
const MIB: f64 = units::PAGE / (1 << 20) as f64;

fn scaled(cell: &mut Cell, unit: &str) {
    let factor = if unit.starts_with("pages") { MIB } else { 1.0 };
    match cell {
        Cell::Int(number) if factor != 1.0 => *cell = Cell::Float(units::rounded(*number as f64 * factor)),
        Cell::Float(number) if number.is_finite() => *number = units::rounded(*number * factor),
        _ => {}
    }
}

/// The unit that a value in it is shown in.
fn unit_for_people(unit: &str) -> &str {
    match unit {
        "pages" => "MiB",
        "pages/s" => "MiB/s",
        unit => unit,
    }
}

fn rounded(body: &mut JoinedBody) {
    match body {
        JoinedBody::Metric(rows) => {
            for row in rows {
                for value in &mut row.values {
                    scaled(&mut value.cell, &row.unit);
                }
                row.decimals = None;
                row.unit = unit_for_people(&row.unit).to_owned().into();
            }
        }
        JoinedBody::Single { body: Body::List { columns, rows } | Body::Series { columns, rows }, .. } => {
            // A row may have a unit of its own.
            if let Some(unit) = columns.iter().position(|column| column.key == "unit") {
                for row in rows.iter_mut() {
                    let Some(Cell::Text(of)) = row.get(unit).cloned() else { continue };
                    row.iter_mut().for_each(|cell| scaled(cell, &of));
                    row[unit] = Cell::Text(unit_for_people(&of).to_owned());
                }
            }
            for (i, column) in columns.iter_mut().enumerate() {
                rows.iter_mut().filter_map(|row| row.get_mut(i)).for_each(|cell| scaled(cell, column.unit));
                column.unit = match column.unit {
                    "pages" => "MiB",
                    "pages/s" => "MiB/s",
                    unit => unit,
                };
            }
        }
        JoinedBody::Single { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::single;
    use crate::model::{Report, Table};

    #[test]
    fn zeros_and_unknown_values_are_omitted_and_counted() {
        let row = |key: &str, unit: &'static str, value| crate::model::Metric {
            key: key.into(),
            label: key.into(),
            unit: unit.into(),
            better: crate::model::Better::Neutral,
            gain: crate::model::Gain::None,
            decimals: Some(2),
            value,
            published: None,
        };
        let na = Cell::Na(crate::model::Na::NotRecorded);
        let rows = vec![
            row("some", "pages", Cell::Int(12_345)),
            row("none", "pages", Cell::Int(0)),
            row("unknown", "", na.clone()),
            row("rate", "pages/s", Cell::Float(1234.5)),
        ];
        let table = |name: &str, body| Table { name: name.into(), title: name.into(), note: String::new(), body };
        let list = Body::List {
            columns: Vec::new(),
            rows: vec![vec![Cell::Int(1), Cell::Int(0)], vec![Cell::Int(0), Cell::Int(5)]],
        };
        let empty = Body::Metric(vec![row("n", "", na)]);
        let tables = vec![table("a", Body::Metric(rows)), table("b", list), table("c", empty)];
        let mut comparison = single(Report { tables, ..Report::default() });
        let omitted = comparison.for_people();
        assert_eq!(omitted, Omitted { zeros: 2, unknown: 2, columns: 0, tables: 1 });
        let text = "2 rows of zeros, 2 rows without a value, 1 table without a value omitted: --all";
        assert_eq!(omitted.line().as_deref(), Some(text));
        let JoinedBody::Metric(rows) = &comparison.tables[0].body else { panic!("a table of rows") };
        let shown: Vec<(&str, &Cell)> = rows.iter().map(|row| (row.unit.as_ref(), &row.values[0].cell)).collect();
        assert_eq!(shown, [("MiB", &Cell::Float(48.2)), ("MiB/s", &Cell::Float(4.82))]);
        assert_eq!(comparison.for_people(), Omitted::default());
        assert_eq!(Omitted::default().line(), None);
    }
}

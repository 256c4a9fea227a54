//! CSV by RFC 4180 (lines end in a single line feed): one block per table, a blank line between blocks, the table's
//! name as first field, so that `--table NAME` leaves one clean block.
//!
//! metric          table, key, label, unit, better, then for each column NAME, and beyond the baseline
//!                 "NAME change_percent" (plain) and "NAME gain_percent" (by the row's rule); with several runs also
//!                 "NAME low", "NAME high", "NAME runs" and beyond the baseline "NAME p_adjusted", "NAME shift",
//!                 "NAME shift_low", "NAME shift_high"; where a column reproduces a published table also
//!                 "NAME published", "NAME error_percent", "NAME fitted"
//! list, series    table, input, then the keys of the columns; inputs with the same columns share a block
//! matrix          table, input, row axis, column axis, value: one line per value
//! histogram       table, input, low, high, count: one line per slot
//!
//! A value that is not known is `n/a`; a field that does not apply (the gain of a row without rule) is empty.

use crate::compare::{CROSS_CHECK, Comparison, FINDINGS, JoinedBody, JoinedTable, Row, Value};
use crate::model::{Body, Cell};
use std::io;

/// Writes all blocks.
pub(super) fn write(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(findings(comparison));
    blocks.extend(cross_check(comparison));
    for table in &comparison.tables {
        let block = match &table.body {
            JoinedBody::Metric(rows) => metric(comparison, table, rows),
            JoinedBody::Single { input, body } => single(table, input_name(comparison, *input), body),
        };
        match blocks.last_mut() {
            Some(last) if last.table == block.table && last.header == block.header => last.rows.extend(block.rows),
            _ => blocks.push(block),
        }
    }
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            out.write_all(b"\n")?;
        }
        line(out, "table", &block.header)?;
        for row in &block.rows {
            line(out, &block.table, row)?;
        }
    }
    Ok(())
}

/// Header and rows, both without the first field.
struct Block {
    table: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn line(out: &mut dyn io::Write, first: &str, fields: &[String]) -> io::Result<()> {
    out.write_all(quoted(first).as_bytes())?;
    for field in fields {
        out.write_all(b",")?;
        out.write_all(quoted(field).as_bytes())?;
    }
    out.write_all(b"\n")
}

pub(crate) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn input_name(comparison: &Comparison, input: usize) -> String {
    comparison.inputs.get(input).map_or(String::new(), |input| input.info.name.clone())
}

fn exact(cell: &Cell) -> String {
    match cell {
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) if number.is_finite() => number.to_string(),
        Cell::Text(word) => word.clone(),
        Cell::Float(_) | Cell::Na(_) => "n/a".to_owned(),
    }
}

fn findings(comparison: &Comparison) -> Option<Block> {
    let rows = comparison.findings.as_ref()?.iter().map(|(input, f)| {
        let severity = f.severity.to_string();
        vec![
            input_name(comparison, *input),
            f.key.clone(),
            severity,
            f.sentence.clone(),
            f.detail.clone(),
            f.command.clone(),
        ]
    });
    let header = owned(&["input", "key", "severity", "sentence", "detail", "command"]);
    Some(Block { table: FINDINGS.to_owned(), header, rows: rows.collect() })
}

fn cross_check(comparison: &Comparison) -> Option<Block> {
    let rows = comparison.cross_check.as_ref()?.iter().map(|(input, line)| {
        let difference = exact(&line.difference());
        vec![
            input_name(comparison, *input),
            line.key.clone(),
            line.label.clone(),
            exact(&line.events),
            exact(&line.counters),
            difference,
        ]
    });
    let header = owned(&["input", "key", "label", "events", "counters", "difference"]);
    Some(Block { table: CROSS_CHECK.to_owned(), header, rows: rows.collect() })
}

fn metric(comparison: &Comparison, table: &JoinedTable, rows: &[Row]) -> Block {
    let several_runs = comparison.inputs.len() > comparison.columns.len();
    let mut header = owned(&["key", "label", "unit", "better"]);
    for (index, name) in comparison.columns.iter().enumerate() {
        let beyond = index > 0;
        let changes = ["change_percent", "gain_percent"].map(|fact| (fact, beyond));
        let runs = ["low", "high", "runs"].map(|fact| (fact, several_runs));
        let tests = ["p_adjusted", "shift", "shift_low", "shift_high"].map(|fact| (fact, several_runs && beyond));
        let published = ["published", "error_percent", "fitted"].map(|fact| (fact, reproduces(rows, index)));
        header.push(name.clone());
        header.extend(
            changes
                .iter()
                .chain(&runs)
                .chain(&tests)
                .chain(&published)
                .filter(|(_, shown)| *shown)
                .map(|(fact, _)| format!("{name} {fact}")),
        );
    }
    let lines = rows.iter().map(|row| {
        let mut fields = owned(&[&row.key, &row.label, &row.unit, row.better.word()]);
        for (index, value) in row.values.iter().enumerate() {
            fields.extend(value_fields(value, index > 0, several_runs));
            if reproduces(rows, index) {
                fields.extend(published_fields(value));
            }
        }
        fields
    });
    Block { table: table.name.clone(), header, rows: lines.collect() }
}

fn value_fields(value: &Value, beyond: bool, several_runs: bool) -> Vec<String> {
    let text = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    let mut fields = vec![exact(&value.cell)];
    if beyond {
        fields.push(text(value.change.filter(|change| change.is_finite())));
        fields.push(text(value.gain));
    }
    if several_runs {
        fields.push(text(value.interval.map(|i| i.low)));
        fields.push(text(value.interval.map(|i| i.high)));
        fields.push(value.runs.to_string());
    }
    if several_runs && beyond {
        fields.push(text(value.test.map(|t| t.adjusted)));
        fields.push(text(value.test.map(|t| t.shift.estimate)));
        fields.push(text(value.test.map(|t| t.shift.interval.low)));
        fields.push(text(value.test.map(|t| t.shift.interval.high)));
    }
    fields
}

/// True if a column has published figures beside its own.
fn reproduces(rows: &[Row], column: usize) -> bool {
    rows.iter().any(|row| row.values.get(column).is_some_and(|value| value.published.is_some()))
}

fn published_fields(value: &Value) -> [String; 3] {
    let Some(published) = value.published else { return Default::default() };
    let error = published.error_percent(&value.cell).map_or(String::new(), |error| error.to_string());
    [published.value.to_string(), error, published.fitted.to_string()]
}

fn single(table: &JoinedTable, input: String, body: &Body) -> Block {
    let row = |fields: Vec<String>| [vec![input.clone()], fields].concat();
    let (header, rows) = match body {
        Body::Metric(_) => (Vec::new(), Vec::new()), // joined: never the table of a single input
        Body::List { columns, rows } | Body::Series { columns, rows } => {
            let header = std::iter::once("input".to_owned()).chain(columns.iter().map(|c| c.key.clone())).collect();
            (header, rows.iter().map(|cells| row(cells.iter().map(exact).collect())).collect())
        }
        Body::Matrix { rows, columns, axes, values, .. } => {
            let lines = rows.iter().zip(values).flat_map(|(from, cells)| {
                let row = &row;
                columns.iter().zip(cells).map(move |(to, cell)| row(vec![from.clone(), to.clone(), exact(cell)]))
            });
            (owned(&["input", &axes.0, &axes.1, "value"]), lines.collect())
        }
        Body::Histogram { slots, .. } => {
            let lines = slots.iter().map(|(low, high, count)| row([low, high, count].map(u64::to_string).to_vec()));
            (owned(&["input", "low", "high", "count"]), lines.collect())
        }
    };
    Block { table: table.name.clone(), header, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        assert_eq!(quoted("plain words"), "plain words");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
    }
}

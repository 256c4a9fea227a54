//! Tables as Arrow record batches.

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema};
use mmtwin_report::compare::{CROSS_CHECK, Comparison, FINDINGS, JoinedBody, JoinedTable, Row};
use mmtwin_report::model::{Body, Cell, Column, Cost, CrossCheck, Finding, Pressure};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A table.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Stable name, as `--table` has it.
    pub name: String,
    /// Its rows. The schema's metadata has `title`, `note` and, of a table of one input, `input`.
    pub rows: RecordBatch,
}

/// A field with its values.
type Filled = (Field, ArrayRef);

/// All tables of a comparison, or of a report made a comparison by [`mmtwin_report::compare::single`].
///
/// A table of metrics has a row for each quantity and column of the comparison: `key`, `label`, `unit`, `better`
/// (`lower`, `higher`, `neutral`), `column`, `value`, `integer` (the same, exact, where it is a whole number below 2^63),
/// `na` (why there is no value), `runs`, `low` and `high` (interval of the median of several runs), `gain` (over the
/// baseline), `p` (adjusted) and `published`. A list or series has its own columns, whose unit is metadata of the field,
/// and behind a column with values that are not known `NAME_na`: why; a matrix `row`, `column`, `value`, `integer` and
/// `na`; a histogram `low`, `high` and `count`. What is not known is null. Two more tables are `findings` and
/// `cross-check`, if they are selected. `docs/reference/formats.md` has the types.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mmtwin::{Trace, batches};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/host-6.18.dat");
/// let report = Trace::open(path)?.analyse(&mut |_| {})?.report();
/// let tables = batches(&mmtwin::report::compare::single(report))?;
/// let vmscan = tables.iter().find(|table| table.name == "vmscan").expect("a table");
/// assert!(vmscan.rows.num_rows() > 0);
/// assert!(vmscan.rows.column_by_name("value").is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If a table is none: rows that are shorter than its columns.
pub fn batches(comparison: &Comparison) -> Result<Vec<Batch>, ArrowError> {
    let findings = comparison.findings.as_ref().map(|_| made(FINDINGS, HashMap::new(), findings(comparison)));
    let checks = comparison.cross_check.as_ref().map(|_| made(CROSS_CHECK, HashMap::new(), cross_check(comparison)));
    findings.into_iter().chain(checks).chain(comparison.tables.iter().map(|table| batch(table, comparison))).collect()
}

fn batch(table: &JoinedTable, comparison: &Comparison) -> Result<Batch, ArrowError> {
    let mut metadata = HashMap::from([("title", table.title.as_str()), ("note", table.note.as_str())].map(owned));
    let filled = match &table.body {
        JoinedBody::Metric(rows) => metrics(rows, &comparison.columns),
        JoinedBody::Single { input, body } => {
            metadata.extend(comparison.inputs.get(*input).map(|input| ("input".into(), input.info.name.clone())));
            single(body)
        }
    };
    made(&table.name, metadata, filled)
}

fn made(name: &str, metadata: HashMap<String, String>, filled: Vec<Filled>) -> Result<Batch, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = filled.into_iter().unzip();
    let schema = Schema::new_with_metadata(fields, metadata);
    Ok(Batch { name: name.into(), rows: RecordBatch::try_new(Arc::new(schema), arrays)? })
}

/// Sentences of verdict, worst first, as the JSON output has them; of who waited only the one that waited longest.
fn findings(comparison: &Comparison) -> Vec<Filled> {
    let all = || comparison.findings.iter().flatten();
    let words = |of: &dyn Fn(&Finding) -> Option<&str>| all().map(|(_, f)| of(f).map(str::to_string)).collect();
    let cost = |of: fn(&Cost) -> Option<u64>| all().map(|(_, f)| of(f.cost.as_ref()?).map(i128::from)).collect();
    let pressure = |of: fn(&Pressure) -> Option<f64>| all().map(|(_, f)| of(f.pressure.as_ref()?)).collect();
    vec![
        text("input", all().map(|(input, _)| name(comparison, *input)).collect()),
        text("key", words(&|f| Some(&f.key))),
        counts("severity", all().map(|(_, f)| f.severity.into()).collect()),
        text("sentence", words(&|f| Some(&f.sentence))),
        text("detail", words(&|f| Some(&f.detail))),
        text("command", words(&|f| Some(&f.command))),
        text("fix", words(&|f| f.fix.as_deref())),
        text("next", words(&|f| f.next.as_deref())),
        whole("waited_ns", cost(|cost| Some(cost.waited))),
        whole("elapsed_ns", cost(|cost| cost.elapsed)),
        text("longest", words(&|f| Some(f.cost.as_ref()?.by.first()?.name.as_str()))),
        text("cgroup", words(&|f| f.cost.as_ref()?.cgroup.as_deref())),
        floats("memory_some", pressure(|pressure| pressure.memory_some)),
        floats("memory_full", pressure(|pressure| pressure.memory_full)),
        floats("io_some", pressure(|pressure| pressure.io_some)),
    ]
}

/// Sums over events beside changes of counters.
fn cross_check(comparison: &Comparison) -> Vec<Filled> {
    let all = || comparison.cross_check.iter().flatten();
    let mut filled = vec![
        text("input", all().map(|(input, _)| name(comparison, *input)).collect()),
        text("key", all().map(|(_, line)| Some(line.key.clone())).collect()),
        text("label", all().map(|(_, line)| Some(line.label.clone())).collect()),
    ];
    for name in ["events", "counters", "difference"] {
        let cell = |line: &CrossCheck| match name {
            "events" => line.events.clone(),
            "counters" => line.counters.clone(),
            _ => line.difference(),
        };
        let cells: Vec<Cell> = all().map(|(_, line)| cell(line)).collect();
        filled.push(floats(name, cells.iter().map(Cell::number).collect()));
        filled.push(text(&format!("{name}_na"), cells.iter().map(reason).collect()));
    }
    filled
}

fn name(comparison: &Comparison, input: usize) -> Option<String> {
    comparison.inputs.get(input).map(|input| input.info.name.clone())
}

/// Why a value is not known, in the word of the JSON output.
fn reason(cell: &Cell) -> Option<String> {
    cell.na().map(|na| na.word().into())
}

fn metrics(rows: &[Row], columns: &[String]) -> Vec<Filled> {
    let all =
        || rows.iter().flat_map(|row| row.values.iter().zip(columns).map(move |(value, column)| (row, value, column)));
    let words = |of: &dyn Fn(&Row) -> String| all().map(|(row, ..)| Some(of(row))).collect();
    let interval = |of: fn(&mmtwin_report::statistics::Interval) -> f64| {
        all().map(|(_, value, _)| value.interval.as_ref().map(of)).collect()
    };
    vec![
        text("key", words(&|row| row.key.clone())),
        text("label", words(&|row| row.label.clone())),
        text("unit", words(&|row| row.unit.to_string())),
        text("better", words(&|row| row.better.word().into())),
        text("column", all().map(|(.., column)| Some(column.clone())).collect()),
        floats("value", all().map(|(_, value, _)| value.cell.number()).collect()),
        integers("integer", all().map(|(_, value, _)| integer(&value.cell)).collect()),
        text("na", all().map(|(_, value, _)| reason(&value.cell)).collect()),
        counts("runs", all().map(|(_, value, _)| value.runs as u64).collect()),
        floats("low", interval(|interval| interval.low)),
        floats("high", interval(|interval| interval.high)),
        floats("gain", all().map(|(_, value, _)| value.gain).collect()),
        floats("p", all().map(|(_, value, _)| value.test.map(|test| test.adjusted)).collect()),
        floats("published", all().map(|(_, value, _)| value.published.map(|published| published.value)).collect()),
    ]
}

fn single(body: &Body) -> Vec<Filled> {
    match body {
        // Tables of metrics are joined.
        Body::Metric(_) => Vec::new(),
        Body::List { columns, rows } | Body::Series { columns, rows } => {
            let mut taken: HashSet<String> = columns.iter().map(|column| column.key.clone()).collect();
            columns.iter().enumerate().flat_map(|(at, column)| list(column, rows, at, &mut taken)).collect()
        }
        Body::Matrix { rows, columns, values, .. } => {
            let all =
                || rows.iter().zip(values).flat_map(|(row, cells)| columns.iter().zip(cells).map(move |of| (row, of)));
            vec![
                text("row", all().map(|(row, _)| Some(row.clone())).collect()),
                text("column", all().map(|(_, (column, _))| Some(column.clone())).collect()),
                floats("value", all().map(|(_, (_, cell))| cell.number()).collect()),
                integers("integer", all().map(|(_, (_, cell))| integer(cell)).collect()),
                text("na", all().map(|(_, (_, cell))| reason(cell)).collect()),
            ]
        }
        Body::Histogram { slots, .. } => vec![
            counts("low", slots.iter().map(|slot| slot.0).collect()),
            counts("high", slots.iter().map(|slot| slot.1).collect()),
            counts("count", slots.iter().map(|slot| slot.2).collect()),
        ],
    }
}

/// A column of a list: whole numbers if all that are known are, text if any is, else floating-point numbers. Behind it, if
/// some are not known, why; `taken` are names of columns.
fn list(column: &Column, rows: &[Vec<Cell>], at: usize, taken: &mut HashSet<String>) -> Vec<Filled> {
    let cells = || rows.iter().map(move |row| row.get(at));
    let known = || cells().flatten().filter(|cell| cell.na().is_none());
    let (field, array) = if known().any(|cell| matches!(cell, Cell::Text(_))) {
        text(&column.key, cells().map(|cell| cell.and_then(word)).collect())
    } else if known().all(|cell| matches!(cell, Cell::Int(_))) {
        let exact = |cell: &Cell| if let Cell::Int(number) = cell { Some(*number) } else { None };
        whole(&column.key, cells().map(|cell| cell.and_then(exact)).collect())
    } else {
        floats(&column.key, cells().map(|cell| cell.and_then(Cell::number)).collect())
    };
    let metadata = HashMap::from([("label", column.label.as_str()), ("unit", column.unit)].map(owned));
    let mut filled = vec![(field.with_metadata(metadata), array)];
    let reasons: Vec<_> = cells().map(|cell| cell.and_then(reason)).collect();
    if reasons.iter().any(Option::is_some) {
        let mut name = format!("{}_na", column.key);
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        filled.push(text(&name, reasons));
    }
    filled
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.into(), value.into())
}

fn word(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Text(word) => Some(word.clone()),
        Cell::Int(number) => Some(number.to_string()),
        Cell::Float(number) => Some(number.to_string()),
        Cell::Na(_) => None,
    }
}

fn integer(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Int(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn filled(name: &str, array: ArrayRef) -> Filled {
    (Field::new(name, array.data_type().clone(), true), array)
}

fn text(name: &str, values: Vec<Option<String>>) -> Filled {
    filled(name, Arc::new(StringArray::from(values)))
}

fn floats(name: &str, values: Vec<Option<f64>>) -> Filled {
    filled(name, Arc::new(Float64Array::from(values)))
}

fn integers(name: &str, values: Vec<Option<i64>>) -> Filled {
    filled(name, Arc::new(Int64Array::from(values)))
}

/// Whole numbers: signed, where one does not fit unsigned, where that does not either floating-point ones.
fn whole(name: &str, values: Vec<Option<i128>>) -> Filled {
    let known = || values.iter().flatten();
    if known().all(|n| i64::try_from(*n).is_ok()) {
        integers(name, values.into_iter().map(|n| n.map(|n| n as i64)).collect())
    } else if known().all(|n| u64::try_from(*n).is_ok()) {
        filled(name, Arc::new(values.into_iter().map(|n| n.map(|n| n as u64)).collect::<UInt64Array>()))
    } else {
        floats(name, values.into_iter().map(|n| n.map(|n| n as f64)).collect())
    }
}

fn counts(name: &str, values: Vec<u64>) -> Filled {
    filled(name, Arc::new(UInt64Array::from(values)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
    use mmtwin_report::compare::compare;
    use mmtwin_report::model::{Better, Gain, InputInfo, Metric, Na, Report, Table};

    fn metric(key: &str, value: Cell) -> Metric {
        Metric {
            key: key.into(),
            label: key.to_uppercase(),
            unit: "pages".into(),
            better: Better::Lower,
            gain: Gain::None,
            decimals: None,
            value,
            published: None,
        }
    }

    fn report(name: &str, value: Cell) -> Report {
        let column = |key: &str| Column { key: key.into(), label: key.into(), unit: "us" };
        let rows = vec![
            vec![Cell::int(u64::MAX), Cell::Float(0.5), Cell::Text("a".into())],
            vec![Cell::Na(Na::Lost), Cell::Int(2), Cell::Int(3)],
        ];
        let bodies = [
            Body::Metric(vec![metric("scanned", value), metric("lost", Cell::Na(Na::Lost))]),
            Body::List { columns: ["whole", "half", "word"].map(column).into(), rows },
            Body::Matrix {
                rows: vec!["0".into(), "1".into()],
                columns: vec!["0".into(), "1".into()],
                axes: ("from".into(), "to".into()),
                unit: "",
                values: vec![vec![Cell::Int(1), Cell::Int(2)], vec![Cell::Int(3), Cell::Na(Na::Undefined)]],
            },
            Body::Histogram { unit: "us", slots: vec![(0, 1, 7), (2, 3, 9)], mean: None, total: 0 },
        ];
        let names = ["metrics", "list", "matrix", "histogram"];
        let table = |(name, body): (&str, Body)| Table { name: name.into(), title: "T".into(), note: "N".into(), body };
        let tables = names.into_iter().zip(bodies).map(table).collect();
        Report { input: InputInfo { name: name.into(), ..InputInfo::default() }, tables, ..Report::default() }
    }

    #[test]
    fn every_kind_of_table_has_its_shape() {
        // Above 2^53, where a float is not exact.
        let exact = (1 << 60) + 1;
        let columns = [("a", exact), ("b", 7)].map(|(name, value)| (name.into(), vec![report(name, Cell::int(value))]));
        let tables = batches(&compare(columns.into())).unwrap();
        let named = |name: &str| &tables.iter().find(|table| table.name == name).expect(name).rows;
        let metrics = named("metrics");
        assert_eq!(metrics.num_rows(), 4, "two quantities of two columns");
        let column = |name: &str| metrics.column_by_name(name).expect(name);
        assert_eq!(column("integer").as_primitive::<Int64Type>().value(0), exact as i64);
        assert_eq!(column("value").as_primitive::<Float64Type>().value(1), 7.0);
        assert_eq!(column("column").as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b", "a", "b"]);
        assert_eq!(column("value").null_count(), 2);
        assert_eq!(column("na").as_string::<i32>().value(3), "lost");
        let list = named("list");
        let of = |name: &str| list.column_by_name(name).expect(name);
        assert_eq!(of("whole").as_primitive::<UInt64Type>().iter().collect::<Vec<_>>(), [Some(u64::MAX), None]);
        assert_eq!(of("whole_na").as_string::<i32>().iter().collect::<Vec<_>>(), [None, Some("lost")]);
        assert_eq!(of("half").as_primitive::<Float64Type>().values().to_vec(), [0.5, 2.0]);
        assert_eq!(of("word").as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "3"]);
        assert!(list.column_by_name("half_na").is_none(), "all of it is known");
        assert_eq!(list.schema().field(2).metadata()["unit"], "us");
        assert_eq!(list.schema().metadata()["input"], "a");
        let matrix = named("matrix").column_by_name("na").expect("reasons").as_string::<i32>();
        assert_eq!(matrix.iter().collect::<Vec<_>>(), [None, None, None, Some("undefined")]);
        let matrix = named("matrix").column_by_name("value").expect("values").as_primitive::<Float64Type>();
        assert_eq!(matrix.iter().collect::<Vec<_>>(), [Some(1.0), Some(2.0), Some(3.0), None]);
        let histogram = named("histogram").column_by_name("count").expect("counts").as_primitive::<UInt64Type>();
        assert_eq!(histogram.values().to_vec(), [7, 9]);
    }
}

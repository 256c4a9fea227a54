//! JSON, schema_version 2. Keys keep this order; they are added to, never renamed or removed, within a version.
//!
//! ```text
//! schema_version  2
//! inputs          [{name, column, arm, kernel, lost_events, events, scenario}]; column is an index into a metric
//!                 table's columns: several inputs of one column are runs of it. lost_events is null where it is not
//!                 known, and then lost_at_least is what was counted, if anything was; incomplete, only where parts of
//!                 an input are missing, lists them with their positions; filter, only where a part of an input was read,
//!                 says which
//! notes           what to know before comparing, sentences
//! findings        [{input, key, severity, sentence, detail, command}], worst first; null if not selected
//! cross_check     [{input, key, label, events, counters, difference, na}]; null if not selected
//! tables          [{name, kind, title, note, ...}] with, by kind:
//!   metric        columns [name], baseline first; rows [{key, label, unit, better, gain_rule, values, and arrays
//!                 parallel to values}]: na, change_percent (plain, from the baseline), gain_percent (by gain_rule),
//!                 verdict (better|worse), runs, low, high, confidence (interval of the median), significant, p,
//!                 p_adjusted, shift, shift_low, shift_high (Hodges-Lehmann, from the baseline), published,
//!                 error_percent, fitted (null unless a published table is reproduced)
//!   list, series  input, columns [{key, label, unit}], rows [[value]], na
//!   matrix        input, row_axis, column_axis, unit, rows [label], columns [label], values [[value]], na
//!   histogram     input, unit, slots [[low, high, count]], count, total, mean
//! ```
//!
//! `input` is an index into `inputs`. `null` is a value that is not known; the reason (`not-recorded`, `not-in-kernel`,
//! `lost`) stands in the parallel array `na` of a metric row and of a cross-check (events, counters), elsewhere in
//! a sparse list `na` of [row, column, reason]. Integers are exact; there is no NaN and no infinity.

use crate::compare::{Comparison, Input, JoinedBody, JoinedTable, Row, Value};
use crate::model::{Body, Cell, Column, CrossCheck, Finding, Waiter};
use serde::{Serialize, Serializer};
use std::io;

/// Writes the document and a line feed.
pub(super) fn write(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    let document = Document {
        schema_version: 2,
        inputs: comparison.inputs.iter().map(input).collect(),
        notes: &comparison.notes,
        findings: comparison.findings.as_ref().map(|f| f.iter().map(finding).collect()),
        cross_check: comparison.cross_check.as_ref().map(|r| r.iter().map(cross_check).collect()),
        tables: comparison.tables.iter().map(|t| table(&comparison.columns, t)).collect(),
    };
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    inputs: Vec<InputJson<'a>>,
    notes: &'a [String],
    findings: Option<Vec<FindingJson<'a>>>,
    cross_check: Option<Vec<CrossCheckJson<'a>>>,
    tables: Vec<TableJson<'a>>,
}

#[derive(Serialize)]
struct InputJson<'a> {
    name: &'a str,
    column: usize,
    arm: &'a str,
    kernel: Option<&'a str>,
    lost_events: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_at_least: Option<u64>,
    events: Option<u64>,
    scenario: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    incomplete: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a str>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    input: usize,
    key: &'a str,
    severity: u8,
    sentence: &'a str,
    detail: &'a str,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<PressureJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

/// Nanoseconds; `share` is waited / elapsed and may exceed 1.
#[derive(Serialize)]
struct CostJson<'a> {
    waited: u64,
    elapsed: Option<u64>,
    share: Option<f64>,
    by: Vec<WaiterJson<'a>>,
    more: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    measured: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    accounted: Option<AccountedJson>,
}

/// Nanoseconds: the kernel's, and what events say of the same tasks and of those that the kernel has not.
#[derive(Serialize)]
struct AccountedJson {
    kernel: u64,
    events: u64,
    others: u64,
}

#[derive(Serialize)]
struct WaiterJson<'a> {
    name: &'a str,
    waited: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
}

/// Shares of elapsed time from 0 to 1.
#[derive(Serialize)]
struct PressureJson<'a> {
    of: &'a str,
    memory_some: Option<f64>,
    memory_full: Option<f64>,
    io_some: Option<f64>,
}

#[derive(Serialize)]
struct CrossCheckJson<'a> {
    input: usize,
    key: &'a str,
    label: &'a str,
    events: Known<'a>,
    counters: Known<'a>,
    difference: Owned,
    na: [Option<&'static str>; 2],
}

#[derive(Serialize)]
struct TableJson<'a> {
    name: &'a str,
    kind: &'static str,
    title: &'a str,
    note: &'a str,
    #[serde(flatten)]
    body: BodyJson<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum BodyJson<'a> {
    Metric {
        columns: &'a [String],
        rows: Vec<RowJson<'a>>,
    },
    List {
        input: usize,
        columns: Vec<ColumnJson<'a>>,
        rows: Vec<Vec<Known<'a>>>,
        na: Vec<Reason>,
    },
    Matrix {
        input: usize,
        row_axis: &'a str,
        column_axis: &'a str,
        unit: &'a str,
        rows: &'a [String],
        columns: &'a [String],
        values: Vec<Vec<Known<'a>>>,
        na: Vec<Reason>,
    },
    Histogram {
        input: usize,
        unit: &'a str,
        slots: &'a [(u64, u64, u64)],
        count: u128,
        total: u64,
        mean: Option<f64>,
    },
}

#[derive(Serialize)]
struct RowJson<'a> {
    key: &'a str,
    label: &'a str,
    unit: &'a str,
    better: &'static str,
    gain_rule: &'static str,
    values: Vec<Known<'a>>,
    na: Vec<Option<&'static str>>,
    change_percent: Vec<Option<f64>>,
    gain_percent: Vec<Option<f64>>,
    verdict: Vec<Option<&'static str>>,
    runs: Vec<usize>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
    confidence: Vec<Option<f64>>,
    significant: Vec<Option<bool>>,
    p: Vec<Option<f64>>,
    p_adjusted: Vec<Option<f64>>,
    shift: Vec<Option<f64>>,
    shift_low: Vec<Option<f64>>,
    shift_high: Vec<Option<f64>>,
    published: Vec<Option<f64>>,
    error_percent: Vec<Option<f64>>,
    fitted: Vec<Option<bool>>,
}

#[derive(Serialize)]
struct ColumnJson<'a> {
    key: &'a str,
    label: &'a str,
    unit: &'a str,
}

/// Row, column, reason.
#[derive(Serialize)]
struct Reason(usize, usize, &'static str);

/// A cell as JSON value: number, string or null.
struct Known<'a>(&'a Cell);

/// The same for a cell made here.
struct Owned(Cell);

impl Serialize for Known<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Cell::Int(number) => serializer.serialize_i128(*number),
            Cell::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Cell::Text(word) => serializer.serialize_str(word),
            Cell::Float(_) | Cell::Na(_) => serializer.serialize_none(),
        }
    }
}

impl Serialize for Owned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Known(&self.0).serialize(serializer)
    }
}

fn input(input: &Input) -> InputJson<'_> {
    let info = &input.info;
    InputJson {
        name: &info.name,
        column: input.column,
        arm: &info.arm,
        kernel: info.kernel.as_deref(),
        lost_events: info.lost_events.filter(|_| !info.counters_only),
        lost_at_least: Some(info.lost_at_least).filter(|lost| info.lost_events.is_none() && *lost > 0),
        events: Some(info.events).filter(|_| !info.counters_only),
        scenario: info.scenario.as_deref(),
        incomplete: &info.incomplete,
        filter: info.filter.as_deref(),
    }
}

fn waiter(waiter: &Waiter) -> WaiterJson<'_> {
    WaiterJson { name: &waiter.name, waited: waiter.waited, cgroup: waiter.cgroup.as_deref() }
}

fn finding((input, finding): &(usize, Finding)) -> FindingJson<'_> {
    FindingJson {
        input: *input,
        key: &finding.key,
        severity: finding.severity,
        sentence: &finding.sentence,
        detail: &finding.detail,
        command: &finding.command,
        cost: finding.cost.as_ref().map(|cost| CostJson {
            waited: cost.waited,
            elapsed: cost.elapsed,
            share: cost.share(),
            by: cost.by.iter().map(waiter).collect(),
            more: cost.more,
            cgroup: cost.cgroup.as_deref(),
            measured: cost.measured.key(),
            accounted: cost.accounted.map(|of| AccountedJson {
                kernel: of.kernel,
                events: of.events,
                others: of.others,
            }),
        }),
        pressure: finding.pressure.as_ref().map(|p| PressureJson {
            of: &p.of,
            memory_some: p.memory_some,
            memory_full: p.memory_full,
            io_some: p.io_some,
        }),
        fix: finding.fix.as_deref(),
        next: finding.next.as_deref(),
    }
}

fn reason(cell: &Cell) -> Option<&'static str> {
    cell.na().map(|na| na.word())
}

fn cross_check((input, line): &(usize, CrossCheck)) -> CrossCheckJson<'_> {
    CrossCheckJson {
        input: *input,
        key: &line.key,
        label: &line.label,
        events: Known(&line.events),
        counters: Known(&line.counters),
        difference: Owned(line.difference()),
        na: [reason(&line.events), reason(&line.counters)],
    }
}

fn table<'a>(columns: &'a [String], table: &'a JoinedTable) -> TableJson<'a> {
    let (kind, body) = match &table.body {
        JoinedBody::Metric(rows) => ("metric", BodyJson::Metric { columns, rows: rows.iter().map(row).collect() }),
        JoinedBody::Single { input, body } => single(*input, body),
    };
    TableJson { name: &table.name, kind, title: &table.title, note: &table.note, body }
}

fn row(row: &Row) -> RowJson<'_> {
    fn each<'a, T>(row: &'a Row, fact: impl Fn(&'a Value) -> T) -> Vec<T> {
        row.values.iter().map(fact).collect()
    }
    RowJson {
        key: &row.key,
        label: &row.label,
        unit: &row.unit,
        better: row.better.word(),
        gain_rule: row.gain.word(),
        values: each(row, |v| Known(&v.cell)),
        na: each(row, |v| reason(&v.cell)),
        change_percent: each(row, |v| v.change.filter(|change| change.is_finite())),
        gain_percent: each(row, |v| v.gain),
        verdict: each(row, |v| v.verdict.map(|verdict| verdict.word())),
        runs: each(row, |v| v.runs),
        low: each(row, |v| v.interval.map(|i| i.low)),
        high: each(row, |v| v.interval.map(|i| i.high)),
        confidence: each(row, |v| v.interval.map(|i| i.confidence)),
        significant: each(row, |v| v.test.map(|t| t.significant())),
        p: each(row, |v| v.test.map(|t| t.p)),
        p_adjusted: each(row, |v| v.test.map(|t| t.adjusted)),
        shift: each(row, |v| v.test.map(|t| t.shift.estimate)),
        shift_low: each(row, |v| v.test.map(|t| t.shift.interval.low)),
        shift_high: each(row, |v| v.test.map(|t| t.shift.interval.high)),
        published: each(row, |v| v.published.map(|p| p.value).filter(|p| p.is_finite())),
        error_percent: each(row, |v| v.published.and_then(|p| p.error_percent(&v.cell))),
        fitted: each(row, |v| v.published.map(|p| p.fitted)),
    }
}

fn single(input: usize, body: &Body) -> (&'static str, BodyJson<'_>) {
    match body {
        // joined: never the table of a single input
        Body::Metric(_) => ("metric", BodyJson::Metric { columns: &[], rows: Vec::new() }),
        Body::List { columns, rows } => ("list", list(input, columns, rows)),
        Body::Series { columns, rows } => ("series", list(input, columns, rows)),
        Body::Matrix { rows, columns, axes, unit, values } => (
            "matrix",
            BodyJson::Matrix {
                input,
                row_axis: &axes.0,
                column_axis: &axes.1,
                unit,
                rows,
                columns,
                values: values.iter().map(|row| row.iter().map(Known).collect()).collect(),
                na: reasons(values),
            },
        ),
        Body::Histogram { unit, slots, mean, total } => {
            let count = slots.iter().map(|(_, _, count)| u128::from(*count)).sum();
            let mean = mean.filter(|mean| mean.is_finite());
            ("histogram", BodyJson::Histogram { input, unit, slots, count, total: *total, mean })
        }
    }
}

fn list<'a>(input: usize, columns: &'a [Column], rows: &'a [Vec<Cell>]) -> BodyJson<'a> {
    BodyJson::List {
        input,
        columns: columns.iter().map(|c| ColumnJson { key: &c.key, label: &c.label, unit: c.unit }).collect(),
        rows: rows.iter().map(|row| row.iter().map(Known).collect()).collect(),
        na: reasons(rows),
    }
}

fn reasons(rows: &[Vec<Cell>]) -> Vec<Reason> {
    let of_row = |(row, cells): (usize, &Vec<Cell>)| {
        let found = cells.iter().enumerate().filter_map(move |(column, cell)| Some(Reason(row, column, reason(cell)?)));
        found.collect::<Vec<_>>()
    };
    rows.iter().enumerate().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::format::samples::{any_report, compared, reproduced, runs};
    use proptest::prelude::*;
    use serde_json::Value as Json;

    fn parsed(comparison: &Comparison) -> Json {
        let mut out = Vec::new();
        write(comparison, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    fn assert_parallel(document: &Json) {
        for table in document["tables"].as_array().unwrap().iter().filter(|t| t["kind"] == "metric") {
            let columns = table["columns"].as_array().unwrap().len();
            for row in table["rows"].as_array().unwrap() {
                let arrays: Vec<usize> =
                    row.as_object().unwrap().values().filter_map(|v| Some(v.as_array()?.len())).collect();
                assert_eq!(arrays, vec![columns; 18], "{row}");
                for (value, na) in row["values"].as_array().unwrap().iter().zip(row["na"].as_array().unwrap()) {
                    assert_eq!(value.is_null(), na.is_string(), "{row}");
                }
            }
        }
    }

    #[test]
    fn arrays_are_parallel() {
        assert_parallel(&parsed(&compared()));
        assert_parallel(&parsed(&runs()));
        assert_parallel(&parsed(&reproduced()));
    }

    #[test]
    fn integers_are_exact() {
        let text = |cell: Cell| serde_json::to_string(&Known(&cell)).unwrap();
        assert_eq!(text(Cell::Int(i128::from(u64::MAX) + 2)), "18446744073709551617");
        assert_eq!(text(Cell::int(u64::MAX)), "18446744073709551615");
        assert_eq!(text(Cell::Float(f64::NAN)), "null");
        assert_eq!(text(Cell::Float(0.1)), "0.1");
    }

    #[test]
    fn what_was_not_selected_is_null() {
        let mut comparison = compared();
        comparison.select(&["vmscan".to_owned()]).unwrap();
        let document = parsed(&comparison);
        assert!(document["findings"].is_null() && document["cross_check"].is_null());
        assert_eq!(document["tables"].as_array().unwrap().len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_cells(columns in prop::collection::vec(prop::collection::vec(any_report(), 1..4), 1..4)) {
            let columns = columns.into_iter().enumerate().map(|(i, runs)| (format!("c{i}"), runs));
            let comparison = compare(columns.collect());
            assert_parallel(&parsed(&comparison));
            for format in [crate::format::Format::Table, crate::format::Format::Csv] {
                let mut out = Vec::new();
                let style = crate::format::Style { width: 40, colour: true, rows: 2, brief: true, people: true };
                crate::format::write(&comparison, format, &style, &mut out).unwrap();
                let text = String::from_utf8(out).unwrap();
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
            }
        }
    }
}

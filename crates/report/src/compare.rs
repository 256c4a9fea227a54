//! Several inputs side by side, baseline first.
//!
//! Metric tables are joined by table name and row key; a row that an input lacks is n/a there. Tables of other kinds
//! cannot be joined and are kept, one per input. A column may have several runs (see [`crate::column`]); its values are
//! then medians with an interval, and rows are tested against the baseline (see [`crate::statistics`]). The p-values of
//! one column in one table are one family for Holm's correction: a reader looks for what stands out in a table. Rows
//! whose runs are all equal are no tests. With one run nothing is called significant.
//!
//! A single report is a comparison of one column, so that there is one path to every format.

use crate::gain::Verdict;
use crate::model::{Better, Body, Cell, CrossCheck, Finding, Gain, InputInfo, Metric, Na, Published, Report, Table};
use crate::renamed;
use crate::statistics::{self, Interval, Shift};
use crate::suggest::nearest;
use std::borrow::Cow;
use std::collections::HashMap;

mod values;
use values::{adjust, too_few_runs, values};

/// What is printed: one or several columns of one or several runs.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Headings of the columns, unique, baseline first.
    pub columns: Vec<String>,
    /// The inputs, column by column.
    pub inputs: Vec<Input>,
    /// What a reader must know before comparing.
    pub notes: Vec<String>,
    /// Findings of all inputs, worst first, each with the index of its input; `None` if not selected.
    pub findings: Option<Vec<(usize, Finding)>>,
    /// Event/counter cross-check, each with the index of its input; `None` if not selected.
    pub cross_check: Option<Vec<(usize, CrossCheck)>>,
    /// The tables.
    pub tables: Vec<JoinedTable>,
}

/// An input and its column.
#[derive(Clone, Debug)]
pub struct Input {
    /// Index of its column.
    pub column: usize,
    /// What it is.
    pub info: InputInfo,
}

/// A table of a comparison.
#[derive(Clone, Debug)]
pub struct JoinedTable {
    /// Stable name for `--table`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Printed under the title; may be empty.
    pub note: String,
    /// Its contents.
    pub body: JoinedBody,
}

/// Contents of a table.
#[derive(Clone, Debug)]
pub enum JoinedBody {
    /// Rows with one value per column.
    Metric(Vec<Row>),
    /// A table of one input: any kind but metric.
    Single {
        /// Index of the input.
        input: usize,
        /// The table as it was.
        body: Body,
    },
}

/// A row with one value per column.
#[derive(Clone, Debug)]
pub struct Row {
    /// Stable snake_case name.
    pub key: String,
    /// Label for people.
    pub label: String,
    /// Unit of the values; empty for plain counts.
    pub unit: Cow<'static, str>,
    /// Which direction is good.
    pub better: Better,
    /// Rule of the gains.
    pub gain: Gain,
    /// Decimals of a printed value, where fixed.
    pub decimals: Option<u8>,
    /// One value per column.
    pub values: Vec<Value>,
}

/// A row's value in one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The value; the median of several runs.
    pub cell: Cell,
    /// Runs in which the value is known.
    pub runs: usize,
    /// Interval of the median; `None` with less than two runs.
    pub interval: Option<Interval>,
    /// Plain change from the baseline in percent, infinite from 0; `None` in the baseline or if either is not known.
    pub change: Option<f64>,
    /// Gain over the baseline by the row's rule.
    pub gain: Option<f64>,
    /// Whether that is better or worse, whatever its size.
    pub verdict: Option<Verdict>,
    /// Test against the baseline; `None` with less than two runs on either side, or if all runs are equal.
    pub test: Option<Test>,
    /// What was published of it; that of the first run which has it.
    pub published: Option<Published>,
}

/// Test of a column against the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// p-value by Mann-Whitney's U, two-sided.
    pub p: f64,
    /// The same, adjusted by Holm for the rows of the table.
    pub adjusted: f64,
    /// Size of the effect, in the unit of the row: Hodges-Lehmann shift from the baseline.
    pub shift: Shift,
}

impl Test {
    /// Whether the difference is significant at 5 %, after adjustment.
    pub fn significant(&self) -> bool {
        self.adjusted < 1.0 - statistics::LEVEL
    }
}

/// A report on one input.
pub fn single(report: Report) -> Comparison {
    let name = report.input.name.clone();
    compare(vec![(name, vec![report])])
}

/// Puts columns of one or more runs side by side; the first is the baseline.
pub fn compare(columns: Vec<(String, Vec<Report>)>) -> Comparison {
    let mut comparison = Comparison::default();
    let mut findings = Vec::new();
    let mut cross_check = Vec::new();
    let mut names = Vec::new();
    for (column, (name, runs)) in columns.iter().enumerate() {
        comparison.columns.push(unique(name, &comparison.columns));
        for report in runs {
            let input = comparison.inputs.len();
            comparison.inputs.push(Input { column, info: report.input.clone() });
            findings.extend(report.findings.iter().map(|f| (input, f.clone())));
            cross_check.extend(report.cross_check.iter().map(|r| (input, r.clone())));
            merge_order(&mut names, report.tables.iter().map(|t| t.name.as_str()));
        }
    }
    findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
    comparison.findings = Some(findings);
    comparison.cross_check = Some(cross_check);
    comparison.notes = scenario_note(&comparison).into_iter().collect();
    for name in names {
        comparison.tables.extend(join_metrics(name, &columns));
        for (input, report) in columns.iter().flat_map(|(_, runs)| runs).enumerate() {
            let others = report.tables.iter().filter(|t| t.name == name && metric(t).is_none());
            comparison.tables.extend(others.map(|table| JoinedTable {
                name: table.name.clone(),
                title: table.title.clone(),
                note: table.note.clone(),
                body: JoinedBody::Single { input, body: table.body.clone() },
            }));
        }
    }
    comparison
}

fn metric(table: &Table) -> Option<&[Metric]> {
    match &table.body {
        Body::Metric(rows) => Some(rows),
        _ => None,
    }
}

/// A row's key and which of the rows with this key it is: a table that repeats a key loses nothing.
type Key<'a> = (&'a str, usize);

/// The rows of a report's metric table.
fn metric_rows<'a>(report: &'a Report, name: &str) -> Vec<(Key<'a>, &'a Metric)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let tables = report.tables.iter().filter(|table| table.name == name);
    let rows = tables.filter_map(metric).flatten().map(|row| {
        let nth = seen.entry(row.key.as_str()).or_default();
        *nth += 1;
        ((row.key.as_str(), *nth), row)
    });
    rows.collect()
}

fn join_metrics(name: &str, columns: &[(String, Vec<Report>)]) -> Option<JoinedTable> {
    let mut reports = columns.iter().flat_map(|(_, runs)| runs);
    let first = reports.find_map(|r| r.tables.iter().find(|t| t.name == name && metric(t).is_some()))?;
    let mut order: Vec<Key<'_>> = Vec::new();
    let mut described: HashMap<Key<'_>, &Metric> = HashMap::new();
    let mut lookup: Vec<Vec<HashMap<Key<'_>, &Metric>>> = Vec::new();
    for (_, runs) in columns {
        let runs = runs.iter().map(|report| {
            let rows = metric_rows(report, name);
            merge_order(&mut order, rows.iter().map(|(key, _)| *key));
            for (key, row) in &rows {
                described.entry(*key).or_insert(row);
            }
            rows.into_iter().collect()
        });
        lookup.push(runs.collect());
    }
    let mut rows = Vec::new();
    for key in order {
        let Some(row) = described.get(&key) else { continue };
        let cell =
            |run: &HashMap<Key<'_>, &Metric>| run.get(&key).map_or(Cell::Na(Na::NotRecorded), |m| m.value.clone());
        let cells: Vec<Vec<Cell>> = lookup.iter().map(|runs| runs.iter().map(cell).collect()).collect();
        let mut values = values(row, &cells);
        for (value, runs) in values.iter_mut().zip(&lookup) {
            value.published = runs.iter().find_map(|run| run.get(&key)?.published);
        }
        rows.push(Row {
            key: row.key.clone(),
            label: row.label.clone(),
            unit: row.unit.clone(),
            better: row.better,
            gain: row.gain,
            decimals: row.decimals,
            values,
        });
    }
    for column in 1..columns.len() {
        adjust(&mut rows, column);
    }
    let mut note = first.note.clone();
    if let Some(hint) = too_few_runs(&rows, columns.len()) {
        note = if note.is_empty() { hint } else { format!("{note}\n{hint}") };
    }
    Some(JoinedTable { name: first.name.clone(), title: first.title.clone(), note, body: JoinedBody::Metric(rows) })
}

/// Adds what is new to an order, each after what it follows in its own list.
fn merge_order<T: PartialEq + Copy>(order: &mut Vec<T>, list: impl Iterator<Item = T>) {
    let mut place = 0;
    for item in list {
        match order.iter().position(|known| *known == item) {
            Some(known) => place = known + 1,
            None => {
                order.insert(place, item);
                place += 1;
            }
        }
    }
}

fn unique(name: &str, taken: &[String]) -> String {
    if !taken.iter().any(|other| other == name) {
        return name.to_owned();
    }
    let mut number = 2;
    while taken.contains(&format!("{name} ({number})")) {
        number += 1;
    }
    format!("{name} ({number})")
}

/// Inputs that ran different scenarios differ in more than how memory was managed.
fn scenario_note(comparison: &Comparison) -> Option<String> {
    let mut scenarios: Vec<(&str, Vec<&str>)> = Vec::new();
    for Input { info, .. } in &comparison.inputs {
        let scenario = info.scenario.as_deref().unwrap_or("none");
        match scenarios.iter_mut().find(|(known, _)| *known == scenario) {
            Some((_, names)) => names.push(&info.name),
            None => scenarios.push((scenario, vec![&info.name])),
        }
    }
    let groups: Vec<String> =
        scenarios.iter().map(|(scenario, names)| format!("{scenario}: {}", names.join(", "))).collect();
    (scenarios.len() > 1).then(|| format!("inputs ran different scenarios ({})", groups.join("; ")))
}

/// Name by which the findings are selected like a table.
pub const FINDINGS: &str = "findings";
/// Name by which the cross-check is selected like a table.
pub const CROSS_CHECK: &str = "cross-check";

/// `--table` named something that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchTable {
    /// Its name is another one since schema_version 2.
    #[error("table '{name}' is now '{new}'")]
    Renamed {
        /// The name given.
        name: String,
        /// The name it has.
        new: &'static str,
    },
    /// There is no such table.
    #[error("no table '{name}'{}; tables: {}", hint(.suggestion), .available.join(", "))]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest name there is, if one is near.
        suggestion: Option<String>,
        /// All names, in the order of the report.
        available: Vec<String>,
    },
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or(String::new(), |near| format!(" (did you mean '{near}'?)"))
}

impl Comparison {
    /// A row of a table of metrics.
    pub fn row(&self, table: &str, key: &str) -> Option<&Row> {
        let table = self.tables.iter().find(|other| other.name == table)?;
        let JoinedBody::Metric(rows) = &table.body else { return None };
        rows.iter().find(|row| row.key == key)
    }

    /// Names that [`Comparison::select`] accepts, in the order of the report.
    pub fn names(&self) -> Vec<&str> {
        let mut names = vec![FINDINGS, CROSS_CHECK];
        names.extend(self.tables.iter().map(|table| table.name.as_str()));
        names.dedup();
        names
    }

    /// Keeps only the named tables; `findings` and `cross-check` are names too.
    pub fn select(&mut self, names: &[String]) -> Result<(), NoSuchTable> {
        let available = self.names();
        if let Some(name) = names.iter().find(|name| !available.contains(&name.as_str())) {
            if let Some(new) = renamed::table(name) {
                return Err(NoSuchTable::Renamed { name: name.clone(), new });
            }
            return Err(NoSuchTable::Unknown {
                name: name.clone(),
                suggestion: nearest(name, available.iter().copied()).map(str::to_owned),
                available: available.into_iter().map(str::to_owned).collect(),
            });
        }
        let wanted = |name: &str| names.iter().any(|n| n == name);
        self.tables.retain(|table| wanted(&table.name));
        if !wanted(FINDINGS) {
            self.findings = None;
        }
        if !wanted(CROSS_CHECK) {
            self.cross_check = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, gain: Gain, better: Better, value: Cell) -> Metric {
        Metric {
            key: key.into(),
            label: key.into(),
            unit: "".into(),
            better,
            gain,
            decimals: None,
            value,
            published: None,
        }
    }

    fn report(name: &str, rows: Vec<Metric>) -> Report {
        let table = Table { name: "t".into(), title: "T".into(), note: String::new(), body: Body::Metric(rows) };
        Report {
            input: InputInfo { name: name.into(), ..InputInfo::default() },
            tables: vec![table],
            ..Report::default()
        }
    }

    fn count(key: &str, value: i128) -> Metric {
        row(key, Gain::Percent, Better::Lower, Cell::Int(value))
    }

    fn rows(comparison: &Comparison) -> &[Row] {
        match &comparison.tables[0].body {
            JoinedBody::Metric(rows) => rows,
            other => panic!("{other:?}"),
        }
    }

    fn runs(name: &str, values: &[i128]) -> (String, Vec<Report>) {
        (name.into(), values.iter().map(|v| report(name, vec![count("x", *v)])).collect())
    }

    #[test]
    fn joins_by_key_in_an_order_that_suits_both() {
        let base = report("a", vec![count("one", 1), count("three", 3)]);
        let other = report("b", vec![count("one", 2), count("two", 2), count("three", 3), count("four", 4)]);
        let comparison = compare(vec![("a".into(), vec![base]), ("a".into(), vec![other])]);
        assert_eq!(comparison.columns, ["a", "a (2)"]);
        let keys: Vec<&str> = rows(&comparison).iter().map(|r| r.key.as_str()).collect();
        assert_eq!(keys, ["one", "two", "three", "four"]);
        let two = &rows(&comparison)[1].values;
        assert_eq!((&two[0].cell, &two[1].cell), (&Cell::Na(Na::NotRecorded), &Cell::Int(2)));
        assert_eq!((two[1].gain, two[1].verdict), (None, None));
        let one = &rows(&comparison)[0].values;
        assert_eq!((one[0].gain, one[1].gain, one[1].verdict), (None, Some(100.0), Some(Verdict::Worse)));
    }

    #[test]
    fn a_repeated_key_loses_nothing() {
        let repeated = |a, b| report("r", vec![count("x", a), count("x", b)]);
        let comparison = compare(vec![("a".into(), vec![repeated(1, 2)]), ("b".into(), vec![repeated(3, 4)])]);
        let cells: Vec<_> =
            rows(&comparison).iter().map(|r| (r.values[0].cell.clone(), r.values[1].cell.clone())).collect();
        assert_eq!(cells, [(Cell::Int(1), Cell::Int(3)), (Cell::Int(2), Cell::Int(4))]);
    }

    #[test]
    fn several_runs() {
        let base = runs("base", &[10, 12, 11, 13, 14, 15, 16, 17]);
        let new = runs("new", &[100, 101, 102, 103, 104, 105, 106, 107]);
        let comparison = compare(vec![base, new]);
        let value = &rows(&comparison)[0].values[1];
        assert_eq!((value.cell.clone(), value.runs), (Cell::Float(103.5), 8));
        let test = value.test.unwrap();
        assert!(test.significant() && test.adjusted == test.p, "one row is a family of one");
        assert_eq!(test.shift.estimate, 90.0);
        assert_eq!(rows(&comparison)[0].values[0].test, None);
    }

    #[test]
    fn adjusted_for_the_rows_of_the_table() {
        let of = |value: i128| report("r", (0..400).map(|i| count(&format!("row{i}"), value)).collect());
        let column = |from: i128| (from..from + 8).map(of).collect();
        let comparison = compare(vec![("a".into(), column(0)), ("b".into(), column(100))]);
        let test = rows(&comparison)[0].values[1].test.unwrap();
        assert!((test.adjusted / test.p - 400.0).abs() < 1e-6 && !test.significant());
        assert!(comparison.tables[0].note.starts_with("Too few runs"), "{}", comparison.tables[0].note);
    }

    #[test]
    fn one_run_claims_nothing() {
        let comparison = compare(vec![runs("a", &[1]), runs("b", &[1000, 1001, 1002])]);
        assert!(rows(&comparison)[0].values.iter().all(|v| v.test.is_none()));
        assert_eq!(comparison.tables[0].note, "");
    }

    #[test]
    fn different_scenarios_are_told() {
        let mut base = report("a", vec![]);
        base.input.scenario = Some("1f".into());
        let same = compare(vec![("a".into(), vec![base.clone()]), ("b".into(), vec![base.clone()])]);
        assert_eq!(same.notes, [] as [String; 0]);
        let other = compare(vec![("a".into(), vec![base]), ("b".into(), vec![report("b", vec![])])]);
        assert_eq!(other.notes, ["inputs ran different scenarios (1f: a; none: b)"]);
    }

    #[test]
    fn selection() {
        let mut comparison = single(report("a", vec![count("x", 1)]));
        let error = comparison.select(&["findigs".into()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no table 'findigs' (did you mean 'findings'?); tables: findings, cross-check, t"
        );
        let error = comparison.select(&["reclaim-where".into()]).unwrap_err();
        assert_eq!(error.to_string(), "table 'reclaim-where' is now 'reclaim-by-priority'");
        comparison.select(&["t".into()]).unwrap();
        assert_eq!(comparison.tables.len(), 1);
        assert!(comparison.findings.is_none() && comparison.cross_check.is_none());
    }
}

//! What a sweep is made of: its runs, one row each, and the quantities that they have.

use crate::model::{Better, Body, Cell, Gain, Metric, Na, Report, Table};

/// All runs of a sweep that are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Program and version that ran it.
    pub version: String,
    /// The scenario file, as it was named.
    pub scenario: String,
    /// Keys that differ between cases, in the order in which they were given.
    pub keys: Vec<String>,
    /// Runs that were asked for.
    pub planned: usize,
    /// Quantities of the runs, each once.
    pub quantities: Vec<Quantity>,
    /// The runs, by case and then by seed.
    pub rows: Vec<Row>,
}

/// A quantity, as `mmtwin report --keys` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// `TABLE.KEY`.
    pub key: String,
    /// Label for people.
    pub label: String,
    /// Unit of its values; empty for plain counts.
    pub unit: String,
    /// Which direction is good.
    pub better: Better,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Hash of everything that decides it: 64 hexadecimal digits.
    pub id: String,
    /// Values of the sweep's keys, as `--set` takes them.
    pub case: Vec<String>,
    /// The same as numbers in the smallest unit (bytes, ns, pages/s, ...); `None`: it is a word.
    pub numbers: Vec<Option<f64>>,
    /// Seed.
    pub seed: u64,
    /// How it ended.
    pub status: Status,
    /// Why it ended before its end; `None`: it did not.
    pub reason: Option<String>,
    /// Findings, worst first: key and sentence.
    pub findings: Vec<(String, String)>,
    /// Values that are known, each with the index of its quantity.
    pub values: Vec<(usize, Number)>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every process did all its phases.
    Completed,
    /// At `run.duration`.
    TimeUp,
    /// The modelled kernel killed a process.
    OutOfMemory,
    /// The twin ended it: it made no progress, or needed too much memory.
    Stopped,
    /// It could not be run.
    Failed,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 5] =
        [Status::Completed, Status::TimeUp, Status::OutOfMemory, Status::Stopped, Status::Failed];

    /// The word of the Parquet file.
    pub fn word(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::TimeUp => "time_up",
            Status::OutOfMemory => "out_of_memory",
            Status::Stopped => "stopped",
            Status::Failed => "failed",
        }
    }

    /// The same for people.
    pub fn phrase(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::TimeUp => "time up",
            Status::OutOfMemory => "out of memory",
            Status::Stopped => "stopped",
            Status::Failed => "failed",
        }
    }

    /// True if the workload ran as long as it was to run.
    pub fn is_whole(self) -> bool {
        matches!(self, Status::Completed | Status::TimeUp)
    }
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Exact.
    Int(i64),
    /// Finite.
    Float(f64),
}

impl Number {
    /// The number of a cell, if it is one.
    pub fn of(cell: &Cell) -> Option<Number> {
        match cell {
            Cell::Int(value) => Some(i64::try_from(*value).map_or(Number::Float(*value as f64), Number::Int)),
            cell => cell.number().map(Number::Float),
        }
    }

    /// As a floating-point number.
    pub fn value(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    fn cell(self) -> Cell {
        match self {
            Number::Int(value) => Cell::Int(value.into()),
            Number::Float(value) => Cell::Float(value),
        }
    }
}

/// Runs of the same values.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Values of the sweep's keys.
    pub values: &'a [String],
    /// The same as numbers.
    pub numbers: &'a [Option<f64>],
    /// Its runs.
    pub rows: Vec<&'a Row>,
    /// Its place among the cases, from 0.
    pub place: usize,
}

impl Sweep {
    /// The cases as they are compared: the first of which a run reached its end is the baseline and stands before the
    /// others.
    pub(crate) fn compared(&self) -> Vec<Case<'_>> {
        let mut cases = self.cases();
        let baseline = cases.iter().position(|case| case.rows.iter().any(|row| row.status.is_whole())).unwrap_or(0);
        let end = cases.len().min(baseline + 1);
        cases[..end].rotate_right(usize::from(end > 0));
        cases
    }

    /// The cases, in their order.
    pub fn cases(&self) -> Vec<Case<'_>> {
        let mut cases: Vec<Case<'_>> = Vec::new();
        for row in &self.rows {
            match cases.last_mut().filter(|case| case.values == row.case) {
                Some(case) => case.rows.push(row),
                None => {
                    let place = cases.len();
                    cases.push(Case { values: &row.case, numbers: &row.numbers, rows: vec![row], place });
                }
            }
        }
        cases
    }

    /// The tables of a run whose name `wanted` accepts. Those of a run that did not reach its end have no values: rates
    /// of a process that was killed say nothing of a case.
    pub(crate) fn report(&self, row: &Row, wanted: impl Fn(&str) -> bool) -> Report {
        let mut tables: Vec<(&str, Vec<Metric>)> = Vec::new();
        let mut cells = vec![None; self.quantities.len()];
        for (quantity, number) in row.values.iter().filter(|_| row.status.is_whole()) {
            if let Some(cell) = cells.get_mut(*quantity) {
                *cell = Some(number.cell());
            }
        }
        for (quantity, cell) in self.quantities.iter().zip(cells) {
            let (table, key) = quantity.key.split_once('.').unwrap_or(("", &quantity.key));
            if !wanted(table) {
                continue;
            }
            let metric = Metric {
                key: key.into(),
                label: quantity.label.clone(),
                unit: quantity.unit.clone().into(),
                better: quantity.better,
                gain: Gain::None,
                decimals: None,
                value: cell.unwrap_or(Cell::Na(Na::NotRecorded)),
                published: None,
            };
            match tables.iter_mut().find(|(name, _)| *name == table) {
                Some((_, rows)) => rows.push(metric),
                None => tables.push((table, vec![metric])),
            }
        }
        let table = |(name, rows): (&str, Vec<Metric>)| Table {
            name: name.into(),
            title: format!("Quantities of {name}"),
            note: String::new(),
            body: Body::Metric(rows),
        };
        Report { tables: tables.into_iter().map(table).collect(), ..Report::default() }
    }
}

impl Case<'_> {
    /// Its values beside the names of their keys: `memory.max=64 MiB, swappiness=10`.
    pub fn label(&self, names: &[String]) -> String {
        let pairs = names.iter().zip(self.values).map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(", ")
    }
}

/// Keys as a reader recognises them: of `cgroup./box.memory.max` the end, `memory.max`, unless two end alike.
pub fn short_keys(keys: &[String]) -> Vec<String> {
    let short = |key: &str| {
        let dots: Vec<usize> = key.match_indices('.').map(|(at, _)| at).collect();
        let end = dots.len().checked_sub(2).and_then(|at| dots.get(at)).map_or(0, |at| at + 1);
        key[end..].to_owned()
    };
    let all: Vec<String> = keys.iter().map(|key| short(key)).collect();
    let alone = |name: &String| all.iter().filter(|other| *other == name).count() == 1;
    keys.iter().zip(&all).map(|(key, name)| if alone(name) { name.clone() } else { key.clone() }).collect()
}

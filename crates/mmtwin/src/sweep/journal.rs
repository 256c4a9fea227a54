//! The journal: finished rows, a line each, while a sweep runs. Each line is written at once, and a last line that is cut
//! is skipped, so a process may be killed at any moment.

use super::Error;
use super::row::Ran;
use mmtwin_report::model::Better;
use mmtwin_report::sweep::{Number, Quantity, Row, Status, Sweep};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first line.
    Sweep { schema_version: u32, version: String, keys: Vec<String> },
    /// A quantity, before the first row that has it; they are numbered from 0.
    Quantity { key: String, label: String, unit: String, better: String },
    /// A run.
    Row {
        id: String,
        case: Vec<String>,
        numbers: Vec<Option<u64>>,
        seed: u64,
        status: String,
        reason: Option<String>,
        findings: Vec<(String, String)>,
        /// In the order of the run's tables: the quantity's number, whether it is no integer, and the value; of a
        /// floating-point number its bits, which JSON would not keep.
        values: Vec<(usize, bool, i64)>,
    },
}

const SCHEMA_VERSION: u32 = 1;

/// An open journal, locked until it is dropped.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Numbers of the quantities that it has.
    known: HashMap<String, usize>,
}

/// Where the journal of an output is.
pub(super) fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// Cases and seeds of an output and its journal, whatever version and sweep they are of: what a plan that is made while it
/// runs had before. Empty: neither is there.
///
/// # Errors
/// If one is there and cannot be read.
pub fn known(output: &Path) -> Result<Vec<(Vec<String>, u64)>, Error> {
    let path = beside(output);
    let mut found = Sweep::default();
    match std::fs::read(&path) {
        Ok(bytes) => drop(read(&bytes, &mut found).map_err(|message| Error::Other { path, message })?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::Io { path, source }),
    }
    let mut rows = match output.exists() {
        true => super::table::read(output)?.rows,
        false => Vec::new(),
    };
    let is_new = |row: &Row| rows.iter().all(|other| other.id != row.id);
    let of_journal: Vec<Row> = found.rows.into_iter().filter(is_new).collect();
    rows.extend(of_journal);
    Ok(rows.into_iter().map(|row| (row.case, row.seed)).collect())
}

impl Journal {
    /// Opens the journal of an output, and gives what is in it: of a sweep that was killed. `again`: nothing of it is
    /// wanted.
    pub(super) fn open(output: &Path, sweep: &Sweep, again: bool) -> Result<(Journal, Sweep), Error> {
        let path = beside(output);
        let io = |source| Error::Io { path: path.clone(), source };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(io)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::Busy(output.into()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        if again {
            bytes.clear();
        }
        let other = |message: String| Error::Other { path: path.clone(), message };
        let mut found = Sweep::default();
        let whole = read(&bytes, &mut found).map_err(other)?;
        if whole > 0 && (&found.version, &found.keys) != (&sweep.version, &sweep.keys) {
            let message = format!("is of a sweep of {} by {}", found.keys.join(", "), found.version);
            return Err(other(message));
        }
        // A line that was cut is written over.
        file.set_len(whole as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        let known = found.quantities.iter().enumerate().map(|(at, quantity)| (quantity.key.clone(), at)).collect();
        let mut journal = Journal { path, file, known };
        if whole == 0 {
            let (version, keys) = (sweep.version.clone(), sweep.keys.clone());
            journal.write(&[Line::Sweep { schema_version: SCHEMA_VERSION, version, keys }])?;
        }
        Ok((journal, found))
    }

    /// Appends a finished run, and gives it as a row whose quantities are those of `sweep`.
    pub(super) fn add(&mut self, run: &super::Planned, ran: Ran, sweep: &mut Sweep) -> Result<Row, Error> {
        let mut lines = Vec::new();
        let mut values = Vec::with_capacity(ran.values.len());
        for (quantity, number) in ran.values {
            let next = self.known.len();
            let at = *self.known.entry(quantity.key.clone()).or_insert(next);
            if at == next {
                let Quantity { key, label, unit, .. } = quantity.clone();
                lines.push(Line::Quantity { key, label, unit, better: quantity.better.word().into() });
                sweep.quantities.push(quantity);
            }
            values.push((at, number));
        }
        let Ran { status, reason, findings, .. } = ran;
        let (id, case, numbers, seed) = (run.id.clone(), run.case.clone(), run.numbers(), run.seed);
        let row = Row { id, case, numbers, seed, status, reason, findings, values };
        lines.push(line(&row));
        self.write(&lines)?;
        Ok(row)
    }

    /// Gives a number to a quantity that rows of the output have.
    pub(super) fn knows(&mut self, quantity: &Quantity) -> Result<usize, Error> {
        let number = self.known.len();
        self.known.insert(quantity.key.clone(), number);
        let Quantity { key, label, unit, better } = quantity.clone();
        self.write(&[Line::Quantity { key, label, unit, better: better.word().into() }])?;
        Ok(number)
    }

    fn write(&mut self, lines: &[Line]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let failed = |source: std::io::Error| Error::Io { path: self.path.clone(), source };
        for line in lines {
            serde_json::to_writer(&mut bytes, line).map_err(|error| failed(error.into()))?;
            bytes.push(b'\n');
        }
        self.file.write_all(&bytes).map_err(failed)
    }

    /// Removes it: all rows are in the output.
    pub(super) fn remove(self) -> Result<(), Error> {
        std::fs::remove_file(&self.path).map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

fn line(row: &Row) -> Line {
    let value = |(at, number): &(usize, Number)| match number {
        Number::Int(value) => (*at, false, *value),
        Number::Float(value) => (*at, true, value.to_bits() as i64),
    };
    Line::Row {
        id: row.id.clone(),
        case: row.case.clone(),
        numbers: row.numbers.iter().map(|number| number.map(f64::to_bits)).collect(),
        seed: row.seed,
        status: row.status.word().into(),
        reason: row.reason.clone(),
        findings: row.findings.clone(),
        values: row.values.iter().map(value).collect(),
    }
}

/// Reads whole lines, up to the first that is not one, and gives how many bytes they have.
fn read(bytes: &[u8], sweep: &mut Sweep) -> Result<usize, String> {
    let mut whole = 0;
    for text in bytes.split_inclusive(|byte| *byte == b'\n').filter(|text| text.ends_with(b"\n")) {
        let line = match serde_json::from_slice(text) {
            Ok(line) => line,
            Err(_) if whole > 0 => break,
            Err(_) => return Err("is no journal of a sweep".into()),
        };
        match line {
            Line::Sweep { schema_version, .. } if schema_version != SCHEMA_VERSION => {
                return Err("is a journal of another version".into());
            }
            Line::Sweep { version, keys, .. } => (sweep.version, sweep.keys) = (version, keys),
            _ if whole == 0 => return Err("is no journal of a sweep".into()),
            Line::Quantity { key, label, unit, better } => {
                let Some(better) = better_of(&better) else { break };
                sweep.quantities.push(Quantity { key, label, unit, better });
            }
            Line::Row { id, case, numbers, seed, status, reason, findings, values } => {
                let Some(status) = status_of(&status) else { break };
                let numbers = numbers.into_iter().map(|number| number.map(f64::from_bits)).collect();
                if values.iter().any(|(at, ..)| *at >= sweep.quantities.len()) {
                    break;
                }
                let value = |(at, float, value): (usize, bool, i64)| match float {
                    true => (at, Number::Float(f64::from_bits(value as u64))),
                    false => (at, Number::Int(value)),
                };
                let values = values.into_iter().map(value).collect();
                sweep.rows.push(Row { id, case, numbers, seed, status, reason, findings, values });
            }
        }
        whole += text.len();
    }
    Ok(whole)
}

/// The status of a word of a file.
pub(super) fn status_of(word: &str) -> Option<Status> {
    Status::ALL.into_iter().find(|status| status.word() == word)
}

/// The direction of a word of a file.
pub(super) fn better_of(word: &str) -> Option<Better> {
    [Better::Lower, Better::Higher, Better::Neutral].into_iter().find(|better| better.word() == word)
}

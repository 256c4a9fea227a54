//! A stream as tables: one per event, and one each for counters, tasks, losses and calls.
//!
//! [`Collector`] makes the rows, and gives them as record batches to a [`Target`]: `files` writes a directory of Parquet
//! files, which `docs/reference/formats.md` describes, `batches` gives those of one table to a caller.
//! Memory is bounded: a batch is given when it has [`ROWS`] rows, and that of the largest table when all tables together
//! hold more than [`BUDGET`].

mod batches;
mod column;
mod event;
mod files;
mod table;

use crate::format::Formats;
use crate::{Error, Outcome};
use arrow_array::RecordBatch;
pub use batches::BatchSink;
use column::{Type, Value};
pub use files::ParquetWriter;
use mmtwin_event::manifest::SCHEMA_VERSION;
use mmtwin_event::{Call, CounterRow, Event, Kind, Sink, Source, Task};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use table::Table;

/// Rows of a batch.
const ROWS: usize = 1 << 16;
/// Bytes of rows that were not given yet, of all tables.
const BUDGET: usize = 32 << 20;
/// Bytes of an event's name in a file name; file systems allow 255 for the whole.
const LONGEST_NAME: usize = 128;

/// Files that are not of events, beside those of counters.
const RESERVED: [&str; 3] = ["tasks", "lost", "calls"];

/// Columns that all events have: name, type, may be absent.
const COMMON: [(&str, Type, bool); 7] = [
    ("ts", Type::UInt64, false),
    ("cpu", Type::UInt32, false),
    ("pid", Type::Int32, false),
    ("tgid", Type::Int32, true),
    ("comm", Type::Words, true),
    ("flags", Type::UInt8, false),
    ("preempt_count", Type::UInt8, false),
];
const COUNTERS: [(&str, Type, bool); 4] = [
    ("ts", Type::UInt64, false),
    ("key", Type::Words, false),
    ("name", Type::Words, false),
    ("value", Type::UInt64, true),
];
const TASKS: [(&str, Type, bool); 4] = [
    ("pid", Type::Int32, false),
    ("tgid", Type::Int32, true),
    ("comm", Type::Words, false),
    ("cgroup", Type::Words, true),
];
const LOST: [(&str, Type, bool); 3] =
    [("ts", Type::UInt64, false), ("cpu", Type::UInt32, true), ("events", Type::UInt64, true)];
const CALLS: [(&str, Type, bool); 3] =
    [("cpu", Type::UInt32, false), ("function", Type::Words, false), ("duration", Type::UInt64, false)];

/// Who takes the rows of tables.
pub trait Target {
    /// Whether the rows of a table are wanted; the others are counted only.
    fn wants(&self, table: &str) -> bool;
    /// Takes rows of a table. `number` counts the tables from 0 as they came up.
    fn take(&mut self, number: usize, table: &Table, rows: &RecordBatch) -> Result<(), Error>;
}

/// Takes a stream, and gives the rows of its tables to a target.
pub struct Collector<T> {
    target: T,
    formats: Option<Arc<Formats>>,
    source: Source,
    tables: Vec<Table>,
    by_shape: FxHashMap<Shape, usize>,
    /// Tables of lines without type, by event.
    by_line: FxHashMap<String, usize>,
    /// Tables that are not of events, by name.
    sides: FxHashMap<String, usize>,
    /// Names of tables in lower case: some file systems know no other.
    taken: FxHashSet<String>,
    /// pid to thread group and name.
    tasks: FxHashMap<i32, (i32, Vec<u8>)>,
    /// Bytes of rows that were not given yet.
    bytes: usize,
    failed: Option<Error>,
}

/// What the columns of an event are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    /// Fields of the vocabulary.
    Typed(Kind),
    /// Fields of the format with this id.
    Format(u16),
    /// The whole record, for its format is not in the recording.
    Record,
}

impl<T: Target> Collector<T> {
    /// A collector for a target. `formats` are those of the source, if it is binary.
    fn to(target: T, formats: Option<Arc<Formats>>) -> Collector<T> {
        Collector {
            target,
            formats,
            source: Source::default(),
            tables: Vec::new(),
            by_shape: FxHashMap::default(),
            by_line: FxHashMap::default(),
            sides: FxHashMap::default(),
            taken: RESERVED.map(String::from).into_iter().collect(),
            tasks: FxHashMap::default(),
            bytes: 0,
            failed: None,
        }
    }

    /// Gives what is left. Returns the tables with their rows, by name.
    fn flush(&mut self) -> Result<Vec<(String, u64)>, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        (0..self.tables.len()).try_for_each(|table| self.give(table))?;
        let mut rows: Vec<(String, u64)> = self.tables.iter().map(|table| (table.name.clone(), table.given)).collect();
        rows.sort();
        Ok(rows)
    }

    /// Gives the rows of a table that are due.
    fn give(&mut self, number: usize) -> Result<(), Error> {
        self.bytes -= self.tables[number].bytes;
        match self.tables[number].take()? {
            Some(rows) => self.target.take(number, &self.tables[number], &rows),
            None => Ok(()),
        }
    }

    /// A name that no other table has, and that a file may have.
    fn name(&mut self, wanted: &str) -> String {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
        let stem: String = wanted.chars().take(LONGEST_NAME).map(allowed).collect();
        let mut name = stem.clone();
        let mut number = 1;
        while !self.taken.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{stem}.{number}");
        }
        name
    }

    fn add(&mut self, name: &str, columns: &[(String, Type, bool)], notes: &[(&str, &str)]) -> usize {
        let version = SCHEMA_VERSION.to_string();
        let source = [("schema_version", version.as_str()), ("source", &self.source.name), ("arm", &self.source.arm)];
        let kernel = self.source.kernel.iter().map(|k| ("kernel", k.as_str()));
        let clock = self.source.clock.iter().map(|c| ("clock", c.as_str()));
        let all = source.into_iter().chain(kernel).chain(clock).chain(notes.iter().copied());
        let notes = all.map(|(key, value)| (format!("mmtwin.{key}"), value.to_string())).collect();
        self.tables.push(Table::new(name, columns, notes, self.target.wants(name)));
        self.tables.len() - 1
    }

    /// Adds the table of an event. A field with the name of one of the common columns is called `field_NAME`.
    fn add_event(&mut self, system: &str, name: &str, recorded: &str, fields: &[(&str, Type)]) -> usize {
        let mut columns: Vec<_> = COMMON.map(|(name, kind, nullable)| (name.to_string(), kind, nullable)).into();
        let mut names: FxHashSet<String> = columns.iter().map(|c| c.0.clone()).collect();
        for (field, kind) in fields {
            let mut name = field.to_string();
            // Case does not tell columns apart in SQL.
            while !names.insert(name.to_lowercase()) {
                name.insert_str(0, "field_");
            }
            columns.push((name, *kind, true));
        }
        let table = self.name(name);
        let notes = [("event", recorded), ("system", system)];
        self.add(&table, &columns, if system.is_empty() { &notes[..1] } else { &notes })
    }

    /// The table that is not of events and has this name.
    fn side(&mut self, name: &str, columns: &[(&str, Type, bool)]) -> usize {
        if let Some(&table) = self.sides.get(name) {
            return table;
        }
        let own = if RESERVED.contains(&name) { name.into() } else { self.name(name) };
        let columns: Vec<_> = columns.iter().map(|(n, kind, nullable)| (n.to_string(), *kind, *nullable)).collect();
        let table = self.add(&own, &columns, &[]);
        self.sides.insert(name.into(), table);
        table
    }

    fn shape(&self, event: &Event<'_>) -> Option<Shape> {
        if event.kind != Kind::Other {
            return Some(Shape::Typed(event.kind));
        }
        // Lines name their task; records do not.
        let formats = self.formats.as_ref().filter(|_| event.comm.is_empty())?;
        let id = u16::try_from(event.id).ok()?;
        Some(if formats.get(id).is_some() { Shape::Format(id) } else { Shape::Record })
    }

    fn table(&mut self, event: &Event<'_>, shape: Option<Shape>) -> usize {
        let Some(shape) = shape else {
            if let Some(&table) = self.by_line.get(event.name) {
                return table;
            }
            let table = self.add_event("", event.name, event.name, &[("payload", Type::Text)]);
            self.by_line.insert(event.name.into(), table);
            return table;
        };
        if let Some(&table) = self.by_shape.get(&shape) {
            return table;
        }
        let formats = self.formats.clone();
        let format = formats.as_deref().and_then(|f| f.get(u16::try_from(event.id).ok()?));
        let table = match (shape, format) {
            (Shape::Typed(kind), _) if let Some(schema) = kind.schema() => {
                self.add_event(schema.system, schema.name, event.name, &event::typed_columns(schema))
            }
            (Shape::Format(_), Some(format)) => {
                self.add_event(&format.system, &format.name, event.name, &event::format_columns(format))
            }
            _ => self.add_event("", event.name, event.name, &[("id", Type::UInt64), ("record", Type::Bytes)]),
        };
        self.by_shape.insert(shape, table);
        table
    }

    /// Adds the row of an event.
    fn row(&mut self, event: &Event<'_>, shape: Option<Shape>, table: usize) {
        let known = self.tasks.get(&event.pid);
        let tgid = Some(event.tgid).filter(|t| *t != 0).or(known.map(|k| k.0).filter(|t| *t != 0));
        let comm = match event.comm {
            b"" if event.pid == 0 => Some(b"<idle>".as_slice()),
            // The kernel prints dots for a name it has forgotten.
            b"" | b"<...>" => known.map(|k| k.1.as_slice()),
            comm => Some(comm),
        };
        let common = [
            Some(Value::Uint(event.ts)),
            Some(Value::Uint(event.cpu.into())),
            Some(Value::Int(event.pid.into())),
            tgid.map(|t| Value::Int(t.into())),
            comm.map(Value::Text),
            Some(Value::Uint(event.flags.into())),
            Some(Value::Uint(event.preempt_count.into())),
        ];
        let (first, own) = self.tables[table].columns.split_at_mut(COMMON.len());
        let mut bytes: usize = first.iter_mut().zip(common).map(|(column, value)| column.push_option(value)).sum();
        let formats = self.formats.as_deref();
        let format = |id| formats.and_then(|formats| Some((formats, formats.get(id)?)));
        bytes += match (shape, event.kind.schema()) {
            (Some(Shape::Typed(_)), Some(schema)) => event::push_typed(event, schema, formats, &self.source, own),
            (Some(Shape::Format(id)), _) if let Some((formats, format)) = format(id) => {
                event::push_record(event.raw, format, formats, own)
            }
            (None, _) => own.iter_mut().map(|column| column.push(Value::Text(event.raw))).sum(),
            _ => {
                let values = [Value::Uint(event.id.into()), Value::Bytes(event.raw)];
                own.iter_mut().zip(values).map(|(column, value)| column.push(value)).sum()
            }
        };
        self.end_row(table, bytes);
    }

    /// Ends a row that took `bytes`, and gives what is due.
    fn end_row(&mut self, table: usize, bytes: usize) {
        self.tables[table].end_row(bytes);
        self.bytes += bytes;
        let due = if self.tables[table].rows >= ROWS {
            Some(table)
        } else if self.bytes > BUDGET {
            (0..self.tables.len()).max_by_key(|t| self.tables[*t].bytes)
        } else {
            None
        };
        if let Some(due) = due {
            // For `close` to return; a sink has no other way to say it.
            self.failed = self.give(due).err();
        }
    }

    /// Adds a row to a table that is not of events.
    fn push_side(&mut self, table: usize, values: &[Option<Value<'_>>]) {
        if !self.tables[table].wanted {
            self.tables[table].given += 1;
        } else if self.failed.is_none() {
            let columns = self.tables[table].columns.iter_mut();
            let bytes = columns.zip(values).map(|(column, value)| column.push_option(*value)).sum();
            self.end_row(table, bytes);
        }
    }
}

impl<T: Target> Sink for Collector<T> {
    fn start(&mut self, source: &Source) {
        self.source = source.clone();
    }

    fn task(&mut self, task: &Task<'_>) {
        self.tasks.insert(task.pid, (task.tgid, task.comm.to_vec()));
        let table = self.side("tasks", &TASKS);
        let tgid = Some(task.tgid).filter(|t| *t != 0).map(|t| Value::Int(t.into()));
        let (pid, comm) = (Value::Int(task.pid.into()), Value::Text(task.comm));
        self.push_side(table, &[Some(pid), tgid, Some(comm), task.cgroup.map(|c| Value::Text(c.as_bytes()))]);
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.failed.is_some() {
            return;
        }
        let shape = self.shape(event);
        let table = self.table(event, shape);
        if self.tables[table].wanted {
            self.row(event, shape, table);
        } else {
            self.tables[table].given += 1;
        }
        let format = |id| self.formats.as_deref().and_then(|formats| Some((formats, formats.get(id)?)));
        // As `script` does: events of the scheduler name tasks; names that came before stay.
        let id = u16::try_from(event.id).ok().filter(|_| event.comm.is_empty());
        if let Some((formats, format)) = id.and_then(format) {
            for (pid, comm) in format.named_tasks(event.raw, formats.big_endian()).into_iter().flatten() {
                self.tasks.entry(pid).or_insert_with(|| (0, comm.to_vec()));
            }
        }
    }

    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        let table = self.side("lost", &LOST);
        let cpu = Some(cpu).filter(|c| *c != Outcome::SOME_CPU).map(|c| Value::Uint(c.into()));
        self.push_side(table, &[Some(Value::Uint(at)), cpu, events.map(Value::Uint)]);
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        let table = self.side(&format!("counters.{}", row.source), &COUNTERS);
        let (at, key) = (Value::Uint(row.at), Value::Text(row.key.as_bytes()));
        for (name, value) in row.names.iter().zip(row.values) {
            let name = Value::Text(name.as_bytes());
            self.push_side(table, &[Some(at), Some(key), Some(name), value.map(Value::Uint)]);
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        let table = self.side("calls", &CALLS);
        let (cpu, function) = (Value::Uint(call.cpu.into()), Value::Text(call.function.as_bytes()));
        self.push_side(table, &[Some(cpu), Some(function), Some(Value::Uint(call.nanoseconds))]);
    }
}

#[cfg(test)]
mod tests;

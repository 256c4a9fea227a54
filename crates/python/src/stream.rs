//! Events of a trace as an Arrow stream: another thread reads the trace, a few batches ahead of who takes them.

use crate::table::capsule;
use crate::{error, wait};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use mmtwin::Trace;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Batches that are read before anybody takes them.
const AHEAD: usize = 4;
/// How often signals are looked for.
const PERIOD: Duration = Duration::from_millis(50);

/// What the reading thread sends.
enum Message {
    Rows(RecordBatch),
    /// It has read everything: all tables with their numbers of rows.
    End(Result<Vec<(String, u64)>, mmtwin::Error>),
}

/// Rows of a table of a trace. They are read while they are taken, once: by `__arrow_c_stream__`, which pandas, polars,
/// DuckDB and pyarrow call.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Events {
    name: String,
    schema: SchemaRef,
    reader: Mutex<Option<Reader>>,
}

/// The receiving end.
struct Reader {
    schema: SchemaRef,
    first: Option<RecordBatch>,
    receiver: Receiver<Message>,
    _stop: Stop,
}

/// Stops the reading thread when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(rows) = self.first.take() {
            return Some(Ok(rows));
        }
        match self.receiver.recv() {
            Ok(Message::Rows(rows)) => Some(Ok(rows)),
            Ok(Message::End(Err(error))) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
            Ok(Message::End(Ok(_))) | Err(_) => None,
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Events {
    /// Begins to read the rows of a table, and waits for the first of them.
    ///
    /// # Errors
    /// `KeyError` if the trace has no such rows; those of the trace.
    pub(crate) fn begin(
        py: Python<'_>,
        input: &str,
        open: impl FnOnce() -> Result<Trace, mmtwin::Error> + Send + 'static,
        table: &str,
    ) -> PyResult<Events> {
        let (sender, mut receiver) = sync_channel(AHEAD);
        let stop = Stop(Arc::default());
        let (stopped, name) = (stop.0.clone(), table.to_owned());
        std::thread::spawn(move || read(open, &name, &sender, &stopped));
        let first = loop {
            let receiver = &mut receiver;
            match py.detach(move || receiver.recv_timeout(PERIOD)) {
                Ok(message) => break message,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(_) => return Err(PyRuntimeError::new_err(format!("{input}: reading it failed"))),
            }
        };
        match first {
            Message::Rows(rows) => {
                let schema = rows.schema();
                let reader = Reader { schema: schema.clone(), first: Some(rows), receiver, _stop: stop };
                Ok(Events { name: table.into(), schema, reader: Mutex::new(Some(reader)) })
            }
            Message::End(Ok(tables)) => {
                let there: Vec<String> = tables.iter().map(|(name, rows)| format!("{name} ({rows})")).collect();
                let there = if there.is_empty() { "nothing".into() } else { there.join(", ") };
                Err(PyKeyError::new_err(format!("{input} has no rows of {table}; it has {there}")))
            }
            Message::End(Err(error)) => Err(error::of(py, &error)),
        }
    }
}

fn read(
    open: impl FnOnce() -> Result<Trace, mmtwin::Error>,
    table: &str,
    sender: &SyncSender<Message>,
    stop: &AtomicBool,
) {
    // Nobody takes the rows any more: there is no other way to end a reader.
    let halt = || resume_unwind(Box::new(wait::Halt));
    let read = || {
        let mut take = |rows| {
            if sender.send(Message::Rows(rows)).is_err() {
                halt();
            }
        };
        let mut progress = |_| {
            if stop.load(Ordering::Relaxed) {
                halt();
            }
        };
        open()?.rows(table, &mut take, &mut progress).map(|(_, tables)| tables)
    };
    if let Ok(end) = catch_unwind(AssertUnwindSafe(read)) {
        // Who went away needs no end.
        let _ = sender.send(Message::End(end));
    }
}

#[pymethods]
impl Events {
    /// The table: an event, `counters.SOURCE`, `tasks`, `lost` or `calls`.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Names of its columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The Arrow PyCapsule interface: a stream of record batches of at most 65,536 rows, read as they are taken.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let reader = self.reader.lock().ok().and_then(|mut reader| reader.take());
        let taken = || PyRuntimeError::new_err("these rows were taken: Trace.events reads them again");
        capsule(py, Box::new(reader.ok_or_else(taken)?))
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Events {}: columns {}>", self.name, self.columns().join(", "))
    }
}

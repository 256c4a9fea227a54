//! Opening and reading traces.

use crate::report::Report;
use crate::stream::Events;
use crate::{error, wait};
use mmtwin::{Filter, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;

/// A trace of a kernel: a recording of mmtwin, a `trace.dat`, the text of ftrace, compressed or not. Made by
/// `mmtwin.open`. Each method reads it again.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Trace {
    path: OsString,
    filter: Filter,
}

impl Trace {
    fn open(&self) -> Result<mmtwin::Trace, mmtwin::Error> {
        Ok(mmtwin::Trace::open_with(&self.path, Options::default())?.only(self.filter.clone()))
    }
}

/// Seconds as nanoseconds.
fn nanoseconds(name: &str, seconds: Option<f64>) -> PyResult<Option<u64>> {
    match seconds {
        None => Ok(None),
        Some(seconds) if (0.0..1e10).contains(&seconds) => Ok(Some((seconds * 1e9) as u64)),
        Some(seconds) => Err(PyValueError::new_err(format!("{name}={seconds}: expected seconds from the start"))),
    }
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (path, *, cgroups=Vec::new(), processes=Vec::new(), nodes=Vec::new(), start=None, end=None))]
    fn new(
        py: Python<'_>,
        path: std::path::PathBuf,
        cgroups: Vec<String>,
        processes: Vec<String>,
        nodes: Vec<u32>,
        start: Option<f64>,
        end: Option<f64>,
    ) -> PyResult<Trace> {
        let (from, to) = (nanoseconds("start", start)?, nanoseconds("end", end)?);
        let filter = Filter { cgroups, processes, nodes, from, to };
        let trace = Trace { path: path.into_os_string(), filter };
        trace.open().map_err(|error| error::of(py, &error))?;
        Ok(trace)
    }

    /// Its path.
    #[getter]
    fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Reads all of it and gives a `Report`: findings, tables and figures. `progress`, if given, is called with the
    /// number of events so far. Raises `TraceError` or `OSError` if nothing of it can be read; what is damaged is stepped
    /// over and is in `Report.warnings`.
    #[pyo3(signature = (*, progress=None))]
    fn report(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Report> {
        let progress = wait::callable(progress, |events| events as f64);
        let analyse = |told: &wait::Told| self.open()?.analyse(&mut |events| told.reach(events));
        let analysed = wait::work(py, &progress, analyse)?.map_err(|error| error::of(py, &error))?;
        Ok(Report::new(analysed, true))
    }

    /// Rows of one table, read while they are taken, as an Arrow stream: of an event by its name
    /// (`mm_vmscan_direct_reclaim_begin`), or `counters.SOURCE`, `tasks`, `lost`, `calls`. Columns and units are those of
    /// the files of `mmtwin convert -o NAME.parquet`: `ts` is nanoseconds of the trace clock. Raises `KeyError` with what
    /// there is if the trace has no such rows.
    fn events(&self, py: Python<'_>, name: &str) -> PyResult<Events> {
        let (path, filter) = (self.path.clone(), self.filter.clone());
        let open = || Ok(mmtwin::Trace::open_with(path, Options::default())?.only(filter));
        Events::begin(py, &self.path(), open, name)
    }

    /// All tables of `events` with their numbers of rows.
    #[pyo3(signature = (*, progress=None))]
    fn counts<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let progress = wait::callable(progress, |events| events as f64);
        let count = |told: &wait::Told| self.open()?.rows("", &mut drop, &mut |events| told.reach(events));
        let (_, tables) = wait::work(py, &progress, count)?.map_err(|error| error::of(py, &error))?;
        let counts = PyDict::new(py);
        tables.into_iter().try_for_each(|(name, rows)| counts.set_item(name, rows))?;
        Ok(counts)
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Trace {}>", self.path())
    }
}

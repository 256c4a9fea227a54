//! Many recordings on one page: what reads them, and what was found.

use crate::table::{Table, capsule_of};
use crate::{error, wait};
use mmtwin::fleet::{self as read, Read, from_bytes, to_bytes};
use mmtwin::report::fleet::{self, Unreadable};
use mmtwin::report::screen::NARROWEST;
use mmtwin::trace::output::{self, FileOutput};
use mmtwin::{Filter, Options};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads recordings: knows which are missing, keeps what each gave. `mmtwin.report` makes it.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Reading {
    paths: Vec<PathBuf>,
    given: Mutex<Vec<Option<Read>>>,
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Read>>> {
        // Each change is one assignment, so a panic leaves nothing half done.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, at: usize) -> PyResult<&Path> {
        self.paths.get(at).map(PathBuf::as_path).ok_or_else(|| PyIndexError::new_err(format!("no recording {at}")))
    }

    fn keep(&self, at: usize, read: Read) {
        if let Some(place) = self.lock().get_mut(at) {
            *place = Some(read);
        }
    }
}

/// Reads one. Unwinds with [`wait::Halt`] once `stop` is true.
fn one(path: &Path, stop: &AtomicBool) -> Read {
    let mut told = |_| {
        if stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(wait::Halt));
        }
    };
    let summary = read::summary_with(path, &Options::default(), &Filter::default(), &mut told);
    summary.map_err(|error| Unreadable { name: path.display().to_string(), error: error.to_string() })
}

#[pymethods]
impl Reading {
    /// `paths`: recordings and traces, and directories that stand for all in them and below.
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Reading> {
        let found = py.detach(|| read::find(&paths)).map_err(|error| error::of(py, &error))?;
        if found.is_empty() {
            let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(error::TraceError::new_err(format!("{}: no recording and no trace in it", names.join(", "))));
        }
        let given = Mutex::new(found.iter().map(|_| None).collect());
        Ok(Reading { paths: found, given })
    }

    /// How many recordings there are.
    #[getter]
    fn planned_runs(&self) -> usize {
        self.paths.len()
    }

    /// How many were read.
    #[getter]
    fn done(&self) -> usize {
        self.lock().iter().flatten().count()
    }

    /// Numbers of those that were not read.
    fn missing(&self) -> Vec<usize> {
        self.lock().iter().enumerate().filter(|(_, read)| read.is_none()).map(|(at, _)| at).collect()
    }

    /// What a worker needs for `read_task`: the path, and whether it is there.
    fn task(&self, at: usize) -> PyResult<(PathBuf, bool)> {
        let path = self.path(at)?;
        Ok((path.to_owned(), path.exists()))
    }

    /// Reads all that is missing on `jobs` threads. `progress(done, of)` is called on this thread.
    #[pyo3(signature = (jobs, progress=None))]
    fn run_missing(&self, py: Python<'_>, jobs: usize, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let (missing, of) = (self.missing(), self.paths.len());
        let told = |py: Python<'_>, done: u64| match &progress {
            Some(progress) if done <= of as u64 => progress.call1(py, (done, of)).map(drop),
            _ => Ok(()),
        };
        let next = AtomicUsize::new(0);
        let work = |told: &wait::Told| {
            told.note(self.done() as u64);
            let take = || {
                while let Some(&at) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    self.keep(at, one(&self.paths[at], &told.stop));
                    told.note(self.done() as u64);
                }
            };
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..jobs.clamp(1, of)).map(|_| scope.spawn(take)).collect();
                let panics: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().err()).collect();
                // What stopped them is known by who waits; anything else goes on.
                if let Some(panic) = panics.into_iter().find(|panic| !panic.is::<wait::Halt>()) {
                    resume_unwind(panic);
                }
            });
        };
        wait::work(py, &told, work)
    }

    /// Keeps what `read_task` gave.
    fn add(&self, at: usize, read: &[u8]) -> PyResult<()> {
        self.path(at)?;
        let read = from_bytes(read).ok_or_else(|| PyValueError::new_err("these are no bytes of read_task"))?;
        self.keep(at, read);
        Ok(())
    }

    /// Keeps one that could not be read, with the reason.
    fn add_failed(&self, at: usize, reason: String) -> PyResult<()> {
        let name = self.path(at)?.display().to_string();
        let error = format!("{name}: {reason}");
        self.keep(at, Err(Unreadable { name, error }));
        Ok(())
    }

    /// What was read, as a `Fleet`.
    fn finish(&self) -> Fleet {
        let (mut recordings, mut unreadable) = (Vec::new(), Vec::new());
        for read in std::mem::take(&mut *self.lock()).into_iter().flatten() {
            match read {
                Ok(summary) => recordings.push(summary),
                Err(one) => unreadable.push(one),
            }
        }
        let mode = self.paths.iter().fold(0o666, |mode, path| mode & output::mode_of(path));
        Fleet { fleet: fleet::Fleet::new(recordings, unreadable), mode }
    }
}

/// Reads what `Reading.task` gave, on any machine, and gives bytes for `Reading.add`. Raises `TraceError` if the recording
/// is not there although the driver has it.
#[pyfunction]
pub(crate) fn read_task<'py>(py: Python<'py>, path: PathBuf, there: bool) -> PyResult<Bound<'py, PyBytes>> {
    if there && !path.exists() {
        let message = format!("{}: not on this machine: recordings are on a path that all have", path.display());
        return Err(error::TraceError::new_err(message));
    }
    let read = wait::work(py, &|_, _| Ok(()), |told| one(&path, &told.stop))?;
    Ok(PyBytes::new(py, &to_bytes(&read)))
}

/// Many recordings, worst first. `str(fleet)` is what `mmtwin report --fleet` prints. It is an Arrow table with a row for
/// each recording and finding: `polars.DataFrame(fleet)`; columns: docs/howto/fleet.md.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Fleet {
    fleet: fleet::Fleet,
    /// Permissions that a file made of the recordings has at most.
    mode: u32,
}

impl Fleet {
    fn rows(&self) -> PyResult<arrow_array::RecordBatch> {
        read::index(&self.fleet).map_err(|error| error::Error::new_err(error.to_string()))
    }
}

#[pymethods]
impl Fleet {
    /// Paths of the recordings that were read, worst first.
    #[getter]
    fn recordings(&self) -> Vec<&str> {
        self.fleet.recordings.iter().map(|summary| summary.name.as_str()).collect()
    }

    /// Those that could not be read: path and reason.
    #[getter]
    fn unreadable(&self) -> Vec<(&str, &str)> {
        self.fleet.unreadable.iter().map(|one| (one.name.as_str(), one.error.as_str())).collect()
    }

    /// A row for each recording and finding.
    fn table(&self) -> PyResult<Table> {
        Ok(Table::of("fleet", self.rows()?))
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsule_of(py, self.rows()?)
    }

    /// The page that `mmtwin report --fleet` prints. `all`: also recordings without a problem.
    #[pyo3(signature = (width=100, *, all=false))]
    fn screen(&self, width: usize, all: bool) -> String {
        fleet::lines(&self.fleet, width.max(NARROWEST), all).join("\n")
    }

    /// The document that `--format json` writes.
    fn to_json(&self) -> PyResult<String> {
        text(|out| fleet::write_json(&self.fleet, out))
    }

    /// The lines that `--format csv` writes.
    fn to_csv(&self) -> PyResult<String> {
        text(|out| fleet::write_csv(&self.fleet, out))
    }

    /// Writes the Parquet file of `--index`. Raises `TraceError` if it is there and `force` is not given; `OSError`.
    #[pyo3(signature = (path, *, force=false))]
    fn write_index(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let write = || {
            let output = FileOutput::open(&path, force, self.mode).map_err(|error| error::of_trace(&error))?;
            let failed = |error| error::Error::new_err(format!("{}: {error}", path.display()));
            read::write_index(&self.fleet, output.file()).map_err(failed)?;
            output.commit().map_err(|error| error::of_trace(&error))
        };
        py.detach(write)
    }

    fn __len__(&self) -> usize {
        self.fleet.recordings.len()
    }

    fn __str__(&self) -> String {
        self.screen(100, false)
    }

    fn __repr__(&self) -> String {
        let (read, not) = (self.fleet.recordings.len(), self.fleet.unreadable.len());
        format!("<mmtwin.Fleet: {read} recordings, {not} could not be read>")
    }
}

/// What a writer writes.
fn text(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> PyResult<String> {
    let mut text = Vec::new();
    write(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

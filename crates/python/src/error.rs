//! Errors as Python exceptions. What the operating system says is an `OSError` of its kind.

use crate::key;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;

create_exception!(mmtwin, Error, PyException, "What went wrong: the base of all exceptions of this package.");
create_exception!(mmtwin, TraceError, Error, "An input could not be read, or an output not be written.");
create_exception!(
    mmtwin,
    ScenarioError,
    Error,
    "A scenario has faults. `faults` is a list of all that were found, each a `Fault`."
);
create_exception!(mmtwin, SweepError, Error, "A sweep could not begin or go on. Its rows so far are kept.");

/// Adds the exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("TraceError", py.get_type::<TraceError>())?;
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("SweepError", py.get_type::<SweepError>())?;
    module.add_class::<Fault>()
}

/// One fault of a scenario.
#[pyclass(frozen, get_all, module = "mmtwin")]
#[derive(Clone)]
pub(crate) struct Fault {
    /// File, `--set N` for the override with number N from 1, or the name of a text.
    file: String,
    /// Line from 1; `None`: the file as a whole.
    line: Option<usize>,
    /// Column from 1.
    column: Option<usize>,
    /// The key, as an override would name it; `None`: the fault is about no key.
    key: Option<String>,
    /// What is wrong.
    message: String,
    /// A correction, where there is one.
    help: Option<String>,
    /// All of it, with the line that is wrong.
    text: String,
}

impl Fault {
    /// One of a sweep, whose place is in words.
    pub(crate) fn of_sweep(place: String, key: Option<String>, message: String, text: String) -> Fault {
        Fault { file: place, line: None, column: None, key, message, help: None, text }
    }
}

#[pymethods]
impl Fault {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let place = self.line.map_or(self.file.clone(), |line| format!("{}:{line}", self.file));
        format!("Fault({place}, key={}, {})", self.key.as_deref().unwrap_or("None"), self.message)
    }
}

/// Faults of a scenario that was read from `text` with overrides.
pub(crate) fn of_faults(py: Python<'_>, faults: &mmtwin::scenario::Faults, text: &str, sets: &[String]) -> PyErr {
    let list = faults.all().iter().map(|fault| Fault {
        file: fault.file.clone(),
        line: fault.at.map(|at| at.0).filter(|_| !fault.file.starts_with("--")),
        column: fault.at.map(|at| at.1).filter(|_| !fault.file.starts_with("--")),
        key: key::of(&fault.file, fault.at, text, sets),
        message: fault.message.clone(),
        help: fault.help.clone(),
        text: fault.to_string(),
    });
    with_faults(py, faults.to_string(), list.collect())
}

/// A scenario that the twin cannot run, or that has faults.
pub(crate) fn with_faults(py: Python<'_>, message: String, faults: Vec<Fault>) -> PyErr {
    let error = ScenarioError::new_err(message);
    match error.value(py).setattr("faults", faults) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// An error of the library.
pub(crate) fn of(py: Python<'_>, error: &mmtwin::Error) -> PyErr {
    match error {
        mmtwin::Error::Trace(error) => of_trace(error),
        mmtwin::Error::NothingMatches { .. } => TraceError::new_err(error.to_string()),
        mmtwin::Error::Scenario(faults) => of_faults(py, faults, "", &[]),
        mmtwin::Error::Run(_) => with_faults(py, error.to_string(), Vec::new()),
        _ => Error::new_err(error.to_string()),
    }
}

/// An input or output.
pub(crate) fn of_trace(error: &mmtwin::trace::Error) -> PyErr {
    match error {
        mmtwin::trace::Error::Io { file, source } => of_io(file, source),
        _ => TraceError::new_err(error.to_string()),
    }
}

/// What the operating system said of a file.
pub(crate) fn of_io(file: &str, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        // The class follows from the number: FileNotFoundError, PermissionError, ...
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, file.to_owned()))
        }
        None => TraceError::new_err(format!("{file}: {error}")),
    }
}

/// A sweep.
pub(crate) fn of_sweep(error: &mmtwin::sweep::Error) -> PyErr {
    match error {
        mmtwin::sweep::Error::Io { path, source } => of_io(&path.display().to_string(), source),
        mmtwin::sweep::Error::Output(error) => of_trace(error),
        _ => SweepError::new_err(error.to_string()),
    }
}

//! Scenarios: a machine, a kernel and a workload.

use crate::error;
use mmtwin::scenario::parse;
use mmtwin::twin::build;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scenario that was read and checked. Made by `load`, `parse` or `from_dict`; it does not change.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Scenario {
    /// Its name in messages: a path, if it has one.
    pub(crate) name: String,
    pub(crate) text: String,
    /// Overrides, `KEY=VALUE`.
    pub(crate) sets: Vec<String>,
    pub(crate) scenario: Arc<mmtwin::Scenario>,
}

/// A value as `--set` takes it.
fn word(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() {
        return Ok(value.extract::<bool>()?.to_string());
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_string_lossy().into_owned());
    }
    Ok(toml(value)?.to_string())
}

/// A dictionary, list or plain value as TOML.
fn toml(value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    let text: String = value.py().import("json")?.call_method1("dumps", (value,))?.extract()?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    toml::Value::try_from(json).map_err(|error| PyValueError::new_err(format!("a scenario has no such value: {error}")))
}

/// Overrides out of a dictionary by key, or a list of `KEY=VALUE`.
pub(crate) fn overrides(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    if let Ok(given) = given.cast::<PyDict>() {
        return given
            .iter()
            .map(|(key, value)| Ok(format!("{}={}", key.extract::<String>()?, word(&value)?)))
            .collect();
    }
    let wrong = |_| PyTypeError::new_err("overrides are a dictionary of keys and values, or a list of KEY=VALUE");
    given.extract::<Vec<String>>().map_err(wrong)
}

impl Scenario {
    fn read(py: Python<'_>, name: String, text: String, sets: Vec<String>) -> PyResult<Scenario> {
        let directory = Path::new(&name).parent().unwrap_or(Path::new("")).to_owned();
        let read = py.detach(|| parse(&name, &text, &directory, &sets));
        let scenario = read.map_err(|faults| error::of_faults(py, &faults, &text, &sets))?;
        Ok(Scenario { name, text, sets, scenario: Arc::new(scenario) })
    }
}

#[pymethods]
impl Scenario {
    /// Reads a scenario file. `overrides` are values by key (`{"kernel.sysctl.vm.swappiness": 10}`) or a list of
    /// `KEY=VALUE`, as `--set` takes them. Raises `ScenarioError` with all faults, `OSError` if the file cannot be read.
    #[staticmethod]
    #[pyo3(signature = (path, overrides=None))]
    fn load(py: Python<'_>, path: PathBuf, overrides: Option<Bound<'_, PyAny>>) -> PyResult<Scenario> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|error| error::of_io(&name, &error))?;
        Scenario::read(py, name, text, self::overrides(overrides.as_ref())?)
    }

    /// Reads the text of a scenario file. `name` is its name in messages; presets and bundles that it names by a path are
    /// looked for beside that. Raises `ScenarioError` with all faults.
    #[staticmethod]
    #[pyo3(signature = (text, overrides=None, *, name="scenario"))]
    fn parse(py: Python<'_>, text: String, overrides: Option<Bound<'_, PyAny>>, name: &str) -> PyResult<Scenario> {
        Scenario::read(py, name.into(), text, self::overrides(overrides.as_ref())?)
    }

    /// Makes one of a dictionary with the keys of a scenario file: `{"machine": {...}, "kernel": {"release": "6.12"}, ...}`.
    /// Raises `ScenarioError` with all faults; their `key` says where, their line is that of `Scenario.text`.
    #[staticmethod]
    #[pyo3(signature = (values, overrides=None, *, name="scenario"))]
    fn from_dict(
        py: Python<'_>,
        values: Bound<'_, PyDict>,
        overrides: Option<Bound<'_, PyAny>>,
        name: &str,
    ) -> PyResult<Scenario> {
        let wrong = |error: toml::ser::Error| PyValueError::new_err(error.to_string());
        let text = toml::to_string(&toml(values.as_any())?).map_err(wrong)?;
        Scenario::read(py, name.into(), text, self::overrides(overrides.as_ref())?)
    }

    /// The same with more overrides, laid over those that it has. Raises `ScenarioError` with all faults.
    #[pyo3(name = "override")]
    fn with(&self, py: Python<'_>, overrides: Bound<'_, PyAny>) -> PyResult<Scenario> {
        let mut sets = self.sets.clone();
        sets.extend(self::overrides(Some(&overrides))?);
        Scenario::read(py, self.name.clone(), self.text.clone(), sets)
    }

    /// Notes, in sentences, on mechanisms of the kernel that are not modelled. Raises `ScenarioError` if the twin has no model
    /// of what the scenario asks for, as `run` does.
    fn validate(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        build::check(&self.scenario).map_err(|fault| error::with_faults(py, fault.to_string(), Vec::new()))
    }

    /// Its subject, in a line; may be empty.
    #[getter]
    fn title(&self) -> &str {
        &self.scenario.title
    }

    /// Its name in messages: the path of its file.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The text that it was read from.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Its overrides, `KEY=VALUE`.
    #[getter]
    fn overrides(&self) -> Vec<String> {
        self.sets.clone()
    }

    /// Hash of all that decides a run but its seed.
    #[getter]
    fn hash(&self) -> String {
        self.scenario.hash()
    }

    /// Seed of its runs.
    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.run.seed
    }

    /// All keys with their values, nothing left to default.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.scenario.to_json().to_string(),))
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Scenario {}: {}>", self.name, self.scenario.title)
    }
}

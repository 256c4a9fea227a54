//! Runs on the simulated kernel.

use crate::report::Report;
use crate::scenario::Scenario;
use crate::{error, wait};
use mmtwin::Request;
use mmtwin::event::results::{Ending, Results};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A run of a scenario. `str(run)` is the screen of its report.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Run {
    /// What happened: findings, tables and figures.
    #[pyo3(get)]
    report: Py<Report>,
    results: Results,
    /// Virtual seconds.
    #[pyo3(get)]
    elapsed: f64,
    /// Events that it wrote.
    #[pyo3(get)]
    events: u64,
}

/// Runs a scenario on the simulated kernel, and gives a `Run`. The same scenario and seed give the same run, bit for bit.
/// `output`: a recording to write; one that is there is only replaced with `force=True`. `explicit`: every access by
/// itself. `check_determinism`: run twice and compare. `progress`, if given, is called with the virtual seconds so far, and
/// what it raises ends the run. Memory that runs out in the scenario is a result: `Run.status`. Raises `ScenarioError` if
/// the twin has no model of what the scenario asks for, `OSError` or `TraceError` if the recording cannot be written.
#[pyfunction]
#[pyo3(signature = (scenario, *, output=None, force=false, explicit=false, check_determinism=false, progress=None))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    output: Option<PathBuf>,
    force: bool,
    explicit: bool,
    check_determinism: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let Scenario { name, scenario, .. } = scenario.get();
    let output = output.as_deref();
    let request =
        Request { name, output: output.map(|path| (path, force)), explicit, check_determinism, ..Request::default() };
    let simulate = |told: &wait::Told| mmtwin::run(scenario, request, &mut |now| told.reach(now));
    let progress = wait::callable(progress, |nanoseconds| nanoseconds as f64 / 1e9);
    let ran = wait::work(py, &progress, simulate)?.map_err(|error| error::of(py, &error))?;
    let (results, elapsed) = (ran.ran.results, ran.ran.end as f64 / 1e9);
    let events = ran.analysed.outcome.events;
    let report = Py::new(py, Report::new(ran.analysed, output.is_some()))?;
    Ok(Run { report, results, elapsed, events })
}

#[pymethods]
impl Run {
    /// How it ended: `completed`, `time_up`, `out_of_memory` or `stopped`.
    #[getter]
    fn status(&self) -> &'static str {
        match self.results.ending {
            Ending::Completed => "completed",
            Ending::TimeUp => "time_up",
            Ending::OutOfMemory { .. } => "out_of_memory",
            Ending::Stopped { .. } => "stopped",
        }
    }

    /// Why it ended before its end; `None`: it did not.
    #[getter]
    fn reason(&self) -> Option<&str> {
        match &self.results.ending {
            Ending::OutOfMemory { message, .. } | Ending::Stopped { message, .. } => Some(message),
            Ending::Completed | Ending::TimeUp => None,
        }
    }

    /// What the workload achieved, by process and phase: the content of `results.json` of a recording. Times are
    /// nanoseconds.
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.results).map_err(|error| error::Error::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.report.bind(py).str()?.extract()
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Run: {} after {:.3} s, {} events>", self.status(), self.elapsed, self.events)
    }
}

//! Many runs: what drives them, and their rows.

use crate::error::{self, Fault};
use crate::scenario::Scenario;
use crate::table::{Table, capsule_of};
use crate::{VERSION, wait};
use mmtwin::report::format::Style;
use mmtwin::report::sweep as rows;
use mmtwin::sweep::{self, Base, Options, Plan, Planned, Ran, Request};
use mmtwin::{scenario::parse, twin::build};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Drives a sweep: knows what is missing, keeps what is finished, writes the output. `mmtwin.sweep` makes it.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Driver {
    driver: Mutex<Option<sweep::Driver>>,
    scenario: Py<Scenario>,
    /// Names that `--set` would have in messages: keys of the values, then of the cases.
    keys: Vec<String>,
    stop: AtomicBool,
}

/// What a worker needs to run a run: name, text and overrides of the scenario, values of the keys, seed, hash.
type Task = (String, String, Vec<String>, Vec<String>, u64, String);

impl Driver {
    fn begin(py: Python<'_>, scenario: Py<Scenario>, plan: Plan, output: &Path, force: bool) -> PyResult<Driver> {
        let keys = plan.keys.clone();
        let driver =
            py.detach(|| sweep::Driver::begin(plan, output, force)).map_err(|error| error::of_sweep(&error))?;
        Ok(Driver { driver: Mutex::new(Some(driver)), scenario, keys, stop: AtomicBool::new(false) })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Option<sweep::Driver>>> {
        self.driver.lock().map_err(|_| error::SweepError::new_err("the sweep failed before"))
    }

    /// Does something with the driver, unless it has finished.
    fn with<T>(&self, act: impl FnOnce(&mut sweep::Driver) -> PyResult<T>) -> PyResult<T> {
        act(self.lock()?.as_mut().ok_or_else(finished)?)
    }

    fn planned(&self, at: usize) -> PyResult<Planned> {
        let none = || PyIndexError::new_err(format!("no run {at}"));
        self.with(|driver| driver.plan().runs.get(at).cloned().ok_or_else(none))
    }
}

fn finished() -> PyErr {
    error::SweepError::new_err("the sweep has finished")
}

/// Cases of a scenario with seeds.
fn plan_of(
    py: Python<'_>,
    scenario: &Scenario,
    keys: Vec<String>,
    cases: Vec<Vec<String>>,
    seeds: &[u64],
) -> PyResult<Plan> {
    if let Some(case) = cases.iter().find(|case| case.len() != keys.len()) {
        return Err(PyValueError::new_err(format!("a case has {} values for {} keys", case.len(), keys.len())));
    }
    let name = Path::new(&scenario.name);
    let request = Request { scenario: name, sets: &[], cases: None, paired: false, seeds, version: VERSION };
    let base = Base { text: &scenario.text, sets: &scenario.sets };
    let plan = py.detach(|| Plan::of_cases(&request, &base, keys.clone(), cases));
    plan.map_err(|faults| of_faults(py, &faults, &keys))
}

/// Faults of a plan; `keys`: those of its `--set` by their numbers.
fn of_faults(py: Python<'_>, faults: &[sweep::Fault], keys: &[String]) -> PyErr {
    let key = |place: &str| {
        let number = place.strip_prefix("--set ")?.parse::<usize>().ok()?;
        keys.get(number.checked_sub(1)?).cloned()
    };
    let fault = |fault: &sweep::Fault| {
        Fault::of_sweep(fault.place.clone(), key(&fault.place), fault.message.clone(), fault.to_string())
    };
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    error::with_faults(py, text.join("\n"), faults.iter().map(fault).collect())
}

#[pymethods]
impl Driver {
    /// `sets` are `KEY=VALUES` as of `mmtwin sweep --set`, `cases` a CSV file.
    #[new]
    #[pyo3(signature = (scenario, output, *, sets=Vec::new(), cases=None, paired=false, seeds=Vec::new(), force=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        scenario: Py<Scenario>,
        output: PathBuf,
        sets: Vec<String>,
        cases: Option<PathBuf>,
        paired: bool,
        seeds: Vec<u64>,
        force: bool,
    ) -> PyResult<Driver> {
        let of = scenario.get();
        let name = Path::new(&of.name);
        let request =
            Request { scenario: name, sets: &sets, cases: cases.as_deref(), paired, seeds: &seeds, version: VERSION };
        let base = Base { text: &of.text, sets: &of.sets };
        let keys: Vec<String> = sets.iter().filter_map(|set| Some(set.split_once('=')?.0.trim().to_owned())).collect();
        let plan = py.detach(|| Plan::of_text(&request, &base)).map_err(|faults| of_faults(py, &faults, &keys))?;
        Driver::begin(py, scenario, plan, &output, force)
    }

    /// The same of cases, each with a value of every key.
    #[staticmethod]
    #[pyo3(signature = (scenario, output, keys, cases, *, seeds=Vec::new(), force=false))]
    fn of_cases(
        py: Python<'_>,
        scenario: Py<Scenario>,
        output: PathBuf,
        keys: Vec<String>,
        cases: Vec<Vec<String>>,
        seeds: Vec<u64>,
        force: bool,
    ) -> PyResult<Driver> {
        let plan = plan_of(py, scenario.get(), keys, cases, &seeds)?;
        Driver::begin(py, scenario, plan, &output, force)
    }

    /// Adds cases with seeds, and gives the number of each run: those that it had keep theirs.
    fn extend(&self, py: Python<'_>, cases: Vec<Vec<String>>, seeds: Vec<u64>) -> PyResult<Vec<usize>> {
        let plan = plan_of(py, self.scenario.get(), self.keys.clone(), cases, &seeds)?;
        self.with(|driver| Ok(driver.extend(plan)))
    }

    /// Keys whose values make the cases.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    /// How many runs there are.
    #[getter]
    fn planned_runs(&self) -> PyResult<usize> {
        self.with(|driver| Ok(driver.plan().runs.len()))
    }

    /// How many are finished.
    #[getter]
    fn done(&self) -> PyResult<usize> {
        self.with(|driver| Ok(driver.done()))
    }

    /// Numbers of the runs that are not finished.
    fn missing(&self) -> PyResult<Vec<usize>> {
        self.with(|driver| Ok(driver.missing()))
    }

    /// What a worker needs for `run_task`.
    fn task(&self, at: usize) -> PyResult<Task> {
        let (run, of) = (self.planned(at)?, self.scenario.get());
        let own = self.keys.iter().zip(&run.case).map(|(key, value)| format!("{key}={value}"));
        let sets = of.sets.iter().cloned().chain(own).collect();
        Ok((of.name.clone(), of.text.clone(), sets, run.case.clone(), run.seed, run.id))
    }

    /// Runs all that is missing on `jobs` threads. `progress(done, of)` is called on this thread.
    #[pyo3(signature = (jobs, progress=None))]
    fn run_missing(&self, py: Python<'_>, jobs: usize, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let of = self.planned_runs()?;
        let told = |py: Python<'_>, done: u64| match &progress {
            Some(progress) if done <= of as u64 => progress.call1(py, (done, of)).map(drop),
            _ => Ok(()),
        };
        let run = |told: &wait::Told| {
            let mut driver = self.driver.lock().ok()?;
            let options = Options { threads: jobs, force: false, stop: &told.stop };
            Some(sweep::run_missing(driver.as_mut()?, &options, &mut |progress| told.note(progress.done as u64)))
        };
        let ran = wait::work(py, &told, run)?.ok_or_else(finished)?;
        ran.map_err(|error| error::of_sweep(&error))
    }

    /// Runs one on this thread, without Python's lock, and gives it for `add`. `None`: `halt` was called.
    fn run_one<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (run, of) = (self.planned(at)?, self.scenario.get());
        let ran = py.detach(|| run.run(&of.name, &|| self.stop.load(Ordering::Relaxed)));
        Ok(ran.map(|ran| PyBytes::new(py, &ran.to_bytes())))
    }

    /// Ends all `run_one`.
    fn halt(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Keeps a finished run: it is in the journal when this returns.
    fn add(&self, at: usize, ran: &[u8]) -> PyResult<()> {
        let ran = Ran::from_bytes(ran).ok_or_else(|| PyValueError::new_err("these are no bytes of run_task"))?;
        self.keep(at, ran)
    }

    /// Keeps a run that could not be run, with the reason; the same sweep tries it again.
    fn add_failed(&self, at: usize, reason: String) -> PyResult<()> {
        self.keep(at, Ran::failed(reason))
    }

    /// A finished run: `status`, `reason`, and every quantity that is known.
    fn row<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyDict>> {
        self.with(|driver| {
            let row = driver.row(at).ok_or_else(|| PyIndexError::new_err(format!("no finished run {at}")))?;
            let values = PyDict::new(py);
            for (quantity, number) in &row.values {
                values.set_item(&driver.quantities()[*quantity].key, number.value())?;
            }
            values.set_item("status", row.status.word())?;
            values.set_item("reason", row.reason.as_deref())?;
            Ok(values)
        })
    }

    /// Writes the Parquet file, removes the journal, and gives the `Sweep`.
    fn finish(&self, py: Python<'_>) -> PyResult<Sweep> {
        let driver = self.lock()?.take().ok_or_else(finished)?;
        let done = py.detach(|| driver.finish()).map_err(|error| error::of_sweep(&error))?;
        Ok(Sweep { sweep: done.sweep, kept: done.kept })
    }
}

impl Driver {
    fn keep(&self, at: usize, ran: Ran) -> PyResult<()> {
        self.planned(at)?;
        self.with(|driver| driver.add(at, ran).map_err(|error| error::of_sweep(&error)))
    }
}

/// Runs what `Driver.task` gave, on any machine, and gives bytes for `Driver.add`. Raises `SweepError` if it is another run
/// here: another version, or other files.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn run_task<'py>(
    py: Python<'py>,
    name: String,
    text: String,
    sets: Vec<String>,
    case: Vec<String>,
    seed: u64,
    id: String,
) -> PyResult<Bound<'py, PyBytes>> {
    let directory = Path::new(&name).parent().unwrap_or(Path::new(""));
    let scenario = py.detach(|| parse(&name, &text, directory, &sets));
    let scenario = scenario.map_err(|faults| error::of_faults(py, &faults, &text, &sets))?;
    build::check(&scenario).map_err(|fault| error::with_faults(py, fault.to_string(), Vec::new()))?;
    let run = Planned::new(Arc::new(scenario), case, seed, VERSION);
    if run.id != id {
        let message = format!("{name}: is another run for {VERSION} on this machine: version or files differ");
        return Err(error::SweepError::new_err(message));
    }
    let ran = wait::work(py, &|_, _| Ok(()), |told| run.run(&name, &|| told.stop.load(Ordering::Relaxed)))?;
    let ran = ran.ok_or_else(|| error::SweepError::new_err("stopped"))?;
    Ok(PyBytes::new(py, &ran.to_bytes()))
}

/// The rows of a sweep, one for each run. `str(sweep)` is the table that `mmtwin sweep` prints. It is an Arrow table:
/// `polars.DataFrame(sweep)`, `pyarrow.table(sweep)`; columns: docs/reference/formats.md, "Sweeps".
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Sweep {
    sweep: rows::Sweep,
    /// Rows that were there before.
    #[pyo3(get)]
    kept: usize,
}

#[pymethods]
impl Sweep {
    /// The scenario file, as it was named.
    #[getter]
    fn scenario(&self) -> &str {
        &self.sweep.scenario
    }

    /// Program and version that ran it.
    #[getter]
    fn version(&self) -> &str {
        &self.sweep.version
    }

    /// Keys whose values make the cases.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.sweep.keys.clone()
    }

    /// Runs that were asked for; there are fewer rows if it was stopped.
    #[getter]
    fn planned(&self) -> usize {
        self.sweep.planned
    }

    /// All rows as a table.
    fn table(&self) -> PyResult<Table> {
        let rows = sweep::batch(&self.sweep).map_err(|error| error::SweepError::new_err(error.to_string()))?;
        Ok(Table::of("sweep", rows))
    }

    fn __len__(&self) -> usize {
        self.sweep.rows.len()
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let rows = sweep::batch(&self.sweep).map_err(|error| error::SweepError::new_err(error.to_string()))?;
        capsule_of(py, rows)
    }

    /// The table that `mmtwin sweep` prints. `all`: all cases, and all quantities that changed.
    #[pyo3(signature = (width=100, *, all=false))]
    fn screen(&self, width: usize, all: bool) -> String {
        rows::lines(&self.sweep, &Style { width, ..Style::default() }, all).join("\n")
    }

    /// A curve over a key (`memory.max`), or of a quantity (`TABLE.KEY`) over the first key, drawn in text.
    #[pyo3(signature = (name, width=100))]
    fn curve(&self, name: &str, width: usize) -> PyResult<String> {
        let lines = rows::curve(&self.sweep, name, &Style { width, ..Style::default() });
        Ok(lines.map_err(|error| PyValueError::new_err(error.to_string()))?.join("\n"))
    }

    fn __str__(&self) -> String {
        self.screen(100, false)
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Sweep {}: {} of {} runs>", self.sweep.scenario, self.sweep.rows.len(), self.sweep.planned)
    }
}

/// Reads the Parquet file of a sweep, of any version. Raises `OSError` or `SweepError`.
#[pyfunction]
pub(crate) fn read_sweep(py: Python<'_>, path: PathBuf) -> PyResult<Sweep> {
    let sweep = py.detach(|| sweep::read(&path)).map_err(|error| error::of_sweep(&error))?;
    let kept = sweep.rows.len();
    Ok(Sweep { sweep, kept })
}

/// Cases and seeds of an output and its journal.
#[pyfunction]
pub(crate) fn known(path: PathBuf) -> PyResult<Vec<(Vec<String>, u64)>> {
    sweep::known(&path).map_err(|error| error::of_sweep(&error))
}

/// The values that a text stands for: `a,b,c`, `A..B:N`, `A..B:N:log`. Raises `ValueError`.
#[pyfunction]
pub(crate) fn expand(text: &str) -> PyResult<Vec<String>> {
    sweep::values(text).map_err(PyValueError::new_err)
}

/// A value as a number of its smallest unit (bytes, ns, pages/s, B/s, Hz); `None`: it is a word.
#[pyfunction]
pub(crate) fn number(text: &str) -> Option<f64> {
    sweep::number(text)
}

//! The simulated kernel beside stored runs of real ones.

use crate::{error, wait};
use mmtwin_validate::Error;
use mmtwin_validate::fidelity::unseen::opening_of;
use mmtwin_validate::fidelity::{Cell, Judge, Judged, cells, details, files, page};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The simulated kernel beside real ones. `str(fidelity)` is the page of `mmtwin fidelity`.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Fidelity {
    /// Pairs of scenario, kernel and mode of the guests, in the order of the page.
    #[pyo3(get)]
    cells: Vec<(String, String, String)>,
    /// The figures, by name of the file in `docs/fidelity`, as CSV.
    #[pyo3(get)]
    csv: Vec<(String, String)>,
    page: String,
    /// Every quantity of every cell, as text.
    #[pyo3(get)]
    details: String,
}

#[pymethods]
impl Fidelity {
    fn __str__(&self) -> &str {
        &self.page
    }
}

/// Runs scenarios whose runs on real kernels are stored, and compares. `directory`: `scenarios/fidelity` of the sources.
/// `scenarios` are names, `kernel` a release; without them all are judged, some seconds each, on all CPUs.
/// `progress(cells)` is called with how many are judged. Raises `KeyError` for a name that there is not.
#[pyfunction]
#[pyo3(signature = (directory, scenarios=Vec::new(), *, kernel=None, progress=None))]
pub(crate) fn fidelity(
    py: Python<'_>,
    directory: PathBuf,
    scenarios: Vec<String>,
    kernel: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Fidelity> {
    let failed = |error: Error| match &error {
        Error::Run(error) => error::of(py, error),
        Error::Trace(error) => error::of_trace(error),
        _ => error::Error::new_err(error.to_string()),
    };
    let all = cells(&directory).map_err(failed)?;
    if let Some(name) = scenarios.iter().find(|name| !all.iter().any(|cell| cell.name == **name)) {
        return Err(PyKeyError::new_err(format!("no scenario {name} in {}", directory.display())));
    }
    let chosen = |cell: &&Cell| {
        (scenarios.is_empty() || scenarios.contains(&cell.name)) && kernel.as_ref().is_none_or(|k| *k == cell.kernel)
    };
    let chosen: Vec<&Cell> = all.iter().filter(chosen).collect();
    let judge = Judge::new(&all).map_err(failed)?;
    let progress = wait::callable(progress, |cells| cells as f64);
    let judged = wait::work(py, &progress, |told| judge_all(&judge, &chosen, told))?.map_err(failed)?;
    let cells =
        judged.iter().map(|Judged { cell, .. }| (cell.name.clone(), cell.kernel.clone(), cell.mode.to_string()));
    let csv = files(&judged).into_iter().map(|csv| (csv.name.to_string(), csv.text()));
    let opening = opening_of(&directory.join("../../docs/fidelity")).map_err(failed)?;
    let page = page(&opening, &judged, "");
    Ok(Fidelity { cells: cells.collect(), csv: csv.collect(), page, details: details(&judged) })
}

/// Judges cells on all CPUs, and gives them in their order.
fn judge_all(judge: &Judge, cells: &[&Cell], told: &wait::Told) -> Result<Vec<Judged>, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(cells.len().max(1));
    let work = || {
        let mut judged = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = cells.get(at).filter(|_| !told.stop.load(Ordering::Relaxed)) else { return judged };
            judged.push((at, judge.judge(cell)));
            told.note(done.fetch_add(1, Ordering::Relaxed) as u64 + 1);
        }
    };
    let mut judged: Vec<(usize, Result<Judged, Error>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    judged.sort_by_key(|(at, _)| *at);
    judged.into_iter().map(|(_, judged)| judged).collect()
}

//! Inputs and runs side by side.

use crate::report::{Report, json, names, table};
use crate::table::Table;
use mmtwin::Analysed;
use mmtwin::report::format::Style;
use mmtwin::report::side_by_side::{self, Subject};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Columns side by side, the first of which is the baseline. `str(comparison)` is its screen.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Comparison(mmtwin::Comparison);

/// Compares columns, each a name and its reports.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, columns: Vec<(String, Vec<Py<Report>>)>) -> PyResult<Comparison> {
    if columns.len() < 2 || columns.iter().any(|(_, reports)| reports.is_empty()) {
        return Err(PyValueError::new_err("a comparison needs two columns, each with at least one input"));
    }
    let inputs: Vec<(String, Vec<Arc<Analysed>>)> = columns
        .into_iter()
        .map(|(name, reports)| (name, reports.iter().map(|report| report.get().analysed.clone()).collect()))
        .collect();
    let borrowed: Vec<(&str, &[Arc<Analysed>])> =
        inputs.iter().map(|(name, reports)| (name.as_str(), reports.as_slice())).collect();
    Ok(Comparison(py.detach(|| mmtwin::compare(&borrowed))))
}

#[pymethods]
impl Comparison {
    /// Names of the columns, the baseline first.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.columns.clone()
    }

    /// What is to be known of all of it, such as where the scenarios differ.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    /// Names of its tables.
    #[getter]
    fn tables(&self) -> PyResult<Vec<String>> {
        names(&self.0)
    }

    /// A table by its name: a row for each quantity and column, with `value`, `low` and `high` (interval of the median of
    /// several runs), `gain` over the baseline and `p`. Raises `KeyError` if there is none.
    fn table(&self, name: &str) -> PyResult<Table> {
        table(self.0.clone(), name)
    }

    fn __getitem__(&self, name: &str) -> PyResult<Table> {
        self.table(name)
    }

    /// One screen of at most 40 lines, `width` characters wide (60 to 100).
    #[pyo3(signature = (width=100))]
    fn screen(&self, width: usize) -> String {
        let subject = Subject { comparison: &self.0, command: "", aside: None };
        side_by_side::lines(&subject, &Style { width, ..Style::default() }).join("\n")
    }

    fn __str__(&self) -> String {
        self.screen(100)
    }

    /// The document that `mmtwin compare --format json` writes.
    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Comparison {}>", self.0.columns.join(", "))
    }
}

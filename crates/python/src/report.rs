//! What was read of one input: findings, tables, figures.

use crate::error;
use crate::table::Table;
use mmtwin::report::compare::{Comparison, single};
use mmtwin::report::format::{Format, Style, write};
use mmtwin::report::model::{self, Body};
use mmtwin::report::quantities;
use mmtwin::report::screen::{self, Subject};
use mmtwin::report::sweep::Number;
use mmtwin::{Analysed, batches};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// What happened, as `mmtwin report` says it. `str(report)` is its screen.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Report {
    pub(crate) analysed: Arc<Analysed>,
    report: model::Report,
    /// It can be read again.
    kept: bool,
}

impl Report {
    pub(crate) fn new(analysed: Analysed, kept: bool) -> Report {
        let report = analysed.report();
        Report { analysed: Arc::new(analysed), report, kept }
    }
}

#[pymethods]
impl Report {
    /// Name of the input.
    #[getter]
    fn name(&self) -> &str {
        &self.report.input.name
    }

    /// What recorded or ran it: `twin`, `lab`, `host` or `import`.
    #[getter]
    fn arm(&self) -> &str {
        &self.report.input.arm
    }

    /// Kernel release; `None`: not known.
    #[getter]
    fn kernel(&self) -> Option<&str> {
        self.report.input.kernel.as_deref()
    }

    /// Events that were read.
    #[getter]
    fn events(&self) -> u64 {
        self.report.input.events
    }

    /// Events that were lost; `None`: not known how many.
    #[getter]
    fn lost_events(&self) -> Option<u64> {
        self.report.input.lost_events
    }

    /// What was damaged and stepped over, in sentences with their place.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.analysed.outcome.warnings.list().iter().map(ToString::to_string).collect()
    }

    /// Findings, worst first.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.report.findings.iter().map(Finding::of).collect()
    }

    /// Names of its tables.
    #[getter]
    fn tables(&self) -> PyResult<Vec<String>> {
        names(&single(self.report.clone()))
    }

    /// A table by its name. Columns of each kind of table: docs/reference/formats.md, "Tables as Arrow and Parquet".
    /// Raises `KeyError` if there is none.
    fn table(&self, name: &str) -> PyResult<Table> {
        table(single(self.report.clone()), name)
    }

    fn __getitem__(&self, name: &str) -> PyResult<Table> {
        self.table(name)
    }

    /// Every figure that is known, by its key `TABLE.KEY`, in the units of the tables: `figures()["overview.elapsed"]`.
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        for table in &self.analysed.quantities().tables {
            let Body::Metric(rows) = &table.body else { continue };
            for row in rows {
                let key = quantities::key(&table.name, &row.key);
                match Number::of(&row.value).filter(|_| !figures.contains(&key).unwrap_or(true)) {
                    Some(Number::Int(value)) => figures.set_item(key, value)?,
                    Some(Number::Float(value)) => figures.set_item(key, value)?,
                    None => {}
                }
            }
        }
        Ok(figures)
    }

    /// One screen of at most 40 lines, `width` characters wide (60 to 100).
    #[pyo3(signature = (width=100))]
    fn screen(&self, width: usize) -> String {
        let (analysis, about) = (&self.analysed.analysis, &self.analysed.about);
        let subject = Subject { analysis, report: &self.report, about, chosen: None, kept: self.kept };
        screen::lines(&subject, &Style { width, ..Style::default() }).join("\n")
    }

    fn __str__(&self) -> String {
        self.screen(100)
    }

    /// The document that `mmtwin report --format json` writes.
    fn to_json(&self) -> PyResult<String> {
        json(&single(self.report.clone()))
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Report {}: {} events, {} findings>", self.name(), self.events(), self.report.findings.len())
    }
}

/// One verdict.
#[pyclass(frozen, get_all, module = "mmtwin")]
#[derive(Clone)]
pub(crate) struct Finding {
    /// Stable name of the rule.
    key: String,
    /// How bad, 0 to 100.
    severity: u8,
    /// One sentence with its numbers.
    sentence: String,
    /// What it means, or what else was seen; may be empty.
    detail: String,
    /// The command that shows more.
    command: String,
    /// Seconds that tasks waited because of it; `None`: not known.
    waited: Option<f64>,
    /// The cgroup that it is about; `None`: none.
    cgroup: Option<String>,
    /// What would help; `None`: nothing is known to.
    fix: Option<String>,
}

impl Finding {
    fn of(finding: &model::Finding) -> Finding {
        Finding {
            key: finding.key.clone(),
            severity: finding.severity,
            sentence: finding.sentence.clone(),
            detail: finding.detail.clone(),
            command: finding.command.clone(),
            waited: finding.cost.as_ref().map(|cost| cost.waited as f64 / 1e9),
            cgroup: finding.cost.as_ref().and_then(|cost| cost.cgroup.clone()),
            fix: finding.fix.clone(),
        }
    }
}

#[pymethods]
impl Finding {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("Finding({}, {}: {})", self.key, self.severity, self.sentence)
    }
}

/// Names of the tables of a comparison.
pub(crate) fn names(comparison: &Comparison) -> PyResult<Vec<String>> {
    let tables = batches(comparison).map_err(|error| error::Error::new_err(error.to_string()))?;
    Ok(tables.into_iter().map(|table| table.name).collect())
}

/// A table of a comparison.
pub(crate) fn table(comparison: Comparison, name: &str) -> PyResult<Table> {
    let tables = batches(&comparison).map_err(|error| error::Error::new_err(error.to_string()))?;
    match tables.iter().find(|table| table.name == name) {
        Some(table) => Ok(Table::of(name, table.rows.clone())),
        None => {
            let there: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
            Err(PyKeyError::new_err(format!("no table {name}; there are {}", there.join(", "))))
        }
    }
}

/// A comparison as JSON.
pub(crate) fn json(comparison: &Comparison) -> PyResult<String> {
    let mut text = Vec::new();
    write(comparison, Format::Json, &Style::default(), &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

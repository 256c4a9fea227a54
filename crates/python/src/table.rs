//! Tables for Python: Arrow data that others take by the PyCapsule interface, without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::ffi::CStr;

/// The name that the Arrow PyCapsule interface gives to streams.
const STREAM: &CStr = c"arrow_array_stream";

/// A table. pandas, polars, DuckDB and pyarrow take it by `__arrow_c_stream__`, without a copy: `polars.DataFrame(table)`,
/// `pyarrow.table(table)`. `len(table)` is the number of rows; what is not known is null.
#[pyclass(frozen, module = "mmtwin")]
pub(crate) struct Table {
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of one batch.
    pub(crate) fn of(name: impl Into<String>, rows: RecordBatch) -> Table {
        Table { name: name.into(), schema: rows.schema(), batches: vec![rows] }
    }

    fn metadata(&self, key: &str) -> &str {
        self.schema.metadata().get(key).map_or("", String::as_str)
    }
}

#[pymethods]
impl Table {
    /// Its stable name, as `mmtwin report --table` has it.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its title for people.
    #[getter]
    fn title(&self) -> &str {
        self.metadata("title")
    }

    /// Units and conventions of all its rows; may be empty.
    #[getter]
    fn note(&self) -> &str {
        self.metadata("note")
    }

    /// Names of its columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// All rows as dictionaries by column: for small tables, without another package.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let of_row = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    of_row.set_item(field.name(), value(py, column.as_ref(), row)?)?;
                }
                list.append(of_row)?;
            }
        }
        Ok(list)
    }

    /// The Arrow PyCapsule interface: a stream of record batches, whose buffers are those of this table. It has its own
    /// types; `requested_schema` is not followed.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<Result<RecordBatch, ArrowError>> = self.batches.iter().cloned().map(Ok).collect();
        capsule(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    fn __repr__(&self) -> String {
        format!("<mmtwin.Table {}: {} rows, columns {}>", self.name, self.__len__(), self.columns().join(", "))
    }
}

/// A stream as a capsule.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// The same of one record batch.
pub(crate) fn capsule_of<'py>(py: Python<'py>, rows: RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = rows.schema();
    capsule(py, Box::new(RecordBatchIterator::new([Ok(rows)], schema)))
}

/// A value as a Python object.
fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($type:ty) => {
            Ok(array.as_primitive::<$type>().value(row).into_pyobject(py)?.into_any())
        };
    }
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().value(row).into_pyobject(py)?.into_any()),
        DataType::Boolean => Ok(array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()),
        DataType::Float64 => number!(Float64Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            let items: PyResult<Vec<_>> = (0..values.len()).map(|at| value(py, values.as_ref(), at)).collect();
            Ok(PyList::new(py, items?)?.into_any())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            value(py, dictionary.values().as_ref(), dictionary.keys().value(row) as usize)
        }
        other => Err(PyTypeError::new_err(format!("a column of type {other} has no Python objects: take it as Arrow"))),
    }
}

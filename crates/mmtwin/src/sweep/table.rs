//! The Parquet file of a sweep: a row for each run, a column for each quantity.

use super::Error;
use super::journal::{better_of, status_of};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use mmtwin_report::sweep::{Number, Quantity, Row, Sweep};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Version of the columns.
const SCHEMA_VERSION: u32 = 1;
/// Key of the file's metadata. There is one only, with JSON: the order of several would be left to chance.
const ABOUT: &str = "mmtwin.sweep";
/// Key of the metadata of a column.
const QUANTITY: &str = "mmtwin.quantity";
/// What the name of a key's column begins with; that of its number ends with `NUMBER`.
const CASE: &str = "case.";
const NUMBER: &str = ".number";

/// The file's metadata.
#[derive(Serialize, Deserialize)]
struct About {
    schema_version: u32,
    version: String,
    scenario: String,
    keys: Vec<String>,
    planned: usize,
}

/// A column's.
#[derive(Serialize, Deserialize)]
struct OfQuantity {
    label: String,
    unit: String,
    better: String,
}

fn json(key: &str, value: &impl Serialize) -> HashMap<String, String> {
    HashMap::from([(key.to_owned(), serde_json::to_string(value).unwrap_or_default())])
}

/// Writes all rows.
pub(super) fn write(sweep: &Sweep, out: impl Write + Send) -> Result<(), ParquetError> {
    let batch = batch(sweep)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// All rows as a record batch, with the columns and metadata of the Parquet file.
///
/// # Errors
/// If a sweep is none: rows with fewer values than it has keys.
pub fn batch(sweep: &Sweep) -> Result<RecordBatch, ParquetError> {
    let rows = &sweep.rows;
    let text =
        |of: &dyn Fn(&Row) -> Option<String>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<StringArray>()) };
    let list = |of: fn(&(String, String)) -> &String| -> ArrayRef {
        let mut column = ListBuilder::new(StringBuilder::new());
        for row in rows {
            row.findings.iter().for_each(|finding| column.values().append_value(of(finding)));
            column.append(true);
        }
        Arc::new(column.finish())
    };
    let seeds: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.seed)).collect::<UInt64Array>());
    let mut columns: Vec<(String, ArrayRef)> = vec![("run".into(), text(&|row| Some(row.id.clone())))];
    for (at, key) in sweep.keys.iter().enumerate() {
        let numbers = rows.iter().map(|row| row.numbers[at]).collect::<Float64Array>();
        columns.push((format!("{CASE}{key}"), text(&|row| Some(row.case[at].clone()))));
        columns.push((format!("{CASE}{key}{NUMBER}"), Arc::new(numbers)));
    }
    columns.push(("seed".into(), seeds));
    columns.push(("status".into(), text(&|row| Some(row.status.word().into()))));
    columns.push(("reason".into(), text(&|row| row.reason.clone())));
    columns.push(("findings".into(), list(|(key, _)| key)));
    columns.push(("finding_sentences".into(), list(|(_, sentence)| sentence)));
    let mut fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true)).collect();
    let mut arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
    let mut cells: Vec<Vec<Option<Number>>> = vec![vec![None; rows.len()]; sweep.quantities.len()];
    for (number, row) in rows.iter().enumerate() {
        row.values.iter().for_each(|(at, value)| cells[*at][number] = Some(*value));
    }
    for (quantity, cells) in sweep.quantities.iter().zip(cells) {
        let (label, unit) = (quantity.label.clone(), quantity.unit.clone());
        let about = OfQuantity { label, unit, better: quantity.better.word().into() };
        let array = column(&cells);
        let field = Field::new(&quantity.key, array.data_type().clone(), true);
        fields.push(field.with_metadata(json(QUANTITY, &about)));
        arrays.push(array);
    }
    let (version, scenario) = (sweep.version.clone(), sweep.scenario.clone());
    let (keys, planned) = (sweep.keys.clone(), sweep.planned);
    let about = About { schema_version: SCHEMA_VERSION, version, scenario, keys, planned };
    let schema = Schema::new_with_metadata(fields, json(ABOUT, &about));
    Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
}

/// Integers if all that are known are, else floating-point numbers.
fn column(cells: &[Option<Number>]) -> ArrayRef {
    let integer = |cell: &Option<Number>| match cell {
        Some(Number::Int(value)) => Some(*value),
        _ => None,
    };
    match cells.iter().flatten().all(|cell| matches!(cell, Number::Int(_))) {
        true => Arc::new(cells.iter().map(integer).collect::<Int64Array>()),
        false => Arc::new(cells.iter().map(|cell| cell.map(Number::value)).collect::<Float64Array>()),
    }
}

/// Reads the Parquet file of a sweep, of whatever version of the program.
///
/// # Errors
/// If it cannot be read, or is no sweep.
pub fn read(path: &Path) -> Result<Sweep, Error> {
    let file = File::open(path).map_err(|source| Error::Io { path: path.into(), source })?;
    let wrong = |message: String| Error::Parquet { path: path.into(), message };
    let failed = |error: ParquetError| wrong(error.to_string());
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| wrong(format!("is no Parquet file that can be read: {error}")))?;
    let schema = builder.schema().clone();
    let about = schema.metadata().get(ABOUT).and_then(|json| serde_json::from_str::<About>(json).ok());
    let about = about.ok_or_else(|| wrong("is no Parquet file of a sweep".into()))?;
    if about.schema_version != SCHEMA_VERSION {
        return Err(wrong(format!("has columns of version {}, not {SCHEMA_VERSION}", about.schema_version)));
    }
    let mut sweep = Sweep {
        version: about.version,
        scenario: about.scenario,
        keys: about.keys,
        planned: about.planned,
        ..Sweep::default()
    };
    for field in schema.fields() {
        let Some(of) = field.metadata().get(QUANTITY) else { continue };
        let of = serde_json::from_str::<OfQuantity>(of).ok();
        let of = of.and_then(|of| Some((better_of(&of.better)?, of)));
        let (better, of) = of.ok_or_else(|| wrong(format!("column {} is damaged", field.name())))?;
        sweep.quantities.push(Quantity { key: field.name().clone(), label: of.label, unit: of.unit, better });
    }
    for batch in builder.build().map_err(failed)? {
        let batch = batch.map_err(|error| wrong(error.to_string()))?;
        rows(&batch, &mut sweep).ok_or_else(|| wrong("a column is missing or of another type".into()))?;
    }
    Ok(sweep)
}

/// Appends the rows of a batch; `None`: a column is missing, or is another.
fn rows(batch: &RecordBatch, sweep: &mut Sweep) -> Option<()> {
    let named = |name: &str| batch.column_by_name(name);
    let text = |name: &str| named(name)?.as_string_opt::<i32>();
    let (ids, statuses, reasons) = (text("run")?, text("status")?, text("reason")?);
    let seeds = named("seed")?.as_primitive_opt::<UInt64Type>()?;
    let (keys, sentences) =
        (named("findings")?.as_list_opt::<i32>()?, named("finding_sentences")?.as_list_opt::<i32>()?);
    let mut cases = Vec::new();
    for key in &sweep.keys {
        let numbers = named(&format!("{CASE}{key}{NUMBER}"))?.as_primitive_opt::<Float64Type>()?;
        cases.push((text(&format!("{CASE}{key}"))?, numbers));
    }
    let columns: Option<Vec<&ArrayRef>> = sweep.quantities.iter().map(|quantity| named(&quantity.key)).collect();
    let columns = columns?;
    let strings = |array: ArrayRef| -> Option<Vec<String>> {
        Some(array.as_string_opt::<i32>()?.iter().flatten().map(str::to_owned).collect())
    };
    for at in 0..batch.num_rows() {
        let values = columns.iter().enumerate().filter(|(_, column)| column.is_valid(at));
        let values: Option<Vec<(usize, Number)>> =
            values.map(|(quantity, column)| Some((quantity, cell(column, at)?))).collect();
        sweep.rows.push(Row {
            id: ids.value(at).into(),
            case: cases.iter().map(|(values, _)| values.value(at).to_owned()).collect(),
            numbers: cases.iter().map(|(_, numbers)| numbers.is_valid(at).then(|| numbers.value(at))).collect(),
            seed: seeds.value(at),
            status: status_of(statuses.value(at))?,
            reason: reasons.is_valid(at).then(|| reasons.value(at).to_owned()),
            findings: strings(keys.value(at))?.into_iter().zip(strings(sentences.value(at))?).collect(),
            values: values?,
        });
    }
    Some(())
}

fn cell(column: &ArrayRef, at: usize) -> Option<Number> {
    match column.data_type() {
        DataType::Int64 => Some(Number::Int(column.as_primitive_opt::<Int64Type>()?.value(at))),
        _ => Some(Number::Float(column.as_primitive_opt::<Float64Type>()?.value(at))),
    }
}

//! Access traces as Parquet files: columns by name, integers of any width, `rw` as words or as a boolean of writes.

use super::contain::contained;
use super::{Access, COLUMNS, parquet_pages};
use crate::error::At;
use crate::{Error, Place};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use std::fs::File;

/// Rows decoded at once.
const ROWS: usize = 1 << 15;

pub(super) struct Parquet {
    name: String,
    /// `None`: it has panicked.
    reader: Option<ParquetRecordBatchReader>,
    batch: std::vec::IntoIter<Access>,
    /// Rows that were taken.
    row: u64,
}

/// A file of which the decoder has panicked.
fn damaged(name: &str, panic: &str) -> Error {
    Error::at(Place::file(name), format!("the Parquet file is damaged: its decoder failed ({panic})"))
}

impl Parquet {
    pub(super) fn new(name: &str, file: File) -> Result<Parquet, Error> {
        let opened = contained(|| open(file)).map_err(|panic| damaged(name, &panic))?;
        let reader = opened.map_err(|message| Error::at(Place::file(name), message))?;
        Ok(Parquet { name: name.into(), reader: Some(reader), batch: Vec::new().into_iter(), row: 0 })
    }

    pub(super) fn place(&self) -> Place {
        Place { file: self.name.clone(), at: At::Row(self.row) }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Access>, Error> {
        loop {
            if let Some(access) = self.batch.next() {
                self.row += 1;
                return Ok(Some(access));
            }
            let Some(mut reader) = self.reader.take() else { return Ok(None) };
            let batch = contained(|| reader.next()).map_err(|panic| damaged(&self.name, &panic))?;
            self.reader = Some(reader);
            let Some(batch) = batch else { return Ok(None) };
            let batch = batch.map_err(|e| Error::at(Place::file(&self.name), e.to_string()))?;
            self.batch = rows(&batch).map_err(|(row, message)| {
                let at = At::Row(self.row + 1 + row as u64);
                Error::at(Place { file: self.name.clone(), at }, message)
            })?;
        }
    }
}

/// Opens the columns of a file, or says what is wrong with it.
fn open(file: File) -> Result<ParquetRecordBatchReader, String> {
    let again = file.try_clone().map_err(|e| e.to_string())?;
    // Without what Arrow noted beside, a dictionary of words is words.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(|e| e.to_string())?;
    for column in COLUMNS {
        if builder.schema().index_of(column).is_err() {
            return Err(format!("no column {column}; expected {}", COLUMNS.join(", ")));
        }
    }
    parquet_pages::check(&again, builder.metadata(), &COLUMNS, parquet_pages::MOST)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), COLUMNS);
    builder.with_projection(mask).with_batch_size(ROWS).build().map_err(|e| e.to_string())
}

/// The accesses of some rows, or what is wrong with which of them.
fn rows(batch: &RecordBatch) -> Result<std::vec::IntoIter<Access>, (usize, String)> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| (0, format!("no column {name}")));
    // What is missing comes first in a row, whatever its column.
    let gap = |name| column(name).ok()?.logical_nulls()?.iter().position(|there| !there);
    if let Some((row, name)) = COLUMNS.iter().filter_map(|name| Some((gap(name)?, name))).min() {
        return Err((row, format!("{name} is empty")));
    }
    let [time, pid, page] = ["time", "pid", "page"].map(|name| integers(column(name)?, name));
    let (time, pid, page, writes) = (time?, pid?, page?, writes(column("rw")?)?);
    let mut rows = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let pid = i32::try_from(pid[row])
            .map_err(|_| (row, format!("pid is {}, expected an integer up to {}", pid[row], i32::MAX)))?;
        rows.push(Access { time: time[row], pid, page: page[row], write: writes[row] });
    }
    Ok(rows.into_iter())
}

fn integers(column: &dyn Array, name: &str) -> Result<Vec<u64>, (usize, String)> {
    fn of<T: ArrowPrimitiveType>(column: &dyn Array, name: &str) -> Result<Vec<u64>, (usize, String)>
    where
        T::Native: TryInto<u64>,
    {
        let values = column.as_primitive::<T>().values().iter().enumerate();
        let value = |(row, &value): (usize, &T::Native)| {
            value.try_into().map_err(|_| (row, format!("{name} is {value:?}, expected a number of at least 0")))
        };
        values.map(value).collect()
    }
    match column.data_type() {
        DataType::Int8 => of::<Int8Type>(column, name),
        DataType::Int16 => of::<Int16Type>(column, name),
        DataType::Int32 => of::<Int32Type>(column, name),
        DataType::Int64 => of::<Int64Type>(column, name),
        DataType::UInt8 => of::<UInt8Type>(column, name),
        DataType::UInt16 => of::<UInt16Type>(column, name),
        DataType::UInt32 => of::<UInt32Type>(column, name),
        DataType::UInt64 => of::<UInt64Type>(column, name),
        other => Err((0, format!("column {name} is of type {other}, expected integers"))),
    }
}

fn writes(column: &dyn Array) -> Result<Vec<bool>, (usize, String)> {
    let word = |(row, word): (usize, Option<&str>)| match word {
        Some("r" | "R") => Ok(false),
        Some("w" | "W") => Ok(true),
        other => Err((row, format!("rw is `{}`, expected r or w", other.unwrap_or_default()))),
    };
    match column.data_type() {
        DataType::Boolean => Ok(column.as_boolean().values().iter().collect()),
        DataType::Utf8 => column.as_string::<i32>().iter().enumerate().map(word).collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().enumerate().map(word).collect(),
        other => Err((0, format!("column rw is of type {other}, expected strings or a boolean"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::AccessTrace;
    use super::*;
    use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, UInt64Array};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    const MUTANTS: usize = 1_000;

    #[test]
    fn every_page_is_looked_up_before_it_is_decoded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let columns = columns((0..70_000).collect(), Arc::new(StringArray::from(vec!["r"; 70_000])));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(false);
        let mut writer =
            ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        let metadata = writer.close().unwrap();
        let check = |most| parquet_pages::check(file.as_file(), &metadata, &COLUMNS, most);
        let largest = 20 * 1024 * 8;
        assert_eq!(check(largest), Ok(()));
        let error = check(largest - 1).unwrap_err();
        assert!(error.contains("a page of column page has 163840 bytes, the most is 163839"), "{error}");
    }

    fn read(columns: Vec<(&str, ArrayRef)>) -> Result<Vec<Access>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let name = file.path().to_str().unwrap();
        let trace = AccessTrace::open(name).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        trace.map_err(|error| error.to_string().replace(name, "t.parquet"))
    }

    fn columns(times: Vec<i64>, rw: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
        let many = times.len() as u64;
        let pids = Int32Array::from_iter_values((0..many).map(|i| 7 + (i % 2) as i32));
        let pages = UInt64Array::from_iter_values((0..many).map(|i| i * 3));
        let times = Int64Array::from(times);
        // In another order than a CSV has them.
        vec![("rw", rw), ("page", Arc::new(pages)), ("pid", Arc::new(pids)), ("time", Arc::new(times))]
    }

    #[test]
    fn rows_are_read_by_the_names_of_columns() {
        let many = 70_000;
        let words = StringArray::from_iter_values((0..many).map(|i| if i % 3 == 0 { "w" } else { "r" }));
        let flags = BooleanArray::from_iter((0..many).map(|i| Some(i % 3 == 0)));
        let expected =
            |i: i64| Access { time: i as u64, pid: 7 + (i % 2) as i32, page: i as u64 * 3, write: i % 3 == 0 };
        for rw in [Arc::new(words) as ArrayRef, Arc::new(flags)] {
            let got = read(columns((0..many).collect(), rw)).unwrap();
            assert!(got.into_iter().eq((0..many).map(expected)));
        }
    }

    #[test]
    fn what_is_wrong_has_a_row() {
        let words = |words: Vec<Option<&str>>| Arc::new(StringArray::from(words)) as ArrayRef;
        let (r, w) = (Some("r"), Some("w"));
        for (times, rw, message) in [
            (vec![0, 1, 2], words(vec![r, None, w]), "t.parquet: row 2: rw is empty"),
            (vec![0, 1, 2], words(vec![r, w, Some("x")]), "t.parquet: row 3: rw is `x`, expected r or w"),
            (vec![0, -1, 2], words(vec![r, w, r]), "t.parquet: row 2: time is -1, expected a number of at least 0"),
            (vec![0, 3, 2], words(vec![r, w, r]), "t.parquet: row 3: time 2 is before that of the row above, 3"),
        ] {
            assert_eq!(read(columns(times, rw)).unwrap_err(), message);
        }
        let mut without = columns(vec![0], words(vec![r]));
        without.remove(1);
        let message = "t.parquet: no column page; expected time, pid, page, rw";
        assert_eq!(read(without).unwrap_err(), message);
        let mut odd = columns(vec![0], words(vec![r]));
        odd[2].1 = words(vec![r]);
        assert_eq!(read(odd).unwrap_err(), "t.parquet: row 1: column pid is of type Utf8, expected integers");
    }

    /// A small trace as a file.
    fn small() -> Vec<u8> {
        let words = StringArray::from_iter_values((0..300).map(|i| if i % 3 == 0 { "w" } else { "r" }));
        let batch = RecordBatch::try_from_iter(columns((0..300).collect(), Arc::new(words))).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    #[test]
    fn damaged_files_are_errors() {
        let (whole, file) = (small(), tempfile::NamedTempFile::new().unwrap());
        let name = file.path().to_str().unwrap();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |end: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % end as u64) as usize
        };
        let mut refused = 0;
        for _ in 0..MUTANTS {
            let mut bytes = whole.clone();
            for _ in 0..=below(3) {
                let at = below(bytes.len());
                bytes[at] = [below(256) as u8, 0, 0xff, 0x7f, bytes[at] ^ 1 << below(8)][below(5)];
            }
            std::fs::write(name, &bytes).unwrap();
            // The last part of a page may be an error, and nothing follows it.
            let trace = AccessTrace::open(name).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            if let Err(error) = trace {
                let message = error.to_string();
                assert!(message.contains(name), "{message}");
                refused += 1;
            }
        }
        assert!(refused > MUTANTS / 50, "{refused}");
    }

    #[test]
    fn a_file_on_which_the_decoder_panics_is_an_error() {
        let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/damaged-access.parquet");
        let trace = AccessTrace::open(name).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let message = trace.unwrap_err().to_string();
        assert!(message.starts_with(name) && message.contains("its decoder failed"), "{message}");
    }
}

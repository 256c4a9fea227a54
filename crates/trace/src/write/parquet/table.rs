//! One Parquet file, written row group by row group.
//!
//! Rows are collected here and encoded when a row group is complete, so nothing of the encoder lives between row
//! groups but the footer. The file is opened for each piece that is written: a trace can have more kinds of events
//! than a process may have open files.

use super::column::{Column, Type};
use crate::Error;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A table and its rows that are not written yet.
pub(super) struct Table {
    /// Columns, in the order of the schema.
    pub columns: Vec<Column>,
    /// Rows in `columns`.
    pub rows: usize,
    /// Bytes of `columns`, about.
    pub bytes: usize,
    /// Rows written.
    written: u64,
    schema: SchemaRef,
    notes: Vec<KeyValue>,
    path: PathBuf,
    mode: u32,
    writer: Option<ArrowWriter<Appender>>,
}

/// Appends to a file that is open only meanwhile.
struct Appender {
    path: PathBuf,
    mode: u32,
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(self.mode).open(&self.path)?.write_all(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Table {
    /// A table of these columns (name, type, may be absent) in a file that does not exist yet. `notes` are the key and
    /// value metadata of the file, `mode` its permissions.
    pub fn new(path: PathBuf, mode: u32, columns: &[(String, Type, bool)], notes: Vec<KeyValue>) -> Table {
        let fields: Vec<_> = columns.iter().map(|(name, kind, nullable)| kind.field(name, *nullable)).collect();
        let columns = columns.iter().map(|(_, kind, _)| kind.column()).collect();
        let schema = Arc::new(Schema::new(fields));
        Table { columns, rows: 0, bytes: 0, written: 0, schema, notes, path, mode, writer: None }
    }

    /// Ends a row; `bytes` is what the columns took for it.
    pub fn end_row(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    /// Writes the collected rows as a row group.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self.columns.iter_mut().map(Column::take).collect::<Result<_, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays));
        let batch = batch.map_err(|e| self.failure(io::Error::other(e)))?;
        self.written += self.rows as u64;
        (self.rows, self.bytes) = (0, 0);
        if self.writer.is_none() {
            self.writer = Some(self.open()?);
        }
        if let Some(writer) = &mut self.writer {
            let result = writer.write(&batch).and_then(|()| writer.flush());
            result.map_err(|e| self.failure(io::Error::other(e)))?;
        }
        Ok(())
    }

    /// Ends the file: its name and its rows.
    pub fn close(mut self) -> Result<(String, u64), Error> {
        self.flush()?;
        if let Some(mut writer) = self.writer.take() {
            writer.finish().map_err(|e| self.failure(io::Error::other(e)))?;
        }
        Ok((self.path.file_name().unwrap_or_default().to_string_lossy().into_owned(), self.written))
    }

    fn open(&self) -> Result<ArrowWriter<Appender>, Error> {
        let ts = ColumnPath::from("ts");
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            // Times grow by little and hardly repeat.
            .set_column_dictionary_enabled(ts.clone(), false)
            .set_column_encoding(ts, Encoding::DELTA_BINARY_PACKED)
            .set_key_value_metadata(Some(self.notes.clone()))
            .build();
        ArrowWriter::try_new(
            Appender { path: self.path.clone(), mode: self.mode },
            self.schema.clone(),
            Some(properties),
        )
        .map_err(|e| self.failure(io::Error::other(e)))
    }

    fn failure(&self, error: io::Error) -> Error {
        Error::io(&self.path.to_string_lossy(), error)
    }
}

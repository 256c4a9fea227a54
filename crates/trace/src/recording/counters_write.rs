//! Counters to `counters/SOURCE.arrows`: an Arrow IPC stream per source that only grows.
//!
//! Columns: `time` (u64, nanoseconds of the trace clock), `key` (utf8), then one nullable u64 per counter. A sample
//! is one record batch, written with one call, so a killed recorder leaves whole batches and at most part of one.
//! When a counter appears that the file has no column for, a new file `SOURCE.1.arrows` begins with all of them; so it
//! does when a sample is older than the one before it, for times in a file ascend.

use super::create::append;
use crate::Error;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use mmtwin_event::counters::Row;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the counters of a recording.
pub struct CounterWriter {
    directory: PathBuf,
    /// Its name for messages.
    name: PathBuf,
    sources: BTreeMap<String, Stream>,
    bytes: u64,
}

struct Stream {
    name: String,
    file: File,
    /// Bytes in it that are whole.
    length: u64,
    ipc: StreamWriter<Vec<u8>>,
    schema: Arc<Schema>,
    columns: Vec<String>,
    number: u32,
    /// Time of the last sample.
    at: u64,
}

impl CounterWriter {
    /// Writes into `directory`, which exists; `name` is what messages call it.
    pub fn new(directory: PathBuf, name: PathBuf) -> CounterWriter {
        CounterWriter { directory, name, sources: BTreeMap::new(), bytes: 0 }
    }

    /// The directory has another name now.
    pub fn moved(&mut self, directory: PathBuf) {
        self.directory = directory;
    }

    /// Bytes written to all files so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends one sample of a source, taken at `at`. Without rows nothing is written.
    pub fn add(&mut self, source: &str, at: u64, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let known = self.sources.get(source);
        let missing: Vec<&String> = {
            let columns: &[String] = known.map_or(&[], |s| &s.columns);
            let mut missing: Vec<&String> = Vec::new();
            for row in rows.iter().filter(|row| row.names != columns) {
                let absent = |n: &&String| !columns.contains(n) && !missing.contains(n);
                let new: Vec<&String> = row.names.iter().filter(absent).collect();
                missing.extend(new);
            }
            missing
        };
        if known.is_none_or(|stream| at < stream.at) || !missing.is_empty() {
            let columns = known.iter().flat_map(|s| &s.columns).chain(missing).cloned().collect();
            let number = known.map_or(0, |s| s.number + 1);
            let stream = Stream::create(&self.directory, &self.name, source, number, columns)?;
            if let Some(mut old) = self.sources.insert(source.into(), stream) {
                self.bytes += old.finish()?;
            }
        }
        if let Some(stream) = self.sources.get_mut(source) {
            self.bytes += stream.write(at, rows)?;
        }
        Ok(())
    }

    /// Ends all streams; nothing can be added then.
    pub fn finish(&mut self) -> Result<(), Error> {
        for mut stream in std::mem::take(&mut self.sources).into_values() {
            self.bytes += stream.finish()?;
        }
        Ok(())
    }
}

impl Stream {
    fn create(directory: &Path, name: &Path, source: &str, number: u32, columns: Vec<String>) -> Result<Stream, Error> {
        let leaf = if number == 0 { format!("{source}.arrows") } else { format!("{source}.{number}.arrows") };
        let shown = name.join(&leaf);
        let name = shown.to_string_lossy().into_owned();
        let file = super::create::file(&directory.join(leaf), &shown)?;
        let fixed = [Field::new("time", DataType::UInt64, false), Field::new("key", DataType::Utf8, false)];
        let counters = columns.iter().map(|c| Field::new(c, DataType::UInt64, true));
        let schema = Arc::new(Schema::new(fixed.into_iter().chain(counters).collect::<Vec<_>>()));
        // Buffers are aligned to 8 bytes: the usual 64 would triple a row of some hundred counters.
        let ipc = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)
            .and_then(|options| StreamWriter::try_new_with_options(Vec::new(), &schema, options))
            .map_err(|e| arrow(&name, e))?;
        Ok(Stream { name, file, length: 0, ipc, schema, columns, number, at: 0 })
    }

    fn write(&mut self, at: u64, rows: &[Row]) -> Result<u64, Error> {
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(vec![at; rows.len()])),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| &r.key))),
        ];
        for (i, column) in self.columns.iter().enumerate() {
            let value = |row: &Row| match row.names.get(i) {
                Some(name) if name == column => row.values.get(i).copied().flatten(),
                _ => row.value(column),
            };
            arrays.push(Arc::new(UInt64Array::from_iter(rows.iter().map(value))));
        }
        self.at = at;
        RecordBatch::try_new(self.schema.clone(), arrays)
            .and_then(|batch| self.ipc.write(&batch))
            .map_err(|e| arrow(&self.name, e))?;
        self.pour()
    }

    /// Moves what is encoded to the file.
    fn pour(&mut self) -> Result<u64, Error> {
        let encoded = self.ipc.get_mut();
        let written = append(&mut self.file, &mut self.length, encoded).map_err(|e| Error::io(&self.name, e));
        let bytes = encoded.len() as u64;
        // A sample that could not be written is lost; the next one must not begin with it.
        encoded.clear();
        written.map(|()| bytes)
    }

    fn finish(&mut self) -> Result<u64, Error> {
        self.ipc.finish().map_err(|e| arrow(&self.name, e))?;
        self.pour()
    }
}

fn arrow(name: &str, error: ArrowError) -> Error {
    Error::io(name, std::io::Error::other(error))
}

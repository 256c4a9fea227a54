//! Counters to `counters/SOURCE.arrows`: an Arrow IPC stream per source that only grows.
//!
//! Columns: `time` (u64, nanoseconds of the trace clock), `key` (utf8), then one nullable u64 per counter. A sample
//! is one record batch, written with one call, so a killed recorder leaves whole batches and at most part of one.
//! When a counter appears that the file has no column for, a new file `SOURCE.1.arrows` begins with all of them.

use crate::Error;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use mmtwin_event::counters::Row;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the counters of a recording.
pub struct CounterWriter {
    directory: PathBuf,
    sources: BTreeMap<String, Stream>,
    bytes: u64,
}

struct Stream {
    name: String,
    file: File,
    ipc: StreamWriter<Vec<u8>>,
    schema: Arc<Schema>,
    columns: Vec<String>,
    number: u32,
}

impl CounterWriter {
    /// Writes into `directory`, which exists.
    pub fn new(directory: &Path) -> CounterWriter {
        CounterWriter { directory: directory.into(), sources: BTreeMap::new(), bytes: 0 }
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
        if known.is_none() || !missing.is_empty() {
            let columns = known.iter().flat_map(|s| &s.columns).chain(missing).cloned().collect();
            let number = known.map_or(0, |s| s.number + 1);
            let stream = Stream::create(&self.directory, source, number, columns)?;
            if let Some(old) = self.sources.insert(source.into(), stream) {
                self.bytes += old.finish()?;
            }
        }
        if let Some(stream) = self.sources.get_mut(source) {
            self.bytes += stream.write(at, rows)?;
        }
        Ok(())
    }

    /// Ends all streams. Returns the bytes written to all files.
    pub fn finish(self) -> Result<u64, Error> {
        self.sources.into_values().try_fold(self.bytes, |bytes, stream| Ok(bytes + stream.finish()?))
    }
}

impl Stream {
    fn create(directory: &Path, source: &str, number: u32, columns: Vec<String>) -> Result<Stream, Error> {
        let leaf = if number == 0 { format!("{source}.arrows") } else { format!("{source}.{number}.arrows") };
        let path = directory.join(leaf);
        let name = path.to_string_lossy().into_owned();
        let file = super::create::file(&path)?;
        let fixed = [Field::new("time", DataType::UInt64, false), Field::new("key", DataType::Utf8, false)];
        let counters = columns.iter().map(|c| Field::new(c, DataType::UInt64, true));
        let schema = Arc::new(Schema::new(fixed.into_iter().chain(counters).collect::<Vec<_>>()));
        // Buffers are aligned to 8 bytes: the usual 64 would triple a row of some hundred counters.
        let ipc = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)
            .and_then(|options| StreamWriter::try_new_with_options(Vec::new(), &schema, options))
            .map_err(|e| arrow(&name, e))?;
        Ok(Stream { name, file, ipc, schema, columns, number })
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
        RecordBatch::try_new(self.schema.clone(), arrays)
            .and_then(|batch| self.ipc.write(&batch))
            .map_err(|e| arrow(&self.name, e))?;
        self.pour()
    }

    /// Moves what is encoded to the file.
    fn pour(&mut self) -> Result<u64, Error> {
        let encoded = self.ipc.get_mut();
        self.file.write_all(encoded).map_err(|e| Error::io(&self.name, e))?;
        let bytes = encoded.len() as u64;
        encoded.clear();
        Ok(bytes)
    }

    fn finish(mut self) -> Result<u64, Error> {
        self.ipc.finish().map_err(|e| arrow(&self.name, e))?;
        self.pour()
    }
}

fn arrow(name: &str, error: ArrowError) -> Error {
    Error::io(name, std::io::Error::other(error))
}

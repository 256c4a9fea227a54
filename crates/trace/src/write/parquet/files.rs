//! Tables as a directory of Parquet files, written row group by row group. The directory gets its name when it is whole.
//!
//! Rows are encoded when a row group is complete, so nothing of the encoder lives between row groups but the footer. A
//! file is opened for each piece that is written: a trace can have more kinds of events than a process may have open
//! files.

use super::table::Table;
use super::{Collector, Target};
use crate::Error;
use crate::format::Formats;
use crate::output::{self, Folder};
use crate::write::tables;
use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Takes a stream, and leaves a directory of Parquet files when it is closed.
pub type ParquetWriter = Collector<Files>;

/// The directory, and the files that were begun.
pub struct Files {
    folder: Folder,
    mode: u32,
    writers: Vec<Option<(PathBuf, ArrowWriter<Appender>)>>,
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

impl Collector<Files> {
    /// Says whether [`ParquetWriter::create`] would refuse, without writing anything.
    ///
    /// # Errors
    /// As of [`ParquetWriter::create`].
    pub fn check(to: &Path, force: bool) -> Result<(), Error> {
        Folder::check(to, force, output::Kind::Other { mode: 0, look: tables::look })
    }

    /// A writer of the directory `to`. `formats` are those of the source, if it is binary. If `to` exists, it is an
    /// error; with `force` a directory that holds Parquet files of ours (and nothing else) is replaced when the new
    /// one is whole. `mode` are the permissions of files, less those of the umask.
    pub fn create(to: &Path, formats: Option<Arc<Formats>>, force: bool, mode: u32) -> Result<ParquetWriter, Error> {
        // Who may read a file may list it.
        let directory = 0o700 | mode | (mode & 0o444) >> 2;
        let folder = Folder::create(to, force, output::Kind::Other { mode: directory, look: tables::look })?;
        Ok(Collector::to(Files { folder, mode, writers: Vec::new() }, formats))
    }

    /// Writes what is left and gives the directory its name. Returns the files and their rows, by name. Without it, or
    /// if it fails, nothing stays behind.
    pub fn close(mut self) -> Result<Vec<(String, u64)>, Error> {
        let rows = self.flush()?;
        let Files { mut folder, writers, .. } = self.target;
        for (path, mut writer) in writers.into_iter().flatten() {
            writer.finish().map_err(|error| failure(&path, error))?;
        }
        if let Some(left) = folder.publish()? {
            return Err(Error::Output { path: folder.name().to_string_lossy().into_owned(), message: left });
        }
        let mut files: Vec<(String, u64)> = rows.into_iter().map(|(name, rows)| (file(&name), rows)).collect();
        files.sort();
        Ok(files)
    }
}

fn file(table: &str) -> String {
    format!("{table}.parquet")
}

fn failure(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::io(&path.to_string_lossy(), io::Error::other(error))
}

impl Target for Files {
    fn wants(&self, _: &str) -> bool {
        true
    }

    fn take(&mut self, number: usize, table: &Table, rows: &RecordBatch) -> Result<(), Error> {
        if self.writers.len() <= number {
            self.writers.resize_with(number + 1, || None);
        }
        let writer = &mut self.writers[number];
        if writer.is_none() {
            let path = self.folder.path().join(file(&table.name));
            let opened = open(&path, self.mode, table, rows)?;
            *writer = Some((path, opened));
        }
        match writer {
            Some((path, writer)) => {
                writer.write(rows).and_then(|()| writer.flush()).map_err(|error| failure(path, error))
            }
            None => Ok(()),
        }
    }
}

fn open(path: &Path, mode: u32, table: &Table, rows: &RecordBatch) -> Result<ArrowWriter<Appender>, Error> {
    let ts = ColumnPath::from("ts");
    let notes = table.notes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        // Times grow by little and hardly repeat.
        .set_column_dictionary_enabled(ts.clone(), false)
        .set_column_encoding(ts, Encoding::DELTA_BINARY_PACKED)
        .set_key_value_metadata(Some(notes))
        .build();
    ArrowWriter::try_new(Appender { path: path.into(), mode }, rows.schema(), Some(properties))
        .map_err(|error| failure(path, error))
}

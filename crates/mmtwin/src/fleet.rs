//! Many recordings: which there are, what is kept of each, and an index of all as a table.
//!
//! One recording is analysed at a time by each caller of [`summary`], and then only its [`Summary`] is kept, so memory
//! does not grow with the recordings. What another process or machine read is sent as [`to_bytes`].

mod wire;

pub use wire::{Read, from_bytes, to_bytes};

use crate::{Error, Filter, Options, Trace};
use arrow_array::builder::{Float64Builder, StringBuilder, UInt8Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use mmtwin_analysis::findings::elapsed;
use mmtwin_report::fleet::{Fleet, Found, Summary};
use mmtwin_trace::recording::Recording;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of files in a directory that are taken for traces; compressed ones end in `.gz`, `.zst` or `.xz` too.
const ENDINGS: [&str; 3] = [".dat", ".trace", ".tar"];

/// The recordings and traces that paths stand for, in their order: a directory that is no recording stands for all in
/// it and below, sorted by path. Symbolic links in it are not followed.
///
/// # Errors
/// If a directory cannot be read.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() && !Recording::is_one(path) { walk(path, &mut found)? } else { found.push(path.clone()) }
    }
    Ok(found)
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |source| mmtwin_trace::Error::Io { file: directory.display().to_string(), source };
    let entries: Result<Vec<_>, _> = std::fs::read_dir(directory).map_err(failed)?.collect();
    let mut entries = entries.map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() && !Recording::is_one(&path) {
            walk(&path, found)?;
        } else if kind.is_dir() || kind.is_file() && is_named_as_trace(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn is_named_as_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = [".gz", ".zst", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    ENDINGS.iter().any(|end| stem.ends_with(end))
}

/// Reads and analyses one of them.
///
/// # Errors
/// As [`Trace::open`] and [`Trace::read`].
pub fn summary(path: &Path, options: &Options, filter: &Filter) -> Result<Summary, Error> {
    summary_with(path, options, filter, &mut |_| {})
}

/// The same; `progress` is called with the number of events so far.
///
/// # Errors
/// As [`summary`].
pub fn summary_with(
    path: &Path,
    options: &Options,
    filter: &Filter,
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, Error> {
    let analysed = Trace::open_with(path, options.clone())?.only(filter.clone()).analyse(progress)?;
    Ok(Summary::of(&analysed.report(), elapsed(&analysed.analysis)))
}

/// Writes a Parquet file with a row for each recording and finding; one without findings has a row with nulls. Columns:
/// `recording`, `arm`, `kernel`, `seconds`, `events`, `lost_events`, `finding`, `severity` (0 to 100), `waited_ns`,
/// `share`, `memory_some`, `io_some` (shares of the elapsed time), `cgroup`, `sentence`. Null: not known.
///
/// # Errors
/// Those of the output.
pub fn write_index(fleet: &Fleet, out: impl Write + Send) -> Result<(), ParquetError> {
    let batch = index(fleet)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// The rows of [`write_index`].
///
/// # Errors
/// None that is known: that of a table whose columns differ in length.
pub fn index(fleet: &Fleet) -> Result<RecordBatch, ParquetError> {
    let none: [Option<&Found>; 1] = [None];
    let rows: Vec<(&Summary, Option<&Found>)> = fleet
        .recordings
        .iter()
        .flat_map(|summary| {
            let found = summary.findings.iter().map(Some);
            let none = none.into_iter().filter(|_| summary.findings.is_empty());
            found.chain(none).map(move |found| (summary, found))
        })
        .collect();
    let text = |of: &dyn Fn(&Summary, Option<&Found>) -> Option<String>| -> ArrayRef {
        let mut column = StringBuilder::new();
        rows.iter().for_each(|(summary, found)| column.append_option(of(summary, *found)));
        Arc::new(column.finish())
    };
    let number = |of: &dyn Fn(&Summary, Option<&Found>) -> Option<u64>| -> ArrayRef {
        let mut column = UInt64Builder::new();
        rows.iter().for_each(|(summary, found)| column.append_option(of(summary, *found)));
        Arc::new(column.finish())
    };
    let real = |of: &dyn Fn(&Summary, Option<&Found>) -> Option<f64>| -> ArrayRef {
        let mut column = Float64Builder::new();
        rows.iter().for_each(|(summary, found)| column.append_option(of(summary, *found)));
        Arc::new(column.finish())
    };
    let mut severity = UInt8Builder::new();
    rows.iter().for_each(|(_, found)| severity.append_option(found.map(|found| found.severity)));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("recording", text(&|summary, _| Some(summary.name.clone())), false),
        ("arm", text(&|summary, _| Some(summary.arm.clone())), false),
        ("kernel", text(&|summary, _| summary.kernel.clone()), true),
        ("seconds", real(&|summary, _| summary.seconds), true),
        ("events", number(&|summary, _| Some(summary.events)), false),
        ("lost_events", number(&|summary, _| summary.lost_events), true),
        ("finding", text(&|_, found| Some(found?.key.clone())), true),
        ("severity", Arc::new(severity.finish()), true),
        ("waited_ns", number(&|_, found| found?.waited_ns), true),
        ("share", real(&|_, found| found?.share), true),
        ("memory_some", real(&|_, found| found?.memory_some), true),
        ("io_some", real(&|_, found| found?.io_some), true),
        ("cgroup", text(&|_, found| found?.cgroup.clone()), true),
        ("sentence", text(&|_, found| Some(found?.sentence.clone())), true),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn a_directory_stands_for_what_is_in_it() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for directory in ["b.mmt", "a/x.mmt", "a/empty"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        for file in ["b.mmt/manifest.json", "a/x.mmt/manifest.json", "a/t.dat.zst", "a/notes.txt", "z.tar.zst"] {
            std::fs::write(at(file), "{}").unwrap();
        }
        let expected = ["a/t.dat.zst", "a/x.mmt", "b.mmt", "z.tar.zst"].map(at);
        assert_eq!(find(&[top.path().into()]).unwrap(), expected);
        assert_eq!(find(&[at("b.mmt"), at("missing")]).unwrap(), [at("b.mmt"), at("missing")]);
    }

    #[test]
    fn the_index_has_a_row_for_each_finding() {
        let found = Found { key: "oom_kill".into(), severity: 95, waited_ns: Some(7), ..Found::default() };
        let with = Summary { name: "a".into(), findings: vec![found.clone(), found], ..Summary::default() };
        let without = Summary { name: "b".into(), ..Summary::default() };
        let fleet = Fleet { recordings: vec![with, without], unreadable: Vec::new() };
        let batch = index(&fleet).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (3, 14));
        let nulls = |name: &str| batch.column_by_name(name).unwrap().null_count();
        assert_eq!((nulls("finding"), nulls("waited_ns"), nulls("kernel"), nulls("recording")), (1, 1, 3, 0));
        let mut bytes = Vec::new();
        write_index(&fleet, &mut bytes).unwrap();
        assert_eq!(&bytes[..4], b"PAR1");
    }
}

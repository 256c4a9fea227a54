//! `--format arrow` and `--format parquet`: a directory with a file for each table.

use crate::Failure;
use crate::args::{Output, ReportFormat};
use mmtwin::Comparison;
use mmtwin_trace::output::{Folder, Kind};
use mmtwin_trace::write::tables::look;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Refuses a place that cannot be written, before long work.
pub fn check(to: &Path, force: bool) -> Result<(), Failure> {
    Ok(Folder::check(to, force, Kind::Other { mode: 0, look })?)
}

/// Writes the tables, or those that are named. The directory appears when it is whole. `mode`: permissions of its files.
pub fn write(
    mut comparison: Comparison,
    names: &[String],
    format: ReportFormat,
    output: &Output,
    mode: u32,
) -> Result<(), Failure> {
    if !names.is_empty() {
        comparison.select(names).map_err(|e| Failure::Usage(e.to_string()))?;
    }
    let Some(to) = &output.output else { return Err(Failure::Usage("-o DIR: where the tables go".into())) };
    let failed = |what: &Path, error: &dyn Display| Failure::Error(format!("{}: {error}", what.display()));
    let batches = mmtwin::batches(&comparison).map_err(|e| failed(to, &e))?;
    // Who may read a file may list it.
    let directory = 0o700 | mode | (mode & 0o444) >> 2;
    let mut folder = Folder::create(to, output.force, Kind::Other { mode: directory, look })?;
    let extension = if format == ReportFormat::Arrow { "arrow" } else { "parquet" };
    let mut seen = std::collections::BTreeMap::new();
    for batch in &batches {
        // Tables of one name are those of several inputs, which cannot be joined.
        let name: String = batch.name.chars().map(allowed).collect();
        let number = seen.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1);
        let stem = if *number == 1 { name } else { format!("{name}.{number}") };
        let path = folder.path().join(format!("{stem}.{extension}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let file = file.map_err(|e| failed(to, &e))?;
        match format {
            ReportFormat::Arrow => batch.write_arrow(file).map_err(|e| failed(to, &e))?,
            _ => batch.write_parquet(file).map_err(|e| failed(to, &e))?,
        }
    }
    match folder.publish()? {
        Some(left) => Err(failed(to, &left)),
        None => Ok(()),
    }
}

/// A character of a file's name.
fn allowed(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' }
}

//! Which directories of Parquet files are ours: those that are may be replaced.

use crate::output::ours::Found;
use parquet::file::metadata::ParquetMetaDataReader;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The key that every file of ours has in its metadata.
const KEY: &str = "mmtwin.schema_version";

/// Looks at a directory that may be one of ours.
pub(super) fn look(directory: &Path) -> io::Result<Found> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let why = if !entry.file_type()?.is_file() || path.extension().is_none_or(|e| e != "parquet") {
            "other files than Parquet"
        } else if !is_ours(&path) {
            "a Parquet file that mmtwin did not write"
        } else {
            files.push(path);
            continue;
        };
        return Ok(Found::Foreign(format!("holds {why} ({name}), so it is not replaced")));
    }
    Ok(if files.is_empty() { Found::Empty } else { Found::Ours(files) })
}

fn is_ours(path: &Path) -> bool {
    let read = File::open(path).map(|file| ParquetMetaDataReader::new().parse_and_finish(&file));
    let Ok(Ok(metadata)) = read else { return false };
    metadata.file_metadata().key_value_metadata().is_some_and(|pairs| pairs.iter().any(|pair| pair.key == KEY))
}

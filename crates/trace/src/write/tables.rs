//! Which directories of Parquet and Arrow files are ours: those that are may be replaced.

use crate::output::ours::Found;
use parquet::file::metadata::ParquetMetaDataReader;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The key that every file of ours has in its metadata.
const KEY: &str = "mmtwin.schema_version";
/// Bytes at the begin of an Arrow file among which the key must be.
const HEAD: u64 = 1 << 20;

/// Looks at a directory that may be one of ours: of Parquet files, of Arrow IPC files, or of both.
///
/// # Errors
/// If it cannot be read.
pub fn look(directory: &Path) -> io::Result<Found> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type()?;
        let extension = path.extension().and_then(|e| e.to_str()).filter(|_| kind.is_file());
        let why = match extension {
            Some("parquet") if !is_our_parquet(&path) => "a Parquet file that mmtwin did not write",
            Some("arrow") if !is_our_arrow(&path) => "an Arrow file that mmtwin did not write",
            Some("parquet" | "arrow") => {
                files.push(path);
                continue;
            }
            _ => "other files than Parquet",
        };
        return Ok(Found::Foreign(format!("holds {why} ({name}), so it is not replaced")));
    }
    Ok(if files.is_empty() { Found::Empty } else { Found::Ours(files) })
}

fn is_our_arrow(path: &Path) -> bool {
    // The schema with its metadata is what the file begins with.
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && head.starts_with(b"ARROW1") && memchr::memmem::find(&head, KEY.as_bytes()).is_some()
}

fn is_our_parquet(path: &Path) -> bool {
    let read = File::open(path).map(|file| ParquetMetaDataReader::new().parse_and_finish(&file));
    let Ok(Ok(metadata)) = read else { return false };
    metadata.file_metadata().key_value_metadata().is_some_and(|pairs| pairs.iter().any(|pair| pair.key == KEY))
}

//! Recordings of the lab, packed: a tar archive with Zstandard, without what only says who recorded.

use crate::Failure;
use std::fs::{self, File};
use std::path::Path;
use tempfile::TempDir;

/// Level of compression; recordings are packed once and small.
const LEVEL: i32 = 19;
/// Files that are not kept.
const DROPPED: [&str; 1] = ["run.json"];

/// Packs a recording. The archive appears whole or not at all, and is the same for the same recording.
pub(super) fn pack(recording: &Path, archive: &Path) -> Result<(), Failure> {
    let directory = archive.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let part = tempfile::NamedTempFile::new_in(directory)?;
    let mut tar = tar::Builder::new(zstd::Encoder::new(part.reopen()?, LEVEL)?);
    tar.mode(tar::HeaderMode::Deterministic);
    let mut files = Vec::new();
    collect(recording, recording, &mut files)?;
    files.sort();
    for name in files.iter().filter(|name| !DROPPED.contains(&name.as_str())) {
        tar.append_path_with_name(recording.join(name), name)?;
    }
    tar.into_inner()?.finish()?;
    part.persist(archive).map_err(|error| error.error)?;
    Ok(())
}

fn collect(root: &Path, at: &Path, files: &mut Vec<String>) -> Result<(), Failure> {
    for entry in fs::read_dir(at)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(root, &path, files)?,
            false => files.extend(path.strip_prefix(root).ok().map(|name| name.to_string_lossy().into_owned())),
        }
    }
    Ok(())
}

/// Unpacks a recording into a directory that is gone when it is dropped.
pub(super) fn unpack(archive: &Path) -> Result<TempDir, Failure> {
    let scratch = tempfile::tempdir()?;
    let named = |error: std::io::Error| Failure::Error(format!("{}: {error}", archive.display()));
    let file = File::open(archive).map_err(named)?;
    tar::Archive::new(zstd::Decoder::new(file).map_err(named)?).unpack(scratch.path()).map_err(named)?;
    Ok(scratch)
}

//! The one place that opens outputs.
//!
//! A regular file or a directory is written beside its place, under a unique name, and is renamed to its final name
//! when it is complete (a live recording: when it has started without error). So an earlier file stays until then, and
//! a run that fails leaves none. No output is renamed onto a device, a FIFO or a symbolic link: the first two are
//! written to directly, a link is followed to its target. A directory is replaced only if everything in it was written
//! by mmtwin.
//!
//! [`FileOutput`] is a file, [`Folder`] a directory; [`ours`] tells recordings from other directories, and [`owner`]
//! puts the process into the names of unfinished files, so that the next process can remove those of a killed one.

mod beside;
mod file;
mod folder;
pub mod ours;
pub mod owner;

pub use beside::{abandon, remove_unfinished};
pub use file::{FileOutput, mode_of};
pub use folder::{Folder, Kind};

use crate::Error;
use std::io;
use std::path::{Path, PathBuf};

/// An output that cannot be written as requested.
fn refused(path: &Path, message: impl Into<String>) -> Error {
    Error::Output { path: path.to_string_lossy().into_owned(), message: message.into() }
}

/// An error of the system at an output.
fn failed(path: &Path, error: impl Into<io::Error>) -> Error {
    Error::io(&path.to_string_lossy(), error.into())
}

/// The directory of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The directory of an output, which must be there.
fn existing_parent(path: &Path) -> Result<&Path, Error> {
    let parent = parent(path);
    match std::fs::metadata(parent) {
        Ok(meta) if meta.is_dir() => Ok(parent),
        Ok(_) => Err(refused(path, format!("{} is not a directory", parent.display()))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(refused(path, format!("directory {} does not exist; create it first", parent.display())))
        }
        Err(e) => Err(failed(parent, e)),
    }
}

/// Final target of a symbolic link; a path that is not a link is returned unchanged.
fn followed(path: &Path) -> Result<PathBuf, Error> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => std::fs::canonicalize(path).map_err(|e| {
            let target = std::fs::read_link(path).unwrap_or_default();
            refused(path, format!("is a symbolic link to {}, which cannot be written: {e}", target.display()))
        }),
        _ => Ok(path.into()),
    }
}

/// True if two paths are the same file or directory.
pub fn same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()) && (a.is_file() || a.is_dir()),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

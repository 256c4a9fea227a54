//! The directory of a flight recorder: marked, for its owner alone, and locked while a recorder runs.
//!
//! ```text
//! mmtwin.flight        marks the directory; locked (flock) by the recorder
//! socket               `mmtwin snap` asks the recorder for a recording here
//! segments/            the ring
//! heads/N/             what segments are read with: a recording without events and counters
//! dumps/N-CAUSE.mmt    the recordings that were written out
//! ```

use crate::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MARKER: &str = "mmtwin.flight";
const MARKER_TEXT: &str = "This directory belongs to a flight recorder of mmtwin. The file is locked while it runs.\n";
const PARTS: [&str; 3] = ["segments", "heads", "dumps"];

/// A directory that this process holds.
pub struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes the directory, or takes over one that a recorder left.
    ///
    /// # Errors
    /// If something else is there, another recorder runs in it, or the system refuses.
    pub fn create(path: &Path) -> Result<Directory, Error> {
        let fail = |e: io::Error| Error::io(path.to_string_lossy(), e);
        match DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
            _ => {}
        }
        if !is_one(path) && fs::read_dir(path).map_err(fail)?.next().is_some() {
            return Err(refused(path, "is not empty and no directory of a flight recorder; -o names another"));
        }
        let directory = Directory::lock(path)?;
        for part in PARTS {
            match DirBuilder::new().mode(0o700).create(path.join(part)) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
                _ => {}
            }
        }
        Ok(directory)
    }

    /// Takes one that a recorder left.
    ///
    /// # Errors
    /// As of [`Directory::create`], or if there is none.
    pub fn open(path: &Path) -> Result<Directory, Error> {
        if is_one(path) { Directory::lock(path) } else { Err(none(path)) }
    }

    fn lock(path: &Path) -> Result<Directory, Error> {
        let marker = path.join(MARKER);
        let fail = |e: io::Error| Error::io(marker.to_string_lossy(), e);
        let open = OpenOptions::new().append(true).create(true).mode(0o600).open(&marker);
        let file = open.map_err(fail)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(refused(path, "another recorder runs there"));
        }
        if file.metadata().map_err(fail)?.len() == 0 {
            (&file).write_all(MARKER_TEXT.as_bytes()).map_err(fail)?;
        }
        Ok(Directory { path: path.into(), _lock: file })
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where segments are.
    pub fn segments(&self) -> PathBuf {
        self.path.join("segments")
    }

    /// Where a head is.
    pub fn head(&self, number: u32) -> PathBuf {
        self.path.join("heads").join(number.to_string())
    }

    /// The heads there are, ascending.
    pub fn heads(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.path.join("heads")).into_iter().flatten().flatten();
        let mut heads: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        heads.sort_unstable();
        heads
    }

    /// Recordings that were written out.
    pub fn dumps(&self) -> usize {
        self.numbers().len()
    }

    /// Name of the next recording to write out. Its number is one more than the highest there is.
    pub fn next_dump(&self, cause: &str) -> PathBuf {
        let number = self.numbers().into_iter().max().unwrap_or(0) + 1;
        self.path.join("dumps").join(format!("{number}-{cause}.mmt"))
    }

    fn numbers(&self) -> Vec<u64> {
        let entries = fs::read_dir(self.path.join("dumps")).into_iter().flatten().flatten();
        let number = |name: &str| name.strip_suffix(".mmt")?.split_once('-')?.0.parse().ok();
        entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect()
    }
}

/// A recorder ran or runs there.
pub fn is_one(path: &Path) -> bool {
    path.join(MARKER).is_file()
}

/// No recorder has been there.
pub fn none(path: &Path) -> Error {
    refused(path, "is no directory of a flight recorder")
}

fn refused(path: &Path, message: &str) -> Error {
    Error::Flight { directory: path.to_string_lossy().into_owned(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_recorder_and_nothing_foreign() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let message = |result: Result<Directory, Error>| result.err().unwrap().to_string();
        assert!(Directory::open(&path).is_err() && !path.exists());
        let first = Directory::create(&path).unwrap();
        assert!(message(Directory::create(&path)).contains("another recorder"));
        assert!(message(Directory::open(&path)).contains("another recorder"));
        drop(first);
        let again = Directory::open(&path).unwrap();
        assert_eq!((again.dumps(), again.next_dump("oom")), (0, path.join("dumps/1-oom.mmt")));
        for name in ["dumps/9-snap.mmt", "dumps/x.mmt", "heads/3", "heads/20", "heads/x"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        assert_eq!((again.dumps(), again.next_dump("oom")), (1, path.join("dumps/10-oom.mmt")));
        assert_eq!(again.heads(), [3, 20]);
        assert!(message(Directory::create(root.path())).contains("not empty"));
    }
}

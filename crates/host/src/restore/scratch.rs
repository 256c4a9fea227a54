//! A folder for what is not kept. If its owner is killed, the next start removes it.

use super::change::Change;
use super::journal::Journal;
use crate::Error;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    journal: Option<Journal>,
}

impl Scratch {
    /// Makes it, below the folder for temporary files.
    ///
    /// # Errors
    /// If it or its journal cannot be made.
    pub fn create() -> Result<Scratch, Error> {
        let mut journal = Journal::create()?;
        let base = std::env::temp_dir().join(format!("mmtwin-run-{}", std::process::id()));
        let base = std::path::absolute(&base).map_err(|e| Error::io(base.display().to_string(), e))?;
        for n in 0..100 {
            let path = base.with_extension(n.to_string());
            // Noted only if it is not there, or the next start would remove what is another's.
            if path.symlink_metadata().is_ok() {
                continue;
            }
            journal.append(&Change::Temporary { path: path.clone() })?;
            fs::DirBuilder::new().mode(0o700).create(&path).map_err(|e| Error::io(path.display().to_string(), e))?;
            return Ok(Scratch { path, journal: Some(journal) });
        }
        Err(Error::io(base.display().to_string(), std::io::Error::from(std::io::ErrorKind::AlreadyExists)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A remainder that cannot be removed now is harmless.
        let _ = fs::remove_dir_all(&self.path);
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_with_its_owner() {
        let scratch = Scratch::create().unwrap();
        fs::write(scratch.path().join("x"), "").unwrap();
        let (path, journal) = (scratch.path().to_path_buf(), scratch.journal.as_ref().unwrap().path().to_path_buf());
        assert!(journal.exists());
        drop(scratch);
        assert!(!path.exists() && !journal.exists());
    }
}

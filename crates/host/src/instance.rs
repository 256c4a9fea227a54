//! An own tracefs instance.
//!
//! All settings are made in `instances/mmtwin-PID`, so nothing of the machine's tracing changes and removing the
//! instance restores everything. Its owner holds a lock (`flock`) on the instance's directory. The kernel drops the
//! lock with the process, however it ends, and in whatever pid namespace it ran: an instance of this name without a
//! lock was left behind, one with a lock belongs to a live recorder.

use crate::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PREFIX: &str = "mmtwin-";

/// A tracefs instance that is removed when dropped.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    /// Holds the owner's lock.
    _lock: File,
}

impl Instance {
    /// Makes an instance below `tracefs`, tracing switched off, after removing what dead recorders left. Returns the
    /// names of those too.
    pub fn create(tracefs: &Path) -> Result<(Instance, Vec<String>), Error> {
        let instances = tracefs.join("instances");
        // Between the making of an instance and its lock nobody may take it for an abandoned one.
        let _making = lock(&instances, FlockOperation::LockExclusive)?;
        let removed = remove_abandoned(&instances)?;
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        let path = (0..).map(|n| if n == 0 { path.clone() } else { path.with_extension(n.to_string()) });
        // Another pid namespace may use the same number.
        let path = path.take(100).find(|p| !p.exists()).unwrap_or_else(|| instances.join(PREFIX));
        fs::create_dir(&path).map_err(|e| Error::io(path.to_string_lossy(), e))?;
        let lock = lock(&path, FlockOperation::NonBlockingLockExclusive).inspect_err(|_| {
            // Nothing but the name exists yet.
            let _ = fs::remove_dir(&path);
        })?;
        let instance = Instance { path, _lock: lock };
        instance.set("tracing_on", "0")?;
        Ok((instance, removed))
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a setting.
    pub fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = self.path.join(file);
        write(&path, value).map_err(|e| Error::io(format!("{} = {value}", path.display()), e))
    }

    /// Reads a file as text.
    pub fn get(&self, file: &str) -> Result<String, Error> {
        let path = self.path.join(file);
        fs::read_to_string(&path).map_err(|e| Error::io(path.to_string_lossy(), e))
    }

    /// Switches tracing off and removes the instance. Fails if somebody else has one of its files open.
    pub fn remove(self) -> Result<(), Error> {
        take_down(&self.path).map_err(|e| Error::io(format!("removing {}", self.path.display()), e))
        // Dropping tries again: right if the other reader has gone meanwhile, and without effect if it is removed.
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.path.exists() {
            // What cannot be removed now the next recording removes.
            let _ = take_down(&self.path);
        }
    }
}

/// Removes instances below `tracefs` of recorders that are gone. Returns their names.
pub(crate) fn clean(tracefs: &Path) -> Result<Vec<String>, Error> {
    let instances = tracefs.join("instances");
    let _making = lock(&instances, FlockOperation::LockExclusive)?;
    remove_abandoned(&instances)
}

/// Removes instances of recorders that are gone. Returns their names.
fn remove_abandoned(instances: &Path) -> Result<Vec<String>, Error> {
    let fail = |e| Error::io(instances.to_string_lossy(), e);
    let mut removed = Vec::new();
    for entry in fs::read_dir(instances).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_ours(&name) || lock(&entry.path(), FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        // One that somebody looks into stays; it is in nobody's way.
        if take_down(&entry.path()).is_ok() {
            removed.push(name);
        }
    }
    removed.sort();
    Ok(removed)
}

/// `mmtwin-` and a number, perhaps with a second one.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|n| n.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())))
}

fn take_down(path: &Path) -> io::Result<()> {
    // An instance that is busy being written to by the kernel can be removed too; this only makes it quick.
    let _ = write(&path.join("tracing_on"), "0");
    fs::remove_dir(path)
}

/// Writes to a file that exists.
fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn lock(path: &Path, operation: FlockOperation) -> Result<File, Error> {
    let file = File::open(path).map_err(|e| Error::io(path.to_string_lossy(), e))?;
    flock(&file, operation).map_err(|e| Error::io(format!("lock of {}", path.display()), e))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory in place of `instances`: what matters here is who owns what.
    fn instances(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("instances");
        fs::create_dir(&path).unwrap();
        names.iter().for_each(|n| fs::create_dir(path.join(n)).unwrap());
        (root, path)
    }

    #[test]
    fn only_abandoned_ones_of_ours_are_removed() {
        let (_root, path) = instances(&["mmtwin-1", "mmtwin-2", "mmtwin-3.1", "mmtwin-", "mmtwin-x", "other"]);
        let live = lock(&path.join("mmtwin-2"), FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(remove_abandoned(&path).unwrap(), ["mmtwin-1", "mmtwin-3.1"]);
        assert!(["mmtwin-2", "mmtwin-", "mmtwin-x", "other"].iter().all(|n| path.join(n).exists()));
        drop(live);
        assert_eq!(remove_abandoned(&path).unwrap(), ["mmtwin-2"]);
    }
}

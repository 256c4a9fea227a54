//! Names beside an output's place for unfinished files: `.mmtwin-PID-START-RANDOM`, hidden and unique to the process.
//!
//! Files of a killed process under such a name are removed by the next process that writes into the same directory.
//! They are certainly unused: the process has ended, the lock on them is free, and everything in a directory is ours.

use super::owner::Owner;
use super::{failed, ours};
use crate::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const PREFIX: &str = ".mmtwin-";

/// Makes something under a free name in a directory. `make` must fail with `AlreadyExists` where the name is taken.
pub(super) fn make<T>(directory: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> Result<(PathBuf, T), Error> {
    loop {
        // Differs in every process and with every call.
        let random = RandomState::new().build_hasher().finish();
        let path = directory.join(format!("{PREFIX}{}-{random:016x}", Owner::this()));
        let mut unfinished = unfinished();
        match make(&path) {
            Ok(made) => {
                unfinished.push(path.clone());
                return Ok((path, made));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(directory, e)),
        }
    }
}

/// Unfinished outputs of this process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is as good after a panic as before.
    UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// It has its final name now, or was removed.
pub(super) fn finished(path: &Path) {
    unfinished().retain(|other| other != path);
}

/// Removes what this process has not finished, for one that is about to end in the middle of it. Nothing can be made
/// or finished by other threads from then on.
pub fn abandon() {
    let unfinished = unfinished();
    for path in unfinished.iter() {
        // Another thread may write into it at this moment; the next process removes the rest.
        for _ in 0..100 {
            let removed = match fs::symlink_metadata(path) {
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
                Ok(_) => fs::remove_file(path),
                Err(_) => break,
            };
            if removed.is_ok() {
                break;
            }
        }
    }
    // Until the end of the process.
    std::mem::forget(unfinished);
}

/// The process in a name.
fn owner(name: &str) -> Option<Owner> {
    let (owner, rest) = Owner::parse(name.strip_prefix(PREFIX)?)?;
    let random = rest.strip_prefix('-')?;
    (random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit())).then_some(owner)
}

/// Removes from a directory what killed processes left there unfinished. Returns the names.
pub fn remove_unfinished(directory: &Path) -> Vec<String> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if owner(&name).is_none_or(Owner::is_alive) {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type());
        let gone = match kind {
            Ok(kind) if kind.is_file() => free(&path) && fs::remove_file(&path).is_ok(),
            Ok(kind) if kind.is_dir() => free(&marker(&path)) && ours::remove_any(&path),
            _ => false,
        };
        // Files of another user, or still in use, stay.
        if gone {
            removed.push(name);
        }
    }
    removed.sort();
    removed
}

/// The file in a directory that is locked; the directory itself if it was not made yet.
fn marker(path: &Path) -> PathBuf {
    let marker = path.join(ours::MARKER);
    if marker.is_file() { marker } else { path.into() }
}

/// The lock is free.
fn free(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_dead_processes_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let dead = format!("{PREFIX}{}-7-0123456789abcdef", 1 << 23);
        let dead_dir = format!("{PREFIX}{}-8-0123456789abcdef", 1 << 23);
        let foreign_dir = format!("{PREFIX}{}-9-0123456789abcdef", 1 << 23);
        let locked = format!("{PREFIX}{}-10-0123456789abcdef", 1 << 23);
        let (live, _) = make(root.path(), |path| File::create_new(path)).unwrap();
        for name in [&dead, &locked, &format!("{PREFIX}x"), &format!("{PREFIX}1-2-short"), &"notes".to_string()] {
            fs::write(at(name), "x").unwrap();
        }
        fs::create_dir_all(at(&dead_dir).join("cpu")).unwrap();
        fs::write(at(&dead_dir).join(ours::MARKER), ours::MARKER_TEXT).unwrap();
        fs::write(at(&dead_dir).join("cpu/0.pages"), "pages").unwrap();
        fs::create_dir(at(&foreign_dir)).unwrap();
        fs::write(at(&foreign_dir).join("thesis"), "years of work").unwrap();
        let lock = File::open(at(&locked)).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let mut expected = [dead.clone(), dead_dir.clone()];
        expected.sort();
        assert_eq!(remove_unfinished(root.path()), expected);
        assert!(live.exists() && at(&locked).exists() && at(&foreign_dir).join("thesis").exists());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 6);
    }
}

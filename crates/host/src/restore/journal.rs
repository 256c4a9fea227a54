//! The journal of a run: a line with its owner, then a line per change, JSON each.
//!
//! Its owner holds a lock (`flock`) on it, which the kernel drops with the process, however it ends and in whatever pid
//! namespace it ran. A journal without a lock is of a run that was killed.

use super::change::{Change, start_of};
use super::folder;
use crate::Error;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// More than any run writes: 64 Ki changes of 256 bytes.
const LARGEST: u64 = 16 << 20;

/// First line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// `/proc/sys/kernel/random/boot_id`: a boot undoes nearly all changes.
    pub boot: String,
    /// Process id of the run.
    pub pid: u32,
    /// When it was started, in clock ticks since boot.
    pub start: u64,
}

impl Owner {
    fn this() -> Owner {
        let pid = std::process::id();
        Owner { boot: boot(), pid, start: start_of(pid).unwrap_or(0) }
    }

    /// True if it still runs, as far as this pid namespace shows.
    pub fn runs(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// This boot.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Holds the lock.
    file: File,
}

impl Journal {
    /// In the folder of journals.
    pub fn create() -> Result<Journal, Error> {
        let owner = Owner::this();
        let name = format!("{}{}-{}.jsonl", folder::PREFIX, owner.pid, owner.start);
        let mut last = None;
        for _ in 0..8 {
            // Another run may remove the folder, which it found empty.
            let path = folder::make()?.join(&name);
            match Journal::create_at(&path, &owner) {
                Ok(file) => return Ok(Journal { path, file }),
                // Several runs of one process.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    let numbered = (1..1000).find_map(|n| {
                        let path = path.with_extension(format!("{n}.jsonl"));
                        Journal::create_at(&path, &owner).ok().map(|file| Journal { path, file })
                    });
                    return numbered.ok_or_else(|| Error::io(path.display().to_string(), e));
                }
                Err(e) => last = Some(Error::io(path.display().to_string(), e)),
            }
        }
        Err(last.unwrap_or_else(|| Error::io(name, io::Error::from(io::ErrorKind::NotFound))))
    }

    pub(super) fn create_at(path: &Path, owner: &Owner) -> io::Result<File> {
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(line(owner)?.as_bytes())?;
        Ok(file)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a change that is about to be made. It is in the kernel's memory then, which outlives this process.
    pub fn append(&mut self, change: &Change) -> Result<(), Error> {
        let fail = |e| Error::io(self.path.display().to_string(), e);
        // A line in one call: a reader finds all of it or a line without an end.
        self.file.write_all(line(change).map_err(fail)?.as_bytes()).map_err(fail)
    }

    /// Everything is undone.
    pub fn remove(self) {
        folder::forget(&self.path);
    }
}

fn line(value: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}

/// A journal that was left, locked by this process now.
#[derive(Debug)]
pub(super) struct Left {
    /// Whose it was.
    pub owner: Owner,
    /// The changes it names.
    pub changes: Vec<Change>,
    /// Lines that name none.
    pub damaged: usize,
    _lock: File,
}

/// Content of a journal.
#[derive(Debug)]
pub(super) enum Found {
    /// It has been dealt with meanwhile.
    Gone,
    /// Its lock is held, by its owner if that runs.
    Locked(Option<Owner>),
    /// It was left.
    Left(Left),
}

/// Looks at a journal.
pub(super) fn look(path: &Path) -> Result<Found, Error> {
    let fail = |e: io::Error| Error::io(path.display().to_string(), e);
    let mut file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Gone),
        Err(e) => return Err(fail(e)),
    };
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
    let of = file.metadata().map_err(fail)?;
    if of.nlink() == 0 {
        return Ok(Found::Gone);
    }
    if !of.is_file() || of.uid() != rustix::process::geteuid().as_raw() || of.len() > LARGEST {
        return Err(fail(io::Error::other("is not a journal of this user")));
    }
    let mut text = String::new();
    Read::by_ref(&mut file).take(LARGEST).read_to_string(&mut text).map_err(fail)?;
    let (owner, changes, damaged) = parse(&text);
    match (locked, owner) {
        (true, owner) => Ok(Found::Locked(owner)),
        (false, Some(owner)) => Ok(Found::Left(Left { owner, changes, damaged, _lock: file })),
        // Killed before its first line: nothing was changed.
        (false, None) => {
            let owner = Owner { boot: boot(), pid: 0, start: 0 };
            Ok(Found::Left(Left { owner, changes: Vec::new(), damaged: 0, _lock: file }))
        }
    }
}

fn parse(text: &str) -> (Option<Owner>, Vec<Change>, usize) {
    // Text after the end of the last line was cut off, and its change not made.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut lines = whole.lines();
    let owner = lines.next().and_then(|line| serde_json::from_str(line).ok());
    let (mut changes, mut damaged) = (Vec::new(), 0);
    for line in lines {
        match serde_json::from_str::<Change>(line) {
            Ok(change) if change.is_sound() => changes.push(change),
            _ => damaged += 1,
        }
    }
    (owner, changes, damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_as_far_as_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("host-1-2.jsonl");
        let owner = Owner::this();
        let file = Journal::create_at(&path, &owner).unwrap();
        let mut journal = Journal { path: path.clone(), file };
        let change = Change::Value { file: "/proc/sys/vm/laptop_mode".into(), before: "0\n".into(), set: vec![1] };
        journal.append(&change).unwrap();
        match look(&path).unwrap() {
            Found::Locked(Some(found)) => assert!(found == owner && found.runs()),
            other => panic!("{other:?}"),
        }
        // A run that was killed while it wrote a line.
        journal.file.write_all(b"{\"change\":\"passwd\"}\n{\"change\":\"val").unwrap();
        drop(journal);
        match look(&path).unwrap() {
            Found::Left(left) => assert_eq!((left.changes, left.damaged), (vec![change], 1)),
            other => panic!("{other:?}"),
        }
        fs::write(&path, "").unwrap();
        assert!(matches!(look(&path).unwrap(), Found::Left(left) if left.changes.is_empty()));
        assert!(matches!(look(&root.path().join("none")).unwrap(), Found::Gone));
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
        assert!(look(&root.path().join("link")).is_err());
    }
}

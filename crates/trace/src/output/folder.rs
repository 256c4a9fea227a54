//! An output directory.

use super::ours::{self, Found, MARKER, MARKER_TEXT};
use super::{beside, existing_parent, failed, followed, refused};
use crate::Error;
use mmtwin_event::manifest::Run;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Kind of an output directory.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A recording: marked, locked, for its owner alone.
    Recording,
    /// Something else, with its permissions and how one of ours is reported: the names of its files, or why it is foreign.
    Other {
        /// Permissions, less those of the umask.
        mode: u32,
        /// Looks at a directory.
        look: fn(&Path) -> io::Result<Found>,
    },
}

/// A directory that is being written. Until [`Folder::publish`] it has a hidden name beside its place; dropped
/// before, it is removed.
pub struct Folder {
    kind: Kind,
    /// As the user named it.
    name: PathBuf,
    /// Where it will be, links followed.
    to: PathBuf,
    /// Where it is.
    path: PathBuf,
    force: bool,
    published: bool,
    /// The lock on it, as long as it is written.
    _lock: Option<File>,
    /// The lock on what it replaces.
    old: Option<File>,
}

impl Folder {
    /// Makes a directory that will be `name`. An existing one that is not empty is an error; with `force` it is
    /// replaced if all of it is ours and no process writes it.
    ///
    /// # Errors
    /// With the obstacle, or the system's error.
    pub fn create(name: &Path, force: bool, kind: Kind) -> Result<Folder, Error> {
        let to = place(name)?;
        let old = look(name, &to, force, kind)?;
        let parent = existing_parent(&to)?;
        beside::remove_unfinished(parent);
        let mut builder = DirBuilder::new();
        builder.mode(match kind {
            Kind::Recording => 0o700,
            Kind::Other { mode, .. } => mode,
        });
        let (path, ()) = beside::make(parent, |path| builder.create(path)).map_err(|error| named(name, error))?;
        let mut folder = Folder { kind, name: name.into(), to, path, force, published: false, _lock: None, old };
        folder._lock = Some(folder.mark().map_err(|e| failed(name, e))?);
        Ok(folder)
    }

    /// Checks whether [`Folder::create`] would refuse, without a write: for callers with long work before it.
    ///
    /// # Errors
    /// As of [`Folder::create`].
    pub fn check(name: &Path, force: bool, kind: Kind) -> Result<(), Error> {
        let to = place(name)?;
        look(name, &to, force, kind)?;
        existing_parent(&to).map(|_| ())
    }

    /// Where it is now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As the user named it, for messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Where it will be or is: its name, links followed.
    pub fn place(&self) -> &Path {
        &self.to
    }

    /// Chooses another name beside the first one, before the directory is published.
    ///
    /// # Errors
    /// As of [`Folder::check`].
    pub fn rename(&mut self, name: &Path) -> Result<(), Error> {
        let to = place(name)?;
        self.old = look(name, &to, self.force, self.kind)?;
        (self.name, self.to) = (name.into(), to);
        Ok(())
    }

    /// Renames it to its final name and removes the directory that had it. Returns files that could not be removed, in
    /// a sentence.
    ///
    /// # Errors
    /// The system's error, or if another file has the name meanwhile: then nothing has changed.
    pub fn publish(&mut self) -> Result<Option<String>, Error> {
        if self.published {
            return Ok(None);
        }
        // The directory may have changed since.
        if self.old.is_none() {
            self.old = look(&self.name, &self.to, self.force, self.kind)?;
        }
        let mut left = None;
        // From here on what has the hidden name may be what is replaced, and that is removed with care.
        beside::finished(&self.path);
        if self.old.is_some() {
            exchange(&self.path, &self.to).map_err(|e| failed(&self.name, e))?;
            // Checked again now that it is no longer reachable by its name. An error of the system may be temporary.
            let removed = self.remove_old().or_else(|_| self.remove_old());
            if let Err(why) = removed {
                left = Some(format!("the previous {} is now {}: {why}", self.name.display(), self.path.display()));
            }
        } else {
            // Onto nothing or an empty directory; anything else is an error.
            fs::rename(&self.path, &self.to).map_err(|e| match e.kind() {
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                    refused(&self.name, "was created by another process; it is not replaced")
                }
                _ => failed(&self.name, e),
            })?;
        }
        self.old = None;
        self.published = true;
        self.path.clone_from(&self.to);
        Ok(left)
    }

    /// Removes what has the hidden name after the exchange. Returns why it stayed.
    fn remove_old(&self) -> Result<(), String> {
        match found(&self.path, self.kind) {
            Ok(Found::Ours(found)) => ours::remove(&self.path, &found).map_err(|e| e.to_string()),
            Ok(Found::Empty) => fs::remove_dir(&self.path).map_err(|e| e.to_string()),
            Ok(Found::Foreign(why)) => Err(why),
            Err(e) => Err(e.to_string()),
        }
    }

    /// Writes the marker and locks it, or the directory itself where there is none.
    fn mark(&self) -> io::Result<File> {
        let file = match self.kind {
            Kind::Recording => {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create_new(true).mode(0o600).open(self.path.join(MARKER))?
            }
            Kind::Other { .. } => File::open(&self.path)?,
        };
        // Some file systems have no locks; a recording there is only not protected from a second recorder.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if matches!(self.kind, Kind::Recording) {
            (&file).write_all(MARKER_TEXT.as_bytes())?;
        }
        Ok(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.published && fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.is_dir()) {
            // Made by this process under a name of its own: all of it is ours.
            let _ = fs::remove_dir_all(&self.path);
        }
        beside::finished(&self.path);
    }
}

fn found(path: &Path, kind: Kind) -> io::Result<Found> {
    match kind {
        Kind::Recording => ours::recording(path),
        Kind::Other { look, .. } => look(path),
    }
}

/// Where a directory of this name will be.
fn place(name: &Path) -> Result<PathBuf, Error> {
    let Some(leaf) = name.file_name() else {
        return Err(refused(name, "is not a valid name for a new directory"));
    };
    // Without a slash at the end, which would follow a link.
    followed(&super::parent(name).join(leaf)).map_err(|error| named(name, error))
}

/// Refuses what may not be replaced. Returns the lock on what may be and is not empty.
fn look(name: &Path, to: &Path, force: bool, kind: Kind) -> Result<Option<File>, Error> {
    let what = match kind {
        Kind::Recording => "a recording",
        Kind::Other { .. } => "a directory",
    };
    match fs::symlink_metadata(to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(name, e)),
        Ok(meta) if !meta.is_dir() => {
            return Err(refused(name, format!("exists and is not {what}; it is not replaced")));
        }
        Ok(_) => {}
    }
    let files = match found(to, kind).map_err(|e| failed(name, e))? {
        Found::Empty => return Ok(None),
        Found::Foreign(why) => return Err(refused(name, why)),
        Found::Ours(files) => files,
    };
    let locked = File::open(files.iter().find(|path| path.ends_with(MARKER)).map_or(to, PathBuf::as_path));
    let locked = locked.map_err(|e| failed(name, e))?;
    if flock(&locked, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        let run = fs::read(to.join("run.json")).ok().and_then(|text| serde_json::from_slice::<Run>(&text).ok());
        let writer = run.map_or("another mmtwin".to_string(), |run| format!("mmtwin with pid {}", run.pid));
        return Err(refused(name, format!("is being written by {writer}; stop it first, or choose another name")));
    }
    match force {
        true => Ok(Some(locked)),
        false => Err(refused(name, format!("exists and is {what}; -f replaces it, -o selects another name"))),
    }
}

/// An error that names the output as the user did.
fn named(name: &Path, error: Error) -> Error {
    match error {
        Error::Output { message, .. } => refused(name, message),
        Error::Io { source, .. } => failed(name, source),
        other => other,
    }
}

/// Exchanges two directories, at once where the file system can.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return Ok(done?),
    }
    let aside = new.with_extension("old");
    fs::rename(old, &aside)?;
    if let Err(e) = fs::rename(new, old) {
        // As it was; if that fails too, the message names what is missing.
        let _ = fs::rename(&aside, old);
        return Err(e);
    }
    fs::rename(&aside, new)
}

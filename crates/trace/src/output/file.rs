//! An output file.

use super::{beside, existing_parent, failed, followed, parent, refused};
use crate::Error;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, open};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that is being written. Dropped without [`FileOutput::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct FileOutput {
    file: File,
    /// As the user named it.
    name: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// A device, a FIFO, a descriptor: written bytes cannot be taken back.
    Through,
    /// A regular file, which appears whole.
    Place { place: PathBuf, beside: Beside, force: bool },
}

#[derive(Debug)]
enum Beside {
    /// Without a name (`O_TMPFILE`): removed with this process, however it ends.
    Nameless,
    Named(PathBuf),
}

/// Kind of the file at the place of an output.
enum At {
    Nothing(PathBuf),
    Regular(PathBuf),
    Through(PathBuf),
    Descriptor(u32),
}

impl FileOutput {
    /// Opens an output. `-` is standard output. A regular file that is there is an error without `force`; with it, it
    /// is replaced by [`FileOutput::commit`]. `mode` are the permissions of a new file, less those of the umask.
    ///
    /// # Errors
    /// A place that cannot be written is refused with its reason: a directory, a socket, a dangling link, a name in a
    /// missing directory.
    pub fn open(name: &Path, force: bool, mode: u32) -> Result<FileOutput, Error> {
        let made = |file, to| FileOutput { file, name: name.into(), to };
        match at(name, force)? {
            At::Descriptor(number) => Ok(made(descriptor(name, number)?, To::Through)),
            At::Through(path) => {
                let file = OpenOptions::new().write(true).open(path).map_err(|e| failed(name, e))?;
                Ok(made(file, To::Through))
            }
            At::Nothing(place) | At::Regular(place) => {
                let directory = existing_parent(&place)?;
                beside::remove_unfinished(directory);
                let (file, beside) = nameless(directory, mode).map_or_else(|| named(directory, mode), Ok)?;
                Ok(made(file, To::Place { place, beside, force }))
            }
        }
    }

    /// Checks whether [`FileOutput::open`] would refuse, without a write: for callers with long work before it.
    ///
    /// # Errors
    /// As of [`FileOutput::open`].
    pub fn check(name: &Path, force: bool) -> Result<(), Error> {
        match at(name, force)? {
            At::Nothing(place) => existing_parent(&place).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The destination.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A directory for temporary files of the same size: that of the output, or of the system if it has none.
    pub fn spool(&self) -> PathBuf {
        match &self.to {
            To::Through => std::env::temp_dir(),
            To::Place { place, .. } => parent(place).into(),
        }
    }

    /// Writes all of it and commits.
    ///
    /// # Errors
    /// The system's error; no file is left behind then.
    pub fn write(self, bytes: &[u8]) -> Result<(), Error> {
        (&self.file).write_all(bytes).map_err(|e| failed(&self.name, e))?;
        self.commit()
    }

    /// Renames a regular file to its final name. The replaced file exists until then.
    ///
    /// # Errors
    /// The system's error; without `force` also a file that another program made meanwhile. No file is left behind or
    /// replaced then.
    pub fn commit(mut self) -> Result<(), Error> {
        let To::Place { place, beside, force } = &mut self.to else { return Ok(()) };
        let fail = |e: Errno| match e {
            Errno::EXIST => refused(&self.name, "was created by another process; it is not replaced"),
            e => failed(&self.name, e),
        };
        let replaces = *force && fs::symlink_metadata(&*place).is_ok();
        if replaces {
            // This removes the old one: the new one must be on the disk.
            self.file.sync_all().map_err(|e| failed(&self.name, e))?;
        }
        match beside {
            Beside::Nameless if !replaces => link(&self.file, place).map_err(fail)?,
            Beside::Nameless => {
                let directory = parent(place).to_path_buf();
                let file = &self.file;
                let (path, ()) = beside::make(&directory, |path| Ok(link(file, path)?))?;
                *beside = Beside::Named(path);
            }
            Beside::Named(path) if !replaces => {
                // A link fails where something is; a rename would replace it.
                rustix::fs::link(&*path, &*place).map_err(fail)?;
            }
            Beside::Named(_) => {}
        }
        if let (Beside::Named(path), true) = (&*beside, replaces) {
            fs::rename(path, &*place).map_err(|e| failed(&self.name, e))?;
            beside::finished(path);
            *beside = Beside::Nameless;
        }
        Ok(())
    }
}

impl Drop for FileOutput {
    fn drop(&mut self) {
        if let To::Place { beside: Beside::Named(path), .. } = &self.to {
            // The unfinished file, or the second name of the finished one.
            let _ = fs::remove_file(path);
            beside::finished(path);
        }
    }
}

/// Looks at what is there, and refuses what cannot be an output.
fn at(name: &Path, force: bool) -> Result<At, Error> {
    if let Some(number) = descriptor_of(name) {
        return Ok(At::Descriptor(number));
    }
    if name.as_os_str().as_encoded_bytes().ends_with(b"/") || name.file_name().is_none() {
        return Err(refused(name, "is the name of a directory, not of a file"));
    }
    let path = followed(name)?;
    if let Some(number) = descriptor_of(&path) {
        return Ok(At::Descriptor(number));
    }
    let kind = match fs::symlink_metadata(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(At::Nothing(path)),
        Err(e) => return Err(failed(name, e)),
        Ok(meta) => meta.file_type(),
    };
    if kind.is_dir() {
        Err(refused(name, "is a directory"))
    } else if kind.is_socket() {
        Err(refused(name, "is a socket, which cannot be written"))
    } else if (kind.is_file() || kind.is_block_device()) && !force {
        Err(refused(name, "exists; -f replaces it"))
    } else if kind.is_file() {
        Ok(At::Regular(path))
    } else {
        Ok(At::Through(path))
    }
}

/// The number of an open descriptor that a name stands for. Its file is written at the descriptor's position, as by any
/// program; opened by its name, it would be written from its start.
fn descriptor_of(name: &Path) -> Option<u32> {
    let text = name.to_str()?;
    let number = || {
        let own = format!("/proc/{}/fd/", std::process::id());
        ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own].iter().find_map(|p| text.strip_prefix(*p))
    };
    match text {
        "-" | "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => number()?.parse().ok(),
    }
}

/// A copy of a descriptor that this process was started with.
fn descriptor(name: &Path, number: u32) -> Result<File, Error> {
    let copied = match number {
        1 => std::io::stdout().as_fd().try_clone_to_owned(),
        2 => std::io::stderr().as_fd().try_clone_to_owned(),
        _ => {
            // Through the kernel's own name of it: the number may be closed or reused.
            let path = format!("/proc/self/fd/{number}");
            return match OpenOptions::new().append(true).open(&path) {
                Ok(file) => Ok(file),
                Err(e) => Err(failed(name, e)),
            };
        }
    };
    copied.map(File::from).map_err(|e| failed(name, e))
}

/// A file without a name, where the file system has such.
fn nameless(directory: &Path, mode: u32) -> Option<(File, Beside)> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(directory, flags, Mode::from_raw_mode(mode)).ok()?);
    // It is linked to its name through /proc.
    Path::new(&proc_path(&file)).exists().then_some((file, Beside::Nameless))
}

fn named(directory: &Path, mode: u32) -> Result<(File, Beside), Error> {
    let mut options = OpenOptions::new();
    // Implies that a symbolic link is not followed.
    options.write(true).create_new(true).mode(mode);
    let (path, file) = beside::make(directory, |path| options.open(path))?;
    // So that it does not count as an abandoned one; some file systems have no locks.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok((file, Beside::Named(path)))
}

fn proc_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Gives a file without a name one that is free.
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    linkat(CWD, proc_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)
}

/// Permissions for files made of an input: readable only by users that may read the input. `-` and inputs without
/// metadata have those of any new file.
pub fn mode_of(input: &Path) -> u32 {
    let mode = |path: &Path| fs::metadata(path).ok().map(|meta| meta.permissions().mode() & 0o666);
    if input == Path::new("-") {
        let file = std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
        let meta = file.and_then(|file| file.metadata()).ok().filter(|meta| meta.is_file());
        return meta.map_or(0o666, |meta| meta.permissions().mode() & 0o666);
    }
    let manifest = mode(&input.join("manifest.json")).unwrap_or(0o666);
    match fs::metadata(input) {
        Ok(meta) if meta.is_dir() || meta.is_file() => mode(input).unwrap_or(0o666) & manifest,
        _ => 0o666,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on file systems without files that have no name.
    #[test]
    fn a_named_file_appears_whole_too() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("a.txt");
        let open = |force| {
            let (file, beside) = named(root.path(), 0o600).unwrap();
            FileOutput { file, name: place.clone(), to: To::Place { place: place.clone(), beside, force } }
        };
        let count = || fs::read_dir(root.path()).unwrap().count();
        drop(open(false));
        assert_eq!(count(), 0);
        open(false).write(b"one").unwrap();
        assert!(open(false).write(b"two").is_err(), "it was made meanwhile");
        assert_eq!((fs::read(&place).unwrap(), count()), (b"one".to_vec(), 1));
        open(true).write(b"three").unwrap();
        assert_eq!((fs::read(&place).unwrap(), count()), (b"three".to_vec(), 1));
    }
}

//! Files that belong to an input: regular ones only, and never more of them than is said.
//!
//! A recording or a saved `/proc` may come from anywhere. What stands in the place of a file (a FIFO, a device, a
//! directory, a link to one of them) is refused before it is opened, so nothing waits and nothing grows.

use crate::Error;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a text that is kept in memory: manifests, saved `/proc` files, format texts.
pub(crate) const MAX_TEXT: u64 = 64 << 20;

/// Opens a regular file to read it; `None` if there is none of that name.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Error> {
    let fail = |e: io::Error| Error::io(&path.to_string_lossy(), e);
    let regular = |kind: std::fs::FileType| match kind.is_file() {
        true => Ok(()),
        false => Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))),
    };
    match path.metadata() {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        other => regular(other.map_err(fail)?.file_type())?,
    }
    // What was put there since is not waited for either.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|e| fail(e.into()))?);
    regular(file.metadata().map_err(fail)?.file_type())?;
    Ok(Some(file))
}

/// Bytes of a regular file; `None` if there is none of that name. More than `limit` bytes are an error.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    match open(path)? {
        Some(file) => all(&path.to_string_lossy(), file, limit).map(Some),
        None => Ok(None),
    }
}

/// All bytes of a source, which is called `name`. More than `limit` bytes are an error.
pub(crate) fn all(name: &str, source: impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::io(name, e))?;
    if bytes.len() as u64 > limit {
        let message = format!("longer than the {} MiB that are read of such a file", limit >> 20);
        return Err(Error::io(name, io::Error::new(io::ErrorKind::FileTooLarge, message)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("text");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read(&file, 5).unwrap().unwrap(), b"12345");
        assert!(read(&file, 4).unwrap_err().to_string().contains("longer than"));
        assert!(read(&dir.path().join("none"), 5).unwrap().is_none());
        assert!(read(&file.join("below"), 5).unwrap().is_none());
        // Neither a FIFO without a writer nor an endless device is waited for.
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [fifo.as_path(), dir.path(), Path::new("/dev/zero")] {
            assert!(read(path, 5).unwrap_err().to_string().contains("not a regular file"), "{path:?}");
        }
    }
}

//! Output of the guest: a file system in a part of its memory.

use crate::Error;
use crate::plan::Region;
use ext4_view::{Ext4, Ext4Read, PathBuf as GuestPath};
use mmtwin_trace::output::ours::MARKER;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Directory of the recording in its file system.
const OUT: &str = "/out";

/// A file system somewhere in a file.
struct Part {
    file: File,
    offset: u64,
}

impl Ext4Read for Part {
    fn read(&mut self, start: u64, to: &mut [u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.file.seek(SeekFrom::Start(self.offset + start))?;
        Ok(self.file.read_exact(to)?)
    }
}

/// Copies the recording out of the file that is the memory of its node, into a directory.
pub(crate) fn copy(memory: &Path, region: &Region, into: &Path) -> Result<(), Error> {
    let copy = || {
        let part = Part { file: File::open(memory)?, offset: region.offset };
        let system = Ext4::load(Box::new(part))?;
        directory(&system, GuestPath::new(OUT), into)
    };
    copy().map_err(|e| Error::io(format!("copying the recording to {}", into.display()), e))
}

fn directory(system: &Ext4, from: GuestPath, into: &Path) -> io::Result<()> {
    for entry in system.read_dir(&from)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_str().map_err(|_| io::Error::other("a name that is not UTF-8"))?;
        if name == "." || name == ".." {
            continue;
        }
        let kind = entry.file_type()?;
        if name == MARKER && into.join(name).exists() {
            // That of this machine is locked.
        } else if kind.is_dir() {
            fs::DirBuilder::new().mode(0o700).create(into.join(name))?;
            directory(system, entry.path(), &into.join(name))?;
        } else if kind.is_regular_file() {
            write(&into.join(name), &system.read(&entry.path())?)?;
        } else {
            return Err(io::Error::other(format!("{name} is neither a file nor a directory")));
        }
    }
    Ok(())
}

/// Writes a file of a recording, which only its owner may read.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    File::options().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Delay, Use};

    #[test]
    fn an_image_without_file_system_is_an_error() {
        let place = tempfile::tempdir().expect("directory");
        let memory = place.path().join("memory");
        fs::write(&memory, [7; 8192]).expect("written");
        let region = Region {
            used_for: Use::Recording,
            address: 1 << 30,
            size: 1 << 20,
            node: 0,
            offset: 4096,
            delay: Delay::None,
        };
        assert!(matches!(copy(&memory, &region, &place.path().join("out")), Err(Error::Io { .. })));
        assert!(!place.path().join("out").exists());
    }
}

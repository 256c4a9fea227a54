//! Files that are kept open and read from their beginning again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that a buffer grows by.
const CHUNK: usize = 16 << 10;
/// The kernel gives a file in parts of nearly a page at least; what is shorter than this is the last one.
const SHORT: usize = 3 << 10;

/// A file of `/proc`, `/sys` or a cgroup.
#[derive(Debug)]
pub struct OpenFile(File);

impl OpenFile {
    /// Opens it; `None` if it is not there or may not be read.
    pub fn open(path: &Path) -> Option<OpenFile> {
        File::open(path).ok().map(OpenFile)
    }

    /// Its text now, in a buffer that is used again; `None` if it is gone.
    pub fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
        let mut filled = 0;
        loop {
            if buffer.len() < filled + CHUNK {
                buffer.resize(filled + CHUNK, 0);
            }
            let read = self.0.read_at(&mut buffer[filled..], filled as u64).ok()?;
            filled += read;
            if read < SHORT {
                return std::str::from_utf8(&buffer[..filled]).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_as_it_is_now() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        let long = "x".repeat(3 * CHUNK);
        std::fs::write(&path, &long).unwrap();
        let (kept, mut buffer) = (OpenFile::open(&path).unwrap(), Vec::new());
        assert_eq!(kept.read(&mut buffer), Some(long.as_str()));
        std::fs::write(&path, "short").unwrap();
        assert_eq!(kept.read(&mut buffer), Some("short"));
        assert!(OpenFile::open(&root.path().join("none")).is_none());
        let mut whole = Vec::new();
        let vmstat = OpenFile::open(Path::new("/proc/vmstat")).unwrap();
        let lines = vmstat.read(&mut whole).unwrap().lines().count();
        assert_eq!(lines, std::fs::read_to_string("/proc/vmstat").unwrap().lines().count());
    }
}

//! What left the guest: in the hole, a page that says how it ended, and an archive of the recording.

use crate::Error;
use crate::plan::Region;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The page before the archive.
const HEADER: u64 = 4096;

/// How a guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    kind: String,
    number: u64,
    message: String,
}

/// The hole in the file that is the memory of its node.
fn open(memory: &Path, hole: &Region) -> io::Result<io::Take<File>> {
    let mut file = File::open(memory)?;
    file.seek(SeekFrom::Start(hole.offset))?;
    Ok(file.take(hole.size))
}

/// Reads how the guest ended; `None`: it did not say.
pub(crate) fn end(memory: &Path, hole: &Region) -> Result<Option<End>, Error> {
    let mut header = Vec::new();
    let mut read = || open(memory, hole)?.take(HEADER).read_to_end(&mut header);
    read().map_err(|e| Error::io(memory.display(), e))?;
    Ok(parse(&header))
}

fn parse(header: &[u8]) -> Option<End> {
    let end = header.iter().position(|byte| *byte == 0).unwrap_or(header.len());
    let text = String::from_utf8_lossy(&header[..end]);
    let (first, message) = text.split_once('\n')?;
    let mut words = first.strip_prefix("mmtwin-lab ")?.split(' ');
    let (kind, number) = (words.next()?.to_string(), words.next()?.parse().ok()?);
    Some(End { kind, number, message: message.trim_end().to_string() })
}

impl End {
    /// An error, unless the workload ended well. `killed` is what the kernel said if it ran out of memory.
    pub fn check(self, room: u64, killed: Option<&str>, console: Vec<String>) -> Result<(), Error> {
        match (self.kind.as_str(), killed) {
            ("done", _) => Ok(()),
            ("workload", Some(message)) => Err(Error::GuestMemory { message: message.into(), console }),
            ("workload", None) => {
                let message = if self.message.is_empty() { "it gave no reason".into() } else { self.message };
                // An exit status is below 256.
                Err(Error::Workload { status: self.number as i32, message })
            }
            ("full", _) => Err(Error::Results { size: self.number, room }),
            _ => Err(Error::SetUp { message: self.message }),
        }
    }
}

/// Unpacks the archive into a directory.
pub(crate) fn unpack(memory: &Path, hole: &Region, into: &Path) -> Result<(), Error> {
    let unpack = || {
        let mut hole = open(memory, hole)?;
        io::copy(&mut (&mut hole).take(HEADER), &mut io::sink())?;
        let mut archive = tar::Archive::new(io::BufReader::new(hole));
        archive.set_preserve_mtime(false);
        archive.set_preserve_permissions(false);
        archive.unpack(into)
    };
    unpack().map_err(|e| Error::io(format!("unpacking the recording into {}", into.display()), e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Use;

    #[test]
    fn how_it_ended() {
        let mut page = b"mmtwin-lab workload 3\nno such node\n".to_vec();
        page.resize(4096, 0);
        let end = parse(&page).expect("an end");
        assert!(
            matches!(end.clone().check(0, None, vec![]), Err(Error::Workload { status: 3, message }) if message == "no such node")
        );
        assert!(matches!(end.check(0, Some("Out of memory"), vec![]), Err(Error::GuestMemory { .. })));
        let of = |text: &str| parse(text.as_bytes()).expect("an end").check(64, None, vec![]);
        assert!(of("mmtwin-lab done 0\n").is_ok());
        assert!(matches!(of("mmtwin-lab full 99\n"), Err(Error::Results { size: 99, room: 64 })));
        assert!(
            matches!(of("mmtwin-lab set-up 0\nmount: no\n"), Err(Error::SetUp { message }) if message == "mount: no")
        );
        assert_eq!(parse(&[0; 4096]), None);
        assert_eq!(parse(b"mmtwin-lab done\n"), None);
    }

    #[test]
    fn an_archive_behind_the_first_page() {
        let directory = tempfile::tempdir().expect("directory");
        let offset = 2 << 20;
        let mut results = vec![0; offset];
        results.extend(b"mmtwin-lab done 0\n");
        results.resize(offset + 4096, 0);
        let mut archive = tar::Builder::new(&mut results);
        let mut header = tar::Header::new_ustar();
        header.set_size(3);
        header.set_mode(0o644);
        archive.append_data(&mut header, "./cpu/0.pages", &b"abc"[..]).expect("appended");
        archive.finish().expect("finished");
        drop(archive);
        results.resize(offset + (1 << 20), 7);
        let path = directory.path().join("results");
        std::fs::write(&path, results).expect("written");
        let out = directory.path().join("out");
        let hole = Region { used_for: Use::Results, address: 1 << 30, size: 1 << 20, node: 0, offset: offset as u64 };
        assert!(end(&path, &hole).expect("read").expect("an end").check(0, None, vec![]).is_ok());
        unpack(&path, &hole, &out).expect("unpacked");
        assert_eq!(std::fs::read(out.join("cpu/0.pages")).expect("a file"), b"abc");
    }
}

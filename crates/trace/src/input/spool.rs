//! Temporary files for what must be unpacked before it can be read, and their bounds.
//!
//! At most half of the free space in the temporary directory is used, and never more than [`MOST`]; what unpacks to more
//! than [`RATIO`] times its size is refused. Files have no name, so nothing is left behind, however this ends.

use crate::{Error, Place};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::rc::Rc;

/// Most bytes that are unpacked.
pub(super) const MOST: u64 = 16 << 30;
/// Unpacked bytes per packed byte that are believed beyond [`FREE`]. Pages of ring buffers come to some tens.
const RATIO: u64 = 200;
/// Bytes for which no ratio is asked.
const FREE: u64 = 256 << 20;

/// What an input is unpacked from. It counts.
pub(super) struct Source {
    input: Box<dyn Read>,
    taken: Rc<Cell<u64>>,
}

impl Source {
    /// A source, and the number of bytes taken from it so far.
    pub fn new(input: Box<dyn Read>) -> (Source, Rc<Cell<u64>>) {
        let taken = Rc::new(Cell::new(0));
        (Source { input, taken: taken.clone() }, taken)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if super::interrupts::seen() {
            return Err(io::Error::other("interrupted"));
        }
        let n = self.input.read(buffer)?;
        self.taken.set(self.taken.get() + n as u64);
        Ok(n)
    }
}

/// Room for what one input unpacks to.
pub(super) struct Room<'n> {
    name: &'n str,
    taken: Rc<Cell<u64>>,
    limit: u64,
    used: u64,
}

impl<'n> Room<'n> {
    /// All the room of an input, of which `taken` bytes have been read.
    pub fn new(name: &'n str, taken: &Rc<Cell<u64>>) -> Room<'n> {
        let free =
            rustix::fs::statvfs(std::env::temp_dir()).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
        Room { name, taken: taken.clone(), limit: MOST.min(free / 2), used: 0 }
    }

    /// Copies all of `from`. Gives the number of bytes.
    pub fn copy(&mut self, from: &mut dyn Read, to: &mut File) -> Result<u64, Error> {
        let mut buffer = vec![0; 256 << 10];
        let mut copied = 0;
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => return Ok(copied),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::io(self.name, e)),
            };
            copied += n as u64;
            self.use_up(n as u64)?;
            to.write_all(&buffer[..n]).map_err(|e| temporary(self.name, e))?;
        }
    }

    fn use_up(&mut self, bytes: u64) -> Result<(), Error> {
        self.used += bytes;
        let refuse = |message| Err(Error::at(Place::file(self.name), message));
        if self.used > self.limit {
            return refuse(format!(
                "unpacks to more than the {} MiB allowed in the temporary directory {} (half of the free space, \
                 at most {} GiB): unpack it manually, or set TMPDIR",
                self.limit >> 20,
                std::env::temp_dir().display(),
                MOST >> 30
            ));
        }
        if self.used > FREE.max(self.taken.get().saturating_mul(RATIO)) {
            return refuse(format!(
                "unpacks to more than {RATIO} times its size, which is implausible for a trace: unpack it manually"
            ));
        }
        Ok(())
    }
}

/// An error of the temporary directory, while `name` was unpacked.
pub(super) fn temporary(name: &str, error: io::Error) -> Error {
    let directory = std::env::temp_dir();
    let message = format!("unpacking {name} in the temporary directory: {error}");
    Error::io(&directory.to_string_lossy(), io::Error::new(error.kind(), message))
}

/// All of a stream in a file without a name.
pub(super) fn spool(name: &str, input: Option<Box<dyn Read>>, taken: &Rc<Cell<u64>>) -> Result<File, Error> {
    let mut file = tempfile::tempfile().map_err(|e| temporary(name, e))?;
    if let Some(mut input) = input {
        Room::new(name, taken).copy(&mut input, &mut file)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ends_at_its_limit_and_at_its_ratio() {
        let (mut source, taken) = Source::new(Box::new(io::repeat(1)));
        source.read_exact(&mut [0; 1000]).unwrap();
        let mut room = Room { name: "x", taken: taken.clone(), limit: 1 << 20, used: 0 };
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(room.copy(&mut io::repeat(0).take(1 << 20), &mut file).unwrap(), 1 << 20);
        let error = room.copy(&mut io::repeat(0), &mut file).unwrap_err().to_string();
        assert!(error.contains("temporary directory") && error.contains("more than the 1 MiB"), "{error}");
        let mut room = Room { name: "x", taken, limit: u64::MAX, used: FREE };
        let error = room.copy(&mut io::repeat(0), &mut file).unwrap_err().to_string();
        assert!(error.contains("200 times"), "{error}");
    }
}

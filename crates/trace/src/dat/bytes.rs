//! Checked reading of numbers, strings and runs of bytes, with the place of whatever is missing.

use crate::{Error, Place};

/// Walks a run of bytes of a file, or of a decompressed section of it.
pub(super) struct Reader<'b> {
    file: &'b str,
    data: &'b [u8],
    at: usize,
    /// Offset in the file of `data[0]`, or of the section that `data` was decompressed from.
    base: u64,
    decompressed: bool,
    big_endian: bool,
}

impl<'b> Reader<'b> {
    /// A reader of `data`, which lies at `base` of `file`.
    pub fn new(file: &'b str, data: &'b [u8], base: u64, big_endian: bool) -> Reader<'b> {
        Reader { file, data, at: 0, base, decompressed: false, big_endian }
    }

    /// The same for bytes that were decompressed from a section at `base`.
    pub fn decompressed(file: &'b str, data: &'b [u8], base: u64, big_endian: bool) -> Reader<'b> {
        Reader { decompressed: true, ..Reader::new(file, data, base, big_endian) }
    }

    /// Where the next byte lies in the file; for decompressed bytes, where their section begins.
    pub fn offset(&self) -> u64 {
        self.base + if self.decompressed { 0 } else { self.at as u64 }
    }

    /// The same as a place.
    pub fn place(&self) -> Place {
        Place::offset(self.file, self.offset())
    }

    /// Goes to byte `at` of the run.
    pub fn seek(&mut self, at: u64) {
        self.at = usize::try_from(at).unwrap_or(usize::MAX).min(self.data.len());
    }

    /// All that is left.
    pub fn rest(&self) -> &'b [u8] {
        &self.data[self.at..]
    }

    /// The byte order of the numbers from here on.
    pub fn set_big_endian(&mut self, big_endian: bool) {
        self.big_endian = big_endian;
    }

    /// The next `n` bytes; `what` they are is said if they are not there. The message has no numbers in it, so
    /// that as a warning it is counted, not repeated.
    pub fn take(&mut self, n: u64, what: &str) -> Result<&'b [u8], Error> {
        match usize::try_from(n).ok().and_then(|n| self.rest().get(..n)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => {
                Err(Error::at(self.place(), format!("{what} reaches beyond the end of the file or of its section")))
            }
        }
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64, what)?);
        if self.big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// One byte.
    pub fn u8(&mut self, what: &str) -> Result<u8, Error> {
        Ok(self.array::<1>(what)?[0])
    }
    /// A 16-bit number.
    pub fn u16(&mut self, what: &str) -> Result<u16, Error> {
        self.array(what).map(u16::from_le_bytes)
    }
    /// A 32-bit number.
    pub fn u32(&mut self, what: &str) -> Result<u32, Error> {
        self.array(what).map(u32::from_le_bytes)
    }
    /// A 64-bit number.
    pub fn u64(&mut self, what: &str) -> Result<u64, Error> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Characters up to a NUL, which is read too.
    pub fn string(&mut self, what: &str) -> Result<String, Error> {
        match memchr::memchr(0, self.rest()) {
            Some(n) => {
                let text = String::from_utf8_lossy(&self.rest()[..n]).into_owned();
                self.at += n + 1;
                Ok(text)
            }
            None => Err(Error::at(self.place(), format!("{what} does not end"))),
        }
    }

    /// Exactly these bytes.
    pub fn expect(&mut self, bytes: &[u8], what: &str) -> Result<(), Error> {
        let place = self.place();
        if self.take(bytes.len() as u64, what)? != bytes {
            return Err(Error::at(place, format!("{what} expected here")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_byte_order() {
        let data = [1, 2, 0, 0, 0, 3, b'a', 0, 9];
        let mut r = Reader::new("f", &data, 100, false);
        assert_eq!(r.u16("x").unwrap(), 0x201);
        r.set_big_endian(true);
        assert_eq!(r.u32("x").unwrap(), 3);
        assert_eq!(r.string("x").unwrap(), "a");
        assert_eq!(r.offset(), 108);
        let error = r.u64("a size").unwrap_err().to_string();
        assert_eq!(error, "f: offset 0x6c: a size reaches beyond the end of the file or of its section");
        r.seek(u64::MAX);
        assert!(r.rest().is_empty());
    }
}

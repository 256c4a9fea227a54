//! Compressed pages: `cpu/N.pages.zst`, zstd frames one behind the other.
//!
//! A frame holds whole sub-buffers and says how many bytes they are, so that a reader needs to unpack no more than one
//! at a time, and a killed recorder loses nothing that was written before. Other frames than these are not read: the
//! first that is incomplete, damaged or too large ends the file.

use crate::dat::{Codec, Expander, MAX_PIECE};
use crate::ring::Pages;
use crate::{Error, Place};
use std::borrow::Cow;
use std::io;
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

/// What the files are called, behind the number of their CPU.
pub(crate) const SUFFIX: &str = ".pages.zst";

/// Makes frames.
pub struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    frame: Vec<u8>,
}

impl Packer {
    /// With a level of zstd, from 1 (fast) to 22 (small).
    ///
    /// # Errors
    /// If the library has no memory.
    pub fn new(level: i32) -> io::Result<Packer> {
        Ok(Packer { compressor: zstd::bulk::Compressor::new(level)?, frame: Vec::new() })
    }

    /// The frame of some whole sub-buffers, at most [`MAX_PIECE`] bytes.
    ///
    /// # Errors
    /// What the library says.
    pub fn pack(&mut self, pages: &[u8]) -> io::Result<&[u8]> {
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(pages.len()));
        self.compressor.compress_to_buffer(pages, &mut self.frame)?;
        Ok(&self.frame)
    }
}

/// Length of the first frame of some bytes, and of what it holds; `None` if it is not whole, or no frame of pages.
fn frame(bytes: &[u8], page_size: usize) -> Option<(usize, usize)> {
    let packed = find_frame_compressed_size(bytes).ok().filter(|&packed| packed > 0 && packed <= bytes.len())?;
    let size = usize::try_from(get_frame_content_size(bytes).ok()??).ok()?;
    (size > 0 && size <= MAX_PIECE && size.is_multiple_of(page_size)).then_some((packed, size))
}

/// Bytes of the whole frames that a file begins with.
pub(super) fn whole(bytes: &[u8], page_size: usize) -> usize {
    let mut whole = 0;
    while let Some((packed, _)) = frame(&bytes[whole..], page_size) {
        whole += packed;
    }
    whole
}

/// Pages in frames, unpacked when it is their turn.
pub(super) struct PackedPages<'a> {
    file: String,
    rest: &'a [u8],
    page_size: usize,
    /// Where the frame before `rest` begins in the file.
    offset: u64,
    /// Where `rest` begins.
    next: u64,
}

impl<'a> PackedPages<'a> {
    /// Those of whole frames.
    pub fn new(file: &str, frames: &'a [u8], page_size: usize) -> PackedPages<'a> {
        PackedPages { file: file.into(), rest: frames, page_size, offset: 0, next: 0 }
    }
}

impl<'a> Pages<'a> for PackedPages<'a> {
    fn next_chunk(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error> {
        let Some((packed, size)) = frame(self.rest, self.page_size) else { return Ok(None) };
        let (piece, rest) = self.rest.split_at(packed);
        (self.rest, self.offset) = (rest, self.next);
        self.next += packed as u64;
        let mut expander = Expander::new(Codec::Zstd).map_err(|e| Error::io(&self.file, e))?;
        let pages = expander.expand(piece, size).map_err(|why| Error::at(self.place(), why))?;
        Ok(Some(Cow::Owned(pages)))
    }
    fn place(&self) -> Place {
        Place::offset(&self.file, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_far_as_they_are_whole() {
        let mut packer = Packer::new(1).unwrap();
        let runs = [vec![1u8; 256], (0..128u8).collect(), vec![7; 1024]];
        let mut file = Vec::new();
        let mut ends = vec![0];
        for run in &runs {
            file.extend(packer.pack(run).unwrap());
            ends.push(file.len());
        }
        for length in 0..=file.len() {
            let frames = ends.iter().filter(|&&end| end <= length).count() - 1;
            assert_eq!(whole(&file[..length], 128), ends[frames], "{length}");
            let mut pages = PackedPages::new("x", &file[..ends[frames]], 128);
            for run in &runs[..frames] {
                assert_eq!(pages.next_chunk().unwrap().unwrap(), &run[..]);
            }
            assert!(pages.next_chunk().unwrap().is_none());
        }
        // A frame that holds parts of sub-buffers is none of pages.
        assert_eq!(whole(&file, 200), 0);
    }

    #[test]
    fn a_damaged_frame_is_an_error_or_ends_the_file() {
        let mut packer = Packer::new(3).unwrap();
        let file = packer.pack(&[5; 4096]).unwrap().to_vec();
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x55;
            let length = whole(&damaged, 128);
            let mut pages = PackedPages::new("x", &damaged[..length], 128);
            // Whatever comes, it ends.
            while let Ok(Some(_)) = pages.next_chunk() {}
        }
    }
}

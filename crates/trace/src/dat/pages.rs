//! The buffers of a trace.dat: ring-buffer pages by CPU, or text.
//!
//! Plain pages are slices of the mapped file. Compressed ones are a u32 number of chunks and, for each chunk, its
//! length in the file, its length, and the bytes; one chunk is decompressed at a time. A chunk that is damaged
//! gives an error, and the next call continues with the chunk behind it.

use super::bytes::Reader;
use super::codec::{Codec, Expander, MAX_PIECE};
use super::meta::Meta;
use crate::ring::{CpuStream, PageLayout, Pages, SlicePages};
use crate::{Error, Place};
use std::borrow::Cow;
use std::io::Read;

/// One ring buffer: the top one or that of an instance.
#[derive(Clone, Debug)]
pub struct Buffer<'a> {
    /// Name of the instance; empty for the top buffer.
    pub name: String,
    /// Name of the trace clock, where the file reports it.
    pub clock: Option<String>,
    /// Size of its sub-buffers in bytes.
    pub page_size: u32,
    /// What was recorded.
    pub content: Content<'a>,
}

/// What a buffer holds.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// Ring-buffer pages, by CPU; CPUs without data may be absent.
    Pages(Vec<CpuData<'a>>),
    /// The text of the `trace` file, from a latency tracer.
    Text(Stored<'a>),
}

/// The pages of one CPU.
#[derive(Clone, Debug)]
pub struct CpuData<'a> {
    /// Logical CPU number.
    pub cpu: u32,
    /// Where they are.
    pub stored: Stored<'a>,
}

/// A run of bytes of the file, perhaps compressed in chunks.
#[derive(Clone, Debug)]
pub struct Stored<'a> {
    pub(super) file: &'a str,
    pub(super) map: &'a [u8],
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes in the file, as far as the file reaches. Compressed runs end with their last chunk instead.
    pub len: u64,
    /// How it is compressed.
    pub codec: Codec,
    pub(super) big_endian: bool,
}

impl<'a> Buffer<'a> {
    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match &self.content {
            Content::Pages(cpus) => cpus.is_empty(),
            Content::Text(stored) => stored.len == 0,
        }
    }

    /// The layout of its sub-buffers.
    pub fn layout(&self, meta: &Meta<'_>, place: &Place) -> Result<PageLayout, Error> {
        PageLayout::parse(&meta.header_page, self.page_size as usize, meta.big_endian, place)
    }

    /// Its CPUs, to be read from the start. A buffer of text has none.
    pub fn streams(&self, layout: &PageLayout) -> Vec<CpuStream<'a>> {
        let Content::Pages(cpus) = &self.content else { return Vec::new() };
        cpus.iter().map(|c| CpuStream { cpu: c.cpu, pages: c.stored.pages(layout.page_size) }).collect()
    }
}

impl<'a> Stored<'a> {
    /// All of a file of its own, as it is.
    pub(crate) fn whole(file: &'a str, map: &'a [u8]) -> Stored<'a> {
        // The byte order is that of the lengths of chunks, and there are none.
        Stored { file, map, offset: 0, len: map.len() as u64, codec: Codec::None, big_endian: false }
    }

    /// The bytes in the file.
    fn raw(&self) -> &'a [u8] {
        let from = usize::try_from(self.offset).map_or(self.map.len(), |o| o.min(self.map.len()));
        let rest = &self.map[from..];
        &rest[..usize::try_from(self.len).map_or(rest.len(), |n| n.min(rest.len()))]
    }

    /// The run as pages.
    pub fn pages(&self, page_size: usize) -> Box<dyn Pages<'a> + Send + 'a> {
        match self.codec {
            Codec::None => Box::new(SlicePages::new(self.file, self.offset, self.raw(), page_size)),
            _ => Box::new(Chunks::new(self.clone(), (CHUNK_PAGES * page_size).clamp(CHUNK, MAX_PIECE))),
        }
    }

    /// The run as a stream of bytes.
    pub fn reader(&self) -> Box<dyn Read + 'a> {
        match self.codec {
            Codec::None => Box::new(self.raw()),
            _ => Box::new(ChunkReader { chunks: Chunks::new(self.clone(), MAX_PIECE), chunk: Vec::new(), at: 0 }),
        }
    }
}

/// Sub-buffers, and bytes at least, that may be compressed together: every CPU has one such chunk in memory. trace-cmd
/// compresses 10 pages at a time.
const CHUNK_PAGES: usize = 16;
const CHUNK: usize = 256 << 10;

/// The chunks of a compressed run.
struct Chunks<'a> {
    stored: Stored<'a>,
    /// Offset in the file of what is read next, and of what was read last.
    at: u64,
    last: u64,
    /// Chunks that are left; `None` before the number was read.
    left: Option<u32>,
    /// Most bytes that a chunk may unpack to.
    most: usize,
    expander: Option<Expander>,
}

impl<'a> Chunks<'a> {
    fn new(stored: Stored<'a>, most: usize) -> Chunks<'a> {
        let left = (stored.len == 0).then_some(0);
        Chunks { at: stored.offset, last: stored.offset, stored, left, most, expander: None }
    }

    /// Finds the next chunk: its bytes and its length after decompression.
    fn find(&mut self) -> Result<Option<(&'a [u8], usize)>, Error> {
        let mut reader = Reader::new(self.stored.file, self.stored.map, 0, self.stored.big_endian);
        reader.seek(self.at);
        let left = match self.left {
            Some(n) => n,
            None => reader.u32("the number of chunks of compressed data")?,
        };
        self.last = reader.offset();
        if left == 0 {
            self.left = Some(0);
            return Ok(None);
        }
        let packed = reader.u32("a chunk of compressed data")?;
        let size = reader.u32("a chunk of compressed data")?;
        let bytes = reader.take(packed.into(), "a chunk of compressed data")?;
        self.at = reader.offset();
        self.left = Some(left - 1);
        Ok(Some((bytes, size as usize)))
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.left == Some(0) {
            return Ok(None);
        }
        // Without the head of a chunk there is no way to the ones behind it.
        let Some((bytes, size)) = self.find().inspect_err(|_| self.left = Some(0))? else { return Ok(None) };
        let place = || Place::offset(self.stored.file, self.last);
        if size > self.most {
            let message =
                "a chunk of compressed data claims more than the 16 sub-buffers or 256 KiB that are read at once";
            return Err(Error::at(place(), message));
        }
        let expander = match &mut self.expander {
            Some(expander) => expander,
            none => none.insert(Expander::new(self.stored.codec).map_err(|e| Error::io(self.stored.file, e))?),
        };
        expander.expand(bytes, size).map(Some).map_err(|message| Error::at(place(), message))
    }
}

impl<'a> Pages<'a> for Chunks<'a> {
    fn next_chunk(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error> {
        Ok(self.next()?.map(Cow::Owned))
    }
    fn place(&self) -> Place {
        Place::offset(self.stored.file, self.last)
    }
}

struct ChunkReader<'a> {
    chunks: Chunks<'a>,
    chunk: Vec<u8>,
    at: usize,
}

impl Read for ChunkReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.chunk.len() {
            let Some(chunk) = self.chunks.next().map_err(std::io::Error::other)? else { return Ok(0) };
            (self.chunk, self.at) = (chunk, 0);
        }
        let n = out.len().min(self.chunk.len() - self.at);
        out[..n].copy_from_slice(&self.chunk[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunked(chunks: &[&[u8]]) -> Vec<u8> {
        let mut out = (chunks.len() as u32).to_le_bytes().to_vec();
        for chunk in chunks {
            let packed = Codec::Zstd.compress(chunk).unwrap();
            out.extend((packed.len() as u32).to_le_bytes());
            out.extend((chunk.len() as u32).to_le_bytes());
            out.extend(packed);
        }
        out
    }

    fn stored(map: &[u8]) -> Stored<'_> {
        Stored { file: "f", map, offset: 0, len: map.len() as u64, codec: Codec::Zstd, big_endian: false }
    }

    #[test]
    fn a_damaged_chunk_does_not_hide_the_next_one() {
        let mut map = chunked(&[&[1; 100], &[2; 100], &[3; 100]]);
        // The first byte of the second chunk's frame.
        let at = 4 + 8 + Codec::Zstd.compress(&[1; 100]).unwrap().len() + 8;
        map[at] ^= 0xff;
        let mut pages = stored(&map).pages(100);
        assert_eq!(pages.next_chunk().unwrap().unwrap()[..], [1; 100]);
        let error = pages.next_chunk().unwrap_err().to_string();
        assert!(error.starts_with(&format!("f: offset {:#x}: zstd data are damaged", at - 8)), "{error}");
        assert_eq!(pages.next_chunk().unwrap().unwrap()[..], [3; 100]);
        assert!(pages.next_chunk().unwrap().is_none());
    }

    #[test]
    fn a_cut_gives_the_chunks_before_it_and_one_error() {
        let map = chunked(&[&[1; 100], &[2; 100]]);
        let mut pages = stored(&map[..map.len() - 1]).pages(100);
        assert!(pages.next_chunk().unwrap().is_some());
        assert!(pages.next_chunk().unwrap_err().to_string().contains("reaches beyond"));
        assert!(pages.next_chunk().unwrap().is_none());
    }

    #[test]
    fn a_chunk_is_no_larger_than_what_is_compressed_together() {
        let map = chunked(&[&[1; 100], &vec![0; CHUNK + 1], &[3; 100]]);
        let mut pages = stored(&map).pages(100);
        assert!(pages.next_chunk().unwrap().is_some());
        assert!(pages.next_chunk().unwrap_err().to_string().contains("claims more than the 16 sub-buffers"));
        assert_eq!(pages.next_chunk().unwrap().unwrap()[..], [3; 100]);
    }

    #[test]
    fn text_is_read_across_chunks() {
        let map = chunked(&[b"one\ntw", b"", b"o\n"]);
        let mut text = String::new();
        stored(&map).reader().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }
}

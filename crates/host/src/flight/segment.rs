//! A segment of the ring: a file of blocks, each of which is whole or is not there.
//!
//! ```text
//! file    := "mmtwinS1" from:u64 block*
//! block   := "MMFB" kind:u32 cpu:u32 length:u32 at:u64 payload        numbers little-endian, `at` and `from` in ns
//! ```
//!
//! A block holds what was taken up to the time `at`. The payload is a zstd frame; that of pages is a frame of
//! `cpu/N.pages.zst`, so that a recording is made by putting them one behind the other. A file that was cut has the
//! blocks before the cut.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const MAGIC: &[u8; 8] = b"mmtwinS1";
const BLOCK: &[u8; 4] = b"MMFB";
/// Bytes before the first block.
const HEAD: u64 = 16;
/// Bytes before a payload.
const BLOCK_HEAD: u64 = 24;
/// Largest payload that is read.
const LARGEST: u32 = 64 << 20;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole sub-buffers of a CPU.
    Pages,
    /// A sample of the counters with its names.
    Counters,
    /// A sample of the counters as its difference from the one before.
    Growth,
    /// Lines of `tasks.jsonl`.
    Tasks,
    /// Events lost since the segment began, by CPU: JSON.
    Losses,
    /// Addresses of code in the events of the segment: u64 each.
    Addresses,
}

const KINDS: [Kind; 6] = [Kind::Pages, Kind::Counters, Kind::Growth, Kind::Tasks, Kind::Losses, Kind::Addresses];

/// A block that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it holds.
    pub kind: Kind,
    /// CPU of pages; 0 for others.
    pub cpu: u32,
    /// All of it happened up to then.
    pub at: u64,
    /// Where the payload is in the file, and its bytes.
    pub offset: u64,
    /// Bytes of the payload.
    pub length: u32,
}

/// A segment that is written.
pub struct SegmentWriter {
    file: File,
    /// Bytes that are whole.
    bytes: u64,
    /// Time of its start.
    pub from: u64,
    /// Time of its last block.
    pub to: u64,
}

impl SegmentWriter {
    /// Makes the file, which must not exist.
    pub fn create(path: &Path, from: u64) -> io::Result<SegmentWriter> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        (&file).write_all(&[&MAGIC[..], &from.to_le_bytes()].concat()).inspect_err(|_| {
            // There is nothing in it.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(SegmentWriter { file, bytes: HEAD, from, to: from })
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that a block with such a payload takes.
    pub fn cost(payload: &[u8]) -> u64 {
        BLOCK_HEAD + payload.len() as u64
    }

    /// Appends a block, all of it or nothing.
    pub fn append(&mut self, kind: Kind, cpu: u32, at: u64, payload: &[u8]) -> io::Result<()> {
        let kind = KINDS.iter().position(|known| *known == kind).unwrap_or_default() as u32;
        let length = u32::try_from(payload.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let numbers = [kind, cpu, length].map(u32::to_le_bytes).concat();
        let head = [&BLOCK[..], &numbers, &at.to_le_bytes()].concat();
        let written = self.file.write_all(&head).and_then(|()| self.file.write_all(payload));
        if let Err(error) = written {
            // If this fails too, a reader leaves the incomplete rest out.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += Self::cost(payload);
        self.to = self.to.max(at);
        Ok(())
    }
}

/// A segment that is read.
pub struct Segment {
    file: File,
    /// Time of its start.
    pub from: u64,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
    /// Bytes up to the end of the last whole block.
    pub whole: u64,
}

impl Segment {
    /// Opens a segment; `None` if the file is none.
    pub fn open(path: &Path) -> io::Result<Option<Segment>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut head = [0; HEAD as usize];
        if length < HEAD || file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let from = number(&head[8..16]);
        let (mut blocks, mut at) = (Vec::new(), HEAD);
        let mut head = [0; BLOCK_HEAD as usize];
        while at + BLOCK_HEAD <= length {
            file.read_exact_at(&mut head, at)?;
            let word = |n: usize| u32::from_le_bytes([head[n], head[n + 1], head[n + 2], head[n + 3]]);
            let (kind, cpu, size) = (KINDS.get(word(4) as usize), word(8), word(12));
            let offset = at + BLOCK_HEAD;
            let (Some(&kind), true, true) =
                (kind, head.starts_with(BLOCK), size <= LARGEST && offset + u64::from(size) <= length)
            else {
                break;
            };
            blocks.push(Block { kind, cpu, at: number(&head[16..24]), offset, length: size });
            at = offset + u64::from(size);
        }
        Ok(Some(Segment { file, from, blocks, whole: at }))
    }

    /// Time of its last block.
    pub fn to(&self) -> u64 {
        self.blocks.iter().map(|block| block.at).fold(self.from, u64::max)
    }

    /// The payload of a block.
    pub fn payload(&self, block: &Block) -> io::Result<Vec<u8>> {
        let mut payload = vec![0; block.length as usize];
        self.file.read_exact_at(&mut payload, block.offset)?;
        Ok(payload)
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// A payload in a frame.
pub fn pack(payload: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(payload, 1)
}

/// The content of a frame.
pub fn unpack(frame: &[u8]) -> io::Result<Vec<u8>> {
    let size = zstd::zstd_safe::get_frame_content_size(frame).ok().flatten().unwrap_or(0);
    zstd::bulk::decompress(frame, size.min(u64::from(LARGEST)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn blocks_come_back_as_far_as_they_are_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        let mut writer = SegmentWriter::create(&path, 7).unwrap();
        let payloads = [pack(b"pages").unwrap(), Vec::new(), pack(&[3; 5000]).unwrap()];
        let mut ends = vec![writer.bytes()];
        for (i, payload) in payloads.iter().enumerate() {
            writer.append(KINDS[i], i as u32, 10 + i as u64, payload).unwrap();
            ends.push(writer.bytes());
        }
        let whole = fs::read(&path).unwrap();
        assert_eq!((whole.len() as u64, writer.to), (writer.bytes(), 12));
        assert!(SegmentWriter::create(&path, 7).is_err(), "nothing is overwritten");
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let Some(segment) = Segment::open(&path).unwrap() else {
                assert!(length < HEAD as usize);
                continue;
            };
            let blocks = ends.iter().filter(|&&end| end <= length as u64).count() - 1;
            assert_eq!((segment.blocks.len(), segment.whole, segment.from), (blocks, ends[blocks], 7));
            for (block, payload) in segment.blocks.iter().zip(&payloads) {
                assert_eq!(&segment.payload(block).unwrap(), payload);
            }
        }
        assert_eq!(unpack(&payloads[2]).unwrap(), [3; 5000]);
        assert!(unpack(b"no frame").is_err());
    }

    #[test]
    fn a_damaged_file_ends_where_the_damage_is() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        let mut writer = SegmentWriter::create(&path, 7).unwrap();
        (0..3).for_each(|at| writer.append(Kind::Losses, 0, at, b"[]").unwrap());
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(&path, &damaged).unwrap();
            if let Some(segment) = Segment::open(&path).unwrap() {
                for block in &segment.blocks {
                    segment.payload(block).unwrap();
                }
            }
        }
    }
}

//! Ring-buffer pages: what `trace_pipe_raw` yields and what `trace.dat` and recordings hold per CPU.
//!
//! [`page`] decodes the records of one CPU, [`merge`] puts the CPUs of a recording into one time order, `span` hands
//! the events to a sink, `encode` packs events into pages.

pub mod encode;
pub mod merge;
mod moves;
pub mod page;
mod span;

use crate::{Error, Place};
use std::borrow::Cow;

/// Largest sub-buffer in bytes: kernels have at most 128 pages of 64 KiB in one.
pub const MAX_PAGE: usize = 8 << 20;

/// The pages of one CPU, in order.
pub trait Pages<'a> {
    /// The next run of whole sub-buffers; `None` at the end.
    fn next_chunk(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error>;
    /// Where the run that `next_chunk` gave last ends: an offset for plain pages, the start of the compressed run else.
    fn place(&self) -> Place;
}

/// One CPU of a recording.
pub struct CpuStream<'a> {
    /// Logical CPU number.
    pub cpu: u32,
    /// Its pages.
    pub pages: Box<dyn Pages<'a> + Send + 'a>,
}

/// The layout of a sub-buffer, from the text of `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Size of a sub-buffer in bytes.
    pub page_size: usize,
    /// Offset of the 64-bit base time.
    pub timestamp: usize,
    /// Offset of the commit word.
    pub commit: usize,
    /// Width of the commit word in bytes: the kernel's `long`.
    pub commit_size: usize,
    /// Offset of the first record.
    pub data: usize,
    /// Numbers are big endian.
    pub big_endian: bool,
}

impl PageLayout {
    /// The layout of a 64-bit little-endian kernel.
    pub fn little_endian_64(page_size: usize) -> PageLayout {
        PageLayout { page_size, timestamp: 0, commit: 8, commit_size: 8, data: 16, big_endian: false }
    }

    /// Reads the text of `events/header_page`. `page_size` is that of the buffer, which may differ from the text's.
    pub fn parse(text: &str, page_size: usize, big_endian: bool, place: &Place) -> Result<PageLayout, Error> {
        let field = |name: &str| {
            header_field(text, name).ok_or_else(|| {
                Error::at(place.clone(), format!("header_page has no field `{name}` with offset and size"))
            })
        };
        let (timestamp, timestamp_size) = field("timestamp")?;
        let (commit, commit_size) = field("commit")?;
        let (data, _) = field("data")?;
        let layout = PageLayout { page_size, timestamp, commit, commit_size, data, big_endian };
        let ends = [(timestamp, timestamp_size), (commit, commit_size)].map(|(at, size)| at.checked_add(size));
        let fits = match ends {
            [Some(timestamp_end), Some(commit_end)] => {
                let apart = timestamp_end <= commit || commit_end <= timestamp;
                // The data begin right behind the two, at the next multiple of 8 at most.
                let room = data.checked_sub(timestamp_end.max(commit_end)).is_some_and(|gap| gap < 8);
                timestamp_size == 8 && matches!(commit_size, 4 | 8) && apart && room
            }
            _ => false,
        };
        if !fits || data > page_size.saturating_sub(8) || page_size > MAX_PAGE {
            return Err(Error::at(place.clone(), format!("impossible page layout: {layout:?}")));
        }
        Ok(layout)
    }
}

/// Size in bytes of the sub-buffer that the text of `events/header_page` describes: where its data end.
pub fn described_size(text: &str) -> Option<usize> {
    let (offset, size) = header_field(text, "data")?;
    offset.checked_add(size)
}

/// Offset and size of a field of `header_page`.
fn header_field(text: &str, name: &str) -> Option<(usize, usize)> {
    let number = |line: &str, key: &str| {
        let rest = &line[line.find(key)? + key.len()..];
        rest.split(';').next()?.trim().parse::<usize>().ok()
    };
    let line = text.lines().find(|l| l.split(';').next().is_some_and(|d| d.split_whitespace().last() == Some(name)))?;
    Some((number(line, "offset:")?, number(line, "size:")?))
}

/// From a recorded time stamp to nanoseconds of the trace clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeMap {
    /// For cycle counters: ns = (t * mult) >> shift, in 128 bits.
    pub scale: Option<(u32, u32)>,
    /// Added afterwards.
    pub offset: i64,
}

impl TimeMap {
    /// Nanoseconds of time stamp `t`.
    #[inline]
    pub fn ns(&self, t: u64) -> u64 {
        let t = match self.scale {
            Some((mult, shift)) => ((u128::from(t) * u128::from(mult)) >> shift.min(127)) as u64,
            None => t,
        };
        t.wrapping_add_signed(self.offset)
    }
}

/// Pages that lie in memory as one run of bytes.
pub struct SlicePages<'a> {
    /// File name for messages.
    file: String,
    /// Offset of `rest` in the file.
    offset: u64,
    rest: &'a [u8],
    run: usize,
}

impl<'a> SlicePages<'a> {
    /// Pages of `page_size` bytes at `offset` of `file`.
    pub fn new(file: &str, offset: u64, bytes: &'a [u8], page_size: usize) -> SlicePages<'a> {
        // Runs of less than 2^30 bytes keep positions within a run in 32 bits.
        SlicePages { file: file.into(), offset, rest: bytes, run: (1 << 30) / page_size * page_size }
    }
}

impl<'a> Pages<'a> for SlicePages<'a> {
    fn next_chunk(&mut self) -> Result<Option<Cow<'a, [u8]>>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (run, rest) = self.rest.split_at(self.run.min(self.rest.len()));
        self.rest = rest;
        self.offset += run.len() as u64;
        Ok(Some(Cow::Borrowed(run)))
    }
    fn place(&self) -> Place {
        Place::offset(&self.file, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(timestamp: &str, commit: &str, data: &str) -> Result<PageLayout, Error> {
        let line = |name: &str, at: &str| format!("\tfield: x {name};\t{at};\tsigned:0;\n");
        let text = line("timestamp", timestamp) + &line("commit", commit) + &line("data", data);
        PageLayout::parse(&text, 4096, false, &Place::file("header_page"))
    }

    #[test]
    fn fields_lie_apart_and_inside_of_the_header() {
        let (timestamp, commit, data) = ("offset:0;size:8", "offset:8;size:8", "offset:16;size:4080");
        assert_eq!(parse(timestamp, commit, data).unwrap(), PageLayout::little_endian_64(4096));
        // A 32-bit kernel.
        assert_eq!(parse(timestamp, "offset:8;size:4", "offset:12;size:4084").unwrap().data, 12);
        let max = "18446744073709551608";
        for (what, timestamp, commit, data) in [
            ("wraps", format!("offset:{max};size:8"), commit.into(), data.into()),
            ("wraps", timestamp.into(), format!("offset:{max};size:8"), data.into()),
            ("wraps", timestamp.into(), format!("offset:8;size:{max}"), data.into()),
            ("wraps", timestamp.into(), commit.into(), format!("offset:{max};size:8")),
            ("overlap", timestamp.into(), "offset:4;size:8".into(), data.into()),
            ("no gap of any size", timestamp.into(), commit.into(), "offset:4000;size:96".into()),
            ("no bytes", timestamp.into(), "offset:8;size:0".into(), data.into()),
            ("no 64 bits", "offset:0;size:4".into(), commit.into(), data.into()),
        ] {
            assert!(parse(&timestamp, &commit, &data).is_err(), "{what}: {timestamp} {commit} {data}");
        }
        assert_eq!(described_size("field: x data; offset:18446744073709551615; size:2;"), None);
    }
}

//! Access traces as CSV text.

use super::{Access, COLUMNS};
use crate::{Error, Place};
use memchr::memchr;
use std::io::Read;

/// Bytes read at once.
const CHUNK: usize = 1 << 18;

pub(super) struct Csv {
    name: String,
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    /// What has not been taken of the buffer.
    begin: usize,
    end: usize,
    /// There is nothing behind it.
    whole: bool,
    /// Number of the line that was taken last.
    line: u64,
}

impl Csv {
    pub(super) fn new(name: &str, input: Box<dyn Read>) -> Result<Csv, Error> {
        let buffer = vec![0; CHUNK];
        let mut csv = Csv { name: name.into(), input, buffer, begin: 0, end: 0, whole: false, line: 0 };
        let header = csv.take_line()?.map(|range| &csv.buffer[range]).unwrap_or_default();
        if !header.split(|&byte| byte == b',').eq(COLUMNS.iter().map(|column| column.as_bytes())) {
            let message = format!("expected the columns {}, found `{}`", COLUMNS.join(","), shown(header));
            return Err(Error::at(csv.place(), message));
        }
        Ok(csv)
    }

    pub(super) fn place(&self) -> Place {
        Place::line(&self.name, self.line)
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Access>, Error> {
        let Some(range) = self.take_line()? else { return Ok(None) };
        match row(&self.buffer[range.clone()]) {
            Some(access) => Ok(Some(access)),
            None => Err(Error::at(self.place(), wrong(&self.buffer[range]))),
        }
    }

    /// Takes a line, without its end.
    #[inline]
    fn take_line(&mut self) -> Result<Option<std::ops::Range<usize>>, Error> {
        loop {
            let begin = self.begin;
            let rest = &self.buffer[begin..self.end];
            let (length, taken) = match memchr(b'\n', rest) {
                Some(length) => (length, length + 1),
                None if self.whole && !rest.is_empty() => (rest.len(), rest.len()),
                None if self.whole => return Ok(None),
                None => {
                    self.fill()?;
                    continue;
                }
            };
            (self.begin, self.line) = (begin + taken, self.line + 1);
            let carriage = length > 0 && self.buffer[begin + length - 1] == b'\r';
            return Ok(Some(begin..begin + length - usize::from(carriage)));
        }
    }

    /// Reads more behind what is left.
    #[cold]
    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == self.buffer.len() {
            let line = Place::line(&self.name, self.line + 1);
            return Err(Error::at(line, format!("the line is longer than {CHUNK} bytes")));
        }
        let read = self.input.read(&mut self.buffer[self.end..]).map_err(|e| Error::io(&self.name, e))?;
        (self.end, self.whole) = (self.end + read, read == 0);
        Ok(())
    }
}

/// The access of a row, if it is one.
#[inline]
fn row(line: &[u8]) -> Option<Access> {
    let (time, rest) = column(line)?;
    let (pid, rest) = column(rest)?;
    let (page, rest) = match rest {
        [b'0', b'x', digits @ ..] => {
            let end = memchr(b',', digits)?;
            (hex(&digits[..end])?, &digits[end + 1..])
        }
        _ => column(rest)?,
    };
    let write = match rest {
        b"r" | b"R" => false,
        b"w" | b"W" => true,
        _ => return None,
    };
    Some(Access { time, pid: i32::try_from(pid).ok()?, page, write })
}

/// A number, and what is behind the comma after it.
#[inline]
fn column(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (at > 0 && byte == b',').then(|| (value, &text[at + 1..]));
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    None
}

fn hex(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, 16).ok()
}

/// What is wrong with a row.
#[cold]
fn wrong(line: &[u8]) -> String {
    let columns: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
    if line.is_empty() {
        return "the line is empty".into();
    }
    if columns.len() != COLUMNS.len() {
        let found = columns.len();
        return format!("expected {} columns ({}), found {found}", COLUMNS.len(), COLUMNS.join(","));
    }
    for (name, text) in COLUMNS.iter().zip(&columns) {
        if text.is_empty() {
            return format!("{name} is empty");
        }
    }
    let decimal = |text: &[u8], most: u64| column(&[text, b","].concat()).is_some_and(|(value, _)| value <= most);
    let page =
        |text: &[u8]| decimal(text, u64::MAX) || text.strip_prefix(b"0x").is_some_and(|text| hex(text).is_some());
    let good = [
        decimal(columns[0], u64::MAX),
        decimal(columns[1], i32::MAX as u64),
        page(columns[2]),
        matches!(columns[3], b"r" | b"R" | b"w" | b"W"),
    ];
    let at = good.iter().position(|good| !good).unwrap_or(0);
    let expected = match at {
        3 => "r or w".into(),
        1 => format!("an integer up to {}", i32::MAX),
        _ => format!("an integer up to {}", u64::MAX),
    };
    format!("{} is `{}`, expected {expected}", COLUMNS[at], shown(columns[at]))
}

/// The start of a text that may be long.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned()
}

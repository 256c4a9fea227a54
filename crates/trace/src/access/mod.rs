//! Access traces: who accessed which page when, to be replayed.
//!
//! A trace is CSV text, also compressed, or a Parquet file; the first bytes tell. Its columns are in `docs/reference/formats.md`.
//! Nothing is stepped over: what is missing, malformed or earlier than the row before it ends the reading, with its place.

#[cfg(feature = "parquet")]
mod contain;
mod csv;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_pages;

pub use pages::{MOST_GROUPS, Pages, TooManyPages};

use crate::input::container;
use crate::{Error, Place};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// Names of the columns.
const COLUMNS: [&str; 4] = ["time", "pid", "page", "rw"];

/// An access of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Nanoseconds since the start of the trace.
    pub time: u64,
    /// Task.
    pub pid: i32,
    /// Page, as the task numbers them.
    pub page: u64,
    /// It was written to, else read.
    pub write: bool,
}

/// An access trace that is read once, from its first row to its last.
pub struct AccessTrace {
    rows: Rows,
    /// Time of the row before.
    last: u64,
}

enum Rows {
    Csv(csv::Csv),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Parquet),
}

impl AccessTrace {
    /// Opens a trace; `-` is standard input.
    pub fn open(name: &str) -> Result<AccessTrace, Error> {
        AccessTrace::open_path(Path::new(name))
    }

    /// Opens a trace whose name need not be UTF-8.
    ///
    /// # Errors
    /// As of [`AccessTrace::open`].
    pub fn open_path(path: &Path) -> Result<AccessTrace, Error> {
        if path == Path::new("-") {
            return AccessTrace::of_stream("standard input", Box::new(std::io::stdin()));
        }
        let name: &str = &path.to_string_lossy();
        let mut file = File::open(path).map_err(|e| Error::io(name, e))?;
        let mut head = Vec::new();
        if file.metadata().is_ok_and(|of| of.is_file()) {
            (&mut file).take(4).read_to_end(&mut head).map_err(|e| Error::io(name, e))?;
            file.rewind().map_err(|e| Error::io(name, e))?;
        }
        if head == b"PAR1" {
            return AccessTrace::of_parquet(name, file);
        }
        AccessTrace::of_stream(name, Box::new(file))
    }

    #[cfg(feature = "parquet")]
    fn of_parquet(name: &str, file: File) -> Result<AccessTrace, Error> {
        Ok(AccessTrace { rows: Rows::Parquet(parquet::Parquet::new(name, file)?), last: 0 })
    }

    #[cfg(not(feature = "parquet"))]
    fn of_parquet(name: &str, _: File) -> Result<AccessTrace, Error> {
        Err(Error::at(Place::file(name), "this build does not read Parquet"))
    }

    fn of_stream(name: &str, stream: Box<dyn Read>) -> Result<AccessTrace, Error> {
        let wrong = |what: &str| Error::at(Place::file(name), format!("not an access trace: {what}"));
        let text = container::text(name, stream).map_err(|error| match error {
            Error::Unknown { message, .. } => wrong(&message),
            error => error,
        })?;
        let text = text.ok_or_else(|| wrong("neither CSV text nor Parquet"))?;
        Ok(AccessTrace { rows: Rows::Csv(csv::Csv::new(name, text)?), last: 0 })
    }

    /// The place of the row that was read last.
    pub fn place(&self) -> Place {
        match &self.rows {
            Rows::Csv(csv) => csv.place(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.place(),
        }
    }
}

impl Iterator for AccessTrace {
    type Item = Result<Access, Error>;

    #[inline]
    fn next(&mut self) -> Option<Result<Access, Error>> {
        let next = match &mut self.rows {
            Rows::Csv(csv) => csv.next(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.next(),
        };
        let access = match next {
            Ok(access) => access?,
            Err(error) => return Some(Err(error)),
        };
        if access.time < self.last {
            let message = format!("time {} is before that of the row above, {}", access.time, self.last);
            return Some(Err(Error::at(self.place(), message)));
        }
        self.last = access.time;
        Some(Ok(access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read(text: &[u8]) -> Result<Vec<Access>, String> {
        let trace = AccessTrace::of_stream("t.csv", Box::new(Cursor::new(text.to_vec())));
        trace.and_then(Iterator::collect).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_read() {
        let expected = [(0, 7, 0, false), (5, 7, 31, true), (5, 8, 1 << 40, false)];
        let expected: Vec<Access> =
            expected.iter().map(|&(time, pid, page, write)| Access { time, pid, page, write }).collect();
        let text = b"time,pid,page,rw\n0,7,0,r\n5,7,0x1f,w\n5,8,1099511627776,R\n";
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read(text.strip_suffix(b"\n").unwrap()).unwrap(), expected, "an end without a new line");
        assert_eq!(read(&String::from_utf8_lossy(text).replace('\n', "\r\n").into_bytes()).unwrap(), expected);
        assert_eq!(read(&zstd::encode_all(&text[..], 1).unwrap()).unwrap(), expected);
    }

    #[test]
    fn a_trace_is_longer_than_what_is_read_at_once() {
        let rows =
            |i: u64| Access { time: i, pid: 1 + (i % 3) as i32, page: i * 977 % 50_000, write: i.is_multiple_of(5) };
        let mut text = String::from("time,pid,page,rw\n");
        for Access { time, pid, page, write } in (0..200_000).map(rows) {
            text += &format!("{time},{pid},{page},{}\n", if write { 'w' } else { 'r' });
        }
        let got = read(text.as_bytes()).unwrap();
        assert_eq!(got.len(), 200_000);
        assert!(got.into_iter().eq((0..200_000).map(rows)));
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        for (rows, message) in [
            ("0,1,2", "3: expected 4 columns (time,pid,page,rw), found 3"),
            ("0,1,2,r,", "3: expected 4 columns (time,pid,page,rw), found 5"),
            ("0,1,,r", "3: page is empty"),
            ("", "3: the line is empty"),
            ("0,1,2,x", "3: rw is `x`, expected r or w"),
            ("0,one,2,r", "3: pid is `one`, expected an integer up to 2147483647"),
            ("-1,1,2,r", "3: time is `-1`, expected an integer up to 18446744073709551615"),
            ("1.5,1,2,r", "3: time is `1.5`, expected an integer up to 18446744073709551615"),
            ("9,1,18446744073709551616,r", "3: page is `18446744073709551616`, expected an integer up to 1844674"),
            ("9,1,0x,r", "3: page is `0x`, expected"),
            ("9,2147483648,0,r", "3: pid is `2147483648`, expected"),
            ("8,1,2,r\n9,1,2,r\n7,1,2,r", "5: time 7 is before that of the row above, 9"),
        ] {
            let error = read(format!("time,pid,page,rw\n0,1,2,r\n{rows}\n").as_bytes()).unwrap_err();
            assert!(error.starts_with(&format!("t.csv:{message}")), "{error}");
        }
        assert_eq!(read(b"0,1,2,r\n").unwrap_err(), "t.csv:1: expected the columns time,pid,page,rw, found `0,1,2,r`");
        assert_eq!(read(b"").unwrap_err(), "t.csv: not an access trace: it is empty");
    }
}

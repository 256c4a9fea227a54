//! What can go wrong while reading or writing, always with the place.

use std::fmt;

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File (or member of an archive, or `standard input`).
    pub file: String,
    /// Where in it.
    pub at: At,
}

/// Position within a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The file as a whole.
    File,
    /// Byte offset from its start.
    Offset(u64),
    /// Line number from 1.
    Line(u64),
    /// Row of a table, from 1.
    Row(u64),
}

impl Place {
    /// A byte offset of a file.
    pub fn offset(file: &str, offset: u64) -> Place {
        Place { file: file.into(), at: At::Offset(offset) }
    }
    /// A line of a file.
    pub fn line(file: &str, line: u64) -> Place {
        Place { file: file.into(), at: At::Line(line) }
    }
    /// A file as a whole.
    pub fn file(file: &str) -> Place {
        Place { file: file.into(), at: At::File }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            At::File => write!(f, "{}", self.file),
            At::Offset(o) => write!(f, "{}: offset {o:#x}", self.file),
            At::Line(l) => write!(f, "{}:{l}", self.file),
            At::Row(row) => write!(f, "{}: row {row}", self.file),
        }
    }
}

/// Why an input could not be read, or an output not written, at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system said no.
    #[error("{file}: {source}")]
    Io {
        /// File or directory.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An output that may not or cannot be written as asked.
    #[error("{path}: {message}")]
    Output {
        /// As the user named it.
        path: String,
        /// Why, and what helps.
        message: String,
    },
    /// The input is not what it claims to be.
    #[error("{place}: {message}")]
    Malformed {
        /// Where.
        place: Place,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// The input is no trace that mmtwin knows.
    #[error("{file}: not a kernel trace: {message}")]
    Unknown {
        /// File.
        file: String,
        /// What was seen.
        message: String,
    },
}

impl Error {
    /// An error at a place.
    pub fn at(place: Place, message: impl Into<String>) -> Error {
        Error::Malformed { place, message: message.into() }
    }
    /// An error of the operating system.
    pub fn io(file: &str, source: std::io::Error) -> Error {
        Error::Io { file: file.into(), source }
    }
}

/// Something that was wrong and was stepped over: the rest was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it was met first.
    pub place: Place,
    /// What.
    pub message: String,
    /// How often the same thing was met.
    pub count: u64,
}

/// Warnings of one input. The same message is kept once, with its count, so a damaged file of any size stays small.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    list: Vec<Warning>,
}

impl Warnings {
    /// Adds a warning. `message` is a sentence without varying numbers, so that equal ones can be counted.
    pub fn add(&mut self, place: impl FnOnce() -> Place, message: &str) {
        match self.list.iter_mut().find(|w| w.message == message) {
            Some(w) => w.count += 1,
            None => self.list.push(Warning { place: place(), message: message.into(), count: 1 }),
        }
    }
    /// Adds what stopped one part of `file` while others could be read.
    pub fn add_error(&mut self, file: &str, error: Error) {
        let (place, message) = match error {
            Error::Malformed { place, message } => (place, message),
            other => (Place::file(file), other.to_string()),
        };
        self.add(|| place, &message);
    }
    /// All, in order of first occurrence.
    pub fn list(&self) -> &[Warning] {
        &self.list
    }
    /// Takes over another list.
    pub fn append(&mut self, other: Warnings) {
        for w in other.list {
            match self.list.iter_mut().find(|o| o.message == w.message) {
                Some(o) => o.count += w.count,
                None => self.list.push(w),
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        if self.count > 1 {
            write!(f, " ({} times; this is the first)", self.count)?;
        }
        Ok(())
    }
}
